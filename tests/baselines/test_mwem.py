"""MWEM: its promise by enumeration, its error against a plain twin, its refusals."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.mwem import IMPROVED, Mwem, PrivatePart, Rates, Settings, Weights
from dualquery.baselines.universe import ARRAYS, OnUniverse
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.privacy.neighbours import rounding_charge
from dualquery.privacy.sources import SeededSource, SystemSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.matching import add_matches
from dualquery.workloads.workload import Workload
from tests.privacy.test_enumeration import log_weights

# The promise


TINY = Schema((Attribute.binary("a"), Attribute.binary("b")))
ASKED = Workload.of([parse(q, TINY) for q in ("a=1", "a=0 & b=0", "a=1 & b=1")], TINY)
RECORDS = [np.array(r, dtype=np.int32) for r in ((0, 0), (0, 1), (1, 0), (1, 1))]
ROWS = 3
TABLES = list(combinations_with_replacement(range(4), ROWS))
MEASURED = np.arange(-12, ROWS + 13)
TWO_ROUNDS = Settings(rounds=2)


def counts_of(table: tuple[int, ...]) -> Counted:
    counts = np.zeros(len(ASKED), dtype=np.int32)
    for record in table:
        add_matches(ASKED, RECORDS[record], counts)
    return Counted(counts.astype(np.int64), ROWS)


def log_noise(away: np.ndarray, scale: float) -> np.ndarray:
    """Log-probability of discrete Laplace noise of these sizes."""
    shrink = math.exp(-1.0 / scale)
    return math.log((1.0 - shrink) / (1.0 + shrink)) - np.abs(away) / scale


def log_transcripts(table: tuple[int, ...], rates: Rates, settings: Settings) -> np.ndarray:
    """Log-probability of every (query, measurement, query, measurement)."""
    answers = counts_of(table)
    private, queries = PrivatePart(answers, rates), OnUniverse(ASKED)
    every = np.arange(len(ASKED))

    def choices(state: Weights, allowed: np.ndarray) -> np.ndarray:
        logs = log_weights(private.weigh(queries.answers(state.distribution), allowed))[::2]
        return logs - np.logaddexp.reduce(logs)

    def noise(query: int) -> np.ndarray:
        return log_noise(MEASURED - answers.counts[query], rates.scale)

    start = Weights.uniform(ASKED)
    found = []
    for first, chance in enumerate(choices(start, every)):
        allowed = every if settings.repeats else every[every != first]
        for measured, likely in zip(MEASURED, noise(first), strict=True):
            state = start.learn(first, measured / ROWS, queries, settings.passes)
            for second, further in zip(allowed, choices(state, allowed), strict=True):
                found.append(chance + likely + further + noise(second))
    return np.concatenate(found)


def neighbours() -> list[tuple[int, int]]:
    return [
        (i, j)
        for i, one in enumerate(TABLES)
        for j, other in enumerate(TABLES)
        if sum(min(one.count(x), other.count(x)) for x in range(4)) == ROWS - 1
    ]


def worst_loss(rates: Rates, settings: Settings = TWO_ROUNDS) -> float:
    logs = [log_transcripts(table, rates, settings) for table in TABLES]
    return max(float(np.max(logs[i] - logs[j])) for i, j in neighbours())


EPSILON = 8.0  # large, so that the normaliser of a choice moves little: close to the bound


@pytest.mark.parametrize(
    "settings",
    [
        TWO_ROUNDS,
        Settings(rounds=2, share=0.2),
        Settings(rounds=2, share=0.8),
        replace(IMPROVED, rounds=2, passes=2),
    ],
    ids=["published", "little for the choice", "much for the choice", "improved"],
)
def test_no_transcript_tells_neighbours_apart_by_more_than_stated(settings: Settings) -> None:
    rates = Rates.of(EPSILON, ROWS, settings)
    assert EPSILON * (1.0 - 1e-6) <= rates.epsilon <= EPSILON * (1.0 + 1e-12)
    worst = worst_loss(rates, settings)
    assert 0.6 * rates.epsilon <= worst <= rates.epsilon * (1.0 + 1e-9)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_the_cost_is_the_sum_of_what_the_rounds_cost(share: float) -> None:
    rates = Rates.of(1.5, 1000, Settings(rounds=7, share=share))
    each = 1.5 / 7
    assert 1.0 / rates.scale == pytest.approx((1.0 - share) * each, rel=1e-4)
    range_of_choice = 2.0 * rates.choice + float(rounding_charge(share * each / 2.0 * 1000))
    assert rates.epsilon == pytest.approx(7 * (range_of_choice + 1.0 / rates.scale), rel=1e-12)


@pytest.mark.parametrize(("choice", "scale"), [(2.0, 1.0), (1.0, 0.5)])
def test_mistakes_of_a_factor_of_two_are_caught(choice: float, scale: float) -> None:
    rates = Rates.of(EPSILON, ROWS, TWO_ROUNDS)
    wrong = replace(rates, choice=choice * rates.choice, scale=scale * rates.scale)
    assert worst_loss(wrong) > 1.05 * rates.epsilon


def test_the_range_of_a_choice_is_exactly_what_is_charged() -> None:
    rates = Rates.of(1.0, ROWS, TWO_ROUNDS)
    every = np.arange(len(ASKED))
    charged = 2.0 * rates.choice + float(rounding_charge(rates.choice * ROWS))
    widest = 0.0
    for played in np.random.default_rng(0).random((20, len(ASKED))).round():
        logs = [
            log_weights(PrivatePart(counts_of(t), rates).weigh(played, every))[::2] for t in TABLES
        ]
        widest = max(widest, *(float(np.ptp(logs[i] - logs[j])) for i, j in neighbours()))
    assert 2.0 * rates.choice * (1.0 - 1e-9) <= widest <= charged


def test_a_fit_chooses_and_measures_with_the_stated_chances() -> None:
    """The whole algorithm, run many times: what it gives away follows the enumerated law."""
    answers, settings = counts_of((0, 3, 3)), Settings(rounds=1, share=0.7)
    rates = Rates.of(6.0, ROWS, settings)
    private, every = PrivatePart(answers, rates), np.arange(len(ASKED))
    uniform = OnUniverse(ASKED).answers(Weights.uniform(ASKED).distribution)
    expected = np.exp(rates.choice * np.abs(answers.counts - ROWS * uniform))
    chances = np.exp(log_weights(private.weigh(uniform, every))[::2])
    np.testing.assert_allclose(chances / chances.sum(), expected / expected.sum(), rtol=1e-6)
    runs = 3000
    given = [
        Mwem.fit(
            answers, ASKED, epsilon=6.0, source=SeededSource(seed), settings=settings
        ).measured[0]
        for seed in range(runs)
    ]
    chosen = np.bincount([query for query, _ in given], minlength=len(ASKED)) / runs
    np.testing.assert_allclose(chosen, expected / expected.sum(), atol=0.035)
    noise = np.array([round(ROWS * share) - answers.counts[query] for query, share in given])
    sizes = np.arange(-3, 4)
    seen = np.array([(noise == size).mean() for size in sizes])
    np.testing.assert_allclose(seen, np.exp(log_noise(sizes, rates.scale)), atol=0.035)


def test_the_choice_is_drawn_as_it_is_weighed() -> None:
    answers = Counted(np.array([0, 3, 5]), 10)
    private = PrivatePart(answers, Rates(0.3, 1.0, 1.0))
    played = np.array([0.5, 0.3, 0.1])
    expected = np.exp(0.3 * np.abs(answers.counts - 10 * played))
    source = SeededSource(3)
    drawn = [private.choose(played, np.arange(3), source) for _ in range(6000)]
    found = np.bincount(drawn, minlength=3) / len(drawn)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=0.025)


# The error


def wide(bits: int, rows: int, queries: int) -> tuple[np.ndarray, Workload, Counted]:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(bits)))
    workload = random_marginals(schema, 3, queries, seed=2)
    random = np.random.default_rng(1)
    level = random.normal(size=(rows, 1))
    table = (random.normal(size=(rows, bits)) + level > random.normal(size=bits)).astype(np.int32)
    matches = np.zeros(queries, dtype=np.int32)
    for record in table:
        add_matches(workload, record, matches)
    return table, workload, Counted(matches.astype(np.int64), rows)


def twin(
    workload: Workload, answers: Counted, epsilon: float, rounds: int, seed: int
) -> np.ndarray:
    """MWEM from its pseudo-code, over an explicit list of all records."""
    random = np.random.default_rng(seed)
    bits = len(workload.schema)
    records = np.array(list(np.ndindex(*(2,) * bits)), dtype=np.int32)
    value = np.zeros((len(workload), len(records)))
    for column, record in enumerate(records):
        matches = np.zeros(len(workload), dtype=np.int32)
        add_matches(workload, record, matches)
        value[:, column] = matches
    n = answers.rows
    weights = np.full(len(records), n / len(records))
    total = np.zeros(len(records))
    for _ in range(rounds):
        total += weights
        score = np.abs(value @ weights - answers.counts)
        chance = np.exp(epsilon / (2 * rounds) * (score - score.max()) / 2)
        query = random.choice(len(workload), p=chance / chance.sum())
        measured = answers.counts[query] + random.laplace(0.0, 2 * rounds / epsilon)
        step = value[query] * (measured - value[query] @ weights) / (2 * n)
        weights = weights * np.exp(step)
        weights *= n / weights.sum()
    return value @ (total / rounds) / n


def test_error_is_that_of_the_plain_twin() -> None:
    _, workload, answers = wide(10, 2000, 400)
    truth = answers.counts / answers.rows
    ours, theirs = [], []
    for seed in range(8):
        fitted = Mwem.fit(
            answers, workload, epsilon=2.0, source=SeededSource(seed), settings=Settings(rounds=10)
        )
        for answered, kept in (
            (fitted.answers(workload), ours),
            (twin(workload, answers, 2.0, 10, seed), theirs),
        ):
            error = np.abs(answered - truth)
            kept.append((error.max(), error.mean()))
    np.testing.assert_allclose(np.mean(ours, axis=0), np.mean(theirs, axis=0), rtol=0.1)


def test_improvements_improve() -> None:
    _, workload, answers = wide(10, 2000, 400)
    truth = answers.counts / answers.rows

    def error(settings: Settings) -> float:
        fitted = Mwem.fit(answers, workload, epsilon=5.0, source=SeededSource(4), settings=settings)
        return float(np.abs(fitted.answers(workload) - truth).mean())

    assert error(IMPROVED) < 0.5 * error(Settings())


def test_answers_on_the_universe_are_those_of_every_record(schema: Schema) -> None:
    queries = ["sex=Male & age>=50", "parity(smoker, grade=mid)", "grade!=mid & smoker=1 & rate<1"]
    workload = Workload.of([parse(q, schema) for q in queries], schema)
    shape = tuple(int(s) for s in schema.sizes)
    distribution = np.random.default_rng(0).random(shape)
    distribution /= distribution.sum()
    expected = np.zeros(len(workload))
    for record in np.ndindex(*shape):
        matches = np.zeros(len(workload), dtype=np.int32)
        add_matches(workload, np.array(record, dtype=np.int32), matches)
        expected += distribution[record] * matches
    on_universe = OnUniverse(workload)
    np.testing.assert_allclose(on_universe.answers(distribution), expected)
    for query in range(len(workload)):
        held = np.broadcast_to(on_universe.indicator(query), shape)
        assert set(np.unique(held)) <= {0.0, 1.0}
        assert (held * distribution).sum() == pytest.approx(expected[query])


# Refusals


def test_a_universe_that_does_not_fit_is_refused_before_anything_is_made() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(235)))
    workload = random_marginals(schema, 3, 10)
    answers = Counted(np.zeros(10, dtype=np.int64), 100)
    with pytest.raises(ParameterError, match=r"about 10\^70.* entries .* over the limit of"):
        Mwem.fit(answers, workload, epsilon=1.0, source=SystemSource())


@pytest.mark.parametrize(
    "bad", [{"rounds": 0}, {"output": "median"}, {"share": 1.0}, {"passes": -1}]
)
def test_settings_out_of_range_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=next(iter(bad))):
        Settings(**bad)


def test_without_repeats_no_query_is_measured_twice() -> None:
    _, workload, answers = wide(5, 200, 60)
    _, which = workload.different
    assert 30 < len(set(which)) < 60, "some are asked twice"
    settings = Settings(rounds=25, repeats=False)
    fitted = Mwem.fit(answers, workload, epsilon=50.0, source=SeededSource(0), settings=settings)
    chosen = [int(which[query]) for query, _ in fitted.measured]
    assert len(set(chosen)) == len(chosen) == 25


def test_when_all_queries_were_measured_they_are_measured_again() -> None:
    settings = Settings(rounds=7, repeats=False)
    fitted = Mwem.fit(
        counts_of((0, 1, 3)), ASKED, epsilon=5.0, source=SeededSource(0), settings=settings
    )
    chosen = [query for query, _ in fitted.measured]
    assert sorted(chosen[:3]) == sorted(chosen[3:6]) == [0, 1, 2]


def test_memory_stays_below_what_is_asked_for() -> None:
    _, workload, answers = wide(14, 50, 2000)
    OnUniverse(workload)  # whatever is imported on first use
    tracemalloc.start()
    try:
        Mwem.fit(
            answers, workload, epsilon=1.0, source=SeededSource(0), settings=Settings(rounds=1)
        )
        small = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        _, wider, counted = wide(18, 50, 2000)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        Mwem.fit(counted, wider, epsilon=1.0, source=SeededSource(0), settings=Settings(rounds=2))
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    # What does not grow with the universe is the same for both.
    assert peak - small <= 8 * ARRAYS * 2**18
