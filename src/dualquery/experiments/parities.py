"""The narrow table again, with 3-way parities instead of marginals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dualquery.experiments import mwem
from dualquery.experiments.experiment import Claim, Experiment, Options, Task
from dualquery.experiments.store import Row


def tasks(options: Options) -> Iterator[Task]:
    return mwem.tasks(options, kind="parities")


def claims(rows: Sequence[Row]) -> list[Claim]:
    return mwem.ahead(rows, ", parities")


EXPERIMENT = Experiment(
    "parities",
    "A narrow table: parities",
    "As for marginals. A parity is the predicate “an even number of the three bits is on”, with "
    "values 0 and 1; in the paper's values ±1 all errors double.",
    tasks,
    mwem.panels,
    claims,
)
