"""The whole job: a private table in, a release out."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dualquery.base.errors import ParameterError, QueryError, ReleaseError
from dualquery.domain.free import Free
from dualquery.domain.schema import Schema
from dualquery.engines.engine import check_engine, open_engine
from dualquery.game.journal import Journal, NoJournal, may_begin
from dualquery.game.loop import play
from dualquery.game.model_player import ModelPlayer
from dualquery.game.plan import Plan, Player, default_player, make_plan
from dualquery.game.record_player import RecordPlayer
from dualquery.model.schedule import Schedule
from dualquery.oracles.oracle import Oracle
from dualquery.oracles.registry import oracle as make_oracle
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Events
from dualquery.privacy.ledger import BudgetExceededError, Ledger, LedgerError
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import source_for
from dualquery.privacy.statement import PrivacyStatement, weak_promises
from dualquery.release.certificate import certify, check_alpha
from dualquery.release.directory import check_free, write_release
from dualquery.release.frames import FrameStyle
from dualquery.release.refitting import refitted
from dualquery.release.release import Release
from dualquery.release.resuming import finish, telling
from dualquery.release.unknown import about_untouched
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.rows.table import Table
from dualquery.version import __version__
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals, read_workload
from dualquery.workloads.probes import with_probes
from dualquery.workloads.workload import Workload

DEFAULT_QUERIES = 500_000
DEFAULT_K = 3

LIKE_INPUT = (
    "like_input: samples will carry the column types of the private table, which the privacy "
    "statement does not cover; do not publish them"
)

Choice = TypeVar("Choice", bound=StrEnum)

Progress = Callable[[str, int, int], None]
"""Told (stage, done, total); all of it is public."""

Notice = Callable[[str], None]
"""Told one line, before the first draw, about what the curator should know; it is public."""


@dataclass(frozen=True)
class DualQuery:
    """Release answers to many queries, and a synthetic table, under differential privacy.

    Mechanism settings decide what the release promises: `epsilon`, `delta`, `neighbours`,
    `accountant`, the public reference size `rows` (add-remove only), and `seed`, which makes
    a run repeatable and therefore NOT PRIVATE. The rest sets accuracy and speed: who plays
    (`player`: a fitted model, or the paper's record a round), whether a model is fitted to the
    draws at the end (`refit`) and standard errors are worked out (`errors`), `rounds`, `samples`,
    `eta` (left out: planned from public quantities), the `queries` random k-way marginals used
    when `fit` gets no workload, the record player's `oracle` (a name or your own), what `free`
    attributes take in its records and the accuracy to `certify` them for, and the `engine` (local,
    or dask with the address of a `scheduler`), which changes no result.

    Guarantee: the release is (ε, δ)-differentially private for the stated neighbours, whatever
    the table, the workload and the oracle, provided the schema was declared without the table.
    A schema with a `[binary_columns] pattern` takes column names from the table's header: it is
    refused unless `public_header` says that the header is public, and the statement says so.
    """

    epsilon: float
    delta: float
    neighbours: str = "replace-one"
    accountant: str = "gaussian"
    rows: int | None = None
    seed: int | None = None
    player: str | None = None
    refit: bool = True
    errors: bool = True
    rounds: int | None = None
    samples: int | None = None
    eta: float | None = None
    queries: int | None = None
    k: int | None = None
    oracle: str | Oracle = "annealing"
    certify: float | None = None
    free: str = "default"
    out_of_domain: str = "refuse"
    engine: str = "local"
    scheduler: str | None = None
    public_header: bool = False

    def fit(
        self,
        table: Any,
        *,
        schema: Schema,
        workload: Workload | Callable[[Schema], Workload] | None = None,
        directory: str | Path | None = None,
        resume: bool = False,
        ledger: str | Path | None = None,
        like_input: bool = False,
        progress: Progress = lambda stage, done, total: None,
        notice: Notice = lambda line: None,
    ) -> Release:
        """Run the game on a table.

        Args:
            table: a pandas, polars or pyarrow frame, a SciPy sparse 0/1 matrix, or a path.
            schema: the declared domain of every column to be used.
            workload: the queries, or a function of the schema as resolved against the table.
            directory: where the draws are kept while the run lasts, so that it can be resumed.
            resume: continue the run found there.
            ledger: a budget ledger that the release is charged to before its first draw.
            like_input: NOT PRIVATE: samples carry the column types of the table, not those that
                follow from the schema. No draw pays for that, and a type can depend on one cell.
            notice: called with a line for each thing that the curator should know before the
                first draw, such as a budget that promises little. The statement's `warnings`
                repeats those about the budget.
        """
        if like_input:
            warnings.warn(LIKE_INPUT, stacklevel=2)
        folder = None if directory is None else Path(directory)
        with telling(folder), ExitStack() as held:
            made, journal = self._fitted(
                table, schema, workload, folder, resume, ledger, progress, notice, held
            )
            if ledger is not None:
                Ledger(ledger).spend(journal.identity)
            journal.remove()
        return replace(made, style=FrameStyle.of(table, like_input=like_input))

    def _fitted(
        self,
        table: Any,
        schema: Schema,
        workload: Workload | Callable[[Schema], Workload] | None,
        directory: Path | None,
        resume: bool,
        ledger: str | Path | None,
        progress: Progress,
        notice: Notice,
        held: ExitStack,
    ) -> tuple[Release, Journal | NoJournal]:
        """The release and its journal, held open: until it is settled nobody else may go on."""
        self._check()
        schema.require_reviewed()
        patterns = self._public_patterns(schema)
        source = open_table(table)
        self._refuse_padding(source)
        schema = source.bind(schema)
        asked = self._workload(schema, workload)
        player = self._player(schema, len(asked))
        actions = with_probes(asked) if player is Player.MODEL else Actions.plain(asked)
        if actions.untouched:
            notice(about_untouched(actions.untouched, len(schema)))
        schedule = Schedule.for_schema(schema)
        with open_engine(self.engine, self.scheduler) as engine:
            if resume and Neighbours.parse(self.neighbours) is Neighbours.ADD_REMOVE:
                progress(
                    "resuming (add-remove: that the table is the same cannot be checked)", 0, 0
                )
            progress("counting queries", 0, 0)
            treatment = OutOfDomain.parse(self.out_of_domain)
            answers = engine.count(source, actions.queries, treatment)
            plan = self.plan(answers.rows, schema, len(asked))
            for line in weak_promises(self.epsilon, self.delta, plan.budget.rows, self.accountant):
                notice(line)
            parameters = self._parameters(plan, schedule, asked)
            data_player: Any = (
                ModelPlayer(actions, schedule, plan.rounds)
                if player is Player.MODEL
                else RecordPlayer(asked, self._oracle(), free=_choice(Free, self.free))
            )
            source_of_draws = source_for(self.seed)
            journal = held.enter_context(
                closing(_journal(directory, resume, actions, answers, plan, parameters, ledger))
            )
            if ledger is not None:
                _reserve(ledger, journal, plan, source_of_draws.private, resume)
            _, transcript = play(
                engine.query_player(actions, answers, plan.budget.rows),
                engine.data_player(data_player),
                plan.temperatures,
                plan.draws,
                source_of_draws,
                journal=journal,
                observer=lambda done, total: progress("playing", done, total),
            )
        privacy = PrivacyStatement.of(
            plan.budget.events(transcript.temperatures, transcript.draw_counts),
            delta=self.delta,
            rows=plan.budget.rows,
            neighbours=plan.budget.neighbours,
            accountant=self.accountant,
            private=source_of_draws.private,
            public_header=patterns,
        )
        certificate = (
            None if self.certify is None else certify(transcript, asked, plan.eta, self.certify)
        )
        made = Release(
            schema,
            actions,
            transcript,
            privacy,
            parameters,
            certificate=certificate,
            style=FrameStyle.of(table),
        )
        if self.refit:
            made = refitted(made, progress, errors=self.errors)
        elif player is Player.MODEL:
            made = refitted(made, steps=0, errors=False)
        return made, journal

    def release(
        self,
        table: Any,
        out: str | Path,
        *,
        schema: Schema,
        workload: str | Path | Workload | Callable[[Schema], Workload] | None = None,
        resume: bool = False,
        ledger: str | Path | None = None,
        overwrite: bool = False,
        progress: Progress = lambda stage, done, total: None,
        notice: Notice = lambda line: None,
    ) -> Release:
        """Fit and write the release directory; a run that is killed can be resumed.

        While it lasts, the draws are kept in `OUT.partial`. Whatever stops it, `resume` ends in the
        same release, for the same charge.
        """
        path = Path(out)
        partial = Path(f"{path}.partial")
        if isinstance(workload, str | Path):
            file = workload
            workload = lambda resolved: read_workload(file, resolved)  # noqa: E731
        with telling(partial), ExitStack() as held:
            if resume:
                finished = finish(path, partial, self._promised(ledger), ledger)
                if finished is not None:
                    return replace(finished, style=FrameStyle.of(table))
                if path.exists() and not partial.exists() and not overwrite:
                    raise ReleaseError(
                        f"there is no unfinished run at {str(partial)!r}; {str(path)!r} exists and "
                        "may be what it ended in"
                    )
            check_free(path, overwrite=overwrite)
            made, journal = self._fitted(
                table, schema, workload, partial, resume, ledger, progress, notice, held
            )
            progress("writing the release", 0, 0)
            write_release(made, path, overwrite=overwrite, ready=journal.publish)
            if ledger is not None:
                Ledger(ledger).spend(journal.identity)
            journal.remove()
        return made

    def _promised(self, ledger: str | Path | None) -> dict[str, Any]:
        """What a resumed run must share with its beginning, as far as no table is needed."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "accountant": self.accountant,
            "seed": self.seed,
            "ledger": None if ledger is None else Ledger(ledger).fingerprint,
        }

    def plan(self, rows: int, schema: Schema, queries: int | None = None) -> Plan:
        """What a run on a table of `rows` rows would do; reads no data."""
        budget = Budget(
            self.epsilon,
            self.delta,
            self._reference(rows),
            Neighbours.parse(self.neighbours),
            self.accountant,
        )
        return make_plan(
            budget,
            schema,
            player=self._player(schema, self._query_count() if queries is None else queries),
            rounds=self.rounds,
            samples=self.samples,
            eta=self.eta,
        )

    def _reference(self, rows: int) -> int:
        if Neighbours.parse(self.neighbours) is Neighbours.REPLACE_ONE:
            return rows
        if self.rows is None:
            raise ParameterError(
                "neighbours add-remove keeps the number of rows private: give a public "
                "reference size with rows"
            )
        return self.rows

    def _public_patterns(self, schema: Schema) -> tuple[str, ...]:
        """The patterns of a schema, if its curator says that the table's header is public.

        With one-hot columns a single cell of a single person can add a column to the header.
        """
        if schema.patterns and not self.public_header:
            raise ParameterError(
                f"binary_columns pattern {schema.patterns[0]!r} reads column names off the private "
                "table; declare them with names, or prefix and count, or say that the header is "
                "public (--public-header, public_header=True)"
            )
        return schema.patterns

    def _refuse_padding(self, table: Table) -> None:
        """A declared number of records fills a table up, which add-remove does not cover.

        Adding a record to a padded table replaces an empty one: a change of the other kind,
        twice as large.
        """
        if (
            getattr(table, "declared_rows", None) is not None
            and Neighbours.parse(self.neighbours) is Neighbours.ADD_REMOVE
        ):
            raise ParameterError(
                "records declares the number of records, which add-remove neighbours keep private: "
                "leave it out, or use replace-one"
            )

    def _check(self) -> None:
        # A budget on a stand-in size: bad parameters are refused before the table is read.
        Budget(
            self.epsilon,
            self.delta,
            self.rows or 1,
            Neighbours.parse(self.neighbours),
            self.accountant,
        )
        self._reference(1)
        # And a statement: a run must not end in one that cannot be made.
        PrivacyStatement.of(
            Events.of([0.0], 1, self.rows or 1),
            delta=self.delta,
            rows=self.rows or 1,
            accountant=self.accountant,
        )
        self._oracle()
        check_engine(self.engine, self.scheduler)
        if self.player is not None:
            _choice(Player, self.player)
        if self.certify is not None:
            check_alpha(self.certify)
            if self.player == Player.MODEL:
                raise ParameterError("certify speaks of records; it needs player = record")
        _choice(Free, self.free)
        OutOfDomain.parse(self.out_of_domain)

    def _oracle(self) -> Oracle:
        if self.oracle == "annealing" and self.certify is not None:
            return make_oracle("portfolio")  # annealing alone proves no bound
        return make_oracle(self.oracle) if isinstance(self.oracle, str) else self.oracle

    def _workload(
        self, schema: Schema, workload: Workload | Callable[[Schema], Workload] | None
    ) -> Workload:
        if workload is None:
            k = min(DEFAULT_K, len(schema)) if self.k is None else self.k
            return random_marginals(schema, k, self._query_count())
        made = workload(schema) if callable(workload) else workload
        if made.schema != schema:
            raise QueryError(
                "the workload was made for another schema; pass a function of the schema instead"
            )
        return made

    def _query_count(self) -> int:
        return DEFAULT_QUERIES if self.queries is None else self.queries

    def _player(self, schema: Schema, queries: int) -> Player:
        if self.player is not None:
            return _choice(Player, self.player)
        return default_player(schema, queries) if self.certify is None else Player.RECORD

    def _parameters(self, plan: Plan, schedule: Schedule, workload: Workload) -> dict[str, Any]:
        records = plan.player is Player.RECORD
        return {
            "player": str(plan.player),
            "table_size": plan.budget.rows,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "accountant": self.accountant,
            "rounds": plan.rounds,
            "samples": plan.samples,
            "eta": plan.eta,
            "queries": len(workload),
            "oracle": self._oracle().name if records else None,
            "free": self.free,
            "training": asdict(schedule),
            "seed": self.seed,
        }


def _journal(
    directory: Path | None,
    resume: bool,
    actions: Actions,
    answers: Counted,
    plan: Plan,
    parameters: dict[str, Any],
    ledger: str | Path | None,
) -> Journal | NoJournal:
    if directory is None:
        return NoJournal()
    described = json.dumps(actions.queries.schema.to_dict(), sort_keys=True)
    run = {
        "schema": hashlib.sha256(described.encode()).hexdigest(),
        "workload": actions.queries.fingerprint,
        "temperatures": plan.temperatures.tolist(),
        "version": __version__,
        "ledger": None if ledger is None else Ledger(ledger).fingerprint,
        **parameters,
    }
    # Under add-remove neighbours nothing about the table is compared: docs/decisions/crashes.md.
    counts = None
    if plan.budget.neighbours is Neighbours.REPLACE_ONE:
        counts = np.ascontiguousarray(answers.counts, dtype="<i8").tobytes()
    if resume and not may_begin(directory):
        return Journal.resume(directory, run, counts)
    return Journal.create(directory, run, counts)


def _reserve(
    ledger: str | Path, journal: Journal | NoJournal, plan: Plan, private: bool, resume: bool
) -> None:
    """Enter the run into a ledger; a run that is refused leaves no journal behind."""
    book = Ledger(ledger)
    try:
        book.reserve(
            journal.identity,
            plan.events,
            neighbours=plan.budget.neighbours,
            private=private,
            drawn=journal.digests,
        )
    except LedgerError as error:
        new = not resume or isinstance(error, BudgetExceededError)
        if new and not journal.rounds_drawn:
            journal.remove()
        raise
    journal.told = lambda rounds, digest: book.advance(journal.identity, rounds, digest)


def _choice(kind: type[Choice], value: str) -> Choice:
    """A member of a set of options, or an error that lists them."""
    try:
        return kind(value)
    except ValueError:
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__).lstrip("_")
        raise ParameterError(f"{name} = {value!r}; expected one of {', '.join(kind)}") from None
