"""Orders by radix are those of NumPy's sort by comparison."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.base.order import distinct, lexical_order


@pytest.mark.parametrize("most", [3, 1 << 15, 1 << 20])
@pytest.mark.parametrize("rows", [0, 1, 500])
def test_the_order_is_that_of_lexsort(most: int, rows: int) -> None:
    columns = np.random.default_rng(rows).integers(-1, most, (3, rows)).astype(np.int32)
    expected = np.lexsort(columns[::-1])
    np.testing.assert_array_equal(lexical_order(columns), expected)
    np.testing.assert_array_equal(lexical_order([columns[0]]), np.lexsort((columns[0],)))


@pytest.mark.parametrize("values", [[], [2.0], [3.0, 1.0, 3.0, -0.0, 0.0, 1.0]])
def test_distinct_numbers_are_those_of_numpy(values: list[float]) -> None:
    np.testing.assert_array_equal(distinct(np.array(values)), np.unique(values))
