"""Queries on public records."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.matching import mean_answers, shares_holding


@pytest.mark.parametrize("rows", [1, 8, 133])
def test_many_records_at_once_say_what_one_after_the_other_says(rows: int) -> None:
    schema = Schema(
        (
            Attribute.binary("a"),
            Attribute.categorical("b", list(range(5))),
            Attribute.categorical("c", list(range(3))),
        )
    )
    random = np.random.default_rng(rows)
    records = random.integers(0, schema.sizes, (rows, 3)).astype(np.int32)
    workload = random_marginals(schema, 1, 1500) + random_marginals(schema, 3, 1500)
    np.testing.assert_allclose(
        shares_holding(workload, records), mean_answers(workload, records), atol=1e-12
    )
