"""The settings of a job: those that decide what it promises, and those that cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import choice, is_number, positive, probability, whole
from dualquery.base.errors import ParameterError, QueryError
from dualquery.domain.free import Free
from dualquery.domain.schema import Schema
from dualquery.engines.engine import check_engine
from dualquery.game.free_tables import SHARE, FreeTables
from dualquery.game.plan import Plan, Player, default_player, make_plan
from dualquery.game.tables_plan import make_faint_plan, make_tables_plan
from dualquery.game.tables_shape import Shape
from dualquery.game.theorem import Theorem
from dualquery.game.wide_plan import make_wide_plan
from dualquery.model.schedule import Schedule
from dualquery.oracles.certificates import CONFIDENCE, log_universe_size
from dualquery.oracles.oracle import Oracle
from dualquery.oracles.registry import oracle as make_oracle
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.purse import COVERED
from dualquery.privacy.statement import PrivacyStatement
from dualquery.privacy.unit import Persons, Unit, Weigh, Weight, declared_persons
from dualquery.release.certificate import check_alpha
from dualquery.release.parameters import RunParameters
from dualquery.rows.encoding import OutOfDomain
from dualquery.workloads.interest import Interest, names, numbers
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

Asked = Workload | Callable[[Schema], Workload] | None
"""A workload, or a function of the schema as resolved against the table."""


ENOUGH_QUERIES = 500_000
"""Random queries that show which attributes are asked about together."""


OPEN = 1e300
"""The ε of a budget that nothing limits, until a run that is planned says what it costs."""


@dataclass(frozen=True)
class Outline:
    """What a plan needs to know of the asked queries.

    Attributes:
        queries: how many there are.
        widest: how many attributes the longest names.
        shape: which attributes they name together; None where no table may be measured.
        named: how many attributes they name.
    """

    queries: int
    widest: int
    shape: Shape | None
    named: int


@dataclass(frozen=True)
class Mechanism:
    """What decides the promise of a release.

    Attributes:
        epsilon: ε of the budget; None for whatever the accuracy theorem's run costs.
        delta: δ of the budget.
        neighbours: what counts as one person's influence.
        accountant: the theorem that states ε.
        rows: the public reference size; under replace-one the number of rows itself is public.
        seed: makes a run repeatable, and therefore NOT PRIVATE.
        unit: the column that names the person of a row; left out, each row is a unit.
        most_records: the most rows of one person that are counted.
        weigh: what counts once: a record, or a person.
        weight: the column that holds the weight of a row; left out, all rows weigh the same.
        weight_bound: the most that one row may weigh; larger weights are cut.
    """

    epsilon: float | None
    delta: float
    neighbours: str = "replace-one"
    accountant: str = "gaussian"
    rows: int | None = None
    seed: int | None = None
    unit: str | None = None
    most_records: int | None = None
    weigh: str = "record"
    weight: str | None = None
    weight_bound: float | None = None

    def check(self) -> None:
        """Refuse what cannot be promised, before the table is read."""
        declared_persons(self.unit, self.most_records, self.weigh)
        if self.weight is None and self.weight_bound is not None:
            raise ParameterError("weight_bound speaks of weights; name their column with weight")
        if self.weight is not None and self.weight_bound is None:
            raise ParameterError(
                f"weight = {self.weight!r} needs weight_bound: the most that one row may weigh"
            )
        if self.weight is not None and self.weight == self.unit:
            raise ParameterError(f"weight and unit are both {self.unit!r}; expected two columns")
        budget = self.budget((self.rows or 1) * self.protected.parts)
        # A run must not end in a statement that cannot be made.
        PrivacyStatement.of(
            Events.of([0.0], 1, budget.rows),
            delta=self.delta,
            rows=budget.size,
            accountant=self.accountant,
        )

    @property
    def relation(self) -> Neighbours:
        return Neighbours.parse(self.neighbours)

    @property
    def persons(self) -> Persons | None:
        """Who the rows belong to; None if each row is a unit of its own."""
        if self.unit is None or self.most_records is None:
            return None
        return Persons(self.unit, self.most_records, Weigh(self.weigh))

    @property
    def weights(self) -> Weight | None:
        """How much each row counts; None if all count the same."""
        if self.weight is None or self.weight_bound is None:
            return None
        return Weight(self.weight, self.weight_bound)

    @property
    def protected(self) -> Unit:
        """Whose influence is bounded."""
        return Unit(self.relation, self.persons, self.weights)

    def budget(self, rows: int) -> Budget:
        """What may be spent on a table of so many rows, or parts of persons or of weights."""
        if self.epsilon is not None:
            is_number("epsilon", self.epsilon)
        is_number("delta", self.delta)
        return Budget(
            OPEN if self.epsilon is None else self.epsilon,
            self.delta,
            self._reference(rows),
            self.relation,
            self.accountant,
            self.persons,
            self.weights,
        )

    def measures(self, asked: Workload) -> bool:
        """Whether the accountant covers measured tables, and tables can answer the queries."""
        return self.accountant in COVERED and not asked.has_parities

    def _reference(self, rows: int) -> int:
        if self.protected.size_is_public:
            return rows
        if self.rows is None and self.weight is not None:
            raise ParameterError(
                "a replaced or added row may have another weight, which keeps the sum of weights "
                "private",
                python="give about what they add up to, as far as it is public, with rows=",
                command="give about what they add up to, as far as it is public, with --rows",
            )
        if self.rows is None and self.relation is Neighbours.REPLACE_ONE:
            raise ParameterError(
                "a replaced person may have more or fewer rows, so weigh = record keeps the number "
                "of rows private",
                python="give a public reference size with rows=",
                command="give a public reference size with --rows",
            )
        if self.rows is None:
            raise ParameterError(
                "neighbours add-remove keeps the number of rows private",
                python="give a public reference size with rows=",
                command="give a public reference size with --rows",
            )
        return self.rows * self.protected.parts


@dataclass(frozen=True)
class Tuning:
    """What sets accuracy and speed, and cannot change ε.

    Attributes:
        player: who answers: a fitted model, or the paper's record per round; left out, planned.
        refit: whether a model is fitted to the draws of a record player at the end; left out, it
            is, unless the accuracy theorem was asked for, which speaks of the records.
        errors: whether standard errors are worked out.
        rounds: of the game; left out, planned from public quantities.
        samples: draws per round; left out, planned.
        eta: learning rate of the query player; left out, planned.
        queries: how many random k-way marginals are asked where there is no workload.
        k: how many attributes each of them names.
        positive: whether they hold positive literals only, as the paper defines marginals.
        parities: ask for random parities of so many bits.
        parity_share: the share of the random queries that are parities; left out, all of them.
        marginals: ask for whole marginals of so many attributes instead, such as (1, 2).
        focus: names of attributes whose queries count ten times as much as others.
        alpha: the accuracy of the paper's Algorithm 2, which sets rounds, samples and eta; left
            out while beta is given, the smallest that the budget is promised.
        beta: the probability with which that accuracy may fail; left out, 0.05.
        oracle: how the record player finds records: a name, or an oracle of your own.
        time_limit: the seconds that one call of a solver may take; left out, the solver's own.
        bits: whether every value is a 0/1 column of its own, as in the paper, so that records are
            free bits.
        certify: the accuracy that records are certified for.
        free: what attributes take in records that no draw names.
        free_share: the share of the budget that their one-way tables take, if free = measured.
        out_of_domain: what happens to cells outside their declared domain.
        engine: where counting runs: local, or dask.
        scheduler: the address of a Dask scheduler.
        public_header: that the table's header is public, so that a pattern may read it.
        measure: whether whole marginals are measured where they are affordable.
        start: an earlier release or a public table, which says what tables may look like.
        known: publicly known shares, as a file or as lines such as `sex=Female = 0.512`.
    """

    player: str | None = None
    refit: bool | None = None
    errors: bool = True
    rounds: int | None = None
    samples: int | None = None
    eta: float | None = None
    alpha: float | None = None
    beta: float | None = None
    queries: int | None = None
    k: int | None = None
    positive: bool = False
    parities: int | None = None
    parity_share: float | None = None
    marginals: Sequence[int] | str | None = None
    focus: str | Sequence[str] = ()
    oracle: str | Oracle = "annealing"
    time_limit: float | None = None
    bits: bool = False
    certify: float | None = None
    free: str = "default"
    free_share: float | None = None
    out_of_domain: str = "refuse"
    engine: str = "local"
    scheduler: str | None = None
    public_header: bool = False
    measure: bool = True
    start: object = None
    known: str | Path | tuple[str, ...] | None = None

    def check(self) -> None:
        """Refuse what cannot be done, before the table is read."""
        self.interest.check()
        self.best_response()
        check_engine(self.engine, self.scheduler)
        self._check_game()
        if self.player is not None:
            choice("player", self.player, Player)
        if self.by_theorem:
            self._check_theorem()
        if self.certify is not None:
            check_alpha(self.certify)
            if self.player == Player.MODEL:
                raise ParameterError("certify speaks of records; it needs player = record")
        if self.bits and self.player != Player.RECORD:
            raise ParameterError(
                "bits plays the paper's free bits; it needs player = record (the preset of the "
                "paper has both)"
            )
        if self.known is not None and not self.refits and self.player == Player.RECORD:
            raise ParameterError("known totals are obeyed by a model; player = record needs refit")
        self._check_free()
        OutOfDomain.parse(self.out_of_domain)

    def _check_game(self) -> None:
        for name, given in (("rounds", self.rounds), ("samples", self.samples)):
            if given is not None:
                whole(name, given)
        if self.eta is not None:
            positive("eta", self.eta)

    def _check_free(self) -> None:
        if choice("free", self.free, Free) is not Free.MEASURED:
            if self.free_share is not None:
                raise ParameterError(
                    "free_share speaks of measured tables; it needs free = measured"
                )
            return
        if self.player != Player.RECORD:
            raise ParameterError(
                "free = measured speaks of attributes that records leave open; it needs "
                "player = record"
            )
        if self.bits:
            raise ParameterError("free = measured measures whole columns; leave out bits, or it")
        if self.free_share is not None:
            probability("free_share", self.free_share)

    def free_tables(self, named: int) -> FreeTables | None:
        """The tables that free attributes follow; None if they are not measured.

        Args:
            named: how many attributes the queries name.
        """
        if choice("free", self.free, Free) is not Free.MEASURED:
            return None
        return FreeTables(SHARE if self.free_share is None else self.free_share, named)

    @property
    def by_theorem(self) -> bool:
        """Whether the run is Algorithm 2 of the paper as it is printed."""
        return self.alpha is not None or self.beta is not None

    @property
    def refits(self) -> bool:
        """Whether a model is fitted to the draws at the end."""
        return not self.by_theorem if self.refit is None else self.refit

    @property
    def confidence(self) -> float:
        """β: the probability with which a promise of accuracy may fail."""
        return CONFIDENCE if self.beta is None else self.beta

    def theorem(self, schema: Schema, queries: int, named: int) -> Theorem:
        """The utility theorem for so many queries.

        Args:
            schema: the declared domain.
            queries: how many are asked.
            named: how many attributes they name.
        """
        tables = self.free_tables(named)
        return Theorem(queries, log_universe_size(schema), self.confidence, tables)

    def _check_theorem(self) -> None:
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if value is not None:
                probability(name, value)
        if self.player != Player.RECORD:
            raise ParameterError(
                "alpha and beta are those of the paper's algorithm, which plays records; they need "
                "player = record"
            )
        for name in ("rounds", "samples", "eta"):
            if getattr(self, name) is not None:
                raise ParameterError(
                    f"alpha and beta set rounds, samples and eta; leave out {name}, or them"
                )

    def best_response(self) -> Oracle:
        """The record player's oracle."""
        if not isinstance(self.oracle, str):
            if self.time_limit is not None:
                raise ParameterError("time_limit is for oracles that have a name; leave it out")
            return self.oracle
        certified = self.by_theorem or self.certify is not None
        # Annealing alone proves no bound.
        name = "portfolio" if certified and self.oracle == "annealing" else self.oracle
        limit = {} if self.time_limit is None else {"time_limit": self.time_limit}
        return make_oracle(name, **limit)

    def workload(self, schema: Schema, asked: Asked) -> Workload:
        """The queries that are asked of a table with this schema."""
        if asked is None:
            return self.interest.workload(schema)
        self.interest.check_listed()
        made: object = asked(schema) if callable(asked) else asked
        if not isinstance(made, Workload):
            raise ParameterError(
                f"workload is a {type(made).__name__}; expected a Workload or a file of queries"
            )
        if made.schema != schema:
            raise QueryError(
                "the workload was made for another schema; pass a function of the schema instead"
            )
        return made

    @property
    def interest(self) -> Interest:
        """What is asked, and which attributes matter most."""
        marginals = None if self.marginals is None else numbers(self.marginals)
        return Interest(
            self.queries,
            self.k,
            marginals,
            names(self.focus) if self.focus else (),
            self.positive,
            self.parities,
            self.parity_share,
        )

    def chosen_player(self, schema: Schema, queries: int, measures: bool = False) -> Player:
        """Who plays.

        Args:
            schema: the declared domain.
            queries: how many are asked.
            measures: whether tables can be measured; a model that is fitted to tables is small
                even where one that is fitted to draws would be too large.
        """
        if self.player is not None:
            return choice("player", self.player, Player)
        if self.certify is not None:
            return Player.RECORD
        if measures and self.may_measure(Player.MODEL):
            return Player.MODEL
        return default_player(schema, queries)

    def may_measure(self, player: Player) -> bool:
        """Whether tables may be measured: not where a certain game of draws is asked for."""
        given = (self.rounds, self.samples, self.eta)
        return self.measure and player is Player.MODEL and all(value is None for value in given)

    def weights(self, asked: Workload, player: Player) -> Floats:
        """How much each query counts."""
        if player is Player.RECORD:
            if self.focus:
                raise ParameterError("focus weighs queries for a model; it needs player = model")
            return np.ones(len(asked))
        return self.interest.weights(asked)

    def outline(self, schema: Schema, asked: Asked) -> Outline:
        """What a plan needs to know of the queries; reads no data."""
        interest = self.interest
        interest.check()
        random = asked is None and interest.marginals is None
        if random:
            # A part of many random queries names as many pairs as all of them do.
            fewer = replace(interest, queries=min(interest.query_count, ENOUGH_QUERIES))
            made = fewer.workload(schema)
        else:
            made = self.workload(schema, asked)
        queries = interest.query_count if random else len(made)
        player = self.chosen_player(schema, queries, not made.has_parities)
        weights = self.weights(made, player)
        return Outline(
            queries,
            int(np.diff(made.start).max()),
            Shape.of(made, weights) if self.may_measure(player) else None,
            len(np.unique(made.literals.attribute)),
        )

    def plan(
        self, budget: Budget, schema: Schema, queries: int, shape: Shape | None, named: int
    ) -> Plan:
        """What a run would do; reads no data.

        Args:
            budget: what it may cost.
            schema: the declared domain.
            queries: how many are asked.
            shape: which attributes they name together; None where no table may be measured.
            named: how many attributes they name.
        """
        self._check_game()
        if self.by_theorem:
            self._check_theorem()
            made = self.theorem(schema, queries, named).checked(budget, self.alpha)
            if budget.epsilon < OPEN:
                return made
            return replace(made, budget=replace(budget, epsilon=budget.cost(made.events)))
        measures = shape is not None and budget.accountant in COVERED
        player = self.chosen_player(schema, queries, measures)
        if shape is not None and self.may_measure(player):
            started = self.start is not None
            if started:  # tables are then about bins
                shape = replace(shape, long=0)
            tables = make_tables_plan(budget, shape)
            if tables is None:
                # Pairs of a wide table are too noisy to tell a good start from a poor one.
                tables = make_wide_plan(budget, shape)
            if tables is None or (started and not tables.wide):
                tables = make_tables_plan(budget, shape, started=started)
            if tables is None:
                tables = make_faint_plan(budget, shape)
            if tables is not None:
                return Plan.of_tables(tables)
        return make_plan(
            budget,
            schema,
            player=player,
            rounds=self.rounds,
            samples=self.samples,
            eta=self.eta,
            free=self.free_tables(named),
        )


def run_parameters(
    mechanism: Mechanism, tuning: Tuning, plan: Plan, schedule: Schedule, queries: int
) -> RunParameters:
    """What a release says about its run.

    Args:
        mechanism: what was promised.
        tuning: how it was done.
        plan: the steps.
        schedule: how the model is trained.
        queries: how many were asked.
    """
    records = plan.player is Player.RECORD
    return RunParameters(
        player=plan.player,
        budget=plan.budget,
        rounds=plan.rounds,
        samples=plan.samples,
        eta=plan.eta,
        queries=queries,
        oracle=tuning.best_response().name if records else None,
        free=choice("free", tuning.free, Free),
        training=schedule,
        tables=plan.tables,
        seed=mechanism.seed,
        free_share=None if plan.free is None else plan.free.share,
        alpha=4.0 * plan.eta if tuning.by_theorem else None,  # η is α/4
        beta=tuning.confidence if tuning.by_theorem else None,
    )
