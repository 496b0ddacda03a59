"""What an audit found. Private side; NOT PRIVATE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dualquery.base.stored import Json

NOT_PRIVATE = "NOT PRIVATE: this audit read the private table; do not publish it"


@dataclass(frozen=True)
class Finding:
    """One line of an audit.

    Attributes:
        letter: a to e.
        name: what was looked at.
        holds: whether it is as it must be; None if it was not looked at.
        told: the figures in words; no cell and no row is among them.
        figures: the same as plain values.
    """

    letter: str
    name: str
    holds: bool | None
    told: str
    figures: Mapping[str, object] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return {True: "holds", False: "FAILS", None: "not run"}[self.holds]

    def to_dict(self) -> Json:
        """Plain values, ready for JSON."""
        return {"name": self.name, "holds": self.holds, "told": self.told, **self.figures}


@dataclass(frozen=True)
class Audit:
    """All that an audit found. NOT PRIVATE: it was computed from the private table.

    Attributes:
        findings: five lines, a to e.
        epsilon: ε of the budget that the audit was about.
        delta: δ of it.
    """

    findings: tuple[Finding, ...]
    epsilon: float
    delta: float

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(one.holds is not False for one in self.findings)

    def __getitem__(self, letter: str) -> Finding:
        return next(one for one in self.findings if one.letter == letter)

    def to_dict(self) -> Json:
        """Plain values, ready for JSON."""
        return {
            "not_private": NOT_PRIVATE,
            "ok": self.ok,
            "epsilon": self.epsilon,
            "delta": self.delta,
            **{one.letter: one.to_dict() for one in self.findings},
        }

    def text(self) -> str:
        """The lines as a small table."""
        widest = max(len(one.name) for one in self.findings)
        lines = [
            f"({one.letter}) {one.name:<{widest}}  {one.verdict:<7}  {one.told}"
            for one in self.findings
        ]
        return "\n".join([NOT_PRIVATE, *lines])

    def __str__(self) -> str:
        return self.text()
