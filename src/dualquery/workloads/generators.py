"""Workloads made from a schema alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import as_float, refusal, whole
from dualquery.base.errors import ParameterError, QueryError
from dualquery.base.files import read_text
from dualquery.base.ragged import offsets
from dualquery.domain.language import parse_lines
from dualquery.domain.query import Literal, conjunction
from dualquery.domain.schema import Schema
from dualquery.workloads.workload import Literals, Workload


def random_marginals(
    schema: Schema,
    k: int = 3,
    count: int = 500_000,
    seed: int = 0,
    *,
    positive: bool = False,
    parities: int | None = None,
    parity_share: float = 1.0,
) -> Workload:
    """Random cells of k-way marginals, as in the paper's experiments, and parities beside them.

    Each query takes k different attributes uniformly, one bit of each (the 1 of a 0/1 column, one
    code of any other) and a random polarity per bit. Queries may repeat, as in the paper.

    Args:
        schema: the attributes to ask about.
        k: the number of attributes per query.
        count: the number of queries.
        seed: the seed of the choice. It is public, because a workload says nothing about the rows.
        positive: whether bits are never negated. So the paper defines its marginals; the queries
            of its experiments have both signs.
        parities: ask parities of so many bits: whether an even number of them is on.
        parity_share: the share of the queries that are parities, if any are.
    """
    whole("queries", count)
    if parities is not None:
        if not 0.0 <= as_float("parity_share", parity_share) <= 1.0:
            raise refusal("parity_share", parity_share, "a share from 0 to 1")
        even = round(parity_share * count)
        parts = []
        if even < count:
            parts.append(random_marginals(schema, k, count - even, seed, positive=positive))
        if even:
            parts.append(_even(random_marginals(schema, parities, even, seed)))
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]
    check_k(schema, k)
    generator = np.random.default_rng(seed)
    attributes = distinct_rows(generator, len(schema), k, count)
    bits = schema.bit_counts.astype(np.int64)
    first = offsets(bits)
    chosen = first[attributes] + generator.integers(0, bits[attributes])
    negated = generator.integers(0, 2, size=(count, k), dtype=np.int64) * (not positive)
    used, position = _compact(chosen, int(first[-1]))
    terms = (2 * position + negated).astype(np.int32)
    return Workload.conjunctions(schema, _bit_literals(schema, first, used), terms)


def _compact(
    chosen: npt.NDArray[np.int64], universe: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The distinct numbers among `chosen`, all below `universe`, and the place of each of `chosen`.

    This is `np.unique` with a table instead of a sort, so tens of millions of terms take a second.
    """
    seen = np.zeros(universe, dtype=bool)
    seen[chosen] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[chosen]


def distinct_rows(
    generator: np.random.Generator, population: int, k: int, count: int
) -> npt.NDArray[np.int64]:
    """`count` rows of k different numbers below `population`, uniform over such rows."""
    rows = generator.integers(0, population, size=(count, k))
    clash = _with_repeats(rows, np.arange(count))
    while len(clash):
        # Redrawing the whole row keeps the distribution uniform over rows without repeats. With
        # few numbers to choose from, rows clash often, so there a row is taken from a shuffle.
        if population < 4 * k:
            shuffled = generator.permuted(
                np.broadcast_to(np.arange(population), (len(clash), population)), axis=1
            )
            rows[clash] = shuffled[:, :k]
        else:
            rows[clash] = generator.integers(0, population, size=(len(clash), k))
        clash = _with_repeats(rows, clash)
    return rows


def _with_repeats(
    rows: npt.NDArray[np.int64], among: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Which of the rows `among` hold a number twice."""
    columns = rows[among].T
    repeated = np.zeros(len(among), dtype=bool)
    for one, other in combinations(columns, 2):
        repeated |= one == other
    return among[repeated]


def _bit_literals(
    schema: Schema, first: npt.NDArray[np.int64], bits: npt.NDArray[np.int64]
) -> Literals:
    """The literals that stand for bits of the binary view, each of one code."""
    attribute = np.searchsorted(first, bits, side="right") - 1
    code = bits - first[attribute]
    code[schema.bit_counts[attribute] == 1] += (
        schema.sizes[attribute][schema.bit_counts[attribute] == 1] == 2
    )  # the bit of a 0/1 column is its 1
    return Literals.single(attribute, code)


def all_marginals(schema: Schema, k: int, limit: int = 20_000_000) -> Workload:
    """Every cell of every k-way marginal; more than `limit` cells are refused."""
    check_k(schema, k)
    sizes = schema.sizes.astype(np.int64)
    if comb(len(schema), k) > limit:
        raise ParameterError(
            f"all {k}-way marginals of {len(schema)} attributes are over {limit} queries; "
            "use random marginals"
        )
    sets = list(combinations(range(len(schema)), k))
    total = sum(int(np.prod(sizes[list(chosen)])) for chosen in sets)
    if total > limit:
        raise ParameterError(
            f"all {k}-way marginals are {total} queries, over {limit}; use random marginals"
        )
    first = offsets(sizes)
    blocks = []
    for chosen in sets:
        cells = np.indices(tuple(int(sizes[a]) for a in chosen)).reshape(k, -1).T
        blocks.append(2 * (first[list(chosen)] + cells))
    literals = every_code(schema, range(len(schema)))
    return Workload.conjunctions(schema, literals, np.concatenate(blocks))


MOST_CELLS = 2_000_000
"""Queries that whole marginals make at most. Marginals beyond an equal part of it stand in the
workload with a random part of their cells."""


def whole_marginals(
    schema: Schema, arities: Sequence[int], most: int = MOST_CELLS, seed: int = 0
) -> Workload:
    """The cells of all marginals of so many attributes.

    Up to `most` cells are asked. Beyond that the largest marginals stand there with a random part
    of their cells, chosen by a public seed; no marginal is left out.

    Args:
        schema: the attributes.
        arities: how many attributes the marginals have, such as 1 and 2.
        most: the most queries.
        seed: of the random part.
    """
    sizes = schema.sizes.astype(np.float64)
    for k in arities:
        check_k(schema, k, "marginals")
    tables = sum(comb(len(schema), k) for k in arities)
    if tables > most:
        raise ParameterError(
            f"marginals = {','.join(map(str, arities))} of {len(schema)} attributes are {tables} "
            f"tables; expected at most {most}, or random queries (queries, k)"
        )
    sets = [
        np.array(list(combinations(range(len(schema)), k)), dtype=np.int64) for k in sorted(arities)
    ]
    cells = np.concatenate([sizes[one].prod(axis=1) for one in sets])
    cap = _largest_cap(cells, most)
    literals, first = every_code(schema, range(len(schema))), offsets(schema.sizes)
    generator = np.random.default_rng(seed)
    parts = []
    for one in sets:
        shapes = schema.sizes[one].astype(np.int64)
        terms = []
        for chosen, shape in zip(one, shapes, strict=True):
            if np.prod(shape.astype(float)) <= cap:
                found = np.indices(tuple(shape.tolist())).reshape(len(shape), -1).T
            else:
                found = np.unique(generator.integers(0, shape, (cap, len(shape))), axis=0)
            terms.append(2 * (first[chosen] + found))
        parts.append(Workload.conjunctions(schema, literals, np.concatenate(terms)))
    return _joined(parts)


def _largest_cap(cells: npt.NDArray[np.float64], most: int) -> int:
    """The largest number c for which the sizes, cut at c, add up to at most `most`."""
    low, high = 1, max(1, most)
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(cells, middle).sum() <= most:
            low = middle
        else:
            high = middle - 1
    return low


def _joined(parts: Sequence[Workload]) -> Workload:
    """Workloads over the same literals, one after the other."""
    ends = np.cumsum([0, *(part.start[-1] for part in parts)])
    starts = [part.start[:-1] + end for part, end in zip(parts, ends, strict=False)]
    return Workload(
        parts[0].schema,
        parts[0].literals,
        np.concatenate([*starts, ends[-1:]]),
        np.concatenate([part.terms for part in parts]),
        np.concatenate([part.is_parity for part in parts]),
    )


def every_code(schema: Schema, attributes: Iterable[int]) -> Literals:
    """A literal for every code of some attributes, attribute by attribute."""
    chosen = np.fromiter(attributes, dtype=np.int64)
    sizes = schema.sizes[chosen]
    return Literals.single(
        np.repeat(chosen, sizes), np.concatenate([np.arange(size) for size in sizes])
    )


def parities(schema: Schema, k: int = 3, count: int | None = None, seed: int = 0) -> Workload:
    """Parities of k bits on different attributes.

    Args:
        schema: the attributes to ask about.
        k: the number of bits per query.
        count: the number of random parities; all parities if None.
        seed: the public seed of the choice.
    """
    check_k(schema, k)
    bits = schema.bit_counts
    if count is None:
        if comb(int(bits.sum()), k) > 20_000_000:
            raise ParameterError(f"all {k}-way parities are too many; say how many to draw")
        first = offsets(bits)
        queries = []
        for chosen in combinations(range(len(schema)), k):
            for cell in np.ndindex(*(int(bits[a]) for a in chosen)):
                queries.append([first[a] + c for a, c in zip(chosen, cell, strict=True)])
        positions = np.array(queries, dtype=np.int64)
        used, position = np.unique(positions, return_inverse=True)
        drawn = Workload.conjunctions(
            schema, _bit_literals(schema, first, used), 2 * position.reshape(positions.shape)
        )
    else:
        drawn = random_marginals(schema, k, count, seed)
    return _even(drawn)


def _even(drawn: Workload) -> Workload:
    """The parities of the bits that conjunctions name."""
    ones = drawn.terms & ~np.int32(1)
    every = np.ones(len(drawn), dtype=bool)
    return Workload(drawn.schema, drawn.literals, drawn.start, ones, every)


def thresholds(schema: Schema, names: Sequence[str] | None = None) -> Workload:
    """`attribute >= value` for every inner value or edge of the ordered attributes."""
    queries = []
    for position in _ordered(schema, names):
        size = schema.attributes[position].proper_size
        for cut in range(1, size):
            queries.append(conjunction([Literal(position, tuple(range(cut, size)))], schema))
    return Workload.of(queries, schema)


def ranges(schema: Schema, names: Sequence[str] | None = None) -> Workload:
    """`attribute in [a, b)` for every pair of values or edges of the ordered attributes."""
    queries = []
    for position in _ordered(schema, names):
        size = schema.attributes[position].proper_size
        for low, high in combinations(range(size + 1), 2):
            if high - low < size:
                literal = Literal(position, tuple(range(low, high)))
                queries.append(conjunction([literal], schema))
    return Workload.of(queries, schema)


def _ordered(schema: Schema, names: Sequence[str] | None) -> Iterable[int]:
    if names is None:
        found = [i for i, attribute in enumerate(schema.attributes) if attribute.ordered]
        if not found:
            raise QueryError("the schema has no ordered attribute")
        return found
    positions = [schema.position(name) for name in names]
    for position in positions:
        if not schema.attributes[position].ordered:
            raise QueryError(f"attribute {schema.attributes[position].name!r} is not ordered")
    return positions


def read_workload(path: str | Path, schema: Schema) -> Workload:
    """The queries of a text file, one per line."""
    path = Path(path)
    lines = read_text(path, "workload file", QueryError).splitlines()
    try:
        queries = parse_lines(lines, schema)
    except QueryError as error:
        raise QueryError(f"workload file {str(path)!r}, {error}") from None
    if not queries:
        raise QueryError(f"workload file {str(path)!r} holds no query")
    return Workload.of(queries, schema)


def check_k(schema: Schema, k: int, name: str = "k") -> int:
    """The number k of attributes per query, if the schema has that many."""
    if not 1 <= k <= len(schema):
        raise refusal(name, k, f"1 to {len(schema)}, the number of attributes")
    return k
