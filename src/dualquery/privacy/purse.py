"""A budget cut into shares: how much noise, or what temperature, a share of it buys.

Under each accountant something adds up: μ² for the Gaussian one, ρ for the zero-concentrated one,
ε for the pure one. A share is a part of that. Scales are rounded up and temperatures down, so
shares that add up to one never cost more than the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from dualquery.base.errors import ParameterError
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.accountants.zcdp import rho_of
from dualquery.privacy.calibration import Budget
from dualquery.privacy.choosing import choice_range
from dualquery.privacy.events import Noise
from dualquery.privacy.neighbours import ROUNDING_CHARGE
from dualquery.privacy.scales import scale_for, sigma_for, sigma_for_rho

COVERED = ("gaussian", "zcdp", "pure")
"""The accountants under which whole tables can be measured."""

_KEPT_BACK = 1.0 - 1e-9
"""Of the whole, so that sums of rounded shares stay within it."""


@dataclass(frozen=True)
class Purse:
    """A budget whose accountant covers measured tables."""

    budget: Budget

    def __post_init__(self) -> None:
        if self.budget.accountant not in COVERED:
            raise ParameterError(
                f"accountant = {self.budget.accountant!r} does not cover measured tables, "
                "because its theorem is about draws alone; "
                f"expected one of {', '.join(COVERED)}"
            )

    @property
    def noise(self) -> Noise:
        """Laplace noise for a pure budget, Gaussian noise for the others."""
        return Noise.LAPLACE if self.budget.accountant == "pure" else Noise.GAUSSIAN

    @cached_property
    def _whole(self) -> float:
        """μ, ρ or ε: what there is to spend."""
        budget = self.budget
        if budget.accountant == "gaussian":
            return mu_of(budget.epsilon, budget.delta) * _KEPT_BACK
        if budget.accountant == "zcdp":
            return rho_of(budget.epsilon, budget.delta) * _KEPT_BACK
        return budget.epsilon * _KEPT_BACK

    def scale(self, share: float, tables: int) -> float:
        """The scale of the noise with which so many tables cost at most this share.

        Args:
            share: of what adds up.
            tables: how many tables are measured together.
        """
        l2 = math.sqrt(tables) * self.budget.unit.table_l2
        if self.budget.accountant == "gaussian":
            return sigma_for(self._whole, l2, share)
        if self.budget.accountant == "zcdp":
            return sigma_for_rho(self._whole, l2, share)
        return scale_for(self._whole, tables * self.budget.unit.table_l1, share)

    def deviation(self, share: float, tables: int) -> float:
        """About the standard deviation of that noise."""
        scale = self.scale(share, tables)
        return scale if self.noise is Noise.GAUSSIAN else math.sqrt(2.0) * scale

    def temperature(self, share: float, draws: int) -> float:
        """The temperature at which so many draws cost at most this share.

        Args:
            share: of what adds up.
            draws: how many draws the round makes.
        """
        allowed, budget = self._range(share, draws), self.budget
        slope = float(budget.unit.ideal_range([1.0], budget.rows)[0])
        found = allowed / slope
        for _ in range(200):  # the charge for rounding is small: a step or two is enough
            charged = float(budget.unit.draw_range([found], budget.rows)[0])
            if charged <= allowed * _KEPT_BACK:
                return found
            found *= (allowed / charged) * _KEPT_BACK
        raise ParameterError(
            f"a share of {share:g} of the budget is too small for {draws} draws on "
            f"{budget.rows} rows; raise epsilon"
        )

    def choice_temperature(self, share: float, draws: int) -> float:
        """The temperature, per count, at which choosing so many tables costs at most this share.

        Tables are drawn one after the other, so every draw is an event of its own: s of them cost
        s·r²/2 of μ², not (s + 1)·r²/4.

        Args:
            share: of what adds up.
            draws: how many tables are chosen.
        """
        unit = self.budget.unit
        allowed = self._range(share / draws, 1) * _KEPT_BACK
        slope = choice_range(1.0, unit)
        found = min(allowed / slope, (allowed - ROUNDING_CHARGE) / slope)
        if found <= 0.0 or choice_range(found, unit) > allowed:
            raise ParameterError(
                f"a share of {share:g} of the budget is too small to choose {draws} tables; "
                "raise epsilon"
            )
        return found

    def _range(self, share: float, draws: int) -> float:
        """The range that each of so many independent draws may have, to cost this share."""
        if self.budget.accountant == "gaussian":
            return 2.0 * math.sqrt(share / (draws + 1)) * self._whole
        if self.budget.accountant == "zcdp":
            return math.sqrt(8.0 * share * self._whole / draws)
        return share * self._whole / draws
