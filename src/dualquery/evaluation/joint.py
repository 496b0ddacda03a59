"""What a release and the private table are compared by: shares of cells, numbers, correlations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.domain.schema import Schema
from dualquery.release.asking.inside import Numbers
from dualquery.release.release import Release
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.marginals import Groups, Marginals

Floats = npt.NDArray[np.float64]
Set = tuple[int, ...]

AT_ONCE = 4_000_000
"""Cells that are counted at a time."""

TINY = 1e-15
"""A variance below this part of the squared range is rounding: the column has one value."""


def shares_of(rows: EncodedRows, schema: Schema, sets: Sequence[Set]) -> Iterator[Floats]:
    """The shares of all cells of several sets of columns, one table after the other."""
    groups, sizes = Groups.single(schema), schema.sizes.astype(np.int64)
    waiting: list[Set] = []
    cells = 0
    for number, one in enumerate(sets):
        waiting.append(one)
        cells += int(np.prod(sizes[list(one)]))
        if cells < AT_ONCE and number + 1 < len(sets):
            continue
        marginals = Marginals(groups, np.array(waiting, dtype=np.int32))
        counts = tabulate(rows, marginals)
        for place, columns in enumerate(waiting):
            part = counts[marginals.start[place] : marginals.start[place + 1]].astype(float)
            yield (part / part.sum()).reshape([int(sizes[a]) for a in columns])
        waiting, cells = [], 0


def numbers_of(release: Release, column: int) -> Numbers | None:
    """What the codes of a column are worth as numbers; None if it holds none."""
    attribute = release.schema.attributes[column]
    try:
        within = release.within(attribute.name) if attribute.is_numeric else None
        return Numbers.of(attribute, within, "a correlation")
    except QueryError:
        return None


def correlation(
    joint: Floats, first: Numbers, second: Numbers, *, inside: bool = False
) -> float | None:
    """Pearson's correlation in a two-way table; every code counts with the mean of its numbers.

    Args:
        joint: shares, or counts.
        first: the numbers of its rows; cells beyond them are missing ones.
        second: those of its columns.
        inside: whether the variance of the numbers behind a code belongs to that of the column, as
            in `Release.correlation`. Without it the figure is about codes alone, so a column and
            its copy have a correlation of 1.

    Returns:
        The correlation; None if a column has one value only.
    """
    inner = joint[: len(first.mean), : len(second.mean)]
    total = float(inner.sum())
    if total <= 0.0:
        return None
    inner = inner / total
    scaled = []
    for numbers, own in ((first, inner.sum(axis=1)), (second, inner.sum(axis=0))):
        middle = float(own @ numbers.mean)
        within = numbers.variance if inside else 0.0
        variance = float(own @ ((numbers.mean - middle) ** 2 + within))
        if variance <= TINY * float(numbers.most - numbers.least) ** 2:
            return None
        scaled.append((numbers.mean - middle) / np.sqrt(variance))
    return float(scaled[0] @ inner @ scaled[1])
