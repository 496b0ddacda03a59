"""Decimals of sampled cells: as declared, or as many as the edges call for; never out of a bin."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualquery as dq
from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.decimals import grid_of
from dualquery.domain.grid import Grid, written_decimals
from dualquery.domain.orders import extents
from dualquery.domain.schema import Schema
from dualquery.domain.sub_bins import SubBins
from dualquery.release.frames import decode, decode_column
from dualquery.release.metadata import write_descriptions
from dualquery.rows.drafting import draft
from dualquery.rows.encoding import encode_column
from tests.cli.conftest import run  # noqa: F401 - a fixture


def is_multiple(number: float, decimals: int) -> bool:
    """By its notation, digit by digit."""
    shifted = Decimal(repr(float(number))).scaleb(decimals)
    return shifted == shifted.to_integral_value()


@st.composite
def rising(draw: st.DrawFn, most: int = 6) -> list[float]:
    """Edges with up to four decimals, as people write them."""
    places = draw(st.integers(0, 4))
    cuts = draw(st.lists(st.integers(-20_000, 20_000), min_size=2, max_size=most, unique=True))
    return [float(Decimal(cut).scaleb(-places)) for cut in sorted(cuts)]


def holds_multiples(edges: list[float], decimals: int) -> bool:
    """Whether every bin holds a multiple, in exact arithmetic."""
    exact = [Decimal(repr(edge)).scaleb(decimals) for edge in edges]
    for place, (low, high) in enumerate(pairwise(exact)):
        first = low.to_integral_value("ROUND_CEILING")
        last = place == len(edges) - 2
        if first > high or (first == high and not last):
            return False
    return True


@given(rising(), st.integers(0, 6), st.booleans(), st.sampled_from(["middle", "drawn", "alone"]))
def test_declared_decimals(edges: list[float], decimals: int, missing: bool, how: str) -> None:
    """Cells are multiples, and reading them gives the codes back; else the bin is named."""
    if not holds_multiples(edges, decimals):
        with pytest.raises(SchemaError, match=r"'x': bin \[.* holds no number with \d decimals?;"):
            Attribute.numeric("x", edges, decimals=decimals)
        return
    attribute = Attribute.numeric("x", edges, decimals=decimals, missing=missing)
    codes = np.repeat(np.arange(attribute.size, dtype=np.int32), 40)
    generator = None if how == "middle" else np.random.default_rng(1)
    cells = decode_column(codes, attribute, generator, independent=how == "alone")
    np.testing.assert_array_equal(encode_column(cells, attribute), codes)
    numbers = cells.drop_null().to_numpy()
    assert all(is_multiple(number, decimals) for number in numbers)
    assert not (np.signbit(numbers) & (numbers == 0.0)).any()
    least, most = extents(attribute)
    assert all(is_multiple(number, decimals) for number in (*least, *most))


@given(rising(), st.integers(1, 9))
def test_undeclared_decimals_follow_from_edges_and_sub_bins(edges: list[float], parts: int) -> None:
    attribute = Attribute.numeric("x", edges, sub_bins=parts, type="decimal")
    grid, narrowest = grid_of(attribute), np.diff(SubBins.of(attribute).edges).min()
    assert grid is not None
    assert 10.0**-grid.decimals <= narrowest / 1000.0 * (1.0 + 1e-9) or grid.decimals == 0
    coarser = 10.0 ** (1 - grid.decimals) > narrowest / 1000.0
    assert coarser or grid.decimals == max(written_decimals(edge) for edge in edges)
    codes = np.repeat(np.arange(attribute.size, dtype=np.int32), 40)
    cells = decode_column(codes, attribute, np.random.default_rng(2))
    np.testing.assert_array_equal(encode_column(cells, attribute), codes)
    assert all(is_multiple(number, grid.decimals) for number in cells.to_numpy())


def test_two_digits_where_there_were_thirteen() -> None:
    cost = Attribute.numeric(
        "cost", [0, 85, 170, 290, 440, 660, 1000, 28_000, 620_000], type="decimal"
    )
    assert grid_of(cost) == Grid(2)
    assert grid_of(Attribute.numeric("x", [0.0, 1e6])) == Grid(2)  # its only bin begins at zero
    # Edges that were computed say nothing about decimals, and no multiple is told apart out there.
    assert grid_of(Attribute.numeric("x", [0.1 + 0.2, 1e9])) is None
    assert grid_of(Attribute.numeric("x", [1.0, 1e300])) is None
    assert grid_of(Attribute.numeric("x", [0, 10])) == Grid(0)


def test_rounding_keeps_the_mean() -> None:
    wide = Attribute.numeric("x", [0.0, 10.0, 20.0], decimals=0)
    codes = np.repeat([0, 1], 20_000).astype(np.int32)
    cells = decode_column(codes, wide, np.random.default_rng(3)).to_numpy()
    assert set(cells) == set(map(float, range(21)))
    assert cells[codes == 0].mean() == pytest.approx(5.0, abs=0.06)  # 10 is not in [0, 10)


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_a_grid_rounds_as_decimal_notation_does(number: float, decimals: int) -> None:
    grid, exact = Grid(decimals), Decimal(repr(number))
    unit = Decimal(1).scaleb(-decimals)
    one = np.array([number])
    for found, way in ((grid.up(one), "ROUND_CEILING"), (grid.down(one), "ROUND_FLOOR")):
        assert found[0] == float(exact.quantize(unit, way))
    assert grid.below(one)[0] < number
    assert abs(Decimal(repr(float(grid.nearest(one)[0]))) - exact) <= unit / 2 + Decimal("1e-9")


@pytest.mark.parametrize("value", [-1, 16, 2.0, 1.5, True, "2"])
def test_a_bad_number_of_decimals_is_refused(value: object) -> None:
    with pytest.raises(SchemaError, match=r"'x': decimals = .*; expected a whole number from 0 to"):
        Schema.from_dict({"attributes": {"x": {"edges": [0.0, 10.0], "decimals": value}}})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"edges": [0, 10]}, r"and this one holds whole numbers; .* add type = \"decimal\""),
        ({"edges": ["2022-01-01", "2023-01-01"], "type": "date"}, "and this one holds dates$"),
        ({"edges": ["00:00", "12:00"], "type": "time"}, "and this one holds times"),
        ({"values": ["a", "b"]}, "decimals is for columns of decimal numbers with edges only"),
        ({"binary": True}, "decimals is for columns of decimal numbers with edges only"),
        ({"edges": [0.0, 1e12]}, "more than a decimal number as large as 1e"),
    ],
)
def test_columns_that_have_no_decimals(entry: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError, match=message) as told:
        Schema.from_dict({"attributes": {"x": {**entry, "decimals": 8}}})
    assert "\n" not in str(told.value)


# Orders


@st.composite
def ordered(draw: st.DrawFn) -> tuple[Attribute, ...]:
    """Two or three columns in order, each with its own decimals, declared or not, or whole."""
    kinds = draw(st.lists(st.sampled_from([None, 0, 1, 2, "whole"]), min_size=2, max_size=3))
    attributes = []
    for number, kind in enumerate(kinds):
        name, missing = f"c{number}", draw(st.booleans())
        cuts = sorted(draw(st.lists(st.integers(0, 40), min_size=2, max_size=4, unique=True)))
        if kind == "whole":
            attributes.append(Attribute.numeric(name, cuts, missing=missing))
            continue
        places = 0 if kind == 0 else draw(st.integers(0, 2 if kind is None else int(kind)))
        edges = [float(Decimal(cut).scaleb(-places)) for cut in cuts]
        made = Attribute.numeric(name, edges, missing=missing, decimals=kind, type="decimal")
        attributes.append(made)
    return tuple(attributes)


def any_room(attributes: tuple[Attribute, ...]) -> bool:
    """Whether some record can be in order: missing where it may be, else in its last bin."""
    reached = -np.inf
    for attribute in attributes:
        if attribute.missing:
            continue
        low, high = extents(attribute)
        if reached > high[-1]:
            return False
        reached = max(reached, low[0])
    return True


def fineness(attribute: Attribute) -> float:
    if attribute.type == "whole":
        return 0
    return np.inf if attribute.decimals is None else attribute.decimals


@given(st.data(), st.booleans())
def test_orders_are_obeyed_after_rounding(data: st.DataObject, middle: bool) -> None:
    attributes = data.draw(ordered())
    fine = [fineness(attribute) for attribute in attributes]
    rules = ({"order": [attribute.name for attribute in attributes]},)
    if len(fine) == 3 and fine[0] > fine[1] < fine[2]:
        with pytest.raises(SchemaError, match=r"'c1' has .* and stands between 'c0' and 'c2'"):
            assert Schema(attributes, rules=rules).constraints
        return
    if not any_room(attributes):
        with pytest.raises(SchemaError, match="no record can obey"):
            assert Schema(attributes, rules=rules).constraints
        return
    schema = Schema(attributes, rules=rules)
    constraints = schema.constraints
    every = np.array(list(product(*(range(a.size) for a in schema.attributes))), dtype=np.int32)
    codes = every if constraints is None else every[constraints.holds(every)]
    codes = np.repeat(codes, 4, axis=0)
    table = decode(codes, schema, None if middle else np.random.default_rng(4))
    for place, attribute in enumerate(schema.attributes):
        column = table.column(place)
        np.testing.assert_array_equal(encode_column(column, attribute), codes[:, place])
        if attribute.decimals is not None:
            numbers = column.drop_null().to_pylist()
            assert all(is_multiple(number, attribute.decimals) for number in numbers)
    for row in table.to_pylist():
        cells = [cell for cell in row.values() if cell is not None]
        assert cells == sorted(cells)


def test_fewer_decimals_between_more_are_refused() -> None:
    content = {
        "attributes": {
            "a": {"edges": [0.5, 1.5], "decimals": 2},
            "b": {"edges": [0.5, 9.0], "decimals": 1},
            "c": {"edges": [0.5, 2.5]},
        },
        "constraints": [{"order": ["a", "b", "c"]}],
    }
    with pytest.raises(SchemaError, match="'b' has decimals = 1 and stands between 'a' and 'c'"):
        Schema.from_dict(content)
    content["attributes"]["b"]["decimals"] = 2
    assert Schema.from_dict(content).orders


# All the way through

SCHEMA = Schema(
    (
        Attribute.numeric("cost", [0, 100, 1000, 20_000], type="decimal", decimals=2, missing=True),
        Attribute.numeric("paid", [0, 100, 1000, 20_000], type="decimal", decimals=1),
        Attribute.numeric("share", [0.0, 0.25, 1.0]),
        Attribute.categorical("city", ["a", "b"]),
    ),
    rules=({"order": ["paid", "cost"]},),
)


def table(rows: int = 600) -> pa.Table:
    random = np.random.default_rng(5)
    cost = np.round(np.minimum(random.lognormal(5.0, 1.2, rows), 19_000.0), 2)
    return pa.table(
        {
            "cost": pa.array(cost, mask=random.random(rows) < 0.1),
            "paid": np.floor(cost * random.random(rows) * 10.0) / 10.0,
            "share": random.random(rows),
            "city": random.choice(["a", "b"], rows),
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("decimals") / "out"
    job = dq.DualQuery(4.0, 1e-3, seed=1, errors=False, queries=200)
    job.release(table(), out, schema=SCHEMA)
    return out


def test_a_release_keeps_decimals_in_every_form(made: Path, tmp_path: Path) -> None:
    assert (
        json.loads((made / "release.json").read_text())["schema"]["attributes"]["cost"]["decimals"]
        == 2
    )
    release = dq.load(made)
    assert release.schema["paid"].decimals == 1
    frames = {
        kind: release.sample(500, seed=2, kind=kind) for kind in ("pandas", "polars", "pyarrow")
    }
    for kind, frame in frames.items():
        for name, decimals in (("cost", 2), ("paid", 1), ("share", 6)):
            column = frame[name].to_pandas() if kind == "pyarrow" else frame[name]
            cells = [c for c in column.to_list() if c is not None and c == c]
            assert cells
            assert all(is_multiple(cell, decimals) for cell in cells), (kind, name)
    both = frames["pandas"].dropna(subset=["cost"])
    assert (both["paid"] <= both["cost"]).all()
    rows = tmp_path / "rows.csv"
    release.sample(500, seed=2, kind="pandas").to_csv(rows, index=False)
    described = write_descriptions(release, rows)
    fields = json.loads(described["datapackage"].read_text())["resources"][0]["schema"]["fields"]
    assert [field.get("decimals") for field in fields] == [2, 1, None, None]
    assert "with 2 decimals" in described["croissant"].read_text()
    assert "with 1 decimal" in described["codebook"].read_text()


def test_the_command_writes_cells_with_so_many_decimals(
    run,  # noqa: F811 - the fixture
    made: Path,
    tmp_path: Path,
) -> None:
    rows = tmp_path / "rows.csv"
    told = run("sample", made, "--rows", 300, "--seed", 1, "--out", rows)
    assert told.code == 0, told.err
    found = pd.read_csv(rows, dtype=str)
    assert found["cost"].dropna().str.fullmatch(r"\d+(\.\d{1,2})?").all()
    assert found["paid"].str.fullmatch(r"\d+(\.\d)?").all()


def test_a_schema_file_keeps_decimals(tmp_path: Path) -> None:
    SCHEMA.save(tmp_path / "schema.toml")
    assert "decimals = 2" in (tmp_path / "schema.toml").read_text()
    assert Schema.load(tmp_path / "schema.toml") == SCHEMA
    assert SCHEMA["cost"].describe() == "numbers from 0 to 20000, with 2 decimals, or missing"


# Drafts


def test_a_draft_says_how_many_decimals_were_seen() -> None:
    random = np.random.default_rng(6)
    frame = pd.DataFrame(
        {
            "cost": np.round(random.lognormal(5, 1, 400), 2),
            "text": [f"{x:.1f}0" for x in random.normal(100, 9, 400)],
            "single": random.normal(50, 9, 400).round(1).astype(np.float32),
            "whole": random.integers(0, 400, 400).astype(float),
            "computed": random.random(400),
            "age": random.integers(0, 90, 400),
        }
    )
    made = draft(frame)
    decimals = {a.name: a.decimals for a in made.schema.attributes}
    assert decimals == {
        "cost": 2, "text": 1, "single": 1, "whole": 0, "computed": None, "age": None,
    }  # fmt: skip
    assert (
        made.review["text"] == "no cell has more than 1 decimal; is that so by design (decimals)?"
    )
    assert "computed" not in made.review


def test_check_counts_cells_with_more_decimals() -> None:
    schema = Schema((Attribute.numeric("x", [0.0, 10.0], decimals=1),))
    for cells in ([0.1, 0.25, 3.0, 9.99], ["0.1", "0.25", "3", "9.99"]):
        told = str(dq.check(pa.table({"x": cells}), schema=schema))
        assert (
            "column 'x': 2 cells have more than decimals = 1, which samples will not have" in told
        )
        told = str(dq.check(pa.table({"x": cells[::2]}), schema=schema))
        assert "decimals" not in told


def test_a_draft_with_narrow_bins_has_decimals_that_fit_them() -> None:
    frame = pd.DataFrame({"x": np.repeat([1.0, 2.0, 3.0], 40), "y": np.tile(["a", "b"], 60)})
    attribute = draft(frame).schema["x"]
    assert attribute.decimals is not None
    assert holds_multiples(list(map(float, attribute.edges)), attribute.decimals)
