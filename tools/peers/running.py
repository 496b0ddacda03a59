"""One run of a peer in its own environment, within limits of time and memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dualquery.base.stored import Json
from dualquery.paper.field.alone import Limits, run_alone
from tools.peers.registry import PEERS

Codes = npt.NDArray[np.int32]

NOT_INSTALLED = "not run: not installed"


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        codes: of the synthetic rows; None if it did not end well.
        told: `seconds`, `processor_seconds` and `peak_bytes`, as the driver measured them.
        end: empty, or in which way it failed.
    """

    codes: Codes | None
    told: Json
    end: str = ""


def run(
    method: str,
    table: Path,
    epsilon: float,
    delta: float,
    at: Path,
    limits: Limits | None = None,
) -> Outcome:
    """Synthetic rows by a peer.

    Args:
        method: its key in `PEERS`.
        table: the file of the private codes and of the sizes of the columns.
        epsilon: of the promise.
        delta: of the promise; a peer that promises δ = 0 does not use it.
        at: a folder for files.
        limits: of the run; None for the usual ones.
    """
    environment = PEERS[method].environment
    if not environment.python.is_file():
        return Outcome(None, {}, NOT_INSTALLED)
    out = at / f"{method}.npy"
    out.unlink(missing_ok=True)
    request = {
        "method": method, "table": str(table), "out": str(out),
        "epsilon": epsilon, "delta": delta,
    }  # fmt: skip
    ended = run_alone(
        [environment.python, environment.script], request, limits or Limits(), {"HOME": str(at)}
    )
    if ended.end or not out.is_file():
        return Outcome(None, ended.told, ended.end or "died: without rows")
    return Outcome(np.load(out), ended.told)


def write_table(path: Path, codes: Codes, sizes: npt.NDArray[np.int32]) -> Path:
    """The file that a driver reads.

    Args:
        path: where.
        codes: of the private rows, a column per attribute.
        sizes: how many codes each attribute has.
    """
    np.savez(path, codes=codes, sizes=sizes)
    return path
