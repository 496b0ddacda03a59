"""A budget ledger: what releases of one data set have spent of a declared total.

A release *reserves* its cost before its first draw and is marked *spent* when it is published.
Both states count in full, so a crash in between can only charge too much. A release that is
resumed reserves again under the same id, and is not charged twice.

A resumed run goes on from the draws in its journal. So a copy of the journal could be resumed a
second time, with other draws for the remaining rounds. The ledger therefore remembers how many
rounds of a release were drawn, and a digest of them. It is told by `advance`, after draws are on
disk and before they are used. It refuses a journal that does not hold exactly those draws.

Composition (``docs/proofs/composition.md``): μ² adds up over releases and gives an ε at the
ledger's δ; pure ε adds up too. Both totals hold, so the smaller one is what has been spent. The
discovery of values may fail altogether, with a chance δ'; these chances add up, and what is left of
the ledger's δ is what ε is stated at.
"""

from __future__ import annotations

import hashlib
import math
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dualquery.base.checks import not_negative, positive, probability, refusal
from dualquery.base.errors import DualQueryError
from dualquery.base.stored import Json
from dualquery.privacy.accountants import pure
from dualquery.privacy.accountants.gaussian import epsilon_of_mu
from dualquery.privacy.accountants.protocol import GUARD, NotCoveredError
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.rounding import rounded_up

_APPLICATION_ID = 0x44514C47  # "DQLG"
_SECONDS_TO_WAIT = 30.0
_TABLES = """
CREATE TABLE budget (
    label TEXT NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    neighbours TEXT NOT NULL,
    created TEXT NOT NULL
);
CREATE TABLE entries (
    release TEXT PRIMARY KEY,
    note TEXT NOT NULL,
    mu_squared REAL NOT NULL,
    pure REAL NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'spent')),
    reserved_at TEXT NOT NULL,
    spent_at TEXT
);
"""
# A table of its own, made when it is first needed, because ledgers of earlier versions lack it.
_DRAWN = """
CREATE TABLE IF NOT EXISTS drawn (
    release TEXT PRIMARY KEY,
    rounds INTEGER NOT NULL,
    digest TEXT NOT NULL
)
"""
_UNIT = "CREATE TABLE IF NOT EXISTS unit (person TEXT NOT NULL)"
_SLACK = "CREATE TABLE IF NOT EXISTS slack (release TEXT PRIMARY KEY, slack REAL NOT NULL)"


class LedgerError(DualQueryError):
    """A ledger cannot be created, read or written as asked."""


class BudgetExceededError(LedgerError):
    """With this release, the sum would exceed the total that the ledger declares."""


@dataclass(frozen=True)
class Charge:
    """What one release costs, in the two currencies that add up, and what of it may fail.

    Attributes:
        mu_squared: μ² of the Gaussian accountant.
        pure: ε of pure differential privacy; infinite if there was Gaussian noise.
        slack: δ', the chance that the rest does not hold at all; it adds up.
    """

    mu_squared: float
    pure: float
    slack: float = 0.0

    def __post_init__(self) -> None:
        not_negative("mu_squared", self.mu_squared)
        not_negative("slack", self.slack)
        if self.pure != math.inf:  # what Gaussian noise costs in this currency
            not_negative("pure", self.pure)

    @classmethod
    def of(cls, events: Events, slack: float = 0.0) -> Charge:
        """The charge for a list of events."""
        try:
            return cls(events.mu_squared, pure.epsilon(events), slack)
        except NotCoveredError:
            return cls(events.mu_squared, math.inf, slack)

    def __add__(self, other: Charge) -> Charge:
        slack = self.slack + other.slack
        return Charge(self.mu_squared + other.mu_squared, self.pure + other.pure, slack)

    @property
    def mu(self) -> float:
        """μ, rounded up."""
        return math.sqrt(self.mu_squared) * (1.0 + GUARD)

    def epsilon(self, delta: float) -> float:
        """The smaller of the Gaussian ε and the pure ε, at what δ' leaves of δ; both hold.

        Infinite if it leaves nothing.
        """
        if not self.slack:
            return min(epsilon_of_mu(math.sqrt(self.mu_squared), delta), self.pure)
        left = (delta - self.slack) * (1.0 - GUARD)
        if left <= 0.0:
            return math.inf
        return min(epsilon_of_mu(math.sqrt(self.mu_squared), left), self.pure)


@dataclass(frozen=True)
class Entry:
    """One release in the ledger.

    Attributes:
        release: the id of the release.
        note: what its owner wrote beside it.
        charge: what it costs.
        state: `reserved` or `spent`.
        reserved_at: when it was reserved.
        spent_at: when it was published, or None.
    """

    release: str
    note: str
    charge: Charge
    state: str
    reserved_at: str
    spent_at: str | None


@dataclass(frozen=True)
class Account:
    """The ledger at one moment."""

    label: str
    epsilon: float
    delta: float
    neighbours: Neighbours
    entries: tuple[Entry, ...]
    unit: str = ""
    """The column that names persons, if all rows of a person are protected together."""

    @property
    def protects(self) -> str:
        """Whose budget it is."""
        return f"persons of column {self.unit!r}" if self.unit else "single records"

    @property
    def charge(self) -> Charge:
        """The sum of all entries, reserved or spent."""
        return sum((entry.charge for entry in self.entries), Charge(0.0, 0.0))

    @property
    def spent(self) -> float:
        """The ε spent so far at the ledger's δ."""
        return self.charge.epsilon(self.delta)

    @property
    def left(self) -> float:
        """Total minus spent. Costs do not simply add up, so a release that costs more may fit."""
        return max(0.0, self.epsilon - self.spent)

    def to_dict(self) -> Json:
        """Plain values, ready for JSON; a pure ε that is not finite becomes null."""
        return {
            "label": self.label,
            "neighbours": str(self.neighbours),
            "unit": self.unit or None,
            "delta": self.delta,
            "total": self.epsilon,
            "spent": self.spent,
            "left": self.left,
            "mu": self.charge.mu,
            "pure": _finite(self.charge.pure),
            "slack": self.charge.slack,
            "releases": [
                {
                    "release": entry.release,
                    "note": entry.note,
                    "state": entry.state,
                    "mu": entry.charge.mu,
                    "pure": _finite(entry.charge.pure),
                    "slack": entry.charge.slack,
                    "epsilon": entry.charge.epsilon(self.delta),
                    "reserved_at": entry.reserved_at,
                    "spent_at": entry.spent_at,
                }
                for entry in self.entries
            ],
        }


class Ledger:
    """A ledger file. Every call opens it and closes it again; a call that writes locks it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise LedgerError(
                f"no ledger at {self.path}",
                python=f"create one with dualquery.Ledger.create({str(self.path)!r}, …)",
                command="create one with "
                f"`dualquery ledger {self.path} --create --epsilon E --delta D`",
            )
        with self._open() as connection:
            _read(connection, self.path)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: float,
        delta: float,
        label: str = "",
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        unit: str = "",
    ) -> Ledger:
        """Declare a total budget (ε, δ) for a data set; an existing file is never overwritten.

        Args:
            path: the file to create.
            epsilon: the total ε.
            delta: the δ at which it is stated.
            label: a name for the data set; left out, the name of the file.
            neighbours: what all releases protect: the content of a unit, or its presence.
            unit: the column that names persons; left out, each record is a unit.
        """
        epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
        neighbours = Neighbours.parse(neighbours)
        path = Path(path)
        try:
            # Exclusive creation: of two processes that create the same ledger, one is refused.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise LedgerError(f"{path} exists; a ledger's budget is declared once") from None
        except OSError as error:
            raise LedgerError(f"cannot create ledger {path}: {error.strerror}") from error
        ledger = cls.__new__(cls)
        ledger.path = path
        with ledger._open(write=True) as connection:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(
                "INSERT INTO budget VALUES (?, ?, ?, ?, ?)",
                (label or path.stem, epsilon, delta, str(neighbours), _now()),
            )
            if unit:
                connection.execute(_UNIT)
                connection.execute("INSERT INTO unit VALUES (?)", (unit,))
        return ledger

    def account(self) -> Account:
        """What is declared and what is spent."""
        with self._open() as connection:
            return _read(connection, self.path)

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
        with self._open(write=True) as connection:
            account = _read(connection, self.path)
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
            for entry in account.entries:
                if entry.release == release:
                    _check_resumed(entry, charge, _drawn(connection, release), drawn)
                    _write_drawn(connection, release, drawn)
                    return account
            if account.charge.slack + charge.slack >= account.delta:
                raise BudgetExceededError(
                    f"ledger {self.path} ({account.label}): discovered values may fail with "
                    f"δ'={rounded_up(account.charge.slack + charge.slack)} in all, which is not "
                    f"below the ledger's δ={rounded_up(account.delta)}; give a smaller delta"
                )
            after = (account.charge + charge).epsilon(account.delta)
            if after > account.epsilon:
                raise BudgetExceededError(
                    f"ledger {self.path} ({account.label}): spent "
                    f"ε={rounded_up(account.spent)}, asked "
                    f"ε={rounded_up(charge.epsilon(account.delta))}, together "
                    f"ε={rounded_up(after)} of a total "
                    f"ε={rounded_up(account.epsilon)} at δ={rounded_up(account.delta)}"
                )
            connection.execute(
                "INSERT INTO entries VALUES (?, ?, ?, ?, 'reserved', ?, NULL)",
                (release, note, charge.mu_squared, charge.pure, _now()),
            )
            if charge.slack:
                connection.execute(_SLACK)
                connection.execute("INSERT INTO slack VALUES (?, ?)", (release, charge.slack))
            _write_drawn(connection, release, drawn)
            return _read(connection, self.path)

    def advance(self, release: str, rounds: int, digest: str) -> None:
        """Note that a release has drawn its next round, before the draws are used.

        Raises:
            LedgerError: another run under the same id was here first, or the release is spent.
        """
        with self._open(write=True) as connection:
            state = connection.execute(
                "SELECT state FROM entries WHERE release = ?", (release,)
            ).fetchone()
            if state is None:
                raise LedgerError(f"ledger {self.path} has no release {release}")
            before, _ = _drawn(connection, release)
            if state[0] != "reserved" or before != rounds - 1:
                raise LedgerError(
                    f"release {release} cannot draw round {rounds}: ledger {self.path} counts "
                    f"{before} drawn, {state[0]}; a copy of this run went on elsewhere"
                )
            _write_drawn(connection, release, ("",) * before + (digest,))

    def spend(self, release: str) -> Account:
        """Mark a reserved release as published; saying it twice changes nothing."""
        with self._open(write=True) as connection:
            known = connection.execute(
                "SELECT COUNT(*) FROM entries WHERE release = ?", (release,)
            ).fetchone()[0]
            if not known:
                raise LedgerError(f"ledger {self.path} has no release {release}")
            connection.execute(
                "UPDATE entries SET state = 'spent', spent_at = ? "
                "WHERE release = ? AND state = 'reserved'",
                (_now(), release),
            )
            return _read(connection, self.path)

    @property
    def fingerprint(self) -> str:
        """A digest that tells this ledger from others, also after its file was moved."""
        with self._open() as connection:
            row = connection.execute("SELECT * FROM budget").fetchone()
            unit = _unit(connection)
        row = (*row, unit) if unit else row
        return hashlib.sha256(repr(row).encode()).hexdigest()[:16]

    @contextmanager
    def _open(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction. A writer locks the file before it reads."""
        try:
            with closing(
                sqlite3.connect(self.path, timeout=_SECONDS_TO_WAIT, isolation_level=None)
            ) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield connection
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise LedgerError(f"ledger {self.path}: {error}") from error


def _read(connection: sqlite3.Connection, path: Path) -> Account:
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise LedgerError(f"{path} is not a dualquery ledger")
    label, epsilon, delta, neighbours = connection.execute(
        "SELECT label, epsilon, delta, neighbours FROM budget"
    ).fetchone()
    rows = connection.execute(
        "SELECT release, note, mu_squared, pure, state, reserved_at, spent_at "
        "FROM entries ORDER BY rowid"
    ).fetchall()
    slack = _slack(connection)
    entries = tuple(
        Entry(
            release,
            note,
            Charge(mu_squared, total, slack.get(release, 0.0)),
            state,
            reserved_at,
            spent_at,
        )
        for release, note, mu_squared, total, state, reserved_at, spent_at in rows
    )
    return Account(label, epsilon, delta, Neighbours(neighbours), entries, _unit(connection))


def _unit(connection: sqlite3.Connection) -> str:
    """The column of persons; a ledger without that table counts records."""
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'unit'").fetchone()
    row = connection.execute("SELECT person FROM unit").fetchone() if there else None
    return "" if row is None else str(row[0])


def _slack(connection: sqlite3.Connection) -> dict[str, float]:
    """δ' per release that has one; a ledger without that table has none."""
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'slack'").fetchone()
    rows = connection.execute("SELECT release, slack FROM slack").fetchall() if there else ()
    return {str(release): float(slack) for release, slack in rows}


def _drawn(connection: sqlite3.Connection, release: str) -> tuple[int, str]:
    """How many rounds of a release were drawn, and the digest of the last of them."""
    connection.execute(_DRAWN)
    row = connection.execute(
        "SELECT rounds, digest FROM drawn WHERE release = ?", (release,)
    ).fetchone()
    return (0, "") if row is None else (int(row[0]), str(row[1]))


def _write_drawn(connection: sqlite3.Connection, release: str, drawn: Sequence[str]) -> None:
    connection.execute(_DRAWN)
    if drawn:
        connection.execute(
            "INSERT OR REPLACE INTO drawn VALUES (?, ?, ?)", (release, len(drawn), drawn[-1])
        )


def _check_resumed(
    entry: Entry, charge: Charge, seen: tuple[int, str], drawn: Sequence[str]
) -> None:
    rounds, digest = seen
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
            f"{rounds} drawn, and a round is drawn once; this is an older copy of the run"
        )
    if rounds and drawn[rounds - 1] != digest:
        raise LedgerError(
            f"release {called} cannot resume: its {rounds} rounds are not the ones the "
            "ledger saw drawn; a copy of this run went on elsewhere"
        )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
