"""One run in a process of its own, within limits of processor time and memory.

Time is counted in processor seconds, so that a busy machine changes no outcome. The process sends
back one line of JSON on its standard output.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dualquery.base.stored import Json

PATIENCE = 40
"""On the clock a run may take so many times its processor time before it counts as stuck."""

ALLOCATION = ("MemoryError", "Unable to allocate", "bad_alloc", "Cannot allocate", "out of memory")
"""How programs say that memory ran out."""


@dataclass(frozen=True)
class Limits:
    """What a run may use.

    Attributes:
        seconds: of processor time.
        bytes: of address space.
    """

    seconds: int = 300
    bytes: int = 6 << 30

    @property
    def text(self) -> str:
        return f"{self.seconds} processor seconds and {self.bytes / 2**30:g} GiB"

    def apply(self) -> None:
        """In the new process, before its program starts."""
        resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, self.seconds + 5))
        resource.setrlimit(resource.RLIMIT_AS, (self.bytes, self.bytes))


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Attributes:
        told: what it sent back; empty if it did not end well.
        end: empty, or why it did not end well.
    """

    told: Json
    end: str = ""


def run_alone(
    command: Sequence[str | Path],
    request: Mapping[str, object],
    limits: Limits,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program that takes a request as its last argument and answers with a line of JSON.

    Args:
        command: the program and its first arguments.
        request: what it is asked, sent as JSON.
        limits: what it may use.
        environment: variables that are set for it, beside those of this process.
    """
    one = dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            [*map(str, command), json.dumps(request)],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE * limits.seconds,
            env={**os.environ, **one, "DUALQUERY_THREADS": "1", **(environment or {})},
            preexec_fn=limits.apply,
        )
    except subprocess.TimeoutExpired:
        return Ended({}, f"died: stuck for {PATIENCE * limits.seconds} s")
    if done.returncode == 0 and (lines := done.stdout.strip().splitlines()):
        told = json.loads(lines[-1])
        return Ended(told, str(told.pop("end", "")))
    return Ended({}, _reason(done.returncode, done.stderr, limits))


def _reason(code: int, stderr: str, limits: Limits) -> str:
    """Why a program failed, in a few words."""
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"died: over {limits.seconds} processor seconds"
    if any(word in stderr for word in ALLOCATION):
        return f"died: over {limits.bytes / 2**30:g} GiB"
    if code < 0:
        return f"died: {signal.Signals(-code).name}"
    lines = [line for line in stderr.strip().splitlines() if line.strip()]
    return f"died: {one_cell(lines[-1] if lines else 'without a word')}"


def one_cell(text: str, most: int = 240) -> str:
    """A message that fits into one cell of a CSV file: one line without commas or quotes."""
    return " ".join(text.replace(",", ";").replace('"', "'").split())[:most]


def measured() -> Json:
    """Processor seconds and peak memory of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"processor": used.ru_utime + used.ru_stime, "peak_bytes": used.ru_maxrss * 1024}
