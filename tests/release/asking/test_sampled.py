"""Every figure against the same figure of very many sampled rows."""

from __future__ import annotations

import numpy as np
import pytest

import dualquery as dq
from dualquery.domain.schema import Schema
from tests.release.page.releases import made_release, with_mixture

ROWS = 10_000_000


@pytest.mark.slow
def test_figures_agree_with_ten_million_rows(schema: Schema) -> None:
    """Within five standard errors of sampling. Rows are drawn independently of one another."""
    release = with_mixture(made_release(schema, 60), 4, rehearsed=True)
    rows = release.sample(ROWS, seed=3, kind="pandas", independent=True)
    where = (rows["smoker"] == 1) | (rows["age"] >= 50)
    part = rows[where]

    def agrees(ours: float, theirs: float, spread: float, count: int) -> None:
        assert abs(float(ours) - float(theirs)) <= 5.0 * spread / np.sqrt(count)

    holds = (part["sex"] == "Male").mean()
    agrees(release.answer("sex=Male", given="smoker | age>=50"), holds, 0.5, len(part))
    agrees(release.answer("smoker | age>=50"), where.mean(), 0.5, ROWS)
    table = release.table("sex", "grade", where="smoker | age>=50").to_pandas()
    shares = part.groupby(["sex", "grade"], observed=True).size() / len(part)
    for row in table.itertuples():
        agrees(row.share, shares.get((row.sex, row.grade), 0.0), 0.5, len(part))
    for column in ("age", "rate"):
        cells = part[column].dropna().astype(float)
        agrees(
            release.mean(column, where="smoker | age>=50"), cells.mean(), cells.std(), len(cells)
        )
        for share in (0.1, 0.5, 0.9):
            value = float(release.quantile(column, share, where="smoker | age>=50"))
            below, at = (cells < value).mean(), (cells <= value).mean()
            reach = 5.0 * 0.5 / np.sqrt(len(cells))
            assert below - reach <= share <= at + reach
    both = rows[["age", "rate"]].dropna().astype(float)
    agrees(release.correlation("age", "rate"), both.corr().iloc[0, 1], 1.5, len(both))
    assert isinstance(release, dq.Release)
