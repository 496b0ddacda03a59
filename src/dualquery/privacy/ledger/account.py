"""What the links of a ledger add up to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from dualquery.base.stored import Document, Json
from dualquery.privacy.ledger.chain import Mark
from dualquery.privacy.ledger.rule import Charge, Rule
from dualquery.privacy.neighbours import Neighbours

UNDECLARED = (
    "this ledger was made by version 0.2 or earlier, which did not declare what of δ may go to "
    "slack; its past is kept as it was, and no more schemas with a price are taken; if it holds "
    "one, and what was released depended on earlier releases, its total holds at 2·δ only"
)


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
        rounds: how many rounds were drawn.
        digest: of their draws.
        begins: the digest of the key under which the next round may be drawn.
        resumed: how often the run was resumed.
    """

    release: str
    note: str
    charge: Charge
    state: str
    reserved_at: str
    spent_at: str | None
    rounds: int = 0
    digest: str = ""
    begins: str = ""
    resumed: int = 0

    @classmethod
    def read(cls, said: Document) -> Entry:
        """The entry that a link, or the past of an earlier version, speaks of."""
        pure = math.inf if said["pure"] is None else _number(said, "pure")
        return cls(
            _text(said, "release"),
            _text(said, "note"),
            Charge(_number(said, "mu_squared"), pure, _number(said, "slack")),
            said.get("state", "reserved"),
            _text(said, "at"),
            said.get("spent_at"),
            said.get("rounds", 0),
            said.get("digest", ""),
            said.get("begins", ""),
        )

    def to_link(self) -> Json:
        """What a link says of it when it is entered; the inverse of `read`."""
        return {
            "release": self.release,
            "note": self.note,
            "mu_squared": self.charge.mu_squared,
            "pure": _finite(self.charge.pure),
            "slack": self.charge.slack,
            "at": self.reserved_at,
            "begins": self.begins,
        }


@dataclass(frozen=True)
class Account:
    """The ledger at one moment.

    Attributes:
        label: the name of the data set.
        rule: what fits into the total.
        neighbours: what all releases protect.
        entries: all releases.
        unit: the column that names persons, if all rows of a person are protected together.
        mark: the last link; None in a ledger of version 0.2, which has no chain.
        declared: whether it says what of δ may go to slack.
    """

    label: str
    rule: Rule
    neighbours: Neighbours
    entries: tuple[Entry, ...]
    unit: str = ""
    mark: Mark | None = None
    declared: bool = True

    @property
    def epsilon(self) -> float:
        """The total ε."""
        return self.rule.epsilon

    @property
    def delta(self) -> float:
        """The total δ."""
        return self.rule.delta

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
        """The ε spent so far, at what slack leaves of the ledger's δ."""
        return self.rule.spent(self.charge)

    @property
    def left(self) -> float:
        """Total minus spent. Costs do not simply add up, so a release that costs more may fit."""
        return max(0.0, self.epsilon - self.spent)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its owner should know."""
        return () if self.declared else (UNDECLARED,)

    def entry(self, release: str) -> Entry | None:
        """The entry of a release."""
        return next((entry for entry in self.entries if entry.release == release), None)

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
            "slack_total": self.rule.slack,
            "mark": None if self.mark is None else self.mark.to_dict(),
            "warnings": list(self.warnings),
            "releases": [
                {
                    "release": entry.release,
                    "note": entry.note,
                    "state": entry.state,
                    "mu": entry.charge.mu,
                    "pure": _finite(entry.charge.pure),
                    "slack": entry.charge.slack,
                    "epsilon": self.rule.spent(entry.charge),
                    "reserved_at": entry.reserved_at,
                    "spent_at": entry.spent_at,
                    "rounds": entry.rounds,
                    "resumed": entry.resumed,
                }
                for entry in self.entries
            ],
        }


@dataclass
class Reader:
    """Adds up links, one after the other.

    Attributes:
        declared: what the first link says; empty before it.
        entries: by the id of their release.
    """

    declared: Document = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)

    def add(self, links: Iterable[Document]) -> None:
        """Read on.

        Raises:
            KeyError: a link speaks of what is not there, or says too little.
            ValueError: its values are none.
        """
        for said in links:
            kind = said["kind"]
            if (kind == "declared") != (not self.declared):
                raise ValueError("a budget is declared once, and first")
            if kind == "declared":
                self.declared = said
                self.entries = {one["release"]: Entry.read(one) for one in said.get("past", ())}
            elif kind == "reserved":
                if said["release"] in self.entries:
                    raise ValueError("a release is entered once")
                self.entries[said["release"]] = Entry.read(said)
            else:
                entry = self.entries[said["release"]]
                self.entries[entry.release] = _changed(entry, kind, said)

    def account(self, mark: Mark) -> Account:
        """What the links add up to."""
        said, entries = self.declared, tuple(self.entries.values())
        share = said["slack"]
        # A ledger that never declared a share has spent what it has, and gets no more.
        past = sum(one["slack"] for one in said.get("past", ()))
        slack = past if share is None else _number(said, "slack") * said["delta"]
        return Account(
            _text(said, "label"),
            Rule(_number(said, "epsilon"), _number(said, "delta"), slack),
            Neighbours(said["neighbours"]),
            entries,
            _text(said, "unit"),
            mark,
            share is not None,
        )


def _changed(entry: Entry, kind: str, said: Document) -> Entry:
    if kind == "resumed":
        return replace(entry, begins=said["begins"], resumed=entry.resumed + 1)
    if kind == "drawn":
        return replace(entry, rounds=said["rounds"], digest=said["digest"], begins=said["begins"])
    if kind == "spent":
        return replace(entry, state="spent", spent_at=said["at"])
    raise ValueError("a link of a kind that this version does not know")


def _number(said: Document, name: str) -> float:
    value = said[name]
    if type(value) not in (int, float):
        raise ValueError(f"{name} is a number")
    return float(value)


def _text(said: Document, name: str) -> str:
    value = said[name]
    if not isinstance(value, str):
        raise ValueError(f"{name} is a text")
    return value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
