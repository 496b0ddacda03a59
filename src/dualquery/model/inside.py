"""Where values lie inside their bins, from the noisy counts of sub-bins.

A sub-bin's count is noisy, and most sub-bins of a long tail hold noise alone. Taken as they are, a
few counts of noise at the far end would multiply a mean. So a smooth density is fitted: the
logarithm of the density along the column, with the least bends that the counts ask for. Where
counts drown in the noise, at both ends, it may only fall off faster and faster, as the tails of
most distributions do on such a scale. Counts that stand out from the smooth density by far more
than the noise (heaps at round numbers, a column's zeros) are kept as they are.

Inside a logarithmic sub-bin the density goes on as it does from one neighbour to the other: money
falls off there by half or more, and values that were spread evenly would be too large.

All of it is a function of what was measured, so it is public.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.domain.sub_bins import SubBins

Floats = npt.NDArray[np.float64]

HEAP = 4.5
"""Counts further from the smooth density than so many standard deviations are kept."""

NEIGHBOURS = 3
"""How many sub-bins on either side a heap is compared with."""

SEEN = 3.0
"""A tail is seen as far as its counts add up to so many standard deviations of their noise."""

BENT = 100.0
"""How dear a tail that bends upwards is."""

STIFFNESS = 10.0 ** np.arange(2, -9, -1)
"""How dear bends are, from the stiffest: the likeliest is taken."""

STEPS = 60
LONGEST = 3.0
"""Newton steps of a fit, and the most that the logarithm of a density changes in one."""


STEEPEST = 3.0
"""The most by which the logarithm of a density changes inside one sub-bin."""


@dataclass(frozen=True, eq=False)
class Surety:
    """How surely the shares of sub-bins are known.

    Attributes:
        spread: the share of all records that each sub-bin has.
        heaps: which sub-bins stand out, and are kept as they were measured.
        noise: the standard deviation of the noise of one sub-bin, as a share of all records.
        rows: the number of records.
        curved: how firmly the counts hold the logarithm of the smooth density: the upper
            diagonals of a matrix, the main one last; None if nothing was smoothed.
    """

    spread: Floats
    heaps: npt.NDArray[np.bool_]
    noise: float
    rows: float
    curved: Floats | None

    def variance(self, moves: Floats) -> float:
        """The variance of a figure that moves so with the share of each sub-bin.

        A smooth density is off by what the noise left open, and by what chance did to the rows of
        the table around any density. A count that was kept as it is, is off by its noise.
        """
        from scipy.linalg import solveh_banded

        kept = self.heaps if self.curved is not None else np.ones(len(moves), dtype=bool)
        found = float((np.where(kept, moves * self.noise, 0.0) ** 2).sum())
        if self.curved is None:
            return found
        smooth = np.where(kept, 0.0, moves)
        pulled = smooth * self.spread
        found += float((smooth**2 * self.spread).sum()) / self.rows
        return found + max(float(pulled @ solveh_banded(self.curved, pulled)), 0.0)


@dataclass(frozen=True, eq=False)
class Spread:
    """How values are spread inside bins.

    Attributes:
        shares: per sub-bin, its share of its bin; those of a bin add up to one.
        tilt: per sub-bin, by how much the logarithm of the density rises inside it, on the
            sub-bin's own scale; 0 if values are spread evenly there.
        surety: how surely the shares are known.
    """

    shares: Floats
    tilt: Floats
    surety: Surety


def spread_inside(counts: Floats, noise: float, total: float, sub_bins: SubBins) -> Spread:
    """How values are spread, by the noisy counts of their sub-bins.

    Args:
        counts: noisy counts, one per sub-bin.
        noise: the standard deviation of their noise.
        total: the number of records.
        sub_bins: of the column.
    """
    smooth, heaps, curved = _smoothed(counts, noise, total, sub_bins)
    spread = np.where(heaps, np.maximum(counts, 0.0), smooth)
    bin_of = sub_bins.bin_of
    whole = np.bincount(bin_of, spread)[bin_of]
    plain = sub_bins.plain
    shares: Floats = np.where(whole > 0.0, spread / np.where(whole > 0.0, whole, 1.0), plain)
    surety = Surety(spread / total, heaps, noise / total, total, curved)
    return Spread(shares, _tilts(spread, sub_bins), surety)


def _tilts(spread: Floats, sub_bins: SubBins) -> Floats:
    """How steep the density is inside each logarithmic sub-bin, from its neighbours.

    The slope is the mean of those to either side, at most twice the flatter one. It is 0 at a peak
    and in a gap: nothing goes on there.
    """
    low, high = sub_bins.ends
    curved = sub_bins.logarithmic
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.where(curved, np.log(high / low), 0.0)
        middle = np.where(curved, np.sqrt(np.abs(low * high)), np.abs(low + high) / 2.0)
        # Densities on the scale of the logarithm, of even sub-bins in their middle.
        dense = np.where(curved, spread / np.abs(length), spread / (high - low) * middle)
        along, height = np.log(middle), np.log(dense)
        slope = np.diff(height) / np.diff(along)
    # Where a density is zero, or changes its sign, nothing is known of the slope.
    slope[~np.isfinite(slope) | (np.diff(np.sign(low + high)) != 0.0)] = np.nan
    left, right = np.append(np.nan, slope), np.append(slope, np.nan)
    left, right = np.where(np.isnan(left), right, left), np.where(np.isnan(right), left, right)
    flatter = np.minimum(np.abs(left), np.abs(right))
    steep = np.minimum(np.abs(left + right) / 2.0, 2.0 * flatter)
    found = np.where(np.sign(left) == np.sign(right), np.sign(left) * steep, 0.0)
    tilt: Floats = np.where(curved, np.nan_to_num(found) * length, 0.0)
    return np.clip(tilt, -STEEPEST, STEEPEST)


def _smoothed(
    counts: Floats, noise: float, total: float, sub_bins: SubBins
) -> tuple[Floats, npt.NDArray[np.bool_], Floats | None]:
    """Smooth counts, which sub-bins stand out from them, and how firmly they are held."""
    at = _along(sub_bins)
    widths, middles = np.diff(at), (at[1:] + at[:-1]) / 2.0
    heaps = np.zeros(len(counts), dtype=bool)
    if len(counts) <= NEIGHBOURS:
        return np.maximum(counts, 0.0), heaps, None
    bends = _bends(middles)
    problem = _Problem(counts / total, noise / total, widths, bends, _tails(counts, noise))
    heaps = _heaps(counts, noise, widths)
    found, curved = problem.likeliest(~heaps)
    standing = np.abs(counts - total * found) > HEAP * noise
    if (standing != heaps).any() and not standing.all():
        heaps = standing
        found, curved = problem.likeliest(~heaps)
    return total * found, heaps, curved


def _along(sub_bins: SubBins) -> Floats:
    """The edges on the scale of the column, from 0 to 1: logarithmic if it has wide bins."""
    low, high = sub_bins.ends
    edges = np.append(low, high[-1])
    if sub_bins.logarithmic.any():
        nearest = np.minimum(np.abs(low), np.abs(high))[sub_bins.logarithmic].min()
        edges = np.arcsinh(edges / nearest)
    scaled: Floats = (edges - edges[0]) / (edges[-1] - edges[0])
    return scaled


def _bends(middles: Floats) -> Floats:
    """Second differences at the inner middles, so that their squares add up to ∫ f''².

    Row i holds the three factors of f[i], f[i + 1] and f[i + 2].
    """
    gaps = np.diff(middles)
    span = (gaps[1:] + gaps[:-1]) / 2.0
    left, right = 1.0 / (gaps[:-1] * span), 1.0 / (gaps[1:] * span)
    scaled: Floats = np.stack([left, -left - right, right], axis=1) * np.sqrt(span)[:, None]
    return scaled


def _heaps(counts: Floats, noise: float, widths: Floats) -> npt.NDArray[np.bool_]:
    """Counts that stand out from their neighbours, so that no smooth density is bent to them.

    A count stands out if it differs from what the median density of its neighbours gives by more
    than the noise explains, and by more than half.
    """
    padded = np.pad(counts / widths, NEIGHBOURS, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1)
    expected = widths * np.median(windows, axis=1)
    away = np.abs(counts - expected)
    found: npt.NDArray[np.bool_] = (away > HEAP * noise) & (away > 0.5 * np.abs(expected))
    return found


def _tails(counts: Floats, noise: float) -> npt.NDArray[np.bool_]:
    """At which inner sub-bins the column is no longer seen, from either end."""
    places = np.arange(1, len(counts) + 1)
    right = np.cumsum(counts[::-1]) > SEEN * noise * np.sqrt(places)
    left = np.cumsum(counts) > SEEN * noise * np.sqrt(places)
    last = len(counts) - 1 - int(np.argmax(right)) if right.any() else 0
    first = int(np.argmax(left)) if left.any() else len(counts) - 1
    inner = np.arange(1, len(counts) - 1)
    found: npt.NDArray[np.bool_] = (inner > last) | (inner < first)
    return found


class _Problem:
    """Shares p = width·exp(f): squared distance from the counts, plus bends of f.

    All matrices here have two diagonals beside the main one, so a step costs next to nothing.
    """

    def __init__(
        self,
        counts: Floats,
        noise: float,
        widths: Floats,
        bends: Floats,
        tails: npt.NDArray[np.bool_],
    ) -> None:
        self.counts = counts
        self.precision = 1.0 / noise**2
        self.widths = widths
        self.bends = bends
        self.tails = tails

    def likeliest(self, used: npt.NDArray[np.bool_]) -> tuple[Floats, Floats | None]:
        """The shares of the stiffness with the largest (approximate) marginal likelihood.

        Returns:
            The shares, and the curvature there: its inverse is the covariance of log densities.
        """
        from scipy.linalg import cholesky_banded

        f = np.full(len(self.counts), -np.log(self.widths.sum()))
        best = -np.inf
        kept = self._shares(f)
        held: Floats | None = None
        for stiffness in STIFFNESS:
            f, cost = self._fit(f, stiffness, used)
            shares = self._shares(f)
            curved = self._squared(np.full(len(self.bends), stiffness, dtype=np.float64))
            curved[2] += used * self.precision * shares**2
            curved[2] += 1e-12 * curved[2].max()
            size = 2.0 * float(np.log(cholesky_banded(curved)[2]).sum())
            likelihood = -cost + 0.5 * len(self.bends) * np.log(stiffness) - 0.5 * size
            if likelihood > best:
                best, kept, held = float(likelihood), shares, curved
        return kept, held

    def _fit(
        self, f: Floats, stiffness: float, used: npt.NDArray[np.bool_]
    ) -> tuple[Floats, float]:
        """Newton's method, damped where a step would go uphill."""
        from scipy.linalg import solveh_banded

        cost, damping = self._cost(f, stiffness, used), 1e-3
        for _ in range(STEPS):
            shares = self._shares(f)
            away = used * self.precision * (shares - self.counts)
            bent = self._bent(f)
            dear: Floats = stiffness + BENT * (self.tails & (bent > 0.0)).astype(np.float64)
            slope = shares * away
            for place in range(3):
                slope[place : place + len(bent)] += self.bends[:, place] * dear * bent
            curved = self._squared(dear)
            curved[2] += used * self.precision * shares**2 + np.maximum(shares * away, 0.0)
            before = cost
            while damping < 1e12:
                damped = curved.copy()
                damped[2] += damping + 1e-12 * curved[2].max()
                step = np.clip(solveh_banded(damped, -slope), -LONGEST, LONGEST)
                cost = self._cost(f + step, stiffness, used)
                if cost < before:
                    break
                damping *= 4.0
            else:
                return f, before
            f, damping = f + step, max(damping / 4.0, 1e-9)
            if before - cost < 1e-7 * (1.0 + cost):
                break
        return f, cost

    def _cost(self, f: Floats, stiffness: float, used: npt.NDArray[np.bool_]) -> float:
        shares = self._shares(f)
        squares = self.precision * float((used * (self.counts - shares) ** 2).sum())
        bent = self._bent(f)
        dear = stiffness + BENT * (self.tails & (bent > 0.0))
        return 0.5 * (squares + float((dear * bent**2).sum()))

    def _shares(self, f: Floats) -> Floats:
        shares: Floats = self.widths * np.exp(np.minimum(f, 50.0))
        return shares

    def _bent(self, f: Floats) -> Floats:
        """How much f bends at each inner sub-bin."""
        windows = np.lib.stride_tricks.sliding_window_view(f, 3)
        bent: Floats = (self.bends * windows).sum(axis=1)
        return bent

    def _squared(self, dear: Floats) -> Floats:
        """Σ dear·bend·bendᵀ as its upper diagonals, the main one last."""
        n = len(self.counts)
        found = np.zeros((3, n))
        for one in range(3):
            for other in range(one, 3):
                product = dear * self.bends[:, one] * self.bends[:, other]
                found[2 - (other - one), other : other + n - 2] += product
        return found
