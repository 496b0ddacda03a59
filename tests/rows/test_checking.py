"""`check`: all that a release would refuse, in the words of the release."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import dualquery as dq
from dualquery.base.errors import DualQueryError, ParameterError, SchemaError, TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.rows.checking import EYES_ONLY, check
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import encode_column
from dualquery.rows.long import LongTable
from dualquery.rows.opening import open_table

SCHEMA = Schema(
    (
        Attribute.categorical("city", ["Bonn", "Berlin", "Köln"]),
        Attribute.numeric("age", [0, 25, 120]),
        Attribute.numeric("day", ["2022-01-01", "2023-01-01"], type="date", missing=True),
        Attribute.binary("smoker", type="yes/no"),
    )
)
GOOD = {
    "city": ["Bonn", "Köln"], "age": ["3", "4"], "day": ["2022-05-05", None], "smoker": ["y", "no"]
}  # fmt: skip
BAD = {
    "city": ["bonn", "Berlim"],
    "age": ["300", "seven"],
    "day": ["2024-01-01", "1.3.2022"],
    "smoker": ["maybe", None],
}


def test_a_good_table() -> None:
    found = check(pa.table(GOOD), SCHEMA)
    assert found.ok
    assert found.rows == 2
    assert found.text() == f"{EYES_ONLY}\n2 rows fit the schema"


def test_all_problems_at_once() -> None:
    found = check(pa.table(BAD), SCHEMA, show=True)
    assert not found.ok
    lines = [problem.line() for problem in found.problems]
    assert [problem.column for problem in found.problems] == [
        "city", "age", "age", "day", "day", "smoker", "smoker",
    ]  # fmt: skip
    assert "[2 cells: 'bonn' (did you mean 'Bonn'?), 'Berlim' (did you mean 'Berlin'?)]" in lines[0]
    assert "[1 cell: '300']" in lines[1]
    assert "a cell is not a number" in lines[2]
    assert "such as 2022-03-01" in lines[4]
    assert "missing = true [1 cell]" in lines[-1]
    assert "7 problems: a release would refuse the table" in found.text()
    quiet = check(pa.table(BAD), SCHEMA)
    assert [problem.text for problem in quiet.problems] == [p.text for p in found.problems]
    for cell in ("bonn", "Berlim", "300", "seven", "2024", "1.3.2022", "maybe"):
        assert cell in found.text()
        assert cell not in quiet.text()
        assert cell not in str(quiet.to_dict())


@pytest.mark.parametrize("column", BAD)
def test_the_words_are_those_of_the_release(column: str) -> None:
    for cell in BAD[column]:
        frame = pa.table({**{k: v[:1] for k, v in GOOD.items()}, column: [cell]})
        (problem,) = check(frame, SCHEMA).problems
        table = open_table(frame)
        with pytest.raises(DualQueryError) as refused:
            EncodedRows.read(table, table.bind(SCHEMA), range(len(SCHEMA)))
        assert str(refused.value).startswith(f"{problem.text}; dq.check(")
        assert cell is None or cell not in str(refused.value)


def test_columns_that_are_not_there() -> None:
    frame = pa.table({"cty": ["Bonn"], "age": [3], "smoker": [True], "id": [7]})
    found = check(frame, SCHEMA)
    texts = [problem.text for problem in found.problems]
    assert texts == [
        "the table has no column 'city', which the schema declares; did you mean 'cty'?",
        "the table has no column 'day', which the schema declares",
    ]
    with pytest.raises(SchemaError) as refused:
        open_table(frame).bind(SCHEMA)
    assert str(refused.value) == texts[0]
    assert found.notes == ("the schema does not declare 'cty', 'id': left out of the release",)


def test_decimals_that_would_be_lost() -> None:
    schema = Schema((Attribute.numeric("cost", [0, 100]),))
    for cells in ([0.5, 2.0, 99.25], ["0.5", "2", " 99.25"]):
        found = check(pa.table({"cost": cells}), schema)
        assert found.ok
        assert found.notes == (
            "column 'cost': 2 cells have decimals, which samples will not have; "
            'declare type = "decimal"',
        )


@pytest.mark.parametrize(
    ("edges", "cells", "said"),
    [
        ([0, 100, 90_000], ["5", "NA", "89000"], ""),
        ([0, 100, 90_000], [5, 200], "no cell lies near 90000; lower that edge, or"),
        ([-90_000, -100, 0], [-5, -89_000], ""),
        ([-90_000, -100, 0], [-5, -200], "no cell lies near -90000; raise that edge, or"),
        ([0, 10, 20], [5, 19], "it has no long tail, for which alone that matters;"),
    ],
)
def test_ends_that_are_not_reached(edges: list[int], cells: list[object], said: str) -> None:
    attribute = Attribute.numeric("cost", edges, reached=True).missing_as("NA")
    found = check(pa.table({"cost": cells}), Schema((attribute,)))
    assert found.ok
    whole = f"column 'cost': reached = true, and {said} leave reached out"
    assert found.notes == ((whole,) if said else ())


def test_rows_that_break_rules() -> None:
    schema = Schema(
        (Attribute.categorical("sex", ["f", "m"]), Attribute.binary("pregnant")),
        rules=({"forbid": "sex=m & pregnant"}, {"forbid": "sex=f & pregnant=0"}),
    )
    found = check(pa.table({"sex": ["f", "m", "m"], "pregnant": [1, 1, 0]}), schema)
    assert found.ok
    assert found.notes == (
        "rule 1 (forbid sex=m & pregnant) is broken by 1 rows; no synthetic row will break it",
    )


def test_other_kinds_of_tables(tmp_path: Path) -> None:
    schema = Schema((Attribute.binary("a"), Attribute.binary("b")))
    assert check(sparse.csr_matrix(np.eye(2)), schema).rows == 2
    assert not check(sparse.csr_matrix(np.eye(3)), schema).ok
    pairs = LongTable(pa.table({"r": [1, 2], "i": ["a", "c"]}), "r", "i")
    assert "an item is not declared" in check(pairs, schema).problems[0].text
    with pytest.raises(TableError, match="no such table"):
        check(tmp_path / "none.csv", schema)
    twice = pd.DataFrame([[0, 1]], columns=["a", "a"])
    assert len(check(twice, schema).problems) == 1
    assert "no rows" in check(pa.table({"a": [], "b": []}), schema).problems[0].text
    nested = check(pa.table({"a": [[1]], "b": [1]}), schema)
    assert "column 'a' holds list" in nested.problems[0].text


def test_what_a_release_would_take_is_no_problem() -> None:
    attributes = (Attribute.numeric("age", [0, 25, 120], missing=True),)
    frame = pa.table({"age": ["300", "n/a"]})
    assert len(check(frame, Schema(attributes)).problems) == 2
    assert check(frame, Schema(attributes), out_of_domain="missing").ok
    assert check(frame, Schema(attributes), out_of_domain="clamp").ok
    mended = Schema((attributes[0].missing_as("n/a", 300),))
    assert check(frame, mended).ok
    assert dq.check is check


@pytest.mark.parametrize("cells", [["-9", "NA", " 3"], [-9, None, 3], [-9.0, None, 3.0]])
def test_cells_that_stand_for_a_missing_one(cells: list[object]) -> None:
    for attribute in (Attribute.numeric("c", [0, 5]), Attribute.categorical("c", [3])):
        declared = attribute.missing_as("NA", -9)
        assert encode_column(pa.array(cells), declared).tolist() == [1, 1, 0]
        assert Schema.from_dict(Schema((declared,)).to_dict()) == Schema((declared,))
        coded = pa.array(cells).dictionary_encode()
        assert encode_column(coded, declared).tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("missing", "message"),
    [("NA", "expected true, false, or a list"), ([], r"missing = \[\]"), (["x"], "'x' is one of")],
)
def test_bad_words_for_missing_cells(missing: object, message: str) -> None:
    with pytest.raises(SchemaError, match=f"'c'.*{message}"):
        Attribute.from_dict("c", {"values": ["x", "y"], "missing": missing})


def test_weights_are_checked_with_the_rest() -> None:
    frame = pd.DataFrame({"ward": ["a", "x", "b"], "w": [1.0, 9.0, 0.5]})
    schema = Schema((Attribute.categorical("ward", ["a", "b"]),))
    found = check(frame, schema, weight="w", weight_bound=2.0)
    assert [problem.column for problem in found.problems] == ["ward"]
    assert "1 weights above 2 are cut to it" in found.notes
    assert not any("does not declare" in note for note in found.notes)
    bad = check(frame.assign(w=[1.0, -1.0, 1.0]), schema, weight="w", weight_bound=2.0)
    assert [problem.column for problem in bad.problems] == ["ward", "w"]
    assert "a cell is missing or no weight" in bad.text()
    with pytest.raises(ParameterError, match="weight and weight_bound go together"):
        check(frame, schema, weight="w")
