"""The commands of the package, each in a process of its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from dualquery.base.errors import DualQueryError
from dualquery.base.stored import Json

_STAGE = re.compile(r"\[ *[\d.]+ s\] (?P<stage>.*?)(?: (?P<done>\d+)/(?P<total>\d+))?\Z")

KEPT = 50
"""How many lines that a run prints are kept."""


class CommandError(DualQueryError):
    """A command failed, and this is what it said."""


def arguments_of(options: Json) -> list[str]:
    """Options of a command line; what is empty is left out, and true is a flag."""
    line: list[str] = []
    for name, value in options.items():
        if value is True:
            line.append(f"--{name}")
        elif value not in (None, "", False):
            line += [f"--{name}", str(value)]
    return line


def call(command: str, *arguments: str, fine: Sequence[int] = (0,)) -> Json:
    """What a command says as JSON.

    Args:
        command: its name.
        arguments: what follows it, except `--json`.
        fine: exit codes with which it says something.
    """
    done = subprocess.run(
        _line(command, *arguments, "--json"), capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        if done.returncode in fine:
            return dict(json.loads(done.stdout))
    except ValueError:
        pass
    raise CommandError(_error_in(done.stderr.splitlines()))


def _line(command: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "dualquery", command, *arguments]


def _error_in(lines: Sequence[str]) -> str:
    """The one line in which a command says why it failed."""
    told = [line for line in lines if line.startswith("error: ")]
    return told[-1].removeprefix("error: ") if told else "the command ended without a word"


class Run:
    """A release under way. Its state is what the page shows of it."""

    def __init__(self, *arguments: str) -> None:
        self.began = time.monotonic()
        self.stage: Json = {"name": "starting", "done": 0, "total": 0}
        self.lines: list[str] = []
        self.seconds: float | None = None
        self.stopping = False
        # A session of its own: what interrupts the app does not reach it by another way.
        self.process = subprocess.Popen(
            _line("release", *arguments, "--json"), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stderr or ():
            found = _STAGE.match(line.rstrip("\n"))
            if found is None:
                self.lines = [*self.lines, line.rstrip("\n")][-KEPT:]
            else:
                done, total = found["done"] or 0, found["total"] or 0
                self.stage = {"name": found["stage"], "done": int(done), "total": int(total)}
        self.process.wait()
        self.seconds = time.monotonic() - self.began

    def stop(self) -> None:
        """Ask it to end, as an interrupt on the terminal would."""
        self.stopping = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def wait(self) -> None:
        """Wait until it has ended and everything it said is known."""
        self.reader.join()

    @property
    def state(self) -> Json:
        """Running, done, stopped or failed; how far; and what it said."""
        ended = self.seconds is not None
        code = self.process.returncode if ended else None
        word = "running" if not ended else "done" if code == 0 else "failed"
        if word == "failed" and (self.stopping or code == 128 + signal.SIGINT):
            word = "stopped"
        return {
            "state": word,
            "stopping": self.stopping and not ended,
            "seconds": self.seconds if ended else time.monotonic() - self.began,
            "stage": self.stage,
            "said": [line for line in self.lines if not line.startswith("error: ")],
            "error": _error_in(self.lines) if word == "failed" else "",
        }
