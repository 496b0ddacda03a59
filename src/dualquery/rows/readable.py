"""Edges that people would write: round numbers, months, hours. Private side: they cover cells."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dualquery.domain.types import DAY, Number, Type, number_of

Numbers = npt.NDArray[np.float64]

CROWDED = 0.5
"""If one of the equal bins holds more than this share of the cells, edges follow quantiles."""

_NATURAL = (9, 10, 12, 23, 24, 31, 52, 53, 59, 60, 99, 100, 365, 366)
"""Where counts of minutes, days, weeks and points end: such a largest number is an end itself."""

_MONTHS = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12_000, 60_000)
_DAYS = (1, 2, 7, 14)
_SECONDS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, DAY)


def readable_edges(kind: Type, numbers: Numbers, bins: int) -> tuple[list[Number], bool]:
    """Edges that cover all cells, and whether they follow the quantiles of the cells.

    Args:
        kind: the type of the cells.
        numbers: the numbers that stand for the cells (`domain.types`), at least two different ones.
        bins: about how many bins.
    """
    low, high = float(numbers.min()), float(numbers.max())
    ends = math.floor(low), math.ceil(high)
    if kind is Type.TIME:
        return _steps(0.0, float(DAY), bins, _SECONDS), False
    if kind is Type.TIMESTAMP:
        if high - low >= bins * DAY:
            days = _days(math.floor(low / DAY), math.ceil(high / DAY), bins)
            return [day * DAY for day in days], False
        return _steps(low, high, bins, _SECONDS), False
    if kind is Type.DATE:
        return [*_days(int(low), int(high) + 1, bins)], False
    equal = _round_edges(low, high, bins)
    counts, _ = np.histogram(numbers, equal)
    if len(equal) > 2 and counts.max() > CROWDED * len(numbers):
        quantiles = _round_quantiles(numbers, bins)
        if len(quantiles) > 2:
            return _of_kind(quantiles, kind, *ends), True
    return _of_kind(equal, kind, *ends), False


def _of_kind(edges: list[float], kind: Type, first: int, last: int) -> list[Number]:
    if kind is Type.WHOLE:
        low, high = math.floor(edges[0]), math.ceil(edges[-1])
        inner = (round(edge) for edge in edges[1:-1])
        if last in _NATURAL and low >= 0:
            low, high = (1 if low == 0 and first >= 1 else low), last
        return sorted({low, high, *(edge for edge in inner if low < edge < high)})
    return [int(edge) if edge.is_integer() else edge for edge in edges]


def _round_edges(low: float, high: float, bins: int) -> list[float]:
    """Round numbers as edges that cover the range, so that they show less of its exact ends."""
    step = 10.0 ** math.floor(math.log10((high - low) / bins))
    for factor in (1, 2, 5, 10):
        width = factor * step
        first, last = math.floor(low / width), math.ceil(high / width)
        if last - first <= bins + 1:
            break
    return [round(float(i * width), 12) for i in np.arange(first, last + 1)]


def _round_quantiles(numbers: Numbers, bins: int) -> list[float]:
    """Numbers of two digits near the quantiles, and round ends that cover the range."""
    inner = np.quantile(numbers, np.arange(1, bins) / bins)
    tail = np.quantile(numbers, 0.99)  # what is far out should not share a bin with the crowd
    low, high = float(numbers.min()), float(numbers.max())
    # Amounts and counts begin at zero, whatever the smallest one is.
    first = 0.0 if low >= 0.0 else _rounded(low, math.floor)
    last = _rounded(high, math.ceil)
    found = [first]
    cuts = [*(float(q) for q in inner), float(tail)]
    if low < 0.0 < high:  # debts do not share a bin with zeros and amounts
        cuts = sorted([*cuts, 0.0])
    for cut in cuts:
        near = _rounded(cut, round)
        if found[-1] < near < last:
            found.append(near)
    if last <= found[-1]:
        last = math.nextafter(found[-1], math.inf)
    return [*found, last]


def _rounded(number: float, way: Callable[[float], int]) -> float:
    """The number with two digits, rounded one way."""
    if number == 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(number))) - 1)
    return round(way(number / unit) * unit, 12)


def _steps(low: float, high: float, bins: int, steps: tuple[int, ...]) -> list[Number]:
    """Multiples of the smallest step that gives few enough bins."""
    for step in steps:
        first, last = math.floor(low / step), math.floor(high / step) + 1
        if last - first <= bins + 1:
            break
    if high % step == 0 and last - first > 1:
        last -= 1  # the last bin is closed
    return [step * place for place in range(first, last + 1)]


def _days(low: int, high: int, bins: int) -> list[int]:
    """Days that begin a month, quarter or year; for a short time, every so many days."""
    if high - low <= 2 * bins:
        return [int(edge) for edge in _steps(low, high, bins, _DAYS)]
    first, last = _month(low), _month(high - 1) + 1
    for step in _MONTHS:
        begin, end = first // step, -(-last // step)
        if end - begin <= (bins + 1 if step > 1 else 2.4 * bins):  # two years, by months
            break
    return [_first_day(step * place) for place in range(begin, end + 1)]


def _month(day: int) -> int:
    """Months since the year 1."""
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=day)
    return 12 * (date.year - 1) + date.month - 1


def _first_day(month: int) -> int:
    year = min(max(month // 12 + 1, 1), 9999)
    day = number_of(Type.DATE, datetime.date(year, month % 12 + 1, 1))
    assert isinstance(day, int)
    return day
