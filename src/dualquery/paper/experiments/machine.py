"""The machine that an experiment ran on, without anything that would identify it."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "matplotlib")


def describe() -> dict[str, str]:
    """Cores, memory, processor and versions; no host, user or path."""
    from dualquery.base.threads import thread_count
    from dualquery.version import __version__

    versions = [f"dualquery {__version__}", f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count() or "unknown"),
        "threads used": str(thread_count()),
        "memory": _memory(),
        "load": _load(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": ", ".join(versions),
    }


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _load() -> str:
    """How busy the machine was, because times mean little if other work shared it."""
    try:
        busy = os.getloadavg()[2]
    except (AttributeError, OSError):
        return "unknown"
    return f"{busy:.1f} processes running on average in the last 15 minutes of the experiment"


def _memory() -> str:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            return f"{int(line.split()[1]) / 2**20:.0f} GiB"
    return "unknown"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
