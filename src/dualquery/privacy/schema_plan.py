"""What a private schema may spend, cut up: noise and threshold for values, temperature for edges.

Nothing here reads data. The plan is a function of the budget, the unit and the declared columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dualquery.base.checks import positive, probability, whole
from dualquery.base.errors import ParameterError
from dualquery.privacy.accountants.gaussian import epsilon_of_mu, mu_of
from dualquery.privacy.discovery import slack_of, threshold_for
from dualquery.privacy.events import Events, Noise
from dualquery.privacy.measuring import batch_event
from dualquery.privacy.quantiles import DRAWS, level_range, levels_of, temperature_for
from dualquery.privacy.scales import sigma_for
from dualquery.privacy.unit import Unit

SHARE_OF_VALUES = 0.5
"""Of μ², where there are both open columns and columns to cut."""

SHARE_OF_SLACK = 0.5
"""Of δ, where there are open columns."""

_KEPT_BACK = 1.0 - 1e-9


@dataclass(frozen=True)
class SchemaPlan:
    """Everything that a private schema will release, before it is drawn.

    Attributes:
        unit: whose influence is bounded.
        delta: the δ for which the price is stated.
        bins: of a column of numbers.
        cut: how many columns get private edges.
        discovered: how many columns get private values.
        temperature: of the draws of edges, per part; 0 if there are none.
        sigma: of the noise on counts of values; 0 if there are none.
        threshold: above which a value is published, in parts.
    """

    unit: Unit
    delta: float
    bins: int
    cut: int
    discovered: int
    temperature: float
    sigma: float
    threshold: int

    @property
    def events(self) -> Events:
        """What is drawn and measured: draws per level and column, then all counts together."""
        levels = range(levels_of(self.bins))
        ranges = [
            level_range(self.temperature, l, self.unit) for _ in range(self.cut) for l in levels
        ]
        drawn = Events(np.full(len(ranges), DRAWS), np.array(ranges))
        if not self.discovered:
            return drawn
        counted = batch_event(Noise.GAUSSIAN, self.sigma, self.discovered, self.unit)
        return drawn.then(Events.of_measurements(counted))

    @property
    def slack(self) -> float:
        """δ' of all open columns together."""
        return (
            self.discovered * slack_of(self.threshold, self.sigma, self.unit)
            if self.discovered
            else 0.0
        )

    @property
    def typical_error(self) -> float:
        """About how many parts an edge lies away from its quantile."""
        return 1.0 / (self.temperature * math.sqrt(DRAWS))

    @property
    def epsilon(self) -> float:
        """The ε of everything, at δ."""
        return epsilon_of_mu(math.sqrt(self.events.mu_squared), self.delta - self.slack)


def plan_schema(
    epsilon: float, delta: float, unit: Unit, *, cut: int, discovered: int, bins: int
) -> SchemaPlan:
    """The plan that spends a budget.

    Args:
        epsilon: ε of the budget.
        delta: δ of the budget.
        unit: whose influence is bounded.
        cut: how many columns get private edges.
        discovered: how many columns get private values.
        bins: of a column of numbers, a power of two.
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    levels, cut = levels_of(bins), whole("cut", cut, 0)
    discovered = whole("discovered", discovered, 0)
    if not cut + discovered:
        raise ParameterError(
            "nothing has to be found: every domain is declared, so the declaration is a schema "
            "already, and costs nothing"
        )
    slack = SHARE_OF_SLACK * delta if discovered else 0.0
    mu = mu_of(epsilon, delta - slack) * _KEPT_BACK
    share = SHARE_OF_VALUES if cut and discovered else float(discovered > 0)
    temperature, sigma, threshold = 0.0, 0.0, 0
    if cut:
        # s draws of range r are μ-GDP for μ² = (s + 1)·r²/4.
        range_ = 2.0 * mu * math.sqrt((1.0 - share) / (cut * levels * (DRAWS + 1)))
        temperature = temperature_for(range_, levels, unit)
    if discovered:
        sigma = sigma_for(mu, math.sqrt(discovered) * unit.table_l2, share)
        threshold = threshold_for(slack / discovered, sigma, unit)
    plan = SchemaPlan(unit, delta, bins, cut, discovered, temperature, sigma, threshold)
    if plan.slack > slack or plan.epsilon > epsilon:
        raise ParameterError(f"epsilon = {epsilon:g} is too small for this schema")
    return plan
