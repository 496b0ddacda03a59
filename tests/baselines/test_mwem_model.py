"""MWEM on the model: its promise by enumeration, its fit against a plain twin, any width."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.mwem import PrivatePart, Rates
from dualquery.baselines.mwem_model import (
    Fitted,
    ModelMwem,
    Prices,
    Settings,
    measured_share,
    share_variance,
)
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.privacy.accountants import get_accountant
from dualquery.privacy.events import Noise
from dualquery.privacy.sources import SeededSource, SystemSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.matching import add_matches
from dualquery.workloads.workload import Workload
from tests.baselines.exact import hockey_stick, log_laplace, log_rounded_gaussian
from tests.baselines.test_mwem import ASKED, ROWS, TABLES, counts_of, neighbours, wide
from tests.privacy.test_enumeration import log_weights

MEASURED = np.arange(-5, ROWS + 6)
"""Beyond the counts of both neighbours the ratio of the noise does not change any more."""

TWO = Settings(rounds=2, components=2, steps=3, final_steps=3)


@cache
def answers_after(transcript: tuple[tuple[int, float], ...]) -> np.ndarray:
    """What the model answers after some measurements: a function of them alone."""
    state = Fitted.start(ASKED, TWO)
    for query, share in transcript:
        state = state.learn(query, share, 0.01, TWO.steps)
    return state.mixture.answers(ASKED)


def log_transcripts(table: tuple[int, ...], prices: Prices, settings: Settings) -> np.ndarray:
    """Log-probability of every (query, measurement, query, measurement)."""
    counted = counts_of(table)
    private = PrivatePart(counted, Rates(prices.choice, prices.scale, 0.0))
    every = np.arange(len(ASKED))
    law = log_laplace if prices.noise is Noise.LAPLACE else log_rounded_gaussian

    def choices(transcript: tuple[tuple[int, float], ...]) -> np.ndarray:
        logs = log_weights(private.weigh(answers_after(transcript), every))[::2]
        return logs - np.logaddexp.reduce(logs)

    def noise(query: int) -> np.ndarray:
        return law(MEASURED - counted.counts[query], prices.scale)

    found = []
    for first, chance in enumerate(choices(())):
        for measured, likely in zip(MEASURED, noise(first), strict=True):
            if settings.rounds == 1:
                found.append(np.array([chance + likely]))
                continue
            after = ((first, float(measured / ROWS)),)
            found += [
                chance + likely + further + noise(second)
                for second, further in enumerate(choices(after))
            ]
    return np.concatenate(found)


def all_logs(prices: Prices, settings: Settings) -> list[np.ndarray]:
    return [log_transcripts(table, prices, settings) for table in TABLES]


def worst_loss(prices: Prices) -> float:
    logs = all_logs(prices, TWO)
    return max(float(np.max(logs[i] - logs[j])) for i, j in neighbours())


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_no_transcript_tells_neighbours_apart_by_more_than_the_pure_epsilon(share: float) -> None:
    settings = replace(TWO, share=share)
    prices = Prices.of(8.0, 0.0, ROWS, settings)
    stated = prices.cost(0.0, private=True).epsilon
    assert 8.0 * (1.0 - 1e-5) <= stated <= 8.0
    assert 0.6 * stated <= worst_loss(prices) <= stated * (1.0 + 1e-9)


def worst_delta(prices: Prices, settings: Settings, epsilon: float) -> float:
    logs = all_logs(prices, settings)
    return max(hockey_stick(logs[i], logs[j], epsilon) for i, j in neighbours())


def test_the_divergence_of_neighbours_is_below_the_gaussian_delta() -> None:
    once = replace(TWO, rounds=1)
    prices = Prices.of(2.0, 1e-2, ROWS, once)
    assert prices.cost(1e-2, private=True).epsilon <= 2.0
    for epsilon in (0.25, 0.5, 1.0, 2.0):
        stated = get_accountant("gaussian").delta(prices.events, epsilon)
        worst = worst_delta(prices, once, epsilon)
        assert worst <= stated * (1.0 + 1e-9)
    smaller = replace(prices, scale=0.5 * prices.scale)
    assert worst_delta(smaller, once, 1.0) > get_accountant("gaussian").delta(prices.events, 1.0)


@pytest.mark.parametrize(("choice", "scale"), [(2.0, 1.0), (1.0, 0.5)])
def test_mistakes_of_a_factor_of_two_are_caught(choice: float, scale: float) -> None:
    prices = Prices.of(8.0, 0.0, ROWS, TWO)
    wrong = replace(prices, choice=choice * prices.choice, scale=scale * prices.scale)
    assert worst_loss(wrong) > 1.05 * 8.0


def test_the_events_of_a_run_are_a_draw_and_a_count_per_round() -> None:
    prices = Prices.of(1.0, 1e-6, 1000, Settings(rounds=7, share=0.4))
    assert len(prices.events) == 14
    assert prices.events.draws.tolist() == [1] * 7
    assert {event.l2 for event in prices.events.measurements} == {1.0}
    stated = prices.cost(1e-6, private=True)
    assert 1.0 - 1e-6 <= stated.epsilon <= 1.0
    assert stated.by_accountant["gaussian"] == stated.epsilon
    assert 0.9 < stated.by_accountant["zcdp"] < 1.3
    assert stated.by_accountant["pure"] == math.inf


def test_measurements_have_the_stated_noise() -> None:
    counted, source = Counted(np.array([40]), 100), SeededSource(1)
    for delta in (0.0, 1e-3):
        prices = Prices.of(3.0, delta, 100, Settings(rounds=5))
        shares = np.array([measured_share(counted, 0, prices, source) for _ in range(400)])
        assert shares.mean() == pytest.approx(0.4, abs=0.05)
        assert shares.var() == pytest.approx(share_variance(prices, 100), rel=0.35)


# The fit


def twin_fit(
    workload: Workload, measured: list[tuple[int, float]], variance: float, settings: Settings
) -> np.ndarray:
    """The answers after a fit, by plain NumPy over an explicit list of all records."""
    bits, parts = len(workload.schema), settings.components
    records = np.array(list(np.ndindex(*(2,) * bits)))
    value = np.zeros((len(workload), len(records)))
    for column, record in enumerate(records.astype(np.int32)):
        matches = np.zeros(len(workload), dtype=np.int32)
        add_matches(workload, record, matches)
        value[:, column] = matches
    # The same first logits: they are public randomness.
    start = np.random.default_rng(0).standard_normal(2 * bits * parts)
    logits = settings.noise * start.reshape(bits, 2, parts)
    shares = np.zeros(parts)

    def law() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        table = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        pi = np.exp(shares) / np.exp(shares).sum()
        each = np.prod([table[a, records[:, a]] for a in range(bits)], axis=0)
        return table, pi, each

    past: list[tuple[int, float]] = []
    for query, found in measured:
        past.append((query, found))
        asked = value[[one for one, _ in past]]
        target = np.array([share for _, share in past])
        moments = [np.zeros_like(v) for v in (logits, logits, shares, shares)]
        for step in range(settings.steps):
            table, pi, each = law()
            by_record = asked.T @ ((target - asked @ (each @ pi)) / variance)
            by_share = pi * (by_record @ each - pi @ (by_record @ each))
            by_logit = np.zeros_like(logits)
            for a in range(bits):
                for code in (0, 1):
                    held = (records[:, a] == code)[:, None]
                    by_logit[a, code] = pi * (
                        by_record @ (each * held) - table[a, code] * (by_record @ each)
                    )
            rate = settings.rate * (1.0 - 0.9 * step / settings.steps)
            for slope, state, first in ((by_logit, logits, 0), (by_share, shares, 2)):
                moments[first] = 0.9 * moments[first] + 0.1 * slope
                moments[first + 1] = 0.99 * moments[first + 1] + 0.01 * slope**2
                mean = moments[first] / (1.0 - 0.9 ** (step + 1))
                square = moments[first + 1] / (1.0 - 0.99 ** (step + 1))
                state += rate * mean / (np.sqrt(square) + 1e-8)
    _, pi, each = law()
    return value @ (each @ pi)


def test_the_fit_is_that_of_the_plain_twin() -> None:
    _, workload, counted = wide(5, 400, 60)
    settings = Settings(rounds=4, components=3, steps=12, final_steps=12)
    truth = counted.counts / counted.rows
    measured = [(query, float(truth[query])) for query in (3, 17, 40, 3)]
    state = Fitted.start(workload, settings)
    for query, share in measured:
        state = state.learn(query, share, 1e-4, settings.steps)
    expected = twin_fit(workload, measured, 1e-4, settings)
    np.testing.assert_allclose(state.mixture.answers(workload), expected, atol=2e-4)
    assert np.abs(expected - 0.125).max() > 0.05, "the fit has moved"


# The whole


def test_it_learns_what_it_measures() -> None:
    _, workload, counted = wide(10, 2000, 400)
    truth = counted.counts / counted.rows
    made = ModelMwem.fit(
        counted, workload, epsilon=3.0, delta=1e-6, source=SeededSource(2),
        settings=Settings(rounds=30),
    )  # fmt: skip
    error = np.abs(made.answers(workload) - truth)
    assert error.mean() < 0.5 * np.abs(0.125 - truth).mean()
    assert "NOT PRIVATE" in made.privacy.text()
    assert made.sample(7, np.random.default_rng(0)).shape == (7, 10)


def test_it_runs_where_the_universe_does_not_fit() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(500)))
    workload = random_marginals(schema, 3, 300)
    counted = Counted(np.full(300, 20, dtype=np.int64), 1000)
    made = ModelMwem.fit(
        counted, workload, epsilon=5.0, delta=1e-3, source=SystemSource(),
        settings=Settings(rounds=3),
    )  # fmt: skip
    assert len(made.measured) == 3
    assert made.privacy.private
    with pytest.raises(ParameterError, match="another schema"):
        made.answers(ASKED)


def test_a_budget_that_rounding_would_use_up_is_refused() -> None:
    with pytest.raises(ParameterError, match="too small for 50 rounds"):
        Prices.of(1e-9, 0.0, 1000, Settings())


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows", "rounds"),
    [(1.0, 1e-6, 100_000, 1000), (0.01, 1e-6, 1000, 50), (1.0, 0.0, 100_000, 250)],
)
def test_there_are_as_many_rounds_as_the_noise_allows(
    epsilon: float, delta: float, rows: int, rounds: int
) -> None:
    settings = Settings.of(epsilon, delta, rows)
    assert settings.rounds == pytest.approx(rounds, abs=1)
    assert 10 <= settings.steps <= 30


def test_in_between_a_measured_share_has_the_stated_noise() -> None:
    settings = Settings.of(1.0, 1e-6, 30_000)
    assert 50 < settings.rounds < 1000
    prices = Prices.of(1.0, 1e-6, 30_000, settings)
    assert prices.scale / 30_000 == pytest.approx(0.005, rel=0.01)
