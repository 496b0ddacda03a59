"""Baselines and the budget ledger: what may be published is charged before its first draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from dualquery.privacy.events import Events
from dualquery.privacy.ledger import Ledger
from dualquery.privacy.neighbours import Neighbours


@contextmanager
def charged(
    ledger: str | Path | None,
    events: Events,
    *,
    private: bool,
    note: str,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
) -> Iterator[None]:
    """Reserve what a run costs, and enter it as spent when the run ends.

    A run that fails stays reserved: what it drew may have been seen.

    Args:
        ledger: the budget ledger; None charges nothing.
        events: all that the run will release.
        private: whether its random source is; a ledger refuses what is not.
        note: what the ledger says of it.
        neighbours: which tables the events compare.
    """
    if ledger is None:
        yield
        return
    book, entry = Ledger(ledger), uuid4().hex
    book.reserve(entry, events, neighbours=neighbours, private=private, note=note)
    yield
    book.spend(entry)
