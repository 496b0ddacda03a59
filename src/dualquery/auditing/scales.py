"""Is the noise that is really drawn as large as the statement says? Private side."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from dualquery.auditing.playing import Floats, Setting, Taken, deviations, log_chances
from dualquery.auditing.report import Finding
from dualquery.game.query_player import QueryPlayer
from dualquery.privacy.accountants import epsilon_by_accountant
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.rare import Noisy
from dualquery.privacy.sources import RandomSource

SURE = 1e-6
"""If correct noise would look like this less often than that, the audit says that it is not."""

DRAWS = 100_000
"""Draws whose frequencies are compared with the exact weights."""

SPREAD = 3.0
"""The largest exponent of these draws: weights then differ by a factor of several hundred."""

EXPECTED = 10.0
"""Actions that are expected to be drawn less often than that are counted together."""


def look(setting: Setting, source: RandomSource) -> Finding:
    """Play the plan once, and compare released counts with exact ones.

    Args:
        setting: the plan and the table.
        source: where draws and noise come from.
    """
    taken = setting.take(0, source)
    spent = epsilon_by_accountant(setting.events(taken), setting.mechanism.delta)
    stated = spent[setting.mechanism.accountant]
    asked = setting.mechanism.epsilon or math.inf
    within = stated is not None and stated <= asked * (1.0 + 1e-9)
    noise = _standardised(taken)
    spread = math.sqrt(float(np.mean(noise**2))) if len(noise) else 1.0
    tests = [_noise_chance(one, first) for one, (first, _) in _pairs(taken)]
    tests += [_mean_chance(noise)] if len(noise) else []
    tests.append(drawn := _draw_chance(setting, source.for_round(len(tests) + 1)))
    least = min(1.0, min(tests) * len(tests))
    told = (
        f"{len(noise):,} noisy counts: noise {spread:.4f} of what is stated; {DRAWS:,} draws: "
        f"p = {drawn:.2g}; least p = {least:.2g}; epsilon = {stated:.4f} of {asked:g}"
    )
    figures = {
        "noisy_counts": len(noise), "noise_of_stated": spread, "draws": DRAWS, "draws_p": drawn,
        "least_p": least, "epsilon_stated": stated,
    }  # fmt: skip
    return Finding("d", "noise and draws", within and least >= SURE, told, figures)


def _pairs(taken: Taken) -> list[tuple[Noisy, tuple[np.ndarray, np.ndarray]]]:
    return list(zip(taken.measured, taken.counts, strict=True))


def _variances(one: Noisy) -> Floats:
    """Of the noise in each cell, as stated."""
    if isinstance(one, Measurement):
        return np.full(len(one.counts), one.variance)
    return deviations(one) ** 2 + 1.0 / 12.0


def _standardised(taken: Taken) -> Floats:
    """All noise of a run, in units of its stated standard deviation."""
    parts = [(one.counts - first) / np.sqrt(_variances(one)) for one, (first, _) in _pairs(taken)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _noise_chance(one: Noisy, exact: np.ndarray) -> float:
    """How often noise of the stated scale is at least as far from it, on either side."""
    squares = float(np.sum((one.counts - exact) ** 2 / _variances(one)))
    cells = len(one.counts)
    if isinstance(one, Measurement) and one.noise is Noise.LAPLACE:
        # The fourth moment of Laplace noise is 6 times the square of its variance.
        found = 2.0 * stats.norm.sf(abs(squares - cells) / math.sqrt(5.0 * cells))
    else:
        found = 2.0 * min(stats.chi2.sf(squares, cells), stats.chi2.cdf(squares, cells))
    return min(1.0, float(found))


def _mean_chance(noise: Floats) -> float:
    """How often noise around zero has a mean at least as far from it."""
    return float(2.0 * stats.norm.sf(abs(float(np.sum(noise))) / math.sqrt(len(noise))))


def _draw_chance(setting: Setting, source: RandomSource) -> float:
    """How often draws from the exact weights have frequencies at least as far from them."""
    counted, actions = setting.counted[0], setting.actions
    played = np.full(len(actions.queries), 0.5)
    reference = setting.plan.budget.rows
    apart = np.abs((2.0 * counted.counts - counted.rows) / (2.0 * reference)).max()
    temperature = SPREAD / max(float(apart), 1e-3)
    player = QueryPlayer(counted, reference, log_prior=actions.log_prior)
    drawn = player.draw(temperature, played, DRAWS, source)
    chances = np.exp(log_chances(counted, played, temperature, reference, actions.log_prior))
    times = np.bincount(drawn.queries + len(played) * drawn.negated, minlength=len(chances))
    many = chances * DRAWS >= EXPECTED
    expected = np.append(chances[many], chances[~many].sum()) * DRAWS
    found = np.append(times[many], times[~many].sum())
    used = expected >= EXPECTED
    if used.sum() < 2:
        return 1.0
    # What is too rare to be tested is left out of both, in proportion.
    scaled = expected[used] * found[used].sum() / expected[used].sum()
    return float(stats.chisquare(found[used], scaled).pvalue)
