"""A scheduler that is not there, or that dies: said in one line and within seconds."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dualquery.base.errors import EngineError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.engines import open_engine, scheduler
from dualquery.engines.scheduler import address_of, gone, is_gone
from dualquery.privacy.sources import SeededSource
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from tests.cli.conftest import in_a_process

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # what distributed warns about is not ours
SCHEMA = Schema(
    (Attribute.categorical("a", list("pqrs")), Attribute.categorical("b", list("uvw")),
     Attribute.binary("c"), Attribute.categorical("d", list("klmnop")))
)  # fmt: skip
CLUSTER = """
import sys, time
from distributed import LocalCluster
with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None,
                  protocol="tcp://", host="127.0.0.1") as cluster:
    print(cluster.scheduler_address, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    random = np.random.default_rng(8)
    columns: dict[str, np.ndarray] = {"c": random.integers(0, 2, 2000)}
    for name, codes in (("a", "pqrs"), ("b", "uvw"), ("d", "klmnop")):
        columns[name] = random.choice(list(codes), 2000)
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=300)
    SCHEMA.save(tmp_path / "schema.toml")
    return tmp_path / "rows.parquet"


@pytest.fixture
def cluster() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A scheduler with one worker, in a process that can be killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process
    finally:
        process.kill()
        process.communicate()  # closes the pipe, too


def test_nobody_listens() -> None:
    begun = time.monotonic()
    with pytest.raises(EngineError, match=r"scheduler at tcp://127\.0\.0\.1:1: Connection refused"):
        open_engine("dask", "tcp://127.0.0.1:1").__enter__()
    assert time.monotonic() - begun < 10.0


def test_what_listens_but_is_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "GREETING", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(EngineError, match=f"what listens at {address} is no Dask scheduler"):
            open_engine("dask", address).__enter__()


def test_a_scheduler_that_dies_is_told_in_seconds(
    table: Path, cluster: tuple[str, subprocess.Popen[str]], caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the client was about to ask, and without a word of its own in any log."""
    address, process = cluster
    workload = random_marginals(SCHEMA, 2, 40)
    with open_engine("dask", address) as engine:
        before = engine.count(open_table(table), workload, OutOfDomain.REFUSE)
        assert before.rows == 2000
        player = engine.query_player(Actions.plain(workload), before, 2000)
        player.draw(5.0, np.full(40, 0.5), 3, SeededSource(1))
        process.kill()
        process.wait()
        begun = time.monotonic()
        for ask in (
            lambda: player.draw(5.0, np.full(40, 0.5), 3, SeededSource(2)),
            lambda: engine.count(open_table(table), workload, OutOfDomain.REFUSE),
            lambda: engine.query_player(
                Actions.plain(workload), Counted(before.counts, 2000), 2000
            ),
        ):
            with pytest.raises(EngineError, match=rf"scheduler at {address} is gone") as said:
                ask()
            assert 'engine="local"' in str(said.value)
            assert "\n" not in str(said.value)
        assert time.monotonic() - begun < 60.0
    assert not [one for one in caplog.records if one.name.startswith("distributed.client")]


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 3])
def test_the_scheduler_of_a_run_dies(table: Path, tmp_path: Path, after: int) -> None:
    """One line, exit code 1, nothing lost; the resumed run ends in the same release."""
    command = (
        "release", table, "--schema", tmp_path / "schema.toml", "--epsilon", 4, "--delta", 1e-4,
        "--queries", 60, "--seed", 3, "--quiet",
    )  # fmt: skip
    whole = in_a_process(*command, "--out", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    file, out = tmp_path / "scheduler.json", tmp_path / "out"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--scheduler-file", file],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for words in (
            ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"),
            ("worker", "--nworkers", "1", "--nthreads", "1", "--no-dashboard", "--no-nanny"),
        )
    ]  # fmt: skip
    try:
        _wait(lambda: file.exists() and file.stat().st_size > 0, processes[0])
        address = json.loads(file.read_text())["address"]
        arguments = [*map(str, command), "--out", str(out), "--engine", "dask"]
        run = subprocess.Popen(
            [sys.executable, "-m", "dualquery", *arguments, "--scheduler", address],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        used = Path(f"{out}.partial") / "used.bin"
        _wait(lambda: used.exists() and used.stat().st_size >= after, run)
        os.kill(processes[0].pid, signal.SIGKILL)
        printed, said = run.communicate(timeout=120)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert run.returncode == 1, said
    assert printed == ""
    assert len(said.splitlines()) == 1
    assert said.startswith(f"error: the Dask scheduler at {address} is gone; ")
    assert "nothing is lost" in said
    assert "--resume" in said
    assert str(Path(f"{out}.partial")) in said
    again = in_a_process(*command, "--out", out, "--engine", "local", "--resume")
    assert again.returncode == 0, again.stderr
    ours, theirs = (
        {file.name: file.read_bytes() for file in folder.iterdir()}
        for folder in (tmp_path / "whole", out)
    )
    assert ours == theirs


def _wait(done, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while not done():
        assert process.poll() is None, "it ended too soon"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_client_that_is_closed_still_says_which_scheduler_is_gone() -> None:
    """A client forgets the address when it closes, which may be while the error is made."""

    class Client:
        status = "running"
        scheduler: SimpleNamespace | None = SimpleNamespace(address="tcp://127.0.0.1:9")

    client = Client()
    assert address_of(client) == "tcp://127.0.0.1:9"
    client.status, client.scheduler = "closed", None
    assert is_gone(client)
    assert "tcp://127.0.0.1:9 is gone" in str(gone(client))
