"""Columns with several answers in a cell: apart in the schema, together in the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualquery as dq
from dualquery.base.errors import SchemaError, TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.release.frames import FrameStyle, decode, write_table
from dualquery.rows.drafting import draft
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.opening import open_table

SCHEMA = Schema(
    (
        Attribute.binary("b"),
        *Attribute.answers("languages", ["en", "fr", "de"], separator=";"),
        Attribute.numeric("age", [0, 50, 100]),
    )
)


def codes_of(source: object, schema: Schema = SCHEMA) -> np.ndarray:
    table = open_table(source)
    found = EncodedRows.read(table, table.bind(schema), range(len(schema)))
    return np.column_stack([found.columns[a] for a in range(len(schema))])


def test_one_attribute_per_answer() -> None:
    assert SCHEMA.names == ("b", "languages:en", "languages:fr", "languages:de", "age")
    assert SCHEMA.columns == ("b", "languages", "age")
    cells = ["en;fr", " de ; en", None, "", "fr"]
    rows = pa.table({"b": [0] * 5, "languages": cells, "age": [1] * 5})
    assert codes_of(rows)[:, 1:4].tolist() == [
        [1, 1, 0], [1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0],
    ]  # fmt: skip
    assert dq.check(rows, SCHEMA).ok


def test_the_file(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text('[attributes.languages]\nvalues = ["en", "fr"]\nseparator = ";"\n')
    schema = Schema.load(path)
    assert schema.names == ("languages:en", "languages:fr")
    schema.save(path)
    assert Schema.load(path) == schema
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    wide = Schema((*SCHEMA.attributes, *(Attribute.binary(f"x{i}") for i in range(60))))
    assert Schema.from_dict(wide.to_dict()) == wide
    many = Schema(Attribute.answers("a", [f"v{i}" for i in range(60)]))
    assert Schema.from_dict(many.to_dict()) == many


@given(st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=1, max_size=8))
def test_out_and_in_again(given_answers: list[list[int]]) -> None:
    codes = np.array([[0, *row, 1] for row in given_answers], dtype=np.int32)
    table = decode(codes, SCHEMA)
    assert table.column_names == ["b", "languages", "age"]
    np.testing.assert_array_equal(codes_of(table), codes)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_every_kind_of_frame_and_file(kind: str, tmp_path: Path) -> None:
    codes = np.random.default_rng(0).integers(0, SCHEMA.sizes, (50, 5), np.int32)
    frame = FrameStyle.named(kind).frame(decode(codes, SCHEMA), SCHEMA)
    np.testing.assert_array_equal(codes_of(frame), codes)
    for ending in ("csv", "parquet"):
        path = tmp_path / f"rows.{ending}"
        write_table(decode(codes, SCHEMA), path)
        np.testing.assert_array_equal(codes_of(path), codes)


def test_an_answer_that_was_not_declared() -> None:
    rows = pa.table({"b": [0, 1], "languages": ["en;frr", "en"], "age": [1, 2]})
    with pytest.raises(
        TableError,
        match=r"column 'languages': a cell holds something other than its declared answers "
        r"\(en, fr, de\); dq.check",
    ):
        codes_of(rows)
    found = dq.check(rows, SCHEMA)
    assert len(found.problems) == 1
    assert found.problems[0].column == "languages"
    assert dq.check(rows, SCHEMA, out_of_domain="clamp").ok
    absent = dq.check(pa.table({"b": [0], "age": [1], "language": ["en"]}), SCHEMA)
    assert "no column 'languages'" in absent.problems[0].text
    assert "did you mean 'language'" in absent.problems[0].text


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"values": ["a"], "separator": " "}, "separator = ' '; expected a sign such as ;"),
        ({"separator": ";"}, "no list of values"),
    ],
)
def test_bad_answers(entry: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError, match=f"'c': .*{message}"):
        Schema.from_dict({"attributes": {"c": entry}})


def test_a_release(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    cells = random.choice(["en", "en;fr", "de", "en;de", None], 500)
    rows = pa.table({"b": random.integers(0, 2, 500), "languages": cells, "age": [30, 60] * 250})
    job = dq.DualQuery(epsilon=20.0, delta=1e-5, queries=60, k=2, errors=False)
    job.release(rows, tmp_path / "out", schema=SCHEMA)
    made = dq.load(tmp_path / "out")
    assert abs(made.answer("languages:en") - 0.6) < 0.1
    sampled = made.sample(300, seed=0)
    assert sampled.column_names == ["b", "languages", "age"]
    assert dq.check(sampled, SCHEMA).ok
    assert "en;fr" in sampled.column("languages").to_pylist()


RULED = """
[attributes.b]
binary = true
[attributes.languages]
values = ["en", "fr", "de", "sign language"]
separator = ";"
[attributes.office]
values = ["Bonn", "Lyon"]
[attributes.age]
edges = [0, 50, 100]

[[constraints]]
if = "languages:fr"
then = "languages:en"
[[constraints]]
forbid = "languages:de & age<50"
[[constraints]]
forbid = '"languages:sign language" & office=Lyon'
[[constraints]]
determines = {b = "languages:de"}
"""


@pytest.mark.parametrize("player", ["tables", "model", "record"])
def test_rules_on_single_answers(tmp_path: Path, player: str) -> None:
    (tmp_path / "schema.toml").write_text(RULED, encoding="utf-8")
    schema = Schema.load(tmp_path / "schema.toml")
    schema.save(tmp_path / "again.toml")
    assert Schema.load(tmp_path / "again.toml") == schema
    random, size = np.random.default_rng(1), 2000
    german = random.random(size) < 0.3
    office = random.choice(["Bonn", "Lyon"], size)
    signs = (random.random(size) < 0.4) & (office == "Bonn")
    spoken = random.choice(["", "en", "en;fr"], size)
    cells = [
        ";".join(filter(None, [words, "de" * bool(de), "sign language" * bool(sign)])) or None
        for words, de, sign in zip(spoken, german, signs, strict=True)
    ]
    age = np.where(german, random.integers(50, 100, size), random.integers(0, 100, size))
    rows = pa.table({"b": german.astype(int), "languages": cells, "office": office, "age": age})
    assert dq.check(rows, schema).notes == ()
    broken = rows.set_column(1, "languages", pa.array(["fr", *cells[1:]]))
    (note,) = dq.check(broken, schema).notes
    assert "rule 1 (if languages:fr then languages:en) is broken by 1 row" in note
    drawn = {} if player == "tables" else {"player": player, "rounds": 8, "samples": 40}
    known = ("languages:en = 0.7", "office=Lyon = 0.45")
    job = dq.DualQuery(
        epsilon=10.0, delta=1e-5, queries=100, k=2, errors=False, known=known, **drawn
    )
    job.release(rows, tmp_path / "out", schema=schema)
    made = dq.load(tmp_path / "out")
    assert made.answer("languages:fr & !languages:en") == 0.0
    assert made.answer("languages:en") == pytest.approx(0.7, abs=1e-6)
    assert made.answer("office=Lyon") == pytest.approx(0.45, abs=1e-6)
    for where in (None, "office=Lyon", "languages:fr | languages:de"):
        sampled = made.sample(500, where=where, seed=0)
        assert dq.check(sampled, schema).notes == ()
        of_b: dict[object, set[bool]] = {}
        for row in sampled.to_pylist():
            given_answers = set((row["languages"] or "").split(";"))
            assert "fr" not in given_answers or "en" in given_answers
            assert "de" not in given_answers or row["age"] >= 50
            assert "sign language" not in given_answers or row["office"] == "Bonn"
            of_b.setdefault(row["b"], set()).add("de" in given_answers)
        assert all(len(values) == 1 for values in of_b.values())


def test_a_draft_sees_several_answers() -> None:
    random = np.random.default_rng(0)
    answers = ["car", "bus", "bike", "on foot", "train"]
    cells = ["; ".join(random.choice(answers, random.integers(1, 5), False)) for _ in range(300)]
    made = draft(pa.table({"ways": cells, "b": [0, 1] * 150}))
    assert set(made.schema.names) == {f"ways:{answer}" for answer in answers} | {"b"}
    assert "several answers" in made.review["ways"]
    assert dq.check(pa.table({"ways": cells, "b": [0, 1] * 150}), made.schema).ok
