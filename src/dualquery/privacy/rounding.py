"""Figures of privacy as text. A promise is never printed smaller than it is."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal

MOST_DIGITS = 15
"""Decimal digits that survive a double and back."""


def rounded_up(value: float, digits: int = 6) -> str:
    """A number in this many significant digits, rounded up, for numbers of zero or more.

    Guarantee: ``float(rounded_up(value)) >= value``. ε, δ, μ and ρ are costs, so all of them are
    printed by this function; `:g` rounds to the nearest figure, which may be the smaller one.
    A number that needs no more digits than these is printed as it is.
    """
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    # The shortest text that reads back as this double: 0.1 stays 0.1, although the double is a
    # little above it. A text that is not below the shortest one reads back as no smaller double.
    shortest = Decimal(repr(float(value)))
    context = Context(prec=min(digits, MOST_DIGITS), rounding=ROUND_CEILING)
    return f"{float(context.plus(shortest)):.{digits}g}"


def decimals_up(value: float, decimals: int = 1) -> str:
    """A number with this many decimals, rounded up, and commas between thousands."""
    shortest = Decimal(repr(float(value)))
    return f"{shortest.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_CEILING):,}"
