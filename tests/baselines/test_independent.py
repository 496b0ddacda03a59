"""One-way counts, however many passes they take."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dualquery.baselines.independent import Independent, one_way_counts
from dualquery.encoding import OutOfDomain
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.generators import random_marginals
from dualquery.schema import Schema
from dualquery.table import open_table


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
    from dualquery.queries.counting import count
    from dualquery.records import Records

    counted = count(Records.pack(open_table(rows), schema, workload.literals), workload)
    assert made.answers(workload) == pytest.approx(counted.counts / 1000, abs=2e-3)
