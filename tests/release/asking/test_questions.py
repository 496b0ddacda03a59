"""Figures of a release against their definition on every record there can be."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.base.errors import ParameterError, QueryError
from dualquery.domain.formulas import Formula, parse_formula
from dualquery.domain.schema import Schema
from dualquery.model.spread import free_variances, standard_errors
from dualquery.model.standard_errors import ErrorTable
from dualquery.release.asking.figure import WITHIN, Figure
from dualquery.release.frames import FrameStyle
from dualquery.release.release import Release
from tests.domain.test_formulas import holds
from tests.model.test_bends import by_least_squares, by_rank
from tests.release.page.releases import made_release, with_mixture

RATES = [0.125, 0.75 / np.log(4.0)]
"""Means of the bins [0, 0.25) and [0.25, 1]; the second is wide, so its logarithm is uniform."""

Records = list[tuple[int, ...]]
Weigh = Callable[[str | None], tuple[Records, np.ndarray]]


@pytest.fixture(scope="module", params=["model", "records"])
def release(request: pytest.FixtureRequest, schema: Schema) -> Release:
    base = made_release(schema, 60)
    return with_mixture(base, 3, rehearsed=True) if request.param == "model" else base


@pytest.fixture(scope="module")
def weigh(release: Release, schema: Schema) -> Weigh:
    """Every record with its probability by the definition, or only those of a condition."""
    records = list(itertools.product(*(range(int(size)) for size in schema.sizes)))
    if release.model is None:
        played = [tuple(int(code) for code in record) for record in release.records]
        weights = np.array([played.count(record) / len(played) for record in records])
    else:
        start = schema.code_start
        parts = [
            np.prod([release.model.tables[start[a] + code] for a, code in enumerate(record)], 0)
            for record in records
        ]
        weights = np.stack(parts) @ release.model.weights

    def kept(where: str | None) -> tuple[Records, np.ndarray]:
        if where is None:
            return records, weights
        formula: Formula = parse_formula(where, schema)
        inside = np.array([holds(formula, record, schema) for record in records])
        return records, weights * inside / (weights @ inside)

    return kept


@pytest.mark.parametrize("given", [None, "smoker | age>=50", "sex=Male"])
@pytest.mark.parametrize(
    "query", ["sex=Male & age>=50", "sex=Male | !(age>=50)", "parity(smoker, sex=Male) & grade=low"]
)
def test_shares(release: Release, weigh: Weigh, query: str, given: str | None) -> None:
    records, weights = weigh(given)
    formula = parse_formula(query, release.schema)
    true = sum(
        weight
        for record, weight in zip(records, weights, strict=True)
        if holds(formula, record, release.schema)
    )
    assert float(release.answer(query, given=given)) == pytest.approx(true, abs=1e-12)


def test_plain_queries_agree_with_the_answers_to_a_workload(release: Release) -> None:
    asked = dq.random_marginals(release.schema, 2, 50, seed=1) + dq.parities(
        release.schema, 3, 20, seed=1
    )
    errors = release.standard_errors(asked)
    for position, answer in enumerate(release.answers(asked)):
        found = release.answer(asked.query(position))
        assert float(found) == pytest.approx(answer, abs=1e-12)
        if errors is None:
            assert found.standard_error is None
            assert found.low is None
            assert found.high is None
        else:
            assert found.standard_error == pytest.approx(errors[position], rel=1e-9)


def test_a_range_has_the_error_of_the_cells_that_it_joins(schema: Schema) -> None:
    """By the definition: independent errors of single cells, made to add up to zero."""
    release = with_mixture(made_release(schema, 60), 3, rehearsed=True)
    age, ages = schema.position("age"), int(schema.sizes[schema.position("age")])
    codes = tuple(range(ages))
    for inside in (codes[1:], codes[:-1], codes[1:3]):
        query = dq.Query("conjunction", (dq.Literal(age, inside),))
        cells = [dq.Query("conjunction", (dq.Literal(age, (code,)),)) for code in codes]
        errors = np.array([release.answer(one).standard_error for one in cells])
        moves = np.array([float(code in inside) for code in codes])
        joined = float(standard_errors(moves, errors))
        by_size = release.errors.at(np.array([1]), np.array([float(release.answer(query))]))[0]
        found = release.answer(query).standard_error
        assert found == pytest.approx(max(joined, by_size))
        assert release.standard_errors(dq.Workload.of([query], schema))[0] == pytest.approx(found)
    # The complement of one cell is as sure as the cell; single cells and parities stay as they are.
    others = dq.Query("conjunction", (dq.Literal(age, (0,), negated=True),))
    alone = dq.Query("conjunction", (dq.Literal(age, (0,)),))
    questions = release.questions
    assert questions.joined(alone) == 0.0
    assert questions.joined(dq.Query("parity", (dq.Literal(age, (0, 1)),))) == 0.0
    assert questions.joined(others) == 0.0
    single = release.answer(alone).standard_error
    assert release.answer(others).standard_error == pytest.approx(single)
    assert not len(dq.Workload.of([others, alone], schema).joining)


@pytest.mark.parametrize("where", [None, "smoker | age>=50", "grade=low & sex=Male"])
def test_cross_tables(release: Release, weigh: Weigh, where: str | None) -> None:
    frame = release.table("sex", "work class", "age", where=where)
    assert frame.column_names == ["sex", "work class", "age", "share", "low", "high"]
    assert sum(frame["share"].to_pylist()) == pytest.approx(1.0)
    records, weights = weigh(where)
    cells: dict[tuple[int, ...], float] = {}
    for record, weight in zip(records, weights, strict=True):
        key = (record[0], record[3], record[1])
        cells[key] = cells.get(key, 0.0) + weight
    true = [cells[key] for key in itertools.product(range(2), range(4), range(5))]
    np.testing.assert_allclose(frame["share"].to_numpy(), true, atol=1e-12)
    assert frame["age"][0].as_py() == "[0,25)"
    assert frame["age"][4].as_py() == "[65,120]"
    assert frame["work class"][15].as_py() is None  # the missing bucket comes last
    if release.errors is None:
        # Only what the condition rules out is certain.
        certain = 20 if where is not None and "sex=Male" in where else 0
        assert frame["low"].null_count == frame["high"].null_count == len(frame) - certain
    else:
        assert all(low <= share <= high for low, share, high in zip(
            frame["low"].to_pylist(), frame["share"].to_pylist(), frame["high"].to_pylist(),
            strict=True,
        ))  # fmt: skip


def test_a_cell_of_a_table_has_the_interval_of_its_query(release: Release) -> None:
    for where in (None, "smoker | age>=50"):
        frame = release.table("sex", "grade", where=where)
        for row in frame.to_pylist():
            found = release.answer(f"sex={row['sex']} & grade={row['grade']}", given=where)
            assert row["share"] == pytest.approx(float(found), abs=1e-12)
            assert row["low"] == pytest.approx(found.low)
            assert row["high"] == pytest.approx(found.high)


def test_cells_that_a_condition_rules_out_are_certain(schema: Schema) -> None:
    release = with_mixture(made_release(schema, 60), 3, rehearsed=True)
    rows = release.table("sex", where="sex=Male & age>=50").to_pylist()
    assert rows == [
        {"sex": "Female", "share": 0.0, "low": 0.0, "high": 0.0},
        {"sex": "Male", "share": 1.0, "low": 1.0, "high": 1.0},
    ]
    assert release.answer("sex=Male", given="sex=Male").to_dict() == {
        "value": 1.0, "standard_error": 0.0, "low": 1.0, "high": 1.0,
    }  # fmt: skip
    assert release.answer("sex=Male | sex=Female").standard_error == 0.0


def numbers_in(weigh: Weigh, place: int, means: list[float], where: str | None):
    """The distribution of the numbers in a column, by their codes."""
    records, weights = weigh(where)
    shares = np.zeros(len(means))
    for record, weight in zip(records, weights, strict=True):
        if record[place] < len(means):
            shares[record[place]] += weight
    return shares / shares.sum()


@pytest.mark.parametrize("where", [None, "smoker | sex=Male", "rate>=0.25"])
def test_means_and_quantiles(release: Release, weigh: Weigh, where: str | None) -> None:
    middles = [12.0, 29.5, 42.0, 57.0, 92.5]  # of whole numbers; the last bin is closed
    age = numbers_in(weigh, 1, middles, where)
    assert float(release.mean("age", where=where)) == pytest.approx(age @ middles, abs=1e-9)
    rate = numbers_in(weigh, 4, RATES, where)
    assert float(release.mean("rate", where=where)) == pytest.approx(rate @ RATES)
    share = numbers_in(weigh, 2, [0.0, 1.0], where)
    assert float(release.mean("smoker", where=where)) == pytest.approx(share[1])
    for wanted in (0.053, 0.517, 0.893):
        inside = (wanted - rate[0]) / rate[1]
        true = 0.25 * wanted / rate[0] if inside < 0.0 else 0.25 * 4.0**inside
        assert float(release.quantile("rate", wanted, where=where)) == pytest.approx(true)
        code = int(np.searchsorted(np.cumsum(age), wanted))
        edges = [0, 25, 35, 50, 65, 121]
        before = np.cumsum(age)[code] - age[code]
        inside = edges[code] + (wanted - before) / age[code] * (edges[code + 1] - edges[code])
        assert float(release.quantile("age", wanted, where=where)) == np.floor(inside)
    values = release.quantile("age", [0.1, 0.9], where=where)
    assert isinstance(values, list)
    assert values[0] <= values[1]


def test_correlations(release: Release, weigh: Weigh) -> None:
    square = (1.0 - 0.25**2) / (2.0 * np.log(4.0))
    middle, variance = np.array(RATES), np.array([0.25**2 / 12.0, square - RATES[1] ** 2])
    records, weights = weigh("sex=Male")
    joint = np.zeros((2, 2))
    for record, weight in zip(records, weights, strict=True):
        if record[4] < 2:
            joint[record[2], record[4]] += weight
    joint /= joint.sum()
    x, y = joint.sum(1) @ [0.0, 1.0], joint.sum(0) @ middle
    covariance = (np.array([0.0, 1.0]) - x) @ joint @ (middle - y)
    spread = joint.sum(0) @ ((middle - y) ** 2 + variance)
    true = covariance / np.sqrt(x * (1.0 - x) * spread)
    found = release.correlation("smoker", "rate", where="sex=Male")
    assert float(found) == pytest.approx(true, rel=1e-6)
    assert (found.low is None) == (release.errors is None)


def test_numbers_inside_wide_bins_are_those_of_sampled_rows() -> None:
    """Logarithmic sub-bins, whole and decimal, and the variance inside them."""
    schema = Schema(
        (
            dq.Attribute.numeric("income", [0, 1000, 100_000, 1_000_000]),
            dq.Attribute.numeric("rate", [0.01, 0.5, 40.0]),
        )
    )
    release = with_mixture(made_release(schema, 60), 3, rehearsed=True)
    rows = release.sample(200_000, seed=2).to_pandas()
    for name in schema.names:
        error = rows[name].std() / np.sqrt(len(rows))
        assert abs(release.mean(name) - rows[name].mean()) < 5.0 * error
        for share in (0.1, 0.5, 0.9):
            below = (rows[name] <= float(release.quantile(name, share))).mean()
            assert abs(below - share) < 5.0 * np.sqrt(0.25 / len(rows))
    true = np.corrcoef(rows["income"], rows["rate"])[0, 1]
    assert abs(release.correlation("income", "rate") - true) < 0.02


def test_dates_are_no_numbers() -> None:
    schema = Schema(
        (
            dq.Attribute.numeric("day", [date(2022, 1, 1), date(2022, 7, 1), date(2023, 1, 1)]),
            dq.Attribute.binary("x"),
        )
    )
    release = with_mixture(made_release(schema, 60), 3, rehearsed=True)
    with pytest.raises(QueryError, match="'day' holds dates; a mean needs a column of numbers"):
        release.mean("day")
    assert release.table("day")["day"].to_pylist() == [
        "[2022-01-01,2022-07-01)", "[2022-07-01,2023-01-01]",
    ]  # fmt: skip


def test_descriptions_by_group(release: Release) -> None:
    rows = release.describe("age", "rate", by="sex", where="smoker").to_pylist()
    assert [row["figure"] for row in rows[:4]] == ["mean", "q25", "median", "q75"]
    assert len(rows) == 16
    assert rows[0]["column"] == "age"
    assert rows[0]["sex"] == "Female"
    found = release.mean("age", where="smoker & sex=Female")
    assert rows[0]["value"] == pytest.approx(float(found))
    assert rows[0]["low"] == pytest.approx(found.low)


def test_descriptions_of_no_records_are_refused() -> None:
    attributes = (
        dq.Attribute.numeric("age", [0, 20, 40]),
        dq.Attribute.numeric("rate", [0, 1, 2], missing=True),
        dq.Attribute.binary("smoker"),
    )
    made = with_mixture(made_release(Schema(attributes), 60), 3)
    with pytest.raises(QueryError, match=r"^no record can satisfy the condition$"):
        made.describe("age", where="smoker & !smoker")
    with pytest.raises(QueryError, match=r"^no record can satisfy the condition$"):
        made.describe("age", where="!(age<20 | age>=20)", by="smoker")
    missing = "no record that satisfies the condition has a number in 'rate'"
    with pytest.raises(QueryError, match=f"^{missing}$"):
        made.describe("age", "rate", where="!(rate>=0)")
    # A group without numbers beside one with numbers has rows without values.
    rows = made.describe("age", where="age<20", by="age").to_pylist()
    assert [row["value"] is None for row in rows] == [False] * 4 + [True] * 4
    rows = made.describe("rate", by="rate").to_pylist()
    assert [row["value"] is None for row in rows] == [False] * 8 + [True] * 4


def test_rows_of_a_formula_satisfy_it_and_follow_its_shares(release: Release) -> None:
    where = "smoker & age>=50 | sex=Male & !smoker"
    formula = parse_formula(where, release.schema)
    codes = release.sample_codes(4000, np.random.default_rng(3), where)
    assert all(holds(formula, tuple(row), release.schema) for row in codes.tolist())
    share = float(release.answer("smoker", given=where))
    assert abs(codes[:, 2].mean() - share) < 5.0 * np.sqrt(share * (1.0 - share) / 4000) + 1e-12


def test_answers_to_a_workload_as_a_frame(release: Release) -> None:
    asked = dq.random_marginals(release.schema, 2, 5, seed=1)
    frame = release.answers(asked, frame=True)
    assert frame.column_names == ["query", "share", "standard_error", "low", "high"]
    assert frame["query"][0].as_py() == dq.format_query(asked.query(0), release.schema)
    np.testing.assert_array_equal(frame["share"].to_numpy(), release.answers(asked))
    assert frame["low"].null_count == (5 if release.errors is None else 0)


def test_frames_are_of_the_kind_that_was_handed_in(release: Release) -> None:
    from dataclasses import replace

    polars = pytest.importorskip("polars")
    assert isinstance(release.table("sex"), pa.Table)
    assert isinstance(replace(release, style=FrameStyle("polars")).table("sex"), polars.DataFrame)
    frame = replace(release, style=FrameStyle("pandas")).table("work class")
    assert list(frame.columns) == ["work class", "share", "low", "high"]


# Figures and their errors


def test_a_figure_is_a_float() -> None:
    figure = Figure.within(0.25, 0.1, 0.0, 1.0)
    assert figure == 0.25
    assert figure + 1 == 1.25
    assert f"{figure:.1f}" == "0.2"
    assert str(figure) == "0.25"
    assert repr(figure) == "0.25 [0.0540036, 0.445996]"
    assert (figure.low, figure.high) == (0.25 - WITHIN * 0.1, 0.25 + WITHIN * 0.1)
    assert Figure.within(0.1, 0.1, 0.0, 1.0).low == 0.0
    assert repr(Figure.within(0.1, None, 0.0, 1.0)) == "0.1 (error unknown)"
    again = pickle.loads(pickle.dumps(figure))
    assert again == figure
    assert again.to_dict() == figure.to_dict()


def test_the_spread_of_a_share_is_its_own_error() -> None:
    found = standard_errors(np.array([1.0, 0.0]), np.array([0.3, 0.3]))
    assert float(found) == pytest.approx(0.3, rel=1e-6)


def test_the_spread_is_that_of_independent_errors_made_to_add_up_to_zero() -> None:
    random = np.random.default_rng(1)
    free = np.array([0.5, 1.0, 2.0, 0.7, 1.4])
    noise = np.sqrt(free) * random.normal(size=(200_000, 5))
    noise -= noise.sum(axis=1, keepdims=True) * free / free.sum()
    moves = np.array([3.0, -1.0, 0.5, 2.0, 0.0])
    errors = noise.std(axis=0)
    np.testing.assert_allclose(free_variances(errors), free, rtol=0.05)
    assert float(standard_errors(moves, errors)) == pytest.approx((noise @ moves).std(), rel=0.02)


@pytest.mark.parametrize("missed", [0.0, 0.02, 0.3])
def test_a_range_has_the_noise_of_its_cells_and_what_was_missed_of_a_dependence(
    schema: Schema, missed: float
) -> None:
    """Independent cells of 0.01 each, and two columns whose correlation by rank is off."""
    base = with_mixture(made_release(schema, 60), 3, rehearsed=True)
    assert base.errors is not None
    assert base.model is not None
    errors = ErrorTable(np.full_like(base.errors.scale, 0.01), np.array([missed, 9.0, 9.0]))
    release = base.with_model(base.model, errors)
    joint = base.model.table([schema.position(name) for name in ("sex", "age")])
    old = np.array([edge >= 50 for edge in schema["age"].edges[:-1]])
    assert old.sum() > 1
    moved = by_least_squares(joint, by_rank(joint.sum(axis=1)), by_rank(joint.sum(axis=0)))
    inside = np.zeros(joint.shape)
    inside[0] = old
    women = joint[0].sum()
    given = np.zeros(joint.shape)
    given[0] = (old - joint[0, old].sum() / women) / women
    noise = np.full(joint.size, 0.01)
    for moves, ask in (
        (inside, lambda: release.answer("sex=Female & age>=50")),
        (inside, lambda: release.answer("!(sex!=Female | age<50)")),
        (given, lambda: release.answer("age>=50", given="sex=Female")),
    ):
        alone = float(standard_errors(moves.reshape(-1), noise))
        off = missed * float((moved * moves).sum())
        assert abs((moved * moves).sum()) > 0.05
        assert ask().standard_error == pytest.approx(np.hypot(alone, off), rel=1e-3)


def test_an_unknown_error_of_a_cell_is_an_unknown_error() -> None:
    assert np.isnan(standard_errors(np.array([1.0, 0.0]), np.array([0.3, np.nan])))


def test_a_column_that_no_draw_names_has_no_interval(schema: Schema) -> None:
    release = with_mixture(made_release(schema, 60), 3, rehearsed=True)
    drawn = release.times_drawn.copy()
    drawn[1] = 0
    release.__dict__["times_drawn"] = drawn
    assert release.mean("age").low is None
    assert release.answer("smoker", given="age>=50").standard_error is None
    assert release.mean("smoker").low is not None
    assert release.table("age")["low"].null_count == 5


# Mistakes


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.answer(["smoker"]), "query = ['smoker']; expected the text of one query"),
        (lambda r: r.answer(3), "query = 3; expected the text of one query"),
        (lambda r: r.answer("smoker", given=1), "given = 1; expected the text of one query"),
        (lambda r: r.answer("smoker & !smoker"), "no record can satisfy the query"),
        (lambda r: r.answer("smoker", given="sex=Male & sex!=Male"), "contradict"),
        (lambda r: r.answer("smoker", given="!(sex=Male | sex!=Male)"), "impossible"),
        (lambda r: r.table(), "no column; expected the name of at least one"),
        (lambda r: r.table("sex", "sex"), "column 'sex' is named twice"),
        (lambda r: r.table("sexx"), "no attribute 'sexx'; did you mean 'sex'?"),
        (lambda r: r.table(["sex"]), "column = ['sex']; expected the name of a column"),
        (lambda r: r.mean("grade"), "'grade' holds text; a mean needs a column of numbers"),
        (lambda r: r.quantile("age", 1.5), "shares = 1.5; expected numbers from 0 to 1"),
        (lambda r: r.quantile("age", "half"), "shares = 'half'; expected numbers from 0 to 1"),
        (lambda r: r.correlation("age", "age"), "expected two columns"),
        (lambda r: r.correlation("age", "sex"), "'sex' holds text; a correlation needs"),
        (lambda r: r.answer("smoker", unknown="guess"), "unknown = 'guess'"),
        (lambda r: r.sample(5, where="smoker & !smoker"), "no record can satisfy the condition"),
    ],
)
def test_mistakes_are_named_in_one_line(release: Release, ask, message: str) -> None:
    with pytest.raises((QueryError, ParameterError)) as caught:
        ask(release)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_large_a_table_is_refused() -> None:
    wide = Schema(tuple(dq.Attribute.binary(f"x{i}") for i in range(25)))
    release = made_release(wide, 10)
    with pytest.raises(QueryError, match="33,554,432 cells; expected at most 1,000,000"):
        release.table(*wide.names)


def test_unknown_attributes_are_refused_in_every_question(schema: Schema, rows: pa.Table) -> None:
    workload = dq.Workload.of([dq.parse("sex=Male & smoker", schema)], schema)
    job = dq.DualQuery(epsilon=1.0, delta=1e-3, rounds=2, samples=5, seed=1, errors=False)
    made = job.fit(rows, schema=schema, workload=workload)
    for ask in (
        lambda: made.table("age"),
        lambda: made.mean("age"),
        lambda: made.quantile("age", where="smoker"),
        lambda: made.mean("smoker", where="age>=50"),
        lambda: made.answer("smoker", given="age>=50"),
        lambda: made.correlation("age", "smoker"),
        lambda: made.describe("smoker", by="age"),
    ):
        with pytest.raises(QueryError, match="no query of this release names 'age'"):
            ask()
    assert made.table("age", unknown="default")["share"].to_pylist() == [1.0, 0.0, 0.0, 0.0, 0.0]
