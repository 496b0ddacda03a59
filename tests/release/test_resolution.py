"""What a release says of how finely its columns were measured."""

from __future__ import annotations

import numpy as np
import pandas as pd

import dualquery as dq
from dualquery.cli.release import describe
from dualquery.release.page.render import render_page
from dualquery.release.resolution import fine_columns

SCHEMA = dq.Schema(
    (
        dq.Attribute.categorical("town", ["north", "south"]),
        dq.Attribute.numeric("age", [0, 30, 60, 100]),
        dq.Attribute.numeric("rooms", [0, 1, 2], sub_bins=1),
    )
)


def test_columns_that_were_measured_in_sub_bins_are_counted(tmp_path) -> None:
    random = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "town": random.choice(["north", "south"], 2000),
            "age": random.integers(0, 100, 2000),
            "rooms": random.integers(0, 3, 2000),
        }
    )
    fitted = dq.DualQuery(3.0, 1e-6, seed=1, queries=20, errors=False).fit(frame, schema=SCHEMA)
    assert fine_columns(fitted.schema, fitted.transcript) == 1
    assert "(1 column measured in sub-bins)" in describe(fitted, tmp_path)
    page = render_page(fitted)
    assert "1 column of numbers or dates was counted in finer parts than the ranges" in page
    drawn = dq.DualQuery(3.0, 1e-6, seed=1, queries=20, errors=False, measure=False, rounds=2).fit(
        frame, schema=SCHEMA
    )
    assert fine_columns(drawn.schema, drawn.transcript) == 0
    assert "sub-bins" not in describe(drawn, tmp_path)
    assert "finer parts" not in render_page(drawn)
