"""How many true figures lie in the stated 95 % intervals, by class. NOT PRIVATE.

One share over all figures hides what people look at: most cells are nearly empty, and most pairs of
columns hardly depend. So figures are counted by the number of records in the true cell, and by how
strongly the columns depend in truth. A class without figures is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SIZES = ("0", "1-4", "5-19", "20-99", "100-999", "1000+")
"""Classes by the number of records in the true cell, or in the true group of a mean."""

_FIRST_OF_SIZE = np.array([5.0, 20.0, 100.0, 1000.0])

STRENGTHS = ("weakest half", "next 40 %", "strongest tenth")
"""Classes of pairs by their dependence in truth. A triple belongs where its strongest pair does."""

STRONGEST, WEAKEST = 0.1, 0.5
"""The share of pairs in the last class, and that in the first."""

EMPTY = "empty cells"
ALL = "all"

CLASSES = (
    ALL,
    *STRENGTHS,
    *(f"{name}, {EMPTY}" for name in STRENGTHS),
    *(f"size {name}" for name in SIZES),
)
"""Every class that a kind of figure can have. Classes by strength count cells that hold records;
their empty cells are classes of their own, because there are many, and most are easy."""

KINDS = (
    "one-way cells",
    "two-way cells",
    "three-way cells",
    "conditional shares",
    "means by group",
    "correlations",
)

ROUNDING = 1e-12
"""Shares that agree up to this are equal."""


@dataclass(frozen=True)
class Held:
    """How many figures of one class there are, and how many of them lie in their intervals."""

    figures: int
    inside: int

    @property
    def share(self) -> float:
        """The share of the figures that lie in their intervals."""
        return self.inside / self.figures


Coverage = dict[str, dict[str, Held]]
"""By kind of figure, then by class; classes and kinds without figures are not there."""


def sizes_of(records: Floats) -> Ints:
    """The class of each cell by its number of records; weights may make this a fraction."""
    above = 1 + np.searchsorted(_FIRST_OF_SIZE, records, side="right")
    return np.where(records > 0.0, above, 0)


def strengths_of(dependence: Floats) -> Ints:
    """The class of each pair by its dependence in truth; ties stay in order."""
    count = len(dependence)
    strongest = max(1, int(STRONGEST * count))
    weakest = int(WEAKEST * count)
    found = np.ones(count, dtype=np.int64)
    order = np.argsort(-dependence, kind="stable")
    found[order[count - weakest :]] = 0
    found[order[:strongest]] = 2
    return found


def counted(
    truth: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, records: npt.ArrayLike
) -> Ints:
    """Figures and figures inside their intervals, by size: an array of two rows.

    All are numbers or arrays of the same shape.

    Args:
        truth: the true figures.
        low: the lower end of each interval; NaN where the release states none, and infinite where
            it holds the figure for impossible.
        high: the upper end.
        records: how many records each figure is about.
    """
    truth, low, high, records = (np.ravel(one) for one in (truth, low, high, records))
    known = ~(np.isnan(low) | np.isnan(high))
    inside = known & (truth >= low - ROUNDING) & (truth <= high + ROUNDING)
    size = sizes_of(records)
    return np.stack(
        [np.bincount(size[chosen], minlength=len(SIZES)) for chosen in (known, inside)]
    ).astype(np.int64)


def by_class(
    parts: Sequence[Ints], strengths: Sequence[int] | None = None, *, sized: bool = True
) -> dict[str, Held]:
    """The counts of many tables together, by class.

    Args:
        parts: of each table, as `counted` returns them.
        strengths: the class of each table by strength; None if it has none, as a single column.
        sized: whether the figures have a size.
    """
    if not parts:
        return {}
    every = np.stack(parts)
    found = {ALL: every.sum(axis=(0, 2))}
    if strengths is not None:
        of = np.asarray(strengths)
        for number, name in enumerate(STRENGTHS):
            own = every[of == number].sum(axis=0)
            found[name] = own[:, 1:].sum(axis=1)
            found[f"{name}, {EMPTY}"] = own[:, 0]
    if sized:
        total = every.sum(axis=0)
        found |= {f"size {name}": total[:, number] for number, name in enumerate(SIZES)}
    return {
        name: Held(int(found[name][0]), int(found[name][1]))
        for name in CLASSES
        if name in found and found[name][0]
    }
