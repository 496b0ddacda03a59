"""A column's own distribution is measured in sub-bins; everything else knows only its bins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.domain.sub_bins import SubBins
from dualquery.engines.local import LocalEngine
from dualquery.game.tables_plan import make_faint_plan, make_tables_plan
from dualquery.game.tables_player import TablesPlayer
from dualquery.game.tables_shape import Shape
from dualquery.game.tables_steps import Kind, TablesPlan
from dualquery.game.transcript import Transcript
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement, measure
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import SeededSource
from dualquery.release.verifying import check_measurements
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import all_marginals
from dualquery.workloads.marginals import Groups, Marginals


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema(
        (
            Attribute.categorical("sex", ["f", "m"]),
            Attribute.numeric("cost", [0.0, 100.0, 1000.0, 50_000.0], missing=True),
            Attribute.numeric("age", [0, 25, 50, 120]),
            Attribute.numeric("admitted", ["2022-01-01", "2022-07-01", "2023-01-01"], type="date"),
        )
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(4)
    n = 4000
    cost = np.minimum(np.exp(random.normal(np.log(400), 1.0, n)), 49_999.0)
    days = random.integers(19_000, 19_358, n).astype("datetime64[D]")
    return pa.table(
        {
            "sex": random.choice(["f", "m"], n),
            "cost": pa.array(cost, mask=random.random(n) < 0.1),
            "age": np.clip(random.normal(45, 15, n), 0, 120).astype(int),
            "admitted": days,
        }
    )


def player(schema: Schema) -> TablesPlayer:
    asked = all_marginals(schema, 2)
    plan = make_tables_plan(Budget(2.0, 1e-3, 4000), Shape.of(asked))
    assert plan is not None
    return TablesPlayer(asked, plan, fine=True)


def test_a_finer_schema_has_the_same_columns(schema: Schema) -> None:
    fine = schema.fine
    assert fine.names == schema.names
    assert fine.attributes[0] is schema.attributes[0]
    assert fine.fine is fine
    assert len(schema.code_of_fine) == fine.code_start[-1]
    for a, attribute in enumerate(schema.attributes):
        part = schema.code_of_fine[fine.code_start[a] : fine.code_start[a + 1]]
        codes = part - schema.code_start[a]
        if attribute.is_numeric:
            found = SubBins.of(attribute)
            expected = [*found.bin_of, *([attribute.proper_size] if attribute.missing else [])]
        else:
            expected = list(range(attribute.size))
        assert codes.tolist() == expected


def test_counts_of_sub_bins_are_exact_and_add_up_to_bins(schema: Schema, table: pa.Table) -> None:
    one_way = player(schema).marginals(player(schema).start(), player(schema).plan.steps[0])
    assert len(one_way) == len(schema)  # one table per attribute, as if there were no sub-bins
    source, engine = open_table(table), LocalEngine()
    source.bind(schema)
    counts = engine.tabulate(source, schema.fine, one_way, OutOfDomain.REFUSE)
    cost = table.column("cost").drop_null().to_numpy()
    expected = [
        np.unique(table.column("sex").to_numpy(zero_copy_only=False), return_counts=True)[1],
        np.histogram(cost, SubBins.of(schema["cost"]).edges)[0],
        [table.column("cost").null_count],
        np.histogram(table.column("age").to_numpy(), SubBins.of(schema["age"]).edges)[0],
        np.histogram(
            table.column("admitted").to_numpy().astype("datetime64[D]").astype(int),
            SubBins.of(schema["admitted"]).edges,
        )[0],
    ]
    np.testing.assert_array_equal(counts, np.concatenate(expected))
    coarse = Marginals(Groups.single(schema), one_way.attributes)
    bins = engine.tabulate(source, schema, coarse, OutOfDomain.REFUSE)
    np.testing.assert_array_equal(
        bins, LocalEngine().tabulate(source, schema, coarse, OutOfDomain.REFUSE)
    )
    exact = Measurement(one_way, Noise.GAUSSIAN, 3.0, counts).in_codes(schema)
    np.testing.assert_array_equal(exact.counts, bins)
    np.testing.assert_array_equal(exact.marginals.start, coarse.start)


def test_codes_that_were_kept_are_those_of_the_table_and_schema_that_are_asked(
    schema: Schema, table: pa.Table
) -> None:
    """One engine, several tables, sub-bins and bins in any order: always as a fresh engine."""
    engine = LocalEngine()
    sources = [open_table(table), open_table(table.slice(1000))]
    alone, pair = np.arange(4, dtype=np.int32)[:, None], np.array([[0, 2]], dtype=np.int32)
    cuts = Attribute.numeric("age", [0, 18, 65, 120])  # as many bins, cut elsewhere
    other = Schema((*schema.attributes[:2], cuts, schema.attributes[3]))
    asked = [
        (schema.fine, Marginals(Groups.single(schema.fine), alone)),
        (schema, Marginals(Groups.single(schema), alone)),
        (schema, Marginals(Groups.single(schema), pair)),
        (other, Marginals(Groups.single(other), alone)),
        (schema.fine, Marginals(Groups.single(schema.fine), alone)),
    ]
    for source in (*sources, *sources):
        for used, marginals in [*asked, *asked[::-1]]:
            found = engine.tabulate(source, used, marginals, OutOfDomain.REFUSE)
            fresh = LocalEngine().tabulate(source, used, marginals, OutOfDomain.REFUSE)
            np.testing.assert_array_equal(found, fresh)


def test_noise_of_a_bin_is_that_of_its_sub_bins_together(schema: Schema) -> None:
    one_way = Marginals(Groups.single(schema.fine), np.arange(4, dtype=np.int32)[:, None])
    nothing = np.zeros(one_way.cells, dtype=np.int64)
    drawn = np.array(
        [
            measure(nothing, one_way, Noise.GAUSSIAN, 5.0, SeededSource(i)).in_codes(schema).counts
            for i in range(300)
        ]
    )
    merged = Measurement(one_way, Noise.GAUSSIAN, 5.0, nothing).in_codes(schema)
    assert merged.parts is not None
    assert merged.parts.sum() == one_way.cells
    np.testing.assert_allclose(drawn.var(axis=0) / merged.variances, 1.0, atol=0.35)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_sub_bins_cost_what_bins_cost(
    schema: Schema, table: pa.Table, neighbours: Neighbours
) -> None:
    """The price is that of one table per attribute, and one row moves no more than that."""
    one_way = Marginals(Groups.single(schema.fine), np.arange(4, dtype=np.int32)[:, None])
    coarse = Marginals(Groups.single(schema), one_way.attributes)
    fine_event, event = (
        Measurement(m, Noise.GAUSSIAN, 5.0, np.zeros(m.cells, dtype=np.int64)).event(neighbours)
        for m in (one_way, coarse)
    )
    assert fine_event == event
    first = table.slice(0, 50)
    other = (
        pa.concat_tables([first.slice(1), table.slice(60, 1)])
        if neighbours is Neighbours.REPLACE_ONE
        else first.slice(1)
    )
    counted = [
        LocalEngine().tabulate(open_table(one), schema.fine, one_way, OutOfDomain.REFUSE)
        for one in (first, other)
    ]
    moved = counted[0] - counted[1]
    assert np.sqrt((moved**2).sum()) <= event.l2 + 1e-12
    assert np.abs(moved).sum() <= event.l1


@pytest.fixture(scope="module")
def made(schema: Schema, table: pa.Table) -> dq.Release:
    job = dq.DualQuery(epsilon=4.0, delta=1e-3, seed=1, errors=False)
    return job.fit(table, schema=schema, workload=all_marginals(schema, 2))


def test_a_release_knows_where_values_lie_inside_bins(
    schema: Schema, table: pa.Table, made: dq.Release, tmp_path
) -> None:
    within = made.within("cost")
    assert within.measured
    assert within.shares.min() >= 0.0
    np.testing.assert_allclose(np.add.reduceat(within.shares, within.sub_bins.start[:-1]), 1.0)
    rows = made.sample(4000, seed=2)
    cost = table.column("cost").drop_null().to_numpy()
    found = rows.column("cost").drop_null().to_numpy()
    assert found.mean() == pytest.approx(cost.mean(), rel=0.05)
    uniform = np.random.default_rng(0).uniform(1000, 50_000, 100).mean()
    assert found[found >= 1000].mean() < 0.2 * uniform  # what values uniform in the bin would give
    edges = within.edges
    for share in (0.1, 0.5, 0.9, 0.99):
        one, other = (np.searchsorted(edges, np.quantile(x, share)) for x in (cost, found))
        assert abs(int(one) - int(other)) <= 1
    loaded = dq.load(made.save(tmp_path / "out"))
    np.testing.assert_array_equal(loaded.within("cost").shares, within.shares)
    assert loaded.sample(50, seed=3).equals(made.sample(50, seed=3))


def test_without_measured_tables_values_are_spread_by_the_rule(
    schema: Schema, table: pa.Table
) -> None:
    settings = {"player": "record", "refit": False, "rounds": 3, "samples": 20}
    made = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=50, seed=1, **settings).fit(
        table, schema=schema
    )
    assert not made.within("cost").measured
    with pytest.raises(dq.QueryError, match="'sex' has no bins"):
        made.within("sex")


def test_forged_sub_bins_are_refused(schema: Schema, made: dq.Release) -> None:
    """The price rests on disjoint cells: sub-bins that overlap, or of another schema, cost more."""
    first = made.transcript.rounds[0]
    assert first.measurement is not None
    assert made.transcript.measurements[0].marginals.arity == 1
    groups = first.measurement.marginals.groups
    swapped = groups.of_code.copy()
    swapped[[2, 3]] = swapped[[3, 2]]
    wide = replace(groups, code_start=groups.code_start + np.arange(5))
    for forged in (replace(groups, of_code=swapped), wide):
        marginals = Marginals(forged, first.measurement.marginals.attributes)
        measured = replace(first.measurement, marginals=marginals)
        rounds = (replace(first, measurement=measured), *made.transcript.rounds[1:])
        with pytest.raises(dq.ReleaseError, match="tables of round 1 are no marginals"):
            check_measurements(Transcript(rounds), schema)


def test_only_one_way_tables_are_in_sub_bins(made: dq.Release, schema: Schema) -> None:
    kinds = [
        (one.marginals.arity, len(one.marginals.groups.of_code))
        for one in made.transcript.measurements
    ]
    assert kinds[0] == (1, schema.fine.code_start[-1])
    assert all(codes == schema.code_start[-1] for arity, codes in kinds if arity > 1)


def test_faint_tables_are_all_measured_at_once_and_within_the_budget() -> None:
    shape = Shape(10, 60, 45, 120)
    for rows, one_way in ((2500, 0.15), (1000, 0.7)):
        budget = Budget(1.0, 1e-6, rows)
        plan = make_faint_plan(budget, shape)
        assert make_tables_plan(budget, shape) is None
        assert plan is not None
        assert [step.kind for step in plan.steps] == [Kind.ONE_WAY, Kind.PAIRS]
        assert [step.share for step in plan.steps] == pytest.approx([one_way, 1.0 - one_way])
        assert 0.999 < budget.cost(plan.events) <= 1.0
        assert plan.faint
        assert TablesPlan.from_dict(budget, plan.to_dict()) == plan
    few, pure = Budget(1.0, 1e-6, 50), Budget(1.0, 0.0, 1000, accountant="pure")
    assert make_faint_plan(few, shape) is None, "one-way tables would drown as well"
    assert make_faint_plan(pure, shape) is None, "all pairs cost too much Laplace noise"
    assert make_faint_plan(Budget(1.0, 1e-6, 1000), Shape(10, 60, 0, 0)) is None


def test_rounds_of_draws_are_planned_where_they_pay() -> None:
    shape = Shape(10, 60, 45, 0)
    for rows, rounds in ((40_000, 3), (8000, 0)):
        budget = Budget(1.0, 1e-6, rows)
        plan = make_tables_plan(budget, shape)
        assert plan is not None
        assert not plan.faint
        assert plan.rounds == rounds
        assert 0.999 < budget.cost(plan.events) <= 1.0
        started = make_tables_plan(budget, shape, started=True)
        assert started is not None
        assert started.rounds == 3, "rounds find where a start is wrong"


def test_a_faint_run_measures_bins(schema: Schema, table: pa.Table, tmp_path: Path) -> None:
    settings = {"epsilon": 0.1, "delta": 1e-6, "queries": 500, "errors": False, "seed": 1}
    made = dq.DualQuery(**settings).fit(table, schema=schema)
    assert made.parameters.tables is not None
    assert made.parameters.tables.faint
    one_way, pairs = made.transcript.measurements
    assert one_way.marginals.groups.code_start.tolist() == schema.code_start.tolist()
    assert pairs.marginals.arity == 2
    assert made.privacy.epsilon <= 0.1
    made.save(tmp_path / "release")
    again = dq.load(tmp_path / "release")
    assert again.parameters.tables == made.parameters.tables
    assert again.mean("age") == made.mean("age")


def test_a_faint_run_keeps_dependence_that_no_single_pair_shows() -> None:
    random = np.random.default_rng(8)
    kind = random.integers(0, 4, 3000)
    columns = {
        f"x{i}": np.where(random.random(3000) < 0.6, kind, random.integers(0, 4, 3000))
        for i in range(12)
    }
    schema = Schema(tuple(Attribute.categorical(name, range(4)) for name in columns))
    rows = pa.table(columns)
    made = dq.DualQuery(0.4, 1e-6, queries=2000, errors=False, seed=0).fit(rows, schema=schema)
    assert made.parameters.tables is not None
    assert made.parameters.tables.faint
    pairs = all_marginals(schema, 2)
    truth = count_rows(open_table(rows), pairs).counts / 3000
    # Codes are alike, so independence answers 1/16 to every pair of them.
    assert np.abs(made.answers(pairs) - truth).mean() < 0.5 * np.abs(1 / 16 - truth).mean()
