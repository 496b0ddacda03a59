"""What one measured round releases: once, with its own noise, on disk before it is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dualquery.base.errors import ReleaseError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.engines import held
from dualquery.estimator import DualQuery, settings
from dualquery.game.journal import Journal, NoJournal
from dualquery.game.tables import play_tables
from dualquery.game.tables_plan import make_tables_plan
from dualquery.game.tables_player import TablesPlayer
from dualquery.game.tables_shape import Shape
from dualquery.game.tables_steps import Kind, Step, rounds_of_draws
from dualquery.game.transcript import Released
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Noise
from dualquery.privacy.ledger import Ledger
from dualquery.privacy.measuring import measure
from dualquery.privacy.noise import discrete_laplace, rounded_gaussian
from dualquery.privacy.sampler import Draws
from dualquery.privacy.sources import SeededSource
from dualquery.workloads.generators import all_marginals, random_marginals
from dualquery.workloads.marginals import Groups, Marginals

ROWS = 2_000
SCHEMA = Schema(
    (Attribute.categorical("a", list("pqrs")), Attribute.categorical("b", list("uvw")),
     Attribute.binary("c"), Attribute.categorical("d", list("klmnop")))
)  # fmt: skip
JOB = DualQuery(epsilon=4.0, delta=1e-3, queries=60, errors=False)


@pytest.fixture(autouse=True)
def nothing_held() -> None:
    """What a cluster of another test left in this process does not count."""
    held._HELD.clear()
    held._ROWS.clear()


def table() -> pa.Table:
    random = np.random.default_rng(8)
    columns = {one.name: random.integers(0, one.size, ROWS) for one in SCHEMA.attributes}
    names = {"a": "pqrs", "b": "uvw", "d": "klmnop"}
    return pa.table({name: np.array(list(names[name]))[codes] if name in names else codes
                     for name, codes in columns.items()})  # fmt: skip


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of draws, and fits of a few steps: what is fitted does not matter here."""

    def short(budget: Budget, shape: Shape, **more):
        plan = make_tables_plan(budget, shape, **more)
        steps = (
            Step(Kind.ONE_WAY, 0.1, shape.attributes),
            Step(Kind.PAIRS, 0.6, shape.pairs),
            *rounds_of_draws(0.1, 0.2, 3, 10),
        )
        return plan and replace(
            plan, steps=steps, components=4, members=1, first_steps=3, round_steps=2, last_steps=2
        )

    monkeypatch.setattr(settings, "make_tables_plan", short)


class Killed(BaseException):
    """Not an `Exception`: nothing on the way may catch it."""


def content(released: Released) -> tuple[bytes, ...]:
    counts = b"" if released.measurement is None else released.measurement.counts.tobytes()
    return released.draws.queries.tobytes(), released.draws.negated.tobytes(), counts


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("number", [0, 1, 2, 3, 7])
def test_killed_inside_a_fit(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What that round released was seen, so the same is fitted and published, without a seed."""
    Ledger.create(tmp_path / "ledger", epsilon=10.0, delta=1e-3)
    respond, seen = TablesPlayer.respond, []
    kill_at: list[int] = [number]

    def watched(player, known, step, released):
        seen.append((step, content(released)))
        if step in kill_at:
            raise Killed
        return respond(player, known, step, released)

    monkeypatch.setattr(TablesPlayer, "respond", watched)
    with pytest.raises(Killed):
        JOB.release(table(), tmp_path / "out", schema=SCHEMA, ledger=tmp_path / "ledger")
    kill_at.clear()
    made = JOB.release(
        table(), tmp_path / "out", schema=SCHEMA, ledger=tmp_path / "ledger", resume=True
    )
    kinds = [step.kind for step in made.parameters.tables.steps]
    assert len(made.transcript) == len(kinds) == 8
    assert len(seen) == 9  # the round of the kill twice
    for step, *given in seen:
        one = made.transcript.rounds[step]
        assert given == [content(Released(one.draws, one.measurement))]
        assert (one.measurement is None) == (kinds[step] is Kind.DRAWS)
    assert [entry.state for entry in Ledger(tmp_path / "ledger").account().entries] == ["spent"]


def test_every_round_takes_its_own_part_of_the_source() -> None:
    """Noise that serves twice would cancel out between two tables."""
    asked = random_marginals(SCHEMA, 3, 60)
    plan = make_tables_plan(Budget(4.0, 1e-3, ROWS), Shape.of(asked))
    assert plan is not None
    plan = replace(plan, components=2, members=1, first_steps=1, round_steps=1, last_steps=1)

    class Source(SeededSource):
        asked: list[int] = []  # noqa: RUF012 - one list for all rounds is what is wanted

        def for_round(self, number: int) -> SeededSource:
            self.asked.append(number)
            return super().for_round(number)

    class Drawer:
        def draw(self, temperature, played, samples, source, *, reference=None) -> Draws:
            return Draws(source.words(samples).astype(np.int64) % 60, np.zeros(samples, bool))

    source = Source(3)
    _, transcript = play_tables(
        Drawer(),
        lambda marginals: np.zeros(marginals.cells, np.int64),
        TablesPlayer(asked, plan),
        source,
        journal=NoJournal(),
    )
    assert source.asked == list(range(len(plan.steps)))
    for number, one in enumerate(transcript):
        if one.measurement is not None:
            expected = rounded_gaussian(
                plan.purse.scale(plan.steps[number].share, len(one.measurement.marginals)),
                one.measurement.marginals.cells,
                SeededSource(3).for_round(number),
            )
            np.testing.assert_array_equal(one.measurement.counts, expected)


@pytest.mark.parametrize("noise", list(Noise))
def test_the_noise_has_the_scale_that_the_measurement_states(noise: Noise) -> None:
    marginals = Marginals(Groups.single(SCHEMA), np.array([[0], [3]], np.int32))
    counts = np.arange(marginals.cells) * 100
    made = measure(counts, marginals, noise, 7.25, SeededSource(5))
    exact = rounded_gaussian if noise is Noise.GAUSSIAN else discrete_laplace
    np.testing.assert_array_equal(
        made.counts - counts, exact(7.25, marginals.cells, SeededSource(5))
    )
    assert made.scale == 7.25


@pytest.mark.usefixtures("quick")
@pytest.mark.filterwarnings("ignore")  # what distributed warns about is not ours to fail on
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_workers_count_cells_and_the_client_adds_the_noise(neighbours: str, tmp_path: Path) -> None:
    """From the same source the release is the same: no part of the table has noise of its own."""
    distributed = pytest.importorskip("distributed")
    parquet.write_table(table(), tmp_path / "rows.parquet", row_group_size=300)
    job = replace(JOB, seed=2, neighbours=neighbours, rows=ROWS)
    here = job.fit(tmp_path / "rows.parquet", schema=SCHEMA)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        there = replace(job, engine="dask", scheduler=cluster.scheduler_address).fit(
            tmp_path / "rows.parquet", schema=SCHEMA
        )
    assert len(here.transcript.measurements) == 5
    ours, theirs = here.transcript.to_arrays(), there.transcript.to_arrays()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name])
    assert not held._HELD  # nothing private stays behind
    assert not held._ROWS


def test_tables_that_cover_one_another_are_paid_for_one_by_one() -> None:
    """All one-way tables together move by √T of what one of them moves by."""
    plan = make_tables_plan(Budget(1.0, 1e-6, 100_000), Shape.of(all_marginals(SCHEMA, 1)))
    assert plan is not None
    (step,) = plan.steps
    four, one = plan.purse.scale(step.share, 4), plan.purse.scale(step.share, 1)
    assert four == pytest.approx(2.0 * one)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "forged",
    [
        lambda one: Released(one.draws),
        lambda one: Released.measured(replace(one.measurement, scale=one.measurement.scale / 10)),
        lambda one: Released.measured(replace(one.measurement, noise=Noise.LAPLACE)),
        lambda one: Released(Draws(np.arange(3), np.zeros(3, bool)), one.measurement),
    ],
    ids=["no tables", "less noise", "other noise", "draws beside them"],
)
def test_a_journal_that_does_not_fit_the_plan_is_refused(
    forged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digests are right, so somebody made it; what it holds would be published and priced."""
    with monkeypatch.context() as patch:
        patch.setattr(TablesPlayer, "respond", _killed)
        write = Journal.write_released
        patch.setattr(Journal, "write_released", lambda j, n, one: write(j, n, forged(one)))
        with pytest.raises(Killed):
            JOB.release(table(), tmp_path / "out", schema=SCHEMA)
    with pytest.raises(ReleaseError, match=r"round 1 is not what the plan.*cannot be resumed"):
        JOB.release(table(), tmp_path / "out", schema=SCHEMA, resume=True)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("change", [1000, -100])
def test_draws_that_name_no_query_are_refused(
    change: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    respond, write = TablesPlayer.respond, Journal.write_released

    def forged(journal: Journal, number: int, one: Released) -> None:
        if number == 2:
            one = Released(Draws(one.draws.queries + change, one.draws.negated))
        write(journal, number, one)

    def killed(player, known, step, released):
        return _killed() if step == 2 else respond(player, known, step, released)

    with monkeypatch.context() as patch:
        patch.setattr(TablesPlayer, "respond", killed)
        patch.setattr(Journal, "write_released", forged)
        with pytest.raises(Killed):
            JOB.release(table(), tmp_path / "out", schema=SCHEMA)
    with pytest.raises(ReleaseError, match="round 3': queries holds values"):
        JOB.release(table(), tmp_path / "out", schema=SCHEMA, resume=True)


def _killed(*arguments: object) -> None:
    raise Killed
