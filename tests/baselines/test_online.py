"""Online multiplicative weights: its promise by enumeration, a plain twin, any width."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.mwem import Weights
from dualquery.baselines.online import Comparisons, OnAllRecords, OnlineWeights, OnModel, Prices
from dualquery.baselines.universe import OnUniverse
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.privacy.sources import SeededSource, SystemSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.matching import add_matches
from tests.baselines.exact import log_laplace
from tests.baselines.test_mwem import ASKED, ROWS, TABLES, counts_of, neighbours, wide

LEVEL = 1
FAR = 120
MEASURED = np.arange(-6, ROWS + 7)
UNIFORM = OnAllRecords(Weights.uniform(ASKED), OnUniverse(ASKED), 0)


def log_outcomes(table: tuple[int, ...], prices: Prices) -> np.ndarray:
    """Log-probability of all that one update gives away: where in the stream, and the count.

    The last outcome is that no comparison exceeds. The noise of the level is summed out.
    """
    comparisons = Comparisons(counts_of(table), prices)
    levels = LEVEL + np.arange(-FAR, FAR + 1)
    law = np.exp(log_laplace(np.arange(-4 * FAR, 4 * FAR + 1), prices.score_scale))
    below = np.concatenate([[0.0], np.cumsum(law)])  # P(noise < v) at v + 4·FAR

    def stays(query: int) -> np.ndarray:
        score = comparisons.score(query, UNIFORM.answer(query))
        return below[levels - score + 4 * FAR]

    quiet = np.exp(log_laplace(levels - LEVEL, prices.level_scale))
    found = []
    for query in range(len(ASKED)):
        reached = math.log(float((quiet * (1.0 - stays(query))).sum()))
        count = comparisons.table.counts[query]
        found.append(reached + log_laplace(MEASURED - count, prices.count_scale))
        quiet = quiet * stays(query)
    return np.concatenate([*found, [math.log(float(quiet.sum()))]])


def worst_loss(prices: Prices) -> float:
    logs = [log_outcomes(table, prices) for table in TABLES]
    return max(float(np.max(logs[i] - logs[j])) for i, j in neighbours())


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_no_outcome_tells_neighbours_apart_by_more_than_stated(share: float) -> None:
    prices = Prices.of(2.0, 0.0, 1, share)
    stated = prices.cost(0.0, private=True).epsilon
    assert 2.0 - 1e-6 <= stated <= 2.0
    assert 0.5 * stated <= worst_loss(prices) <= stated * (1.0 + 1e-9)


def test_a_stream_that_shows_its_scores_too_cheaply_is_caught() -> None:
    prices = Prices.of(2.0, 0.0, 1, 0.9)
    assert worst_loss(replace(prices, comparing=4.0 * prices.comparing)) > 2.1


def test_what_a_stream_gives_away_follows_the_enumerated_law() -> None:
    table, runs = (0, 3, 3), 400
    prices = Prices.of(3.0, 0.0, 1)
    expected = np.exp(log_outcomes(table, prices))
    found = np.zeros(len(ASKED) + 1)
    for seed in range(runs):
        made = OnlineWeights.fit(
            counts_of(table), ASKED, epsilon=3.0, delta=0.0, source=SeededSource(seed),
            updates=1, level=LEVEL,
        )  # fmt: skip
        updated = [one.query for one in made.answered if one.updated]
        assert len(updated) <= 1
        found[updated[0] if updated else -1] += 1.0 / runs
    places = [expected[i * len(MEASURED) : (i + 1) * len(MEASURED)].sum() for i in range(3)]
    np.testing.assert_allclose(found, [*places, expected[-1]], atol=0.08)


def test_levels_scores_and_counts_have_the_stated_noise() -> None:
    prices = Prices.of(3.0, 0.0, 1)
    comparisons, source = Comparisons(Counted(np.array([50]), 100), prices), SeededSource(2)
    levels = np.array([comparisons.noisy_level(9, source) for _ in range(1500)])
    counts = np.array([100 * comparisons.measure(0, source) for _ in range(1500)])
    for found, middle, scale in (
        (levels, 9, prices.level_scale),
        (counts, 50, prices.count_scale),
    ):
        law = np.exp(log_laplace(np.arange(-1, 2), scale))
        seen = [(np.rint(found) == middle + away).mean() for away in (-1, 0, 1)]
        np.testing.assert_allclose(seen, law, atol=0.05)
    often = np.mean([comparisons.exceeds(0, 0.47, 5, source) for _ in range(1500)])
    noise = np.arange(2, 200)  # the score is 3
    assert often == pytest.approx(np.exp(log_laplace(noise, prices.score_scale)).sum(), abs=0.05)


def test_a_replaced_record_moves_a_score_by_at_most_one() -> None:
    prices = Prices.of(1.0, 0.0, 1)
    for played in np.linspace(0.0, 1.0, 7):
        for i, j in neighbours():
            one, other = (Comparisons(counts_of(TABLES[t]), prices) for t in (i, j))
            for query in range(len(ASKED)):
                assert abs(one.score(query, played) - other.score(query, played)) <= 1


def test_more_updates_cost_less_than_their_sum_where_delta_allows() -> None:
    pure, approximate = Prices.of(1.0, 0.0, 50), Prices.of(1.0, 1e-6, 50)
    assert approximate.comparing > 1.3 * pure.comparing
    stated = approximate.cost(1e-6, private=True)
    assert 1.0 - 1e-5 <= stated.epsilon <= 1.0
    assert len(stated.events) == 100
    assert stated.by_accountant["pure"] > 1.0


# The whole


def test_with_hardly_any_noise_it_is_the_plain_twin() -> None:
    _, workload, counted = wide(6, 500, 60)
    level, n = 20, counted.rows
    made = OnlineWeights.fit(
        counted, workload, epsilon=2000.0, delta=0.0, source=SeededSource(1),
        updates=8, level=level, passes=0,
    )  # fmt: skip
    records = np.array(list(np.ndindex(*(2,) * 6)), dtype=np.int32)
    value = np.zeros((60, len(records)))
    for column, record in enumerate(records):
        matches = np.zeros(60, dtype=np.int32)
        add_matches(workload, record, matches)
        value[:, column] = matches
    weights, updates, expected = np.full(64, 1 / 64), 0, []
    for query in range(60):
        answer = value[query] @ weights
        if updates < 8 and abs(counted.counts[query] - round(n * answer)) >= level:
            share = counted.counts[query] / n
            weights = weights * np.exp(value[query] * (share - answer) / 2)
            weights /= weights.sum()
            updates, answer = updates + 1, share
        expected.append(answer)
    assert updates == 8
    np.testing.assert_allclose(made.answers(workload), expected, atol=1e-12)


def test_it_learns_and_answers_other_queries_too() -> None:
    _, workload, counted = wide(8, 20_000, 300)
    truth = counted.counts / counted.rows
    made = OnlineWeights.fit(
        counted, workload, epsilon=3.0, delta=1e-6, source=SystemSource(), updates=25
    )
    assert np.abs(made.answers(workload) - truth).mean() < 0.5 * np.abs(truth - 0.125).mean()
    assert made.privacy.private
    assert made.answers(workload.take(np.arange(5))).shape == (5,)


def test_it_uses_the_model_where_the_universe_does_not_fit() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(200)))
    workload = random_marginals(schema, 3, 30)
    counted = Counted(np.full(30, 900, dtype=np.int64), 1000)
    made = OnlineWeights.fit(
        counted, workload, epsilon=50.0, delta=1e-3, source=SeededSource(0), updates=3
    )
    assert isinstance(made.hypothesis, OnModel)
    assert sum(one.updated for one in made.answered) == 3
    with pytest.raises(ParameterError, match="another schema"):
        made.answers(ASKED)
