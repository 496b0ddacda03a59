"""One-way counts, however many passes they take."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from dualquery.baselines.independent import Independent, one_way_counts
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.neighbours import Neighbours
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import random_marginals


def test_counts_do_not_depend_on_the_passes(rows: pa.Table, schema: Schema) -> None:
    table = open_table(rows)
    whole = one_way_counts(table, schema, OutOfDomain.REFUSE)
    assert len(whole) == schema.sizes.sum()
    ends = np.cumsum(schema.sizes)
    assert [part.sum() for part in np.split(whole, ends[:-1])] == [1000] * len(schema)
    np.testing.assert_array_equal(whole, one_way_counts(table, schema, OutOfDomain.REFUSE, 5))


def test_with_much_budget_one_way_marginals_are_exact(rows: pa.Table, schema: Schema) -> None:
    made = Independent.fit(
        open_table(rows), schema, epsilon=1e4, delta=1e-3,
        neighbours=Neighbours.REPLACE_ONE, generator=np.random.default_rng(0),
    )  # fmt: skip
    workload = random_marginals(schema, 1, 50)

    counted = count_rows(open_table(rows), workload)
    assert made.answers(workload) == pytest.approx(counted.counts / 1000, abs=2e-3)


@pytest.mark.parametrize(("neighbours", "moved"), [("replace-one", 2), ("add-remove", 1)])
def test_noise_has_the_stated_scale(neighbours: str, moved: int) -> None:
    # Cells that hold nothing show their noise where it is positive, which is half of the time.
    width, many = 400, 50_000
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(width)))
    table = open_table(pa.table(dict.fromkeys(schema.names, np.zeros(many, dtype=np.int8))))
    kept: list[float] = []
    for seed in range(5):
        made = Independent.fit(
            table, schema, epsilon=0.5, delta=1e-6,
            neighbours=Neighbours(neighbours), generator=np.random.default_rng(seed),
        )  # fmt: skip
        kept.extend(made.shares[1::2] * many)
    spread = math.sqrt(moved * width) / mu_of(0.5, 1e-6)
    assert np.mean(np.array(kept) > 0) == pytest.approx(0.5, abs=0.05)
    assert math.sqrt(2.0 * np.mean(np.square(kept))) == pytest.approx(spread, rel=0.08)
