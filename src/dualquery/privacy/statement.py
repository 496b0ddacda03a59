"""The privacy statement of a release: what is promised, to whom, and by which theorem."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dualquery.errors import ParameterError
from dualquery.privacy._checks import probability, whole
from dualquery.privacy.accountants import (
    ACCOUNTANTS,
    DEFAULT_ACCOUNTANT,
    epsilon_by_accountant,
    get_accountant,
    not_covering,
)
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours

NOT_COVERED = "does not cover Gaussian noise"
"""What stands in the place of an ε where an accountant's theorem says nothing."""

NOT_PRIVATE = "seeded: NOT PRIVATE"
"""The stamp on everything that a seeded run writes or shows."""


@dataclass(frozen=True)
class PrivacyStatement:
    """What a run costs, for one notion of neighbours, by one accountant and beside the others.

    Attributes:
        epsilon: ε by the chosen accountant.
        delta: the δ for which all figures are stated (0 is what pure differential privacy needs).
        accountant: the chosen accountant.
        neighbours: the unit of privacy.
        rows: the public n (replace-one) or the public reference n0 (add-remove).
        by_accountant: ε by every accountant; infinite where one promises nothing.
        mu: the Gaussian parameter; squares add up over releases.
        rho: the zero-concentrated parameter; adds up over releases.
        private: False for a seeded run, whose draws anyone with the seed can repeat.
        replacement: for add-remove, ε by every accountant if a record is replaced.
        public_header: the patterns for which column names were read off the table's header.
        not_covering: the accountants that do not cover what was released.
    """

    epsilon: float
    delta: float
    accountant: str
    neighbours: Neighbours
    rows: int
    by_accountant: Mapping[str, float]
    mu: float
    rho: float
    private: bool = True
    replacement: Mapping[str, float] = field(default_factory=dict)
    public_header: tuple[str, ...] = ()
    not_covering: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        events: Events,
        *,
        delta: float,
        rows: int,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        accountant: str = DEFAULT_ACCOUNTANT,
        private: bool = True,
        public_header: Sequence[str] = (),
    ) -> PrivacyStatement:
        """The statement for a list of events.

        Raises:
            NotCoveredError: the chosen accountant says nothing about some event.
        """
        chosen = get_accountant(accountant)
        if accountant != "pure" or delta != 0.0:
            delta = probability("delta", delta)
        figures = _figures(events, delta)
        neighbours = Neighbours.parse(neighbours)
        return cls(
            epsilon=chosen.epsilon(events, delta),
            delta=delta,
            accountant=accountant,
            neighbours=neighbours,
            rows=whole("rows", rows),
            by_accountant=figures,
            mu=math.sqrt(events.mu_squared),
            rho=events.rho,
            private=private,
            replacement=_figures(events.replaced(), delta)
            if neighbours is Neighbours.ADD_REMOVE
            else {},
            public_header=tuple(public_header),
            not_covering=not_covering(events),
        )

    def shown(self, accountant: str) -> str:
        """The ε by an accountant for people, or that it does not cover the run."""
        if accountant in self.not_covering:
            return NOT_COVERED
        return figure(self.by_accountant[accountant])

    def shown_replaced(self, accountant: str) -> str:
        """The same for replacing a record, of a statement for add-remove neighbours."""
        if accountant in self.not_covering:
            return NOT_COVERED
        return figure(self.replacement[accountant])

    @property
    def stamp(self) -> str:
        """Empty for a private run; for a seeded one, the words everything must carry."""
        return "" if self.private else NOT_PRIVATE

    def text(self) -> str:
        """The statement in plain words: the chosen accountant first, the others beside it."""
        lines = [] if self.private else [f"{self.stamp} (the figures below do not hold)"]
        lines.append(
            f"ε = {figure(self.epsilon)} at δ = {self._delta_of(self.accountant)}, "
            f"{self.neighbours} neighbours, {self.accountant} accountant"
        )
        others = ", ".join(
            f"{name} {self.shown(name)}" for name in self.by_accountant if name != self.accountant
        )
        pure = "" if "pure" in self.not_covering else " (pure holds at δ = 0)"
        lines.append(f"the same run by the other accountants: {others}{pure}")
        if self.neighbours is Neighbours.REPLACE_ONE:
            lines.append(
                f"neighbours: tables of {self.rows} records, a public number, that differ in the "
                "content of one record"
            )
        else:
            lines.append(
                "neighbours: tables of which one has one record more than the other; the number "
                f"of records is not published, scores are divided by the public {self.rows}"
            )
            lines.append(
                "for replacing one record's content, a different promise, the same run costs "
                f"ε = {figure(self.replacement[self.accountant])}"
            )
        if self.public_header:
            lines.append(self.about_header)
        return "\n".join(lines)

    @property
    def about_header(self) -> str:
        """What the statement does not cover, where column names were read off the table."""
        if not self.public_header:
            return ""
        patterns = ", ".join(repr(pattern) for pattern in self.public_header)
        return (
            f"the names of the 0/1 columns that match {patterns} were read off the table's header, "
            "which the curator declared public: this statement does not cover them"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; a figure that is not finite becomes null."""
        return {
            "epsilon": finite(self.epsilon),
            "delta": self.delta,
            "accountant": self.accountant,
            "neighbours": str(self.neighbours),
            "rows": self.rows,
            "by_accountant": {name: finite(value) for name, value in self.by_accountant.items()},
            "mu": self.mu,
            "rho": self.rho,
            "private": self.private,
            "stamp": self.stamp,
            "replacement": {name: finite(value) for name, value in self.replacement.items()},
            "public_header": list(self.public_header),
            **({"not_covering": list(self.not_covering)} if self.not_covering else {}),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrivacyStatement:
        """The statement `to_dict` was made from."""
        try:
            return cls(
                epsilon=_number(values["epsilon"]),
                delta=float(values["delta"]),
                accountant=get_accountant(values["accountant"]).name,
                neighbours=Neighbours.parse(values["neighbours"]),
                rows=int(values["rows"]),
                by_accountant={k: _number(v) for k, v in values["by_accountant"].items()},
                mu=float(values["mu"]),
                rho=float(values["rho"]),
                private=bool(values["private"]),
                replacement={k: _number(v) for k, v in values["replacement"].items()},
                public_header=tuple(map(str, values["public_header"])),
                not_covering=tuple(map(str, values.get("not_covering", ()))),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ParameterError(f"not a privacy statement: {error!r}") from error

    def to_json(self) -> str:
        """The statement as JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> PrivacyStatement:
        """The statement `to_json` was made from."""
        return cls.from_dict(json.loads(text))

    def _delta_of(self, accountant: str) -> str:
        return "0" if accountant == "pure" else f"{self.delta:g}"


def _figures(events: Events, delta: float) -> dict[str, float]:
    """ε by every accountant; at δ = 0 only the pure one promises anything."""
    if delta > 0.0:
        return dict(epsilon_by_accountant(events, delta))
    pure = get_accountant("pure").epsilon(events, 0.0)
    return {name: pure if name == "pure" else math.inf for name in ACCOUNTANTS}


def figure(value: float) -> str:
    """An ε for people: four digits, rounded up, because a promise is never rounded down."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    # The guard added to every figure must not push a round number to the next digit.
    return f"{math.ceil(value / unit * (1.0 - 1e-9)) * unit:.4g}"


def finite(value: float) -> float | None:
    """The value, or None where JSON has no number for it."""
    return value if math.isfinite(value) else None


def _number(value: float | None) -> float:
    return math.inf if value is None else float(value)
