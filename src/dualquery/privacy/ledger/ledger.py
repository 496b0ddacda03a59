"""The ledger of a data set: what may be done with it.

A release *reserves* its cost before its first draw and is marked *spent* when it is published.
Both states count in full, so a crash in between can only charge too much. A release that is
resumed reserves again under the same id, and is not charged twice.

A round is drawn once for one payment. So the ledger speaks first and last. *Before* a round is
drawn it notes that the round begins, with the digest of a key that the run has just made. What is
drawn goes to disk under that key (`base.sealing`), and nobody can read it there. *After* that the
run gives the key to the ledger (`advance`). If the ledger takes it, the draws count and may be
used. If it does not, because a copy of the run went on elsewhere, or because nobody could reach it,
the draws were never seen, and the key dies with the process. So a kill costs nothing, and a copy of
a journal gains nothing: of all draws that were ever made for a round, one can be read.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dualquery.base.checks import as_float, positive, probability, refusal
from dualquery.base.stored import Json
from dualquery.privacy.events import Events
from dualquery.privacy.ledger import file
from dualquery.privacy.ledger.account import Account, Entry, Reader
from dualquery.privacy.ledger.chain import LedgerError, Link, Mark, check_links
from dualquery.privacy.ledger.rule import SLACK, Charge
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.rounding import rounded_up

MOST_SLACK = 0.9
"""The largest share of δ that may be declared for slack."""


class BudgetExceededError(LedgerError):
    """With this release, the sum would exceed the total that the ledger declares."""


@dataclass(frozen=True)
class Opening:
    """What opens one round of a journal: its key, and the digest of what was drawn."""

    key: bytes
    digest: str


class Ledger:
    """A ledger file. Every call opens it and closes it again; a call that writes locks it.

    Every call computes the digests of all links again, except `advance`, which is called every
    round: it computes those that were added since this process last looked.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._seen: _Seen | None = None
        if not self.path.is_file():
            raise LedgerError(
                f"no ledger at {self.path}",
                python=f"create one with dualquery.Ledger.create({str(self.path)!r}, …)",
                command="create one with "
                f"`dualquery ledger {self.path} --create --epsilon E --delta D`",
            )
        self.account()

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: float,
        delta: float,
        slack: float = SLACK,
        label: str = "",
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        unit: str = "",
    ) -> Ledger:
        """Declare a total budget (ε, δ) for a data set; an existing file is never overwritten.

        Args:
            path: the file to create.
            epsilon: the total ε.
            delta: the δ at which it is stated.
            slack: the share of δ that schemas with a price may use for what can fail
                altogether; 0 if there will be none.
            label: a name for the data set; left out, the name of the file.
            neighbours: what all releases protect: the content of a unit, or its presence.
            unit: the column that names persons; left out, each record is a unit.
        """
        epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
        slack = as_float("slack", slack)
        if not 0.0 <= slack <= MOST_SLACK:
            raise refusal("slack", slack, f"a share of delta from 0 to {MOST_SLACK:g}")
        neighbours = Neighbours.parse(neighbours)
        path = Path(path)
        try:
            # Exclusive creation: of two processes that create the same ledger, one is refused.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise LedgerError(f"{path} exists; a ledger's budget is declared once") from None
        except OSError as error:
            raise LedgerError(f"cannot create ledger {path}: {error.strerror}") from error
        with file.transaction(path, write=True) as connection:
            file.begin_chain(
                connection,
                {
                    "kind": "declared",
                    "label": label or path.stem,
                    "epsilon": epsilon,
                    "delta": delta,
                    "slack": slack,
                    "neighbours": str(neighbours),
                    "unit": unit,
                    "at": _now(),
                    "salt": secrets.token_hex(8),
                },
            )
        return cls(path)

    def account(self) -> Account:
        """What is declared and what is spent."""
        with file.transaction(self.path) as connection, file.reading(self.path):
            if file.is_older(connection, self.path):
                return file.read_older(connection)
            return self._read(connection).account

    def reserve(
        self,
        release: str,
        events: Events,
        *,
        neighbours: Neighbours,
        unit: str = "",
        private: bool = True,
        note: str = "",
        drawn: Sequence[str] = (),
        slack: float = 0.0,
        begins: str = "",
    ) -> Account:
        """Charge a release before its first draw, or refuse it.

        A release that is already reserved under the same id, at the same charge, is being
        resumed. It is not charged again, and it is let through if `drawn` holds what the ledger
        saw drawn. A release that is spent may be finished from the same draws, but may draw no
        more.

        Args:
            release: the id of the release.
            events: everything that it will release.
            neighbours: what it protects: the content of a unit, or its presence.
            unit: the column that names persons; left out, each record is a unit.
            private: False for a seeded run, which is refused.
            note: any text.
            drawn: one digest per round drawn so far, of its draws and all draws before.
            slack: δ', the chance that what the events promise does not hold.
            begins: the digest of the key under which the next round will be drawn; a run that
                draws nothing to disk has none.

        Raises:
            BudgetExceededError: the total is too small; names what is spent, asked and declared.
            LedgerError: other neighbours, a seeded run, or an id that is taken.
        """
        charge = Charge.of(events, slack)
        if not release:
            raise refusal("release", release, "an id that is not empty")
        called = note or release  # people know a release by its note, not by its id
        if not private:
            raise LedgerError(f"release {called} is seeded: NOT PRIVATE, no ledger can count it")
        with self._writing(whole=True) as page:
            account = page.account
            if neighbours != account.neighbours:
                raise LedgerError(
                    f"release {called} is for {neighbours} neighbours, ledger {self.path} counts "
                    f"{account.neighbours}"
                )
            if unit != account.unit:
                protects = f"persons of column {unit!r}" if unit else "single records"
                raise LedgerError(
                    f"release {called} protects {protects}, ledger {self.path} counts "
                    f"{account.protects}"
                )
            entry = account.entry(release)
            if entry is not None:
                _check_resumed(entry, charge, drawn)
                if begins and entry.state == "reserved":
                    page.append({"kind": "resumed", "release": release, "begins": begins})
                return page.account
            if drawn:
                raise LedgerError(
                    f"release {called} has drawn {len(drawn)} rounds, and ledger {self.path} has "
                    "never seen it: this is an older copy of the ledger; put the newest one back"
                )
            self._check_room(account, charge)
            new = Entry(release, note, charge, "reserved", _now(), None, begins=begins)
            page.append({"kind": "reserved", **new.to_link()})
            return page.account

    def advance(self, release: str, rounds: int, digest: str, key: bytes, begins: str) -> Mark:
        """Note that a release has drawn its next round, before the draws can be read.

        Args:
            release: the id of the release.
            rounds: how many it has drawn now.
            digest: of all draws so far, as they are on disk.
            key: opens those of this round; the ledger knows its digest since the round began.
            begins: the digest of the key of the round after it, which may begin now.

        Raises:
            LedgerError: another run under the same id was here first, or the release is spent.
        """
        with self._writing() as page:
            entry = self._entry(page, release)
            if (
                entry.state != "reserved"
                or entry.rounds != rounds - 1
                or entry.begins != digest_of_key(key)
            ):
                raise LedgerError(
                    f"release {entry.note or release} cannot draw round {rounds}: ledger "
                    f"{self.path} counts {entry.rounds} drawn, {entry.state}; a copy of this run "
                    "went on elsewhere"
                )
            page.append(
                {
                    "kind": "drawn",
                    "release": release,
                    "rounds": rounds,
                    "digest": digest,
                    "key": key.hex(),
                    "begins": begins,
                }
            )
            return page.mark

    def spend(self, release: str, seen: Mark | None = None) -> Account:
        """Mark a reserved release as published; saying it twice changes nothing.

        Args:
            release: the id of the release.
            seen: a moment of this ledger that the run has seen.
        """
        with self._writing(whole=True) as page:
            if seen is not None:
                self._check_seen(page, seen, f"the run of {release}")
            if self._entry(page, release).state == "reserved":
                page.append({"kind": "spent", "release": release, "at": _now()})
            return page.account

    def openings(self, release: str, seen: Mark | None) -> tuple[Opening, ...]:
        """What opens the rounds that a release has drawn, one after the other.

        Args:
            release: the id of the release.
            seen: the last moment of this ledger that the journal has seen.

        Raises:
            LedgerError: the journal has seen what this ledger does not hold.
        """
        with file.transaction(self.path) as connection, file.reading(self.path):
            if file.is_older(connection, self.path):
                return ()
            page = self._read(connection)
            if seen is not None:
                self._check_seen(page, seen, "the unfinished run")
            every = (link.read() for link in file.links_from(connection, 0, self.path))
            return tuple(
                Opening(bytes.fromhex(said["key"]), said["digest"])
                for said in every
                if said["kind"] == "drawn" and said["release"] == release
            )

    def check(self, seen: Mark, who: str) -> None:
        """Refuse if somebody has seen what this ledger does not hold.

        Args:
            seen: what a release or a journal carries.
            who: its name.
        """
        with file.transaction(self.path) as connection, file.reading(self.path):
            if file.is_older(connection, self.path):
                raise _lacks(self.path, seen, who)
            self._check_seen(self._read(connection), seen, who)

    @property
    def fingerprint(self) -> str:
        """A digest that tells this ledger from others, also after its file was moved."""
        with file.transaction(self.path) as connection, file.reading(self.path):
            if file.is_older(connection, self.path):
                return file.fingerprint_of_older(connection)
            return self._read(connection).mark.fingerprint

    def _check_room(self, account: Account, charge: Charge) -> None:
        total, rule = account.charge + charge, account.rule
        if rule.admits(total):
            return
        if not rule.may_fail(total):
            raise BudgetExceededError(
                f"ledger {self.path} ({account.label}): discovered values may fail with "
                f"δ'={rounded_up(total.slack)} in all, and the ledger declares "
                f"δ'={rounded_up(rule.slack)} of δ={rounded_up(account.delta)} for that; give a "
                "smaller delta"
            )
        raise BudgetExceededError(
            f"ledger {self.path} ({account.label}): spent "
            f"ε={rounded_up(account.spent)}, asked "
            f"ε={rounded_up(rule.spent(charge))}, together "
            f"ε={rounded_up(rule.spent(total))} of a total "
            f"ε={rounded_up(account.epsilon)} at δ={rounded_up(account.delta)}"
            + (
                f", of which {rounded_up(rule.slack)} is kept for schemas that are bought; ask "
                "for a little less, or create a ledger that keeps nothing for them (slack 0)"
                if rule.slack and rule.spent(total) <= account.epsilon * 1.05
                else ""
            )
        )

    def _entry(self, page: _Page, release: str) -> Entry:
        entry = page.account.entry(release)
        if entry is None:
            raise LedgerError(f"ledger {self.path} has no release {release}")
        return entry

    def _check_seen(self, page: _Page, seen: Mark, who: str) -> None:
        if seen.fingerprint != page.mark.fingerprint:
            raise LedgerError(f"{who} was charged to another ledger than {self.path}")
        found = page.connection.execute(
            "SELECT digest FROM chain WHERE position = ?", (seen.position,)
        ).fetchone()
        if found is None or found[0].hex() != seen.head:
            raise _lacks(self.path, seen, who)

    @contextmanager
    def _writing(self, *, whole: bool = False) -> Iterator[_Page]:
        """A transaction that may add links. A ledger of version 0.2 gets its chain here."""
        with file.transaction(self.path, write=True) as connection, file.reading(self.path):
            file.check_pages(connection, self.path)
            if file.is_older(connection, self.path):
                file.convert_older(connection, _now())
            yield self._read(connection, None if whole else self._seen)

    def _read(self, connection: sqlite3.Connection, seen: _Seen | None = None) -> _Page:
        """Read all links, or those after what was seen, and compute their digests again."""
        start, self._seen = 0 if seen is None else seen.position, None
        links = file.links_from(connection, start, self.path)
        if seen is not None and links[0].digest != seen.digest:  # the file is another one now
            return self._read(connection)
        new, before = (links, b"") if seen is None else (links[1:], seen.digest)
        wrong = check_links(new, before)
        if wrong is not None:
            raise file.damaged(self.path, f" at link {start + wrong + len(links) - len(new)}")
        reader = Reader() if seen is None else seen.reader
        reader.add(link.read() for link in new)
        position = start + len(links) - 1
        self._seen = _Seen(position, links[-1].digest, reader)
        fingerprint = reader.declared.get("fingerprint") or _fingerprint(connection)
        return _Page(connection, reader, Mark(fingerprint, position, links[-1].digest.hex()))


@dataclass(frozen=True)
class _Seen:
    """What one process has computed of a ledger.

    Attributes:
        position: of the last link.
        digest: of that link.
        reader: what the links add up to.
    """

    position: int
    digest: bytes
    reader: Reader


@dataclass
class _Page:
    """A ledger inside of a transaction."""

    connection: sqlite3.Connection
    reader: Reader
    mark: Mark

    @property
    def account(self) -> Account:
        return self.reader.account(self.mark)

    def append(self, said: Json) -> None:
        """Add a link."""
        link = Link.following(bytes.fromhex(self.mark.head), said)
        position = self.mark.position + 1
        file.append(self.connection, position, link)
        self.mark = replace(self.mark, position=position, head=link.digest.hex())
        # A copy, because what this process has seen is what is on disk, and this is not yet.
        self.reader = Reader(self.reader.declared, dict(self.reader.entries))
        self.reader.add([link.read()])


class Turns:
    """The rounds of one run in a ledger: under which key one is drawn, and that it was.

    Attributes:
        key: of the round that is about to be drawn. The ledger knows its digest.
    """

    def __init__(self, ledger: Ledger, release: str) -> None:
        self.ledger, self.release = ledger, release
        self.key = secrets.token_bytes(32)

    @property
    def begins(self) -> str:
        """What the ledger is told before the round begins."""
        return digest_of_key(self.key)

    def drawn(self, rounds: int, digest: str) -> Mark:
        """Tell the ledger that the round is on disk, and begin the next one."""
        following = secrets.token_bytes(32)
        mark = self.ledger.advance(self.release, rounds, digest, self.key, digest_of_key(following))
        self.key = following
        return mark


def digest_of_key(key: bytes) -> str:
    """What a ledger knows of a key before the draws that it opens are on disk."""
    return hashlib.sha256(key).hexdigest()


def _check_resumed(entry: Entry, charge: Charge, drawn: Sequence[str]) -> None:
    rounds, digest = entry.rounds, entry.digest
    called = entry.note or entry.release
    if entry.state == "spent" and not (rounds and len(drawn) == rounds):
        raise LedgerError(
            f"release {called} was published at {entry.spent_at}; a new release needs a new id"
        )
    if charge != entry.charge:
        raise LedgerError(
            f"release {called} was reserved at μ²={entry.charge.mu_squared:.6g}, pure "
            f"ε={entry.charge.pure:.6g}, and cannot resume at μ²={charge.mu_squared:.6g}, pure "
            f"ε={charge.pure:.6g}"
        )
    if len(drawn) < rounds:
        raise LedgerError(
            f"release {called} cannot resume from {len(drawn)} rounds: the ledger saw "
            f"{rounds} drawn, and a round is drawn once; this is an older copy of the run: put "
            "the newest one back, or begin a new release, which is charged again"
        )
    if len(drawn) > rounds or (rounds and drawn[rounds - 1] != digest):
        raise LedgerError(
            f"release {called} cannot resume: its {rounds} rounds are not the ones the "
            "ledger saw drawn; a copy of this run went on elsewhere"
        )


def _lacks(path: Path, seen: Mark, who: str) -> LedgerError:
    return LedgerError(
        f"ledger {path} does not hold link {seen.position}, which {who} has seen: this is an older "
        "copy of the ledger, or it was edited; put the newest copy back"
    )


def _fingerprint(connection: sqlite3.Connection) -> str:
    first = connection.execute("SELECT digest FROM chain WHERE position = 0").fetchone()[0]
    return str(first.hex()[:16])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
