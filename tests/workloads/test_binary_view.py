"""The paper's view: every bit is a column. Queries and answers stay the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dualquery.base.errors import QueryError
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.workloads.binary_view import binarised, binarised_workload, is_binary
from dualquery.workloads.generators import parities, random_marginals
from dualquery.workloads.workload import Workload


def as_bits(rows: pa.Table, schema: Schema) -> pa.Table:
    """The table one-hot, column by column."""
    (block,) = open_table(rows).blocks(schema, range(len(schema)), OutOfDomain.REFUSE)
    columns = []
    for position, attribute in enumerate(schema.attributes):
        codes = block.codes(position)
        wanted = [1] if attribute.is_binary else range(attribute.size)
        columns.extend((codes == code).astype(np.int64) for code in wanted)
    return pa.table(columns, names=list(binarised(schema).names))


def test_one_column_per_bit(schema: Schema) -> None:
    view = binarised(schema)
    assert len(view) == schema.bit_counts.sum()
    assert is_binary(view)
    assert not is_binary(schema)
    assert view.names[:3] == ("sex=Female", "sex=Male", "age=0")
    assert "smoker" in view.names
    assert "work class=missing" in view.names


def test_queries_keep_their_answers(rows: pa.Table, schema: Schema) -> None:
    for workload in (random_marginals(schema, 3, 300), parities(schema, 3, 100)):
        view = binarised_workload(workload)
        assert view.schema == binarised(schema)
        here = count_rows(open_table(rows), workload)
        bits = open_table(as_bits(rows, schema))
        there = count_rows(bits, view)
        np.testing.assert_array_equal(here.counts, there.counts)


def test_the_zero_of_a_binary_column_stays_a_zero(schema: Schema) -> None:
    workload = Workload.of([parse("smoker=0 & sex=Male", schema)], schema)
    (query,) = binarised_workload(workload)
    found = {(binarised(schema).names[x.attribute], x.codes[0]) for x in query.literals}
    assert found == {("smoker", 0), ("sex=Male", 1)}


def test_a_set_of_values_has_no_bit(schema: Schema) -> None:
    workload = Workload.of([parse("age>=50", schema)], schema)
    with pytest.raises(QueryError, match="several values"):
        binarised_workload(workload)
