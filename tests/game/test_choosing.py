"""A round that chose tables: on disk before it is used, read through the gate, priced again."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dualquery.base.errors import DualQueryError, ReleaseError
from dualquery.base.gate import read_arrays
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.engines.local import LocalEngine
from dualquery.estimator import DualQuery
from dualquery.game import declared
from dualquery.game.choosing import choose_tables
from dualquery.game.journal import Journal
from dualquery.game.moves import RecordMove
from dualquery.game.tables import _is_of
from dualquery.game.tables_plan import make_tables_plan
from dualquery.game.tables_player import TablesPlayer
from dualquery.game.tables_shape import Shape
from dualquery.game.tables_steps import Kind
from dualquery.game.transcript import Released, Round, Transcript
from dualquery.privacy.calibration import Budget
from dualquery.privacy.choosing import Against, Candidates, Choice, choice_range
from dualquery.privacy.events import Events, Noise
from dualquery.privacy.measuring import measure
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sampler import Draws
from dualquery.privacy.sources import SeededSource
from dualquery.release.verifying import check_measurements, check_plan
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.workloads.actions import Actions
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.marginals import Groups, Marginals

SCHEMA = Schema(
    (Attribute.categorical("a", list("pqrs")), Attribute.categorical("b", list("uvw")),
     Attribute.binary("c"), Attribute.categorical("d", list("klmnop")))
)  # fmt: skip
ASKED = random_marginals(SCHEMA, 2, 20)
CANDIDATES = Candidates(
    tuple(
        Marginals(Groups.single(SCHEMA), np.array(list(combinations(range(4), k)), dtype=np.int32))
        for k in (2, 3)
    )
)
ROWS, BETA = 600, 0.02
MOVE = RecordMove(np.zeros(4, np.int32), 1, bound=None, status="feasible")
NO_DRAWS = Draws(np.zeros(0, np.int64), np.zeros(0, np.bool_))


def table() -> pa.Table:
    """Column d follows a and b; c follows nothing."""
    random = np.random.default_rng(8)
    a, b, c = (random.integers(0, k, ROWS) for k in (4, 3, 2))
    codes = {"a": a, "b": b, "c": c, "d": (a + 2 * b) % 6}
    names = {"a": "pqrs", "b": "uvw", "d": "klmnop"}
    return pa.table({n: np.array(list(names[n]))[v] if n in names else v for n, v in codes.items()})


def flat(asked: Marginals) -> np.ndarray:
    return np.repeat(1.0 / np.diff(asked.start), np.diff(asked.start))


AGAINST = Against(flat, float(ROWS), 4.0)


def chosen(rows: object = None, seed: int = 3, engine: LocalEngine | None = None) -> Choice:
    private, engine = open_table(table() if rows is None else rows), engine or LocalEngine()
    return choose_tables(
        lambda asked: engine.tabulate(private, SCHEMA, asked, OutOfDomain.REFUSE),
        CANDIDATES, AGAINST, BETA, 3, SeededSource(seed),
    )  # fmt: skip


def test_what_depends_is_chosen_first() -> None:
    """At a range of 8 % per draw the tables that hold the relation are far ahead."""
    for seed in range(5):
        first, second, third = chosen(seed=seed).sets
        assert first == (0, 1, 3)
        assert {second, third} <= {(0, 3), (1, 3), (0, 2, 3), (1, 2, 3)}


@pytest.mark.filterwarnings("ignore")  # what distributed warns about is not ours to fail on
def test_workers_count_the_same_and_choose_the_same(tmp_path: Path) -> None:
    from dualquery.engines.cluster import DaskEngine

    distributed = pytest.importorskip("distributed")
    parquet.write_table(table(), tmp_path / "rows.parquet", row_group_size=100)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        DaskEngine(cluster.scheduler_address) as engine,
    ):
        there = [chosen(tmp_path / "rows.parquet", seed, engine) for seed in range(4)]
    for seed, one in enumerate(there):
        here = chosen(seed=seed).to_arrays()
        for name, array in one.to_arrays().items():
            np.testing.assert_array_equal(array, here[name])


def test_a_journal_keeps_a_choice(tmp_path: Path) -> None:
    """A choice that was made is not made again: a resumed run reads it."""
    made = chosen()
    journal = Journal.create(tmp_path / "run", {"rounds": 2})
    journal.write_released(0, Released.measured(made))
    journal.close()
    journal = Journal.resume(tmp_path / "run", {"rounds": 2}, actions=Actions.plain(ASKED))
    found = journal.released(0)
    assert found is not None
    assert len(found.draws) == 0
    assert isinstance(found.measurement, Choice)
    assert found.measurement.is_of(CANDIDATES, BETA, 3)
    assert found.measurement.sets == made.sets
    assert journal.released(1) is None
    journal.write_move(0, MOVE)
    journal.close()


def transcript(choice: Choice) -> Transcript:
    pairs = choice.marginals(Groups.single(SCHEMA))[-1]
    counts = np.zeros(pairs.cells, np.int64)
    measured = measure(counts, pairs, Noise.GAUSSIAN, 4.0, SeededSource(1))
    return Transcript(
        (
            Round(0.0, NO_DRAWS, MOVE, choice),
            Round(0.0, NO_DRAWS, MOVE, measured),
            Round(2.0, Draws(np.array([3, 1]), np.array([True, False])), MOVE),
            Round(0.0, NO_DRAWS, MOVE, replace(choice, temperature=0.5 * BETA)),
        )
    )


def read_back(arrays: dict[str, np.ndarray]) -> Transcript:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    sizes = {**declared.sizes_of(SCHEMA), "queries": len(ASKED), "rounds": 4}
    file.seek(0)
    found = read_arrays(file, "transcript", declared.transcript(4), sizes)
    return Transcript.from_arrays(found, [MOVE.notes()] * 4)


@pytest.mark.parametrize("unit", list(Neighbours))
def test_a_release_is_read_back_and_priced_again(unit: Neighbours) -> None:
    made = chosen()
    written = transcript(made)
    read = read_back(written.to_arrays())
    events = read.events(ROWS, unit)
    assert events == written.events(ROWS, unit)
    hot, cool = choice_range(BETA, unit), choice_range(0.5 * BETA, unit)
    drawn = Events.of([2.0], [2], ROWS, unit).ranges[0]
    np.testing.assert_array_equal(events.ranges, [hot] * 3 + [drawn] + [cool] * 3)
    assert events.draws.tolist() == [1, 1, 1, 2, 1, 1, 1]
    assert events.after == (3,)  # the measured tables come after the choice
    assert len(read.measurements) == 1
    check_measurements(read, SCHEMA)


@pytest.mark.parametrize(
    ("name", "forge"),
    [
        ("attributes", lambda a: a + 2),
        ("attributes", lambda a: a - 2),
        ("attributes", lambda a: a[[0, 0, 1]]),
        ("attributes", lambda a: a[:, ::-1]),
        ("attributes", lambda a: a[:0]),
        ("attributes", lambda a: a.astype(np.float64)),
        ("temperature", lambda a: -a),
        ("temperature", lambda a: a * np.nan),
        ("temperature", lambda a: np.array([a, a])),
        ("candidates", lambda a: a - 8),
        ("candidates", lambda a: np.array(2**40)),
        ("digest", lambda a: a[:3]),
    ],
)
def test_a_forged_choice_is_refused(name: str, forge: Callable[..., np.ndarray]) -> None:
    arrays = transcript(chosen()).to_arrays()
    read_back(arrays)
    arrays[f"measured_0_{name}"] = forge(arrays[f"measured_0_{name}"])
    with pytest.raises(DualQueryError) as refused:
        read_back(arrays)
    assert "\n" not in str(refused.value)


def test_an_array_may_not_be_missing() -> None:
    for name in ("attributes", "temperature", "digest"):
        arrays = transcript(chosen()).to_arrays()
        del arrays[f"measured_0_{name}"]
        with pytest.raises(ReleaseError, match=name):
            read_back(arrays)


def test_a_choice_beside_draws_is_refused() -> None:
    rounds = list(transcript(chosen()))
    for bad in (
        replace(rounds[0], temperature=1.0),
        replace(rounds[0], draws=Draws(np.array([1]), np.array([False]))),
    ):
        with pytest.raises(ReleaseError, match="round 1 chose tables"):
            check_measurements(Transcript((bad, *rounds[1:])), SCHEMA)


def test_a_choice_that_no_step_makes_is_refused() -> None:
    """In a journal and in a release: the price would be right, but not what the plan says."""
    plan = make_tables_plan(Budget(4.0, 1e-3, ROWS), Shape.of(ASKED))
    assert plan is not None
    player, made = TablesPlayer(ASKED, plan), chosen()
    for step in plan.steps:
        assert not _is_of(step, Released.measured(made), player, player.start())
    job = DualQuery(epsilon=4.0, delta=1e-3, queries=60, errors=False, seed=1)
    release = job.fit(table(), schema=SCHEMA)
    rounds = list(release.transcript)
    check_plan(release.parameters, release.transcript, SCHEMA)
    place = next(i for i, s in enumerate(release.parameters.tables.steps) if s.kind is Kind.PAIRS)
    rounds[place] = replace(rounds[place], measurement=made)
    with pytest.raises(ReleaseError, match="no step that does"):
        check_plan(release.parameters, Transcript(tuple(rounds)), SCHEMA)


def test_a_player_hears_which_tables_come_next() -> None:
    plan = make_tables_plan(Budget(4.0, 1e-3, ROWS), Shape.of(ASKED))
    assert plan is not None
    player, made = TablesPlayer(ASKED, plan), chosen()
    assert player._with(player.start(), Released.measured(made)).named == made.sets
