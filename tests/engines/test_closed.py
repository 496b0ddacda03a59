"""A local cluster as another user of the machine would meet it: no port answers, no file opens."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("distributed")
import distributed
import psutil

from dualquery.engines import open_engine

pytestmark = pytest.mark.filterwarnings("ignore")  # what distributed warns about is not ours
RUN = """
import os, time
from dualquery.engines import open_engine
if __name__ == "__main__":
    with open_engine("dask") as engine:
        print(*(engine.client.run(os.getpid).values()), flush=True)
        time.sleep(600)
"""


def listening() -> set[tuple[str, int]]:
    """The ports that this process and its children listen at."""
    me = psutil.Process()
    return {
        (one.laddr.ip, one.laddr.port)
        for process in (me, *me.children(recursive=True))
        for one in process.net_connections("tcp")
        if one.status == psutil.CONN_LISTEN
    }


def plain(address: tuple[str, int]) -> bytes:
    """What a port answers to somebody who asks for a page."""
    with socket.create_connection(address, timeout=5) as stranger:
        stranger.settimeout(3)
        stranger.sendall(b"GET /json/counts.json HTTP/1.0\r\n\r\n")
        try:
            return stranger.recv(4096)
        except OSError:
            return b""


def without_certificate(address: tuple[str, int]) -> bytes:
    """What a port says to somebody who speaks TLS but has no certificate of the run."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection(address, timeout=5) as stranger,
            context.wrap_socket(stranger) as secured,
        ):
            secured.settimeout(3)
            secured.sendall(b"GET /json/counts.json HTTP/1.0\r\n\r\n")
            return secured.recv(4096)
    except OSError:
        return b""


def joins(address: tuple[str, int], security: object = None) -> bool:
    """Whether somebody with Dask, and with credentials of their own or none, becomes a client."""
    protocol = "tcp" if security is None else "tls"
    try:
        distributed.Client(
            f"{protocol}://{address[0]}:{address[1]}",
            security=security,
            timeout=3,
            set_as_default=False,
        ).close()
    except OSError:
        return False
    return True


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_no_port_answers_a_stranger_and_spills_go_with_the_run(temporary: Path) -> None:
    before = listening()
    with open_engine("dask") as engine:
        opened = listening() - before
        assert opened, "the scheduler listens"
        for address in opened:
            assert address[0] == "127.0.0.1"
            assert b"HTTP" not in plain(address)
            assert without_certificate(address) == b""
        scheduler = ("127.0.0.1", int(engine.client.scheduler.address.rpartition(":")[2]))
        assert scheduler in opened
        assert not joins(scheduler)
        assert not joins(scheduler, distributed.Security.temporary())
        homes = engine.client.run(lambda dask_worker: dask_worker.local_directory)
        (spills,) = temporary.glob("dualquery-workers-*")
        assert stat.S_IMODE(spills.stat().st_mode) == 0o700
        assert all(Path(home).is_relative_to(spills) for home in homes.values())
        assert all(Path(home).is_dir() for home in homes.values())
    assert not list(temporary.glob("dualquery-workers-*"))
    assert not [one for one in temporary.iterdir() if "dask" in one.name]


def test_what_a_killed_run_leaves_goes_with_the_next(temporary: Path) -> None:
    (temporary / "dualquery-workers-notes").write_text("no folder of a run")
    process = subprocess.Popen(
        [sys.executable, "-c", RUN], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        workers = [int(word) for word in process.stdout.readline().split()]
        (left,) = [one for one in temporary.glob("dualquery-workers-*") if one.is_dir()]
        with open_engine("dask"):
            assert left.is_dir(), "a living run keeps its folder"
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    assert workers
    last = time.monotonic() + 60
    while any(psutil.pid_exists(worker) for worker in workers):
        assert time.monotonic() < last, "workers outlive their run"
        time.sleep(0.1)
    with open_engine("dask"):
        assert not left.exists()
    assert [one.name for one in temporary.glob("dualquery-workers-*")] == [
        "dualquery-workers-notes"
    ]
