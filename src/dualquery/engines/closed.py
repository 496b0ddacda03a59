"""A Dask cluster on this machine that nobody else can look into. Private side.

Dask's own `LocalCluster` opens an HTTP server per scheduler and worker, whatever its dashboard is
set to. It asks for no credentials, and tells every user of the machine the names, sizes and times
of tasks, and logs. Here all ports speak TLS and take only the run's own certificates, and what
workers spill goes into a folder that only its owner can open.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask
import distributed
from distributed import Nanny, Scheduler, Worker
from distributed.http import routing

from dualquery.base.files import is_ours, lock

_PREFIX = "dualquery-workers-"
_UNTYPED: Any = distributed
_ROUTING: Any = routing


class _WithoutPages:
    """A node of a cluster that serves no pages."""

    def start_http_server(self, routes: object, *arguments: object, **options: object) -> None:
        self.http_application = _ROUTING.RoutingApplication(routes)  # nobody listens


class ClosedScheduler(_WithoutPages, Scheduler):
    """A scheduler that serves no pages."""


class ClosedWorker(_WithoutPages, Worker):
    """A worker that serves no pages."""


class Spills:
    """A folder for what workers spill: it opens for its owner alone, and goes with the run.

    A run that is killed leaves it behind. The next run of the same user removes it.
    """

    def __init__(self) -> None:
        base = Path(tempfile.gettempdir())
        for left in base.glob(f"{_PREFIX}*"):
            _remove(left)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._handle = os.open(self.path, os.O_RDONLY)
        with suppress(OSError):  # without locks a next run cannot tell it from a dead one's
            lock(self._handle)

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._handle)


def _remove(folder: Path) -> None:
    """Delete the folder of a run that was killed; one that is in use, or not ours, stays."""
    if not (is_ours(folder) and folder.is_dir()):
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if lock(handle):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)


def closed_cluster(workers: int, spills: Path) -> Any:
    """Start a cluster of processes on this machine, with credentials that no other process has.

    Args:
        workers: how many, with one thread each.
        spills: where they may put what does not fit into memory.
    """
    security = _UNTYPED.Security.temporary()
    shared = {"security": security, "protocol": "tls://", "host": "127.0.0.1"}
    worker = {
        "cls": Nanny,
        "options": {
            **shared,
            "nthreads": 1,
            "worker_class": ClosedWorker,
            "local_directory": str(spills),
            "silence_logs": logging.CRITICAL,
            "env": {"DUALQUERY_THREADS": "1"},
        },
    }
    with dask.config.set(temporary_directory=str(spills)):  # the scheduler's own, too
        return _UNTYPED.SpecCluster(
            scheduler={
                "cls": ClosedScheduler,
                "options": {**shared, "port": 0, "dashboard": False},
            },
            workers=dict.fromkeys(range(workers), worker),
            worker=worker,
            security=security,
            silence_logs=logging.CRITICAL,
        )
