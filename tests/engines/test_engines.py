"""Engines give the same counts and, from the same source, the same draws."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dualquery.base.errors import EngineError, ParameterError, TableError, UnavailableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.engines import cluster, held, kept, open_engine, parts
from dualquery.engines.engine import check_engine
from dualquery.engines.local import LocalEngine
from dualquery.engines.parts import PartTable, Private, add_parts, count_part, cut
from dualquery.estimator import DualQuery
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.ensemble import Members, climbed
from dualquery.model.mixture import Mixture
from dualquery.privacy.sources import SeededSource
from dualquery.privacy.unit import Persons, Weigh
from dualquery.rows.arrow import ParquetTable
from dualquery.rows.counting import count_rows
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.rows.persons import ByPerson
from dualquery.rows.rare import RareRows
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.marginals import Groups, Marginals
from tests.cli.conftest import in_a_process

WIDTH = 12
SCHEMA = Schema(tuple(Attribute.binary(f"x{i}") for i in range(WIDTH)))
RUN = {"epsilon": 1.0, "delta": 1e-6, "queries": 3000, "seed": 5, "rounds": 8, "samples": 40}
# What distributed warns about on its own account is not ours to fail on.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def nothing_held() -> None:
    """What a cluster of another test left in this process does not count."""
    held._HELD.clear()
    held._ROWS.clear()


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
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name != "cryptography" or None)
    with pytest.raises(UnavailableError, match=r"the cryptography package"):
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
    found = add_parts([count_part(part, workload, OutOfDomain.REFUSE) for part in pieces]).open()
    assert found.rows == expected.rows
    np.testing.assert_array_equal(found.counts, expected.counts)


def test_private_values_do_not_show(tmp_path: Path) -> None:
    assert "7" not in repr(Private(np.array([7]), TableError("7")))
    parquet.write_table(pa.table({f"x{i}": [77] for i in range(WIDTH)}), tmp_path / "bad.parquet")
    table = open_table(tmp_path / "bad.parquet")
    assert isinstance(table, ParquetTable)
    answer = count_part(cut(table, 1)[0], random_marginals(SCHEMA, 3, 9), OutOfDomain.REFUSE)
    assert "77" not in repr(answer)
    with pytest.raises(TableError, match="'x0': a cell is outside"):
        add_parts([answer, answer]).open()


@pytest.mark.parametrize(
    ("player", "free"), [("record", "default"), ("record", "measured"), ("model", "default")]
)
def test_the_same_release_from_workers(folder: Path, address: str, player: str, free: str) -> None:
    job = {**RUN, "player": player, "free": free}
    here = DualQuery(**job).fit(folder, schema=SCHEMA)
    there = DualQuery(**job, engine="dask", scheduler=address).fit(folder, schema=SCHEMA)
    assert len(here.transcript.measurements) == (free == "measured")
    assert_same(here, there)
    assert not held._HELD  # nothing private stays behind


def test_the_same_measured_tables_from_workers(tmp_path: Path, address: str) -> None:
    """Fits and the answers that draws are made against come from the workers; nothing differs."""
    random = np.random.default_rng(0)
    cells = random.integers(0, 4, (2000, 10)).cumsum(axis=1) % 4  # four codes: rounds are planned
    rows = pa.table({f"x{i}": cells[:, i] for i in range(10)})
    parquet.write_table(rows, tmp_path / "rows.parquet", row_group_size=400)
    schema = Schema(tuple(Attribute.categorical(f"x{i}", range(4)) for i in range(10)))
    job = {"epsilon": 60.0, "delta": 1e-6, "queries": 2000, "seed": 5, "errors": False}
    job["k"] = 2  # all triples would leave no draws
    here = DualQuery(**job).fit(tmp_path, schema=schema)
    there = DualQuery(**job, engine="dask", scheduler=address).fit(tmp_path, schema=schema)
    assert any(one.measurement is not None for one in here.transcript)
    assert any(len(one.draws) for one in here.transcript)
    assert_same(here, there)
    assert not held._HELD
    assert not held._ROWS


@pytest.mark.parametrize("player", ["tables", "model", "record"])
def test_rules_and_known_shares_with_workers(tmp_path: Path, address: str, player: str) -> None:
    """Orders, dependences, structural zeros and known shares hold, and nothing differs."""
    random, size = np.random.default_rng(2), 3000
    region = random.choice(["n", "s", "w"], size)
    begun = random.integers(0, 80, size)
    ended = pa.array(begun + random.integers(0, 20, size), mask=random.random(size) < 0.1)
    smoker = random.integers(0, 2, size)
    rows = pa.table(
        {
            "region": region,
            "capital": np.where(region == "n", "c", "a"),
            "begun": begun,
            "ended": ended,
            "smoker": smoker,
            "packs": np.where(smoker == 1, random.integers(1, 4, size), 0),
        }
    )
    parquet.write_table(rows, tmp_path / "rows.parquet", row_group_size=400)
    schema = Schema(
        (
            Attribute.categorical("region", ["n", "s", "w"]),
            Attribute.categorical("capital", ["a", "b", "c"]),
            Attribute.numeric("begun", [0, 30, 60, 100], type="whole"),
            Attribute.numeric("ended", [0, 50, 100], type="whole", missing=True),
            Attribute.binary("smoker"),
            Attribute.categorical("packs", range(4)),
        ),
        rules=(
            {"order": ["begun", "ended"]},
            {"determines": {"region": "capital"}},
            {"if": "packs in {1, 2, 3}", "then": "smoker"},
        ),
    )
    known = ("region=n = 0.36", "packs=2 = 0.15")
    job = {"epsilon": 4.0, "delta": 1e-6, "queries": 80, "k": 2, "seed": 5, "errors": False}
    drawn = {} if player == "tables" else {"player": player, "rounds": 8, "samples": 40}
    job |= {"known": known, **drawn}
    here = DualQuery(**job).fit(tmp_path, schema=schema)
    there = DualQuery(**job, engine="dask", scheduler=address).fit(tmp_path, schema=schema)
    assert bool(here.transcript.measurements) == (player == "tables")
    assert_same(here, there)
    assert here.model is not None
    assert there.model is not None
    np.testing.assert_array_equal(here.model.tables, there.model.tables)
    assert there.answer("region=n") == pytest.approx(0.36, abs=1e-6)
    assert there.answer("packs=2") == pytest.approx(0.15, abs=1e-6)
    for where in (None, "smoker", "region=s & begun>=30"):
        found = there.sample(500, where=where, seed=1).to_pylist()
        assert len({(row["region"], row["capital"]) for row in found}) == len(
            {row["region"] for row in found}
        )
        assert all(row["ended"] is None or row["begun"] <= row["ended"] for row in found)
        assert all(row["smoker"] or row["packs"] == 0 for row in found)
    assert not held._HELD
    assert not held._ROWS


@pytest.mark.parametrize(
    ("room", "width"), [(held.MOST_KEPT, kept.MOST_WIDTH), (0, kept.MOST_WIDTH), (1, 0)]
)
def test_workers_read_a_part_once_for_all_measurements(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int, width: int
) -> None:
    """Without room for codes, or with wide rows, it is read at every step; counts are the same."""
    random = np.random.default_rng(0)
    rows = pa.table({"age": random.integers(0, 100, 900), "sex": random.integers(0, 2, 900)})
    parquet.write_table(rows, tmp_path / "rows.parquet", row_group_size=300)
    schema = Schema((Attribute.numeric("age", [0, 25, 50, 100]), Attribute.binary("sex")))
    assert schema.fine != schema
    monkeypatch.setattr(held, "MOST_KEPT", room)
    monkeypatch.setattr(cluster, "MOST_WIDTH", width)
    once = room > 0 and width > 0
    read: list[object] = []
    batches = PartTable.batches

    def counted(self: PartTable, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        read.append(self.pieces)
        return batches(self, names)

    monkeypatch.setattr(PartTable, "batches", counted)
    table = open_table(tmp_path / "rows.parquet")
    with open_engine("dask", address) as engine:
        for step, (declared, named) in enumerate(
            [(schema.fine, [[0], [1]]), (schema, [[0, 1]]), (schema, [[1]])]
        ):
            marginals = Marginals(Groups.single(declared), np.array(named, dtype=np.int32))
            before = len(read)
            cells = engine.tabulate(table, declared, marginals, OutOfDomain.REFUSE)
            here = LocalEngine().tabulate(table, declared, marginals, OutOfDomain.REFUSE)
            np.testing.assert_array_equal(cells, here)
            assert len(read) - before == (3 if step == 0 or not once else 0)
        assert len(held._ROWS) == (3 if once else 0)
        # Codes of another table, or of another schema, are not taken for these.
        parquet.write_table(rows.slice(300), tmp_path / "less.parquet", row_group_size=300)
        other = Schema((Attribute.numeric("age", [0, 20, 50, 100]), Attribute.binary("sex")))
        for table, declared in (
            (open_table(tmp_path / "less.parquet"), schema),
            (open_table(tmp_path / "less.parquet"), other),
        ):
            marginals = Marginals(Groups.single(declared), np.array([[0, 1]], dtype=np.int32))
            cells = engine.tabulate(table, declared, marginals, OutOfDomain.REFUSE)
            here = LocalEngine().tabulate(table, declared, marginals, OutOfDomain.REFUSE)
            np.testing.assert_array_equal(cells, here)
    assert not held._ROWS


def test_fits_can_be_sent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers in this process share its memory; others are sent bytes, which must be possible."""
    job = {"epsilon": 8.0, "delta": 1e-6, "queries": 500, "seed": 5, "errors": False}
    expected = DualQuery(**job).fit(folder, schema=SCHEMA)

    def sent(self: LocalEngine, *climbing: object) -> Members:
        return climbed(*pickle.loads(pickle.dumps(climbing)))

    monkeypatch.setattr(LocalEngine, "climb", sent)
    assert_same(expected, DualQuery(**job).fit(folder, schema=SCHEMA))


def test_a_model_is_sent_instead_of_answers(address: str) -> None:
    """A shard answers its own queries from the model, to the same last digit."""
    workload = random_marginals(SCHEMA, 3, 500)
    random = np.random.default_rng(1)
    tables = random.random((2 * WIDTH, 3))
    tables[1::2] = 1.0 - tables[::2]
    model = Mixture(SCHEMA, np.array([0.5, 0.3, 0.2]), tables)
    answers = Counted(random.integers(0, 1000, 500), 1000)
    actions = Actions.plain(workload)
    local = LocalEngine().query_player(actions, answers, 1000)
    played = model.answers_to(CompiledWorkload.of(workload), single=True)
    with open_engine("dask", address) as engine:
        remote = engine.query_player(actions, answers, 1000)
        for number in range(2):
            one = local.draw(50.0, played, 100, SeededSource(number))
            other = remote.draw(50.0, model, 100, SeededSource(number))
            np.testing.assert_array_equal(one.queries, other.queries)
            np.testing.assert_array_equal(one.negated, other.negated)


def test_shards_of_a_dead_client_are_dropped(address: str) -> None:
    workload = random_marginals(SCHEMA, 3, 50)
    answers = Counted(np.arange(50), 1000)
    with open_engine("dask", address) as engine:
        remote = engine.query_player(Actions.plain(workload), answers, 1000)
        remote.draw(1.0, np.zeros(50), 5, SeededSource(0))
        assert held._HELD
        held.drop_idle(time.monotonic() + held.IDLE / 2)
        assert held._HELD  # asked for a moment ago
        held.drop_idle(time.monotonic() + 2 * held.IDLE)
        assert not held._HELD
        # A client that was slow, and not dead, makes its shards again.
        again = remote.draw(1.0, np.zeros(50), 5, SeededSource(1))
    local = LocalEngine().query_player(Actions.plain(workload), answers, 1000)
    expected = local.draw(1.0, np.zeros(50), 5, SeededSource(1))
    np.testing.assert_array_equal(again.queries, expected.queries)


def test_parts_of_wide_tables_have_fewer_rows(folder: Path, monkeypatch) -> None:
    table = open_table(folder)
    assert isinstance(table, ParquetTable)
    assert len(cut(table, 1)) == 1
    monkeypatch.setattr(parts, "MOST_BYTES", 1000)  # of 10 bits, 800 rows: about two row groups
    assert len(cut(table, 1, 10)) == 3
    assert len(cut(table, 1, 10**6)) == 7  # no row group is split


def test_footers_of_many_files_are_read_by_workers(tmp_path: Path, address: str) -> None:
    for number in range(40):
        cells = {f"x{i}": [number & 1] for i in range(WIDTH)}
        parquet.write_table(pa.table(cells), tmp_path / f"{number}.parquet")
    workload = random_marginals(SCHEMA, 2, 30)
    table = open_table(tmp_path)
    expected = LocalEngine().count(table, workload, OutOfDomain.REFUSE)
    with open_engine("dask", address) as engine:
        found = engine.count(table, workload, OutOfDomain.REFUSE)
    assert found.rows == 40
    np.testing.assert_array_equal(found.counts, expected.counts)


@pytest.mark.slow
def test_a_round_moves_the_bytes_that_stand_on_paper() -> None:
    """Many small workers in one process, against the arithmetic of docs/decisions/cluster.md."""
    from benchmarks import cluster_bytes

    found = [row for row in cluster_bytes.run(8) if "over_paper" in row]
    assert [row["what"] for row in found] == ["questions", "answers", "model"]
    assert all(0.8 < row["over_paper"] < 1.25 for row in found)


def test_a_cluster_with_certificates(folder: Path, tmp_path: Path) -> None:
    """A scheduler behind TLS is used with the certificates of Dask's configuration."""
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    pytest.importorskip("cryptography")
    security = distributed.Security.temporary()
    job = {**RUN, "player": "record", "rounds": 2}
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tls",
        security=security,
        dashboard_address=None,
    ) as cluster:
        place = cluster.scheduler_address
        assert place.startswith("tls://")
        with pytest.raises(ParameterError, match="needs certificates"):
            DualQuery(**job, engine="dask", scheduler=place).fit(folder, schema=SCHEMA)
        files = {
            "distributed.comm.tls.ca-file": security.tls_ca_file,
            "distributed.comm.tls.client.cert": security.tls_client_cert,
            "distributed.comm.tls.client.key": security.tls_client_key,
        }
        with dask.config.set(files):
            there = DualQuery(**job, engine="dask", scheduler=place).fit(folder, schema=SCHEMA)
    assert_same(DualQuery(**job).fit(folder, schema=SCHEMA), there)


def test_tables_of_wide_rows_are_counted_where_the_rows_are(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client reads no row: workers count all cells, and the release is the local one."""
    random = np.random.default_rng(1)
    names = [f"x{i}" for i in range(60)]
    schema = Schema(tuple(Attribute.binary(name) for name in names))
    cells = (random.random((3000, 60)) < np.linspace(0.02, 0.2, 60)).astype(np.int8)
    rows = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(dict(zip(names, cells.T, strict=True))), rows, row_group_size=700)
    job = {"epsilon": 1.0, "delta": 1e-5, "queries": 500, "seed": 5, "errors": False}
    here = DualQuery(**job).fit(rows, schema=schema)
    assert here.parameters.tables is not None
    assert here.parameters.tables.wide
    counted: list[str] = []

    def noted(count):
        def call(*asked):
            counted.append(distributed.get_worker().address)  # there is none at the client
            return count(*asked)

        return call

    def refused(*args):
        raise AssertionError("rows were counted at the client")

    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(parts, "count_rows", noted(count_rows))
    monkeypatch.setattr(kept, "tabulate", noted(tabulate))
    monkeypatch.setattr(LocalEngine, "count", refused)
    monkeypatch.setattr(LocalEngine, "tabulate", refused)
    monkeypatch.setattr(parts, "RareRows", noted(RareRows))
    monkeypatch.setattr(LocalEngine, "_rare_rows", refused)
    there = DualQuery(**job, engine="dask", scheduler=address).fit(rows, schema=schema)
    assert_same(here, there)
    assert len(here.transcript.rare) == 3
    for one, other in zip(here.transcript.rare, there.transcript.rare, strict=True):
        np.testing.assert_array_equal(one.counts, other.counts)
        assert one.most == other.most
    np.testing.assert_array_equal(here.model.tables, there.model.tables)
    # Queries, every batch of tables, and of rare cells the charges twice and the counts thrice.
    batches = 1 + len(there.transcript.measurements) + 5
    assert len(counted) >= 2 * batches, "in two parts"


def test_a_frame_is_counted_here_and_played_there(folder: Path, address: str) -> None:
    frame = parquet.read_table(folder)
    job = {**RUN, "player": "record", "rounds": 3}
    there = DualQuery(**job, engine="dask", scheduler=address).fit(frame, schema=SCHEMA)
    assert_same(DualQuery(**job).fit(frame, schema=SCHEMA), there)


def test_persons_of_several_parts_are_counted_here(folder: Path, address: str, tmp_path) -> None:
    table = parquet.read_table(folder)
    who = pa.array(np.arange(len(table)) % 600)  # the rows of a person lie in all files
    for number in range(2):
        part = table.append_column("who", who)[number * 1000 : (number + 1) * 1000]
        parquet.write_table(part, tmp_path / f"{number}.parquet")
    job = {**RUN, "player": "record", "rounds": 3, "neighbours": "add-remove", "rows": 600}
    job |= {"unit": "who", "most_records": 2, "weigh": "person"}
    there = DualQuery(**job, engine="dask", scheduler=address).fit(tmp_path, schema=SCHEMA)
    assert_same(DualQuery(**job).fit(tmp_path, schema=SCHEMA), there)


@pytest.mark.parametrize(("most", "weigh"), [(3, "record"), (20, "person"), (40, "person")])
def test_tables_of_persons_are_counted_from_bits(folder: Path, most: int, weigh: str) -> None:
    """Without codes where rows lie in one layer each; both ways give the same counts."""
    frame = parquet.read_table(folder)
    random = np.random.default_rng(4)
    who = pa.array(np.sqrt(random.integers(0, 6000, len(frame))).astype(int))
    persons = Persons("who", most, Weigh(weigh))
    table = ByPerson(open_table(frame.append_column("who", who)), persons)
    engine, workload = LocalEngine(), random_marginals(SCHEMA, 3, 400)
    engine.count(table, workload, OutOfDomain.REFUSE)
    assert table.strata.disjoint == (most < 40)
    assert (engine._packed is not None) == (most < 40)
    pairs = Marginals(Groups.single(SCHEMA), np.array([[0, 1], [3, 7]], dtype=np.int32))
    found = engine.tabulate(table, SCHEMA, pairs, OutOfDomain.REFUSE)
    codes = EncodedRows.read(table, SCHEMA, range(WIDTH))
    np.testing.assert_array_equal(found, tabulate(codes, pairs))


@pytest.mark.parametrize("step", ["largest", "tally", "locate"])
def test_a_lost_shard_is_made_again(address: str, step: str, monkeypatch) -> None:
    """All shards vanish before one step. Whichever it is, the draws are those of one process."""
    from dualquery.engines.cluster import RemoteShards

    workload = random_marginals(SCHEMA, 3, 500)
    random = np.random.default_rng(1)
    answers = Counted(random.integers(0, 1000, 500), 1000)
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
            from dualquery.workloads.matching import mean_answers

            played = mean_answers(workload, np.array(records[:number]))
            expected = local.draw(20.0, played, 30, SeededSource(number))
            found = remote.draw(20.0, records[:number], 30, SeededSource(number))
            np.testing.assert_array_equal(found.queries, expected.queries)
            np.testing.assert_array_equal(found.negated, expected.negated)


SECRET = "cell 4711"


def everything_logged(client) -> str:
    return repr(client.get_worker_logs()) + repr(client.get_scheduler_logs())


@pytest.mark.parametrize(
    "failure", [pa.ArrowInvalid(SECRET), ValueError(SECRET), MemoryError(SECRET), KeyError(SECRET)]
)
def test_whatever_fails_on_a_worker_its_log_stays_silent(
    folder: Path, address: str, monkeypatch, caplog: pytest.LogCaptureFixture, failure
) -> None:
    """A worker writes an exception that is raised, with its arguments, to its log."""

    def fail(*arguments: object) -> None:
        raise failure

    workload = random_marginals(SCHEMA, 3, 50)
    answers = Counted(np.arange(50), 1000)
    with open_engine("dask", address) as engine:
        monkeypatch.setattr(parts, "count_rows", fail)
        with pytest.raises(EngineError, match=f"a worker failed: {type(failure).__name__}$"):
            engine.count(open_table(folder), workload, OutOfDomain.REFUSE)
        monkeypatch.setattr(held.HeldShard, "begin", fail)
        player = engine.query_player(Actions.plain(workload), answers, 1000)
        with pytest.raises(EngineError, match=f"a worker failed: {type(failure).__name__}$"):
            player.draw(2.0, (), 5, SeededSource(1))
        assert "4711" not in everything_logged(engine.client)
    assert "4711" not in caplog.text
    broken = add_parts([Private(None), Private(Counted(np.zeros(1, np.int64), 1))])
    with pytest.raises(EngineError, match="a worker failed: AttributeError"):
        broken.open()


def test_a_log_would_show_what_is_raised(address: str) -> None:
    """The test above would fail without the envelope: logs do hold what tasks raise."""

    def fail() -> None:
        raise pa.ArrowInvalid("cell 8128")

    with open_engine("dask", address) as engine:
        with pytest.raises(pa.ArrowInvalid):
            engine.client.submit(fail).result()
        assert "8128" in everything_logged(engine.client)


def test_workers_of_another_version_are_refused(folder: Path, address: str, monkeypatch) -> None:
    from dualquery.engines import cluster

    monkeypatch.setattr(cluster, "__version__", "0.0.7")
    with pytest.raises(EngineError, match=r"worker has dualquery .* and this process 0\.0\.7"):
        open_engine("dask", address).__enter__()
    # A worker that comes later is asked with every part.
    monkeypatch.setattr(cluster, "require_same_version", lambda client: None)
    workload = random_marginals(SCHEMA, 3, 50)
    with (
        open_engine("dask", address) as engine,
        pytest.raises(EngineError, match=r"and this process 0\.0\.7"),
    ):
        engine.count(open_table(folder), workload, OutOfDomain.REFUSE)


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("nonsense", "missing port"),
        ("smoke://signal:1", "unknown address scheme 'smoke'"),
        ("tcp://", "missing port"),
        ("tcp://host:port", "invalid literal"),
        ("tls://127.0.0.1:9", "certificates"),
    ],
)
def test_what_is_no_address_is_refused_at_once(address: str, word: str) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(ParameterError, match=f"scheduler = '{address}'.*{word}"):
        check_engine("dask", address)


def test_no_address_ends_a_command_in_one_line(tmp_path: Path) -> None:
    """In its own process: a client that never connected used to print errors at the end."""
    pytest.importorskip("distributed")
    SCHEMA.save(tmp_path / "schema.toml")
    done = in_a_process(
        "release", tmp_path / "no.parquet", "--schema", tmp_path / "schema.toml", "--epsilon", 1,
        "--delta", 1e-6, "--out", tmp_path / "out", "--engine", "dask", "--scheduler", "nonsense",
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: scheduler = 'nonsense'")


def test_nobody_else_can_join_the_cluster_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are exact on its workers; a process without its credentials cannot speak to it."""
    distributed = pytest.importorskip("distributed")
    from distributed.comm import connect

    monkeypatch.setenv("DUALQUERY_THREADS", "1")
    with open_engine("dask") as engine:
        scheduler = engine.client.scheduler.address
        workers = list(engine.client.nthreads())
        other = distributed.Security.temporary().get_connection_args("client")
        own = engine.client.security.get_connection_args("client")

        async def accepted(address: str, **how: object) -> bool:
            try:
                comm = await connect(address, timeout=2, **how)
            except (OSError, TypeError):
                return False
            comm.abort()
            return True

        for address in (scheduler, *workers):
            assert address.startswith("tls://")
            assert not asyncio.run(accepted(address.replace("tls", "tcp")))
            assert not asyncio.run(accepted(address, **other))
            assert asyncio.run(accepted(address, **own))


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
