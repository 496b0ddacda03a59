"""The game against its definition."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from dualquery.base.errors import ParameterError
from dualquery.domain.attributes import Attribute
from dualquery.domain.free import Free
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.game.loop import play
from dualquery.game.plan import Plan, Player, default_player, make_plan
from dualquery.game.query_player import QueryPlayer
from dualquery.game.record_player import RecordPlayer
from dualquery.oracles.registry import oracle
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import SeededSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.matching import mean_answers


def test_the_query_player_draws_by_the_formula() -> None:
    """Frequencies of many draws against exp(±β(q(D) − a)), computed here by hand."""
    counts, rows = np.array([10, 40, 90, 50]), 100
    played = np.array([0.5, 0.4, 0.6, 0.5])
    draws = QueryPlayer(Counted(counts, rows)).draw(4.0, played, 200_000, SeededSource(1))
    exponent = 4.0 * (counts / rows - played)
    weights = np.exp(np.concatenate([exponent, -exponent]))
    found = np.bincount(draws.queries + 4 * draws.negated, minlength=8) / 200_000
    np.testing.assert_allclose(found, weights / weights.sum(), atol=0.005)


def test_the_add_remove_weights_use_negated_counts() -> None:
    """Under add-remove, q̄ has the score (|D| − c)/n0, whatever n0 is."""
    counts, rows, reference = np.array([10, 70]), 100, 160
    played = np.array([0.3, 0.2])
    player = QueryPlayer(Counted(counts, rows), reference)
    draws = player.draw(3.0, played, 200_000, SeededSource(2))
    plain = 3.0 * (counts / reference - played)
    negated = 3.0 * ((rows - counts) / reference - (1 - played))
    weights = np.exp(np.concatenate([plain, negated]))
    found = np.bincount(draws.queries + 2 * draws.negated, minlength=4) / 200_000
    np.testing.assert_allclose(found, weights / weights.sum(), atol=0.005)


def test_rounds_are_drawn_against_the_mean_of_the_records(schema: Schema) -> None:
    workload = random_marginals(schema, 2, 50)
    seen = []

    class Watching(QueryPlayer):
        def draw(self, temperature, played, samples, source):
            seen.append((temperature, played.copy()))
            return super().draw(temperature, played, samples, source)

    player = RecordPlayer(workload, oracle("annealing"))
    answers = Counted(np.full(50, 30), 100)
    state, transcript = play(
        Watching(answers), player, 2.0 * np.arange(5), np.full(5, 40), SeededSource(3)
    )
    records = transcript.records
    assert records.shape == (5, len(schema))
    assert (records >= 0).all()
    assert (records < schema.sizes).all()
    for number, (temperature, played) in enumerate(seen):
        assert temperature == 2.0 * number
        expected = mean_answers(workload, records[:number]) if number else np.zeros(50)
        np.testing.assert_allclose(played, expected)
    np.testing.assert_allclose(player.answers(state), mean_answers(workload, records))


@pytest.mark.parametrize("free", list(Free))
def test_free_attributes(free: Free) -> None:
    schema = Schema(
        tuple(Attribute.categorical(f"a{i}", ["x", "y", "z"], default="y") for i in range(40))
    )
    workload = random_marginals(schema, 1, 1)
    player = RecordPlayer(workload, oracle("annealing"), free=free)
    _, transcript = play(
        QueryPlayer(Counted(np.array([5]), 10)),
        player,
        np.arange(2.0),
        np.full(2, 3),
        SeededSource(0),
    )
    used = int(workload.literals.attribute[0])
    idle = np.delete(transcript.records, used, axis=1)
    expected = {Free.ZERO: {0}, Free.RANDOM: {0, 1, 2}}.get(free, {1})
    assert set(idle.ravel().tolist()) == expected


@pytest.mark.parametrize("player", ["record", "model"])
def test_the_events_of_plan_and_transcript_agree(
    schema: Schema, rows: pa.Table, player: str
) -> None:
    job = DualQuery(epsilon=1.0, delta=1e-3, queries=200, seed=1, player=player, measure=False)
    plan = job.plan(rows.num_rows, schema)
    made = job.fit(rows, schema=schema)
    after = Events.of(made.transcript.temperatures, made.transcript.draw_counts, rows.num_rows)
    assert plan.events == after
    assert made.privacy.epsilon <= 1.0
    assert made.privacy.by_accountant == plan.epsilon


@pytest.mark.parametrize("settings", [{"player": "record", "refit": False}, {"player": "model"}])
def test_errors_shrink_with_the_budget(schema: Schema, rows: pa.Table, settings) -> None:
    from dualquery.evaluation.figures import evaluate

    found = []
    for epsilon in (0.5, 50.0):
        job = DualQuery(epsilon=epsilon, delta=1e-3, queries=2000, seed=1, **settings)
        found.append(evaluate(job.fit(rows, schema=schema), rows).distance.average_error)
    assert found[1] < 0.5 * found[0]


@pytest.mark.parametrize("player", list(Player))
class TestPlan:
    @pytest.mark.parametrize("rows", [200, 5_000, 100_000, 10_000_000])
    @pytest.mark.parametrize("accountant", ["pure", "advanced", "per-round", "zcdp", "gaussian"])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
    def test_the_rule_stays_within_any_budget(
        self, schema: Schema, player: Player, rows: int, accountant: str, epsilon: float
    ) -> None:
        budget = Budget(epsilon, 1e-6, rows, accountant=accountant)
        if rows * epsilon < 5_000:  # may be too little, and then says so
            with contextlib.suppress(ParameterError):
                make_plan(budget, schema, player=player)
            return
        plan = make_plan(budget, schema, player=player)
        assert 2 <= plan.rounds <= 400
        assert plan.samples >= 4
        assert plan.epsilon[accountant] <= epsilon
        if accountant == "gaussian":  # and most of it is used
            assert plan.epsilon[accountant] >= 0.5 * epsilon

    def test_two_of_three(self, schema: Schema, player: Player) -> None:
        budget = Budget(1.0, 1e-6, 30_000)

        def costs(rounds: int, samples: int, eta: float) -> float:
            return Plan(budget, player, rounds, samples, eta).epsilon["gaussian"]

        plan = make_plan(budget, schema, player=player, rounds=30, samples=100)
        assert costs(30, 100, plan.eta) <= 1.0 < costs(30, 100, plan.eta * 1.0001)
        plan = make_plan(budget, schema, player=player, rounds=30, eta=3.0)
        assert costs(30, plan.samples, 3.0) <= 1.0 < costs(30, plan.samples + 1, 3.0)
        plan = make_plan(budget, schema, player=player, samples=30, eta=3.0)
        assert costs(plan.rounds, 30, 3.0) <= 1.0 < costs(plan.rounds + 1, 30, 3.0)

    def test_one_or_three(self, schema: Schema, player: Player) -> None:
        budget = Budget(1.0, 1e-6, 30_000)
        assert make_plan(budget, schema, player=player, rounds=30).rounds == 30
        assert make_plan(budget, schema, player=player, samples=30).samples == 30
        assert make_plan(budget, schema, player=player, eta=3.0).eta == 3.0
        assert make_plan(budget, schema, player=player, rounds=9, samples=9, eta=1.0).samples == 9
        with pytest.raises(ParameterError, match="more than epsilon=1"):
            make_plan(budget, schema, player=player, rounds=500, samples=1000, eta=9.0)

    def test_a_budget_too_small_says_what_would_do(self, schema: Schema, player: Player) -> None:
        with pytest.raises(ParameterError, match=r"epsilon=.* would be enough"):
            make_plan(Budget(1e-4, 1e-6, 50), schema, player=player)

    @pytest.mark.parametrize(
        ("epsilon", "rows", "neighbours"),
        [(0.1, 5, Neighbours.REPLACE_ONE), (2.0, 8, Neighbours.REPLACE_ONE),
         (1.5, 5, Neighbours.ADD_REMOVE)],
    )  # fmt: skip
    def test_what_would_do_does(
        self, schema: Schema, player: Player, epsilon: float, rows: int, neighbours: Neighbours
    ) -> None:
        """On very small tables the ε that a refusal named used to be refused, too."""
        budget = Budget(epsilon, 1e-3, rows, neighbours)
        try:
            make_plan(budget, schema, player=player)
        except ParameterError as error:
            enough = float(str(error).rpartition("epsilon=")[2].split()[0])
            assert enough > epsilon
            make_plan(replace(budget, epsilon=enough), schema, player=player)


def test_the_default_player_follows_the_width() -> None:
    narrow = Schema(tuple(Attribute.binary(f"x{i}") for i in range(10)))
    assert default_player(narrow, 500_000) is Player.MODEL
    assert default_player(narrow, 30_000_000) is Player.RECORD
    wide = Schema(tuple(Attribute.binary(f"x{i}") for i in range(200_000)))
    assert default_player(wide, 1000) is Player.RECORD


class TestNeighbours:
    def test_add_remove_needs_a_reference(self, schema: Schema, rows: pa.Table) -> None:
        job = DualQuery(epsilon=1.0, delta=1e-3, neighbours="add-remove")
        with pytest.raises(ParameterError, match="public reference size"):
            job.fit(rows, schema=schema)
        job = DualQuery(epsilon=1.0, delta=1e-3, neighbours="add-remove", rows=900, queries=50)
        made = job.fit(rows, schema=schema)
        assert made.privacy.rows == 900
        assert made.privacy.neighbours is Neighbours.ADD_REMOVE
        assert "1000" not in str(made.summary())
