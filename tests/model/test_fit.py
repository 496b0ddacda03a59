"""The likelihood, its gradient, and what the fit makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.domain.attributes import Attribute
from dualquery.domain.free import Free
from dualquery.domain.schema import Schema
from dualquery.engines.local import LocalEngine
from dualquery.estimator import DualQuery
from dualquery.game import fitting as fit
from dualquery.game.fitting import fit_transcript
from dualquery.game.loop import play
from dualquery.game.model_player import ModelPlayer
from dualquery.game.query_player import QueryPlayer
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.drawn import Buffers, Drawn, answers_of
from dualquery.model.likelihood import Likelihood
from dualquery.model.mixture import Mixture
from dualquery.model.schedule import SHARP, Schedule, components_for
from dualquery.model.stack import Stack
from dualquery.model.training import Ascent, Parameters
from dualquery.paper.datasets import BiasedTable
from dualquery.privacy.sampler import Draws
from dualquery.privacy.sources import SeededSource
from dualquery.rows.encoding import OutOfDomain
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import all_marginals, parities, random_marginals
from dualquery.workloads.probes import with_probes
from dualquery.workloads.workload import Workload
from tests.model.twins import Pull, answers_twin, likelihood_twin, random_tables

SMALL = Schema(
    (
        Attribute.categorical("a", ["x", "y", "z"]),
        Attribute.binary("b"),
        Attribute.categorical("c", ["p", "q", "r", "s"]),
    )
)


def some_rounds(queries: int, generator: np.random.Generator, heat: float = 3.0):
    rounds = []
    for t in range(4):
        count = int(generator.integers(0, 6))
        draws = Draws(generator.integers(0, queries, count), generator.random(count) < 0.5)
        rounds.append((heat * t, draws, generator.random(queries).astype(np.float32)))
    return rounds


def filled(
    workload: Workload, log_prior: np.ndarray, rounds
) -> tuple[CompiledWorkload, Likelihood]:
    compiled = CompiledWorkload.of(workload)
    likelihood = Likelihood(compiled, log_prior, len(rounds))
    for temperature, draws, against in rounds:
        likelihood.add(temperature, draws, against[compiled.order])
    return compiled, likelihood


@given(st.integers(0, 10_000), st.sampled_from([3.0, 40.0, 900.0]))
@settings(max_examples=60)
def test_the_likelihood_equals_its_definition(seed: int, heat: float) -> None:
    """Also where exponents leave the range of single precision, as at 900."""
    generator = np.random.default_rng(seed)
    workload = random_marginals(SMALL, 2, 30, seed=seed)
    log_prior = generator.normal(size=30)
    rounds = some_rounds(30, generator, heat)
    compiled, likelihood = filled(workload, log_prior, rounds)
    answers = generator.random(30).astype(np.float32)
    value, slope = likelihood.slopes(answers[compiled.order])
    # The kernel leaves out nothing: at equal answers the normaliser is Σ w·2cosh.
    expected = likelihood_twin(answers.astype(float), rounds, log_prior)
    assert value == pytest.approx(expected, rel=2e-4, abs=2e-3)
    step = 3e-4 / heat
    for query in generator.integers(0, 30, 4):
        up, down = answers.astype(float), answers.astype(float)
        up[query] += step
        down[query] -= step
        numeric = (
            likelihood_twin(up, rounds, log_prior) - likelihood_twin(down, rounds, log_prior)
        ) / (2 * step)
        place = int(np.flatnonzero(compiled.order == query)[0])
        assert slope[place] == pytest.approx(numeric, rel=1e-3, abs=1e-3 * heat / 3.0)


@pytest.mark.parametrize(
    "workload",
    [
        random_marginals(SMALL, 3, 60),
        random_marginals(SMALL, 1, 10),
        random_marginals(SMALL, 2, 20) + parities(SMALL, 2) + random_marginals(SMALL, 3, 9),
        with_probes(random_marginals(SMALL, 3, 60)).queries,
    ],
    ids=["three", "one", "mixed", "probes"],
)
@pytest.mark.parametrize("shrinkage", [0.0, 2.5])
def test_the_gradient_equals_finite_differences(workload: Workload, shrinkage: float) -> None:
    generator = np.random.default_rng(3)
    compiled = CompiledWorkload.of(workload)
    ascent = Ascent(compiled.stack, 4, shrinkage)
    parameters = Parameters.start(compiled.stack, 4, noise=1.0, seed=2)
    parameters.flat[-4:] = generator.normal(size=4)
    held = parameters.weights  # the prior's own weights are not differentiated
    slope = generator.normal(size=len(workload)).astype(np.float32)

    def value(flat: np.ndarray) -> float:
        model = ascent.mixture(Parameters.at(flat.astype(np.float32), 4))
        exact = answers_twin(workload, model.weights, model.tables)
        logits = flat[:-4].reshape(-1, 4)
        apart = logits - (logits @ held)[:, None]
        prior = -0.5 * shrinkage * float((held * apart**2).sum())
        return float(slope.astype(float) @ exact[compiled.order]) + prior

    pulled = Drawn(compiled, Pull(slope), Buffers(compiled, 4))
    tables = ascent.tables(parameters)
    slopes = pulled.slopes(tables, parameters.weights.astype(np.float32))
    gradient = ascent.gradient(parameters, tables, slopes, parameters.weights)
    step = 1e-2
    for place in [*generator.integers(0, len(parameters.flat), 12), -1, -3]:
        up, down = parameters.flat.copy(), parameters.flat.copy()
        up[place] += step
        down[place] -= step
        numeric = (value(up) - value(down)) / float(up[place] - down[place])
        assert gradient[place] == pytest.approx(numeric, rel=5e-3, abs=2e-3)


def test_answers_in_single_precision_agree_with_the_published_ones() -> None:
    workload = random_marginals(SMALL, 3, 200) + parities(SMALL, 2)
    compiled = CompiledWorkload.of(workload)
    ascent = Ascent(compiled.stack, 8)
    parameters = Parameters.start(compiled.stack, 8, noise=1.5, seed=1)
    weights = parameters.weights.astype(np.float32)
    answers = answers_of(compiled, ascent.tables(parameters), weights, Buffers(compiled, 8))
    trained = compiled.in_query_order(answers)
    published = ascent.mixture(parameters).answers(workload)
    np.testing.assert_allclose(trained, published, atol=2e-6)


def test_attributes_no_query_mentions_are_free() -> None:
    workload = random_marginals(Schema(SMALL.attributes[:2]), 2, 10)
    over_three = Workload.of(list(workload), SMALL)
    compiled = CompiledWorkload.of(over_three)
    assert compiled.stack.rows == 5
    parameters = Parameters.start(compiled.stack, 2, 0.5, 0)
    expected = {Free.RANDOM: [0.25] * 4, Free.ZERO: [1, 0, 0, 0], Free.DEFAULT: [0, 0, 1, 0]}
    schema = Schema((*SMALL.attributes[:2], Attribute.categorical("c", "pqrs", default="r")))
    for free, shares in expected.items():
        model = Ascent(Stack.of(schema, [0, 1]), 2).mixture(parameters, free)
        np.testing.assert_allclose(model.tables[5:], np.array(shares)[:, None] * np.ones((1, 2)))


def drawn_from(truth: Mixture, samples: int, rounds: int, seed: int, schedule: Schedule):
    """A game against a known distribution, as if its table were infinitely large."""
    actions = with_probes(all_marginals(SMALL, 2))
    size = 10**7
    counts = np.rint(truth.answers(actions.queries) * size).astype(np.int64)
    player = ModelPlayer(actions, schedule, rounds)
    state, transcript = play(
        QueryPlayer(Counted(counts, size), log_prior=actions.log_prior),
        player,
        np.minimum(5 * 1.4 ** np.arange(rounds), 60.0),
        np.full(rounds, samples),
        SeededSource(seed),
    )
    return actions, player, state, transcript


def test_the_estimate_comes_closer_as_draws_grow() -> None:
    generator = np.random.default_rng(4)
    truth = Mixture(SMALL, np.array([0.4, 0.6]), random_tables(SMALL, 2, generator))
    schedule = Schedule(components=8, round_steps=10, final_steps=80)
    errors = []
    for samples in (20, 300, 5000):
        actions, _, _, transcript = drawn_from(truth, samples, 12, 1, schedule)
        model = fit_transcript(actions, transcript, schedule, schedule)
        asked = all_marginals(SMALL, 3)
        errors.append(np.abs(model.answers(asked) - truth.answers(asked)).mean())
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.004


def test_a_stored_transcript_gives_the_likelihood_of_the_game() -> None:
    """What each round was drawn against is in the transcript, so anyone can refit."""
    truth = Mixture(SMALL, np.ones(1), random_tables(SMALL, 1, np.random.default_rng(0)))
    schedule = Schedule(components=4, round_steps=3, final_steps=0)
    actions, player, state, transcript = drawn_from(truth, 30, 6, 2, schedule)
    again = fit_transcript(actions, transcript, schedule, schedule)
    np.testing.assert_allclose(player.answers(state), again.answers(actions.queries), atol=2e-6)
    rebuilt = ModelPlayer(actions, schedule, 6)
    here, there = player._likelihood_of(state), rebuilt._likelihood_of(state)
    answers = player._answers(state.parameters)
    assert here.slopes(answers)[0] == pytest.approx(there.slopes(answers)[0], rel=1e-6)


def test_more_steps_never_lower_the_likelihood_much() -> None:
    truth = Mixture(SMALL, np.ones(1), random_tables(SMALL, 1, np.random.default_rng(5)))
    schedule = Schedule(components=4, round_steps=5)
    _, player, state, _ = drawn_from(truth, 200, 8, 3, schedule)
    drawn = Drawn(player._compiled, player._likelihood_of(state), player._buffers)
    parameters, values = state.parameters, []
    for rate in schedule.final_rates(60.0):
        parameters, value = player._ascent.step(parameters, [drawn], rate)
        values.append(value)
    assert values[-1] >= values[0]
    assert values[-1] >= max(values) - 0.5


def test_rates_fall_with_sharp_temperatures() -> None:
    schedule = Schedule(components=4)
    assert schedule.round_rates(SHARP) == schedule.round_rates(1.0)
    np.testing.assert_allclose(
        4 * np.array(schedule.round_rates(4 * SHARP)), schedule.round_rates(0.0)
    )
    np.testing.assert_allclose(
        2 * np.array(schedule.final_rates(2 * SHARP)), schedule.final_rates(SHARP)
    )


def test_expected_distinct_draws_are_what_simulated_ones_name() -> None:
    log_prior = np.log(np.array([50.0, 10.0, 10.0, 1.0, 1.0, 1.0, 1.0, 1.0]))
    asked = all_marginals(SMALL, 1).take(np.arange(8))
    actions = Actions(asked, 8, log_prior)
    generator = np.random.default_rng(0)
    shares = np.exp(log_prior) / np.exp(log_prior).sum()
    for samples in (1, 5, 40):
        seen = [len(set(generator.choice(8, samples, p=shares))) for _ in range(4000)]
        assert actions.expected_distinct(samples) == pytest.approx(np.mean(seen), abs=0.08)
    assert Actions.plain(asked.take(np.array([0]))).expected_distinct(9) == pytest.approx(1.0)


def test_rounds_whose_draws_gather_on_few_queries_have_more_passes() -> None:
    truth = Mixture(SMALL, np.ones(1), random_tables(SMALL, 1, np.random.default_rng(5)))
    schedule = Schedule(components=4, round_steps=5, most_passes=3)
    _, player, _, _ = drawn_from(truth, 1, 1, 3, schedule)
    start = player.start()
    few = Draws(np.zeros(400, dtype=np.int64), np.zeros(400, dtype=bool))
    steps = player.respond(start, 20.0, few).steps
    assert 5 < steps <= 15
    spread = np.arange(400) % len(player.actions)
    even = Draws(spread, np.arange(400) // len(player.actions) % 2 == 1)
    assert player.respond(start, 20.0, even).steps == 5


def test_a_fit_from_scratch_stops_when_the_likelihood_does() -> None:
    """Few draws are soon explained; many take longer, but never more than the limit."""
    truth = Mixture(SMALL, np.ones(1), random_tables(SMALL, 1, np.random.default_rng(6)))
    schedule = Schedule(components=4, round_steps=2, final_steps=60)
    actions, _, _, transcript = drawn_from(truth, 40, 5, 4, schedule)
    compiled = CompiledWorkload.of(actions.queries)
    likelihood = Likelihood(compiled, actions.log_prior, len(transcript))
    for one in transcript:
        likelihood.add(one.temperature, one.draws, np.full(len(actions), 0.3, np.float32))
    ascent, buffers = schedule.ascent(compiled.stack), Buffers(compiled, 4)
    climbed = fit._climbed(ascent, Drawn(compiled, likelihood, buffers), schedule)
    assert fit.PATIENCE < climbed.steps <= fit.MOST_STRETCHES * 60
    nothing = Likelihood(compiled, actions.log_prior, 1)
    flat = fit._climbed(ascent, Drawn(compiled, nothing, buffers), schedule)
    assert flat.steps == fit.PATIENCE + 1


def test_the_number_of_components_follows_the_width() -> None:
    assert [components_for(codes) for codes in (10, 235, 396, 2000, 35_540)] == [64, 64, 64, 16, 8]


def test_plain_actions_have_no_probes() -> None:
    workload = random_marginals(SMALL, 2, 20)
    actions = Actions.plain(workload)
    assert actions.workload is workload
    assert not actions.log_prior.any()


def test_probes_are_halves_on_the_asked_attributes() -> None:
    workload = random_marginals(SMALL, 3, 500)
    actions = with_probes(workload)
    assert list(actions.workload) == list(workload)
    assert len(actions) == len(actions.log_prior) > len(workload)
    prior = np.exp(actions.log_prior)
    shares = prior / prior.sum()
    lengths = np.diff(actions.queries.start)
    probes = np.arange(len(actions)) >= len(workload)
    assert shares[~probes].sum() == pytest.approx(0.4)
    assert shares[probes & (lengths == 1)].sum() == pytest.approx(0.1)
    assert shares[probes & (lengths == 2)].sum() == pytest.approx(0.5)
    again = with_probes(workload)
    assert again.queries.fingerprint == actions.queries.fingerprint
    alone = with_probes(random_marginals(SMALL, 1, 50))
    assert (np.diff(alone.queries.start) == 1).all()


def test_half_sets_of_a_large_domain() -> None:
    schema = Schema((Attribute.categorical("big", range(20)), Attribute.binary("b")))
    actions = with_probes(random_marginals(schema, 2, 50))
    halves = {
        query.literals[0].codes
        for query in list(actions.queries)[50:]
        if len(query.literals) == 1 and query.literals[0].attribute == 0
    }
    assert len(halves) == 8 * 20
    assert {len(codes) for codes in halves} == {10}
    assert all(0 not in codes for codes in halves)


def test_more_budget_makes_draws_of_a_wide_table_more_accurate() -> None:
    """With full steps at sharp temperatures, ε = 6 used to be five times worse than ε = 1."""
    table = BiasedTable(100_000, 600, 0)
    workload = random_marginals(table.schema, 3, 20_000, seed=0)
    counted = LocalEngine().count(table, workload, OutOfDomain.REFUSE)
    truth = counted.counts / counted.rows
    errors = []
    for epsilon in (1.0, 6.0):
        job = DualQuery(
            epsilon=epsilon, delta=1e-3, player="model", errors=False, seed=0, measure=False
        )
        made = job.fit(table, schema=table.schema, workload=workload)
        found = np.abs(made.answers() - truth)
        errors.append((found.max(), found.mean()))
    assert errors[1][0] < 0.9 * errors[0][0]
    assert errors[1][1] < 0.9 * errors[0][1]
