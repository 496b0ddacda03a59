"""FEM: its promise by enumeration, its perturbed leader against a plain twin, any width."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.fem import Fem, Leader, Price, Settings
from dualquery.baselines.product import Uniform
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.game import query_player
from dualquery.game.query_player import QueryPlayer
from dualquery.oracles.exhaustive import Exhaustive
from dualquery.privacy.accountants import get_accountant
from dualquery.privacy.sampler import Draws
from dualquery.privacy.sources import SeededSource, SystemSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.matching import mean_answers
from tests.baselines.exact import hockey_stick
from tests.baselines.test_mwem import ASKED, ROWS, TABLES, counts_of, neighbours, wide
from tests.baselines.test_projection import universe
from tests.privacy.test_enumeration import log_weights

TWO = Settings(rounds=2, records=2, perturbation=0.5)
ACTIONS = [(query, sign) for query in range(len(ASKED)) for sign in (1, -1)]


@pytest.fixture
def worst(monkeypatch: pytest.MonkeyPatch):
    """Log-probabilities of all transcripts of two draws, by the package's own weights."""
    seen: list[np.ndarray] = []

    def capture(shard: object, samples: int, source: object) -> Draws:
        seen.append(log_weights(shard))
        return Draws(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool))

    monkeypatch.setattr(query_player, "draw", capture)
    leader = Leader(ASKED, TWO, Exhaustive())
    after = {one: mean_answers(ASKED, leader.respond([one])) for one in ACTIONS}

    def log_transcripts(price: Price) -> list[np.ndarray]:
        def chances(table: tuple[int, ...], played: np.ndarray) -> np.ndarray:
            QueryPlayer(counts_of(table)).draw(price.temperature, played, 1, SystemSource())
            logs = seen.pop()
            return logs - np.logaddexp.reduce(logs)

        return [
            np.concatenate(
                [
                    chance + chances(table, after[one])
                    for one, chance in zip(
                        ACTIONS, chances(table, Uniform().answers(ASKED)), strict=True
                    )
                ]
            )
            for table in TABLES
        ]

    return log_transcripts


def worst_loss(logs: list[np.ndarray]) -> float:
    return max(float(np.max(logs[i] - logs[j])) for i, j in neighbours())


def test_no_transcript_tells_neighbours_apart_by_more_than_stated(worst) -> None:
    price = Price.of(4.0, 0.0, ROWS, 2)
    stated = price.cost(0.0, private=True).epsilon
    assert 4.0 - 1e-6 <= stated <= 4.0
    assert 0.5 * stated <= worst_loss(worst(price)) <= stated
    wrong = replace(price, temperature=2.0 * price.temperature)
    assert worst_loss(worst(wrong)) > 1.05 * stated


def test_the_divergence_of_neighbours_is_below_the_delta_of_both_accountants(worst) -> None:
    price = Price.of(1.0, 1e-2, ROWS, 2)
    logs = worst(price)
    for epsilon in (0.2, 0.5, 1.0):
        largest = max(hockey_stick(logs[i], logs[j], epsilon) for i, j in neighbours())
        for accountant in ("zcdp", "gaussian"):
            assert largest <= get_accountant(accountant).delta(price.events, epsilon) * (1 + 1e-9)


def test_the_cost_is_that_of_single_draws() -> None:
    price = Price.of(1.0, 1e-6, 10_000, 30)
    assert price.events.draws.tolist() == [1] * 30
    stated = price.cost(1e-6, private=True)
    assert 1.0 - 1e-6 <= stated.epsilon <= 1.0
    assert stated.epsilon == stated.by_accountant["zcdp"] < stated.by_accountant["gaussian"]


def test_without_delta_the_sum_alone_states_epsilon() -> None:
    stated = Price.of(1.0, 0.0, 10_000, 30).cost(0.0, private=True)
    by_name = stated.by_accountant
    assert by_name.pop("pure") == stated.epsilon
    assert set(by_name.values()) == {np.inf}


def test_the_leader_answers_like_the_plain_twin() -> None:
    _, workload, _ = wide(6, 100, 50)
    settings = Settings(rounds=3, records=4, perturbation=1.5)
    drawn = [(3, 1), (17, -1), (3, 1), (40, 1), (41, -1)]
    leader = Leader(workload, settings, None)
    records = leader.respond(drawn)
    every = np.array(list(np.ndindex(*(2,) * 6)))
    value = universe(workload)
    payoff = sum(sign * value[:, query] for query, sign in drawn)
    for record, noise in zip(records, leader.noise(len(drawn)), strict=True):
        # Values stand in the order of attributes, zeros before ones.
        total = payoff + noise.reshape(6, 2)[np.arange(6), every].sum(axis=1)
        place = int(np.flatnonzero((every == record).all(axis=1))[0])
        assert total[place] >= total.max() - 0.01, "up to the rounding of perturbations"


def test_it_learns() -> None:
    _, workload, counted = wide(8, 5000, 200)
    truth = counted.counts / counted.rows
    made = Fem.fit(
        counted, workload, epsilon=3.0, delta=1e-6, source=SeededSource(1),
        settings=Settings(rounds=40, records=5),
    )  # fmt: skip
    error = np.abs(made.answers(workload) - truth).mean()
    assert error < 0.8 * np.abs(Uniform().answers(workload) - truth).mean()
    assert made.records.shape == (200, 8)
    assert "NOT PRIVATE" in made.privacy.text()


def test_it_runs_where_no_universe_fits() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(300)))
    workload = random_marginals(schema, 3, 200)
    counted = Counted(np.full(200, 20, dtype=np.int64), 1000)
    made = Fem.fit(
        counted, workload, epsilon=1.0, delta=1e-6, source=SystemSource(),
        settings=Settings(rounds=2, records=2),
    )  # fmt: skip
    assert made.privacy.private
    with pytest.raises(ParameterError, match="another schema"):
        made.answers(ASKED)
