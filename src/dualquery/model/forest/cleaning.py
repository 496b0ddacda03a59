"""What one noisy pair table says of its pair: a table without most of the noise.

The cells of a table that an edge follows are few records each, and the noise of a measurement is
tens of records. Fitted as they are, empty cells fill up and a strong relation weakens. But a table
as a whole shows its kind: most cells of a code and its category are empty, and two numbers depend
smoothly. So several ways of cleaning are tried, and the table says itself which one is best.

*Thinning* makes that choice without a second measurement. From counts y with noise σ come
y′ = y + γσG and y″ = y − σG/γ, G fresh standard normals. Their noises are independent. So each way
cleans y′, and the one whose result is nearest to y″ is taken. All of it is a function of what was
released, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

Floats = npt.NDArray[np.float64]

ORDERS = (0, 1, 2, 4)
"""Degrees of smooth tables that are tried: 0 is independence, 1 the dependence of two normals."""

CUTS = (2.0, 3.0)
"""Cells that are nearer to what is expected of them than so many σ are taken to be as expected."""

THINNED, GAMMA = 4, 0.7
"""How often a table is thinned, and γ: y′ has the noise σ√(1 + γ²)."""

EMPTY = 1e-6
"""An empty cell keeps this part of what independence gives it, so that every logarithm exists."""

RAKED, CLOSE = 40, 1e-4
"""The most sweeps that fit a table to its margins; they stop once no row is off by this share."""

CLIMBED = 8
"""The most steps of a smooth fit (Levenberg and Marquardt's)."""

LEAST_DAMPED, MOST_DAMPED = 1e-3, 1e3
"""How much steps are shortened: the less, the better the last one was."""


def cleaned(
    counts: Floats, rows: Floats, columns: Floats, noise: float, *, ordered: bool
) -> Floats:
    """The table with most of its noise taken off; its margins are the ones given.

    Args:
        counts: noisy counts, a row per code of the first attribute.
        rows: the counts of its codes, which are known better.
        columns: those of the second attribute's codes, with the same sum.
        noise: the standard deviation of a count.
        ordered: whether the codes of both attributes have an order.
    """
    generator = np.random.default_rng(0)  # no privacy hangs on it, and a replay finds it again
    missed: dict[tuple[int | None, float], float] = {}
    for _ in range(THINNED):
        thinned = noise * generator.standard_normal(counts.shape)
        more = noise * np.sqrt(1.0 + GAMMA**2)
        tried = _ways(counts + GAMMA * thinned, rows, columns, more, ordered)
        for way, table in tried:
            away = float(((counts - thinned / GAMMA - table) ** 2).sum())
            missed[way] = missed.get(way, 0.0) + away
    best = min(missed, key=lambda way: missed[way])
    made = dict(_ways(counts, rows, columns, noise, ordered))
    return made[best]


def _ways(
    counts: Floats, rows: Floats, columns: Floats, noise: float, ordered: bool
) -> Iterator[tuple[tuple[int | None, float], Floats]]:
    """Every way of cleaning, named by the degree of its smooth table (None: all cells empty) and
    by its cut."""
    nothing = np.zeros_like(counts)
    yield (None, -np.inf), _cut(counts, nothing, rows, columns, -np.inf)
    for cut in CUTS:
        yield (None, cut), _cut(counts, nothing, rows, columns, cut * noise)
    for order in ORDERS if ordered else ORDERS[:1]:
        smooth = smoothed(counts, rows, columns, noise, order)
        yield (order, np.inf), smooth
        yield (order, CUTS[-1]), _cut(counts, smooth, rows, columns, CUTS[-1] * noise)


def _cut(counts: Floats, expected: Floats, rows: Floats, columns: Floats, least: float) -> Floats:
    """The expected table, except where counts are further away from it than `least`."""
    found = np.where(np.abs(counts - expected) > least, counts, expected)
    floor = EMPTY * np.outer(rows, columns) / rows.sum()
    return raked(np.maximum(found, 0.0) + floor, rows, columns)


def raked(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """The table with these margins that has the same ratios of odds."""
    from dualquery.model.forest._cleaning_kernels import rake

    found: Floats = np.array(table, dtype=np.float64)
    rake(found, rows, columns, RAKED, CLOSE)
    return found


def smoothed(counts: Floats, rows: Floats, columns: Floats, noise: float, order: int) -> Floats:
    """The nearest table whose log-odds are a polynomial of the two orders.

    Codes are placed where a normal distribution with the same shares has them. Degree 1 is then the
    table of two normal variables that were cut into bins.

    Args:
        counts: noisy counts.
        rows: counts of the first attribute's codes.
        columns: those of the second's.
        noise: the standard deviation of a count.
        order: the degree of the polynomial in each of them.
    """
    from dualquery.model.forest._cleaning_kernels import slopes_beyond_margins

    expected: Floats = np.outer(rows, columns) / rows.sum()
    if not order:
        return expected
    first, second = (_powers(shares / shares.sum(), order) for shares in (rows, columns))
    powers = np.einsum("ai,bj->ijab", first, second).reshape(-1, *counts.shape).copy()
    slopes = np.empty((len(powers), counts.size))
    at: Floats = np.zeros(len(powers))
    table = expected
    damping = LEAST_DAMPED
    value = _squares(counts, table, noise)
    for _ in range(CLIMBED):
        slopes_beyond_margins(powers, table, 3, slopes)
        slopes /= noise
        square = slopes @ slopes.T + np.eye(len(at))
        uphill = slopes @ ((counts - table) / noise).ravel() - at
        while damping < MOST_DAMPED:
            step = np.linalg.solve(square + damping * np.diag(np.diag(square)), uphill)
            logs = np.tensordot(at + step, powers, 1)
            moved = raked(expected * np.exp(np.clip(logs - logs.max(), -200, 0)), rows, columns)
            reached = _squares(counts, moved, noise) + float(((at + step) ** 2).sum())
            if reached <= value:
                break
            damping *= 10.0
        else:
            break
        done = value - reached < 1e-3 * value
        at, table, value = at + step, moved, reached
        damping = max(damping / 10.0, LEAST_DAMPED)
        if done:
            break
    return table


def _squares(counts: Floats, table: Floats, noise: float) -> float:
    return float((((counts - table) / noise) ** 2).sum())


def _powers(shares: Floats, order: int) -> Floats:
    """Orthonormal polynomials of the places of codes; a column per degree from 1."""
    shares = np.maximum(shares, 1e-9)
    middle = (np.cumsum(shares) - 0.5 * shares) / shares.sum()
    order = min(order, len(shares) - 1)
    root = np.sqrt(shares)[:, None]
    every = ndtri(np.clip(middle, 1e-6, 1.0 - 1e-6))[:, None] ** np.arange(order + 1)
    found: Floats = (np.linalg.qr(every * root)[0] / root)[:, 1:]
    return found
