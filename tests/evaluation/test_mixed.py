"""What a mixed table looks like after a release: means and quantiles of its numbers, ε = 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import dualquery as dq
from dualquery.domain.attributes import Attribute
from tests.messy import messy_table

ROWS = 50_000
SHARES = (0.1, 0.5, 0.9, 0.99)


def numbers(column: pd.Series, attribute: Attribute) -> npt.NDArray[np.float64]:
    """The cells that are there, as the schema counts them."""
    if attribute.type == "time":
        times = pd.to_timedelta(column.astype(str).str.slice(0, 5) + ":00").dt.total_seconds()
        return times.to_numpy()
    if attribute.type.is_temporal:
        seconds = pd.to_datetime(column).to_numpy().astype("datetime64[s]").astype(float)
        return np.floor(seconds / 86_400) if attribute.type == "date" else seconds
    return pd.to_numeric(column, errors="coerce").dropna().to_numpy(dtype=float)


@pytest.mark.slow
def test_means_and_quantiles_of_a_mixed_table() -> None:
    """Means within 2 %, and quantiles within one sub-bin.

    Dates and times begin nowhere, so their means are judged by 2 % of their spread. One per cent of
    the rows hold a quarter of all cost, up to 250 times the mean.
    """
    frame = messy_table(ROWS)
    schema = replace(dq.draft_schema(frame), draft=False)
    for seed in (1, 2, 3):
        release = dq.DualQuery(1.0, 1e-6, seed=seed, errors=False, queries=20_000).fit(
            frame, schema=schema
        )
        sampled = release.sample(ROWS, seed=1, kind="pandas")
        judged = 0
        for attribute in schema.attributes:
            if not attribute.is_numeric:
                continue
            true, drawn = (numbers(one[attribute.name], attribute) for one in (frame, sampled))
            scale = true.std() if attribute.type.is_temporal else abs(true.mean())
            away = abs(drawn.mean() - true.mean()) / scale
            assert away <= 0.02, (attribute.name, seed)
            parts = release.within(attribute.name).edges
            for share in SHARES:
                places = [
                    int(np.searchsorted(parts, np.quantile(one, share), side="right"))
                    for one in (true, drawn)
                ]
                assert abs(places[0] - places[1]) <= 1, (attribute.name, share, seed)
            judged += 1
        assert judged >= 7
