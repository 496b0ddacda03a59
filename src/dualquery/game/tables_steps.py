"""The steps of a run that measures tables, and what each of them may cost.

Here stands what a plan is, and how it is kept in a release. Which steps a run takes is decided in
`game.tables_plan` and `game.wide_plan`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property

from dualquery.base.stored import Document, Json
from dualquery.privacy.calibration import Budget
from dualquery.privacy.choosing import choice_range
from dualquery.privacy.events import DrawEvent, Events
from dualquery.privacy.measuring import batch_event
from dualquery.privacy.purse import Purse


class Kind(StrEnum):
    """What one step of the plan releases."""

    ONE_WAY = "one-way tables"
    AGAIN = "second tables of unsure columns"
    PAIRS = "pair tables"
    TRIPLES = "triple tables"
    DRAWS = "draws"
    NAMED = "named tables"
    CHOICE = "a choice of tables"
    CHARGES = "what records are charged for rare codes"
    RARE = "rare codes"
    CHARGES_OF_PAIRS = "what records are charged for pairs of rare codes"
    RARE_PAIRS = "pairs of rare codes"
    RARE_AGAIN = "rare codes again, or their pairs"


RARE_KINDS = (Kind.RARE, Kind.CHARGES_OF_PAIRS, Kind.RARE_PAIRS, Kind.RARE_AGAIN)
"""Steps about rare cells, if the charges show that they are worth it; else they measure pair
tables."""


@dataclass(frozen=True)
class Step:
    """One step: what is released, for which share of the budget."""

    kind: Kind
    share: float
    tables: int = 0
    """How many tables are measured, at most, or chosen."""
    draws: int = 0
    level: int = 0
    """Of pairs and triples: how much more, or less, the workload asks about these tables than
    about most; see `levels_of`."""


@dataclass(frozen=True)
class TablesPlan:
    """All steps of a run that measures tables, fixed before any private row is read.

    Attributes:
        budget: what the run may cost.
        steps: in order; their shares add up to one.
        resolution: R, how many records' worth of noise the budget is away from exact.
        components: of each mixture.
        members: how many mixtures are averaged.
        round_members: how many of them are fitted between rounds.
        first_steps: gradient steps of the first fit.
        round_steps: of the fits between rounds.
        last_steps: of the last fit.
        wide: whether pairs are so many that each is noisy; the tables then say whether the model
            needs more than independent attributes.
        faint: whether pairs are so noisy that one-way tables are about bins, not sub-bins, and that
            shrinkage is weak.
        largest_tree: the most attributes that edges join; 1 for a model without edges.
        shrinkage: κ of all attributes alike; 0 if it follows what each attribute's tables show.
    """

    budget: Budget
    steps: tuple[Step, ...]
    resolution: float
    components: int
    members: int
    round_members: int
    first_steps: int
    round_steps: int
    last_steps: int
    wide: bool = False
    faint: bool = False
    largest_tree: int = 1
    shrinkage: float = 0.0

    @cached_property
    def purse(self) -> Purse:
        return Purse(self.budget)

    def to_dict(self) -> Json:
        """The plan as it stands in a release, without the budget that stands beside it."""
        return {
            "steps": [asdict(step) | {"kind": str(step.kind)} for step in self.steps],
            **{name: getattr(self, name) for name in _SETTINGS},
        }

    @classmethod
    def from_dict(cls, budget: Budget, content: Document) -> TablesPlan:
        """The inverse of `to_dict`, also for the releases of earlier versions."""
        steps = tuple(Step(**{**step, "kind": Kind(step["kind"])}) for step in content["steps"])
        # At first every mixture was fitted between rounds, too, no table was wide or faint, and no
        # model had edges.
        known = {
            "round_members": content["members"],
            "wide": False,
            "faint": False,
            "largest_tree": 1,
            "shrinkage": 0.0,
            **content,
        }
        return cls(budget, steps, **{name: known[name] for name in _SETTINGS})

    @property
    def draws(self) -> int:
        """Draws per round."""
        return max((step.draws for step in self.steps), default=0)

    @property
    def rounds(self) -> int:
        return sum(step.kind is Kind.DRAWS for step in self.steps)

    @property
    def temperature(self) -> float:
        """Of every round of draws; 0 where there is none."""
        for step in self.steps:
            if step.kind is Kind.DRAWS:
                return self.purse.temperature(step.share, step.draws)
        return 0.0

    @property
    def grouping_noise(self) -> float:
        """The noise of the tables that groups of codes should be seen through."""
        larger = (Kind.PAIRS, Kind.TRIPLES, Kind.NAMED)
        chosen = [step for step in self.steps if step.kind in larger]
        chosen = chosen or [step for step in self.steps if step.kind is Kind.ONE_WAY]
        return min(self.purse.deviation(step.share, step.tables) for step in chosen)

    @property
    def noise_of_pairs(self) -> float:
        """The noise of pairs as a share of the rows, where they are all that a model has; else 0.

        Draws name tables of what pairs missed, and triples tell more about pairs than their noise
        says.
        """
        kinds = {step.kind for step in self.steps}
        if Kind.PAIRS not in kinds or kinds & {Kind.TRIPLES, Kind.DRAWS}:
            return 0.0
        return self.grouping_noise / self.budget.rows

    @property
    def events(self) -> Events:
        """What the run will release, for the accountants; named tables at their most."""
        planned = Events.of_measurements()
        for step in self.steps:
            if step.kind is Kind.DRAWS:
                temperature = self.purse.temperature(step.share, step.draws)
                more = self.budget.events([temperature], [step.draws])
            elif step.kind is Kind.CHOICE:
                temperature = self.purse.choice_temperature(step.share, step.tables)
                drawn = DrawEvent(1, choice_range(temperature, self.budget.unit))
                more = Events.in_sequence(*(drawn,) * step.tables)
            elif step.kind in (Kind.CHARGES, *RARE_KINDS):
                # What is paid is a share. So it depends neither on what records are charged nor on
                # how many tables are measured instead.
                scale = self.purse.scale(step.share, 1)
                event = batch_event(self.purse.noise, scale, 1, self.budget.unit)
                more = Events.of_measurements(event)
            else:
                scale = self.purse.scale(step.share, step.tables)
                event = batch_event(self.purse.noise, scale, step.tables, self.budget.unit)
                more = Events.of_measurements(event)
            planned = planned.then(more)
        return planned


_SETTINGS = (
    "resolution",
    "components",
    "members",
    "round_members",
    "first_steps",
    "round_steps",
    "last_steps",
    "wide",
    "faint",
    "largest_tree",
    "shrinkage",
)


def levelled(
    kind: Kind, share: float, tables: int, levels: tuple[tuple[int, int], ...]
) -> list[Step]:
    """One step per level of the tables.

    A sum Σ wσ under a fixed Σ 1/σ² is least if 1/σ² is proportional to w^{2/3}: a table that
    counts ten times as much gets 4.6 times the precision.

    Args:
        kind: of the tables.
        share: of the budget, for all of them.
        tables: how many there are.
        levels: per level, how many tables are on it; empty if all count alike.
    """
    if not levels:
        return [Step(kind, share, tables)]
    parts = [count * 10.0 ** (level / 3.0) for level, count in levels]
    return [
        Step(kind, share * part / sum(parts), count, level=level)
        for part, (level, count) in zip(parts, levels, strict=True)
    ]


def rounds_of_choices(chosen: float, named: float, rounds: int, tables: int) -> list[Step]:
    """Rounds that choose tables, each followed by their measurement.

    Args:
        chosen: the share of the budget for all choices.
        named: the share for all tables that are chosen.
        rounds: how many.
        tables: per round.
    """
    return [
        step
        for _ in range(rounds)
        for step in (
            Step(Kind.CHOICE, chosen / rounds, tables=tables),
            Step(Kind.NAMED, named / rounds, tables=tables),
        )
    ]


def rounds_of_draws(drawn: float, named: float, rounds: int, draws: int) -> list[Step]:
    """Rounds of draws, each followed by the tables that they name.

    Args:
        drawn: the share of the budget for all draws.
        named: the share for all tables that they name.
        rounds: how many.
        draws: per round.
    """
    return [
        step
        for _ in range(rounds)
        for step in (
            Step(Kind.DRAWS, drawn / rounds, draws=draws),
            Step(Kind.NAMED, named / rounds, tables=draws),
        )
    ]
