"""Numbers for people: as many digits as the interval bears. `assets/numbers.js` is the twin."""

from __future__ import annotations

import math

MOST = 4
"""The most decimals of a percentage."""


def decimals(share: float, low: float | None = None, high: float | None = None) -> int:
    """Decimals of a percentage.

    With an interval, the first digit of half of it is the last that is shown; without one, three
    digits of the share itself are.
    """
    known = low is not None and high is not None and high > low
    size = 50.0 * (high - low) if known and high is not None and low is not None else 100.0 * share
    if size <= 0.0:
        return 1 if known else 0
    first = math.floor(math.log10(size) + 1e-9)
    return min(max((0 if known else 2) - first, 0), MOST)


def percent(share: float, low: float | None = None, high: float | None = None) -> str:
    """A share for people; a small one is told from zero."""
    places = decimals(share, low, high)
    text = f"{100.0 * share:.{places}f}"
    if share > 0.0 and float(text) == 0.0:
        return f"< {10.0**-places:.{places}f} %"
    return f"{text} %"


def half_interval(share: float, low: float | None, high: float | None) -> str:
    """`± 0.5` in points of a percentage; empty where the error is unknown or nothing.

    An interval that ends at 0 or at 100 % is not even on both sides, so its ends are said.
    """
    if low is None or high is None or not high > low:
        return ""
    places = decimals(share, low, high)
    if low <= 0.0 or high >= 1.0:
        return f"{100.0 * low:.{places}f}–{100.0 * high:.{places}f}"
    return f"± {50.0 * (high - low):.{places}f}"
