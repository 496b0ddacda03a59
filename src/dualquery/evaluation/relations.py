"""How well the relations between columns came through, in answers and in rows. NOT PRIVATE.

Errors over random queries are small where columns hardly depend, and nearly all pairs hardly do. So
this looks where people look: at the pairs that depend most, at correlations, at triples, and at
whether the stated intervals hold there. Everything is asked of the release as a user would ask it.
All of it is judged by codes: where a number lies inside its bin is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.base.stored import Json
from dualquery.domain.schema import Schema
from dualquery.evaluation import intervals
from dualquery.evaluation.coverage import Coverage, Ints, counted, strengths_of
from dualquery.evaluation.fidelity import cramers_v
from dualquery.evaluation.joint import correlation, numbers_of, shares_of
from dualquery.release.asking.inside import Numbers
from dualquery.release.release import Release
from dualquery.rows.encoded import EncodedRows

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Set = tuple[int, ...]

MOST_COLUMNS = 100
"""Columns that are compared; in a wider table those that were drawn most often."""

MOST_PAIRS = 5_000
"""If there are more pairs, so many are chosen."""

TRIPLES = 200
"""The most triples of columns."""

MOST_CELLS = 200_000
"""A pair or triple with more cells is left out."""

MOST_ROWS = 100_000
"""The most synthetic rows; usually there are as many as private ones."""

MOST_SAMPLED = 20_000_000
"""The most cells of all synthetic rows: a table of a million columns gets few rows."""

FEWEST_ROWS = 1_000
"""If fewer rows than this are affordable, rows are not judged: chance alone would move them."""

NOTABLE = 0.2
"""Correlations whose absolute value is above this should be kept."""


@dataclass(frozen=True)
class Kept:
    """Released correlations as shares of the true ones, where these are notable.

    Attributes:
        correlations: how many are notable.
        median: of the shares; 1 is perfect, 0 is a lost relation, below 0 a reversed one.
        lowest_tenth: a tenth of the shares is lower.
        lowest: the lowest.
    """

    correlations: int
    median: float
    lowest_tenth: float
    lowest: float

    @classmethod
    def of(cls, true: Floats, found: Floats) -> Kept | None:
        """None if no true correlation is notable."""
        notable = np.abs(true) > NOTABLE
        if not notable.any():
            return None
        shares = found[notable] / true[notable]
        low = float(np.quantile(shares, 0.1))
        return cls(len(shares), float(np.median(shares)), low, float(shares.min()))


@dataclass(frozen=True)
class Closeness:
    """How far the relations in answers, or in rows, are from those of the private table.

    Attributes:
        pairs: the mean total variation distance of all pairs of columns.
        strongest: that of the tenth of the pairs that depend most in truth.
        correlations: the root-mean-square error of all correlations, where every code counts with
            the mean of its numbers; None without numbers.
        kept: which part of the notable correlations is left; None if there is none.
        association: the root-mean-square error of Cramér's V over all pairs.
        triples_l1: the mean L1 distance of triples; None if there are no three columns.
        k_marginal: 1000 · (1 − half of it): the K-marginal score as NIST's SDNist defines it.
    """

    pairs: float
    strongest: float
    correlations: float | None
    kept: Kept | None
    association: float
    triples_l1: float | None
    k_marginal: float | None


@dataclass(frozen=True)
class Relations:
    """The relations of a release beside those of the private table.

    Attributes:
        columns: how many columns were compared.
        pairs: how many pairs of them.
        triples: how many triples.
        answers: of the released answers.
        sampled: how many synthetic rows were judged; 0 if the table is too wide for that.
        rows: of these rows; None if there are none.
        coverage: figures in their 95 % intervals; None if the release states no errors.
    """

    columns: int
    pairs: int
    triples: int
    answers: Closeness
    sampled: int
    rows: Closeness | None
    coverage: Coverage | None

    def to_dict(self) -> Json:
        """Plain values, ready for JSON."""
        return {
            "columns": self.columns,
            "pairs": self.pairs,
            "triples": self.triples,
            "answers": asdict(self.answers),
            "sampled": self.sampled,
            "rows": None if self.rows is None else asdict(self.rows),
            "coverage": None
            if self.coverage is None
            else {
                kind: {
                    name: {"figures": held.figures, "share": held.share}
                    for name, held in found.items()
                }
                for kind, found in self.coverage.items()
            },
        }


def columns_of(release: Release) -> list[int]:
    """The columns that are compared: those that the release knows about, up to a bound."""
    known = [int(a) for a in release.most_drawn if release.actions.named[a]]
    return sorted(known[:MOST_COLUMNS])


def relations(
    release: Release, rows: EncodedRows, seed: int = 0, *, sample: Codes | None = None
) -> Relations | None:
    """Compare the relations of a release with those of private rows.

    Args:
        release: what was published.
        rows: the private rows; their columns are compared.
        seed: of the synthetic rows, and of what is chosen where there is too much.
        sample: synthetic rows as codes, if they are there already.

    Returns:
        The figures; None if there are no two columns.
    """
    schema, generator = release.schema, np.random.default_rng(seed)
    columns = sorted(rows.columns)
    pairs = _chosen(columns, 2, schema, MOST_PAIRS, generator)
    if not pairs:
        return None
    triples = _chosen(columns, 3, schema, TRIPLES, generator)
    numbers = {a: found for a in columns if (found := numbers_of(release, a)) is not None}
    if sample is None:
        sample = _sample(release, rows.rows, generator)
    drawn = None if sample is None else _encoded(sample, schema, columns)
    doubles = [
        _judged_pair(release, pair, tables, numbers, rows.rows)
        for pair, tables in zip(pairs, _tables(rows, drawn, schema, pairs), strict=True)
    ]
    triplets = [
        _judged_triple(release, triple, tables, rows.rows)
        for triple, tables in zip(triples, _tables(rows, drawn, schema, triples), strict=True)
    ]
    dependence = np.array([one.dependence for one in doubles])
    strengths = strengths_of(dependence)
    strength_of = dict(zip(pairs, strengths.tolist(), strict=True))
    return Relations(
        len(columns),
        len(pairs),
        len(triples),
        _closeness(0, doubles, strengths, triplets),
        0 if sample is None else len(sample),
        None if sample is None else _closeness(1, doubles, strengths, triplets),
        intervals.coverage(
            release,
            rows,
            strength_of,
            numbers,
            two_way=[one.held for one in doubles],
            three_way={t: one.held for t, one in zip(triples, triplets, strict=True)},
            correlated={
                pair: one.stated
                for pair, one in zip(pairs, doubles, strict=True)
                if one.stated is not None
            },
            generator=generator,
        ),
    )


@dataclass(frozen=True, eq=False)
class _Pair:
    """One pair of columns: index 0 of the tuples is about answers, 1 about rows."""

    dependence: float
    distances: tuple[float, float]
    associations: tuple[float, float]
    """By how much Cramér's V is off."""
    correlations: tuple[float, float, float] | None
    """The true one first."""
    held: Ints
    stated: float | None
    """The true correlation as a release states correlations."""


@dataclass(frozen=True, eq=False)
class _Triple:
    distances: tuple[float, float]
    held: Ints


def _judged_pair(
    release: Release,
    pair: Set,
    tables: tuple[Floats, Floats | None],
    numbers: dict[int, Numbers],
    rows: int,
) -> _Pair:
    true, sampled = tables
    names = [release.schema.names[a] for a in pair]
    found = release.cross_table(*names, unknown="default")
    v = cramers_v(true)
    lost = 0.0 if sampled is None else cramers_v(sampled) - v
    both, stated = None, None
    if all(a in numbers for a in pair):
        x, y = (numbers[a] for a in pair)
        r = correlation(true, x, y)
        if r is not None:
            rows_own = None if sampled is None else correlation(sampled, x, y)
            both = (r, correlation(found.share, x, y) or 0.0, rows_own or 0.0)
            stated = correlation(true, x, y, inside=True) or 0.0
    return _Pair(
        _distance(true, np.outer(true.sum(axis=1), true.sum(axis=0))),
        (_distance(true, found.share), 0.0 if sampled is None else _distance(true, sampled)),
        (cramers_v(found.share) - v, lost),
        both,
        counted(true, found.low, found.high, rows * true),
        stated,
    )


def _judged_triple(
    release: Release, triple: Set, tables: tuple[Floats, Floats | None], rows: int
) -> _Triple:
    true, sampled = tables
    found = release.cross_table(*(release.schema.names[a] for a in triple), unknown="default")
    return _Triple(
        (_distance(true, found.share), 0.0 if sampled is None else _distance(true, sampled)),
        counted(true, found.low, found.high, rows * true),
    )


def _closeness(
    whose: int, pairs: Sequence[_Pair], strengths: Ints, triples: Sequence[_Triple]
) -> Closeness:
    """Of answers (0) or of rows (1)."""
    apart = np.array([one.distances[whose] for one in pairs])
    both = [one.correlations for one in pairs if one.correlations is not None]
    true = np.array([one[0] for one in both])
    found = np.array([one[1 + whose] for one in both])
    l1 = 2.0 * float(np.mean([one.distances[whose] for one in triples])) if triples else None
    return Closeness(
        float(apart.mean()),
        float(apart[strengths == 2].mean()),
        _root_mean_square(found - true) if both else None,
        Kept.of(true, found) if both else None,
        _root_mean_square(np.array([one.associations[whose] for one in pairs])),
        l1,
        None if l1 is None else 1000.0 * (1.0 - l1 / 2.0),
    )


def _tables(
    rows: EncodedRows, sample: EncodedRows | None, schema: Schema, sets: Sequence[Set]
) -> Iterator[tuple[Floats, Floats | None]]:
    """Per set of columns the true shares, and those in synthetic rows."""
    true = shares_of(rows, schema, sets)
    if sample is None:
        yield from ((one, None) for one in true)
    else:
        yield from zip(true, shares_of(sample, schema, sets), strict=True)


def _sample(release: Release, rows: int, generator: np.random.Generator) -> Codes | None:
    """Synthetic rows, as many as private ones if that is affordable; None if too few are."""
    count = min(rows, MOST_ROWS)
    affordable = MOST_SAMPLED // len(release.schema)
    if affordable < min(count, FEWEST_ROWS):
        return None
    return release.sample_codes(min(count, affordable), generator)


def _encoded(codes: Codes, schema: Schema, columns: Sequence[int]) -> EncodedRows:
    kinds = {a: np.min_scalar_type(int(schema.sizes[a]) - 1) for a in columns}
    return EncodedRows(len(codes), {a: codes[:, a].astype(kinds[a]) for a in columns})


def _chosen(
    columns: list[int], k: int, schema: Schema, most: int, generator: np.random.Generator
) -> list[Set]:
    """Sets of k columns: all that are not too large, or some of them."""
    every = np.array(list(combinations(columns, k)), dtype=np.int64).reshape(-1, k)
    fitting = every[np.prod(schema.sizes.astype(float)[every], axis=1) <= MOST_CELLS]
    if len(fitting) > most:
        fitting = fitting[np.sort(generator.choice(len(fitting), most, replace=False))]
    return [tuple(one) for one in fitting.tolist()]


def _distance(true: Floats, ours: Floats) -> float:
    return 0.5 * float(np.abs(true - ours).sum())


def _root_mean_square(errors: Floats) -> float:
    return float(np.sqrt(np.mean(errors**2)))
