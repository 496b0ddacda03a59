"""Algorithm 2 of the paper as it is printed: accuracy α and failure probability β in, a run out.

The paper states ε as a function of the run. Curators have it the other way round: a budget and a
table are given. So there are three questions, and all read public quantities only: which run α and
β ask for, on how many rows it keeps a budget, and which α a budget and a number of rows promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dualquery.base.errors import ParameterError
from dualquery.game.free_tables import FreeTables
from dualquery.game.plan import Plan, Player
from dualquery.oracles.certificates import CONFIDENCE, needed
from dualquery.privacy.accountants import ACCOUNTANTS
from dualquery.privacy.calibration import MOST_ROUNDS, Budget
from dualquery.privacy.rounding import rounded_up

STEP = 1e-4
"""A promised α is a multiple of this, so that it can be written down and certified."""

MOST_ROWS = 2**50


@dataclass(frozen=True)
class Theorem:
    """The utility theorem for one workload over one universe.

    Theorem: with |Q| = 2·queries, T = 16 log|Q|/α² rounds, η = α/4, s = 48 log(2|X|T/β)/α² draws
    per round and every record within α/4 of the best response, all answers of the records are
    within α of the truth with probability 1 − β.

    Attributes:
        queries: m, the number of queries without their negations.
        log_universe: log|X|.
        beta: the probability with which the promise may fail.
        free: the tables that free attributes of records follow, if any; they are paid for too.
    """

    queries: int
    log_universe: float
    beta: float = CONFIDENCE
    free: FreeTables | None = None

    def plan(self, budget: Budget, alpha: float) -> Plan:
        """The run for accuracy α, whether or not the budget allows it.

        Args:
            budget: what the run may cost, on a table of which size.
            alpha: the largest error of an answer.
        """
        asked = needed(alpha, self.beta, self.queries, self.log_universe)
        return Plan(budget, Player.RECORD, asked.rounds, asked.samples, asked.eta, free=self.free)

    def checked(self, budget: Budget, alpha: float | None) -> Plan:
        """The run for accuracy α, or for the smallest α if none is given; refuses what costs more.

        Args:
            budget: what the run may cost, on a table of which size.
            alpha: the largest error of an answer; None for the smallest that is promised.
        """
        if alpha is None:
            return self.plan(budget, self.smallest(budget))
        made = self.plan(budget, alpha)
        cost = budget.cost(made.events)
        if cost > budget.epsilon:
            rows, smallest = smallest_rows(made, budget.accountant), self.promised(budget)
            instead = "no alpha below 1" if smallest is None else f"alpha={smallest:g}"
            raise ParameterError(
                f"alpha={alpha:g}, beta={self.beta:g} ask for {made.rounds} rounds of "
                f"{made.samples} draws, which cost epsilon={rounded_up(cost)} on "
                f"rows={budget.size}, more than epsilon={rounded_up(budget.epsilon)}; "
                f"rows={rows} would be enough, and this budget is promised {instead}"
            )
        return made

    def smallest(self, budget: Budget) -> float:
        """The smallest α that is promised within a budget; refuses a budget that promises none."""
        found = self.promised(budget)
        if found is None:
            raise ParameterError(
                f"epsilon={rounded_up(budget.epsilon)} on rows={budget.size} is too little for the "
                "accuracy theorem to promise any alpha below 1; use more rows or fewer queries, or "
                "give eta and samples as the paper's experiments do, which promise none"
            )
        return found

    def promised(self, budget: Budget) -> float | None:
        """The smallest α that the theorem promises within a budget; None if none below 1.

        Rounds and draws fall with α and so does their cost. So the smallest is found by halving.

        Args:
            budget: what the run may cost, on a table of which size.
        """

        def fits(steps: int) -> bool:
            alpha = steps * STEP
            if 16 * math.log(2 * self.queries) / alpha**2 > MOST_ROUNDS:
                return False
            return budget.allows(self.plan(budget, alpha).events)

        high = round(1.0 / STEP) - 1
        if not fits(high):
            return None
        low = high // 2
        while low and fits(low):
            low, high = low // 2, low
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if fits(middle) else (middle, high)
        return round(high * STEP, 4)


def smallest_rows(plan: Plan, accountant: str) -> int | None:
    """The fewest rows on which a run keeps its ε by an accountant; None if no table is enough.

    Args:
        plan: the run.
        accountant: which theorem counts.
    """
    budget = replace(plan.budget, accountant=accountant)
    parts = budget.unit.parts

    def fits(size: int) -> bool:
        larger = replace(budget, rows=size * parts)
        return larger.allows(replace(plan, budget=larger).events)

    high = 1
    while not fits(high):
        if high >= MOST_ROWS:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def smallest_rows_by_accountant(plan: Plan) -> dict[str, int | None]:
    """`smallest_rows` by every accountant that can state an ε at the budget's δ."""
    delta = plan.budget.delta
    return {
        name: smallest_rows(plan, name) for name in ACCOUNTANTS if delta > 0.0 or name == "pure"
    }
