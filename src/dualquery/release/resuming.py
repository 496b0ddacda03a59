"""What a stopped run leaves behind: what the user is told, and how `--resume` finishes it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dualquery.base.errors import DualQueryError, EngineError, Note, ReleaseError
from dualquery.base.interrupts import orderly
from dualquery.base.stored import Document
from dualquery.game import journal
from dualquery.privacy.ledger import Ledger
from dualquery.release.directory import digest_of, sweep
from dualquery.release.release import Release
from dualquery.release.release import load as read_release


@contextmanager
def telling(partial: Path | None) -> Iterator[None]:
    """Add a note to whatever stops a run: that nothing is lost, and how to go on.

    The refusal of a bad request gets no such note, because it says itself what would be right.
    """
    try:
        with orderly(lambda number: KeyboardInterrupt(), ("SIGINT",)):
            yield
    except BaseException as error:
        if partial is not None and _is_failure(error):
            error.add_note(_note(partial))
        raise


def _note(partial: Path) -> str:
    if journal.exists(partial):
        kept = f"nothing is lost: the draws are kept in {str(partial)!r}, and the same"
        return Note(
            f"{kept} call with resume=True goes on from there",
            f"{kept} command with --resume goes on from there",
        )
    if journal.ended(partial):
        made = "what the run made is in its place and paid for; the same"
        return Note(
            f"{made} call with resume=True deletes the rest of {str(partial)!r}",
            f"{made} command with --resume deletes the rest of {str(partial)!r}",
        )
    return "nothing was drawn yet; start again"


def _is_failure(error: BaseException) -> bool:
    """Whether the machine failed or somebody stopped the run, although the request was right."""
    broken_ledger = isinstance(error.__cause__, sqlite3.Error)
    return broken_ledger or isinstance(error, EngineError) or not isinstance(error, DualQueryError)


def finish(out: Path, partial: Path, asked: Document, ledger: str | Path | None) -> Release | None:
    """Do what is left to do for a run whose release is in its place; None if it is not there.

    If a run is killed after the last rename, it leaves behind the journal, a ledger entry that is
    only reserved, or files that it was about to delete.

    Args:
        out: the release directory.
        partial: the journal.
        asked: the settings of this command, which must be those that the run began with.
        ledger: the ledger, if the run has one.
    """
    journal.guard(partial)
    sweep(out)
    found = journal.published(partial)
    if found is None:
        if (out / "release.json").is_file() and journal.settle(partial):
            return read_release(out)
        return None
    identity, digest = found
    if digest_of(out) != digest:
        return None  # the run was killed before its release got its name
    begun = journal.begun(partial) or {}
    for key, value in asked.items():
        if begun.get(key) != value:
            raise ReleaseError(
                f"cannot resume with {journal.other(key)}: the run that wrote {str(out)!r} began "
                f"with {begun.get(key)!r}, now it is {value!r}"
            )
    release = read_release(out)
    if ledger is not None:
        seen = journal.charged(partial)
        Ledger(ledger).spend(identity, None if seen is None else seen[1])
    journal.discard(partial)
    return release
