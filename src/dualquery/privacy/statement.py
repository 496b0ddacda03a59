"""The privacy statement of a release: what is promised, to whom, and by which theorem."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dualquery.base.checks import probability, whole
from dualquery.base.errors import ParameterError
from dualquery.base.html import html_table
from dualquery.base.stored import Document, Json
from dualquery.privacy.accountants import (
    ACCOUNTANTS,
    DEFAULT_ACCOUNTANT,
    Accountant,
    epsilon_by_accountant,
    get_accountant,
    not_covering,
)
from dualquery.privacy.accountants.gaussian import measurement_exceeds
from dualquery.privacy.accountants.protocol import GUARD
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.rounding import rounded_up
from dualquery.privacy.unit import Persons, Unit, Weigh, Weight

GROUP_SIZES = (1, 2, 5, 10)
"""A statement says its ε for this many records together."""

LARGE_EPSILON = 10.0
"""Above this ε a release warns. It also warns if δ is 1/n or more."""

NOT_COVERED = "does not cover Gaussian noise"
"""Shown instead of an ε if an accountant's theorem says nothing about the run."""

NOT_PRIVATE = "seeded: NOT PRIVATE"
"""The stamp on everything that a seeded run writes or shows."""


@dataclass(frozen=True)
class PrivacyStatement:
    """What a run costs by one accountant, and by all others, for one notion of neighbours.

    Attributes:
        epsilon: ε by the chosen accountant.
        delta: the δ for which all figures are stated (0 is what pure differential privacy needs).
        accountant: the chosen accountant.
        neighbours: the unit of privacy.
        rows: the public n (replace-one) or the public reference n0 (add-remove).
        by_accountant: ε by every accountant; infinite if it promises nothing.
        mu: μ of Gaussian differential privacy; μ² adds up over releases.
        rho: ρ of zero-concentrated differential privacy; it adds up over releases.
        private: False for a seeded run, whose draws anyone with the seed can repeat.
        replacement: for add-remove, ε by every accountant if a record is replaced.
        public_header: the patterns whose column names were taken from the table's header.
        not_covering: the accountants that do not cover what was released.
        exceeds: an upper bound of the chance that what was released is more than e^ε times as
            likely under the table as under a neighbour. It is not δ. None if the accountant's
            theorem gives no bound.
        groups: ε by the chosen accountant, at the same δ, for several records together, or
            for several persons.
        persons: who the units are; None if each record is one.
        weight: how much each record counts; None if all count the same.
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
    exceeds: float | None = None
    groups: Mapping[int, float] = field(default_factory=dict)
    persons: Persons | None = None
    weight: Weight | None = None

    @property
    def unit(self) -> Unit:
        """Whose influence is bounded."""
        return Unit(self.neighbours, self.persons, self.weight)

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
        persons: Persons | None = None,
        weight: Weight | None = None,
    ) -> PrivacyStatement:
        """The statement for a list of events.

        Args:
            events: everything that was released.
            delta: the δ for which all figures are stated; 0 only with the pure accountant.
            rows: the public n (replace-one) or the public reference n0 (add-remove).
            neighbours: the unit of privacy.
            accountant: the accountant whose ε is promised.
            private: False for a seeded run.
            public_header: the patterns whose column names were taken from the table's header.
            persons: who the units are; None if each record is one.
            weight: how much each record counts; None if all count the same.

        Raises:
            NotCoveredError: the chosen accountant says nothing about some event.
        """
        chosen = get_accountant(accountant)
        if accountant != "pure" or delta != 0.0:
            delta = probability("delta", delta)
        figures = figures_at(events, delta)
        neighbours = Neighbours.parse(neighbours)
        return cls(
            epsilon=chosen.epsilon(events, delta),
            delta=delta,
            accountant=accountant,
            neighbours=neighbours,
            rows=whole("rows", rows),
            by_accountant=figures,
            mu=math.sqrt(events.mu_squared) * (1.0 + GUARD),
            rho=events.rho * (1.0 + GUARD),
            private=private,
            replacement=figures_at(events.replaced(), delta)
            if neighbours is Neighbours.ADD_REMOVE
            else {},
            public_header=tuple(public_header),
            not_covering=not_covering(events),
            exceeds=_exceeds(chosen, events, figures[accountant]),
            groups={size: chosen.epsilon(events.for_group(size), delta) for size in GROUP_SIZES},
            persons=persons,
            weight=weight,
        )

    def shown(self, accountant: str) -> str:
        """The ε by an accountant as text, or the words that it does not cover the run."""
        if accountant in self.not_covering:
            return NOT_COVERED
        return four_digits(self.by_accountant[accountant])

    def shown_replaced(self, accountant: str) -> str:
        """The same if a record is replaced; only for a statement for add-remove neighbours."""
        if accountant in self.not_covering:
            return NOT_COVERED
        return four_digits(self.replacement[accountant])

    @property
    def stamp(self) -> str:
        """Empty for a private run. For a seeded run, the words that all its outputs must carry."""
        return "" if self.private else NOT_PRIVATE

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """The statement as notebooks show it, a line per sentence."""
        title = f"{self.stamp} " if self.stamp else ""
        return html_table(
            f"{title}ε = {four_digits(self.epsilon)} at δ = {rounded_up(self.delta)}",
            ["what is promised"],
            [[line] for line in self.text().splitlines()],
        )

    def text(self, *, warnings: bool = True) -> str:
        """The statement in plain words: the chosen accountant first, then the others."""
        lines = [] if self.private else [f"{self.stamp} (the figures below do not hold)"]
        lines.append(
            f"ε = {four_digits(self.epsilon)} at δ = {self._delta_of(self.accountant)}, "
            f"{self.neighbours} neighbours, {self.accountant} accountant"
        )
        lines.append(f"the same run by the other accountants: {self._others}")
        lines.append(f"neighbours: {self.about_neighbours}")
        if self.neighbours is Neighbours.ADD_REMOVE:
            lines.append(
                f"for replacing {self._one}, a different promise, the same run costs "
                f"ε = {four_digits(self.replacement[self.accountant])}"
            )
        lines.extend(sentence for sentence in (self.about_delta, self.about_groups) if sentence)
        if self.public_header:
            lines.append(self.about_header)
        if warnings:
            lines.extend(f"warning: {sentence}" for sentence in self.warnings)
        return "\n".join(lines)

    @property
    def _others(self) -> str:
        """The figures of the accountants that were not chosen; those that have none come last."""
        others = [name for name in self.by_accountant if name != self.accountant]
        figures = ", ".join(
            f"{name} {self.shown(name)}" for name in others if name not in self.not_covering
        )
        if "pure" in others and "pure" not in self.not_covering:
            figures += " (pure holds at δ = 0)"
        without = [name for name in others if name in self.not_covering]
        if not without:
            return figures
        several = ", ".join(without[:-1]) + " and " if without[1:] else ""
        verb = "do" if several else "does"
        reason = f"{several}{without[-1]} {verb} not cover Gaussian noise"
        return f"{figures}; {reason}" if figures else reason

    @property
    def about_neighbours(self) -> str:
        """Which tables nobody should be able to tell apart, and what is public about them."""
        persons = self.persons
        if self.weight is not None:
            return self._weighted_neighbours
        if persons is None and self.neighbours is Neighbours.REPLACE_ONE:
            return (
                f"tables of {self.rows} records, a public number, that differ in the content of "
                "one record"
            )
        if persons is None:
            return (
                "tables of which one has one record more than the other; the number of records "
                f"is not published, scores are divided by the public {self.rows}"
            )
        told = (
            "tables that differ in one person: "
            if self.neighbours is Neighbours.REPLACE_ONE
            else "tables of which one has one person more than the other: "
        )
        told += f"{self.about_persons}; "
        if self.unit.size_is_public:
            return told + f"the number of persons, {self.rows}, is public"
        counted = "persons" if persons.weigh is Weigh.PERSON else "records"
        return told + (
            f"the number of {counted} is not published, scores are divided by the public "
            f"{self.rows}"
        )

    @property
    def _weighted_neighbours(self) -> str:
        replaced = self.neighbours is Neighbours.REPLACE_ONE
        one = "record" if self.persons is None else "person"
        told = (
            f"tables that differ in the content of one {one}, weights included: "
            if replaced
            else f"tables of which one has one {one} more than the other: "
        )
        whole = f"{self.about_persons}; " if self.about_persons else ""
        return (
            f"{told}{whole}{self.about_weight}; the sum of weights is not published, scores are "
            f"divided by the public {self.rows}"
        )

    @property
    def about_weight(self) -> str:
        """How much records count and what that costs; empty if all count the same."""
        if self.weight is None:
            return ""
        return (
            f"answers are weighted shares ({self.weight.text}; larger ones are cut), and the cost "
            f"is that of a record that counts {self.weight.bound:g}"
        )

    @property
    def about_persons(self) -> str:
        """What of one person is protected together; empty if each record is for itself."""
        if self.persons is None:
            return ""
        many = "record" if self.persons.most == 1 else f"at most {self.persons.most} records"
        weighed = (
            "every person weighs the same, shared by their records"
            if self.persons.weigh is Weigh.PERSON
            else "every record weighs the same"
            if self.weight is None
            else "every record has its own weight"
        )
        return f"all of one person's {many} together (column {self.persons.column!r}), {weighed}"

    @property
    def _one(self) -> str:
        return "one record's content" if self.persons is None else "one person"

    @property
    def about_delta(self) -> str:
        """How often e^ε may be exceeded, which δ does not say by itself."""
        if self.exceeds is None:
            return ""
        if self.accountant == "pure":
            return "no outcome is ever more than e^ε times as likely as under a neighbour"
        chance = four_digits(self.exceeds)
        if self.accountant in ("advanced", "per-round"):
            return (
                "the chance that what was released is more than e^ε times as likely as under a "
                f"neighbour is at most δ = {self._delta_of(self.accountant)}"
            )
        beside = ""
        if self.accountant == "gaussian":
            beside = (
                "; it is Φ(−ε/μ + μ/2) = "
                f"{four_digits(measurement_exceeds(self.mu, self.epsilon))} for the Gaussian "
                "measurement that the run is compared with"
            )
        return (
            "the chance that what was released is more than e^ε times as likely as under a "
            f"neighbour is not δ but at most {chance}{beside}"
        )

    @property
    def about_groups(self) -> str:
        """ε for several records together, which grows faster than their number."""
        sizes = [size for size in self.groups if size > 1]
        if not sizes:
            return ""
        figures = ", ".join(f"{four_digits(self.groups[size])} for {size}" for size in sizes)
        who = "several records of one person" if self.persons is None else "several persons"
        return f"for {who} together, at the same δ: ε = {figures}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line per figure that promises little."""
        return weak_promises(self.epsilon, self.delta, self.rows, self.accountant)

    @property
    def about_header(self) -> str:
        """What the statement does not cover if column names were taken from the table."""
        if not self.public_header:
            return ""
        patterns = ", ".join(repr(pattern) for pattern in self.public_header)
        return (
            f"the names of the 0/1 columns that match {patterns} were read off the table's header, "
            "which the curator declared public: this statement does not cover them"
        )

    def to_dict(self) -> Json:
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
            "exceeds": self.exceeds,
            "groups": {str(size): finite(value) for size, value in self.groups.items()},
            "warnings": list(self.warnings),
            "public_header": list(self.public_header),
            **({} if self.persons is None else {"unit": self.persons.to_dict()}),
            **({} if self.weight is None else {"weight": self.weight.to_dict()}),
            **({"not_covering": list(self.not_covering)} if self.not_covering else {}),
        }

    @classmethod
    def from_dict(cls, values: Document) -> PrivacyStatement:
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
                exceeds=values.get("exceeds"),
                groups={int(k): _number(v) for k, v in values.get("groups", {}).items()},
                public_header=tuple(map(str, values["public_header"])),
                not_covering=tuple(map(str, values.get("not_covering", ()))),
                persons=Persons.from_dict(values["unit"]) if values.get("unit") else None,
                weight=Weight.from_dict(values["weight"]) if values.get("weight") else None,
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
        return "0" if accountant == "pure" else rounded_up(self.delta)


def usual_delta(size: int) -> float:
    """The δ that is taken if none is said: 1/n², rounded down to a power of ten.

    Args:
        size: the public number of rows or persons, or the public reference size.
    """
    return float(f"1e-{len(str(whole('size', size) ** 2 - 1))}")


def weak_promises(epsilon: float, delta: float, rows: int, accountant: str) -> tuple[str, ...]:
    """Warnings for a budget that promises little, one line each; for most budgets there is none.

    Args:
        epsilon: ε.
        delta: δ.
        rows: the public n, or the public reference n0.
        accountant: the accountant whose ε is promised; for `pure`, δ is 0 whatever is given.
    """
    found = []
    if epsilon > LARGE_EPSILON:
        found.append(
            f"ε = {four_digits(epsilon)} is above {LARGE_EPSILON:g}: an outcome may be more than "
            f"{math.exp(LARGE_EPSILON):,.0f} times as likely because of one record"
        )
    if accountant != "pure" and delta * rows >= 1.0:
        found.append(
            f"δ = {rounded_up(delta)} is not below 1/{rows}: to publish one of {rows} records, "
            "picked at random, would keep that promise"
        )
    return tuple(found)


def _exceeds(accountant: Accountant, events: Events, epsilon: float) -> float | None:
    if accountant.exceeds is None:
        return None
    return accountant.exceeds(events, epsilon) if math.isfinite(epsilon) else 0.0


def figures_at(events: Events, delta: float) -> dict[str, float]:
    """ε by every accountant; at δ = 0 only the pure one promises anything."""
    if delta > 0.0:
        return dict(epsilon_by_accountant(events, delta))
    pure = get_accountant("pure").epsilon(events, 0.0)
    return {name: pure if name == "pure" else math.inf for name in ACCOUNTANTS}


def four_digits(value: float) -> str:
    """A figure as text: four digits, rounded up, because a promise is never rounded down."""
    return rounded_up(value, 4)


def finite(value: float) -> float | None:
    """The value, or None if JSON has no number for it."""
    return value if math.isfinite(value) else None


def _number(value: float | None) -> float:
    return math.inf if value is None else float(value)
