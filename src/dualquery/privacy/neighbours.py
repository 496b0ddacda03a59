"""Which tables count as neighbours, and how far one draw can tell them apart.

Proofs: ``docs/proofs/neighbours.md`` (the range), ``docs/proofs/exact_draws.md`` (the
rounding charge).
"""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualquery.base.checks import choice, not_negative, whole

ROUNDING_CHARGE = 2.0**-36
"""Added to the range of every draw that costs anything, because computed weights are rounded."""

COVERED_TEMPERATURE = 2048.0
"""The largest temperature for which `ROUNDING_CHARGE` covers the rounding of the exponents."""

_SHORT = 1.0 - 1e-12
"""Steps towards a price stop a little below it, so that rounding cannot lift them above it."""


class Neighbours(StrEnum):
    """The unit of privacy: which tables a release must make hard to tell apart.

    ``replace-one``
        Tables of the same public size n that differ in the content of one record.
    ``add-remove``
        Tables of which one has one record more than the other. The size is private; scores are
        divided by a fixed public reference size n0.

    These are different promises, not two analyses of one promise. Replacing a record is removing
    one and adding one, so a run costs twice as much under replacement.
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @classmethod
    def parse(cls, name: str) -> Neighbours:
        """The member of that name, or an error that lists the names."""
        return choice("neighbours", name, cls)

    @property
    def table_l1(self) -> float:
        """The largest L1 distance between neighbours' counts of a marginal."""
        return 2.0 if self is Neighbours.REPLACE_ONE else 1.0

    @property
    def table_l2(self) -> float:
        """The same in L2. Proof: ``docs/proofs/rounded_gaussian.md``."""
        # The float that is nearest to √2 is above it.
        return math.sqrt(2.0) if self is Neighbours.REPLACE_ONE else 1.0

    def ideal_range(
        self, temperatures: ArrayLike, rows: int, influence: int = 1
    ) -> NDArray[np.float64]:
        """The bounded range of one draw from exact weights at each temperature.

        A draw picks action a with probability proportional to exp(L_a), where
        L_q = β·(q(D) − a_q) for a query and the mirrored value for its negation. The bounded
        range is the largest minus the smallest change of L between neighbours, over all actions:
        2β/n for ``replace-one`` and β/n0 for ``add-remove`` (with negated counts |D| − c). If
        neighbours differ in g parts of a count, it is g times as large.

        Args:
            temperatures: β, one or more.
            rows: n or n0.
            influence: g, by how much neighbours can change a count.
        """
        rows = whole("rows", rows)
        beta = np.asarray(temperatures, dtype=np.float64)
        bad = ~(np.isfinite(beta) & (beta >= 0.0))
        if np.any(bad):
            not_negative("temperature", np.atleast_1d(beta)[np.atleast_1d(bad)][0])
        factor = 2.0 if self is Neighbours.REPLACE_ONE else 1.0
        return whole("influence", influence) * factor * beta / rows

    def draw_range(
        self, temperatures: ArrayLike, rows: int, influence: int = 1
    ) -> NDArray[np.float64]:
        """The range of one draw as it is computed: the ideal range plus the rounding charge.

        At temperature 0 all weights are equal, whatever the table, so the range is 0. What rounding
        adds does not depend on how far neighbours are apart, so it is charged once.

        Args:
            temperatures: β, one or more.
            rows: n or n0.
            influence: by how much neighbours can change a count.
        """
        beta = np.asarray(temperatures, dtype=np.float64)
        ideal = self.ideal_range(beta, rows, influence)
        return np.where(beta > 0.0, ideal + rounding_charge(beta), 0.0)

    def rescaled(self, temperature: float, rows: int, reference: int, influence: int = 1) -> float:
        """The temperature that has no larger range with another divisor than it was charged for.

        The ideal range stays the same if the temperature grows as the divisor does. The rounding
        charge does not: it grows with the temperature, so what is added to it is taken off.

        Args:
            temperature: the temperature that is charged.
            rows: the divisor that it is charged for.
            reference: the divisor that scores really have; a public number.
            influence: by how much neighbours can change a count.
        """
        paid = float(self.draw_range(temperature, rows, influence))
        scaled = temperature * (whole("reference", reference) / rows)
        while (cost := float(self.draw_range(scaled, reference, influence))) > paid:
            scaled *= (paid / cost) * _SHORT
        return scaled


def rounding_charge(temperatures: ArrayLike) -> NDArray[np.float64]:
    """What the rounding of exponents and weights can add to the range of one draw.

    2⁻³⁶ for temperatures up to 2048. Above that, exponents and their rounding errors grow in
    proportion to the temperature, and so does the charge.
    """
    beta = np.asarray(temperatures, dtype=np.float64)
    return ROUNDING_CHARGE * np.maximum(1.0, beta / COVERED_TEMPERATURE)
