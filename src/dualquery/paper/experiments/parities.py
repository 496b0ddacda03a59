"""The narrow table again, with 3-way parities instead of marginals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dualquery.paper.experiments import mwem
from dualquery.paper.experiments.experiment import Claim, Experiment, Options, Task
from dualquery.paper.experiments.store import FinishedRun


def tasks(options: Options) -> Iterator[Task]:
    return mwem.tasks(options, kind="parities")


def claims(runs: Sequence[FinishedRun]) -> list[Claim]:
    """Both errors side by side, without a verdict: the paper states no figure for parities."""
    made = []
    for column, error in (("average_error", "average error"), ("max_error", "max error")):
        pairs = mwem.pairs_of(runs, "mwem-improved", column)
        if pairs:
            said = ", ".join(
                f"{theirs:.3f} against {ours:.3f} at ε = {epsilon:g}"
                for epsilon, theirs, ours in (pairs[0], pairs[-1])
            )
            made.append(
                Claim(
                    f"parities at 17 attributes, MWEM (as used) against the algorithm: {error}",
                    "no figure",
                    said,
                    None,
                    "a measured parity says little of the others: 15 rounds settle 15 of them",
                )
            )
    return made


EXPERIMENT = Experiment(
    "parities",
    "A narrow table: parities",
    "As for marginals; of the 10,000 parities 508 are different, few enough for noise on each of "
    "them to do well. A parity is the predicate “an even number of the three bits is on”, with "
    "values 0 and 1; in the paper's values ±1 all errors double.",
    tasks,
    mwem.panels,
    claims,
    mwem.PURE + mwem.APPROXIMATE,
    (mwem.DATASET,),
)
