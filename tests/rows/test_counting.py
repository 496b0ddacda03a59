"""Counts over packed rows equal the definition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dualquery.base.errors import SchemaError, TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.release.frames import decode
from dualquery.rows import table as tables
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import all_marginals, random_marginals
from dualquery.workloads.matching import mean_answers
from dualquery.workloads.workload import Workload
from tests.strategies import code_matrices, queries, schemas


def counts(source, schema: Schema, workload: Workload) -> np.ndarray:
    table = open_table(source)
    bound = table.bind(schema)
    assert bound == schema
    return count_rows(table, workload).counts


@given(st.data())
def test_counts_equal_the_definition(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    workload = Workload.of(data.draw(st.lists(queries(schema), min_size=1, max_size=8)), schema)
    codes = data.draw(code_matrices(schema, most=200))
    expected = np.rint(mean_answers(workload, codes) * len(codes))
    np.testing.assert_array_equal(counts(decode(codes, schema), schema, workload), expected)


def test_rows_past_a_block(monkeypatch: pytest.MonkeyPatch, schema: Schema, rows: pa.Table) -> None:
    workload = random_marginals(schema, 3, 500)
    whole = counts(rows, schema, workload)
    monkeypatch.setattr(tables, "BLOCK_ROWS", 192)
    np.testing.assert_array_equal(counts(rows, schema, workload), whole)


def test_a_marginal_table_sums_to_the_rows(schema: Schema, rows: pa.Table) -> None:
    assert counts(rows, schema, all_marginals(schema, 1)).sum() == len(schema) * rows.num_rows


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.floats(0.0, 1.0))
def test_a_sparse_matrix_counts_like_a_dense_one(seed: int, n: int, density: float) -> None:
    random = np.random.default_rng(seed)
    dense = (random.random((n, 5)) < density).astype(np.int8)
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(5)))
    workload = random_marginals(schema, 3, 60, seed=seed) + all_marginals(schema, 2)
    frame = pa.table({f"x{i}": dense[:, i] for i in range(5)})
    np.testing.assert_array_equal(
        counts(sparse.csr_matrix(dense), schema, workload), counts(frame, schema, workload)
    )


def test_sparse_columns_are_named_by_the_schema(tmp_path) -> None:
    matrix = sparse.random_array((10, 4), density=0.5, rng=np.random.default_rng(0))
    matrix.data[:] = 1
    sparse.save_npz(tmp_path / "m.npz", matrix.tocsr())
    table = open_table(tmp_path / "m.npz")
    assert table.bind(Schema((), ("item_*",))).names == ("item_0", "item_1", "item_2", "item_3")
    with pytest.raises(SchemaError, match="4 columns and the schema 1"):
        table.bind(Schema((Attribute.binary("x"),)))
    with pytest.raises(SchemaError, match="'c' is not binary"):
        table.bind(Schema((Attribute.categorical("c", ["a"]),), ("item_*",)))


def test_a_sparse_matrix_of_other_numbers_is_refused() -> None:
    schema = Schema((Attribute.binary("x"), Attribute.binary("y")))
    table = open_table(sparse.csr_matrix(np.array([[0, 3], [1, 0]])))
    with pytest.raises(TableError, match="column 1 of the sparse matrix holds another number"):
        list(table.blocks(schema, [0], OutOfDomain.REFUSE))


def test_an_empty_table_is_refused(schema: Schema, rows: pa.Table) -> None:
    with pytest.raises(TableError, match="no rows"):
        counts(rows.slice(0, 0), schema, random_marginals(schema, 2, 10))
