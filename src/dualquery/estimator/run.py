"""One run on disk and in the books: its journal and its entry in a ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np

from dualquery.base.failures import reason
from dualquery.base.sealing import Opening
from dualquery.base.stored import Json
from dualquery.estimator.settings import Mechanism
from dualquery.game.journal import (
    Journal,
    NoJournal,
    charged,
    guard,
    may_begin,
    refuse_unfinished,
)
from dualquery.game.plan import Plan
from dualquery.privacy.ledger import BudgetExceededError, Ledger, LedgerError, Mark, Turns
from dualquery.release.parameters import RunParameters
from dualquery.version import __version__
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted


class Run:
    """Owns the journal and the ledger entry of one job, from the first draw to the last file.

    Attributes:
        journal: where draws and measurements are before they are used.
    """

    def __init__(
        self,
        directory: Path | None,
        *,
        resume: bool,
        ledger: str | Path | None,
        note: str | None = None,
    ) -> None:
        """Nothing is opened except the ledger, which must exist.

        Args:
            directory: where the journal is kept; None for a run that cannot be resumed.
            resume: continue the run found there.
            ledger: the file that the run is charged to.
            note: what the ledger says of the run; left out, the path of what it makes.
        """
        if directory is not None:
            guard(directory)
            if not resume:
                refuse_unfinished(directory)
        self.directory = directory
        self.note = str(directory or "").removesuffix(".partial") if note is None else note
        self.resume = resume
        self.ledger = None if ledger is None else Ledger(ledger)
        self.journal: Journal | NoJournal = NoJournal()

    def begin(
        self,
        held: ExitStack,
        mechanism: Mechanism,
        plan: Plan,
        actions: Actions,
        counted: Counted,
        parameters: RunParameters,
    ) -> None:
        """Open the journal and reserve the cost. Nothing may be drawn before this returns.

        Args:
            held: closes the journal when the job ends, however it ends.
            mechanism: what is promised.
            plan: what will be released.
            actions: the queries that can be drawn.
            counted: private counts; under replace-one a digest of them tells tables apart.
            parameters: what the run is begun with; a resumed run must share it.
        """
        self.journal = held.enter_context(closing(self._opened(plan, actions, counted, parameters)))
        if self.ledger is not None:
            self._reserve(plan, mechanism.seed is None)

    def settle(self, notice: Callable[[str], None]) -> None:
        """Mark the cost as spent and delete the journal: the release is in its place.

        A journal that cannot be deleted is no reason to fail: what it led to is made and paid for.
        """
        if self.ledger is not None:
            self.ledger.spend(self.journal.identity, self.journal.mark)
        try:
            self.journal.remove()
        except OSError as error:
            notice(
                f"the release is made and paid for, but its journal {str(self.directory)!r} could "
                f"not be deleted: {reason(error)}; remove it, because it is private"
            )

    @property
    def mark(self) -> Mark | None:
        """What the run has seen last of its ledger; its release carries it."""
        return self.journal.mark

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the owner of the ledger should know."""
        return () if self.ledger is None else self.ledger.account().warnings

    def promised(self, mechanism: Mechanism) -> Json:
        """What a resumed run must share with its beginning, as far as no table is needed."""
        return {
            **({} if mechanism.epsilon is None else {"epsilon": mechanism.epsilon}),
            "delta": mechanism.delta,
            "neighbours": mechanism.neighbours,
            "accountant": mechanism.accountant,
            "seed": mechanism.seed,
            "unit": None if mechanism.persons is None else mechanism.persons.to_dict(),
            **({} if mechanism.weights is None else {"weight": mechanism.weights.to_dict()}),
            "ledger": self._fingerprint,
        }

    @property
    def _fingerprint(self) -> str | None:
        return None if self.ledger is None else self.ledger.fingerprint

    def _opened(
        self, plan: Plan, actions: Actions, counted: Counted, parameters: RunParameters
    ) -> Journal | NoJournal:
        if self.directory is None:
            return NoJournal()
        described = json.dumps(actions.queries.schema.to_dict(), sort_keys=True)
        run = {
            "schema": hashlib.sha256(described.encode()).hexdigest(),
            "workload": actions.queries.fingerprint,
            "weights": hashlib.sha256(actions.log_prior.tobytes()).hexdigest(),
            "temperatures": plan.temperatures.tolist(),
            "version": __version__,
            "ledger": self._fingerprint,
            **parameters.to_dict(),
        }
        # If the number of rows is private, nothing about the table is compared: see
        # docs/decisions/crashes.md.
        counts = None
        if plan.budget.unit.size_is_public:
            counts = np.ascontiguousarray(counted.counts, dtype="<i8").tobytes()
        if self.resume and not may_begin(self.directory):
            return Journal.resume(self.directory, run, counts, actions, self._openings())
        return Journal.create(self.directory, run, counts)

    def _openings(self) -> tuple[Opening, ...] | None:
        """What the ledger knows of the rounds of an unfinished run; None without a ledger."""
        if self.ledger is None or self.directory is None:
            return None
        found = charged(self.directory)
        return None if found is None else self.ledger.openings(*found)

    def _noted(self, plan: Plan) -> str:
        """The note of the ledger; it says what makes a release dearer than its records."""
        weight = plan.budget.weight
        return self.note if weight is None else f"{self.note} ({weight.text})".strip()

    def _reserve(self, plan: Plan, private: bool) -> None:
        """Enter the run into the ledger; a run that is refused leaves no journal behind."""
        book, journal = self.ledger, self.journal
        assert book is not None  # the caller has looked
        turns = Turns(book, journal.identity)
        try:
            account = book.reserve(
                journal.identity,
                plan.events,
                neighbours=plan.budget.neighbours,
                unit="" if plan.budget.persons is None else plan.budget.persons.column,
                private=private,
                note=self._noted(plan),
                drawn=journal.digests,
                begins=turns.begins,
            )
        except LedgerError as error:
            new = not self.resume or isinstance(error, BudgetExceededError)
            if new and not journal.rounds_drawn:
                journal.remove()
            raise
        assert account.mark is not None  # whoever reserves writes a link
        journal.charge(turns, account.mark)
