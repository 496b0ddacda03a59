"""The four stages of a job: prepare, count, play, finish.

What each stage hands to the next is a value. The table and the counts are private; what `play`
returns is not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import choice
from dualquery.base.errors import NoRowsError, ParameterError
from dualquery.domain.free import Free
from dualquery.domain.schema import Schema
from dualquery.engines.engine import Engine
from dualquery.estimator.run import Run
from dualquery.estimator.settings import Asked, Floats, Mechanism, Tuning, run_parameters
from dualquery.estimator.start import Start, open_start
from dualquery.game.data_player import DataPlayer
from dualquery.game.free_tables import Measuring as FreeMeasuring
from dualquery.game.free_tables import named_tables, shares_of
from dualquery.game.loop import Measuring
from dualquery.game.loop import play as play_rounds
from dualquery.game.model_player import ModelPlayer
from dualquery.game.plan import Plan, Player
from dualquery.game.record_player import Played, RecordPlayer
from dualquery.game.tables import play_tables
from dualquery.game.tables_shape import Shape
from dualquery.game.transcript import Transcript
from dualquery.game.wide_player import player_of
from dualquery.model.schedule import Schedule
from dualquery.model.totals import Total, read_totals
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import source_for
from dualquery.privacy.statement import PrivacyStatement, weak_promises
from dualquery.release.certificate import certify
from dualquery.release.parameters import RunParameters
from dualquery.release.refitting import refitted
from dualquery.release.release import Release
from dualquery.release.unknown import about_untouched
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.rows.persons import ByPerson
from dualquery.rows.table import Table
from dualquery.rows.weighed import Weighed, reads_cells
from dualquery.rows.weights import ByWeight
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.probes import with_probes
from dualquery.workloads.rare import RareCells
from dualquery.workloads.workload import Workload

Progress = Callable[[str, int, int], None]
"""Told (stage, done, total); all of it is public."""

Notice = Callable[[str], None]
"""Told one line, before the first draw, about what the curator should know.

It is public, unless it begins with NOT PRIVATE."""

State = TypeVar("State")


@dataclass(frozen=True)
class Prepared:
    """A job whose table was opened and whose queries are known; nothing was counted yet.

    Attributes:
        source: the private table.
        schema: as resolved against it.
        patterns: those that took column names from its header.
        asked: the queries.
        weights: how much each of them counts.
        player: who plays.
        schedule: how a model that is fitted to draws is trained.
        start: what a public source expects of tables.
        totals: shares that are publicly known.
    """

    source: Table
    schema: Schema
    patterns: tuple[str, ...]
    asked: Workload
    weights: Floats
    player: Player
    schedule: Schedule
    start: Start | None = None
    totals: tuple[Total, ...] = ()

    @property
    def fine(self) -> bool:
        """Whether one-way tables are measured in sub-bins.

        A start knows the shares of bins; to measure against them, tables must be about bins.
        """
        return self.start is None and reads_cells(self.source)


@dataclass(frozen=True)
class Ready:
    """A job that was counted and planned.

    Attributes:
        actions: the queries that can be drawn.
        counted: their private counts.
        plan: what will be released.
        parameters: what the release says about its run.
    """

    actions: Actions
    counted: Counted
    plan: Plan
    parameters: RunParameters


def prepare(
    table: object,
    schema: Schema,
    asked: Asked,
    mechanism: Mechanism,
    tuning: Tuning,
    notice: Notice,
) -> Prepared:
    """Check the settings, open the table and make the workload.

    Args:
        table: whatever the user has.
        schema: as declared.
        asked: the queries, or how to make them.
        mechanism: what is promised.
        tuning: how it is done.
        notice: told what the curator should know.
    """
    mechanism.check()
    tuning.check()
    schema.require_reviewed()
    patterns = _public_patterns(schema, tuning)
    source = open_table(table)
    source = _weighed(source, mechanism, OutOfDomain.parse(tuning.out_of_domain))
    bound = source.bind(schema)
    workload = tuning.workload(bound, asked)
    if schema.persons and mechanism.unit is None:
        notice(
            f"the schema says that {schema.persons!r} tells persons apart, who may have several "
            f"rows: with --unit {schema.persons} --most-records N all rows of a person are "
            "protected together; now each row is for itself"
        )
    untouched = Actions.plain(workload).untouched
    if untouched:
        notice(about_untouched(untouched, len(bound)))
    player = tuning.chosen_player(bound, len(workload), mechanism.measures(workload))
    weights = tuning.weights(workload, player)
    return Prepared(
        source,
        bound,
        patterns,
        workload,
        weights,
        player,
        Schedule.for_schema(bound),
        None
        if tuning.start is None
        else open_start(tuning.start, bound, seeded=mechanism.seed is not None),
        () if tuning.known is None else read_totals(tuning.known, bound),
    )


def count(
    job: Prepared, engine: Engine, mechanism: Mechanism, tuning: Tuning, notice: Notice
) -> Ready:
    """Count the queries and plan the run.

    Args:
        job: what was prepared.
        engine: where counting runs.
        mechanism: what is promised.
        tuning: how it is done.
        notice: told what the curator should know.
    """
    treatment = OutOfDomain.parse(tuning.out_of_domain)
    asked = job.asked
    measures = tuning.may_measure(job.player) and mechanism.measures(asked)
    shape = Shape.of(asked, job.weights) if measures else None
    if shape is not None and not job.fine:  # without sub-bins nothing says which means are unsure
        shape = replace(shape, long=0)
    probed = job.player is Player.MODEL and shape is None
    actions = Actions.weighted(asked, job.weights)
    if probed:
        actions = with_probes(asked, weights=job.weights)
    # One-way tables are measured first, and in sub-bins where they can be.
    keep = None if shape is None else job.schema.fine if job.fine else job.schema
    counted = _counted(job, engine, actions.queries, treatment, mechanism, keep)
    named = len(np.unique(asked.literals.attribute))
    plan = tuning.plan(mechanism.budget(counted.rows), job.schema, len(asked), shape, named)
    if job.player is Player.MODEL and plan.tables is None and not probed:
        # That tables are too noisy showed only with the number of rows. The probes of a game of
        # draws are counted in a second pass.
        actions = with_probes(asked, weights=job.weights)
        counted = _counted(job, engine, actions.queries, treatment, mechanism)
    for line in weak_promises(
        mechanism.epsilon, mechanism.delta, plan.budget.size, mechanism.accountant
    ):
        notice(line)
    if isinstance(job.source, Weighed) and counted.rows:
        for line in job.source.notices():
            notice(f"NOT PRIVATE, for your eyes only: {line}")
    if job.start is not None and plan.tables is None:
        reason = (
            "its workload holds parities"
            if asked.has_parities
            else "too few rows for the budget, or measuring is off"
        )
        raise ParameterError(
            f"start speaks of measured tables, and this run would measure none ({reason}); leave "
            "it out"
        )
    parameters = replace(
        run_parameters(mechanism, tuning, plan, job.schedule, len(asked)),
        start=None if job.start is None else job.start.name,
        known=job.totals,
    )
    return Ready(actions, counted, plan, parameters)


def play(
    job: Prepared,
    ready: Ready,
    engine: Engine,
    run: Run,
    mechanism: Mechanism,
    tuning: Tuning,
    progress: Progress,
    held: ExitStack,
) -> Transcript:
    """Draw and measure. All that leaves this stage was paid for.

    Args:
        job: what was prepared.
        ready: what was counted and planned.
        engine: where counts and weights live.
        run: the journal and the ledger.
        mechanism: what is promised.
        tuning: how it is done.
        progress: told how far the run is.
        held: closes the journal when the job ends.
    """
    plan = ready.plan
    run.begin(held, mechanism, plan, ready.actions, ready.counted, ready.parameters)
    query_player = engine.query_player(ready.actions, ready.counted, plan.budget.rows)
    source = source_for(mechanism.seed)
    treatment = OutOfDomain.parse(tuning.out_of_domain)

    def tabulate(marginals: Marginals) -> npt.NDArray[np.int64]:
        # One-way tables may be about sub-bins; the groups say which codes they partition.
        same = np.array_equal(marginals.groups.code_start, job.schema.code_start)
        schema = job.schema if same else job.schema.fine
        if not ready.counted.rows:  # nobody is there, which nobody may see
            return np.zeros(marginals.cells, dtype=np.int64)
        return engine.tabulate(job.source, schema, marginals, treatment)

    if plan.tables is not None:
        _, transcript = play_tables(
            query_player,
            tabulate,
            player_of(
                job.asked,
                plan.tables,
                weights=job.weights,
                fine=job.fine and not plan.tables.faint,
                climb=engine.climb,
            ),
            source,
            rare=_RareCounter(job, engine, treatment, ready.counted.rows),
            expected=partial(_expected, job.start, plan.tables.wide),
            answers=engine.tables_answers,
            journal=run.journal,
            observer=lambda done, total: progress("measuring", done, total),
        )
        return transcript

    def played_by(
        data_player: DataPlayer[State], measuring: Measuring[State] | None = None
    ) -> Transcript:
        _, transcript = play_rounds(
            query_player,
            engine.data_player(data_player),
            plan.temperatures,
            plan.draws,
            source,
            journal=run.journal,
            measuring=measuring,
            observer=lambda done, total: progress("playing", done, total),
        )
        return transcript

    if job.player is Player.MODEL:
        return played_by(ModelPlayer(ready.actions, job.schedule, plan.rounds))
    free = choice("free", tuning.free, Free)
    oracle = tuning.best_response()
    if plan.free is None:
        return played_by(RecordPlayer(job.asked, oracle, free=free))
    tables = FreeMeasuring(plan.free, plan.budget, named_tables(job.asked), tabulate)

    def knowing(measurement: Measurement) -> DataPlayer[Played]:
        shares = shares_of(job.schema, measurement)
        return engine.data_player(RecordPlayer(job.asked, oracle, free=shares))

    return played_by(
        RecordPlayer(job.asked, oracle, free=free), Measuring(tables, tables.checked, knowing)
    )


def finish(
    job: Prepared,
    ready: Ready,
    transcript: Transcript,
    mechanism: Mechanism,
    tuning: Tuning,
    progress: Progress,
) -> Release:
    """State what was spent, and fit the model. From here on everything is post-processing.

    Args:
        job: what was prepared.
        ready: what was counted and planned.
        transcript: what was released.
        mechanism: what is promised.
        tuning: how it is done.
        progress: told how far the fit is.
    """
    budget = ready.plan.budget
    privacy = PrivacyStatement.of(
        transcript.events(budget.rows, budget.unit),
        delta=mechanism.delta,
        rows=budget.size,
        neighbours=budget.neighbours,
        persons=budget.persons,
        weight=budget.weight,
        accountant=mechanism.accountant,
        private=mechanism.seed is None,
        public_header=job.patterns,
    )
    certificate = None
    if tuning.certify is not None:
        certificate = certify(
            transcript, job.asked, ready.plan.eta, tuning.certify, tuning.confidence
        )
    made = Release(
        job.schema,
        ready.actions,
        transcript,
        privacy,
        ready.parameters,
        certificate=certificate,
    )
    if tuning.refit:
        return refitted(made, progress, errors=tuning.errors)
    if job.player is Player.MODEL:
        return refitted(made, steps=0, errors=False)
    return made


@dataclass(frozen=True)
class _RareCounter:
    """Counts the rare cells of a job's rows."""

    job: Prepared
    engine: Engine
    treatment: OutOfDomain
    rows: int

    def histogram(self, cells: RareCells, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if not self.rows:  # nobody is there, which nobody may see
            return np.zeros(len(edges) - 1, dtype=np.int64)
        job = self.job
        return self.engine.rare_histogram(job.source, job.schema, cells, edges, self.treatment)

    def counts(self, cells: RareCells, most: int) -> npt.NDArray[np.int64]:
        if not self.rows:
            return np.zeros(len(cells), dtype=np.int64)
        job = self.job
        return self.engine.rare_counts(job.source, job.schema, cells, most, self.treatment)


def _expected(start: Start | None, wide: bool, marginals: Marginals) -> Floats | None:
    """What a start says of some marginals; on a wide table, of one-way tables only.

    There, whether columns depend on one another is judged from all measured pairs alike, and
    pairs that lean on a start are not alike.
    """
    if start is None or (wide and marginals.arity > 1):
        return None
    return start.expected(marginals)


def _counted(
    job: Prepared,
    engine: Engine,
    queries: Workload,
    treatment: OutOfDomain,
    mechanism: Mechanism,
    keep: Schema | None = None,
) -> Counted:
    """The private counts; of a table without rows, zeros if the number of rows is private.

    Were an empty table refused, whether there is a release would tell no rows from one row.
    """
    try:
        return engine.count(job.source, queries, treatment, keep)
    except NoRowsError:
        if mechanism.protected.size_is_public:
            raise
        return Counted(np.zeros(len(queries), dtype=np.int64), 0)


def _public_patterns(schema: Schema, tuning: Tuning) -> tuple[str, ...]:
    """The patterns of a schema, if its curator says that the table's header is public.

    With one-hot columns a single cell of a single person can add a column to the header.
    """
    if schema.patterns and not tuning.public_header:
        raise ParameterError(
            f"binary_columns pattern {schema.patterns[0]!r} reads column names off the private "
            "table; declare them with names, or prefix and count",
            python="or say that the header is public, with public_header=True",
            command="or say that the header is public, with --public-header",
        )
    return schema.patterns


def _weighed(table: Table, mechanism: Mechanism, treatment: OutOfDomain) -> Table:
    """The table as its rows are counted; refuses what cannot be counted so."""
    persons, weight = mechanism.persons, mechanism.weights
    if persons is not None:
        _check_persons(table, mechanism)
    elif weight is None:
        _check_size(table, mechanism)
    if weight is None:
        return table if persons is None else ByPerson(table, persons, treatment)
    if hasattr(table, "declared_rows"):
        raise ParameterError(
            f"weight = {weight.column!r} needs one row per record; pairs of a record and an item "
            "have none: leave out weight, or make a table with a row per record"
        )
    return ByWeight(table, weight, persons, treatment)


def _check_persons(table: Table, mechanism: Mechanism) -> None:
    """Refuse a table whose rows cannot be counted by persons."""
    if getattr(table, "declared_rows", None) is not None:
        raise ParameterError(
            "records declares rows that belong to no person: leave it out, or leave out unit"
        )
    if hasattr(table, "declared_rows") and mechanism.protected.size_is_public:
        raise ParameterError(
            "pairs do not show persons without items, so the number of persons that occur is not "
            "public: use add-remove neighbours, or weigh = record"
        )


def _check_size(table: Table, mechanism: Mechanism) -> None:
    """Refuse a table in long format whose number of records is not what neighbours share.

    A declared number fills a table up with empty records, which add-remove does not cover: adding
    a record to a padded table replaces an empty one, a change twice as large. Without a declared
    number, a record that has no item is not there. Replacing a record by an empty one would then
    change the number of records, which replace-one publishes.
    """
    if not hasattr(table, "declared_rows"):
        return
    if table.declared_rows is not None and mechanism.relation is Neighbours.ADD_REMOVE:
        raise ParameterError(
            "records declares the number of records, which add-remove neighbours keep private: "
            "leave it out, or use replace-one"
        )
    if table.declared_rows is None and mechanism.relation is Neighbours.REPLACE_ONE:
        raise ParameterError(
            "pairs do not show records without items, so the number of records that occur is not "
            "public",
            python="declare it with declared_rows=N, or use add-remove neighbours",
            command="declare it with --records N, or use add-remove neighbours",
        )
