"""What the accuracy theorem says about a job: what it asks for, what that costs, what is promised.

Reads public quantities only. A run that costs more than its budget is shown all the same, with the
number of rows on which it would not; only a release refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dualquery.base.stored import Json
from dualquery.domain.schema import Schema
from dualquery.estimator.job import DualQuery
from dualquery.game.plan import Plan
from dualquery.game.theorem import smallest_rows_by_accountant


@dataclass(frozen=True)
class Promise:
    """The accuracy theorem for one job.

    Attributes:
        alpha: the accuracy of the run.
        beta: the probability with which it may fail.
        plan: the run.
        fits: whether the budget allows it.
        smallest_rows: per accountant, the fewest rows on which the budget allows it; None where no
            table is large enough.
        smallest: the smallest α that the budget is promised on these rows; None if none below 1.
    """

    alpha: float
    beta: float
    plan: Plan
    fits: bool
    smallest_rows: dict[str, int | None]
    smallest: float | None

    def to_dict(self) -> Json:
        """Plain values, ready for JSON."""
        return {
            "alpha": self.alpha,
            "beta": self.beta,
            "fits": self.fits,
            "smallest_rows": self.smallest_rows,
            "promised_alpha": self.smallest,
        }


def promise_of(job: DualQuery, rows: int, schema: Schema, queries: int, named: int) -> Promise:
    """What the theorem says about a job with alpha or beta.

    Args:
        job: the settings.
        rows: of the table, or the reference of add-remove neighbours.
        schema: the declared domain.
        queries: how many are asked.
        named: how many attributes they name.
    """
    tuning, mechanism = job.tuning, job.mechanism
    theorem = tuning.theorem(schema, queries, named)
    budget = mechanism.budget(rows * mechanism.protected.parts)
    smallest = theorem.promised(budget)
    alpha = theorem.smallest(budget) if tuning.alpha is None else tuning.alpha
    plan = theorem.plan(budget, alpha)
    return Promise(
        alpha,
        theorem.beta,
        plan,
        budget.allows(plan.events),
        smallest_rows_by_accountant(plan),
        smallest,
    )
