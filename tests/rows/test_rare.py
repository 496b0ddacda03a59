"""Rare cells counted over packed rows, beside plain arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.rows import table as tables
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.rows.packed import PackedRows
from dualquery.rows.rare import RareAsked, RareRows
from dualquery.workloads.rare import RareCells
from dualquery.workloads.workload import Literals


def packed_rows(codes: np.ndarray, of_code: np.ndarray) -> PackedRows:
    """Packed rows whose literal about attribute a is that it has `of_code[a]`."""
    width = codes.shape[1]
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(width)))
    columns = {f"x{i}": codes[:, i] for i in range(width)}
    literals = Literals.single(np.arange(width), of_code)
    return PackedRows.pack(open_table(columns), schema, literals, OutOfDomain.REFUSE)


def sets_of(width: int, arity: int) -> np.ndarray:
    from itertools import combinations

    return np.array(list(combinations(range(width), arity)), dtype=np.int32)


def counted_plainly(codes: np.ndarray, cells: RareCells, most: int) -> np.ndarray:
    """One row after the other, one cell after the other."""
    counts = np.zeros(len(cells), dtype=np.int64)
    for row in codes:
        inside = [
            t
            for t, chosen in enumerate(cells.attributes)
            if (row[chosen] == cells.codes[chosen]).all()
        ]
        charged = int(cells.weights[inside].sum())
        if charged > most:
            mixed = (charged * 0x9E3779B97F4A7C15) % 2**64
            first = (mixed >> 16) % len(cells)
            left, kept = most, []
            for t in sorted(inside, key=lambda t: (t < first, t)):
                left -= int(cells.weights[t])
                if left < 0:
                    break
                kept.append(t)
            inside = kept
        counts[inside] += 1
    return counts


@pytest.mark.parametrize("arity", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 64, 200, 1000])
def test_counts_are_those_of_plain_loops(arity: int, rows: int, monkeypatch) -> None:
    monkeypatch.setattr(tables, "BLOCK_ROWS", 256)  # several blocks, the last of them not full
    random = np.random.default_rng([arity, rows])
    width = 13
    codes = (random.random((rows, width)) < random.random(width)).astype(np.int64)
    sets = random.permutation(sets_of(width, arity))[:70]
    rare = random.integers(0, 2, width).astype(np.uint8)
    weights = random.integers(1, 9, len(sets)) if arity == 1 else np.ones(len(sets), np.int64)
    cells = RareCells(sets, rare, weights.astype(np.int64))
    found = RareRows(packed_rows(codes, random.integers(0, 2, width)), cells)
    inside = (codes[:, sets] == rare[sets]).all(axis=2)
    charged = inside @ weights
    for most in (1, 3, int(np.median(charged)) + 1, int(charged.max()) + 1):
        np.testing.assert_array_equal(found.counts(most), counted_plainly(codes, cells, most))
    np.testing.assert_array_equal(found.counts(cells.heaviest), inside.sum(axis=0))
    edges = np.array([0, 1, 2, 5, 9, cells.heaviest + 1])
    edges = np.unique(edges[edges <= cells.heaviest + 1])
    np.testing.assert_array_equal(found.histogram(edges), np.histogram(charged, edges)[0])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_row_counts_in_more_cells_than_it_pays_for(data) -> None:
    width = data.draw(st.integers(2, 9))
    arity = data.draw(st.integers(1, min(3, width)))
    sets = sets_of(width, arity)
    weights = np.array(data.draw(st.lists(st.integers(1, 7), min_size=len(sets),
                                          max_size=len(sets))), dtype=np.int64)  # fmt: skip
    rare = np.array(data.draw(st.lists(st.integers(0, 1), min_size=width, max_size=width)))
    row = np.array([data.draw(st.lists(st.integers(0, 1), min_size=width, max_size=width))])
    cells = RareCells(sets, rare.astype(np.uint8), weights)
    most = data.draw(st.integers(1, cells.heaviest + 3))
    counts = RareRows(packed_rows(row, np.ones(width, int)), cells).counts(most)
    assert counts.min() >= 0
    assert counts.max() <= 1
    assert int(cells.weights @ counts) <= most
    inside = (row[0, sets] == rare[sets]).all(axis=1)
    assert not (counts > inside).any()
    if int(weights @ inside) <= most:  # nothing is cut that can be paid for
        np.testing.assert_array_equal(counts, inside)


def test_many_cells_per_row_do_not_overflow() -> None:
    """Counters of 64 rows at a time carry into every digit."""
    width, rows = 60, 130
    random = np.random.default_rng(0)
    codes = (random.random((rows, width)) < np.linspace(0, 1, rows)[:, None]).astype(np.int64)
    cells = RareCells(sets_of(width, 3), np.ones(width, np.uint8), np.ones(34220, np.int64))
    held = codes.sum(axis=1)
    edges = np.append(np.arange(0, 34220, 371), 34221)
    found = RareRows(packed_rows(codes, np.ones(width, int)), cells).histogram(edges)
    charged = held * (held - 1) * (held - 2) // 6
    np.testing.assert_array_equal(found, np.histogram(charged, edges)[0])


def test_what_is_asked_of_a_part_adds_up() -> None:
    random = np.random.default_rng(4)
    codes = (random.random((300, 8)) < 0.3).astype(np.int64)
    cells = RareCells(sets_of(8, 2), np.ones(8, np.uint8), np.ones(28, np.int64))
    every = np.ones(8, int)
    edges = np.array([0, 1, 2, 4, 29])
    for asked in (RareAsked(cells, edges=edges), RareAsked(cells, most=3)):
        whole = asked.of(RareRows(packed_rows(codes, every), cells))
        parts = [asked.of(RareRows(packed_rows(part, every), cells)) for part in np.split(codes, 3)]
        np.testing.assert_array_equal(sum(parts) + asked.nothing(), whole)
