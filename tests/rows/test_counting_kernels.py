"""Every way of counting against a plain twin, over ragged shapes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.rows import _counting_kernels as kernels
from dualquery.rows import _kernels as bit_kernels
from dualquery.rows import counting
from dualquery.rows.counting import (
    Tally,
    count_by_lists,
    count_by_popcounts,
    count_by_tables,
    count_packed,
    count_parities,
)
from dualquery.rows.packed import PackedRows, last_word
from dualquery.workloads.generators import all_marginals, parities, random_marginals
from dualquery.workloads.workload import Literals, Workload


def binary(width: int) -> Schema:
    return Schema(tuple(Attribute.binary(f"x{i}") for i in range(width)))


def literals_of(width: int) -> Literals:
    return Literals.of((i, (1,)) for i in range(width))


def pack(flags: np.ndarray, sizes: list[int]) -> PackedRows:
    """Packed rows of a boolean matrix, cut into blocks of these sizes."""
    blocks, done = [], 0
    for size in sizes:
        part = np.zeros((-(-size // 64) * 64, flags.shape[1]), dtype=bool)
        part[:size] = flags[done : done + size]
        bits = np.packbits(np.ascontiguousarray(part.T), axis=1, bitorder="little")
        blocks.append(np.ascontiguousarray(bits).view("<u8").astype(np.uint64))
        done += size
    return PackedRows(done, literals_of(flags.shape[1]), tuple(blocks), tuple(sizes))


def held(flags: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """`held[row, query, place]`: whether the row satisfies the term."""
    return flags[:, terms >> 1] != (terms & 1)


@st.composite
def tables(
    draw: st.DrawFn, least: int = 1, most: int = 5
) -> tuple[np.ndarray, PackedRows, np.ndarray]:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.integers(1, 300), min_size=1, max_size=3))
    width = draw(st.integers(most, 12))
    density = draw(st.sampled_from([0.0, 0.01, 0.3, 0.9, 1.0]))
    flags = random.random((sum(sizes), width)) < density
    arity = draw(st.integers(least, most))
    queries = draw(st.integers(1, 40))
    chosen = np.array([random.permutation(width)[:arity] for _ in range(queries)])
    # Few literals in front make runs of queries that share all terms except the last.
    chosen[:, : arity - 1] = np.where(
        random.random() < 0.5, chosen[:1, : arity - 1], chosen[:, :-1]
    )
    terms = (2 * chosen + random.integers(0, 2, chosen.shape)).astype(np.int32)
    return flags, pack(flags, sizes), terms


@given(tables(least=2))
def test_popcounts(case: tuple[np.ndarray, PackedRows, np.ndarray]) -> None:
    flags, packed, terms = case
    expected = held(flags, terms).all(axis=2).sum(axis=0)
    np.testing.assert_array_equal(count_by_popcounts(Tally(packed), terms), expected)


@given(tables())
def test_parities(case: tuple[np.ndarray, PackedRows, np.ndarray]) -> None:
    flags, packed, terms = case
    expected = (held(flags, terms).sum(axis=2) % 2 == 0).sum(axis=0)
    np.testing.assert_array_equal(count_parities(Tally(packed), terms), expected)


@given(tables(least=2))
def test_lists(case: tuple[np.ndarray, PackedRows, np.ndarray]) -> None:
    flags, packed, terms = case
    terms[:, 0] &= ~1  # a list needs a positive literal
    expected = held(flags, terms).all(axis=2).sum(axis=0)
    np.testing.assert_array_equal(count_by_lists(Tally(packed), terms), expected)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.lists(st.integers(1, 200), min_size=1))
def test_tables(seed: int, k: int, sizes: list[int]) -> None:
    random = np.random.default_rng(seed)
    schema = Schema(
        tuple(Attribute.categorical(f"c{i}", list("abcde")[: 2 + i % 4]) for i in range(4))
    )
    workload = all_marginals(schema, k)
    # Some cells, in no order: codes no query asks for must not be counted anywhere.
    workload = workload.take(random.permutation(len(workload))[: 1 + len(workload) // 2])
    codes = random.integers(0, schema.sizes, size=(sum(sizes), 4))
    flags = codes[:, workload.literals.attribute] == workload.literals.codes
    packed = pack(flags, sizes)
    terms = workload.terms.reshape(len(workload), k)
    expected = held(flags, terms).all(axis=2).sum(axis=0)
    found = count_by_tables(Tally(packed), workload, terms)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("near", [1 << 20, 1 << 12, 1])
@pytest.mark.parametrize("listed", [0.0, 1e9])
@pytest.mark.parametrize("row", [0.0, 1e9])
def test_any_choice_gives_the_same_counts(
    monkeypatch: pytest.MonkeyPatch, near: int, listed: float, row: float
) -> None:
    monkeypatch.setattr(counting, "NEAR_CACHE", near)
    monkeypatch.setattr(counting, "NEAR_LISTED_NS", listed)
    monkeypatch.setattr(counting, "ROW_NS", row)
    monkeypatch.setattr(counting, "PLACE_NS", row)
    random = np.random.default_rng(1)
    schema = binary(9)
    workload = (
        random_marginals(schema, 3, 300)
        + random_marginals(schema, 2, 100, seed=1)
        + random_marginals(schema, 1, 20, seed=2)
        + random_marginals(schema, 5, 30, seed=3)
        + parities(schema, 4, 50)
        + all_marginals(schema, 2)
    )
    values = random.random((20_000, 9)) < np.linspace(0.001, 0.9, 9)
    flags = values[:, workload.literals.attribute] == (workload.literals.codes == 1)
    packed = pack(flags, [16_384, 3_616])
    packed = PackedRows(packed.rows, workload.literals, packed.blocks, packed.block_rows)
    expected = [
        (h.sum(axis=1) % 2 == 0).sum() if parity else h.all(axis=1).sum()
        for q, parity in enumerate(workload.is_parity)
        for h in [held(flags, workload.terms[workload.start[q] : workload.start[q + 1]])]
    ]
    np.testing.assert_array_equal(count_packed(packed, workload).counts, expected)


def test_queries_of_negated_terms_do_not_count_the_padding() -> None:
    flags = np.zeros((70, 3), dtype=bool)
    terms = np.array([[1, 3, 5], [1, 3, 4]], dtype=np.int32)
    counts = count_by_popcounts(Tally(pack(flags, [70])), terms)
    np.testing.assert_array_equal(counts, [70, 0])


@given(st.integers(0, 2**32 - 1), st.integers(1, 200))
def test_lists_of_ones(seed: int, rows: int) -> None:
    flags = np.random.default_rng(seed).random((rows, 4)) < 0.3
    bits = pack(flags, [rows]).blocks[0]
    start = np.concatenate([[0], np.cumsum(flags.sum(axis=0))])
    ones = np.empty(start[-1], dtype=np.uint16)
    kernels.list_ones(bits, np.arange(4), start, ones, 0, 4)
    for i in range(4):
        np.testing.assert_array_equal(ones[start[i] : start[i + 1]], np.flatnonzero(flags[:, i]))


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 200),
    st.integers(0, 2),
    st.sampled_from([5, bit_kernels.FEW, bit_kernels.FEW + 1]),
)
def test_packing_codes(seed: int, rows: int, first_word: int, size: int) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(0, size, rows).astype(np.int32)
    holds = random.random((3, size)) < 0.5  # literal by code
    code, literal = np.nonzero(holds.T)
    start = np.searchsorted(code, np.arange(size + 1))
    words = -(-rows // 64)
    bits = np.zeros((3, first_word + words), dtype=np.uint64)
    bit_kernels.pack_codes(codes, start, literal, bits, first_word)
    expected = pack(holds[:, codes].T, [rows]).blocks[0]
    assert not bits[:, :first_word].any()
    np.testing.assert_array_equal(bits[:, first_word:], expected)


@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_listing_runs(seed: int, runs: int) -> None:
    random = np.random.default_rng(seed)
    ends = np.cumsum(random.integers(1, 9, runs))
    begins = np.append(0, ends)[:-1]
    pairs = int(ends[-1]) if runs else 0
    rows = random.integers(-1, 5, runs)
    items = random.integers(0, 6, pairs).astype(np.int32)
    attributes = random.integers(-1, 3, 6).astype(np.int32)
    order = random.permutation(runs)
    row, attribute = np.full(pairs, -7), np.full(pairs, -7, dtype=np.int32)
    found = bit_kernels.list_runs(
        rows[order], begins[order], ends[order], items, attributes, row, attribute
    )
    every = [(rows[i], attributes[items[p]]) for i in order for p in range(begins[i], ends[i])]
    expected = [(r, a) for r, a in every if r >= 0 and a >= 0]
    assert list(zip(row[:found], attribute[:found], strict=True)) == expected


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.booleans())
def test_matches(seed: int, k: int, mixed: bool) -> None:
    from dualquery.workloads.matching import add_matches

    random = np.random.default_rng(seed)
    schema = binary(8)
    workload = random_marginals(schema, k, 50, seed=seed)
    if mixed:
        workload = workload + parities(schema, 3, 20)
    record = random.integers(0, 2, 8).astype(np.int32)
    matches = np.zeros(len(workload), dtype=np.int32)
    add_matches(workload, record, matches)
    flags = record[None, workload.literals.attribute] == workload.literals.codes
    for q in range(len(workload)):
        h = held(flags, workload.terms[workload.start[q] : workload.start[q + 1]])[0]
        assert matches[q] == (h.sum() % 2 == 0 if workload.is_parity[q] else h.all())


def test_the_last_word_of_a_block() -> None:
    assert last_word(1) == 1
    assert last_word(64) == 2**64 - 1
    assert last_word(65) == 1


def test_a_workload_keeps_its_order_of_counts() -> None:
    schema = binary(6)
    workload = random_marginals(schema, 3, 50) + parities(schema, 2, 10)
    shuffled = workload.take(np.random.default_rng(0).permutation(len(workload)))
    flags = np.random.default_rng(1).random((500, 6)) < 0.4

    def counts_of(asked: Workload) -> np.ndarray:
        packed = pack(flags[:, asked.literals.attribute], [500])
        return count_packed(PackedRows(500, asked.literals, packed.blocks, (500,)), asked).counts

    order = np.random.default_rng(0).permutation(len(workload))
    np.testing.assert_array_equal(counts_of(shuffled), counts_of(workload)[order])
