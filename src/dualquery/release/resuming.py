"""What a run that stopped leaves behind: how it is told, and how `--resume` ends it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dualquery.base.errors import DualQueryError, EngineError, ReleaseError
from dualquery.game import journal
from dualquery.privacy.ledger import Ledger
from dualquery.release.directory import digest_of, sweep
from dualquery.release.release import Release
from dualquery.release.release import load as read_release


@contextmanager
def telling(partial: Path | None) -> Iterator[None]:
    """Add to whatever stops a run that nothing is lost, and how to go on.

    A refusal says itself what would be right; it gets no such note.
    """
    try:
        yield
    except BaseException as error:
        if partial is not None and _is_failure(error):
            error.add_note(
                f"nothing is lost: the draws are kept in {str(partial)!r}, and the same command "
                "with --resume goes on from there"
                if journal.exists(partial)
                else "nothing was drawn yet; start again"
            )
        raise


def _is_failure(error: BaseException) -> bool:
    """Whether the machine failed or somebody stopped it, and the request was in order."""
    broken_ledger = isinstance(error.__cause__, sqlite3.Error)
    return broken_ledger or isinstance(error, EngineError) or not isinstance(error, DualQueryError)


def finish(
    out: Path, partial: Path, asked: Mapping[str, Any], ledger: str | Path | None
) -> Release | None:
    """Do what is left to do for a run whose release is in its place; None if it is not there.

    A kill between the last rename and the end leaves the journal, a ledger entry that is only
    reserved, or half of a deletion.
    """
    sweep(out)
    found = journal.published(partial)
    if found is None:
        if (out / "release.json").is_file() and journal.settle(partial):
            return read_release(out)
        return None
    identity, digest = found
    if digest_of(out) != digest:
        return None  # the release did not get there
    begun = journal.begun(partial) or {}
    for key, value in asked.items():
        if begun.get(key) != value:
            raise ReleaseError(
                f"cannot resume with another {key}: the run that wrote {str(out)!r} began with "
                f"{begun.get(key)!r}, now it is {value!r}"
            )
    release = read_release(out)
    if ledger is not None:
        Ledger(ledger).spend(identity)
    journal.discard(partial)
    return release
