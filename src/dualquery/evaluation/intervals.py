"""Intervals of all kinds of figures, asked of a release as a user would ask it. NOT PRIVATE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.domain.query import Literal, Query
from dualquery.evaluation.coverage import KINDS, STRENGTHS, Coverage, Ints, by_class, counted
from dualquery.evaluation.joint import Set, shares_of
from dualquery.release.asking.inside import Numbers
from dualquery.release.release import Release
from dualquery.rows.encoded import EncodedRows

Floats = npt.NDArray[np.float64]

GROUPS = 120
"""Groups of records per class of strength, in which shares are asked, and as many for means."""

CORRELATIONS = 400
"""The most correlations per class of strength."""


def coverage(
    release: Release,
    rows: EncodedRows,
    strengths: Mapping[Set, int],
    numbers: Mapping[int, Numbers],
    *,
    two_way: Sequence[Ints],
    three_way: Mapping[Set, Ints],
    correlated: Mapping[Set, float],
    generator: np.random.Generator,
) -> Coverage | None:
    """How many figures lie in their intervals, by kind and class.

    Args:
        release: what was published.
        rows: the private rows.
        strengths: the class of every pair of columns by its dependence in truth.
        numbers: what codes are worth, by column of numbers.
        two_way: counts of the pairs, in the order of `strengths`.
        three_way: counts of the triples.
        correlated: true correlations by pair, as the release states correlations.
        generator: chooses groups of records.

    Returns:
        None if the release states no errors.
    """
    one_way = list(_one_way(release, rows))
    if not any(part[0].any() for part in one_way):
        return None
    shares = list(_among_groups(release, rows, strengths, generator))
    means = list(_means(release, rows, strengths, numbers, generator))
    pairs = list(_correlations(release, rows.rows, strengths, correlated, generator))
    found = (
        by_class(one_way),
        by_class(two_way, list(strengths.values())),
        by_class(list(three_way.values()), [_of_triple(t, strengths) for t in three_way]),
        by_class([part for _, part in shares], [strength for strength, _ in shares]),
        by_class([part for _, part in means], [strength for strength, _ in means]),
        by_class([part for _, part in pairs], [strength for strength, _ in pairs], sized=False),
    )
    return {kind: classes for kind, classes in zip(KINDS, found, strict=True) if classes}


def _of_triple(triple: Set, strengths: Mapping[Set, int]) -> int:
    """A triple is as strong as its strongest pair; one that was not compared counts as weak."""
    return max(strengths.get(pair, 0) for pair in combinations(triple, 2))


def _one_way(release: Release, rows: EncodedRows) -> Iterator[Ints]:
    columns = sorted(rows.columns)
    for column, true in zip(
        columns, shares_of(rows, release.schema, [(a,) for a in columns]), strict=True
    ):
        found = release.cross_table(release.schema.names[column], unknown="default")
        yield counted(true, found.low, found.high, rows.rows * true)


@dataclass(frozen=True, eq=False)
class _Group:
    """Records that have one code in one column, and another column that is asked about.

    Attributes:
        target: the column that is asked about.
        strength: the class of the two columns.
        condition: that the other column has the code.
        shares: of the target's codes, in truth, among all records.
    """

    target: int
    strength: int
    condition: Query
    shares: Floats


def _groups(
    rows: EncodedRows,
    release: Release,
    strengths: Mapping[Set, int],
    targets: set[int],
    generator: np.random.Generator,
) -> Iterator[_Group]:
    """As many groups of each strength, so that the strong ones are not few."""
    for strength in range(len(STRENGTHS)):
        asked = [
            (pair, target)
            for pair, own in strengths.items()
            for target in pair
            if own == strength and target in targets
        ]
        if not asked:
            continue
        drawn = generator.integers(len(asked), size=GROUPS)
        often = Counter(asked[number] for number in np.sort(drawn).tolist())
        pairs = list(dict.fromkeys(pair for pair, _ in often))
        tables = dict(zip(pairs, shares_of(rows, release.schema, pairs), strict=True))
        for (pair, target), times in often.items():
            joint = tables[pair] if target == pair[0] else tables[pair].T
            other = pair[1] if target == pair[0] else pair[0]
            there = np.flatnonzero(joint.sum(axis=0) > 0.0)
            for code in generator.choice(there, min(times, len(there)), replace=False).tolist():
                condition = Query("conjunction", (Literal(other, (code,)),))
                yield _Group(target, strength, condition, joint[:, code])


def _among_groups(
    release: Release,
    rows: EncodedRows,
    strengths: Mapping[Set, int],
    generator: np.random.Generator,
) -> Iterator[tuple[int, Ints]]:
    """Shares of a column's codes among the records of a group; the size is that of the cell."""
    for group in _groups(rows, release, strengths, set(rows.columns), generator):
        true = group.shares / group.shares.sum()
        try:
            found = release.cross_table(
                release.schema.names[group.target], where=group.condition, unknown="default"
            )
            low, high = found.low, found.high
        except QueryError:  # the release says that there is no such group, but there is
            low, high = np.full_like(true, np.inf), np.full_like(true, np.inf)
        yield group.strength, counted(true, low, high, rows.rows * group.shares)


def _means(
    release: Release,
    rows: EncodedRows,
    strengths: Mapping[Set, int],
    numbers: Mapping[int, Numbers],
    generator: np.random.Generator,
) -> Iterator[tuple[int, Ints]]:
    """Means of a column of numbers in a group; the size is that of the group."""
    for group in _groups(rows, release, strengths, set(numbers), generator):
        values = numbers[group.target].mean
        present = group.shares[: len(values)]
        if present.sum() <= 0.0:
            continue
        true = float(present @ values / present.sum())
        name = release.schema.names[group.target]
        low, high = np.inf, np.inf
        try:
            found = release.mean(name, where=group.condition, unknown="default")
            low, high = (np.nan if end is None else end for end in (found.low, found.high))
        except QueryError:  # as above
            pass
        scale = max(abs(float(values[0])), abs(float(values[-1])), 1.0)
        records = rows.rows * float(present.sum())
        yield group.strength, counted(true / scale, low / scale, high / scale, records)


def _correlations(
    release: Release,
    rows: int,
    strengths: Mapping[Set, int],
    correlated: Mapping[Set, float],
    generator: np.random.Generator,
) -> Iterator[tuple[int, Ints]]:
    for strength in range(len(STRENGTHS)):
        pairs = [pair for pair in correlated if strengths[pair] == strength]
        if len(pairs) > CORRELATIONS:
            chosen = generator.choice(len(pairs), CORRELATIONS, replace=False)
            pairs = [pairs[number] for number in np.sort(chosen).tolist()]
        for pair in pairs:
            low, high = _interval(release, *(release.schema.names[a] for a in pair))
            yield strength, counted(correlated[pair], low, high, float(rows))


def _interval(release: Release, first: str, second: str) -> tuple[float, float]:
    """The ends of the interval of a correlation, NaN if they are unknown.

    If a column never varies in the release, it has no correlation there. That counts as 0, and as
    being sure of it.
    """
    try:
        found = release.correlation(first, second, unknown="default")
    except QueryError:
        return 0.0, 0.0
    low, high = (np.nan if end is None else end for end in (found.low, found.high))
    return low, high
