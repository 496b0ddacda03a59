"""How well single columns, pairs and triples of columns came through. NOT PRIVATE."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema
from dualquery.release.asking.probabilities import cells
from dualquery.release.release import Release
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import Table
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.marginals import Groups, Marginals

Floats = npt.NDArray[np.float64]

MOST_COLUMNS = 30
"""Columns that are compared; in a wider table those that were drawn most often."""

MOST_CELLS = 200_000
"""A pair or triple of columns with more cells is left out."""

MARGINALS = 100
"""The most triples behind the K-marginal score; NIST's tool takes a sample too."""

K = 3

PICTURES = 4
"""So many of the pairs that depend most in truth are drawn."""

MOST_DRAWN = 16
"""A column with more codes is in no picture."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A pair of columns with all its cells, to be drawn.

    Attributes:
        first: the attribute to the right.
        second: the attribute upwards.
        true: the shares of the cells in the private table, one row per code of the first.
        released: the same in the release.
    """

    first: int
    second: int
    true: Floats
    released: Floats


@dataclass(frozen=True)
class Pair:
    """Two columns: how far their joint distribution is off, and how strongly they hang together.

    Attributes:
        first: a column.
        second: another one.
        distance: the total variation distance of the two-way tables, between 0 and 1.
        true: Cramér's V in the private table.
        released: Cramér's V in the release.
    """

    first: str
    second: str
    distance: float
    true: float
    released: float


@dataclass(frozen=True)
class Fidelity:
    """Distances between distributions, all in total variation, so between 0 and 1.

    Attributes:
        columns: by column, the distance of its distribution.
        pairs: pairs of these columns.
        k_marginal: the K-marginal score as NIST's SDNist defines it, from 0 to 1000 (nothing is
            wrong), computed by this package: 1000 · (1 − the mean distance of k-way tables).
            None if there are fewer than k columns.
        marginals: how many k-way tables it is the mean of.
        pictures: of the pairs that depend most in truth.
    """

    columns: dict[str, float]
    pairs: tuple[Pair, ...]
    k_marginal: float | None
    marginals: int
    pictures: tuple[Picture, ...] = ()


def fidelity(
    release: Release, table: Table, schema: Schema, treatment: OutOfDomain, seed: int = 0
) -> Fidelity:
    """Compare the columns that the release knows about with those of the private table.

    Args:
        release: what was published.
        table: the private table.
        schema: the schema as bound to it.
        treatment: of cells outside their domain.
        seed: of the choice of triples, if there are many.
    """
    known = [int(a) for a in release.most_drawn if release.actions.named[a]]
    columns = sorted(known[:MOST_COLUMNS])
    if not columns:
        return Fidelity({}, (), None, 0)
    rows = EncodedRows.read(table, schema, columns, treatment)
    alone: list[tuple[int, ...]] = [(a,) for a in columns]
    single, double, triple = (
        _compared(release, rows, schema, chosen)
        for chosen in (
            alone,
            _affordable(list(combinations(columns, 2)), schema),
            _triples(columns, schema, np.random.default_rng(seed)),
        )
    )
    names = schema.names
    return Fidelity(
        {names[a]: _distance(true, ours) for (a,), true, ours in single},
        tuple(
            Pair(names[a], names[b], _distance(true, ours), cramers_v(true), cramers_v(ours))
            for (a, b), true, ours in double
        ),
        1000.0 * (1.0 - float(np.mean([_distance(t, o) for _, t, o in triple])))
        if triple
        else None,
        len(triple),
        _pictures(double),
    )


Compared = tuple[tuple[int, ...], Floats, Floats]


def _compared(
    release: Release, rows: EncodedRows, schema: Schema, chosen: list[tuple[int, ...]]
) -> list[Compared]:
    """Per set of columns the true and the released shares of their cells."""
    found = []
    for columns in chosen:
        marginals = Marginals(Groups.single(schema), np.array([columns], dtype=np.int32))
        counts = np.asarray(tabulate(rows, marginals), dtype=float).reshape(-1)
        shape = [int(schema.sizes[a]) for a in columns]
        true = (counts / counts.sum()).reshape(shape)
        found.append((columns, true, cells(release.components, columns, release.schema)))
    return found


def _pictures(pairs: list[Compared]) -> tuple[Picture, ...]:
    """The strongest pairs of columns that fit into a picture; a column is in two at most."""
    small = [one for one in pairs if max(one[1].shape) <= MOST_DRAWN and min(one[1].shape) > 1]
    small.sort(key=lambda one: -cramers_v(one[1]))
    used: dict[int, int] = {}
    found: list[Picture] = []
    for columns, true, ours in small:
        if len(found) < PICTURES and all(used.get(a, 0) < 2 for a in columns):
            found.append(Picture(columns[0], columns[1], true, ours))
            used |= {a: used.get(a, 0) + 1 for a in columns}
    return tuple(found)


def _affordable(chosen: list[tuple[int, ...]], schema: Schema) -> list[tuple[int, ...]]:
    sizes = schema.sizes.astype(np.int64)
    return [one for one in chosen if int(np.prod(sizes[list(one)])) <= MOST_CELLS]


def _triples(
    columns: list[int], schema: Schema, generator: np.random.Generator
) -> list[tuple[int, ...]]:
    every = _affordable(list(combinations(columns, K)), schema) if comb(len(columns), K) else []
    if len(every) <= MARGINALS:
        return every
    chosen = np.sort(generator.choice(len(every), MARGINALS, replace=False))
    return [every[i] for i in chosen]


def _distance(true: Floats, ours: Floats) -> float:
    return 0.5 * float(np.abs(true - ours).sum())


def cramers_v(joint: Floats) -> float:
    """How strongly two columns hang together: 0 for not at all, 1 for completely.

    Args:
        joint: the shares of their cells.
    """
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    rows, columns, inner = rows[rows > 0], columns[columns > 0], joint
    inner = inner[joint.sum(axis=1) > 0][:, joint.sum(axis=0) > 0]
    least = min(len(rows), len(columns)) - 1
    if least < 1:
        return 0.0
    expected = np.outer(rows, columns)
    return float(np.sqrt(max(((inner - expected) ** 2 / expected).sum(), 0.0) / least))
