"""Figures of privacy as text. A promise is never printed smaller than it is."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal

MOST_DIGITS = 15
"""Decimal digits that survive a double and back."""


def rounded_up(value: float, digits: int = 6) -> str:
    """A number of at least zero in so many significant digits, never below the number itself.

    Guarantee: ``float(rounded_up(value)) >= value``. ε, δ, μ and ρ are costs, so all of them are
    printed by this function; `:g` rounds to the nearest figure, which may be the smaller one.
    A number that needs no more digits is printed as it is.
    """
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    # The shortest text that reads back as this double: 0.1 stays 0.1, although the double is a
    # little above it. What is not below this text is not below the double once it is read.
    shortest = Decimal(repr(float(value)))
    context = Context(prec=min(digits, MOST_DIGITS), rounding=ROUND_CEILING)
    return f"{float(context.plus(shortest)):.{digits}g}"


def decimals_up(value: float, decimals: int = 1) -> str:
    """A number with so many decimals and commas between thousands, never below the number."""
    shortest = Decimal(repr(float(value)))
    return f"{shortest.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_CEILING):,}"
