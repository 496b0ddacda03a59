"""One payment, one noise: what a copy of `OUT.partial` gains where the ledger is in the loop."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dualquery.base.errors import ReleaseError
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.game.journal import Journal, begun, charged
from dualquery.game.query_player import QueryPlayer
from dualquery.game.record_player import RecordPlayer
from dualquery.privacy.ledger import Ledger, LedgerError
from dualquery.privacy.ledger import file as ledger_file
from dualquery.privacy.sampler import Draws
from dualquery.release.release import load

JOB = DualQuery(
    epsilon=2.0, delta=1e-3, rounds=3, samples=20, eta=3.0, queries=100, player="record",
    refit=False,
)  # fmt: skip
ATTEMPTS = 8


class Killed(BaseException):
    """Not an `Exception`: nothing on the way may catch it."""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    Ledger.create(tmp_path / "ledger.db", epsilon=2.5, delta=1e-3)
    return tmp_path / "ledger.db"


def killing(path: Path) -> Callable[..., object]:
    """Instead of telling the ledger, the run is killed: its draws are on disk."""

    def advance(book: Ledger, *arguments: object) -> None:
        raise Killed

    return advance


def locking(path: Path) -> Callable[..., object]:
    """Somebody holds a lock on the ledger for longer than the run waits."""
    advance = Ledger.advance

    def locked(book: Ledger, *arguments):
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            return advance(book, *arguments)
        finally:
            other.close()

    return locked


def stopped_first(rows, schema, out: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed when its first round is about to be drawn."""

    def draw(*arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(QueryPlayer, "draw", draw)
        with pytest.raises(Killed):
            JOB.release(rows, out, schema=schema, ledger=ledger)


@pytest.mark.parametrize("stop", [killing, locking])
def test_an_older_copy_put_back_before_the_ledger_knew(
    tmp_path: Path, schema: Schema, rows: pa.Table, ledger: Path, monkeypatch, stop
) -> None:
    """Of all draws that are made for a round, one can be read."""
    out, partial, older = tmp_path / "out", tmp_path / "out.partial", tmp_path / "older"
    stopped_first(rows, schema, out, ledger, monkeypatch)
    shutil.copytree(partial, older)
    drawn: list[Draws] = []
    draw = QueryPlayer.draw

    def watched(player, *arguments, **options) -> Draws:
        drawn.append(draw(player, *arguments, **options))
        return drawn[-1]

    stolen = []
    monkeypatch.setattr(ledger_file, "SECONDS_TO_WAIT", 0.05)
    for number in range(ATTEMPTS):
        with monkeypatch.context() as patched:
            patched.setattr(QueryPlayer, "draw", watched)
            patched.setattr(Ledger, "advance", stop(ledger))
            with pytest.raises((Killed, LedgerError)) as ended:
                JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
        assert "--resume goes on" in ended.value.__notes__[0].command
        stolen.append(tmp_path / f"stolen-{number}.partial")
        partial.rename(stolen[-1])
        shutil.copytree(older, partial)
    assert len(drawn) == ATTEMPTS
    made = JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    # The draws were made. No copy shows them, not even to who has the ledger now.
    openings = Ledger(ledger).openings(*charged(stolen[0]))
    for copy, draws in zip(stolen, drawn, strict=True):
        content = (copy / "rounds.bin").read_bytes()
        assert len(content) > len(draws.queries.tobytes())
        assert draws.queries.tobytes() not in content
        with pytest.raises(LedgerError, match="are sealed"):
            Journal.resume(copy, begun(copy))
        with pytest.raises(LedgerError, match=r"round 1 .* is not the one the ledger saw"):
            Journal.resume(copy, begun(copy), openings=openings)
        with pytest.raises(LedgerError, match="is not the one the ledger saw"):
            JOB.release(
                rows, str(copy).removesuffix(".partial"), schema=schema, ledger=ledger, resume=True
            )
    assert not any(
        np.array_equal(one.queries, made.transcript.rounds[0].draws.queries) for one in drawn
    )
    (entry,) = Ledger(ledger).account().entries
    assert (entry.state, entry.rounds, entry.resumed) == ("spent", 3, ATTEMPTS + 1)


@pytest.mark.parametrize("number", [0, 1])
def test_an_older_copy_put_back_after_the_ledger_knew(
    tmp_path: Path, schema: Schema, rows: pa.Table, ledger: Path, monkeypatch, number: int
) -> None:
    out, partial, older = tmp_path / "out", tmp_path / "out.partial", tmp_path / "older"
    advance = Ledger.advance
    taken = []

    def then_killed(book: Ledger, release: str, rounds: int, *rest):
        if rounds == number + 1:
            shutil.copytree(partial, older)
            (older / "rounds.bin").write_bytes(before[0])
        mark = advance(book, release, rounds, *rest)
        before[0] = (partial / "rounds.bin").read_bytes()
        if rounds == number + 1:
            taken.append(mark)
            raise Killed
        return mark

    stopped_first(rows, schema, out, ledger, monkeypatch)
    before = [(partial / "rounds.bin").read_bytes()]
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "advance", then_killed)
        with pytest.raises(Killed):
            JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    newest = tmp_path / "newest"
    partial.rename(newest)
    shutil.copytree(older, partial)
    with pytest.raises(LedgerError, match=rf"from {number} rounds: the ledger saw {number + 1}"):
        JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    assert (partial / "run.json").exists()
    shutil.rmtree(partial)
    newest.rename(partial)  # the newest one goes on, from the draws that count
    made = JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    assert load(out).ledger == made.ledger
    assert Ledger(ledger).account().entries[0].resumed == 2


def test_an_older_copy_of_the_ledger_put_back(
    tmp_path: Path, schema: Schema, rows: pa.Table, ledger: Path, monkeypatch
) -> None:
    """The journal has seen more than the ledger holds; so has the release."""
    out, older = tmp_path / "out", tmp_path / "older.db"
    respond = RecordPlayer.respond

    def killed(player, state, *arguments):
        if len(state.records) == 1:
            raise Killed
        shutil.copy(ledger, older)  # one round is drawn
        return respond(player, state, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(RecordPlayer, "respond", killed)
        with pytest.raises(Killed):
            JOB.release(rows, out, schema=schema, ledger=ledger)
    newest = ledger.read_bytes()
    before = (tmp_path / "out.partial" / "rounds.bin").read_bytes()
    shutil.copy(older, ledger)
    with pytest.raises(LedgerError, match=r"which the unfinished run has seen: this is an older"):
        JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    assert (tmp_path / "out.partial" / "rounds.bin").read_bytes() == before
    ledger.write_bytes(newest)

    def spend(*arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:  # killed after the release has its name
        patched.setattr(Ledger, "spend", spend)
        with pytest.raises(Killed):
            JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    newest = ledger.read_bytes()
    shutil.copy(older, ledger)
    with pytest.raises(LedgerError, match="this is an older copy of the ledger"):
        JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    ledger.write_bytes(newest)
    made = JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    with pytest.raises(LedgerError, match="which out has seen"):
        Ledger(older).check(made.ledger, "out")


def test_an_older_copy_of_the_ledger_put_back_before_the_end(
    tmp_path: Path, schema: Schema, rows: pa.Table, ledger: Path, monkeypatch
) -> None:
    """The release is in its place. It is spent in the newest copy, or nowhere."""
    out, begun_with = tmp_path / "out", tmp_path / "copy"
    spend, reserve, newest = Ledger.spend, Ledger.reserve, []

    def later(book: Ledger, *arguments):
        if not newest:
            newest.append(ledger.read_bytes())
            shutil.copy(begun_with, ledger)
        return spend(book, *arguments)

    def reserved(book: Ledger, *arguments, **options):
        account = reserve(book, *arguments, **options)
        shutil.copy(ledger, begun_with)
        return account

    monkeypatch.setattr(Ledger, "reserve", reserved)
    monkeypatch.setattr(Ledger, "spend", later)
    with pytest.raises(LedgerError, match="this is an older copy of the ledger"):
        JOB.release(rows, out, schema=schema, ledger=ledger)
    assert Ledger(ledger).account().entries[0].state == "reserved"
    ledger.write_bytes(newest[0])
    made = JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    assert load(out).ledger == made.ledger
    assert Ledger(ledger).account().entries[0].state == "spent"
    assert not (tmp_path / "out.partial").exists()


def test_draws_in_clear_are_forged_where_there_is_a_ledger(
    tmp_path: Path, schema: Schema, rows: pa.Table, ledger: Path, monkeypatch
) -> None:
    """Their digests are right: the journal was written as one without a ledger would be."""
    out = tmp_path / "out"
    stopped_first(rows, schema, out, ledger, monkeypatch)
    partial = tmp_path / "out.partial"
    forged = Journal.resume(partial, begun(partial), openings=())
    forged._write(b"draw", 0, {"queries": np.zeros(20, np.int64), "negated": np.zeros(20, bool)})
    forged.close()
    before = (partial / "rounds.bin").read_bytes()
    with pytest.raises(ReleaseError, match="is damaged"):
        JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    assert (partial / "rounds.bin").read_bytes() == before
    assert Ledger(ledger).account().entries[0].rounds == 0
