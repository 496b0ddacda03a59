from __future__ import annotations

import math

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.privacy.neighbours import ROUNDING_CHARGE, Neighbours, rounding_charge


def test_replacement_has_twice_the_range_of_adding() -> None:
    beta = np.array([0.5, 3.0])
    assert np.array_equal(Neighbours.REPLACE_ONE.ideal_range(beta, 10), 2 * beta / 10)
    assert np.array_equal(Neighbours.ADD_REMOVE.ideal_range(beta, 10), beta / 10)


def test_temperature_zero_is_free_and_everything_else_pays_for_rounding() -> None:
    ranges = Neighbours.REPLACE_ONE.draw_range([0.0, 1.0], 100)
    assert ranges[0] == 0.0
    assert ranges[1] == 0.02 + ROUNDING_CHARGE


def test_the_rounding_charge_grows_with_exponents_beyond_the_covered_ones() -> None:
    assert rounding_charge([1.0, 2048.0, 4096.0]).tolist() == [2.0**-36, 2.0**-36, 2.0**-35]


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_a_bad_temperature_is_named(value: float) -> None:
    with pytest.raises(ParameterError, match=f"temperature = {value:g}"):
        Neighbours.REPLACE_ONE.draw_range([1.0, value], 10)


@pytest.mark.parametrize("rows", [0, -3, 2.5, math.nan, math.inf])
def test_bad_rows_are_named(rows: float) -> None:
    with pytest.raises(ParameterError, match="rows ="):
        Neighbours.ADD_REMOVE.draw_range([1.0], rows)  # type: ignore[arg-type]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ParameterError, match=r"'swap'.*replace-one, add-remove"):
        Neighbours.parse("swap")
