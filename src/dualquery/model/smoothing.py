"""A smooth density through noisy counts of sub-bins, and of sub-bins that were counted together.

All matrices here are a few diagonals, plus one rank for each count of several sub-bins. So a step
costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

BENT = 100.0
"""How dear a tail that bends upwards is."""

PARTS = (0.9, 0.5, 0.2, 0.05)
"""Long tails that may be stiffer than the rest: each holds at most such a share of the rows."""

STEPS = 60
LONGEST = 3.0
"""Newton steps of a fit, and the most that the logarithm of a density changes in one."""


@dataclass(frozen=True, eq=False)
class Cells:
    """One table of a column: counts of sub-bins, or of several of them together.

    Attributes:
        of_part: per sub-bin, the cell that it is a part of.
        counts: per cell, its noisy count.
        noise: the standard deviation of their noise.
    """

    of_part: npt.NDArray[np.integer]
    counts: Floats
    noise: float


def pooled(tables: Sequence[Cells]) -> list[Cells]:
    """The same tables; those with the same cells are one, the mean of their counts.

    Args:
        tables: of one column.
    """
    found: list[Cells] = []
    for one in tables:
        alike = [i for i, other in enumerate(found) if np.array_equal(other.of_part, one.of_part)]
        if not alike:
            found.append(one)
            continue
        other = found[alike[0]]
        weight, own = other.noise**-2.0, one.noise**-2.0
        counts = (weight * other.counts + own * one.counts) / (weight + own)
        found[alike[0]] = Cells(one.of_part, counts, (weight + own) ** -0.5)
    return found


@dataclass(frozen=True, eq=False)
class Bins:
    """What is known about the bins of a column from elsewhere.

    Attributes:
        counts: per bin, about how many rows it has.
        noise: per bin, the standard deviation of that.
    """

    counts: Floats
    noise: Floats


@dataclass(frozen=True, eq=False)
class Observed:
    """What several tables of one column say together.

    Attributes:
        counts: per sub-bin, the mean of the counts that are about it alone.
        noise: per sub-bin, the standard deviation of that mean.
        members: per count of several sub-bins, a row that says of which.
        sums: those counts.
        sum_noise: the standard deviation of each.
    """

    counts: Floats
    noise: Floats
    members: Mask
    sums: Floats
    sum_noise: Floats

    @classmethod
    def of(cls, counts: Floats, noise: float, again: Sequence[Cells] = ()) -> Observed:
        """Put tables together.

        Args:
            counts: a noisy count per sub-bin.
            noise: the standard deviation of their noise.
            again: further tables.
        """
        precision = np.full(len(counts), noise**-2.0)
        pulled = counts * precision
        members, sums, sum_noise = [], [], []
        for one in again:
            alone = np.bincount(one.of_part)[one.of_part] == 1
            pulled[alone] += one.counts[one.of_part[alone]] * one.noise**-2.0
            precision[alone] += one.noise**-2.0
            for cell in np.unique(one.of_part[~alone]).tolist():
                members.append(one.of_part == cell)
                sums.append(one.counts[cell])
                sum_noise.append(one.noise)
        return cls(
            pulled / precision,
            precision**-0.5,
            np.array(members, dtype=bool).reshape(len(members), len(counts)),
            np.array(sums, dtype=np.float64),
            np.array(sum_noise, dtype=np.float64),
        )

    def with_bins(self, bin_of: npt.NDArray[np.integer], bins: Bins) -> Observed:
        """The same counts beside those of whole bins, which another source knows.

        Args:
            bin_of: per sub-bin, its bin.
            bins: what is known about them.
        """
        codes = np.flatnonzero(np.bincount(bin_of) > 1)  # a bin of one sub-bin spreads nothing
        return replace(
            self,
            members=np.vstack([self.members, bin_of == codes[:, None]]),
            sums=np.append(self.sums, bins.counts[codes]),
            sum_noise=np.append(self.sum_noise, bins.noise[codes]),
        )

    def without(self, rows: Floats) -> Observed:
        """The same counts of all other rows.

        Args:
            rows: per sub-bin, how many rows to leave out.
        """
        return replace(self, counts=self.counts - rows, sums=self.sums - self.members @ rows)

    def with_chance(self, expected: Floats) -> Observed:
        """The same counts as signs of a density, around which the rows fell by chance.

        Args:
            expected: per sub-bin, about how many rows are to be expected.
        """
        return replace(
            self,
            noise=np.sqrt(self.noise**2 + expected),
            sum_noise=np.sqrt(self.sum_noise**2 + self.members @ expected),
        )


@dataclass(frozen=True, eq=False)
class Chance:
    """How the rows of a table fell around a density, as far as counts show it.

    If a density expects m rows in a sub-bin, the number of rows has a variance of m. Noisy counts
    are conditions on these numbers.

    Attributes:
        counts: per sub-bin, the expected number of rows, given the noisy counts.
        open: its variance, given the counts of single sub-bins.
        members: per count of several sub-bins, of which it is.
        sum_noise: the standard deviation of each.
    """

    counts: Floats
    open: Floats
    members: Mask
    sum_noise: Floats

    @classmethod
    def of(cls, expected: Floats, observed: Observed) -> Chance:
        """Weigh a density against the counts.

        Args:
            expected: per sub-bin, the number of rows by the density; 0 if it says nothing.
            observed: the counts.
        """
        told = expected > 0.0
        noise = observed.noise**2
        weight = np.where(told, expected / (expected + noise), 0.0)
        counts = expected + weight * (observed.counts - expected)
        left = weight * noise
        whole = ~(observed.members & ~told).any(axis=1)
        members, sum_noise = observed.members[whole], observed.sum_noise[whole]
        found = cls(counts, left, members, sum_noise)
        away = found.told @ (observed.sums[whole] - members @ counts)
        return replace(found, counts=counts + left * away)

    @cached_property
    def told(self) -> Floats:
        """Per sub-bin, what one row more in each count of several says about it.

        Times what is open about a sub-bin, it is by how much the expected number of rows moves. The
        counts are heard together, because their sub-bins may overlap.
        """
        if not len(self.members):
            return np.zeros((len(self.open), 0))
        both = (self.members * self.open) @ self.members.T + np.diag(self.sum_noise**2)
        return np.asarray(np.linalg.solve(both, self.members).T, dtype=np.float64)

    def covariance(self, moves: Floats) -> Floats:
        """The covariances of figures, one per row, that move so with each row of the table."""
        pulled = moves * self.open
        found: Floats = pulled @ moves.T - (pulled @ self.told) @ (self.members @ pulled.T)
        return found


@dataclass(frozen=True, eq=False)
class Curvature:
    """How firmly counts hold the logarithm of a density: a matrix whose inverse is a covariance.

    Attributes:
        bands: its upper diagonals, the main one last.
        pulls: a row per rank that is added to them.
        weights: of those ranks.
    """

    bands: Floats
    pulls: Floats
    weights: Floats

    def solve(self, right: Floats) -> Floats:
        """What the inverse makes of a vector, or of the columns of a matrix."""
        from scipy.linalg import solveh_banded

        alone: Floats = solveh_banded(self.bands, right)
        if not len(self.pulls):
            return alone
        pulled = solveh_banded(self.bands, self.pulls.T)
        inner = np.diag(1.0 / self.weights) + self.pulls @ pulled
        found: Floats = alone - pulled @ np.linalg.solve(inner, self.pulls @ alone)
        return found

    @property
    def log_determinant(self) -> float:
        from scipy.linalg import cholesky_banded, solveh_banded

        found = 2.0 * float(np.log(cholesky_banded(self.bands)[-1]).sum())
        if not len(self.pulls):
            return found
        pulled = solveh_banded(self.bands, self.pulls.T)
        inner = np.eye(len(self.weights)) + self.weights[:, None] * (self.pulls @ pulled)
        return found + float(np.linalg.slogdet(inner)[1])


def differences(middles: Floats, order: int) -> Floats:
    """Differences at inner places, so that their squares add up to ∫ (f⁽ᵒʳᵈᵉʳ⁾)².

    Row i holds the factors of f[i] to f[i + order].

    Args:
        middles: where f is known.
        order: 2 for bends, 3 for changes of bends.
    """
    rows, at = np.ones((len(middles), 1)), middles
    for _ in range(order):
        gaps = np.diff(at)
        none = np.zeros((len(rows) - 1, 1))
        rows = (np.hstack([none, rows[1:]]) - np.hstack([rows[:-1], none])) / gaps[:, None]
        at = (at[1:] + at[:-1]) / 2.0
    return rows * np.sqrt(gaps)[:, None]


def squared(rows: Floats, dear: Floats, bands: int) -> Floats:
    """Σ dear·row·rowᵀ as so many upper diagonals, the main one last.

    Args:
        rows: as `differences` gives them.
        dear: a factor per row.
        bands: how many diagonals; at least as many as a row has factors.
    """
    width = rows.shape[1]
    found = np.zeros((bands, len(rows) + width - 1))
    for one in range(width):
        for other in range(one, width):
            product = dear * rows[:, one] * rows[:, other]
            found[bands - 1 - (other - one), other : other + len(rows)] += product
    return found


def applied(rows: Floats, f: Floats) -> Floats:
    """The difference of f that each row stands for."""
    windows = np.lib.stride_tricks.sliding_window_view(f, rows.shape[1])
    found: Floats = (rows * windows).sum(axis=1)
    return found


@dataclass(frozen=True, eq=False)
class _Fit:
    """One fit.

    Attributes:
        f: the logarithm of the density.
        shares: of the sub-bins.
        held: how firmly f is held.
        dear: how dear each difference of f was.
        likelihood: the logarithm of the (approximate) marginal likelihood.
    """

    f: Floats
    shares: Floats
    held: Curvature
    dear: Floats
    likelihood: float


class Smoothing:
    """Shares p = width·exp(f): squared distances from the counts, plus what f costs.

    f costs the square of its differences of one order: what has none of them is free. Where nothing
    of the column is seen, it costs to bend upwards.
    """

    def __init__(
        self, observed: Observed, total: float, widths: Floats, middles: Floats, order: int,
        tails: Mask,
    ) -> None:  # fmt: skip
        """Set the problem.

        Args:
            observed: the counts.
            total: the number of records.
            widths: of the sub-bins, on the scale of the column.
            middles: of the sub-bins, on that scale.
            order: of the differences that cost.
            tails: at which inner sub-bins the column is not seen.
        """
        self.counts, self.sums = observed.counts / total, observed.sums / total
        self.precision = (total / observed.noise) ** 2
        self.sum_precision = (total / observed.sum_noise) ** 2
        self.members = observed.members
        self.widths = widths
        self.rows, self.bends = differences(middles, order), differences(middles, 2)
        self.tails = tails

    def likeliest(
        self, used: Mask, stiffnesses: Floats, *, below: bool = False, above: bool = False
    ) -> tuple[Floats, Curvature]:
        """The shares of the stiffness with the largest (approximate) marginal likelihood.

        Args:
            used: which sub-bins are smooth; counts of the others say nothing about the density.
            stiffnesses: how dear differences are, from the stiffest.
            below: whether the lower tail is long; it may then be stiffer than the rest. One kink
                elsewhere, such as the smallest value of a Pareto distribution, would make the whole
                density soft, and a soft tail follows the noise.
            above: the same of the upper tail.
        """
        precision = np.where(used, self.precision, 0.0)
        whole = ~(self.members & ~used).any(axis=1)
        sums = np.where(whole, self.sum_precision, 0.0)
        f = np.full(len(self.counts), -np.log(self.widths.sum()))
        found = []
        for stiffness in stiffnesses:
            found.append(self._at(f, np.full(len(self.rows), stiffness), precision, sums))
            f = found[-1].f
        even = max(found, key=lambda one: one.likelihood)
        stiffer = stiffnesses[stiffnesses > even.dear[0]][::-2]  # every other one is fine enough
        tails = [tail[::-1] for tail in self._upper_tails(even.shares[::-1])] if below else []
        tails += self._upper_tails(even.shares) if above else []
        for tail in tails:
            f = even.f
            for stiffness in stiffer:
                found.append(self._at(f, np.where(tail, stiffness, even.dear), precision, sums))
                f = found[-1].f
        best = max(found, key=lambda one: one.likelihood)
        return best.shares, best.held

    def _upper_tails(self, shares: Floats) -> list[Mask]:
        """Which differences are about each upper tail."""
        beyond = np.cumsum(shares[::-1])[::-1] / shares.sum()
        firsts = {int((beyond > part).sum()) for part in PARTS}
        at = np.arange(len(self.rows))
        return [at >= first for first in sorted(firsts) if first < len(self.rows)]

    def _at(self, f: Floats, dear: Floats, precision: Floats, sums: Floats) -> _Fit:
        """The fit where differences are so dear."""
        f, cost = self._fit(f, dear, precision, sums)
        shares = self._shares(f)
        held = self._curvature(shares, precision, sums, dear)
        held.bands[-1] += 1e-12 * held.bands[-1].max()
        likelihood = -cost + 0.5 * float(np.log(dear).sum()) - 0.5 * held.log_determinant
        return _Fit(f, shares, held, dear, likelihood)

    def _fit(
        self, f: Floats, dear: Floats, precision: Floats, sums: Floats
    ) -> tuple[Floats, float]:
        """Newton's method, damped where a step would go uphill."""
        cost, damping = self._cost(f, dear, precision, sums), 1e-3
        for _ in range(STEPS):
            shares = self._shares(f)
            away = precision * (shares - self.counts)
            away += (sums * (self.members @ shares - self.sums)) @ self.members
            rough, bent = applied(self.rows, f), applied(self.bends, f)
            up = np.where(self.tails & (bent > 0.0), BENT, 0.0)
            slope = shares * away
            for rows, pulled in ((self.rows, dear * rough), (self.bends, up * bent)):
                for place in range(rows.shape[1]):
                    slope[place : place + len(rows)] += rows[:, place] * pulled
            held = self._curvature(shares, precision, sums, dear)
            held.bands[-self.bends.shape[1] :] += squared(self.bends, up, self.bends.shape[1])
            held.bands[-1] += np.maximum(shares * away, 0.0)
            before, main = cost, held.bands[-1].copy()
            while damping < 1e12:
                held.bands[-1] = main + damping + 1e-12 * main.max()
                step = np.clip(held.solve(-slope), -LONGEST, LONGEST)
                cost = self._cost(f + step, dear, precision, sums)
                if cost < before:
                    break
                damping *= 4.0
            else:
                return f, before
            f, damping = f + step, max(damping / 4.0, 1e-9)
            if before - cost < 1e-7 * (1.0 + cost):
                break
        return f, cost

    def _curvature(
        self, shares: Floats, precision: Floats, sums: Floats, dear: Floats
    ) -> Curvature:
        bands = squared(self.rows, dear, self.rows.shape[1])
        bands[-1] += precision * shares**2
        kept = sums > 0.0
        return Curvature(bands, self.members[kept] * shares, sums[kept])

    def _cost(self, f: Floats, dear: Floats, precision: Floats, sums: Floats) -> float:
        shares = self._shares(f)
        squares = float((precision * (self.counts - shares) ** 2).sum())
        squares += float((sums * (self.sums - self.members @ shares) ** 2).sum())
        bent = applied(self.bends, f)
        up = float((BENT * bent**2)[self.tails & (bent > 0.0)].sum())
        return 0.5 * (squares + float((dear * applied(self.rows, f) ** 2).sum()) + up)

    def _shares(self, f: Floats) -> Floats:
        shares: Floats = self.widths * np.exp(np.minimum(f, 50.0))
        return shares
