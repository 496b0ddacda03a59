"""Measured tables, from the plan to the release: what they cost, and that they help."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.base.errors import ParameterError, ReleaseError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.evaluation.figures import evaluate
from dualquery.game import tables as tables_module
from dualquery.game.tables_plan import FINER, FINEST, make_tables_plan
from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.game.tables_shape import Shape, attribute_sets
from dualquery.game.tables_steps import Kind, Step, TablesPlan, rounds_of_draws
from dualquery.game.transcript import Transcript
from dualquery.model.grouping import MOST_CELLS
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement, measure
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.purse import Purse
from dualquery.privacy.sources import SeededSource
from dualquery.release import verifying
from dualquery.release.parameters import RunParameters
from dualquery.workloads.generators import all_marginals, parities, random_marginals
from dualquery.workloads.interest import Interest
from dualquery.workloads.marginals import Groups, Marginals

ROWS = 20_000


@cache
def schema() -> Schema:
    return Schema(
        (
            Attribute.categorical("a", list("pqrs")),
            Attribute.categorical("b", list("uvw")),
            Attribute.binary("c"),
            Attribute.categorical("codes", [f"x{i}" for i in range(60)]),
            Attribute.numeric("d", [0, 10, 20, 30, 40]),
        )
    )


@cache
def table(rows: int = ROWS, seed: int = 3) -> pa.Table:
    """Columns that depend on one another, and one with many rare codes."""
    random = np.random.default_rng(seed)
    a = random.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])
    b = np.where(random.random(rows) < 0.8, a % 3, random.integers(0, 3, rows))
    c = (random.random(rows) < np.where(b == 1, 0.8, 0.1)).astype(int)
    codes = np.minimum(random.geometric(0.2, rows) - 1 + 3 * c, 59)
    d = 10 * a + random.integers(0, 10, rows)
    return pa.table(
        {
            "a": np.array(list("pqrs"))[a],
            "b": np.array(list("uvw"))[b],
            "c": c,
            "codes": [f"x{i}" for i in codes],
            "d": d,
        }
    )


def job(**settings) -> dq.DualQuery:
    defaults = {"epsilon": 1.0, "delta": 1e-5, "queries": 4000, "seed": 1, "errors": False}
    return dq.DualQuery(**{**defaults, **settings})


@pytest.mark.parametrize("accountant", ["gaussian", "zcdp", "pure"])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_planned_and_the_stated_cost_are_within_the_budget(
    accountant: str, neighbours: Neighbours
) -> None:
    delta = 0.0 if accountant == "pure" else 1e-5
    budget = Budget(1.0, delta, ROWS, neighbours, accountant)
    plan = make_tables_plan(budget, Shape.of(random_marginals(schema(), 3, 2000)))
    assert plan is not None
    assert sum(step.share for step in plan.steps) == pytest.approx(1.0)
    assert 0.999 < budget.cost(plan.events) / budget.epsilon <= 1.0
    assert plan.purse.noise is (Noise.LAPLACE if accountant == "pure" else Noise.GAUSSIAN)
    made = job(accountant=accountant, delta=delta, neighbours=str(neighbours), rows=ROWS).fit(
        table(), schema=schema()
    )
    assert made.parameters.tables is not None
    assert 0.9 < made.privacy.epsilon <= 1.0
    events = made.transcript.events(ROWS, neighbours)
    assert len(events.measurements) == len(made.transcript.measurements) >= 3


def test_accountants_without_noise_and_parities_are_left_to_draws() -> None:
    shape = Shape.of(random_marginals(schema(), 3, 100))
    for accountant in ("advanced", "per-round"):
        assert make_tables_plan(Budget(1.0, 1e-5, ROWS, accountant=accountant), shape) is None
        with pytest.raises(ParameterError, match="does not cover measured tables"):
            Purse(Budget(1.0, 1e-5, ROWS, accountant=accountant))
    assert make_tables_plan(Budget(1.0, 1e-5, ROWS), Shape.of(parities(schema(), 2))) is None
    assert make_tables_plan(Budget(1.0, 1e-5, 50), shape) is None, "noise would drown the pairs"


def test_the_workload_decides_which_tables_there_are() -> None:
    declared = schema()
    one = make_tables_plan(Budget(1.0, 1e-5, ROWS), Shape.of(all_marginals(declared, 1)))
    assert one is not None
    assert [step.kind for step in one.steps] == [Kind.ONE_WAY]
    named = dq.Workload.of([dq.parse("a=p & c", declared), dq.parse("b=u", declared)], declared)
    assert attribute_sets(named, 2).tolist() == [[0, 2]]
    assert attribute_sets(named, 3).tolist() == []
    narrow = Schema(tuple(Attribute.binary(f"x{i}") for i in range(8)))
    kinds = [
        step.kind
        for step in make_tables_plan(
            Budget(1.0, 1e-5, ROWS), Shape.of(random_marginals(narrow, 3, 500))
        ).steps
    ]
    assert kinds == [Kind.ONE_WAY, Kind.TRIPLES], "triples tell about pairs, and leave no round"
    pure = make_tables_plan(
        Budget(20.0, 0.0, 100 * ROWS, accountant="pure"), Shape.of(random_marginals(narrow, 3, 500))
    )
    listed = [step.kind for step in pure.steps]
    expected = [Kind.ONE_WAY, Kind.TRIPLES, *[Kind.DRAWS, Kind.NAMED] * 3]
    assert listed == expected, "Laplace noise adds up, so few tables get much less of it"


def test_pairs_that_no_triple_holds_are_measured_beside_triples() -> None:
    """One query on three columns must not take the budget from many queries on two."""
    narrow = Schema(tuple(Attribute.binary(f"x{i}") for i in range(8)))
    one = dq.Workload.of([dq.parse("x0 & x1 & x2", narrow)], narrow)
    asked = Shape.of(all_marginals(narrow, 2) + one)
    assert (asked.pairs, asked.triples, asked.lone) == (28, 1, 25)
    assert Shape.of(all_marginals(narrow, 3)).lone == 0
    assert Shape.of_all(narrow, 3).lone == 0
    assert Shape.of_all(narrow, 2).lone == 28
    plan = make_tables_plan(Budget(1.0, 1e-5, ROWS), asked)
    assert plan is not None
    shares = {kind: sum(step.share for step in plan.steps if step.kind is kind) for kind in Kind}
    assert shares[Kind.ONE_WAY] == pytest.approx(8 / 34)
    assert shares[Kind.PAIRS] == pytest.approx(25 / 34)
    assert shares[Kind.TRIPLES] == pytest.approx(1 / 34)
    assert sum(shares.values()) == pytest.approx(1.0)


def test_a_pure_budget_too_small_for_pairs_measures_the_few_tables_that_draws_name() -> None:
    bits = Schema(tuple(Attribute.binary(f"x{i}") for i in range(17)))
    shape = Shape.of(random_marginals(bits, 3, 2000))
    budget = Budget(1.0, 0.0, 30_162, accountant="pure")
    plan = make_tables_plan(budget, shape)
    assert plan is not None
    assert [step.kind for step in plan.steps] == [Kind.ONE_WAY, *[Kind.DRAWS, Kind.NAMED] * 3]
    assert sum(step.share for step in plan.steps) == pytest.approx(1.0)
    assert 0.999 < budget.cost(plan.events) <= 1.0
    assert plan.grouping_noise == plan.purse.deviation(plan.steps[2].share, 5)
    assert make_tables_plan(Budget(1.0, 0.0, 1000, accountant="pure"), shape) is None
    enough = make_tables_plan(Budget(5.0, 0.0, 30_162, accountant="pure"), shape)
    assert Kind.PAIRS in [step.kind for step in enough.steps]


def test_weights_of_queries_decide_the_share_of_pairs() -> None:
    declared, budget = schema(), Budget(1.0, 1e-5, ROWS)
    interest = Interest(queries=3000, k=2, focus=("b",))
    asked = interest.workload(declared)
    weights = interest.weights(asked)
    plan = make_tables_plan(budget, Shape.of(asked, weights))
    assert plan is not None
    assert sum(step.share for step in plan.steps) == pytest.approx(1.0)
    first, second = (step for step in plan.steps if step.kind is Kind.PAIRS)
    assert (first.tables, first.level, second.tables, second.level) == (4, 2, 6, 0)
    finer, coarser = (plan.purse.deviation(s.share, s.tables) for s in (first, second))
    assert coarser / finer == pytest.approx(10 ** (1 / 3), rel=1e-6)
    player = TablesPlayer(asked, plan, weights=weights)
    made = job(k=2, focus="b", queries=3000).fit(table(), schema=declared)
    measured = made.transcript.measurements
    assert np.array_equal(
        measured[1].marginals.attributes,
        player.marginals(Known((measured[0].in_codes(declared),)), first).attributes,
    )
    assert (measured[1].marginals.attributes == 1).any(axis=1).all()
    assert not (measured[2].marginals.attributes == 1).any()
    assert TablesPlan.from_dict(budget, plan.to_dict()) == plan


def test_a_focus_lowers_the_error_of_what_it_names() -> None:
    private, declared = table(), schema()
    judged = all_marginals(declared, 2)
    named = np.array([any(one.attribute == 1 for one in query.literals) for query in judged])
    errors = []
    for focus in ((), ("b",)):
        found = 0.0
        for seed in range(2):
            asked = job(marginals=(1, 2), focus=focus, queries=None, seed=seed)
            figures = evaluate(asked.fit(private, schema=declared), private, judged)
            found += float(np.abs(figures.released - figures.truth)[named].mean())
        errors.append(found)
    assert errors[1] < 0.95 * errors[0], errors


@pytest.mark.parametrize(
    ("rows", "epsilon", "kinds"),
    [
        (30_000, 1.0, {Kind.PAIRS}),
        (30_000, 3.0, {Kind.PAIRS, Kind.TRIPLES}),
        (30_000, 1000.0, {Kind.PAIRS, Kind.TRIPLES}),
    ],
)
def test_more_budget_brings_triples_and_components(
    rows: int, epsilon: float, kinds: set[Kind]
) -> None:
    schema = Schema(tuple(Attribute.categorical(f"a{i}", list("abcdefgh")) for i in range(15)))
    plan = make_tables_plan(Budget(epsilon, 1e-6, rows), Shape.of(all_marginals(schema, 3)))
    assert plan is not None
    assert {step.kind for step in plan.steps} == {Kind.ONE_WAY, *kinds}
    tables = {step.kind: plan.purse.deviation(step.share, step.tables) for step in plan.steps}
    assert max(tables.values()) == pytest.approx(min(tables.values()), rel=1e-6), "the same noise"
    triples = Kind.TRIPLES in kinds
    finest = triples and plan.resolution >= FINEST
    assert plan.components == (192 if finest else 64 if plan.resolution >= FINER else 32)
    assert plan.members == (2 if finest else 4)


def test_triples_are_left_where_a_fit_would_take_too_long() -> None:
    """Of 15 columns with 40 codes each, all triples have 29 million cells."""
    schema = Schema(tuple(Attribute.categorical(f"a{i}", range(40)) for i in range(15)))
    plan = make_tables_plan(Budget(1000.0, 1e-6, 30_000), Shape.of_all(schema, 3))
    assert plan is not None
    assert Kind.TRIPLES not in {step.kind for step in plan.steps}
    assert plan.rounds == 0, "draws would name such triples, too"


def test_a_column_of_many_codes_gets_few_components_and_no_rounds() -> None:
    """Tables inside a tree are products of edges: with 64 components a fit took ten minutes."""
    narrow = [Attribute.categorical(f"a{i}", range(10)) for i in range(8)]
    for codes, components, rounds in ((20, 64, 3), (2000, 8, 0)):
        schema = Schema((*narrow, Attribute.categorical("code", range(codes))))
        asked = replace(Shape.of_all(schema, 3), triples=0)
        plan = make_tables_plan(Budget(1.0, 1e-6, 135_000), asked)
        assert plan is not None
        assert (plan.components, plan.rounds) == (components, rounds)


def test_a_plan_survives_its_way_through_a_file() -> None:
    budget = Budget(1.0, 1e-5, ROWS)
    plan = make_tables_plan(budget, Shape.of_all(schema(), 3))
    assert TablesPlan.from_dict(budget, plan.to_dict()) == plan


def test_the_noise_of_pairs_matters_where_nothing_else_is_measured() -> None:
    """It is public; rounds of draws and triples say more than pairs do."""
    shape = Shape.of_all(schema(), 2)
    noisy, clear = (make_tables_plan(Budget(e, 1e-5, ROWS), shape) for e in (0.1, 10.0))
    assert noisy.rounds == 0
    assert clear.rounds > 0
    assert clear.noise_of_pairs == 0.0
    pairs = next(step for step in noisy.steps if step.kind is Kind.PAIRS)
    expected = noisy.purse.deviation(pairs.share, pairs.tables) / ROWS
    assert noisy.noise_of_pairs == pytest.approx(expected)
    triples = replace(noisy, steps=(*noisy.steps, Step(Kind.TRIPLES, 0.1, 5)))
    assert triples.noise_of_pairs == 0.0


def test_tables_are_more_accurate_than_draws_and_intervals_hold() -> None:
    private = table()
    measured = job(errors=True).fit(private, schema=schema())
    drawn = job(measure=False).fit(private, schema=schema())
    assert drawn.parameters.tables is None
    ours, theirs = evaluate(measured, private), evaluate(drawn, private)
    assert ours.distance.average_error < 0.6 * theirs.distance.average_error
    assert ours.distance.max_error < theirs.distance.max_error
    spread = measured.standard_errors(measured.workload)
    assert 0.9 < np.mean(np.abs(ours.released - ours.truth) <= 1.96 * spread) <= 1.0


def test_a_wrong_reference_size_does_no_harm() -> None:
    private = table()
    found = []
    for rows in (ROWS, ROWS * 4 // 3, ROWS * 2 // 3):
        made = job(neighbours="add-remove", rows=rows).fit(private, schema=schema())
        found.append(evaluate(made, private).distance.average_error)
    assert max(found) < 2.5 * min(found), found


def test_a_release_is_read_back_with_its_measurements(tmp_path: Path) -> None:
    made = job().release(table(), tmp_path / "out", schema=schema())
    again = dq.load(tmp_path / "out")
    assert again.privacy.epsilon == made.privacy.epsilon
    assert len(again.transcript.measurements) == len(made.transcript.measurements)
    for one, other in zip(again.transcript, made.transcript, strict=True):
        assert (one.measurement is None) == (other.measurement is None)
        if one.measurement is not None:
            np.testing.assert_array_equal(one.measurement.counts, other.measurement.counts)
            assert one.measurement.scale == other.measurement.scale
    np.testing.assert_allclose(
        again.answers(again.workload), made.answers(made.workload), atol=1e-12
    )
    from dualquery.release.refitting import refitted

    same = refitted(again, errors=False)
    np.testing.assert_allclose(same.answers(again.workload), made.answers(made.workload), atol=1e-9)
    fewer = refitted(again, components=8, errors=False)
    assert len(fewer.model.weights) < len(made.model.weights)


def test_the_noise_is_that_of_the_source_and_of_no_other_round() -> None:
    declared = schema()
    marginals = Marginals(Groups.single(declared), np.array([[0], [1]], np.int32))
    counts = np.arange(marginals.cells) * 1000
    one = measure(counts, marginals, Noise.GAUSSIAN, 50.0, SeededSource(4).for_round(0))
    same = measure(counts, marginals, Noise.GAUSSIAN, 50.0, SeededSource(4).for_round(0))
    other = measure(counts, marginals, Noise.GAUSSIAN, 50.0, SeededSource(4).for_round(1))
    np.testing.assert_array_equal(one.counts, same.counts)
    assert not np.array_equal(one.counts, other.counts)
    assert np.abs(one.counts - counts).max() < 50.0 * 6
    shifted = measure(counts + 7, marginals, Noise.GAUSSIAN, 50.0, SeededSource(4).for_round(0))
    np.testing.assert_array_equal(shifted.counts - one.counts, 7)


def test_everything_after_the_noise_is_public(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """With draws and noise replaced by fixed ones, the release does not depend on the table."""
    from dualquery.privacy.sampler import Draws

    def fixed(counts, marginals, noise, scale, source):
        made = np.random.default_rng(len(counts)).integers(0, 500, len(counts))
        return measure(np.zeros_like(counts), marginals, noise, scale, source).__class__(
            marginals, noise, scale, made
        )

    monkeypatch.setattr(tables_module, "measure", fixed)
    monkeypatch.setattr(
        tables_module,
        "_draws",
        lambda drawer, player, known, temperature, samples, source, answering: Draws(
            np.arange(samples), np.zeros(samples, bool)
        ),
    )
    paths = []
    for seed in (1, 2):
        out = tmp_path / f"out{seed}"
        job(queries=300).release(table(seed=seed), out, schema=schema())
        paths.append({file.name: file.read_bytes() for file in out.iterdir()})
    assert paths[0] == paths[1]


@pytest.fixture(scope="module")
def whole() -> dq.Release:
    """A run that nobody killed."""
    return job(queries=300).fit(table(), schema=schema())


@pytest.mark.parametrize("kill_at", [0, 1, 2, 4])
def test_a_killed_run_goes_on_with_what_it_measured(
    kill_at: int, whole: dq.Release, tmp_path: Path
) -> None:
    """Killed while it fits or tabulates, it neither measures nor pays a second time."""
    from dualquery.engines.local import LocalEngine

    plain, calls = LocalEngine.tabulate, []

    class StopError(BaseException):
        pass

    def stopping(self, source, declared, marginals, treatment):
        calls.append(len(marginals))
        if len(calls) == kill_at + 1:
            raise StopError
        return plain(self, source, declared, marginals, treatment)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalEngine, "tabulate", stopping)
        with pytest.raises(StopError):
            job(queries=300).release(table(), tmp_path / "out", schema=schema())
    resumed = job(queries=300).release(table(), tmp_path / "out", schema=schema(), resume=True)
    assert len(calls) == kill_at + 1
    for one, other in zip(
        whole.transcript.measurements, resumed.transcript.measurements, strict=True
    ):
        np.testing.assert_array_equal(one.counts, other.counts)
    np.testing.assert_array_equal(whole.model.tables, resumed.model.tables)


def test_the_mean_price_of_a_batch_is_that_of_its_tables() -> None:
    declared = schema()
    marginals = Marginals(Groups.single(declared), np.array([[0], [1], [2]], np.int32))
    one = measure(
        np.zeros(marginals.cells, np.int64), marginals, Noise.GAUSSIAN, 10.0, SeededSource(1)
    )
    for neighbours, delta in ((Neighbours.REPLACE_ONE, 2.0), (Neighbours.ADD_REMOVE, 1.0)):
        assert one.event(neighbours).mu_squared == pytest.approx(3 * delta / 100.0)
        laplace = replace(one, noise=Noise.LAPLACE).event(neighbours)
        assert laplace.pure == pytest.approx(3 * delta / 10.0)


def test_wide_columns_are_grouped_until_the_tables_that_draws_may_name_can_be_counted() -> None:
    """Columns of 1,000 frequent codes: a table of three of them would have a billion cells."""
    declared = Schema(
        (
            *(Attribute.categorical(f"c{i}", [f"x{j}" for j in range(1000)]) for i in range(3)),
            Attribute.categorical("few", list("pqrs")),
        )
    )
    asked = random_marginals(declared, 3, 500)
    plan = make_tables_plan(Budget(5.0, 1e-6, 300_000), Shape.of(asked))
    assert plan is not None
    assert [step.kind for step in plan.steps] == [Kind.ONE_WAY, Kind.PAIRS]
    plan = replace(plan, steps=(*plan.steps, *rounds_of_draws(0.03, 0.07, 3, 50)))
    player = TablesPlayer(asked, plan)
    first = player.marginals(player.start(), plan.steps[0])
    counts = np.full(first.cells, 300)
    counts[-4:] = [100_000, 90_000, 70_000, 40_000]
    scale = plan.purse.scale(plan.steps[0].share, len(first))
    one_way = measure(counts, first, Noise.GAUSSIAN, scale, SeededSource(1))
    known = Known(measurements=(one_way,), named=((0, 1, 2), (0, 1, 3)))
    named = player.marginals(known, plan.steps[3])
    assert 1 << 20 < named.cells <= MOST_CELLS
    assert named.groups.sizes[3] == 4, "narrow columns keep their codes"


def test_a_named_one_way_table_means_the_same_after_a_resume() -> None:
    """Draws may name single attributes; their table is of groups, also when read from a file."""
    declared = schema()
    queries = [dq.parse(text, declared) for text in ("a=p & codes=x1", "codes=x2", "c & d>=20")]
    asked = dq.Workload.of(queries, declared)
    plan = make_tables_plan(Budget(1.0, 1e-5, ROWS), Shape.of(asked))
    player = TablesPlayer(asked, plan)
    first = player.marginals(player.start(), plan.steps[0])
    counts = np.zeros(first.cells, np.int64)
    counts[first.start[:-1]] = ROWS
    counts[first.start[2] + np.array([0, 30])] = 0, ROWS  # the first group is not the first code
    known = Known((measure(counts, first, Noise.GAUSSIAN, 20.0, SeededSource(1)),), ((3,),))
    named = player.marginals(known, plan.steps[3])
    assert named.cells < 60, "rare codes are grouped"
    made = measure(np.arange(named.cells), named, Noise.GAUSSIAN, 20.0, SeededSource(2))
    again = Measurement.from_arrays(made.to_arrays())
    fits = []
    for one in (made, again):
        after = replace(known, measurements=(*known.measurements, one), named=())
        fits.append(player.fitted_anew(after, 3).members)
    np.testing.assert_array_equal(fits[0], fits[1])


@pytest.mark.parametrize("rows", [10, 1000, 10_000_000])
def test_a_draw_with_another_divisor_costs_no_more_than_was_charged(rows: int) -> None:
    """The rounding charge grows with the temperature that is really used."""
    unit = Neighbours.ADD_REMOVE
    for temperature in (1e-3, 7.0, 3000.0):
        for reference in (1, 999, 5_000_000):
            used = unit.rescaled(temperature, rows, reference)
            charged = float(unit.draw_range(temperature, rows))
            assert float(unit.draw_range(used, reference)) <= charged
            if charged > 1e-6:
                assert used == pytest.approx(temperature * reference / rows, rel=1e-2)


def test_draws_under_add_remove_use_the_temperature_that_was_paid_for() -> None:
    declared = schema()
    asked = random_marginals(declared, 3, 300)
    budget = Budget(4.0, 1e-5, 2000, Neighbours.ADD_REMOVE)
    plan = make_tables_plan(budget, Shape.of(asked), started=True)
    player = TablesPlayer(asked, plan)
    first = player.marginals(player.start(), plan.steps[0])
    counts = np.zeros(first.cells, np.int64)
    counts[first.start[:-1]] = 5_000_000
    known = Known((measure(counts, first, Noise.GAUSSIAN, 20.0, SeededSource(1)),))
    told = []

    class Drawer:
        def draw(self, temperature, played, samples, source, *, reference=None):
            told.append((temperature, reference))

    tables_module._draws(Drawer(), player, known, plan.temperature, 5, SeededSource(1))
    ((used, reference),) = told
    assert reference == pytest.approx(5_000_000, rel=1e-3)
    assert used > 2048.0, "or the rounding charge would be the same"
    paid = budget.neighbours.draw_range(plan.temperature, budget.rows)
    assert budget.neighbours.draw_range(used, reference) <= paid


def resealed(out: Path, **changes) -> None:
    """Change arrays of a transcript (None takes one out), and every digest with them."""
    with np.load(out / "transcript.npz") as stored:
        arrays = {**stored, **changes}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    np.savez_compressed(out / "transcript.npz", **arrays)
    content = json.loads((out / "release.json").read_text())
    content["files"]["transcript.npz"] = hashlib.sha256(
        (out / "transcript.npz").read_bytes()
    ).hexdigest()
    content["digest"] = verifying.content_digest(content)
    (out / "release.json").write_text(json.dumps(content))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("kept") / "out"
    job(queries=300).release(table(), out, schema=schema())
    return out


def _forged(arrays: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray | None]]:
    code, sizes = arrays["measured_1_of_code"], arrays["measured_1_sizes"]
    tables, counts = arrays["measured_1_attributes"], arrays["measured_1_counts"]
    overlapping, negative = code.copy(), tables.copy()
    overlapping[:4] = 0
    negative[0, 0] -= len(sizes)
    draws = arrays["draw_counts"].copy()
    draws[[1, 2]] = draws[[2, 1]]
    hot = arrays["temperatures"].copy()
    hot[1] = hot[2]
    beyond = {f"measured_99_{name[11:]}": array for name, array in arrays.items()
              if name.startswith("measured_1_")}  # fmt: skip
    return {
        "fewer counts": {"measured_1_counts": counts[:-1]},
        "counts with fractions": {"measured_1_counts": counts + 0.5},
        "no scale": {"measured_1_scale": None},
        "scale zero": {"measured_1_scale": np.array(0.0)},
        "scale negative": {"measured_1_scale": np.array(-50.0)},
        "scale nan": {"measured_1_scale": np.array(np.nan)},
        "two scales": {"measured_1_scale": np.array([50.0, 50.0])},
        "one scale in a list": {"measured_1_scale": arrays["measured_1_scale"][None]},
        "a larger scale": {"measured_1_scale": 2 * arrays["measured_1_scale"]},
        "noise of no kind": {"measured_1_laplace": np.array("no")},
        "empty groups": {"measured_1_of_code": overlapping},
        "groups beyond": {"measured_1_of_code": code + 1},
        "sizes that disagree": {"measured_1_sizes": sizes + 1},
        "huge sizes": {"measured_1_sizes": np.full_like(sizes, 2**31 - 1)},
        "codes of another schema": {"measured_1_code_start": arrays["measured_1_code_start"] + 1},
        "attributes from the end": {"measured_1_attributes": negative},
        "attributes beyond": {"measured_1_attributes": tables + 100},
        "a table twice": {"measured_1_attributes": np.vstack([tables[1:], tables[1:2]])},
        "tables in no round": beyond,
        "draws beside tables": {"draw_counts": draws, "temperatures": hot},
    }


def test_forged_tables_are_refused_in_one_line(kept: Path, tmp_path: Path) -> None:
    with np.load(kept / "transcript.npz") as stored:
        every = _forged(dict(stored))
    for name, changes in every.items():
        out = Path(shutil.copytree(kept, tmp_path / name))
        resealed(out, **changes)
        with pytest.raises(ReleaseError) as refused:
            dq.load(out)
        assert "\n" not in str(refused.value), name
        shutil.rmtree(out)
    resealed(Path(shutil.copytree(kept, tmp_path / "same")))
    dq.load(tmp_path / "same")


def test_draws_beside_a_measurement_are_charged_too(kept: Path) -> None:
    transcript = dq.load(kept).transcript
    rounds = list(transcript)
    drawn = next(one for one in rounds if len(one.draws))
    place = next(i for i, one in enumerate(rounds) if one.measurement is not None)
    plain = transcript.events(ROWS, Neighbours.REPLACE_ONE).mu_squared
    rounds[place] = replace(rounds[place], draws=drawn.draws, temperature=drawn.temperature)
    both = Transcript(tuple(rounds)).events(ROWS, Neighbours.REPLACE_ONE).mu_squared
    assert both > plain * 1.009  # a round of draws costs a hundredth of the budget


def test_sets_of_attributes_agree_with_a_plain_count() -> None:
    declared = schema()
    workload = random_marginals(declared, 3, 40) + random_marginals(declared, 2, 5)
    workload = workload + all_marginals(declared, 1)
    for arity in (1, 2, 3):
        expected = set()
        for query in workload:
            named = sorted(one.attribute for one in query.literals)
            expected |= set(combinations(named, arity))
        assert [tuple(row) for row in attribute_sets(workload, arity).tolist()] == sorted(expected)


def test_wide_tables_are_left_to_draws() -> None:
    wide = Shape(attributes=300, codes=600, pairs=44_850, triples=0)
    assert make_tables_plan(Budget(1.0, 1e-3, 10_000_000), wide) is None


def test_forged_fits_are_refused_in_one_line(kept: Path, tmp_path: Path) -> None:
    from dualquery.release.refitting import refitted

    with np.load(kept / "transcript.npz") as stored:
        name = max(name for name in stored if name.startswith("played_"))
        fits = stored[name]
    for number, forged in enumerate((fits * np.nan, fits[:, :-1], fits[0], np.array("x"))):
        out = Path(shutil.copytree(kept, tmp_path / str(number)))
        resealed(out, **{name: forged})
        with pytest.raises(ReleaseError, match=f"fits in this release|{name}"):
            refitted(dq.load(out), errors=False)
    made = dq.load(kept)
    said = made.parameters.to_dict()
    for tables in ({"steps": 3}, {}):
        with pytest.raises(ReleaseError, match="no plan of its tables"):
            RunParameters.from_dict({**said, "tables": tables})
    larger = {**said["tables"], "components": 10**9}
    forged = replace(made, parameters=RunParameters.from_dict({**said, "tables": larger}))
    with pytest.raises(ReleaseError, match="fits in this release"):
        refitted(forged, errors=False)


def test_a_plan_that_is_not_that_of_the_rounds_is_refused(kept: Path, tmp_path: Path) -> None:
    """Without its plan a release of tables cannot be fitted again, nor can it with another."""

    def shorter(plan) -> None:
        plan["steps"].pop()

    def drawn(plan) -> None:
        plan["steps"][0]["kind"] = str(Kind.DRAWS)

    changes = {
        "no plan": (lambda given: given.pop("tables"), "no plan of them"),
        "nothing": (lambda given: given.update(tables=None), "no plan of them"),
        "shorter": (lambda given: shorter(given["tables"]), "not those of the plan"),
        "another": (lambda given: drawn(given["tables"]), "not those of the plan"),
    }
    for name, (change, said) in changes.items():
        out = Path(shutil.copytree(kept, tmp_path / name))
        content = json.loads((out / "release.json").read_text())
        change(content["parameters"])
        content["digest"] = verifying.content_digest(content)
        (out / "release.json").write_text(json.dumps(content))
        with pytest.raises(ReleaseError, match=said) as refused:
            dq.load(out)
        assert "\n" not in str(refused.value)
