"""Whether the scheduler of a Dask cluster is there, and what is said if it is not."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

from dualquery.base.errors import EngineError, first_line

REACH = 3.0
"""Seconds to try to reach a scheduler: one that was started just before may not listen yet."""

ANSWER = 2.0
"""Seconds that a scheduler which is there may take to accept a connection."""

DYING = 2.0
"""Seconds that a scheduler whose connection broke may take to be gone."""

_BETWEEN = 0.2

_ADDRESSES: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Of schedulers, by client."""

GREETING = 10.0
"""Seconds that a scheduler may take to greet a client that has reached it."""


def reach(address: str) -> None:
    """Wait until a scheduler listens at an address; refuse if none does.

    A Dask client would go on trying for a long time, and write to its log meanwhile. If somebody
    listens who does not speak Dask's language, a client would wait for ever.
    """
    last = time.monotonic() + REACH
    while (problem := _problem(address)) is not None:
        if time.monotonic() > last:
            raise EngineError(f"cannot reach a Dask scheduler at {address}: {problem}")
        time.sleep(_BETWEEN)
    # In a thread: the caller may be inside an event loop of its own, as in a notebook.
    with ThreadPoolExecutor(1) as pool:
        if not pool.submit(asyncio.run, _is_greeted(address)).result():
            raise EngineError(f"what listens at {address} is no Dask scheduler")


async def _is_greeted(address: str) -> bool:
    """Whether the other side answers the greeting with which Dask's connections begin."""
    distributed: Any = import_module("distributed")
    comm: Any = import_module("distributed.comm")
    try:
        greeting = comm.connect(
            address, timeout=GREETING, **distributed.Security().get_connection_args("client")
        )
        # Its own timeout ends with the connection; the greeting comes after that.
        connection = await asyncio.wait_for(greeting, GREETING)
    except (OSError, ValueError):
        return False
    await connection.close()
    return True


def address_of(client: Any) -> str:
    """Where the scheduler of a client is, or was: a client that is closed forgets it."""
    scheduler = client.scheduler
    if scheduler is not None:
        _ADDRESSES[client] = str(scheduler.address)
    return _ADDRESSES.get(client, "an unknown address")


def is_gone(client: Any) -> bool:
    """Whether the scheduler of a client is gone, so that nothing sent to it will come back."""
    address = address_of(client)
    return client.status in ("closing", "closed") or _problem(address) is not None


def gone(client: Any) -> EngineError:
    """The error about a scheduler that is gone."""
    return EngineError(
        f"the Dask scheduler at {address_of(client)} is gone",
        python='start it again and give its address as scheduler, or go on with engine="local"',
        command="start it again and name its address with --scheduler, or go on with --engine "
        "local",
    )


@contextmanager
def needed(client: Any) -> Iterator[None]:
    """Whatever fails inside because the scheduler is gone: say just that."""
    try:
        yield
    except EngineError:
        raise
    except Exception as error:
        # A process that dies closes its connections first, and stops to listen a moment later.
        last = time.monotonic() + (DYING if isinstance(error, OSError) else 0.0)
        while not (ended := is_gone(client)) and time.monotonic() < last:
            time.sleep(_BETWEEN)
        if ended:
            raise gone(client) from None
        raise


def awaited(client: Any, future: Any) -> Any:
    """The result of a future; an error if the scheduler is gone, which would never deliver it."""
    while True:
        try:
            return future.result(timeout=ANSWER)
        except TimeoutError:
            # A client that is still connected need not ask: it would notice the end of that.
            if client.status != "running" and is_gone(client):
                raise gone(client) from None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep a client from writing about a lost scheduler: we say it ourselves, in one line."""
    log = logging.getLogger("distributed.client")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def _problem(address: str) -> str | None:
    """Why nobody can be reached at an address; None if somebody listens."""
    from distributed.comm.addressing import parse_address, parse_host_port

    scheme, place = parse_address(address)
    if scheme not in ("tcp", "tls"):  # inside this process, or of a kind that we cannot try
        return None
    host, port = parse_host_port(place)
    try:
        socket.create_connection((host, port), timeout=ANSWER).close()
    except OSError as error:
        return error.strerror or first_line(error)
    return None
