"""What PrivBayes spends: the range of a choice, and the noise of the tables."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import Cost, Floats
from dualquery.baselines.choosing import weighed
from dualquery.baselines.spending import choice_range, noise_for, planned, stated
from dualquery.privacy.events import Events, Noise
from dualquery.privacy.measuring import batch_event
from dualquery.privacy.neighbours import Neighbours, rounding_charge
from dualquery.privacy.shards import Shard


def score_sensitivity(rows: int, neighbours: Neighbours) -> float:
    """By how much a record can change the score of a pair, which is counted in records.

    The score is ½·Σ|c(x,π) − c(x)·c(π)/n|. Replacing a record changes it by at most 3 + 2/n, adding
    or removing one by less than 2 (``docs/proofs/baselines.md``).

    Args:
        rows: n, if records are replaced.
        neighbours: which tables the promise compares.
    """
    return 3.0 + 2.0 / rows if neighbours is Neighbours.REPLACE_ONE else 2.0


def score_limit(rows: int, neighbours: Neighbours) -> float:
    """The largest score that counts: n, or twice the public reference where n is private."""
    return float(rows) if neighbours is Neighbours.REPLACE_ONE else 2.0 * rows


@dataclass(frozen=True)
class Prices:
    """What the choices and the tables cost.

    Guarantee: a choice with weights exp(`choice`·score) is one draw of bounded range
    2·`choice`·Δ plus the rounding charge, Δ the sensitivity of a score. The d tables are
    d marginals with noise of one scale.

    Attributes:
        choice: the factor of a score in the exponent; 0 if nothing is chosen.
        noise: Gaussian if δ > 0, else Laplace.
        scale: of the noise in a cell.
        events: the whole run, as accountants read it.
        neighbours: which tables the promise compares.
    """

    choice: float
    noise: Noise
    scale: float
    events: Events
    neighbours: Neighbours

    @classmethod
    def of(
        cls,
        epsilon: float,
        delta: float,
        *,
        rows: int,
        tables: int,
        choices: int,
        share: float,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
    ) -> Prices:
        """Spend (ε, δ) on so many choices and tables.

        Args:
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            rows: the public n, or the reference n0.
            tables: how many are measured.
            choices: how many are made; if none, the tables take the whole budget.
            share: the part of the budget that the choices take.
            neighbours: which tables the promise compares.
        """
        share = share if choices else 0.0
        epsilon = planned(epsilon)
        l1, l2 = tables * neighbours.table_l1, math.sqrt(tables) * neighbours.table_l2
        noise, scale = noise_for(epsilon, delta, l1=l1, l2=l2, share=1.0 - share)
        choice = wide = 0.0
        if choices:
            wide = choice_range(epsilon, delta, choices=choices, share=share)
            reach = score_sensitivity(rows, neighbours)
            # A score is at most n, or what it is cut to.
            charge = float(rounding_charge(wide / (2.0 * reach) * score_limit(rows, neighbours)))
            choice = (wide - charge) / (2.0 * reach)
            if choice <= 0.0:
                raise ParameterError(f"epsilon={epsilon:g} is too small for {choices} choices")
        events = Events(np.ones(choices, dtype=np.int64), np.full(choices, wide)).then(
            Events.of_measurements(batch_event(noise, scale, tables, neighbours))
        )
        return cls(choice, noise, scale, events, neighbours)

    @property
    def noise_size(self) -> float:
        """The mean size of the noise in a cell."""
        return self.scale * (math.sqrt(2.0 / math.pi) if self.noise is Noise.GAUSSIAN else 1.0)

    def weigh(self, scores: Floats, rows: int) -> Shard:
        """The pairs to choose from, with their exponents."""
        return weighed(self.choice * np.minimum(scores, score_limit(rows, self.neighbours)))

    def cost(self, delta: float, private: bool) -> Cost:
        """The statement of a run at these prices."""
        return stated(
            self.events,
            delta,
            f"exponential mechanism and exact {self.noise} noise",
            private=private,
            neighbours=self.neighbours,
        )
