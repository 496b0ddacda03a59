"""Boosting for queries: its promise by enumeration, its parts against plain twins, its median."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.boosting import Boosting, Prices, PrivatePart, Ramp, Settings, synopsis
from dualquery.baselines.product import Uniform
from dualquery.oracles.exhaustive import Exhaustive
from dualquery.privacy.accountants import get_accountant
from dualquery.privacy.sources import SeededSource
from dualquery.workloads.counts import Counted
from tests.baselines.exact import hockey_stick, log_laplace, log_rounded_gaussian
from tests.baselines.test_mwem import ASKED, ROWS, TABLES, counts_of, neighbours, wide
from tests.baselines.test_projection import twin
from tests.privacy.test_enumeration import log_weights

TWO = Settings(rounds=2, samples=1, records=3, share=0.5)
MEASURED = np.arange(-3, ROWS + 4)
RAMP = Ramp(accurate=0, width=ROWS)


@cache
def answered(query: int, measured: int) -> np.ndarray:
    """What the synopsis of one measured query answers."""
    shares = np.array([measured / ROWS])
    return synopsis(ASKED.take(np.array([query])), shares, 3, Exhaustive()).answers_to(ASKED)


def log_transcripts(table: tuple[int, ...], prices: Prices) -> np.ndarray:
    """Log-probability of every (query, measurement, query, measurement)."""
    counted = counts_of(table)
    private = PrivatePart(counted, prices)
    law = log_laplace if prices.noise == "laplace" else log_rounded_gaussian

    @cache
    def chances(*badness: int) -> np.ndarray:
        logs = log_weights(private.weigh(np.array(badness)))[::2]
        return logs - np.logaddexp.reduce(logs)

    found = []
    for first in range(len(ASKED)):
        for measured in MEASURED:
            start = -np.log(len(ASKED)) + law(measured - counted.counts[first], prices.scale)
            badness = RAMP.badness(counted, answered(first, int(measured)))
            for second, chance in enumerate(chances(*badness.tolist())):
                noise = law(MEASURED - counted.counts[second], prices.scale)
                found.append(start + chance + noise)
    return np.concatenate(found)


def worst_loss(prices: Prices) -> float:
    logs = [log_transcripts(table, prices) for table in TABLES]
    return max(float(np.max(logs[i] - logs[j])) for i, j in neighbours())


def test_no_transcript_tells_neighbours_apart_by_more_than_the_pure_epsilon() -> None:
    prices = Prices.of(3.0, 0.0, ROWS, TWO)
    stated = prices.cost(0.0, private=True).epsilon
    assert 3.0 - 1e-5 <= stated <= 3.0
    assert 0.6 * stated <= worst_loss(prices) <= stated
    assert worst_loss(replace(prices, scale=prices.scale / 2.0)) > stated
    assert worst_loss(replace(prices, slope=prices.slope * 3.0)) > stated
    many = Prices.of(3.0, 0.0, ROWS, Settings(rounds=2, samples=4, share=0.5))
    assert many.cost(0.0, private=True).epsilon <= 3.0


def test_the_divergence_of_neighbours_is_below_the_delta_of_the_accountant() -> None:
    prices = Prices.of(1.0, 1e-2, ROWS, TWO)
    logs = [log_transcripts(table, prices) for table in TABLES]
    for epsilon in (0.3, 1.0):
        largest = max(hockey_stick(logs[i], logs[j], epsilon) for i, j in neighbours())
        allowed = get_accountant("gaussian").delta(prices.events, epsilon)
        assert largest <= allowed * (1 + 1e-9)


def test_a_record_moves_badness_by_at_most_one() -> None:
    ramp = Ramp(accurate=3, width=20)
    answers = np.array([0.0, 0.31, 0.5, 1.0])
    found = [
        ramp.badness(Counted(np.full(4, count, dtype=np.int64), 100), answers)
        for count in range(101)
    ]
    assert np.abs(np.diff(found, axis=0)).max() == 1
    assert (np.min(found), np.max(found)) == (0, 20)
    assert found[31].tolist() == [20, 0, 16, 20]


def test_the_events_are_draws_of_growing_range_and_measurements() -> None:
    prices = Prices.of(1.0, 1e-6, 10_000, Settings(rounds=4, samples=30))
    events = prices.events
    assert events.draws.tolist() == [30] * 4
    wanted = 2.0 * prices.slope / 10_000 * np.arange(4)
    np.testing.assert_allclose(events.ranges, wanted, rtol=1e-6)
    assert [one.l2 for one in events.measurements] == pytest.approx([np.sqrt(30)] * 4)
    assert events.after == (1, 2, 3, 4)
    assert 1.0 - 1e-6 <= prices.cost(1e-6, private=True).epsilon <= 1.0


def test_a_synopsis_is_the_nearest_mixture_of_the_plain_twin() -> None:
    _, workload, _ = wide(5, 100, 30)
    target = np.random.default_rng(3).random(len(workload))
    found = synopsis(workload, target, 60, Exhaustive())
    np.testing.assert_allclose(found.answers_to(workload), twin(workload, target), atol=0.02)


def test_the_median_of_synopses_answers_and_learns() -> None:
    _, workload, counted = wide(8, 5000, 200)
    truth = counted.counts / counted.rows
    made = Boosting.fit(
        counted, workload, epsilon=3.0, delta=1e-6, source=SeededSource(1),
        settings=Settings(rounds=5, samples=60, records=25),
    )  # fmt: skip
    found = made.answers(workload)
    every = [one.answers_to(workload) for one in made.synopses]
    np.testing.assert_array_equal(found, np.sort(every, axis=0)[2])
    assert np.abs(found - truth).mean() < 0.3 * np.abs(Uniform().answers(workload) - truth).mean()
    assert "NOT PRIVATE" in made.privacy.text()
    with pytest.raises(ParameterError, match="another schema"):
        made.answers(ASKED)
