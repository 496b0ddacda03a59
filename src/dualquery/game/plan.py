"""The plan of a run: rounds, samples and temperatures, from public quantities only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dualquery.errors import ParameterError
from dualquery.privacy.accountants import epsilon_by_accountant
from dualquery.privacy.calibration import Budget, calibrate, largest_rounds, largest_samples
from dualquery.privacy.events import Events, record_player_temperatures
from dualquery.schema import Schema

ETA = 2.0
FEWEST_ROUNDS, MOST_ROUNDS = 20, 400
FEWEST_SAMPLES = 10


@dataclass(frozen=True)
class Plan:
    """What a run will do, fixed before any private row is read."""

    budget: Budget
    rounds: int
    samples: int
    eta: float
    player: str = "record"

    @property
    def temperatures(self) -> npt.NDArray[np.float64]:
        return record_player_temperatures(self.eta, self.rounds)

    @property
    def draws(self) -> npt.NDArray[np.int64]:
        return np.full(self.rounds, self.samples, dtype=np.int64)

    @property
    def events(self) -> Events:
        """What the run will release, for the accountants."""
        return self.budget.events(self.temperatures, self.draws)

    @property
    def epsilon(self) -> dict[str, float]:
        """The cost of the whole run, by accountant."""
        return dict(epsilon_by_accountant(self.events, self.budget.delta))


def make_plan(
    budget: Budget,
    schema: Schema,
    *,
    rounds: int | None = None,
    samples: int | None = None,
    eta: float | None = None,
) -> Plan:
    """Fill in what was not given, as large as the budget allows.

    With two of (rounds, samples, eta) given the third is maximal; with all three the budget
    is checked. With fewer, `eta` is 2, and `samples` follows the width of the table: half a
    draw per bit of its binary view (between 50 and 2,000), so that a round says something
    about most of the bits. The rounds then take what the budget allows; where that is
    fewer than 20 or more than 400, the samples give way instead. The reasons and the
    measurements are in docs/decisions/plan.md. No private row has a part in it.
    """
    if rounds is not None and samples is not None and eta is not None:
        plan = Plan(budget, rounds, samples, eta)
        cost = budget.cost(plan.events)
        if cost > budget.epsilon:
            raise ParameterError(
                f"rounds={rounds}, samples={samples}, eta={eta:g} cost epsilon={cost:.4g}, "
                f"more than epsilon={budget.epsilon:g}"
            )
        return plan
    if eta is None and (rounds is None or samples is None):
        eta = ETA
    if rounds is None and samples is None:
        assert eta is not None
        rounds, samples = _rounds_and_samples(budget, schema, eta)
        return Plan(budget, rounds, samples, eta)
    found = calibrate(budget, rounds=rounds, samples=samples, eta=eta)
    return Plan(budget, found.rounds, found.samples, found.eta)


def _rounds_and_samples(budget: Budget, schema: Schema, eta: float) -> tuple[int, int]:
    samples = int(np.clip(schema.bit_counts.sum() // 2, 50, 2000))
    try:
        rounds = largest_rounds(budget, samples=samples, eta=eta)
    except ParameterError:
        rounds = 0
    if FEWEST_ROUNDS <= rounds <= MOST_ROUNDS:
        return rounds, samples
    wanted = MOST_ROUNDS if rounds > MOST_ROUNDS else FEWEST_ROUNDS
    try:
        samples = largest_samples(budget, record_player_temperatures(eta, wanted))
    except ParameterError:
        samples = 0
    if samples >= FEWEST_SAMPLES:
        return wanted, samples
    return largest_rounds(budget, samples=FEWEST_SAMPLES, eta=eta), FEWEST_SAMPLES


def estimate(plan: Plan, schema: Schema, queries: int, k: int) -> dict[str, Any]:
    """Rough seconds and bytes of a run, for the curator; constants measured on a laptop core."""
    words = -(-plan.budget.rows // 64)
    literals = min(int(schema.bit_counts.sum()), queries * k)
    counting = queries * k * words * 2.5e-11
    packing = literals * plan.budget.rows * 4e-10
    round_seconds = queries * 1.2e-8 + plan.samples * 2e-5
    memory = literals * words * 8 + queries * (4 * k + 8 + 1 + 8 + 8 + 8 + 4) + 2**28
    return {
        "seconds": counting + packing + plan.rounds * round_seconds + 2.0,
        "memory_bytes": int(memory),
    }
