"""Validation of privacy parameters: every message carries the name and the value."""

from __future__ import annotations

import math
from typing import SupportsFloat

from dualquery.base.errors import ParameterError


def as_float(name: str, value: SupportsFloat) -> float:
    """A finite float, or an error that names the parameter."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"expected {name}={value!r} to be a finite number") from None
    if not math.isfinite(number):
        raise ParameterError(f"expected {name}={number} to be finite")
    return number


def positive(name: str, value: SupportsFloat) -> float:
    """A finite float above zero."""
    number = as_float(name, value)
    if number <= 0.0:
        raise ParameterError(f"expected {name}={number:g} > 0")
    return number


def not_negative(name: str, value: SupportsFloat) -> float:
    """A finite float of at least zero."""
    number = as_float(name, value)
    if number < 0.0:
        raise ParameterError(f"expected {name}={number:g} >= 0")
    return number


def whole(name: str, value: SupportsFloat, least: int = 1) -> int:
    """An integer of at least `least`; 3.0 counts as 3, 3.5 does not."""
    number = as_float(name, value)
    if number != math.floor(number):
        raise ParameterError(f"expected {name}={number:g} to be a whole number")
    exact = value if isinstance(value, int) else int(number)
    if exact < least:
        raise ParameterError(f"expected {name}={exact} >= {least}")
    return int(exact)


def probability(name: str, value: SupportsFloat) -> float:
    """A float strictly between 0 and 1."""
    number = as_float(name, value)
    if not 0.0 < number < 1.0:
        raise ParameterError(f"expected 0 < {name}={number:g} < 1")
    return number
