"""Engines give the same counts and, from the same source, the same draws."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dualquery.encoding import OutOfDomain
from dualquery.engines import held, open_engine
from dualquery.engines.engine import check_engine
from dualquery.engines.local import LocalEngine
from dualquery.engines.parts import PartTable, Private, add_parts, count_part, cut
from dualquery.errors import EngineError, ParameterError, TableError, UnavailableError
from dualquery.estimator import DualQuery
from dualquery.privacy.sources import SeededSource
from dualquery.queries import random_marginals
from dualquery.queries.actions import Actions
from dualquery.queries.counting import Answers
from dualquery.schema import Attribute, Schema
from dualquery.table import ParquetTable, open_table

WIDTH = 12
SCHEMA = Schema(tuple(Attribute.binary(f"x{i}") for i in range(WIDTH)))
RUN = {"epsilon": 1.0, "delta": 1e-6, "queries": 3000, "seed": 5, "rounds": 8, "samples": 40}
# What distributed warns about on its own account is not ours to fail on.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(0)
    place = tmp_path_factory.mktemp("rows")
    for number, rows in enumerate((700, 1, 1300)):
        cells = (random.random((rows, WIDTH)) < np.linspace(0.05, 0.8, WIDTH)).astype(np.int8)
        table = pa.table({f"x{i}": cells[:, i] for i in range(WIDTH)})
        parquet.write_table(table, place / f"{number}.parquet", row_group_size=400)
    return place


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Two workers in this process: they start at once."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


def transcript(release) -> list[np.ndarray]:
    arrays = release.transcript.to_arrays()
    return [arrays[name] for name in sorted(arrays)]


def assert_same(one, other) -> None:
    for a, b in zip(transcript(one), transcript(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_names_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match="expected one of local, dask"):
        open_engine("spark")
    with pytest.raises(ParameterError, match="needs engine dask"):
        check_engine("local", "tcp://127.0.0.1:1")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match=r"pip install 'dualquery\[dask\]'"):
        open_engine("dask")


@pytest.mark.parametrize("parts", [1, 2, 100])
def test_parts_cover_the_table(folder: Path, parts: int) -> None:
    table = open_table(folder)
    assert isinstance(table, ParquetTable)
    pieces = cut(table, parts)
    assert len(pieces) >= min(parts, 3)
    rows = sum(b.num_rows for part in pieces for b in PartTable(part).batches(["x0"]))
    assert rows == 2001
    workload = random_marginals(SCHEMA, 3, 200)
    expected = LocalEngine().count(table, workload, OutOfDomain.REFUSE)
    counts, found = add_parts(
        [count_part(part, workload, OutOfDomain.REFUSE) for part in pieces]
    ).open()
    assert found == expected.rows
    np.testing.assert_array_equal(counts, expected.counts)


def test_private_values_do_not_show(tmp_path: Path) -> None:
    assert "7" not in repr(Private(np.array([7]), TableError("7")))
    parquet.write_table(pa.table({f"x{i}": [77] for i in range(WIDTH)}), tmp_path / "bad.parquet")
    table = open_table(tmp_path / "bad.parquet")
    assert isinstance(table, ParquetTable)
    answer = count_part(cut(table, 1)[0], random_marginals(SCHEMA, 3, 9), OutOfDomain.REFUSE)
    assert "77" not in repr(answer)
    with pytest.raises(TableError, match="77 is outside"):
        add_parts([answer, answer]).open()


@pytest.mark.parametrize("player", ["record", "model"])
def test_the_same_release_from_workers(folder: Path, address: str, player: str) -> None:
    here = DualQuery(**RUN, player=player).fit(folder, schema=SCHEMA)
    there = DualQuery(**RUN, player=player, engine="dask", scheduler=address).fit(
        folder, schema=SCHEMA
    )
    assert_same(here, there)
    assert not held._HELD  # nothing private stays behind


def test_a_frame_is_counted_here_and_played_there(folder: Path, address: str) -> None:
    frame = parquet.read_table(folder)
    job = {**RUN, "player": "record", "rounds": 3}
    there = DualQuery(**job, engine="dask", scheduler=address).fit(frame, schema=SCHEMA)
    assert_same(DualQuery(**job).fit(frame, schema=SCHEMA), there)


@pytest.mark.parametrize("step", ["largest", "tally", "locate"])
def test_a_lost_shard_is_made_again(address: str, step: str, monkeypatch) -> None:
    """Whatever the step before which all shards vanish, the draws are the ones of one process."""
    from dualquery.engines.cluster import RemoteShards

    workload = random_marginals(SCHEMA, 3, 500)
    random = np.random.default_rng(1)
    answers = Answers(random.integers(0, 1000, 500), 1000)
    records = tuple(random.integers(0, 2, (4, WIDTH)).astype(np.int32))
    actions = Actions.plain(workload)
    local = LocalEngine().query_player(actions, answers, 1000)
    whole = getattr(RemoteShards, step)

    def forgetful(self, *arguments):
        held._HELD.clear()
        return whole(self, *arguments)

    monkeypatch.setattr(RemoteShards, step, forgetful)
    with open_engine("dask", address) as engine:
        remote = engine.query_player(actions, answers, 1000)
        for number in range(1, 5):
            from dualquery.queries.evaluation import mean_answers

            played = mean_answers(workload, np.array(records[:number]))
            expected = local.draw(20.0, played, 30, SeededSource(number))
            found = remote.draw(20.0, records[:number], 30, SeededSource(number))
            np.testing.assert_array_equal(found.queries, expected.queries)
            np.testing.assert_array_equal(found.negated, expected.negated)


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    from dualquery.engines import cluster

    monkeypatch.setattr(cluster, "CONNECT", "1s")
    engine = open_engine("dask", "tcp://127.0.0.1:9")
    with pytest.raises(EngineError, match=r"cannot reach Dask workers at tcp://127\.0\.0\.1:9"):
        engine.__enter__()


@pytest.mark.slow
def test_a_killed_worker_is_survived(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    from dualquery.engines.cluster import DaskEngine

    job = {**RUN, "player": "record"}
    engines: list[DaskEngine] = []
    enter = DaskEngine.__enter__

    def remembered(self):
        engines.append(self)
        return enter(self)

    monkeypatch.setattr(DaskEngine, "__enter__", remembered)
    monkeypatch.setenv("DUALQUERY_THREADS", "2")

    def kill(stage: str, done: int, total: int) -> None:
        if stage == "playing" and done == 3:
            workers = engines[0].client.run(os.getpid)
            assert len(workers) == 2
            os.kill(workers[min(workers)], signal.SIGKILL)

    there = DualQuery(**job, engine="dask").fit(folder, schema=SCHEMA, progress=kill)
    assert_same(DualQuery(**job).fit(folder, schema=SCHEMA), there)
