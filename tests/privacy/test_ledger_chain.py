"""A ledger notices: edits, lost links, larger budgets, older copies, flipped bits."""

from __future__ import annotations

import hashlib
import json
import math
import random
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from dualquery.privacy.accountants.gaussian import epsilon_of_mu
from dualquery.privacy.events import Events, MeasurementEvent
from dualquery.privacy.ledger import (
    Account,
    BudgetExceededError,
    Charge,
    Ledger,
    LedgerError,
    Mark,
    Turns,
)
from dualquery.privacy.ledger import file as ledger_file
from dualquery.privacy.neighbours import Neighbours
from tests.privacy.older_ledger import older_ledger

UNIT = Neighbours.REPLACE_ONE
SOME = Events.of_measurements(MeasurementEvent.gaussian(30.0))


def charged(path: Path, releases: int = 3, rounds: int = 2) -> Ledger:
    """A ledger with some releases, all but the last one spent."""
    book = Ledger.create(path, epsilon=1.0, delta=1e-6, label="adult")
    for number in range(releases):
        name = f"r{number}"
        turns = Turns(book, name)
        book.reserve(name, SOME, neighbours=UNIT, note=f"release {number}", begins=turns.begins)
        for done in range(rounds):
            turns.drawn(done + 1, f"{done:032x}")
        if number < releases - 1:
            book.spend(name)
    return book


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def change(path: Path, position: int, **values: object) -> None:
    """Edit what one link says, and leave its digest."""
    with closing(sqlite3.connect(path)) as connection:
        (content,) = connection.execute(
            "SELECT content FROM chain WHERE position = ?", (position,)
        ).fetchone()
        text = json.dumps({**json.loads(content), **values}, sort_keys=True, separators=(",", ":"))
        connection.execute(
            "UPDATE chain SET content = ? WHERE position = ?", (text.encode(), position)
        )
        connection.commit()


EDITS = {
    "a cheaper release": lambda path: change(path, 1, mu_squared=0.0),
    "a larger budget": lambda path: change(path, 0, epsilon=100.0),
    "a larger share": lambda path: change(path, 0, slack=0.9),
    "another unit": lambda path: change(path, 0, unit="who"),
    "a round drawn again": lambda path: change(path, 2, rounds=0),
    "a lost release": lambda path: edit(path, "DELETE FROM chain WHERE position = 1"),
    "a lost round": lambda path: edit(path, "DELETE FROM chain WHERE position = 3"),
    "a lost release, the gap closed": lambda path: edit(
        path, "DELETE FROM chain WHERE position BETWEEN 1 AND 4",
        "UPDATE chain SET position = position - 4 WHERE position > 4",
        "UPDATE head SET position = position - 4",
    ),
    "the end lost": lambda path: edit(path, "DELETE FROM chain WHERE position > 8"),
    "all lost": lambda path: edit(path, "DELETE FROM chain"),
    "the head lost": lambda path: edit(path, "DELETE FROM head"),
    "two heads": lambda path: edit(path, "INSERT INTO head SELECT * FROM head"),
    "a link more": lambda path: edit(
        path, "INSERT INTO chain SELECT position + 1, content, digest FROM chain "
        "WHERE position = (SELECT MAX(position) FROM chain)",
    ),
    "links exchanged": lambda path: edit(
        path, "UPDATE chain SET position = -1 WHERE position = 1",
        "UPDATE chain SET position = 1 WHERE position = 2",
        "UPDATE chain SET position = 2 WHERE position = -1",
    ),
    "a digest": lambda path: edit(path, "UPDATE chain SET digest = x'00' WHERE position = 2"),
    "a trigger": lambda path: edit(
        path, "CREATE TRIGGER undone AFTER INSERT ON chain BEGIN "
        "DELETE FROM chain WHERE position = NEW.position; END",
    ),
    "a view": lambda path: edit(
        path, "ALTER TABLE chain RENAME TO kept", "CREATE VIEW chain AS SELECT * FROM kept",
    ),
    "text for bytes": lambda path: edit(path, "UPDATE chain SET content = 'x' WHERE position = 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_refused(tmp_path: Path, name: str) -> None:
    book = charged(tmp_path / "l")
    EDITS[name](tmp_path / "l")
    with pytest.raises(LedgerError, match=r"is damaged, or was edited.*put its newest copy back"):
        Ledger(tmp_path / "l")
    with pytest.raises(LedgerError, match="is damaged, or was edited"):
        book.account()
    with pytest.raises(LedgerError, match="is damaged, or was edited"):
        book.reserve("more", SOME, neighbours=UNIT)


def test_a_process_at_work_notices_an_edit_of_what_came_last(tmp_path: Path) -> None:
    book = charged(tmp_path / "l")
    last = book.account().mark.position
    change(tmp_path / "l", last, rounds=0)
    with pytest.raises(LedgerError, match="is damaged, or was edited"):
        book.spend("r2")


def test_another_file_in_the_place_of_a_ledger_at_work(tmp_path: Path) -> None:
    """A round computes new links alone. If the file is another one now, it computes all."""
    path = tmp_path / "l"
    book = charged(path, releases=1, rounds=0)
    turns = Turns(book, "r0")
    book.reserve("r0", SOME, neighbours=UNIT, begins=turns.begins)
    shutil.copy(path, tmp_path / "copy")
    for number in (1, 2, 3):
        turns.drawn(number, f"d{number}")
    other = Ledger(tmp_path / "copy")
    for number in range(5):  # shorter than the first one, as long, and longer
        other.reserve(f"other {number}", SOME, neighbours=UNIT)
        shutil.copy(tmp_path / "copy", path)
        with pytest.raises(LedgerError, match=r"went on elsewhere|put its newest copy back"):
            turns.drawn(4, "d4")
        assert Ledger(path).account() == other.account()  # nothing was added to it


def rewritten(path: Path, position: int, **values: object) -> None:
    """Edit one link, and make all later digests right, as somebody who knows the format can."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT content FROM chain ORDER BY position").fetchall()
        digest = b"dualquery ledger\n"
        for number, (content,) in enumerate(rows):
            if number == position:
                content = json.dumps({**json.loads(content), **values}).encode()
            digest = hashlib.sha256(digest + content).digest()
            connection.execute(
                "UPDATE chain SET content = ?, digest = ? WHERE position = ?",
                (content, digest, number),
            )
        connection.execute("UPDATE head SET digest = ?", (digest,))
        connection.commit()


NONSENSE = {
    0: [{"epsilon": math.nan}, {"epsilon": "1"}, {"delta": 10**400}, {"slack": -1.0},
        {"slack": "x"}, {"neighbours": 3}, {"past": 7}, {"past": [3]}, {"kind": []},
        {"past": [{"release": "r"}]}, {"label": None}, {"label": 3}, {"unit": []}],
    1: [{"mu_squared": "1"}, {"mu_squared": -1.0}, {"mu_squared": math.nan}, {"pure": "x"},
        {"pure": math.nan}, {"slack": []}, {"release": [1]}, {"release": 7}, {"note": {}},
        {"at": 3}],
    2: [{"release": "another"}, {"release": []}, {"kind": "lost"}],
}  # fmt: skip
"""Per link, what nobody writes there."""


@pytest.mark.parametrize("position", NONSENSE)
def test_a_link_with_right_digests_that_says_nonsense_is_one_line(
    tmp_path: Path, position: int
) -> None:
    path = tmp_path / "l"
    charged(tmp_path / "right")
    for values in NONSENSE[position]:
        shutil.copy2(tmp_path / "right", path)
        rewritten(path, position, **values)
        with pytest.raises(LedgerError, match=r"\Aledger .*is damaged.*\Z"):
            Ledger(path).account().to_dict()


def test_a_link_of_brackets(tmp_path: Path) -> None:
    charged(tmp_path / "l", releases=0)
    content = b"[" * 100_000
    digest = hashlib.sha256(b"dualquery ledger\n" + content).digest()
    with closing(sqlite3.connect(tmp_path / "l")) as connection:
        connection.execute("UPDATE chain SET content = ?, digest = ?", (content, digest))
        connection.execute("UPDATE head SET digest = ?", (digest,))
        connection.commit()
    with pytest.raises(LedgerError, match="is damaged"):
        Ledger(tmp_path / "l")


def test_whoever_has_seen_a_head_notices_what_is_rewritten_before_it(tmp_path: Path) -> None:
    book = charged(tmp_path / "l")
    seen = book.account().mark
    rewritten(tmp_path / "l", 1, mu_squared=0.0)
    assert Ledger(tmp_path / "l").account().entries[0].charge.mu_squared == 0.0  # by itself: right
    for ask in (
        lambda: book.check(seen, "out"),
        lambda: book.spend("r2", seen),
        lambda: book.openings("r2", seen),
    ):
        with pytest.raises(LedgerError, match=r"does not hold link 11.*put the newest copy back"):
            ask()


def test_an_older_copy_is_noticed_by_who_has_seen_more(tmp_path: Path) -> None:
    book = charged(tmp_path / "l")
    before = book.account().mark
    shutil.copy(tmp_path / "l", tmp_path / "older")
    after = book.reserve("more", SOME, neighbours=UNIT).mark
    older = Ledger(tmp_path / "older")
    older.check(before, "out")
    with pytest.raises(LedgerError, match=r"does not hold link 12, which out has seen"):
        older.check(after, "out")
    older.reserve("other", SOME, neighbours=UNIT)  # as long as the newest one, but another
    with pytest.raises(LedgerError, match=r"does not hold link 12, which out has seen"):
        older.check(after, "out")


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"position": -1},
        {"position": True},
        {"position": "3"},
        {"head": 3},
        {"head": "0"},
        {"fingerprint": None},
    ],
)
def test_a_mark_in_a_release_is_checked(wrong: dict[str, object]) -> None:
    right = Mark("0123456789abcdef", 3, "0" * 64)
    assert Mark.from_dict(right.to_dict()) == right == Mark.unpacked(right.packed())
    with pytest.raises((ValueError, KeyError)):
        Mark.from_dict({**right.to_dict(), **wrong} if wrong else {})


def test_pages_are_checked_before_they_are_written_to(tmp_path: Path) -> None:
    """The header says that page 2 is free, where it is not: reading is right, writing would not."""
    book = charged(tmp_path / "l")
    content = bytearray((tmp_path / "l").read_bytes())
    content[32:40] = (2).to_bytes(4, "big") + (1).to_bytes(4, "big")
    (tmp_path / "l").write_bytes(content)
    before = book.account()
    with pytest.raises(LedgerError, match="is damaged, or was edited"):
        book.spend("r2")
    assert book.account() == before


# Every bit


def outcome(path: Path, content: bytes, right: Account) -> str:
    """What a ledger with this content says; nothing but a LedgerError may come out."""
    for left in path.parent.glob(f"{path.name}*"):
        left.unlink()
    path.write_bytes(content)
    try:
        found = Ledger(path).account()
    except LedgerError as error:
        return "refused" if "\n" not in str(error) else "more than one line"
    assert found == right
    # What is read right may still be written wrong: it must stay readable, or refuse.
    with suppress(LedgerError):
        Ledger(path).spend("r1")
        after = Ledger(path).account()
        assert after.charge == right.charge
        assert [entry.state for entry in after.entries] == ["spent", "spent"]
    return "harmless"


def flips(path: Path, bits: range | list[int]) -> dict[str, int]:
    charged(path, releases=2, rounds=1)
    whole, right = path.read_bytes(), Ledger(path).account()
    counts = {"refused": 0, "harmless": 0}
    for bit in bits:
        content = bytearray(whole)
        content[bit >> 3] ^= 1 << (bit & 7)
        counts[outcome(path.with_name("flipped"), bytes(content), right)] += 1
    return counts


def size_of(path: Path) -> int:
    charged(path, releases=2, rounds=1)
    return 8 * path.stat().st_size


def test_sampled_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_file, "SECONDS_TO_WAIT", 0.1)
    bits = size_of(tmp_path / "first")
    chosen = sorted({*range(0, 800, 5), *random.Random(1).sample(range(bits), 240)})
    counts = flips(tmp_path / "l", chosen)
    assert counts["refused"] > 50
    assert counts["refused"] + counts["harmless"] == len(chosen)


@pytest.mark.slow
def test_every_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_file, "SECONDS_TO_WAIT", 0.1)
    bits = size_of(tmp_path / "first")
    counts = flips(tmp_path / "l", range(bits))
    assert counts["refused"] + counts["harmless"] == bits


@pytest.mark.parametrize("length", [0, 1, 99, 512, 4095, 4096, 8192])
def test_a_file_that_was_cut_off(tmp_path: Path, length: int) -> None:
    charged(tmp_path / "l")
    whole = (tmp_path / "l").read_bytes()
    (tmp_path / "l").write_bytes(whole[:length])
    with pytest.raises(LedgerError):
        Ledger(tmp_path / "l")


# Ledgers of version 0.2

PAST = [("a", 0.01, math.inf, 2e-7), ("b", 0.02, math.inf, 0.0)]


def test_an_older_ledger_is_read_as_it_was(tmp_path: Path) -> None:
    older_ledger(tmp_path / "l", PAST, unit="who")
    content = (tmp_path / "l").read_bytes()
    book = Ledger(tmp_path / "l")
    account = book.account()
    assert account.charge == Charge(0.03, math.inf, 2e-7)
    assert account.spent == pytest.approx(epsilon_of_mu(math.sqrt(0.03), 8e-7), rel=1e-9)
    assert account.unit == "who"
    assert "2·δ" in account.warnings[0]
    assert account.mark is None
    assert (tmp_path / "l").read_bytes() == content  # reading changes nothing
    assert len(book.fingerprint) == 16


def test_an_older_ledger_gets_a_chain_and_takes_no_more_slack(tmp_path: Path) -> None:
    older_ledger(tmp_path / "l", PAST)
    book = Ledger(tmp_path / "l")
    before, fingerprint = book.account(), book.fingerprint
    with pytest.raises(BudgetExceededError, match="discovered values may fail"):
        book.reserve("c", SOME, neighbours=UNIT, slack=1e-9)
    assert book.account() == before
    after = book.reserve("d", SOME, neighbours=UNIT, note="new")
    assert after.rule == before.rule
    assert after.warnings == before.warnings
    assert after.entries[:2] == before.entries
    assert [entry.rounds for entry in after.entries] == [4, 4, 0]
    assert Ledger(tmp_path / "l").account() == after
    assert book.fingerprint == fingerprint == after.mark.fingerprint
    change(tmp_path / "l", 0, past=[])
    with pytest.raises(LedgerError, match="was edited at link 0"):
        Ledger(tmp_path / "l")
    with closing(sqlite3.connect(tmp_path / "l")) as connection, pytest.raises(sqlite3.Error):
        connection.execute("SELECT * FROM budget")  # version 0.2 cannot write beside the chain


def test_a_damaged_older_ledger_is_one_line(tmp_path: Path) -> None:
    older_ledger(tmp_path / "l", PAST)
    whole = (tmp_path / "l").read_bytes()
    for bit in random.Random(2).sample(range(8 * len(whole)), 300):
        content = bytearray(whole)
        content[bit >> 3] ^= 1 << (bit & 7)
        (tmp_path / "l").write_bytes(content)
        with suppress(LedgerError):
            Ledger(tmp_path / "l")
    edit_target = tmp_path / "other"
    older_ledger(edit_target, PAST)
    edit(edit_target, "UPDATE budget SET neighbours = 'nobody'")
    with pytest.raises(LedgerError, match="is damaged, or was edited"):
        Ledger(edit_target)
