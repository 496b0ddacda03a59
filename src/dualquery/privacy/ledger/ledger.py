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

import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from dualquery.base.checks import as_float, positive, probability, refusal
from dualquery.base.sealing import Opening, digest_of_key
from dualquery.privacy.events import Events
from dualquery.privacy.ledger import file
from dualquery.privacy.ledger.account import Account, Entry
from dualquery.privacy.ledger.chain import LedgerError, Mark
from dualquery.privacy.ledger.page import Page, Seen, read_page
from dualquery.privacy.ledger.refusals import check_resumed, check_room, lacks
from dualquery.privacy.ledger.rule import SLACK, Charge
from dualquery.privacy.neighbours import Neighbours

MOST_SLACK = 0.9
"""The largest share of δ that may be declared for slack."""


class Ledger:
    """A ledger file. Every call opens it and closes it again; a call that writes locks it.

    Every call computes the digests of all links again, except `advance`, which is called every
    round: it computes those that were added since this process last looked.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._seen: Seen | None = None
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
                check_resumed(entry, charge, drawn)
                if begins and entry.state == "reserved":
                    page.append({"kind": "resumed", "release": release, "begins": begins})
                return page.account
            if drawn:
                raise LedgerError(
                    f"release {called} has drawn {len(drawn)} rounds, and ledger {self.path} has "
                    "never seen it: this is an older copy of the ledger; put the newest one back"
                )
            check_room(self.path, account, charge)
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
            entry = page.entry(release)
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
                page.check_seen(seen, f"the run of {release}")
            if page.entry(release).state == "reserved":
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
                page.check_seen(seen, "the unfinished run")
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
                raise lacks(self.path, seen, who)
            self._read(connection).check_seen(seen, who)

    @property
    def fingerprint(self) -> str:
        """A digest that tells this ledger from others, also after its file was moved."""
        with file.transaction(self.path) as connection, file.reading(self.path):
            if file.is_older(connection, self.path):
                return file.fingerprint_of_older(connection)
            return self._read(connection).mark.fingerprint

    @contextmanager
    def _writing(self, *, whole: bool = False) -> Iterator[Page]:
        """A transaction that may add links. A ledger of version 0.2 gets its chain here."""
        with file.transaction(self.path, write=True) as connection, file.reading(self.path):
            file.check_pages(connection, self.path)
            if file.is_older(connection, self.path):
                file.convert_older(connection, _now())
            yield self._read(connection, None if whole else self._seen)

    def _read(self, connection: sqlite3.Connection, seen: Seen | None = None) -> Page:
        """Read all links, or those after what was seen, and compute their digests again."""
        self._seen = None
        page, self._seen = read_page(connection, self.path, seen)
        return page


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
