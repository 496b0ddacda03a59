"""The experiments with a solver: what it proved, how often it ran out of time, and the gaps.

`experiment … --oracle NAME` keeps such runs in a file of their own, `NAME-ORACLE.csv`, because
they answer another question than the search that the package uses: is "the timeout was rarely
reached" true?
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dualquery.base.errors import ParameterError
from dualquery.oracles.oracle import Oracle, Record, Response
from dualquery.oracles.problem import Problem
from dualquery.oracles.registry import ORACLES
from dualquery.paper.experiments.store import KEY, MEASURED, TEXTS, FinishedRun, Layout, Store

SOLVED = Layout(
    (*KEY, "oracle", "time_limit"),
    (*MEASURED[:-1], "proved", "timeouts", "mean_gap", "largest_gap", "slowest", MEASURED[-1]),
    (*TEXTS, "oracle"),
)
"""The columns of a file of runs with a solver."""

ALMOST = 0.99
"""A call that took this share of its time limit has reached it: solvers stop a little early."""


@dataclass
class Heard:
    """An oracle, and all that it answered. It is part of no run that is published.

    Attributes:
        oracle: who is asked.
        responses: what came back, with the number of draws it was about.
    """

    oracle: Oracle
    responses: list[tuple[Response, int]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.oracle.name

    def __call__(
        self,
        problem: Problem,
        *,
        warm_starts: Sequence[Record] = (),
        generator: np.random.Generator,
    ) -> Response:
        found = self.oracle(problem, warm_starts=warm_starts, generator=generator)
        self.responses.append((found, problem.draws))
        return found

    def cells(self) -> dict[str, object]:
        """Proofs, calls that ended by the clock, and the gaps; a gap is unknown without a bound."""
        limit = limit_of(self.oracle)
        gaps = [
            math.nan if found.bound is None else max(0.0, found.bound - found.value) / draws
            for found, draws in self.responses
        ]
        return {
            "proved": sum(found.optimal for found, _ in self.responses),
            "timeouts": sum(
                not found.optimal and found.seconds >= ALMOST * limit for found, _ in self.responses
            ),
            "mean_gap": float(np.mean(gaps)),
            "largest_gap": float(np.max(gaps)),
            "slowest": max(found.seconds for found, _ in self.responses),
        }


def limit_of(oracle: Oracle) -> float:
    """The seconds that a call may take; infinite for an oracle that has no limit."""
    return float(getattr(oracle, "time_limit", math.inf))


def stored_with_solvers(out: Path, stem: str) -> list[FinishedRun]:
    """All runs of an experiment with a solver that are kept in a folder."""
    files = [out / f"{stem}-{one.name}.csv" for one in ORACLES]
    return [run for file in files if file.is_file() for run in Store(file, SOLVED).runs]


def solvers_table(runs: Sequence[FinishedRun]) -> str:
    """Per setting and solver, what was proved and what it cost; sums over the runs."""
    lines = [
        "| data | series | ε | oracle | limit | runs | rounds | proved | time-outs | mean gap | "
        "largest gap | slowest round | seconds | max error | average error |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | "
        "---: | ---: |",
    ]
    names = ("dataset", "bits", "queries", "series", "epsilon", "oracle", "time_limit")
    settings: dict[tuple[str, ...], list[FinishedRun]] = {}
    for run in runs:
        settings.setdefault(tuple(run[name] for name in names), []).append(run)
    for (data, _, _, series, epsilon, oracle, limit), found in settings.items():
        total = {
            name: sum(run.number(name) for run in found)
            for name in ("rounds", "proved", "timeouts", "mean_gap", "seconds", "max_error")
        }
        average = sum(run.number("average_error") for run in found) / len(found)
        lines.append(
            f"| {data} | {series} | {epsilon} | {oracle} | {limit} s | {len(found)} | "
            f"{total['rounds']:,.0f} | {total['proved']:,.0f} | {total['timeouts']:,.0f} | "
            f"{total['mean_gap'] / len(found):.4f} | "
            f"{max(run.number('largest_gap') for run in found):.4f} | "
            f"{max(run.number('slowest') for run in found):.1f} s | "
            f"{total['seconds'] / len(found):.1f} | {total['max_error'] / len(found):.4f} | "
            f"{average:.5f} |"
        )
    return "\n".join(lines)


def require_records(name: str, series: Sequence[str], wanted: Sequence[str] | None) -> None:
    """Refuse a series that asks no oracle.

    Args:
        name: of the experiment.
        series: those of it that play records.
        wanted: those that the user chose.
    """
    for one in wanted or ():
        if one not in series:
            raise ParameterError(
                f"series {one!r} asks no oracle; with oracle, experiment {name!r} has "
                f"{', '.join(series) or 'none'}"
            )
