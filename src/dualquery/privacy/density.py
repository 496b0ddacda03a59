"""A density fitted to noisy contrasts of a column's parts: public, a function of releases alone.

Between neighbouring knots the density is constant. It is the most likely one, given all that was
measured, under a prior that does not like jumps of its logarithm. Small jumps cost their square.
Large ones, as at the end of a gap or at a value that many share, cost only their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int64 = NDArray[np.int64]

JUMP = 0.3
"""A jump of the logarithm that is nothing unusual."""

_ITERATIONS = 30
_TRIES = 8
_ENOUGH = 1e-3
"""The fit ends where a step gains less log-likelihood than this."""

_LONGEST_STEP = 3.0
_LOWEST, _HIGHEST = -80.0, 80.0


@dataclass(frozen=True, eq=False)
class Measured:
    """Contrasts of the parts between some borders, with noise of scale 1.

    Attributes:
        borders: inner borders of the parts, in rising order.
        rows: one contrast per row, one part per column.
        found: the noisy contrasts.
    """

    borders: Int64
    rows: Floats
    found: Floats


@dataclass(frozen=True, eq=False)
class Density:
    """A density that is constant between knots.

    Attributes:
        knots: in rising order, the ends of the column included.
        logs: the logarithm of the density after each knot but the last.
    """

    knots: Int64
    logs: Floats

    @classmethod
    def flat(cls, end: int, total: float) -> Density:
        """The same density everywhere."""
        return cls(np.array([0, end]), np.array([np.log(total / end)]))

    def refined(self, knots: Int64) -> Density:
        """The same density with more knots."""
        found = np.unique(np.concatenate([self.knots, knots]))
        return Density(found, self.logs[np.searchsorted(self.knots, found[:-1], "right") - 1])

    @property
    def weights(self) -> Floats:
        """The weight between neighbouring knots."""
        return _weights(np.log(np.diff(self.knots)), self.logs)

    def quantiles(self, shares: Floats) -> Int64:
        """The borders below which these shares of the weight lie, rounded to whole steps."""
        below = np.concatenate([[0.0], np.cumsum(self.weights)])
        found: Int64 = np.rint(np.interp(shares * below[-1], below, self.knots)).astype(np.int64)
        return found


def fitted(start: Density, measured: Sequence[Measured]) -> Density:
    """The most likely density, by damped Newton steps from a start.

    Args:
        start: its knots include the borders of all measurements.
        measured: everything that was measured so far.
    """
    problem = _Problem.of(start.knots, measured)
    logs, damping = start.logs, 1e-2
    value = problem.value(logs)
    for _ in range(_ITERATIONS):
        slope, curvature = problem.slope_and_curvature(logs)
        scale = np.diag(curvature) + 1e-9
        for _ in range(_TRIES):
            step = np.linalg.solve(curvature + np.diag(damping * scale), -slope)
            step *= min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), 1e-300))
            tried = problem.value(logs + step)
            if tried <= value:
                break
            damping *= 5.0
        else:
            break
        gain, logs, value = value - tried, logs + step, tried
        damping = max(damping / 5.0, 1e-8)
        if gain < _ENOUGH:
            break
    return Density(start.knots, logs)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Least squares of contrasts that are linear in weights, and the price of jumps."""

    widths: Floats
    rows: Floats
    found: Floats

    @classmethod
    def of(cls, knots: Int64, measured: Sequence[Measured]) -> _Problem:
        rows = [one.rows[:, np.searchsorted(one.borders, knots[:-1], "right")] for one in measured]
        found = np.concatenate([one.found for one in measured])
        return cls(np.log(np.diff(knots)), np.vstack(rows), found)

    def value(self, logs: Floats) -> float:
        """Minus the log-likelihood, and the price of all jumps."""
        rest = self.rows @ _weights(self.widths, logs) - self.found
        jumps = np.abs(np.diff(logs)) / JUMP
        price = np.where(jumps < 1.0, 0.5 * jumps**2, jumps - 0.5)
        return float(0.5 * rest @ rest + price.sum())

    def slope_and_curvature(self, logs: Floats) -> tuple[Floats, Floats]:
        """The first derivatives, and a positive stand-in for the second ones."""
        weights = _weights(self.widths, logs)
        moved = self.rows * weights
        slope = moved.T @ (self.rows @ weights - self.found)
        curvature = moved.T @ moved
        jumps = np.diff(logs)
        stiff = 1.0 / (JUMP * np.maximum(JUMP, np.abs(jumps)))
        slope[:-1] -= stiff * jumps
        slope[1:] += stiff * jumps
        at = np.arange(len(jumps))
        curvature[at, at] += stiff
        curvature[at + 1, at + 1] += stiff
        curvature[at, at + 1] -= stiff
        curvature[at + 1, at] -= stiff
        return slope, curvature


def _weights(widths: Floats, logs: Floats) -> Floats:
    found: Floats = np.exp(np.clip(widths + logs, _LOWEST, _HIGHEST))
    return found
