"""How surely a release knows means and quantiles, as far as numbers inside bins decide them."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.sub_bins import SubBins
from dualquery.release.asking.inside import Numbers
from dualquery.release.within import Within

ROWS = 4000
EDGES = [0.0, 10.0, 20.0, 50.0]


def measured(noise: float, seed: int = 0) -> tuple[Numbers, np.ndarray]:
    """Values that lie evenly in bins of equal shares, and what noisy counts say about them."""
    attribute = Attribute.numeric("x", EDGES)
    random = np.random.default_rng(seed)
    code = np.repeat(np.arange(3), [1000, 1000, 2000])
    edges = np.array(EDGES)
    values = edges[code] + random.random(ROWS) * np.diff(edges)[code]
    parts = SubBins.of(attribute)
    counts = np.histogram(values, parts.edges)[0] + random.normal(0.0, noise, len(parts))
    within = Within.measured_as(parts, counts, noise, float(ROWS))
    return Numbers.of(attribute, within, "a mean"), values


@pytest.mark.parametrize("part", [0.02, 0.5])
def test_rows_of_a_condition_lie_in_their_bins_by_chance(part: float) -> None:
    """Counts are nearly exact, so the rest is chance: a draw of rows without replacement."""
    numbers, values = measured(0.5)
    every = np.array([0.25, 0.25, 0.5])
    random = np.random.default_rng(1)
    code = np.searchsorted(EDGES, values, side="right") - 1
    groups = np.diff(np.searchsorted(code, np.arange(4)))
    off, below = [], []
    wanted = 0.8
    border = numbers.quantile(every, wanted)
    for _ in range(800):
        taken = np.concatenate(
            [
                random.choice(np.flatnonzero(code == c), int(part * groups[c]), False)
                for c in (0, 1, 2)
            ]
        )
        off.append(values[taken].mean() - values.mean())
        below.append((values[taken] < border).mean())
    joint = part * every
    whole = numbers.variance_of_mean(every, every)
    assert whole < 0.2 * np.var(off) or part == 0.5
    assert numbers.variance_of_mean(joint, every) - whole == pytest.approx(np.var(off), rel=0.2)
    more = numbers.variance_of_share(joint, every, wanted)
    more -= numbers.variance_of_share(every, every, wanted)
    assert more == pytest.approx(np.var(below), rel=0.2)


def test_a_mean_is_as_unsure_as_the_smooth_density_and_not_as_the_noise() -> None:
    """Raw noise of all sub-bins would say three times as much."""
    every = np.array([0.25, 0.25, 0.5])
    away, said = [], []
    for seed in range(25):
        numbers, values = measured(40.0, seed)
        code = np.searchsorted(EDGES, values, side="right") - 1
        true = np.bincount(code, values) / np.bincount(code)
        away.append(float(every @ (numbers.mean - true)))
        said.append(numbers.variance_of_mean(every, every))
    ratio = np.sqrt(np.mean(np.square(away)) / np.mean(said))
    assert 0.6 < ratio < 1.5


def test_nothing_is_said_where_nothing_was_measured() -> None:
    attribute = Attribute.numeric("x", EDGES)
    numbers = Numbers.of(attribute, Within.unmeasured(attribute), "a mean")
    every = np.array([0.25, 0.25, 0.5])
    assert numbers.variance_of_mean(every, every) == 0.0
    assert numbers.variance_of_share(every, every, 0.5) == 0.0


def test_a_condition_may_grow_more_frequent_inside_bins_as_it_does_between_them() -> None:
    """Larger numbers satisfy it more often: the group's means inside bins are off by that much."""
    numbers, values = measured(0.5)
    code = np.searchsorted(EDGES, values, side="right") - 1
    often = 0.2 + values / 100.0
    every = np.bincount(code) / ROWS
    joint = np.bincount(code, often) / ROWS
    supposed = float(joint @ numbers.mean) / joint.sum()
    missed = float(often @ values / often.sum()) - supposed
    alike = np.full(3, 0.4) * every
    more = numbers.variance_of_mean(joint, every) - numbers.variance_of_mean(alike, every)
    assert missed > 0.5
    assert np.sqrt(more) == pytest.approx(missed, rel=0.2)
    border = numbers.quantile(joint, 0.6)
    below = float(often[values < border].sum() / often.sum()) - 0.6
    more = numbers.variance_of_share(joint, every, 0.6)
    more -= numbers.variance_of_share(alike, every, 0.6)
    assert np.sqrt(more) == pytest.approx(abs(below), rel=0.35)
    # A condition on the column itself is a question of bins.
    only = np.where(np.arange(3) < 2, every, 0.0)
    assert not numbers._slopes(only, every).any()
