"""Signals that stop a run stop it at a place where it can be stopped.

An interrupt raises an exception wherever the interpreter happens to be. Two such places are bad.
Compiled kernels that return named tuples call the tuple's class from machine code that checks
nothing: an exception there is a fault of the whole process. A signal that arrives there is sent
again a moment later. And a zip archive that is left while it is written raises an error of its own,
which hides the interrupt. Whoever writes one holds signals back until it is written.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that ask a process to end. Windows has no SIGHUP."""

UNSAFE = ("numba", "llvmlite")
"""Packages whose functions must not be left by a signal."""

MOMENT = 0.005
"""Seconds until a signal that came at a bad place is sent again."""

_depth = 0
_waiting: list[int] = []


@contextmanager
def orderly(
    stop: Callable[[int], BaseException], signals: Sequence[str] = SIGNALS
) -> Iterator[None]:
    """Let signals raise what `stop` makes of their number, at a safe place.

    Signals that are ignored, or that somebody else handles, stay as they are. So it may be entered
    within itself, and from threads, where it does nothing: only the main thread handles signals.

    Args:
        stop: makes the exception for the number of a signal.
        signals: the names of the signals.
    """
    main = threading.main_thread().ident

    def handle(number: int, frame: FrameType | None) -> None:
        if _depth:
            _waiting.append(number)
        elif is_safe(frame):
            raise stop(number)
        else:
            # A timer of `threading` takes a lock, which the interrupted code may hold.
            _thread.start_new_thread(_send_again, (main, number))

    usual = (signal.SIG_DFL, signal.default_int_handler)
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name) for name in signals if hasattr(signal, name)):
            if signal.getsignal(number) in usual:
                before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held() -> Iterator[None]:
    """Hold signals back that `orderly` handles, until the block is done."""
    global _depth
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth and _waiting:
            number = _waiting[-1]
            _waiting.clear()
            signal.raise_signal(number)


def is_safe(frame: FrameType | None) -> bool:
    """Whether an exception may be raised in this frame.

    It may not inside a package named in `UNSAFE`, nor in the class of a named tuple, whose module
    is called after it. Frames of this package end the search: what they called has not begun yet.
    """
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package == "dualquery":
            return True
        if package in UNSAFE or package.startswith("namedtuple_"):
            return False
        frame = frame.f_back
    return True


def _send_again(main: int | None, number: int) -> None:
    time.sleep(MOMENT)
    if main is not None and hasattr(signal, "pthread_kill"):
        # To the main thread itself, so that a call that waits there is woken.
        signal.pthread_kill(main, number)
    else:
        signal.raise_signal(number)
