"""What fits into a ledger's total: one rule, fixed when the ledger is created.

Composition (``docs/proofs/composition.md``): μ² adds up over releases and gives an ε at a δ; pure ε
adds up too. The discovery of values may fail altogether, with a chance δ'; these chances add up.
The ledger's δ is split once, when it is declared: one part for failures, the rest for ε. Were it
split on the way, whoever looks at the first release before choosing the second could get both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualquery.base.checks import not_negative, positive, probability, refusal
from dualquery.privacy.accountants import pure
from dualquery.privacy.accountants.gaussian import epsilon_of_mu
from dualquery.privacy.accountants.protocol import GUARD, NotCoveredError
from dualquery.privacy.events import Events

SLACK = 0.1
"""The share of a ledger's δ that may go to failures, unless another one is declared."""


@dataclass(frozen=True)
class Charge:
    """What one release costs, in the two currencies that add up, and what of it may fail.

    Attributes:
        mu_squared: μ² of the Gaussian accountant.
        pure: ε of pure differential privacy; infinite if there was Gaussian noise.
        slack: δ', the chance that the rest does not hold at all; it adds up.
    """

    mu_squared: float
    pure: float
    slack: float = 0.0

    def __post_init__(self) -> None:
        not_negative("mu_squared", self.mu_squared)
        not_negative("slack", self.slack)
        if self.pure != math.inf:  # what Gaussian noise costs in this currency
            not_negative("pure", self.pure)

    @classmethod
    def of(cls, events: Events, slack: float = 0.0) -> Charge:
        """The charge for a list of events."""
        try:
            return cls(events.mu_squared, pure.epsilon(events), slack)
        except NotCoveredError:
            return cls(events.mu_squared, math.inf, slack)

    def __add__(self, other: Charge) -> Charge:
        slack = self.slack + other.slack
        return Charge(self.mu_squared + other.mu_squared, self.pure + other.pure, slack)

    @property
    def mu(self) -> float:
        """μ, rounded up."""
        return math.sqrt(self.mu_squared) * (1.0 + GUARD)

    def epsilon(self, delta: float) -> float:
        """The smaller of the Gaussian ε at δ and the pure ε, if nothing fails; both hold."""
        return min(epsilon_of_mu(math.sqrt(self.mu_squared), delta), self.pure)


@dataclass(frozen=True)
class Rule:
    """The filter of a ledger.

    Theorem. Whatever rule chooses the releases, and looks at earlier ones before: if every prefix
    of the history is admitted, the history is (ε, δ)-private. Proof:
    ``docs/proofs/composition.md``. It needs all three figures to be fixed in advance.

    Attributes:
        epsilon: the total ε.
        delta: the total δ.
        slack: what of δ may go to failures.
    """

    epsilon: float
    delta: float
    slack: float

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        probability("delta", self.delta)
        if not not_negative("slack", self.slack) < self.delta:
            raise refusal("slack", self.slack, "a part of delta")

    @property
    def delta_of_losses(self) -> float:
        """What of δ is left for ε, rounded down: the δ at which all ε of the ledger are stated."""
        if not self.slack:
            return self.delta
        return (self.delta - self.slack) * (1.0 - GUARD)

    def spent(self, charge: Charge) -> float:
        """The ε of a charge, at the δ that is left for ε."""
        return charge.epsilon(self.delta_of_losses)

    def may_fail(self, total: Charge) -> bool:
        """Whether the chances of failure stay within their part of δ."""
        return total.slack <= self.slack * (1.0 + 1e-3 * GUARD)

    def admits(self, total: Charge) -> bool:
        """Whether a history of this total may be released."""
        return self.may_fail(total) and self.spent(total) <= self.epsilon
