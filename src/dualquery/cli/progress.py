"""Progress: a live bar on a terminal, plain lines elsewhere, nothing with `--quiet`."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from dualquery.base.escapes import printable

LINES = 10
"""How many lines a stage prints if there is no terminal."""


class Reporter:
    """Shows the stage of a run and how far it is. It writes to stderr; stdout is for results."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.live = sys.stderr.isatty() and not quiet
        self.stage = ""
        self.begun = time.monotonic()
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not self.live,
        )
        self.task = self.progress.add_task("starting", total=None)

    def __enter__(self) -> Reporter:
        self.progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.progress.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self.quiet:
            return
        if self.live:
            self.progress.update(self.task, description=stage, completed=done, total=total or None)
        elif stage != self.stage or (total and done * LINES // total > (done - 1) * LINES // total):
            share = f" {done}/{total}" if total else ""
            seconds = time.monotonic() - self.begun
            print(f"[{seconds:6.1f} s] {printable(stage)}{share}", file=sys.stderr)  # noqa: T201 - CLI output
        self.stage = stage
