"""What a run takes: its work, which the plan says, times rates, which were measured.

Work is counted from public quantities alone. The rates stand in `costs.json` and in no other place;
`DUALQUERY_WRITE_COSTS=1 python -m benchmarks costs` measures them anew, which is due whenever a
plan asks for more or less, or a stage becomes faster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from dualquery.base.stored import Json
from dualquery.domain.schema import Schema
from dualquery.game.plan import Plan, Player
from dualquery.game.tables_steps import Kind, TablesPlan
from dualquery.model.schedule import components_for

FILE = Path(__file__).with_name("costs.json")

REHEARSALS = 4
"""Fits that rehearsals take; see `rehearsal.rehearse_tables`."""

_PAIRS = (Kind.PAIRS, Kind.RARE_PAIRS, Kind.CHOICE)


@dataclass(frozen=True)
class Estimate:
    """What a run takes, roughly."""

    seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Work:
    """How much a run has to do of each kind.

    Attributes:
        start: 1: what every run takes.
        queries: that are asked.
        read: cells of the columns that queries name.
        packed: bits of the values that queries name, one per row.
        counted: words of 64 rows that are read for queries.
        tabulated: cells of the table that are read for pairs.
        codes: of these columns.
        pairs: tables of two columns that are measured.
        squares: entries of a matrix of these codes with one another.
        joined: entries of the tables of pairs.
        fitted: the same as squares, per component and step of a fit to tables.
        drawn: queries weighed for a draw, over all rounds of draws.
        found: records that are found, each from so many draws.
        learnt: answers of the components of a model that is trained on draws, in play or after it.
    """

    start: float
    queries: float
    read: float
    packed: float
    counted: float
    tabulated: float
    codes: float
    pairs: float
    squares: float
    joined: float
    fitted: float
    drawn: float
    found: float
    learnt: float

    @classmethod
    def of(cls, plan: Plan, schema: Schema, queries: int, k: int) -> Work:
        """The work of a plan.

        Args:
            plan: what the run will do.
            schema: the declared domain.
            queries: how many are asked.
            k: how many attributes each of them names.
        """
        rows = plan.budget.size
        columns = min(len(schema.attributes), queries * k)
        codes = int(schema.sizes.sum()) * columns / len(schema.attributes)
        literals = min(int(schema.bit_counts.sum()), queries * k)
        steps = () if plan.tables is None else plan.tables.steps
        pairs = sum(step.tables for step in steps if step.kind in _PAIRS)
        wide = plan.tables is not None and plan.tables.wide
        rounds = plan.rounds if plan.tables is None else plan.tables.rounds
        learning = 0 if plan.tables is not None else components_for(int(schema.sizes.sum()))
        finds = plan.player is Player.RECORD
        return cls(
            start=1.0,
            queries=float(queries),
            read=float(rows) * columns,
            packed=float(rows) * literals,
            counted=float(queries) * k * -(-rows // 64),
            tabulated=float(rows) * pairs,
            codes=codes,
            pairs=float(pairs),
            squares=0.0 if wide or plan.tables is None else codes**2,
            joined=float(pairs) * (codes / columns) ** 2,
            fitted=0.0 if wide else codes**2 * _steps(plan.tables),
            drawn=float(queries) * rounds,
            found=float(plan.rounds) * plan.samples * finds,
            learnt=float(queries) * rounds * learning,
        )

    def to_dict(self) -> dict[str, float]:
        """By name."""
        return asdict(self)


def _steps(tables: TablesPlan | None) -> float:
    """Steps of all fits to tables, per component: those between draws, the last, and rehearsals."""
    if tables is None:
        return 0.0
    last = (tables.members + REHEARSALS) * tables.last_steps
    return float(tables.components) * (
        last + tables.rounds * tables.round_steps * tables.round_members
    )


@dataclass(frozen=True)
class Rates:
    """What a unit of each kind of work takes: seconds on two cores, and bytes."""

    seconds: Mapping[str, float]
    memory_bytes: Mapping[str, float]

    def to_dict(self) -> Json:
        """As the file has it."""
        return {"seconds": dict(self.seconds), "memory_bytes": dict(self.memory_bytes)}


RATES = Rates(**json.loads(FILE.read_text(encoding="utf-8")))


def foretold(work: Work, rates: Rates = RATES) -> Estimate:
    """What so much work takes."""
    done = work.to_dict()
    seconds = sum(rates.seconds[name] * much for name, much in done.items())
    return Estimate(
        seconds, int(sum(rates.memory_bytes[name] * much for name, much in done.items()))
    )


def estimate(plan: Plan, schema: Schema, queries: int, k: int) -> Estimate:
    """What a run takes, roughly, for the curator; see `Work.of`."""
    return foretold(Work.of(plan, schema, queries, k))
