"""How a run was set up, as its release says it: the values, and how `release.json` holds them.

Whoever adds a parameter gives it a value for the releases that do not have it yet, in `from_dict`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from dualquery.base.checks import as_float, choice, probability, whole
from dualquery.base.errors import ReleaseError
from dualquery.base.stored import Document, Json
from dualquery.domain.free import Free
from dualquery.domain.schema import Schema
from dualquery.game.plan import Player
from dualquery.game.tables_steps import TablesPlan
from dualquery.model.schedule import Schedule
from dualquery.model.totals import Total
from dualquery.privacy.calibration import Budget
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.unit import Persons, Unit, Weight


@dataclass(frozen=True)
class RunParameters:
    """What a release says about its run.

    Attributes:
        player: who answered the draws.
        budget: what the run was allowed to cost, on a table of which size.
        rounds: of the game.
        samples: draws per round.
        eta: learning rate of the query player.
        queries: how many were asked.
        oracle: how records were found; None if a model played.
        free: what attributes take in records that no draw names.
        training: how a model that is fitted to draws is trained.
        tables: the plan of the measured tables; None if the draws said everything.
        seed: of a run that can be repeated, and is therefore NOT PRIVATE.
        start: the public source that says what tables may look like; None without one.
        known: publicly known shares that the model obeys.
        free_share: the share of the budget that the tables of free attributes took; None if
            none were measured for them.
        alpha: the accuracy that the accuracy theorem promises; None if it was not asked.
        beta: the probability with which that promise may fail.
        bits_of: the declared schema whose bits the columns are; None if they are as declared.
    """

    player: Player
    budget: Budget
    rounds: int
    samples: int
    eta: float
    queries: int
    oracle: str | None
    free: Free
    training: Schedule
    tables: TablesPlan | None = None
    seed: int | None = None
    start: str | None = None
    known: tuple[Total, ...] = ()
    free_share: float | None = None
    alpha: float | None = None
    beta: float | None = None
    bits_of: Schema | None = None

    @property
    def table_size(self) -> int:
        """The public number of rows or persons, or the public reference size."""
        return self.budget.size

    @property
    def accuracy(self) -> str:
        """What the accuracy theorem promises of the records, in a sentence; empty if nothing."""
        if self.alpha is None:
            return ""
        return (
            f"Every asked query is within α = {self.alpha:g} of its true answer, except with "
            f"probability {self.beta:g}."
        )

    @property
    def epsilon(self) -> float:
        return self.budget.epsilon

    @property
    def delta(self) -> float:
        return self.budget.delta

    @property
    def neighbours(self) -> Neighbours:
        return self.budget.neighbours

    @property
    def accountant(self) -> str:
        return self.budget.accountant

    def to_dict(self) -> Json:
        """The parameters as plain data: what `release.json` and the journal hold."""
        return {
            "player": str(self.player),
            "table_size": self.table_size,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": str(self.neighbours),
            "accountant": self.accountant,
            "rounds": self.rounds,
            "samples": self.samples,
            "eta": self.eta,
            "queries": self.queries,
            "oracle": self.oracle,
            "free": str(self.free),
            **({} if self.free_share is None else {"free_share": self.free_share}),
            **({} if self.alpha is None else {"alpha": self.alpha, "beta": self.beta}),
            **({} if self.bits_of is None else {"bits_of": self.bits_of.to_dict()}),
            "training": asdict(self.training),
            "tables": None if self.tables is None else self.tables.to_dict(),
            "seed": self.seed,
            "start": self.start,
            # Lists, as JSON gives them back: `resume` compares this with what the journal holds.
            "known": [{**asdict(total), "codes": list(total.codes)} for total in self.known],
            "unit": None if self.budget.persons is None else self.budget.persons.to_dict(),
            **({} if self.budget.weight is None else {"weight": self.budget.weight.to_dict()}),
        }

    @classmethod
    def from_dict(cls, content: Document) -> RunParameters:
        """The inverse of `to_dict`, for releases of every readable format."""
        unit = Unit(
            Neighbours.parse(content["neighbours"]),
            _persons(content.get("unit")),  # not in the first releases
            _weight(content.get("weight")),  # only where rows have weights
        )
        budget = Budget(
            content["epsilon"],
            content["delta"],
            whole("table_size", content["table_size"]) * unit.parts,
            unit.neighbours,
            content["accountant"],
            unit.persons,
            unit.weight,
        )
        return cls(
            choice("player", content["player"], Player),
            budget,
            whole("rounds", content["rounds"]),
            whole("samples", content["samples"], least=0),
            as_float("eta", content["eta"]),
            whole("queries", content["queries"]),
            None if content["oracle"] is None else str(content["oracle"]),
            choice("free", content["free"], Free),
            Schedule(**content["training"]),
            _tables(budget, content.get("tables")),  # not in the first releases
            None if content["seed"] is None else whole("seed", content["seed"], least=0),
            content.get("start"),
            tuple(
                Total(str(t["text"]), int(t["attribute"]), tuple(t["codes"]), float(t["share"]))
                for t in content.get("known", ())
            ),
            _share("free_share", content),  # only where free attributes were measured
            _share("alpha", content),  # only where the accuracy theorem was asked
            _share("beta", content),
            _declared(content.get("bits_of")),  # only where columns are bits
        )


def _share(name: str, content: Document) -> float | None:
    given = content.get(name)
    return None if given is None else probability(name, given)


def _declared(content: Document | None) -> Schema | None:
    return None if content is None else Schema.from_dict(content)


def _persons(content: Document | None) -> Persons | None:
    return None if content is None else Persons.from_dict(content)


def _weight(content: Document | None) -> Weight | None:
    return None if content is None else Weight.from_dict(content)


def _tables(budget: Budget, content: Document | None) -> TablesPlan | None:
    if content is None:
        return None
    try:
        return TablesPlan.from_dict(budget, content)
    except (KeyError, TypeError, ValueError):
        raise ReleaseError("the parameters of this release hold no plan of its tables") from None
