"""One run of a peer in its own environment, within limits of time and memory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tools.peers.registry import PEERS

Codes = npt.NDArray[np.int32]

MOST_SECONDS = 1200
MOST_BYTES = 12 << 30


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        codes: of the synthetic rows; None if it did not end well.
        seconds: on the clock.
        peak: the most memory it held, in bytes.
        end: empty, or in which way it failed.
    """

    codes: Codes | None
    seconds: float
    peak: int
    end: str = ""


def run(
    method: str, codes: Codes, sizes: npt.NDArray[np.int32], epsilon: float, delta: float, at: Path
) -> Outcome:
    """Synthetic rows by a peer.

    Args:
        method: its key in `PEERS`.
        codes: of the private rows, a column per attribute.
        sizes: how many codes each attribute has.
        epsilon: of the promise.
        delta: of the promise; a peer that promises δ = 0 does not use it.
        at: a folder for files.
    """
    peer = PEERS[method]
    table, out = at / "table.npz", at / f"{method}.npy"
    np.savez(table, codes=codes, sizes=sizes)
    asked = {
        "method": method, "table": str(table), "out": str(out),
        "epsilon": epsilon, "delta": delta,
    }  # fmt: skip
    started = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    try:
        done = subprocess.run(
            [peer.environment.python, peer.environment.script, json.dumps(asked)],
            capture_output=True,
            text=True,
            check=False,
            timeout=MOST_SECONDS,
            env={"PATH": os.environ["PATH"], "HOME": str(at)},
            preexec_fn=_limit,
        )
    except subprocess.TimeoutExpired:
        return Outcome(None, time.monotonic() - started, 0, f"over {MOST_SECONDS} s")
    seconds = time.monotonic() - started
    # The largest of all children so far: exact for the first, and for those that exceed it.
    peak = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * 1024
    if done.returncode or not out.is_file():
        return Outcome(None, seconds, peak, _reason(done.stderr))
    return Outcome(np.load(out), seconds, peak)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def _reason(stderr: str) -> str:
    """The last line of a traceback, or that memory ran out."""
    lines = [line for line in stderr.strip().splitlines() if line.strip()]
    last = lines[-1] if lines else "it ended without a word"
    if "MemoryError" in stderr or "Unable to allocate" in stderr:
        return f"over {MOST_BYTES >> 30} GB"
    return last[:120]
