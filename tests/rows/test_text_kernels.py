"""Kernels over cells of text and over numbers, against plain twins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.engines.local import LocalEngine
from dualquery.rows import csv_file, encoding
from dualquery.rows._text_kernels import bins_of
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.csv_file import CsvTable
from dualquery.rows.encoding import MOST_DISTINCT, OutOfDomain, distinct_text, encode_column
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.marginals import Groups, Marginals

cells = st.lists(
    st.one_of(
        st.none(),
        st.text("ab", max_size=20),
        st.sampled_from(["", "eightest", "eightest0", "eightest1", "sixteen letters!", "é" * 9]),
    ),
    max_size=60,
)


def plainly(found: list[str | None]) -> tuple[list[str], list[int]]:
    """The distinct cells in the order of their first rows, and the place of every cell."""
    known: dict[str, int] = {}
    places = [-1 if cell is None else known.setdefault(cell, len(known)) for cell in found]
    return list(known), places


@settings(deadline=None)
@given(cells, st.integers(0, 5), st.sampled_from([pa.string(), pa.large_string()]))
def test_distinct_cells_are_those_of_the_twin(
    found: list[str | None], skipped: int, kind: pa.DataType
) -> None:
    column = pa.array(found, kind).slice(min(skipped, len(found)))
    found = found[skipped:]
    distinct = distinct_text(column)
    if not found:
        assert distinct is None
        return
    expected, places = plainly(found)
    if len(expected) > 16 + len(found) // 4:
        assert distinct is None
        return
    assert distinct is not None
    assert distinct.cells.to_pylist() == expected
    assert distinct.places.tolist() == places


def test_cells_whose_words_end_alike_are_told_apart() -> None:
    """Zero bytes are cells too: what stands past the end of a cell must not count as one."""
    found = ["a", "a\0", "a\0\0", "", "\0", "12345678", "12345678\0", "x" * 16, "x" * 16 + "\0"]
    distinct = distinct_text(pa.array(found))
    assert distinct is not None
    assert distinct.cells.to_pylist() == found


def test_many_distinct_cells_are_left_to_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MOST_DISTINCT", 8)
    assert distinct_text(pa.array([str(i % 8) for i in range(100)])) is not None
    assert distinct_text(pa.array([str(i % 9) for i in range(100)])) is None
    attribute = Attribute.categorical("a", [str(i) for i in range(9)])
    codes = encode_column(pa.array([str(i % 9) for i in range(100)]), attribute)
    assert codes.tolist() == [i % 9 for i in range(100)]


def test_there_is_room_for_a_long_list_of_codes() -> None:
    column = pa.array([f"code {i % MOST_DISTINCT}" for i in range(5 * MOST_DISTINCT)])
    distinct = distinct_text(column)
    assert distinct is not None
    assert len(distinct.cells) == MOST_DISTINCT


def bins_twin(numbers: npt.NDArray[np.float64], edges: list[float], outside: int) -> list[int]:
    """The definition of a bin, number by number."""
    found = []
    for number in numbers:
        if np.isnan(number):
            found.append(-9)
        elif not edges[0] <= number <= edges[-1]:
            found.append(outside)
        else:
            held = [b for b in range(len(edges) - 1) if edges[b] <= number < edges[b + 1]]
            found.append(held[0] if held else len(edges) - 2)
    return found


@settings(deadline=None)
@given(
    st.lists(st.integers(-5, 25), min_size=2, max_size=12, unique=True).map(sorted),
    st.lists(st.one_of(st.integers(-8, 30).map(float), st.sampled_from([np.nan, np.inf, -np.inf]))),
)
def test_bins_are_those_of_the_twin(edges: list[int], numbers: list[float]) -> None:
    held = np.array(numbers, dtype=float)
    codes = np.empty(len(held), dtype=np.int32)
    bins_of(held, np.array(edges, dtype=float), len(edges) - 2, -9, -7, -7, codes)
    assert codes.tolist() == bins_twin(held, [float(e) for e in edges], -7)


@pytest.mark.parametrize("treatment", [OutOfDomain.CLAMP, OutOfDomain.MISSING])
def test_comparing_and_searching_give_the_same_bins(
    monkeypatch: pytest.MonkeyPatch, treatment: OutOfDomain
) -> None:
    attribute = Attribute.numeric("a", [0, 1, 2.5, 10, 40], missing=True)
    column = pa.array([None, -3.0, 0.0, 2.49, 2.5, 39.9, 40.0, 41.0, float("inf")])
    compared = encode_column(column, attribute, treatment)
    monkeypatch.setattr(encoding, "MOST_COMPARED", 0)
    assert compared.tolist() == encode_column(column, attribute, treatment).tolist()


def test_a_line_longer_than_a_part_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    long = "x" * (5 * csv_file.PART_BYTES // 2)
    lines = ["1,a"] * 200_000 + [f"2,{long}"] + ["3,b"] * 5
    path.write_text("n,t\n" + "\n".join(lines) + "\n")
    numbers = pa.chunked_array([batch.column(0) for batch in CsvTable(path).batches(["n"])])
    assert numbers.value_counts().to_pylist() == [
        {"values": "1", "counts": 200_000},
        {"values": "2", "counts": 1},
        {"values": "3", "counts": 5},
    ]


def test_a_header_longer_than_a_part_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    name = "n" * (5 * csv_file.PART_BYTES // 2)
    path.write_text(f"a,{name}\n1,2\n")
    table = CsvTable(path)
    assert table.header == ("a", name)
    assert [batch.to_pylist() for batch in table.batches(["a"])] == [[{"a": "1"}]]


def test_one_pass_gives_what_two_give(tmp_path: Path) -> None:
    """Counts and all tables are the same whether codes were kept while the rows were packed."""
    random = np.random.default_rng(0)
    frame = pa.table(
        {
            "sex": random.choice(["F", "M"], 500).tolist(),
            "age": random.integers(0, 90, 500).tolist(),
            "pay": [None if p < 0.1 else float(np.exp(9 * p)) for p in random.random(500)],
            "ill": random.integers(0, 2, 500).tolist(),
        }
    )
    schema = Schema(
        (
            Attribute.categorical("sex", ["F", "M"]),
            Attribute.numeric("age", [0, 18, 40, 90]),
            Attribute.numeric("pay", [0, 100, 10_000], missing=True),
            Attribute.binary("ill"),
        )
    )
    workload = random_marginals(schema, 2, 40)
    used = np.arange(4, dtype=np.int32)[:, None]
    pairs = np.array([[0, 1], [1, 2], [2, 3]], dtype=np.int32)
    found = []
    for keep in (None, schema, schema.fine):
        table = Passes(open_table(frame))
        engine = LocalEngine()
        counted = engine.count(table, workload, OutOfDomain.REFUSE, keep)
        fine = Marginals(Groups.single(schema.fine), used)
        tables = [
            engine.tabulate(table, schema.fine, fine, OutOfDomain.REFUSE),
            engine.tabulate(
                table, schema, Marginals(Groups.single(schema), pairs), OutOfDomain.REFUSE
            ),
        ]
        found.append([counted.counts, *tables])
        if keep is schema.fine:
            assert table.passes == 1
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


class Passes:
    """A table that counts how often its rows are read."""

    def __init__(self, table: ArrowTable) -> None:
        self.table, self.passes = table, 0

    def bind(self, schema: Schema) -> Schema:
        return self.table.bind(schema)

    def blocks(self, *asked: object) -> object:
        self.passes += 1
        return self.table.blocks(*asked)  # type: ignore[arg-type]  # handed on as they came
