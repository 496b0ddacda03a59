"""A signal stops a run where it can be stopped, and nowhere else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from dualquery.base.interrupts import held, is_safe, orderly
from dualquery.release.arrays import write_arrays


class Halt(BaseException):
    pass


def test_a_signal_raises_what_was_asked_for() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Halt, match=str(int(signal.SIGTERM))), orderly(Halt):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_handlers_of_others_and_ignored_signals_stay() -> None:
    seen: list[int] = []
    mine = lambda number, frame: seen.append(number)  # noqa: E731 - compared below
    before = signal.signal(signal.SIGTERM, mine), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with orderly(Halt):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGHUP)
        assert seen == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGHUP, before[1])


def test_in_a_thread_it_changes_nothing() -> None:
    found: list[object] = []

    def enter() -> None:
        with orderly(Halt):
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGTERM)]


def test_signals_are_held_back_until_the_outermost_block_is_done() -> None:
    done: list[str] = []

    def work() -> None:
        with held():
            with held():
                signal.raise_signal(signal.SIGTERM)
                done.append("inner")
            done.append("outer")
        done.append("never")

    with pytest.raises(Halt), orderly(Halt):
        work()
    assert done == ["inner", "outer"]
    with held():
        pass  # nothing waits any more


def frames(*modules: str) -> SimpleNamespace | None:
    """A stack of frames of these modules, the innermost first."""
    below = None
    for module in reversed(modules):
        below = SimpleNamespace(f_globals={"__name__": module}, f_back=below)
    return below


@pytest.mark.parametrize(
    ("modules", "safe"),
    [
        ((), True),
        (("dualquery.game.loop", "numba.core.dispatcher"), True),
        (("threading", "concurrent.futures._base", "dualquery.base.threads"), True),
        (("numba.core.serialize", "dualquery.oracles.reduction.reduce"), False),
        (("ctypes", "llvmlite.binding", "numba.core.codegen", "dualquery.game.loop"), False),
        (("namedtuple_Kept", "dualquery.oracles.reduction.reduce"), False),
        (("numbers", "tests.base.test_interrupts"), True),
    ],
)
def test_where_a_signal_may_raise(modules: tuple[str, ...], safe: bool) -> None:
    assert is_safe(frames(*modules)) is safe  # type: ignore[arg-type]


def test_a_named_tuple_is_finished_first() -> None:
    """The class of a real named tuple is recognised, whatever Python calls its module."""

    class Slow(NamedTuple):
        value: int

    code = Slow.__new__.__globals__
    assert is_safe(frames(code["__name__"], "dualquery.game.loop")) is False  # type: ignore[arg-type]


def test_what_must_not_be_left_is_finished_first() -> None:
    """A function of a bad place is interrupted, goes on to its end, and only then is left."""
    done: list[str] = []
    unsafe: dict[str, object] = {"__name__": "numba.part", "done": done, "time": time}
    exec(
        "def write(interrupt):\n"
        "    interrupt()\n"
        "    end = time.monotonic() + 0.05\n"
        "    while time.monotonic() < end:\n"
        "        pass\n"
        "    done.append('written')\n",
        unsafe,
    )

    def work() -> None:
        unsafe["write"](lambda: os.kill(os.getpid(), signal.SIGTERM))  # type: ignore[operator]
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            time.sleep(0.001)
        done.append("never stopped")

    with pytest.raises(Halt), orderly(Halt):
        work()
    assert done == ["written"]


HAMMER = """
import signal, sys, threading, time
from typing import NamedTuple
import numpy as np
from numba import njit
from dualquery.base.interrupts import orderly

class Pair(NamedTuple):
    values: np.ndarray
    number: int

@njit
def pair(number):
    return Pair(np.zeros(number), number)

pair(3)
main, running = threading.main_thread().ident, True

def hammer():
    time.sleep(0.2)  # until the thread has started
    while running:
        time.sleep(0.0003)
        signal.pthread_kill(main, signal.SIGINT)

def work(seconds):
    global running
    caught, end = 0, time.monotonic() + seconds
    thread = threading.Thread(target=hammer)
    thread.start()
    while running:
        try:
            while time.monotonic() < end or caught <= 10:  # a busy machine delivers few
                for _ in range(50):
                    pair(3)
            running = False
        except KeyboardInterrupt:
            caught += 1
    while thread.is_alive():
        try:
            thread.join()
            time.sleep(0.1)  # for those that were sent again
        except KeyboardInterrupt:
            caught += 1
    return caught

with orderly(lambda number: KeyboardInterrupt()):
    caught = work(2.0)
print(caught)
"""


@pytest.mark.slow
def test_kernels_that_return_named_tuples_survive_signals(tmp_path: Path) -> None:
    """Without `orderly` the process of this test ends in a segmentation fault."""
    (tmp_path / "hammer.py").write_text(HAMMER, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "hammer.py")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_an_archive_that_is_written_is_finished(tmp_path: Path) -> None:
    """An interrupt while arrays are written is not hidden by an error of the archive."""
    values = np.random.default_rng(0).integers(0, 255, 2_000_000, dtype=np.uint8)
    sender = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGTERM))

    def work() -> None:
        sender.start()
        for turn in range(100):
            write_arrays(tmp_path / "values.npz", {"values": values, "turn": np.array(turn)})

    with pytest.raises(Halt), orderly(Halt):
        work()
    sender.join()
    with np.load(tmp_path / "values.npz") as found:
        assert np.array_equal(found["values"], values)
