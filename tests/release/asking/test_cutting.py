"""Limits inside a bin: the share lies between those at both edges, and its interval is wider."""

from __future__ import annotations

import numpy as np
import pytest

import dualquery as dq
from dualquery.base.errors import QueryError

ROWS = 20_000
random = np.random.default_rng(3)
AGE = random.integers(18, 91, ROWS)
INCOME = np.round(random.gamma(2.0, 900.0, ROWS).clip(0, 9999), 2)
SICK = (random.random(ROWS) < AGE / 120).astype(int)
TABLE = {"age": AGE, "income": INCOME, "sick": SICK}
SCHEMA = dq.Schema(
    (
        dq.Attribute.numeric("age", [18, 30, 45, 65, 90], missing=True),
        dq.Attribute.numeric("income", [0, 1000, 2500, 5000, 10_000], type="decimal"),
        dq.Attribute.binary("sick"),
    )
)


@pytest.fixture(scope="module")
def release():
    job = dq.DualQuery(epsilon=20.0, delta=1e-6, marginals=(1, 2), seed=1)
    return job.fit(TABLE, schema=SCHEMA)


@pytest.mark.parametrize(
    ("query", "given", "truth"),
    [
        ("age>=55", None, AGE >= 55),
        ("age<55", None, AGE < 55),
        ("age>=30 & age<55", None, (AGE >= 30) & (AGE < 55)),
        ("age in [30,55)", None, (AGE >= 30) & (AGE < 55)),
        ("age>=70 & sick", None, (AGE >= 70) & (SICK == 1)),
        ("age<22", None, AGE < 22),
        ("income>=1700", None, INCOME >= 1700),
        ("income<300 & !sick", None, None),
        ("income<300 & sick=0", None, (INCOME < 300) & (SICK == 0)),
    ],
)
def test_shares_inside_a_bin(release, query: str, given: str | None, truth) -> None:
    if truth is None:
        with pytest.raises(QueryError, match="is not a bin edge"):
            release.answer(query)
        return
    figure = release.answer(query)
    assert abs(figure - truth.mean()) < 0.01
    assert figure.low <= truth.mean() <= figure.high
    assert figure.high - figure.low < 0.08


def test_a_share_lies_between_the_edges_and_its_interval_is_wider(release) -> None:
    shares = [float(release.answer(f"age>={limit}")) for limit in (45, 50, 55, 60, 65)]
    assert shares == sorted(shares, reverse=True)
    assert release.answer("age>=55").standard_error > release.answer("age>=45").standard_error
    both = release.answer("age>=55", given="sick")
    truth = (AGE[SICK == 1] >= 55).mean()
    assert abs(both - truth) < 0.02
    assert both.low <= truth <= both.high
    assert release.answer("age>=55") + release.answer("age<55") == pytest.approx(1.0, abs=0.01)


def test_what_nobody_measured_is_said(release) -> None:
    """Without sub-bins nothing is known about the part: the interval spans the bin."""
    plain = dq.Schema(
        tuple(
            dq.Attribute.from_dict(one.name, {**one.to_dict(), "sub_bins": 1})
            if one.is_numeric and one.name == "age" else one
            for one in SCHEMA.attributes
        )
    )  # fmt: skip
    job = dq.DualQuery(epsilon=20.0, delta=1e-6, marginals=(1, 2), seed=1)
    made = job.fit(TABLE, schema=plain)
    wide, narrow = made.answer("age>=55"), release.answer("age>=55")
    assert wide.high - wide.low > 10 * (narrow.high - narrow.low)
    assert wide.low <= (AGE >= 55).mean() <= wide.high
    assert made.answer("age>=65").low <= wide.low <= wide.high <= made.answer("age>=45").high


@pytest.mark.parametrize(
    "query", ["age>=55 & income<300", "age>=55 | sick", "age>=17.5", "age>95", "age>55"]
)
def test_what_is_still_refused(release, query: str) -> None:
    with pytest.raises(QueryError, match=r"is not a bin edge|open on the right"):
        release.answer(query)


def frame_of(release, *columns: str, where: str) -> list[dict[str, object]]:
    found = release.cross_table(*columns, where=where)
    return [
        {"cell": cell, "share": found.share[cell], "low": found.low[cell], "high": found.high[cell]}
        for cell in np.ndindex(found.share.shape)
    ]


CONDITIONS = {
    "age>=55": AGE >= 55,
    "age<24": AGE < 24,
    "age in [30,55) & income>=1000": (AGE >= 30) & (AGE < 55) & (INCOME >= 1000),
    "income<1700": INCOME < 1700,
}


@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions_inside_a_bin(release, where: str) -> None:
    """Shares, tables, means and quantiles of records that a limit inside a bin picks."""
    picked = CONDITIONS[where]
    sick = release.answer("sick", given=where)
    assert sick.low <= SICK[picked].mean() <= sick.high
    assert abs(sick - SICK[picked].mean()) < 0.05
    assert sick.high - sick.low < 0.35
    both = release.answer(f"sick & {where}") / release.answer(where)
    assert float(sick) == pytest.approx(both, rel=1e-9)
    table = frame_of(release, "sick", where=where)
    assert [row["share"] for row in table] == pytest.approx([1 - sick, sick])
    assert table[1]["low"] <= SICK[picked].mean() <= table[1]["high"]
    other = "income" if where.startswith("age") else "age"
    truth = (INCOME if other == "income" else AGE)[picked]
    mean = release.mean(other, where=where)
    assert mean.low <= truth.mean() <= mean.high
    assert mean.high - mean.low < 0.3 * truth.mean()
    for wanted, figure in zip(
        (0.25, 0.5), release.quantile(other, [0.25, 0.5], where=where), strict=True
    ):
        assert figure.low <= np.quantile(truth, wanted) <= figure.high
    rows = release.description(other, where=where, by="sick")
    assert [row["figure"] for row in rows] == ["mean", "q25", "median", "q75"] * 2
    assert all(row["low"] < row["value"] < row["high"] for row in rows)


def test_a_table_of_the_column_that_is_cut(release) -> None:
    found = release.cross_table("sick", "age", where="age>=55")
    by_age = found.share.sum(axis=0)
    assert by_age[[0, 1, 4]] == pytest.approx([0, 0, 0], abs=1e-12)
    truth = [((AGE >= 55) & (AGE < 65)).sum(), (AGE >= 65).sum()]
    assert by_age[2:4] == pytest.approx(np.array(truth) / sum(truth), abs=0.02)
    assert (found.low <= found.share).all()
    turned = release.cross_table("age", "sick", where="age>=55")
    np.testing.assert_allclose(turned.share, found.share.T)
    np.testing.assert_allclose(turned.high, found.high.T)
    with pytest.raises(QueryError, match="55 is not a bin edge of 'age'; figures of this column"):
        release.mean("age", where="age>=55")


def test_a_condition_inside_a_bin_is_less_sure_than_at_its_edges(release) -> None:
    inside, edge = (release.cross_table("sick", where=f"age>={at}") for at in (55, 45))
    assert ((inside.high - inside.low) > (edge.high - edge.low)).all()
    within = release.answer("sick", given="age>=55")
    ends = [release.answer("sick", given=f"age>={at}") for at in (45, 65)]
    assert min(ends) < within < max(ends)


def test_what_nobody_measured_is_said_of_conditions_too(release) -> None:
    plain = dq.Schema(
        tuple(
            dq.Attribute.from_dict(one.name, {**one.to_dict(), "sub_bins": 1})
            if one.name == "age" else one
            for one in SCHEMA.attributes
        )
    )  # fmt: skip
    made = dq.DualQuery(epsilon=20.0, delta=1e-6, marginals=(1, 2), seed=1).fit(TABLE, schema=plain)
    wide = made.answer("sick", given="age>=55")
    narrow = release.answer("sick", given="age>=55")
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
    assert wide.low <= SICK[AGE >= 55].mean() <= wide.high


def test_which_limits_of_conditions_are_still_refused(release) -> None:
    with pytest.raises(QueryError, match="both have a limit inside a bin"):
        release.answer("age>=55", given="income<1700")
    with pytest.raises(QueryError, match="is not a bin edge"):
        release.correlation("income", "age", where="age>=55")
