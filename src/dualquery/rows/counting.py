"""Exact counts of every query over private rows. Private side.

There are three routes to count a conjunction, and they agree to the last row: popcounts over packed
columns, a walk along the rows of a literal that few rows satisfy, and one contingency table for
all queries on the same attributes. The route with the lowest estimated cost is taken. The constants
of the estimate were measured (docs/decisions/counting.md). Wrong constants would make counting
slower, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dualquery.base.order import lexical_order
from dualquery.base.ragged import offsets
from dualquery.base.threads import over_ranges
from dualquery.rows import table as tables
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.long import LongTable
from dualquery.rows.packed import PackedRows, Packer, Words, rows_of_blocks
from dualquery.rows.table import Table
from dualquery.rows.weighed import DROPPED, Strata, Weighed
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Literals, Workload

Counts = npt.NDArray[np.int64]
Terms = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]

NEAR_CACHE, FAR_CACHE = 1 << 20, 1 << 24
"""The number of bytes that stay close to one core, and that stay on the chip."""

NEAR_NS, FAR_NS = 0.09, 0.35
"""Nanoseconds to load and count one word of a column, from the cache and from memory."""

NEAR_LISTED_NS, FAR_LISTED_NS = 0.9, 6.0
"""Nanoseconds to test one listed row in one column, from the cache and from memory."""

ROW_NS, PLACE_NS = 1.5, 0.3
"""Nanoseconds to enter one row into a table, and to find its place along one attribute."""

CALL_NS = 15.0
"""Nanoseconds per query and block, besides those for its words."""

FEW = 4
"""Columns are copied out of their blocks if only one in so many is used."""

MOST_CELLS = 1 << 20
"""The most cells of a table, including those for the codes that no query asks for."""


def count_rows(
    table: Table, workload: Workload, out_of_domain: OutOfDomain = OutOfDomain.REFUSE
) -> Counted:
    """Count all queries of a workload over a table, in one pass over its rows.

    If its rows have weights or belong to persons, counts are numbers of parts: every row counts
    what it weighs.
    """
    if isinstance(table, Weighed):
        return count_layers(pack_layers(table, workload, out_of_domain), workload, table)
    packed = PackedRows.pack(table, workload.schema, workload.literals, out_of_domain)
    return count_packed(packed, workload)


def pack_layers(
    table: Weighed, workload: Workload, out_of_domain: OutOfDomain
) -> list[tuple[int, PackedRows]]:
    """The packed rows of every layer, with the parts that each of its rows counts."""
    strata = table.strata
    if strata.disjoint and isinstance(table.table, LongTable):
        return _pack_long(table.table, strata, workload, out_of_domain)
    packers = [
        Packer(
            workload.schema,
            workload.literals,
            rows_of_blocks(int(strata.sizes[layer.holds].sum())),
        )
        for layer in strata.layers
    ]
    attributes = [int(a) for a in np.unique(workload.literals.attribute)]
    for number, block in table.by_layer(workload.schema, attributes, out_of_domain):
        packers[number].add(block)
    found = ((layer.parts, p.finish()) for layer, p in zip(strata.layers, packers, strict=True))
    return [
        (parts, packed) for parts, packed in found if packed.rows
    ]  # a digit may be in no weight


def _pack_long(
    pairs: LongTable, strata: Strata, workload: Workload, out_of_domain: OutOfDomain
) -> list[tuple[int, PackedRows]]:
    """The packed rows of the layers of a long table, of which no two have a row in common.

    Rows are numbered layer by layer, each from the beginning of a block, so that one pass over
    the pairs packs all layers.
    """
    literals, blocks = workload.literals, [rows_of_blocks(int(n)) for n in strata.sizes[1:]]
    start = offsets([len(rows) for rows in blocks])
    first = np.concatenate([[-1], start[:-1] * tables.BLOCK_ROWS])
    numbers = np.where(strata.of_row > DROPPED, first[strata.of_row] + strata.places, -1)
    packer = Packer(workload.schema, literals, [n for rows in blocks for n in rows])
    for ones in pairs.renumbered(workload.schema, packer.attributes, out_of_domain, numbers):
        packer.add(ones)
    packed = packer.finish()
    return [
        (layer.parts, PackedRows(sum(rows), literals, packed.blocks[a:b], tuple(rows)))
        for layer, rows, (a, b) in zip(strata.layers, blocks, pairwise(start), strict=True)
    ]


def count_layers(
    layers: list[tuple[int, PackedRows]], workload: Workload, table: Weighed
) -> Counted:
    """The counts of all layers together, in parts."""
    counts = np.zeros(len(workload), dtype=np.int64)
    for parts, packed in layers:
        counts += parts * count_packed(packed, workload).counts
    return Counted(counts, table.strata.parts)


def count_packed(packed: PackedRows, workload: Workload) -> Counted:
    """Count all queries of a workload over rows that were packed for its literals."""
    counts = np.zeros(len(workload), dtype=np.int64)
    tally = Tally(packed)
    for positions, terms, is_parity in _by_kind(workload):
        if is_parity:
            counts[positions] = count_parities(tally, terms)
        elif terms.shape[1] == 1:
            counts[positions] = _count_single(tally, terms[:, 0])
        else:
            counts[positions] = _count_cheapest(tally, workload, terms)
    return Counted(counts, packed.rows)


class Tally:
    """Packed rows, and the ones of every literal in every block, counted when first asked for."""

    def __init__(self, packed: PackedRows) -> None:
        self.packed = packed
        self._ones: Counts | None = None

    @property
    def ones(self) -> Counts:
        """`ones[b, i]` rows of block b satisfy literal i."""
        from dualquery.rows._counting_kernels import count_ones

        if self._ones is None:
            shape = len(self.packed.blocks), len(self.packed.literals)
            ones = np.zeros(shape, dtype=np.int64)
            for bits, found in zip(self.packed.blocks, ones, strict=True):
                over_ranges(partial(count_ones, bits, found), shape[1], 1024)
            self._ones = ones
        return self._ones

    @property
    def words(self) -> int:
        return sum(bits.shape[1] for bits in self.packed.blocks)

    @property
    def dense_ns(self) -> float:
        """Nanoseconds to count one word of one column by popcounts."""
        tile = 8 * len(self.packed.literals) * min(self.words, 64)
        return NEAR_NS if tile <= NEAR_CACHE else FAR_NS

    @property
    def listed_ns(self) -> float:
        """Nanoseconds to test one listed row in one column; a list reaches into its whole block."""
        block = max(bits.nbytes for bits in self.packed.blocks)
        return NEAR_LISTED_NS if block <= FAR_CACHE else FAR_LISTED_NS


def _by_kind(workload: Workload) -> Iterator[tuple[Positions, Terms, bool]]:
    """Groups of queries of one kind and length: positions, a matrix of terms, whether parities."""
    if workload.arity is not None and not workload.has_parities:
        terms = workload.terms.reshape(len(workload), workload.arity)
        yield np.arange(len(workload)), terms, False
        return
    lengths = np.diff(workload.start)
    kinds = 2 * lengths + workload.is_parity
    for kind in np.unique(kinds):
        chosen = np.flatnonzero(kinds == kind)
        places = workload.start[chosen, None] + np.arange(kind >> 1)
        yield chosen, workload.terms[places], bool(kind & 1)


def _count_single(tally: Tally, terms: Terms) -> Counts:
    ones = tally.ones.sum(axis=0)[terms >> 1]
    held: Counts = np.where(terms & 1, tally.packed.rows - ones, ones)
    return held


def count_conjunctions_of(tally: Tally, terms: Terms) -> Counts:
    """Count the conjunctions of some terms, one per row of the matrix, without tables."""
    if terms.shape[1] == 1:
        return _count_single(tally, terms[:, 0])
    return _count_columns(tally, terms)


def _count_cheapest(tally: Tally, workload: Workload, terms: Terms) -> Counts:
    counts = np.zeros(len(terms), dtype=np.int64)
    left = np.arange(len(terms))
    tabulated = _worth_tables(tally, workload, terms)
    if len(tabulated):
        counts[tabulated] = count_by_tables(tally, workload, terms[tabulated])
        left = np.setdiff1d(left, tabulated, assume_unique=True)
    counts[left] = _count_columns(tally, terms[left])
    return counts


def _count_columns(tally: Tally, terms: Terms) -> Counts:
    """Count conjunctions by lists of rows where those are cheaper, else by popcounts."""
    counts = np.zeros(len(terms), dtype=np.int64)
    left = np.arange(len(terms))
    if len(left) > len(tally.packed.literals):  # else every route reads each column about once
        listed = left[_worth_lists(tally, terms[left])]
        counts[listed] = count_by_lists(tally, terms[listed])
        left = np.setdiff1d(left, listed, assume_unique=True)
    counts[left] = count_by_popcounts(tally, terms[left])
    return counts


# Popcounts


def count_by_popcounts(tally: Tally, terms: Terms) -> Counts:
    """Count conjunctions by popcounts, in an order in which neighbours share columns."""
    from dualquery.rows._counting_kernels import count_conjunctions

    ordered, order = _ordered(_sorted_terms(terms))
    counts = _over_tiles(*_in_use(tally.packed.blocks, ordered), count_conjunctions)
    # Past the last row every positive literal is 0, so every negated one is 1.
    counts -= _padding(tally.packed) * (ordered & 1).all(axis=1)
    return _restored(counts, order)


def count_parities(tally: Tally, terms: Terms) -> Counts:
    """Count parities: the rows in which an even number of terms holds."""
    from dualquery.rows._counting_kernels import count_odd

    literals, order = _ordered(_sorted_terms(terms >> 1))
    odd = _restored(_over_tiles(tally.packed.blocks, literals, count_odd), order)
    flipped = (terms & 1).sum(axis=1) & 1
    even: Counts = np.where(flipped, odd, tally.packed.rows - odd)
    return even


def _in_use(blocks: Sequence[Words], terms: Terms) -> tuple[Sequence[Words], Terms]:
    """The columns that some terms use, and the terms over those; all columns unless few are used.

    A few hundred conjunctions must not walk through the columns of a wide table.
    """
    used = np.unique(terms >> 1)
    if FEW * len(used) > len(blocks[0]):
        return blocks, terms
    place = np.searchsorted(used, terms >> 1)
    return [bits[used] for bits in blocks], (2 * place + (terms & 1)).astype(terms.dtype)


def _over_tiles(blocks: Sequence[Words], terms: Terms, kernel: Callable[..., None]) -> Counts:
    """Run a kernel over all words, in tiles that keep the columns in the cache."""
    counts = np.zeros(len(terms), dtype=np.int64)
    if not len(terms):
        return counts
    for bits in blocks:
        for tile in _tiles(bits):
            over_ranges(partial(kernel, tile, terms, counts), len(terms), 256)
    return counts


def _tiles(bits: Words) -> Iterator[Words]:
    """Cut a block along its words.

    A tile is copied, so that its columns lie end to end. Inside a block they start a large power
    of two apart and would evict each other from the same few lines of the cache.
    """
    literals, words = bits.shape
    size = max(64, NEAR_CACHE // (8 * literals) // 64 * 64)
    if size >= words or 8 * 64 * literals > FAR_CACHE:  # no tile of so many columns stays near
        yield bits
        return
    for first in range(0, words, size):
        yield np.ascontiguousarray(bits[:, first : first + size])


def _padding(packed: PackedRows) -> int:
    """The number of bits past the last row, in all blocks."""
    return sum(64 * int(bits.shape[1]) for bits in packed.blocks) - packed.rows


# Lists of rows


def _worth_lists(tally: Tally, terms: Terms) -> Positions:
    """The queries with a positive literal so rare that a walk along its rows is cheaper."""
    pivot, ones = _rarest(tally, terms)
    k = terms.shape[1]
    blocks = len(tally.packed.blocks)
    dense = k * tally.words * tally.dense_ns + blocks * CALL_NS
    return np.flatnonzero(
        (pivot >= 0) & (ones * (k - 1) * tally.listed_ns + blocks * CALL_NS < dense)
    )


def _rarest(tally: Tally, terms: Terms) -> tuple[npt.NDArray[np.int64], Counts]:
    """Per query, the place of its rarest positive literal (−1 if it has none), and its ones."""
    ones = tally.ones.sum(axis=0)
    # Terms are indices here. A negated term gets more rows than there are, so it is never rarest.
    by_term = np.full(2 * len(ones), tally.packed.rows + 1, dtype=np.int64)
    by_term[::2] = ones
    found = by_term[terms]
    place = found.argmin(axis=1)
    least = np.take_along_axis(found, place[:, None], axis=1)[:, 0]
    return np.where(least <= tally.packed.rows, place, -1), least


def count_by_lists(tally: Tally, terms: Terms) -> Counts:
    """Count conjunctions that have a positive literal, along the rows of their rarest one."""
    from dualquery.rows._counting_kernels import count_listed, list_ones

    if not len(terms):
        return np.zeros(0, dtype=np.int64)
    place, _ = _rarest(tally, terms)
    is_pivot = np.arange(terms.shape[1]) == place[:, None]
    others = _sorted_terms(terms[~is_pivot].reshape(len(terms), -1))
    ordered, order = _ordered(np.column_stack([terms[is_pivot], others]))
    literals, pivots = np.unique(ordered[:, 0] >> 1, return_inverse=True)
    others = np.ascontiguousarray(ordered[:, 1:])
    counts = np.zeros(len(terms), dtype=np.int64)
    for bits, ones in zip(tally.packed.blocks, tally.ones, strict=True):
        start = offsets(ones[literals])
        rows = np.empty(start[-1], dtype=np.uint16)
        list_ones(bits, literals, start, rows, 0, len(literals))
        task = partial(count_listed, bits, start, rows, pivots, others, counts)
        over_ranges(task, len(terms), 256)
    return _restored(counts, order)


# Contingency tables


def _worth_tables(tally: Tally, workload: Workload, terms: Terms) -> Positions:
    """The queries that share their attributes with enough others for a table to be cheaper."""
    k = terms.shape[1]
    single = np.diff(workload.literals.start) == 1
    fit = np.flatnonzero(((terms & 1) == 0).all(axis=1) & single[terms >> 1].all(axis=1))
    one_table = tally.packed.rows * (ROW_NS + k * PLACE_NS)
    one_query = 2 * tally.words * tally.dense_ns
    if len(fit) * one_query < one_table:
        return np.zeros(0, dtype=np.int64)
    attributes = _sorted_terms(workload.literals.attribute[terms[fit] >> 1])
    key = attributes[:, 0].astype(np.uint64)
    for column in attributes.T[1:]:  # keys may wrap around: a clash costs time, not exactness
        key = key * np.uint64(len(workload.schema)) + column.astype(np.uint64)
    _, table, sharing = np.unique(key, return_inverse=True, return_counts=True)
    asked = np.zeros(len(workload.literals), dtype=bool)
    asked[terms[fit] >> 1] = True
    levels = np.bincount(workload.literals.attribute[asked])[attributes] + 1.0
    worth = (sharing * one_query > one_table)[table] & (levels.prod(axis=1) <= MOST_CELLS)
    chosen: Positions = fit[worth]
    return chosen


def count_by_tables(tally: Tally, workload: Workload, terms: Terms) -> Counts:
    """Count conjunctions of positive literals of one code each, one pass over the rows per table.

    No table may have more than `MOST_CELLS` cells.
    """
    from dualquery.rows._counting_kernels import count_tables, fill_codes

    owner = workload.literals.attribute
    along = np.argsort(owner[terms >> 1], axis=1)
    literals = np.take_along_axis(terms >> 1, along, axis=1)
    by_attribute = np.lexsort(owner[literals].T[::-1])
    literals = literals[by_attribute]
    attributes = owner[literals]
    fresh = np.concatenate([[True], (attributes[1:] != attributes[:-1]).any(axis=1)])
    start = np.concatenate([np.flatnonzero(fresh), [len(terms)]])
    used, column = np.unique(attributes[fresh], return_inverse=True)
    levels = _levels(workload.literals, literals, used)
    columns = column.reshape(-1, terms.shape[1])
    sizes = np.array([len(members) + 1 for members in levels.members])[columns]
    largest = sizes.prod(axis=1, dtype=np.float64).max()
    if largest > MOST_CELLS:
        raise ValueError(f"a table of {largest:.0f} cells; expected at most {MOST_CELLS}")
    radix = np.cumprod(np.column_stack([np.ones(len(sizes), dtype=np.int64), sizes]), axis=1)
    table = np.cumsum(fresh) - 1
    cells = (levels.of[literals] * radix[table, :-1]).sum(axis=1)
    counts = np.zeros(len(terms), dtype=np.int64)
    width = np.uint16 if sizes.max() <= 1 << 16 else np.int32
    for bits, rows in zip(tally.packed.blocks, tally.packed.block_rows, strict=True):
        codes = np.empty((len(used), rows), dtype=width)
        for members, row in zip(levels.members, codes, strict=True):
            row[:] = len(members)
            fill_codes(bits, members, row)
        task = partial(count_tables, codes, columns, radix, start, cells, counts)
        over_ranges(task, len(columns), 1)
    restored = np.empty_like(counts)
    restored[by_attribute] = counts
    return restored


@dataclass(frozen=True, eq=False)
class _Levels:
    """The levels of each attribute: the codes that the cells of tables tell apart.

    `members[i]` are the literals of the i-th attribute, one per level. `of[literal]` is the
    level of a literal. One more level stands for all codes that no cell asks for.
    """

    members: list[Positions]
    of: Positions


def _levels(literals: Literals, cells: Positions, attributes: Positions) -> _Levels:
    """The levels of some attributes, in rising order, for cells made of single-code literals.

    Only literals of the cells may be levels. A workload can hold other literals of the same
    attribute, such as sets of codes. If a set were a level, a row that satisfies it would be
    missing from the cell of its own code.
    """
    asked = np.unique(cells)
    code = literals.codes[literals.start[asked]]
    order = np.lexsort((code, literals.attribute[asked]))
    asked, code = asked[order], code[order]
    owner = literals.attribute[asked]
    fresh = np.concatenate([[True], (owner[1:] != owner[:-1]) | (code[1:] != code[:-1])])
    distinct = asked[fresh]
    first = np.searchsorted(owner[fresh], attributes)
    level = np.zeros(len(literals), dtype=np.int64)
    # Two literals of the same code are one level, whichever of them a cell names.
    level[asked] = np.cumsum(fresh) - 1 - first[np.searchsorted(attributes, owner)]
    return _Levels(np.split(distinct, first[1:]), level)


# Order


def _sorted_terms(terms: Terms) -> Terms:
    """The terms of each query in rising order."""
    if terms.shape[1] > 3:
        return np.sort(terms, axis=1)
    columns = list(terms.T)
    for i, j in ((0, 1), (1, 2), (0, 1)):
        if j < len(columns):
            low, high = columns[i], columns[j]
            columns[i], columns[j] = np.minimum(low, high), np.maximum(low, high)
    return np.column_stack(columns)


def _ordered(terms: Terms) -> tuple[Terms, Positions]:
    """Queries ordered by all their terms except the last, so that neighbours share columns."""
    order = lexical_order(list(terms.T[: max(1, terms.shape[1] - 1)]))
    return np.take(terms, order, axis=0), order


def _restored(counts: Counts, order: Positions) -> Counts:
    restored = np.empty_like(counts)
    restored[order] = counts
    return restored
