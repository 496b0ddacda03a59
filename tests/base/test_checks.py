"""The validator: what it lets through, in which type, and the one style of its messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum

import numpy as np
import pytest

from dualquery.base.checks import choice, not_negative, one_of, positive, probability, whole
from dualquery.base.errors import ParameterError


class Colour(StrEnum):
    RED = "red"
    DARK_BLUE = "dark-blue"


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (positive, 0, "x = 0; expected a number above 0"),
        (positive, math.nan, "x = nan; expected a finite number"),
        (positive, "many", "x = 'many'; expected a finite number"),
        (positive, None, "x = None; expected a finite number"),
        (not_negative, -0.5, "x = -0.5; expected 0 or more"),
        (not_negative, math.inf, "x = inf; expected a finite number"),
        (whole, 0, "x = 0; expected 1 or more"),
        (whole, np.int64(-3), "x = -3; expected 1 or more"),
        (whole, 2.5, "x = 2.5; expected a whole number"),
        (whole, 10**400, "x = 1" + "0" * 78 + "…; expected a finite number"),
        (probability, 0, "x = 0; expected a number between 0 and 1"),
        (probability, 1.0, "x = 1; expected a number between 0 and 1"),
    ],
)
def test_what_is_wrong_is_named_first_and_then_what_is_right(
    check: Callable[[str, object], object], value: object, message: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        check("x", value)
    assert str(refused.value) == message


def test_what_is_right_comes_back_in_its_proper_type() -> None:
    assert positive("x", "0.5") == 0.5
    assert not_negative("x", 0) == 0.0
    assert probability("x", np.float32(0.25)) == 0.25
    found = [
        whole("x", 3.0),
        whole("x", np.int64(3)),
        whole("x", 2**60 + 1),
        whole("x", 0, least=0),
    ]
    assert found == [3, 3, 2**60 + 1, 0]
    assert {type(value) for value in found} == {int}


def test_names_out_of_a_list() -> None:
    assert one_of("engine", "dask", ("local", "dask")) == "dask"
    assert choice("colour", "dark-blue", Colour) is Colour.DARK_BLUE
    with pytest.raises(ParameterError) as refused:
        choice("colour", "green", Colour)
    assert str(refused.value) == "colour = 'green'; expected one of red, dark-blue"
