"""A public start on a wide table: it informs the one-way tables, and a poor one does no harm."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dualquery as dq
from dualquery.rows.counting import count_rows
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import random_marginals

WIDTH = 400
SCHEMA = dq.Schema(tuple(dq.Attribute.binary(f"x{i}") for i in range(WIDTH)))


def table(seed: int, shares: np.ndarray) -> pd.DataFrame:
    bits = np.random.default_rng(seed).random((20_000, WIDTH)) < shares
    return pd.DataFrame(bits.astype(np.int8), columns=SCHEMA.names)


@pytest.mark.slow
def test_a_start_of_a_wide_table_does_no_harm() -> None:
    """With pairs that leaned on it, a poor start made the error three times as large."""
    shares = np.random.default_rng(0).beta(1.0, 3.0, WIDTH)
    private = table(1, shares)
    workload = random_marginals(SCHEMA, 3, 2000)
    counted = count_rows(open_table(private), workload)
    errors = {}
    for name, start in (
        ("none", None),
        ("good", table(2, shares)),
        ("poor", table(3, shares[::-1])),
    ):
        job = dq.DualQuery(1.0, 1e-6, seed=1, errors=False, start=start)
        made = job.fit(private, schema=SCHEMA, workload=workload)
        assert (made.parameters.start is None) == (start is None)
        errors[name] = float(np.abs(made.answers() - counted.counts / counted.rows).mean())
    assert errors["good"] < errors["none"]
    assert errors["poor"] < 1.1 * errors["none"]
