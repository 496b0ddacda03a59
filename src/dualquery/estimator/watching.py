"""How a caller in Python watches a run: a bar in a notebook by itself, elsewhere on request."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dualquery.base.checks import refusal
from dualquery.estimator.stages import Progress

Watch = Progress | bool | None
"""True for a bar, False for none, None for a bar in a notebook only; or a function of a stage, of
what is done of it, and of its total."""


def in_notebook() -> bool:
    """Whether this is the process behind a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def watched(progress: Watch) -> Iterator[Progress]:
    """What the run tells its progress to."""
    if callable(progress):
        yield progress
    elif progress is True or (progress is None and in_notebook()):
        with _bar() as show:
            yield show
    elif progress is None or progress is False:
        yield lambda stage, done, total: None
    else:
        raise refusal("progress", progress, "True, False, or a function")


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    # In a notebook rich writes into the cell; elsewhere results go to stdout, so this does not.
    with Progress(*columns, console=Console(stderr=not in_notebook())) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda stage, done, total: bar.update(
            task, description=stage, completed=done, total=total or None
        )
