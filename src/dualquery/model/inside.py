"""Where values lie inside their bins, from the noisy counts of sub-bins.

A sub-bin's count is noisy, and most sub-bins of a long tail hold noise alone. Taken as they are, a
few counts of noise at the far end would multiply a mean. So a smooth density is fitted: the
logarithm of the density along the column, as smooth as the counts allow. On a plain scale that
means few bends. On the logarithmic scale of a long tail it means that bends change little: the
log-normal distribution and powers of x have the same bend everywhere. So what the many small
values show about the bend says how the tail goes on. Where counts drown in the noise, at both ends,
the logarithm may only fall off faster and faster, as the tails of most distributions do on such a
scale. Counts that stand out from the smooth density by far more than the noise (heaps at round
numbers, a column's zeros) are kept as they are.

A density says how many rows are to be expected; the rows of a table fall around that by chance. A
count says more about them than the density does where chance is larger than the noise. So a density
is not bent to what chance alone explains, and then both are weighed: with little noise, shares are
the counts.

Inside a sub-bin the density goes on as it does from one neighbour to the other: money falls off in
a logarithmic one by half or more, and values that were spread evenly would be too large.

If the schema says that values reach the ends of a long column, one row is known to lie at each far
end. A density that ends there would lack it: it is what is to be expected of all other rows.

All of it is a function of what was measured, so it is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.domain.sub_bins import SubBins
from dualquery.model.smoothing import (
    Bins,
    Cells,
    Chance,
    Curvature,
    Observed,
    Smoothing,
    pooled,
)

Floats = npt.NDArray[np.float64]

HEAP = 4.5
"""Counts further from the smooth density than so many standard deviations are kept. Before there is
a density, neighbours say what is to be expected, and a count must be off by half of that, too."""

NEIGHBOURS = 3
"""How many sub-bins on either side a heap is compared with."""

SEEN = 3.0
"""A tail is seen as far as its counts add up to so many standard deviations of their noise."""

STIFFNESS: Floats = np.logspace(2, -8, 11)
"""How dear bends are, from the stiffest: the likeliest is taken."""

TAIL_STIFFNESS: Floats = np.logspace(2, -11, 14)
"""How dear changes of bends are on a logarithmic scale."""

STEEPEST = 3.0
"""The most by which the logarithm of a density changes inside one sub-bin."""

LONGEST_EXPONENT = 700.0
"""Its power of e is still a number."""

SHARPEST = 50.0
"""The same where hardly a row is expected beside the one that is known to lie at the end."""


@dataclass(frozen=True, eq=False)
class Surety:
    """How surely the shares of sub-bins are known.

    Attributes:
        spread: the share of all records that each sub-bin has.
        heaps: which sub-bins stand out, and are kept as they were measured.
        noise: per sub-bin, the standard deviation of the noise of its count, as a share of all
            records.
        rows: the number of records.
        curved: how firmly the counts hold the logarithm of the smooth density; None if nothing
            was smoothed.
        chance: what is left open about how the rows fell around any density.
    """

    spread: Floats
    heaps: npt.NDArray[np.bool_]
    noise: Floats
    rows: float
    curved: Curvature | None
    chance: Chance

    def variance(self, moves: Floats) -> float:
        """The variance of a figure that moves so with the share of each sub-bin.

        A smooth density is off by what the noise left open. The rows of the table fell around any
        density by chance, and counts show a part of that. A count that was kept as it is, is off by
        its noise.
        """
        return max(float(self.covariance(moves[None, :])[0, 0]), 0.0)

    def covariance(self, moves: Floats) -> Floats:
        """The covariances of several figures, one per row of `moves`."""
        kept = self.heaps if self.curved is not None else np.ones(moves.shape[1], dtype=bool)
        noisy = np.where(kept, moves * self.noise, 0.0)
        found: Floats = noisy @ noisy.T
        if self.curved is None:
            return found
        smooth = np.where(kept, 0.0, moves)
        pulled = smooth * self.spread
        found = found + self.chance.covariance(smooth) / self.rows**2
        return found + pulled @ self.curved.solve(pulled.T)


@dataclass(frozen=True, eq=False)
class Spread:
    """How values are spread inside bins.

    Attributes:
        shares: per sub-bin, its share of its bin; those of a bin add up to one.
        tilt: per sub-bin, by how much the logarithm of the density rises inside it, on the
            sub-bin's own scale; 0 if values are spread evenly there, or if nothing goes on.
        surety: how surely the shares are known.
    """

    shares: Floats
    tilt: Floats
    surety: Surety


def spread_inside(
    counts: Floats, noise: float, total: float, sub_bins: SubBins, again: Sequence[Cells] = (),
    bins: Bins | None = None,
) -> Spread:  # fmt: skip
    """How values are spread, by the noisy counts of their sub-bins.

    Args:
        counts: noisy counts, one per sub-bin.
        noise: the standard deviation of their noise.
        total: the number of records.
        sub_bins: of the column.
        again: further tables of the column.
        bins: what is known about whole bins from elsewhere.
    """
    again = pooled(again)
    observed = Observed.of(counts, noise, again)
    if bins is not None:
        observed = observed.with_bins(sub_bins.bin_of, bins)
    known = _known_rows(sub_bins)
    observed = observed.without(known)
    smooth, heaps, curved = _smoothed(observed, total, sub_bins, _unseen(counts, noise, again))
    chance = Chance.of(np.where(heaps, 0.0, smooth), observed)
    fallen = np.maximum(chance.counts, 0.0)
    others = np.where(heaps, np.maximum(observed.counts, 0.0), fallen)
    spread = others + known
    bin_of = sub_bins.bin_of
    whole = np.bincount(bin_of, spread)[bin_of]
    plain = sub_bins.plain
    shares: Floats = np.where(whole > 0.0, spread / np.where(whole > 0.0, whole, 1.0), plain)
    surety = Surety(spread / total, heaps, observed.noise / total, total, curved, chance)
    return Spread(shares, _with_rows(known, others, _tilts(others, sub_bins), sub_bins), surety)


def _known_rows(sub_bins: SubBins) -> Floats:
    """Per sub-bin, how many rows are known to lie at its far end: one where a long tail ends."""
    known = np.zeros(len(sub_bins))
    if sub_bins.reached:
        below, above = sub_bins.long
        known[0] += below
        known[-1] += above
    return known


def _with_rows(known: Floats, others: Floats, tilt: Floats, sub_bins: SubBins) -> Floats:
    """The tilts with which sub-bins have the means of their known row and their others together."""
    tilt = tilt.copy()
    for at in np.flatnonzero(known).tolist():
        low, high = (float(ends[at]) for ends in sub_bins.ends)
        length, outwards = abs(np.log(high / low)), np.sign(high + low)
        if length + SHARPEST > LONGEST_EXPONENT:
            continue  # over hundreds of orders of magnitude no tilt has that mean
        mean = _tilted_mean(outwards * tilt[at], length)
        wanted = (others[at] * mean + np.exp(length)) / (others[at] + 1.0)
        tilt[at] = outwards * _tilt_of_mean(wanted, length)
    return tilt


def _tilted_mean(tilt: float, length: float) -> float:
    """The mean of e^{length·u}, where the density of u in [0, 1] rises by so much in all."""
    return _mean_power(tilt + length) / _mean_power(tilt)


def _mean_power(exponent: float) -> float:
    """∫ e^{exponent·u} du over [0, 1]."""
    return float(np.expm1(exponent) / exponent) if abs(exponent) > 1e-9 else 1.0


def _tilt_of_mean(mean: float, length: float) -> float:
    """The inverse of `_tilted_mean`; the nearer end if no tilt up to `SHARPEST` has the mean."""
    from scipy.optimize import brentq

    if mean >= _tilted_mean(SHARPEST, length):
        return SHARPEST
    if mean <= _tilted_mean(-SHARPEST, length):
        return -SHARPEST
    return float(brentq(lambda tilt: _tilted_mean(tilt, length) - mean, -SHARPEST, SHARPEST))


def _tilts(spread: Floats, sub_bins: SubBins) -> Floats:
    """How steep the density is inside each sub-bin, on the sub-bin's own scale."""
    low, high = sub_bins.ends
    curved = sub_bins.logarithmic
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.where(curved, np.log(high / low), 0.0)
        middle = np.where(curved, np.sqrt(np.abs(low * high)), np.abs(low + high) / 2.0)
        # Densities on the scale of the logarithm, of even sub-bins in their middle.
        dense = np.where(curved, spread / np.abs(length), spread / (high - low) * middle)
        long = _slopes(np.log(middle), np.log(dense), np.diff(np.sign(low + high)) != 0.0)
        even = _slopes((low + high) / 2.0, np.log(spread / (high - low)))
    tilt: Floats = np.where(curved, long * length, even * (high - low))
    return np.clip(tilt, -STEEPEST, STEEPEST)


def _slopes(along: Floats, height: Floats, apart: npt.NDArray[np.bool_] | None = None) -> Floats:
    """How steep a curve is at each place, from its neighbours.

    The slope is the mean of those to either side, at most twice the flatter one. It is 0 at a peak
    and in a gap: nothing goes on there.

    Args:
        along: where the places are.
        height: of the curve; not finite where it is not known.
        apart: between which neighbours the curve does not go on.
    """
    slope = np.diff(height) / np.diff(along)
    slope[~np.isfinite(slope) if apart is None else ~np.isfinite(slope) | apart] = np.nan
    left, right = np.append(np.nan, slope), np.append(slope, np.nan)
    left, right = np.where(np.isnan(left), right, left), np.where(np.isnan(right), left, right)
    flatter = np.minimum(np.abs(left), np.abs(right))
    steep = np.minimum(np.abs(left + right) / 2.0, 2.0 * flatter)
    return np.nan_to_num(np.where(np.sign(left) == np.sign(right), np.sign(left) * steep, 0.0))


def _smoothed(
    observed: Observed, total: float, sub_bins: SubBins, tails: npt.NDArray[np.bool_]
) -> tuple[Floats, npt.NDArray[np.bool_], Curvature | None]:
    """Smooth counts, which sub-bins stand out from them, and how firmly they are held."""
    at = _along(sub_bins)
    widths, middles = np.diff(at), (at[1:] + at[:-1]) / 2.0
    counts = observed.counts
    heaps = np.zeros(len(counts), dtype=bool)
    if len(counts) <= NEIGHBOURS:
        return np.maximum(counts, 0.0), heaps, None
    low, _ = sub_bins.ends
    below = bool((sub_bins.logarithmic & (low < 0.0)).any())
    above = bool((sub_bins.logarithmic & (low > 0.0)).any())
    order, stiffness = (3, TAIL_STIFFNESS) if below or above else (2, STIFFNESS)
    expected = _expected(counts, widths)
    away = np.abs(counts - expected)
    blurred = observed.with_chance(np.maximum(expected, 0.0))
    heaps = (away > HEAP * blurred.noise) & (away > 0.5 * np.abs(expected))
    # Twice: the first fit says how large chance is, and what stands out.
    for last in (False, True):
        problem = Smoothing(blurred, total, widths, middles, order, tails)
        found, curved = problem.likeliest(
            ~heaps, stiffness, below=below and last, above=above and last
        )
        expected = total * found
        blurred = observed.with_chance(expected)
        standing = np.abs(counts - expected) > HEAP * blurred.noise
        if not standing.all():
            heaps = standing
    return expected, heaps, curved


def _along(sub_bins: SubBins) -> Floats:
    """The edges on the scale of the column, from 0 to 1: logarithmic if it has wide bins.

    Around zero, as far as the first edge beside it, there is no logarithm.
    """
    low, high = sub_bins.ends
    edges = np.append(low, high[-1])
    if sub_bins.logarithmic.any():
        inner = np.minimum(np.abs(low), np.abs(high))
        edges = np.arcsinh(edges / inner[inner > 0.0].min())
    scaled: Floats = (edges - edges[0]) / (edges[-1] - edges[0])
    return scaled


def _expected(counts: Floats, widths: Floats) -> Floats:
    """What the median density of its neighbours gives each sub-bin."""
    padded = np.pad(counts / widths, NEIGHBOURS, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1)
    expected: Floats = widths * np.median(windows, axis=1)
    return expected


def _unseen(counts: Floats, noise: float, again: Sequence[Cells]) -> npt.NDArray[np.bool_]:
    """At which inner sub-bins the column is no longer seen by any table, from either end."""
    inner = np.arange(1, len(counts) - 1)
    found = np.ones(len(inner), dtype=bool)
    for one in (Cells(np.arange(len(counts)), counts, noise), *again):
        cell, firsts = np.unique(one.of_part, return_index=True)
        lasts = len(counts) - 1 - np.unique(one.of_part[::-1], return_index=True)[1]
        order = np.argsort(firsts)
        ordered, firsts, lasts = one.counts[cell[order]], firsts[order], lasts[order]
        limit = SEEN * one.noise * np.sqrt(np.arange(1, len(ordered) + 1))
        left = np.cumsum(ordered) > limit
        right = np.cumsum(ordered[::-1]) > limit
        begin = lasts[int(np.argmax(left))] if left.any() else len(counts) - 1
        end = firsts[::-1][int(np.argmax(right))] if right.any() else 0
        found &= (inner > end) | (inner < begin)
    return found
