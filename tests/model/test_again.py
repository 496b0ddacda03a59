"""How unsure the mean of a column is said to be, with missing cells and without any cell."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.domain.sub_bins import SubBins
from dualquery.model.again import missing_cells, relative_error, spread_of, unsure_columns
from dualquery.model.smoothing import Cells
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Groups, Marginals

EDGES = [0.0, 100.0, 300.0, 1000.0, 5000.0, 60_000.0]


def column(**more: object) -> Schema:
    return Schema((Attribute.numeric("x", EDGES, type="decimal", missing=True, **more),))


@pytest.mark.parametrize("missing", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("public", [False, True])
def test_a_mean_is_as_unsure_as_it_says_whatever_is_missing(missing: float, public: bool) -> None:
    schema, rows, noise = column(), 50_000, 40.0
    sub_bins = SubBins.of(schema["x"])
    random = np.random.default_rng(int(10 * missing))
    said, found = [], []
    for _ in range(12):
        values = np.minimum(random.lognormal(6.0, 1.2, rows), 59_999.0)
        there = values[random.random(rows) >= missing]
        exact = np.append(np.histogram(there, sub_bins.edges)[0], rows - len(there))
        noisy = exact + random.normal(0.0, noise, len(exact))
        table = Cells(np.arange(len(sub_bins)), noisy, noise)
        spread = spread_of(0, schema, [table], float(rows), public=public)
        shares = spread.surety.spread
        said.append(relative_error(spread, schema, 0))
        true = sub_bins.means @ exact[:-1] / exact[:-1].sum()
        found.append(float(sub_bins.means @ shares / shares.sum()) / true - 1.0)
    assert 0.45 < np.sqrt(np.mean(np.square(found))) / np.mean(said) < 1.6


def test_missing_cells_of_several_tables_weigh_by_their_precision() -> None:
    of_part = np.array([0, 1, 1])
    tables = [
        Cells(np.arange(3), np.array([5.0, 6.0, 7.0, 100.0]), 4.0),
        Cells(of_part, np.array([5.0, 13.0, 110.0]), 2.0),
        Cells(of_part, np.array([5.0, 13.0]), 2.0),  # of a column without missing cells
    ]
    count, noise = missing_cells(tables)
    assert count == pytest.approx((100.0 / 16.0 + 110.0 / 4.0) / (1.0 / 16.0 + 1.0 / 4.0))
    assert noise == pytest.approx((1.0 / 16.0 + 1.0 / 4.0) ** -0.5)
    assert missing_cells(tables[2:]) == (0.0, 0.0)


@pytest.mark.parametrize("sub_bins", [2, 4, 12])
def test_a_column_without_any_cell_is_measured_in_some_cells(sub_bins: int) -> None:
    schema = column(sub_bins=sub_bins)
    marginals = Marginals(Groups.single(schema.fine), np.zeros((1, 1), dtype=np.int32))
    counts = np.full(marginals.cells, -50)
    counts[-1] = 3000
    first = Measurement(marginals, Noise.GAUSSIAN, 5.0, counts)
    found = unsure_columns(schema, np.arange(1), first, 3000.0, public=True)
    for cells in found.values():
        assert len(cells) == marginals.cells
        np.testing.assert_array_equal(np.unique(cells), np.arange(cells.max() + 1))
        assert (cells[:-1] != cells[-1]).all()
