"""Rules that people know: all synthetic rows obey them, inside bins too."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualquery as dq
from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.orders import extents, order_clauses
from dualquery.domain.schema import Schema
from dualquery.model.mixture import Mixture
from dualquery.release.frames import decode
from dualquery.release.settling import settled_model, settled_records
from dualquery.rows.encoding import encode_column

TYPES = ["whole", "decimal", "date", "timestamp", "time"]


@st.composite
def columns(draw: st.DrawFn, kind: str, count: int) -> list[Attribute]:
    """Columns of one type, cut differently."""
    made = []
    for number in range(count):
        cuts = sorted(draw(st.lists(st.integers(1, 60), min_size=2, max_size=5, unique=True)))
        edges: list[object] = list(cuts)
        if kind == "date":
            edges = [f"2022-{1 + cut // 28:02}-{1 + cut % 28:02}" for cut in cuts]
        elif kind == "timestamp":
            edges = [f"2022-01-01T00:{cut - 1:02}:00" for cut in cuts]
        elif kind == "time":
            edges = [f"12:{cut - 1:02}" for cut in cuts]
        made.append(Attribute.numeric(f"c{number}", edges, type=kind, missing=draw(st.booleans())))
    return made


def with_order(attributes: list[Attribute]) -> Schema:
    names = [attribute.name for attribute in attributes]
    return Schema(tuple(attributes), rules=({"order": names},))


def has_room(row: np.ndarray, attributes: list[Attribute]) -> bool:
    """Whether some cells of these bins are in order; a missing one is no obstacle."""
    reached = -np.inf
    for code, attribute in zip(row, attributes, strict=True):
        if code < attribute.proper_size:
            low, high = extents(attribute)
            reached = max(reached, low[code])
            if reached > high[code]:
                return False
    return True


@given(st.data(), st.sampled_from(TYPES), st.integers(2, 3))
def test_cells_are_in_order_and_in_their_bins(data: st.DataObject, kind: str, count: int) -> None:
    attributes = data.draw(columns(kind, count))
    sizes = [attribute.size for attribute in attributes]
    every = np.array(list(product(*(range(size) for size in sizes))), dtype=np.int32)
    codes = every[[has_room(row, attributes) for row in every]]
    if not len(codes):
        with pytest.raises(SchemaError, match="no record can obey"):
            assert with_order(attributes).constraints
        return
    schema = with_order(attributes)
    if schema.constraints is not None:
        np.testing.assert_array_equal(every[schema.constraints.holds(every)], codes)
    codes = np.repeat(codes, 3, axis=0)
    generator = data.draw(st.sampled_from([None, np.random.default_rng(0)]))
    table = decode(codes, schema, generator)
    for place, attribute in enumerate(attributes):
        np.testing.assert_array_equal(
            encode_column(table.column(place), attribute), codes[:, place]
        )
    for row in table.to_pylist():
        cells = [cell for cell in row.values() if cell is not None]
        assert cells == sorted(cells)


@given(st.data(), st.sampled_from(TYPES))
def test_only_codes_without_room_are_forbidden(data: st.DataObject, kind: str) -> None:
    first, second = data.draw(columns(kind, 2))
    schema = Schema((first, second))
    forbidden = {
        (a, b)
        for one, other in order_clauses([(0, 1)], schema)
        for a in one.codes
        for b in other.codes
    }
    (low, _), (_, high) = extents(first), extents(second)
    for a, b in product(range(first.proper_size), range(second.proper_size)):
        assert ((a, b) in forbidden) == (low[a] > high[b])


def test_cells_of_one_bin_keep_their_distribution() -> None:
    """Two independent cells put in order are the smaller and the larger of the two."""
    schema = with_order([Attribute.numeric(name, [1.0, 2.0]) for name in "ab"])
    table = decode(np.zeros((20_000, 2), dtype=np.int32), schema, np.random.default_rng(3))
    assert abs(table.column("a").to_numpy().mean() - 4 / 3) < 0.01
    assert abs(table.column("b").to_numpy().mean() - 5 / 3) < 0.01


def random_model(schema: Schema, seed: int = 0) -> Mixture:
    random = np.random.default_rng(seed)
    tables = random.dirichlet(np.ones(4), int(schema.code_start[-1]))
    for attribute in range(len(schema)):
        rows = slice(*schema.code_start[attribute : attribute + 2])
        tables[rows] /= tables[rows].sum(axis=0)
    return Mixture(schema, np.full(4, 0.25), tables)


DEPENDENT = Schema(
    (
        Attribute.categorical("region", ["n", "s", "w"]),
        Attribute.categorical("capital", ["a", "b", "c"], missing=True),
        Attribute.binary("coast"),
        Attribute.binary("rich"),
    ),
    rules=(
        {"determines": {"region": "capital", "capital": "coast"}},
        {"forbid": "region=n & capital=a"},
        {"forbid": "capital=b & rich"},
    ),
)


@pytest.mark.parametrize("seed", range(5))
def test_one_column_fixes_another(seed: int) -> None:
    model = random_model(DEPENDENT, seed)
    settled = settled_model(model)
    rows = settled.sample(500, np.random.default_rng(seed))
    for source, target in ((0, 1), (1, 2)):
        pairs = {(int(row[source]), int(row[target])) for row in rows}
        assert len(pairs) == len({first for first, _ in pairs})
    constraints = DEPENDENT.constraints
    assert constraints is not None
    assert constraints.holds(rows).all()
    assert not ((rows[:, 0] == 0) & (rows[:, 1] == 0)).any()
    # The rows keep the share of the column that decides.
    shares = settled.tables[:3] @ settled.weights
    np.testing.assert_allclose(shares, model.tables[:3] @ model.weights)
    other = settled_model(model).sample(500, np.random.default_rng(seed + 100))
    assert {tuple(row) for row in other[:, :3]} == {tuple(row) for row in rows[:, :3]}


def test_records_that_one_column_fixes() -> None:
    records = np.random.default_rng(0).integers(0, DEPENDENT.sizes, (300, 4), np.int32)
    rows = settled_records(records, DEPENDENT)
    for source, target in ((0, 1), (1, 2)):
        pairs = {(int(row[source]), int(row[target])) for row in rows}
        assert len(pairs) == len({first for first, _ in pairs})
    assert DEPENDENT.constraints is not None
    assert DEPENDENT.constraints.holds(rows).all()
    assert settled_records(records, Schema(DEPENDENT.attributes)) is records


def test_a_release_whose_rows_obey_all_rules(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(
        """
[attributes.region]
values = ["n", "s"]
[attributes.capital]
values = ["a", "b", "c"]
[attributes.admitted]
edges = [2022-01-01, 2022-07-01, 2023-01-01]
[attributes.discharged]
edges = [2022-01-01, 2022-04-01, 2023-01-01]
missing = true
[attributes.sex]
values = ["f", "m"]
[attributes.pregnant]
binary = true

[[constraints]]
order = ["admitted", "discharged"]
[[constraints]]
determines = {region = "capital"}
[[constraints]]
if = "pregnant"
then = "sex=f"
"""
    )
    schema = dq.Schema.load(file)
    schema.save(tmp_path / "again.toml")
    assert dq.Schema.load(tmp_path / "again.toml") == schema
    random = np.random.default_rng(0)
    start = np.datetime64("2022-01-01") + random.integers(0, 300, 600)
    sex = random.choice(["f", "m"], 600)
    region = random.choice(["n", "s"], 600)
    table = pa.table(
        {
            "region": region,
            "capital": np.where(region == "n", "c", "a"),
            "admitted": start,
            "discharged": start + random.integers(0, 60, 600),
            "sex": sex,
            "pregnant": ((sex == "f") & (random.random(600) < 0.3)).astype(int),
        }
    )
    assert dq.check(table, schema).notes == ()
    job = dq.DualQuery(epsilon=10.0, delta=1e-5, queries=60, k=2, errors=False)
    made = job.fit(table, schema=schema)
    for where in (None, "region=n", "capital=a & sex=m"):
        rows = made.sample(400, where=where, seed=1).to_pylist()
        assert len({(row["region"], row["capital"]) for row in rows}) <= 2
        assert {row["region"]: row["capital"] for row in rows}.items() <= {("n", "c"), ("s", "a")}
        assert not any(row["pregnant"] and row["sex"] == "m" for row in rows)
        assert all(
            row["discharged"] is None or row["admitted"] <= row["discharged"] for row in rows
        )


NAMED = (
    Attribute.numeric("day", ["2022-01-01", "2023-01-01"], type="date"),
    Attribute.numeric("age", [0, 50, 100]),
    Attribute.categorical("city", ["x", "y"]),
    Attribute.categorical("low", ["a", "b", "c"], ordered=True),
    Attribute.categorical("high", ["a", "b", "d"], ordered=True),
)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"order": ["day"]}, "constraint 1: order = .*expected the names of two or more columns"),
        ({"order": ["day", "dya"]}, "constraint 1: .* no attribute 'dya'; did you mean 'day'"),
        ({"order": ["day", "age"]}, "'day' and 'age' cannot be compared; expected columns of one"),
        ({"order": ["age", "city"]}, "'city' is not ordered; expected a column with edges"),
        ({"order": ["low", "high"]}, "'low' and 'high' cannot be compared; .*the same values"),
        ({"order": ["day", "day"]}, "names one column twice"),
        ({"determines": "city"}, r'determines = .*expected a table such as \{region = "capital"\}'),
        ({"determines": {"city": "towm"}}, "no attribute 'towm'"),
        ({"determines": {"city": "low", "low": "city"}}, "'city', 'low' determine one another"),
        ({"determines": {"city": "low", "age": "low"}}, "'low' is determined by two columns"),
        ({"always": "x"}, "expected `forbid`, `if` and `then`, `order` or `determines`, found alw"),
    ],
)
def test_bad_rules(rule: dict[str, object], message: str) -> None:
    content = {"attributes": {a.name: a.to_dict() for a in NAMED}, "constraints": [rule]}
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict(content)


def test_orders_that_go_round_in_a_circle() -> None:
    rules = [{"order": ["a", "b"]}, {"order": ["b", "c"]}, {"order": ["c", "a"]}]
    content = {"attributes": {n: {"edges": [0, 1]} for n in "abc"}, "constraints": rules}
    with pytest.raises(SchemaError, match="constraint 3: with the order rules above, 'a' would"):
        Schema.from_dict(content)


@st.composite
def several_orders(draw: st.DrawFn) -> tuple[Schema, set[tuple[int, int]]]:
    """Columns of whole and decimal numbers in some orders, and the pairs that follow from them."""
    kinds = draw(st.lists(st.sampled_from(["whole", "decimal"]), min_size=3, max_size=4))
    made = [draw(columns(kind, 1))[0] for kind in kinds]
    attributes = [
        Attribute.numeric(f"c{i}", a.edges, type=a.type, missing=a.missing)
        for i, a in enumerate(made)
    ]
    rank = draw(st.permutations(range(len(attributes))))
    # Whole numbers between decimal ones are refused, so they stand at one end.
    rank = sorted(rank, key=lambda place: kinds[place], reverse=draw(st.booleans()))
    rules = []
    for _ in range(draw(st.integers(2, 3))):
        chosen = draw(st.lists(st.sampled_from(rank), min_size=2, max_size=3, unique=True))
        rules.append(sorted(chosen, key=rank.index))
    pairs = {(a, b) for rule in rules for i, a in enumerate(rule) for b in rule[i + 1 :]}
    for middle in rank:  # Warshall's way to what follows
        pairs |= {(a, d) for a, b in pairs for c, d in pairs if b == c == middle}
    entries = tuple({"order": [f"c{place}" for place in rule]} for rule in rules)
    return Schema(tuple(attributes), rules=entries), pairs


@given(several_orders(), st.booleans())
def test_columns_in_several_orders(made: tuple[Schema, set[tuple[int, int]]], middle: bool) -> None:
    schema, pairs = made
    ends = [extents(attribute) for attribute in schema.attributes]
    every = np.array(list(product(*(range(a.size) for a in schema.attributes))), dtype=np.int32)

    def room(row: np.ndarray) -> bool:
        """Each column at the largest lower end of those before it, if that is in its bin."""
        there = [code < a.proper_size for code, a in zip(row, schema.attributes, strict=True)]
        return all(
            ends[a][0][row[a]] <= ends[b][1][row[b]] for a, b in pairs if there[a] and there[b]
        )

    codes = every[[room(row) for row in every]]
    if not len(codes):
        with pytest.raises(SchemaError, match="no record can obey"):
            assert schema.constraints
        return
    if schema.constraints is not None:
        np.testing.assert_array_equal(every[schema.constraints.holds(every)], codes)
    codes = np.repeat(codes[:400], 3, axis=0)
    table = decode(codes, schema, None if middle else np.random.default_rng(0))
    for place, attribute in enumerate(schema.attributes):
        np.testing.assert_array_equal(
            encode_column(table.column(place), attribute), codes[:, place]
        )
    cells = [column.to_pylist() for column in table.columns]
    for a, b in pairs:
        for one, other in zip(cells[a], cells[b], strict=True):
            assert one is None or other is None or one <= other


def test_whole_numbers_between_decimals_are_refused() -> None:
    content = {
        "attributes": {
            "a": {"edges": [0.5, 1.5]},
            "b": {"edges": [0, 9]},
            "c": {"edges": [0.5, 2.5]},
        },
        "constraints": [{"order": ["a", "b"]}, {"order": ["b", "c"]}],
    }
    with pytest.raises(SchemaError, match="constraint 2: 'b' has whole numbers and stands between"):
        Schema.from_dict(content)


def test_a_whole_number_after_a_decimal_one_is_rounded_up() -> None:
    """Cells used to be cut to whole numbers after they were put in order."""
    schema = with_order(
        [Attribute.numeric("a", [2.0, 3.0]), Attribute.numeric("b", [2, 4], type="whole")]
    )
    table = decode(np.zeros((500, 2), dtype=np.int32), schema, np.random.default_rng(1))
    one, other = (table.column(name).to_numpy() for name in "ab")
    assert (one <= other).all()
    assert set(other.tolist()) == {3, 4}


def test_groups_of_columns_that_orders_join() -> None:
    """Two chains that a later rule joins are one group; other columns stay for themselves."""
    rules = (["a", "b"], ["e", "f"], ["c", "d"], ["b", "c"])
    schema = Schema(
        tuple(Attribute.numeric(name, [0, 10]) for name in "abcdef"),
        rules=tuple({"order": rule} for rule in rules),
    )
    first, second = schema.orders
    assert [schema.names[place] for place in first.places] == ["a", "b", "c", "d"]
    assert first.is_chain
    assert [schema.names[place] for place in second.places] == ["e", "f"]
