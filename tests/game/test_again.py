"""Columns whose means are unsure are measured again: when, in which cells, at what price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import dualquery as dq
from dualquery.base.errors import ReleaseError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.domain.sub_bins import SubBins
from dualquery.engines.local import LocalEngine
from dualquery.estimator import settings
from dualquery.game import tables as tables_module
from dualquery.game.declared import check_measured
from dualquery.game.tables_plan import AGAIN, make_tables_plan
from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.game.tables_shape import Shape
from dualquery.game.tables_steps import Kind, TablesPlan
from dualquery.game.transcript import Released, Transcript
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement, measure
from dualquery.privacy.sampler import Draws
from dualquery.privacy.sources import SeededSource
from dualquery.release.verifying import check_measurements
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import all_marginals
from dualquery.workloads.marginals import Groups, Marginals

COST = 1
SCHEMA = Schema(
    (
        Attribute.categorical("sex", ["f", "m"]),
        Attribute.numeric("cost", [0.0, 100.0, 1000.0, 50_000.0], missing=True),
        Attribute.numeric("age", [0, 25, 50, 120]),
        Attribute.categorical("city", list("abcd")),
    )
)
ASKED = all_marginals(SCHEMA, 2)
JOB = dq.DualQuery(epsilon=4.0, delta=1e-3, errors=False)


def table(rows: int = 4000, seed: int = 4) -> pa.Table:
    random = np.random.default_rng(seed)
    cost = np.minimum(np.exp(random.normal(np.log(400), 1.3, rows)), 49_999.0)
    return pa.table(
        {
            "sex": random.choice(["f", "m"], rows),
            "cost": pa.array(cost, mask=random.random(rows) < 0.1),
            "age": np.clip(random.normal(45, 15, rows), 0, 120).astype(int),
            "city": random.choice(list("abcd"), rows),
        }
    )


def plan_of(rows: int = 4000) -> TablesPlan:
    plan = make_tables_plan(Budget(2.0, 1e-3, rows), Shape.of(ASKED))
    assert plan is not None
    return plan


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of a few steps: what is fitted does not matter here."""

    def short(budget: Budget, shape: Shape, **more):
        plan = make_tables_plan(budget, shape, **more)
        return plan and replace(
            plan, components=4, members=1, first_steps=3, round_steps=2, last_steps=2
        )

    monkeypatch.setattr(settings, "make_tables_plan", short)


def one_way(rows: int, noise: float, seed: int = 1) -> Measurement:
    """The first tables of a run on many rows."""
    marginals = Marginals(Groups.single(SCHEMA.fine), np.arange(4, dtype=np.int32)[:, None])
    opened = open_table(table(rows))
    counts = LocalEngine().tabulate(opened, SCHEMA.fine, marginals, OutOfDomain.REFUSE)
    return measure(counts, marginals, Noise.GAUSSIAN, noise, SeededSource(seed))


def known_after(player: TablesPlayer, first: Measurement) -> Known:
    return player._with(player.start(), Released.measured(first))


# The plan


def test_the_share_is_kept_only_where_a_column_has_a_long_tail() -> None:
    plan = plan_of()
    assert Shape.of(ASKED).long == 1
    assert [step.kind for step in plan.steps[:3]] == [Kind.ONE_WAY, Kind.AGAIN, Kind.PAIRS]
    assert plan.steps[1].share == AGAIN
    short = Schema(tuple(one for one in SCHEMA.attributes if one.name != "cost"))
    other = make_tables_plan(Budget(2.0, 1e-3, 4000), Shape.of(all_marginals(short, 2)))
    assert other is not None
    assert Kind.AGAIN not in {step.kind for step in other.steps}
    # Dates and ages have no long tail, whatever their edges.
    assert SCHEMA.long == (COST,)
    for one in (plan, other):
        assert sum(step.share for step in one.steps) == pytest.approx(1.0)


@pytest.mark.parametrize("accountant", ["gaussian", "zcdp"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_planned_and_the_stated_cost_are_within_the_budget(
    accountant: str, neighbours: str
) -> None:
    size = {} if neighbours == "replace-one" else {"rows": 4000}
    job = replace(JOB, accountant=accountant, neighbours=neighbours, seed=2, **size)
    made = job.fit(table(), schema=SCHEMA, workload=ASKED)
    steps = made.parameters.tables.steps
    assert steps[1].kind is Kind.AGAIN
    assert made.transcript.measurements[1].marginals.attributes.tolist() == [[COST]]
    assert made.parameters.tables.budget.cost(made.parameters.tables.events) <= 4.0
    assert 3.9 < made.privacy.epsilon <= 4.0


def test_a_start_speaks_of_bins_so_nothing_is_measured_again() -> None:
    plan = replace(JOB, start=table(500, 8)).plan(4000, SCHEMA, ASKED)
    assert plan.tables is not None
    assert Kind.AGAIN not in {step.kind for step in plan.tables.steps}


# What is measured again


def test_an_unsure_mean_is_measured_in_few_cells_that_do_not_overlap() -> None:
    player = TablesPlayer(ASKED, plan_of(), fine=True)
    known = known_after(player, one_way(4000, 30.0))
    found = player.marginals(known, player.plan.steps[1])
    assert found.attributes.tolist() == [[COST]]
    groups, parts = found.groups, len(SubBins.of(SCHEMA["cost"]))
    cells = groups.of_attribute(COST)
    assert np.array_equal(np.unique(cells), np.arange(groups.sizes[COST]))
    assert 5 <= groups.sizes[COST] <= 12
    assert (cells[:parts] != cells[parts]).all()  # missing cells stand alone
    assert all(groups.is_single(other) for other in (0, 2, 3))
    assert player.may_be_second(found)
    age = Marginals(Groups.single(SCHEMA.fine), np.array([[2]], np.int32))
    assert not player.may_be_second(age)


def test_where_means_are_sure_the_share_goes_to_one_way_tables() -> None:
    """Not to all pairs: where a few are chosen, noisy tables of all of them would do harm."""
    player = TablesPlayer(ASKED, plan_of(200_000), fine=True)
    known = known_after(player, one_way(200_000, 3.0))
    found = player.marginals(known, player.plan.steps[1])
    np.testing.assert_array_equal(found.attributes, player.used[:, None])
    assert found.groups is player.stack(known).groups
    assert player.may_be_second(found)
    pairs = player.marginals(known, player.plan.steps[2])
    assert pairs.arity == 2
    assert not player.may_be_second(pairs)


def test_a_model_hears_the_bins_of_both_tables_together() -> None:
    """Nearer to the truth than the sums of noisy sub-bins, and as near as it says."""
    player = TablesPlayer(ASKED, plan_of(20_000), fine=True)
    step, bins, away = player.plan.steps[1], 3, []
    exact = one_way(20_000, 1e-3)
    inside, counts = exact.counts[2 : 2 + SCHEMA.fine.sizes[COST]], exact.in_codes(SCHEMA).counts
    for seed in range(5):
        known = known_after(player, one_way(20_000, 60.0, seed))
        tables = player.marginals(known, step)
        cells = np.bincount(tables.groups.of_attribute(COST), inside).astype(np.int64)
        again = measure(cells, tables, Noise.GAUSSIAN, 20.0, SeededSource(seed + 50))
        after = player._with(known, Released.measured(again))
        heard = after.measurements[1]
        assert heard.marginals.cells == bins + 1
        assert after.heard[1] is heard
        away.append((heard.counts - counts[2 : 2 + bins + 1]) / np.sqrt(heard.variances))
        raw = known.measurements[0].variances[2 : 2 + bins]
        assert (heard.variances[:bins] < 0.2 * raw).all()
    # What chance does to the rows of a bin counts in full, so that large bins say too much.
    assert 0.3 < np.sqrt(np.mean(np.square(away))) < 1.3


def second_after(
    player: TablesPlayer, known: Known, noise: float, seed: int = 9, tables: Marginals | None = None
) -> Known:
    """What is known after the step that measures again, with so much noise."""
    tables = tables or player.marginals(known, player.plan.steps[1])
    exact = one_way(4000, 1e-3).counts[2 : 2 + SCHEMA.fine.sizes[COST]]
    cells = np.bincount(tables.groups.of_attribute(COST), exact).astype(np.int64)
    again = measure(cells, tables, Noise.GAUSSIAN, noise, SeededSource(seed))
    return player._with(known, Released.measured(again))


def test_two_measurements_of_the_same_cells_are_one_with_both_shares() -> None:
    """Neither counts twice: the model hears one table of bins, as if it were measured at once."""
    player = TablesPlayer(ASKED, plan_of(), fine=True)
    begun = known_after(player, one_way(4000, 30.0))
    known, tables = begun, player.marginals(begun, player.plan.steps[1])
    for seed in (1, 2):
        known = second_after(player, known, 20.0 * np.sqrt(2.0), seed, tables)
        assert len(known.measurements) == len(known.heard) == 2
    one, other = known.again
    mean = replace(one, scale=20.0, counts=(one.counts + other.counts + 1) // 2)
    at_once = player._with(begun, Released.measured(mean))
    heard, expected = known.measurements[1], at_once.measurements[1]
    np.testing.assert_allclose(heard.counts, expected.counts, atol=3)
    np.testing.assert_allclose(heard.variances, expected.variances, rtol=0.02)


# The run


def content(released: Released) -> tuple[bytes, ...]:
    counts = b"" if released.measurement is None else released.measurement.counts.tobytes()
    return released.draws.queries.tobytes(), counts


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_killed_around_the_second_tables(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a seed: what was measured is taken up again, and no column a third time."""

    class Killed(BaseException):
        pass

    respond, seen, kill = TablesPlayer.respond, {}, [number]

    def watched(player, known, step, released):
        seen.setdefault(step, []).append(content(released))
        if step in kill:
            raise Killed
        return respond(player, known, step, released)

    monkeypatch.setattr(TablesPlayer, "respond", watched)
    with pytest.raises(Killed):
        JOB.release(table(), tmp_path / "out", schema=SCHEMA, workload=ASKED)
    kill.clear()
    made = JOB.release(table(), tmp_path / "out", schema=SCHEMA, workload=ASKED, resume=True)
    second = made.transcript.measurements[1]
    assert second.marginals.groups.code_start[-1] == SCHEMA.fine.code_start[-1]
    for step, contents in seen.items():
        assert len(set(contents)) == 1, step
    assert len(seen[number]) == 2
    loaded = dq.load(tmp_path / "out")
    np.testing.assert_array_equal(loaded.within("cost").shares, made.within("cost").shares)
    alone = replace(made, transcript=Transcript(made.transcript.rounds[:1]))
    assert not np.array_equal(alone.within("cost").shares, made.within("cost").shares)
    np.testing.assert_array_equal(alone.within("age").shares, made.within("age").shares)


def test_a_journal_with_other_second_tables_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    player = TablesPlayer(ASKED, plan_of(), fine=True)
    known = known_after(player, one_way(4000, 30.0))
    step = player.plan.steps[1]
    scale = player.plan.purse.scale(step.share, 1)
    for attribute, fits in ((COST, True), (2, False), (0, False)):
        marginals = Marginals(Groups.single(SCHEMA.fine), np.array([[attribute]], np.int32))
        one = measure(
            np.zeros(marginals.cells, np.int64), marginals, Noise.GAUSSIAN, scale, SeededSource(1)
        )
        assert tables_module._is_of(step, Released.measured(one), player, known) is fits
        cheap = replace(one, scale=0.5 * scale)
        assert not tables_module._is_of(step, Released.measured(cheap), player, known)


def test_everything_after_the_noise_is_public(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With draws and noisy counts replaced by fixed ones, the release does not depend on rows."""

    def fixed(counts, marginals, noise, scale, source):
        made = np.random.default_rng(len(counts)).integers(0, 500, len(counts))
        return Measurement(marginals, noise, scale, made)

    monkeypatch.setattr(tables_module, "measure", fixed)
    monkeypatch.setattr(
        tables_module,
        "_draws",
        lambda drawer, player, known, temperature, samples, source, answering: Draws(
            np.arange(samples), np.zeros(samples, bool)
        ),
    )
    job, contents = replace(JOB, seed=3), []
    for seed in (1, 2):
        out = tmp_path / f"out{seed}"
        made = job.release(table(seed=seed), out, schema=SCHEMA, workload=ASKED)
        assert made.transcript.measurements[1].marginals.attributes.tolist() == [[COST]]
        contents.append({file.name: file.read_bytes() for file in out.iterdir()})
    assert contents[0] == contents[1]


def test_forged_second_tables_are_refused() -> None:
    """Later tables of sub-bins are partitions too, and about what the first round was about."""
    made = replace(JOB, seed=5).fit(table(), schema=SCHEMA, workload=ASKED)
    first, second, *rest = made.transcript.rounds
    check_measurements(made.transcript, SCHEMA)
    groups = second.measurement.marginals.groups
    overlapping = groups.of_code.copy()
    overlapping[SCHEMA.fine.code_start[COST]] = 3
    overlapping[overlapping == 0] = 1
    bins = Marginals(Groups.single(SCHEMA), first.measurement.marginals.attributes)
    in_bins = replace(
        first.measurement, marginals=bins, counts=np.zeros(bins.cells, dtype=np.int64)
    )
    some = Marginals(Groups.single(SCHEMA.fine), np.array([[0], [2]], np.int32))
    fewer = replace(first.measurement, marginals=some, counts=np.zeros(some.cells, dtype=np.int64))
    marginals = Marginals(
        replace(groups, of_code=overlapping), second.measurement.marginals.attributes
    )
    forged = replace(second, measurement=replace(second.measurement, marginals=marginals))
    with pytest.raises(ReleaseError, match="groups of its tables"):
        check_measured(forged.measurement.to_arrays())
    for rounds in (
        (second, *rest),
        (replace(first, measurement=in_bins), second, *rest),
        (replace(first, measurement=fewer), second, *rest),
    ):
        with pytest.raises(ReleaseError, match="are no marginals of its schema"):
            check_measurements(Transcript(rounds), SCHEMA)


# With persons and with weights


def survey(rows: int = 4000, seed: int = 4) -> pa.Table:
    """The same table, with the person and the weight of each row."""
    random, made = np.random.default_rng(seed + 100), table(rows, seed)
    made = made.append_column("who", pa.array(random.integers(0, rows // 2, rows)))
    return made.append_column("w", pa.array(random.choice([0.5, 1.0, 2.0], rows)))


UNITS = {
    "persons": {"unit": "who", "most_records": 2, "rows": 4000},
    "persons who weigh the same": {
        "unit": "who", "most_records": 2, "weigh": "person", "rows": 2000,
    },
    "weights": {"weight": "w", "weight_bound": 2.0, "rows": 4500},
}  # fmt: skip


def protected(name: str, **more: object) -> dq.DualQuery:
    return replace(JOB, epsilon=8.0, neighbours="add-remove", **UNITS[name], **more)


@pytest.mark.parametrize("name", UNITS)
def test_second_tables_have_the_noise_that_a_unit_calls_for(name: str, tmp_path: Path) -> None:
    """What is stated is within the budget, and less noise on disk is a higher price."""
    made = protected(name, seed=2).release(
        survey(), tmp_path / "out", schema=SCHEMA, workload=ASKED
    )
    plan, second = made.parameters.tables, made.transcript.measurements[1]
    assert second.marginals.attributes.tolist() == [[COST]]
    assert plan.steps[1].kind is Kind.AGAIN
    unit = plan.budget.unit
    assert unit.influence > 1
    assert unit.table_l2 >= unit.influence
    assert second.scale == plan.purse.scale(plan.steps[1].share, 1)
    alone = make_tables_plan(Budget(plan.budget.epsilon, plan.budget.delta, 4000), Shape.of(ASKED))
    assert alone is not None
    plain = alone.purse.scale(plan.steps[1].share, 1) / alone.budget.unit.table_l2
    assert second.scale >= 0.99 * plain * unit.table_l2
    assert 7.7 < made.privacy.epsilon <= 8.0
    assert dq.load(tmp_path / "out").privacy.epsilon == made.privacy.epsilon
    first, round_, *rest = made.transcript.rounds
    cheap = replace(round_, measurement=replace(second, scale=0.5 * second.scale))
    events = Transcript((first, cheap, *rest)).events(plan.budget.rows, unit)
    assert plan.budget.cost(events) > 8.0


@pytest.mark.parametrize("name", UNITS)
def test_second_tables_count_what_a_unit_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise the cells are sums of the first table's: the same parts of the same rows."""

    def exact(counts, marginals, noise, scale, source):
        return Measurement(marginals, noise, scale, counts)

    monkeypatch.setattr(tables_module, "measure", exact)
    made = protected(name, seed=2).fit(survey(), schema=SCHEMA, workload=ASKED)
    first, second = made.transcript.measurements[:2]
    assert second.marginals.attributes.tolist() == [[COST]]
    inside = first.counts[2 : 2 + SCHEMA.fine.sizes[COST]]
    cells = np.bincount(second.marginals.groups.of_attribute(COST), inside)
    np.testing.assert_array_equal(second.counts, cells)
    assert second.counts.sum() == first.counts[:2].sum()


@pytest.mark.parametrize("name", UNITS)
def test_with_a_unit_too_everything_after_the_noise_is_public(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fixed(counts, marginals, noise, scale, source):
        made = np.random.default_rng(len(counts)).integers(0, 500, len(counts))
        return Measurement(marginals, noise, scale, made)

    monkeypatch.setattr(tables_module, "measure", fixed)
    monkeypatch.setattr(
        tables_module,
        "_draws",
        lambda drawer, player, known, temperature, samples, source, answering: Draws(
            np.arange(samples), np.zeros(samples, bool)
        ),
    )
    contents = []
    for seed in (1, 2):
        out = tmp_path / f"out{seed}"
        made = protected(name, seed=3).release(
            survey(seed=seed), out, schema=SCHEMA, workload=ASKED
        )
        assert made.transcript.measurements[1].marginals.attributes.tolist() == [[COST]]
        contents.append({file.name: file.read_bytes() for file in out.iterdir()})
    assert contents[0] == contents[1]


@pytest.mark.parametrize("name", UNITS)
def test_second_tables_of_a_unit_are_taken_up_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    respond, seen = TablesPlayer.respond, []

    def killed(player, known, step, released):
        if step == 1:
            seen.append(released.measurement.counts.tobytes())
            if len(seen) == 1:
                raise Killed
        return respond(player, known, step, released)

    monkeypatch.setattr(TablesPlayer, "respond", killed)
    more = {"schema": SCHEMA, "workload": ASKED}
    with pytest.raises(Killed):
        protected(name).release(survey(), tmp_path / "out", **more)
    protected(name).release(survey(), tmp_path / "out", **more, resume=True)
    assert len(seen) == 2
    assert seen[0] == seen[1]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


def test_the_same_second_tables_from_workers(tmp_path: Path, address: str) -> None:
    for number in range(2):
        parquet.write_table(table(2000, number), tmp_path / f"{number}.parquet")
    job = replace(JOB, seed=6)
    here = job.fit(tmp_path, schema=SCHEMA, workload=ASKED)
    there = replace(job, engine="dask", scheduler=address).fit(
        tmp_path, schema=SCHEMA, workload=ASKED
    )
    assert here.transcript.measurements[1].marginals.attributes.tolist() == [[COST]]
    one, other = here.transcript.to_arrays(), there.transcript.to_arrays()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name])
