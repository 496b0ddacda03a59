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
