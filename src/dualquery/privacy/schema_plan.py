"""What a private schema may spend, cut up: noise and threshold for values, noise for edges.

Nothing here reads data. The plan is a function of the budget, the unit and the declared columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualquery.base.checks import positive, probability, whole
from dualquery.base.errors import ParameterError
from dualquery.privacy.accountants.gaussian import epsilon_of_mu, mu_of
from dualquery.privacy.contrasts import Contrasts, contrasts_for
from dualquery.privacy.discovery import slack_of, threshold_for
from dualquery.privacy.events import Events, MeasurementEvent, Noise
from dualquery.privacy.measuring import batch_event
from dualquery.privacy.quantiles import round_shares
from dualquery.privacy.scales import sigma_for
from dualquery.privacy.unit import Unit

WEIGHT_OF_VALUES = 9.0
"""An open column gets as much of μ² as so many columns to cut."""

SHARE_OF_SLACK = 0.3
"""Of δ, where there are open columns."""

_KEPT_BACK = 1.0 - 1e-9


@dataclass(frozen=True)
class SchemaPlan:
    """Everything that a private schema will release, before it is measured.

    Attributes:
        unit: whose influence is bounded.
        delta: the δ for which the price is stated.
        bins: of a column of numbers.
        cut: how many columns get private edges.
        discovered: how many columns get private values.
        sigmas: of the noise on contrasts of parts, one per round; none if no column is cut.
        sigma: of the noise on counts of values; 0 if there are none.
        threshold: above which a value is published, in parts.
    """

    unit: Unit
    delta: float
    bins: int
    cut: int
    discovered: int
    sigmas: tuple[float, ...]
    sigma: float
    threshold: int

    @property
    def contrasts(self) -> Contrasts:
        """What is measured of a column to cut."""
        return contrasts_for(self.bins, self.unit.neighbours)

    @property
    def events(self) -> Events:
        """What is measured: contrasts of all columns, round by round, then all counts together."""
        found: list[MeasurementEvent] = []
        if self.cut:
            l2 = self.contrasts.distance(self.unit, self.cut)
            l1 = self.contrasts.distance_l1(self.unit, self.cut)
            found += [MeasurementEvent(Noise.GAUSSIAN, sigma, l1, l2) for sigma in self.sigmas]
        if self.discovered:
            found.append(batch_event(Noise.GAUSSIAN, self.sigma, self.discovered, self.unit))
        return Events.of_measurements(*found)

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
        precision = math.fsum(1.0 / sigma**2 for sigma in self.sigmas)
        per_sigma = self.contrasts.deviations(self.unit).max() / self.contrasts.distance(self.unit)
        return float(per_sigma / math.sqrt(precision))

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
        bins: of a column of numbers.
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    cut = whole("cut", cut, 0)
    contrasts = contrasts_for(bins, unit.neighbours)
    discovered = whole("discovered", discovered, 0)
    if not cut + discovered:
        raise ParameterError(
            "nothing has to be found: every domain is declared, so the declaration is a schema "
            "already, and costs nothing"
        )
    slack = SHARE_OF_SLACK * delta if discovered else 0.0
    mu = mu_of(epsilon, delta - slack) * _KEPT_BACK
    wanted = WEIGHT_OF_VALUES * discovered
    share = wanted / (wanted + cut)
    sigmas, sigma, threshold = [], 0.0, 0
    if cut:
        l2 = contrasts.distance(unit, cut)
        sigmas = [sigma_for(mu, l2, (1.0 - share) * part) for part in round_shares()]
    if discovered:
        sigma = sigma_for(mu, math.sqrt(discovered) * unit.table_l2, share)
        threshold = threshold_for(slack / discovered, sigma, unit)
    plan = SchemaPlan(unit, delta, bins, cut, discovered, tuple(sigmas), sigma, threshold)
    if plan.slack > slack or plan.epsilon > epsilon:
        raise ParameterError(f"epsilon = {epsilon:g} is too small for this schema")
    return plan
