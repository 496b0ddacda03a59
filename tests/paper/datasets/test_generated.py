"""Invented tables: packed columns, matrices and records agree, and have the shape they claim."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.paper.datasets import BiasedTable, RatingsTable
from dualquery.rows.counting import count_rows
from dualquery.workloads.generators import all_marginals, random_marginals

TABLES = {
    "biased": lambda: BiasedTable(1000, 40, seed=3),
    "ratings": lambda: RatingsTable(1000, 40, share=0.05, seed=3),
}


@pytest.mark.parametrize("name", TABLES)
def test_records_and_matrix_agree(name: str) -> None:
    table = TABLES[name]()
    schema = table.bind(table.schema)
    workload = random_marginals(schema, 3, 200) + all_marginals(schema, 1)
    direct = count_rows(table, workload)
    through = count_rows(_Streamed(table), workload)
    np.testing.assert_array_equal(direct.counts, through.counts)
    dense = table.matrix().toarray()
    assert dense.shape == (1000, 40)
    ones = count_rows(table, workload).counts[-80:]
    np.testing.assert_array_equal(ones.reshape(40, 2)[:, 1], dense.sum(axis=0))


class _Streamed:
    """The same table without its own packing."""

    def __init__(self, table) -> None:
        self.bind, self.blocks = table.bind, table.blocks


@pytest.mark.parametrize("name", TABLES)
def test_a_column_depends_on_the_seed_alone(name: str) -> None:
    table, again = TABLES[name](), TABLES[name]()
    chosen = np.array([31, 2, 17])
    np.testing.assert_array_equal(table.columns(chosen), again.columns(np.arange(40))[chosen])


def test_biases_are_met() -> None:
    table = BiasedTable(60_000, 300, seed=1)
    share = np.bitwise_count(table.columns(np.arange(300))).sum(axis=1) / table.rows
    spread = np.sqrt(table.bias * (1 - table.bias) / table.rows) + 1e-9
    assert np.abs((share - table.bias) / spread).max() < 5
    assert 0.4 < table.bias.mean() < 0.6


def test_columns_are_independent() -> None:
    bits = BiasedTable(60_000, 30, seed=2).columns(np.arange(30))
    cells = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, :60_000]
    found = np.corrcoef(cells)
    assert np.abs(found - np.eye(30)).max() < 5 / np.sqrt(60_000)


def test_ratings_have_long_tails_and_shared_tastes() -> None:
    table = RatingsTable(40_000, 400, seed=1)
    matrix = table.matrix()
    assert matrix.nnz / (40_000 * 400) == pytest.approx(0.012, rel=0.05)
    popularity = np.sort(np.asarray(matrix.sum(axis=0)).ravel())[::-1]
    assert popularity[:40].sum() > 0.3 * matrix.nnz
    top = np.argsort(-np.asarray(matrix.sum(axis=0)).ravel())[:30]
    related = np.corrcoef(matrix[:, top].toarray().T)
    assert (related.sum() - 30) / (30 * 29) > 0.02


def test_a_table_of_another_width_is_refused() -> None:
    with pytest.raises(ParameterError, match="40"):
        TABLES["biased"]().bind(Schema((Attribute.binary("x"),)))
    with pytest.raises(ParameterError, match="rows = 0"):
        BiasedTable(0, 3)
