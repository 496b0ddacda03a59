"""How a caller in Python watches a run: a bar in a notebook by itself, elsewhere on request."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape

from dualquery.base.checks import refusal
from dualquery.estimator.stages import Progress

Watch = Progress | bool | None
"""True for a bar, False for none, None for a bar in a notebook only; or a function of a stage, of
what is done of it, and of its total."""


SECONDS_BETWEEN = 0.2
"""A notebook is told no more often than that, except of a new stage."""


def in_notebook() -> bool:
    """Whether this is the process behind a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def watched(progress: Watch) -> Iterator[Progress]:
    """What the run tells its progress to."""
    if callable(progress):
        yield progress
    elif progress in (True, None) and in_notebook():
        with _cell() as show:
            yield show
    elif progress is True:
        with _terminal() as show:
            yield show
    elif progress is None or progress is False:
        yield lambda stage, done, total: None
    else:
        raise refusal("progress", progress, "True, False, or a function")


@contextmanager
def _terminal() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    # Results go to stdout, so the bar does not.
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda stage, done, total: bar.update(
            task, description=stage, completed=done, total=total or None
        )


@dataclass(frozen=True)
class _Shown:
    """The stage of a run, as a notebook shows it."""

    stage: str
    done: int
    total: int

    def __repr__(self) -> str:
        return f"{self.stage} {self.done}/{self.total}" if self.total else self.stage

    def _repr_html_(self) -> str:
        bar = f'<progress value="{self.done}" max="{self.total}"></progress> ' if self.total else ""
        return f"<small>{bar}{escape(repr(self))}</small>"


@contextmanager
def _cell() -> Iterator[Progress]:
    """A bar that a notebook draws by itself; rich would need a package of widgets for it."""
    from IPython import display

    started = shown = time.monotonic()
    stage_shown = ""
    handle = display.display(_Shown("starting", 0, 0), display_id=True)  # type: ignore[no-untyped-call]  # IPython has no types here

    def show(stage: str, done: int, total: int) -> None:
        nonlocal shown, stage_shown
        now = time.monotonic()
        if stage != stage_shown or now - shown > SECONDS_BETWEEN:
            shown, stage_shown = now, stage
            handle.update(_Shown(stage, done, total))

    yield show
    handle.update(_Shown(f"released in {time.monotonic() - started:.1f} seconds", 0, 0))
