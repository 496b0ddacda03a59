"""How a model is trained: components, steps and rates, from public quantities only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dualquery.base.checks import whole
from dualquery.domain.schema import Schema
from dualquery.model.stack import Stack
from dualquery.model.training import Ascent, Parameters

MOST_TABLE_ENTRIES = 32_768

SHARP = 200.0
"""Beyond this temperature rates fall in proportion: the draws then tell smaller errors apart than
full steps would leave behind."""


@dataclass(frozen=True)
class Schedule:
    """The training of a model during the game and after it.

    Within a round the rate falls from `rate` to a tenth of it and rises again with the next draws;
    a round whose draws show that the model lags behind has up to `most_passes` such passes. After
    the game the rate falls to zero over `final_steps`. `shrinkage` holds the components together;
    `noise` and `seed` place them at the start.
    """

    components: int
    round_steps: int = 15
    most_passes: int = 4
    final_steps: int = 150
    rate: float = 0.1
    noise: float = 0.3
    shrinkage: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("components", "round_steps", "most_passes"):
            whole(name, getattr(self, name))

    @classmethod
    def for_schema(cls, schema: Schema) -> Schedule:
        """The schedule for a table of this width."""
        return cls(components_for(int(schema.sizes.sum())), shrinkage=shrinkage_for(schema))

    def ascent(self, stack: Stack) -> Ascent:
        return Ascent(stack, self.components, self.shrinkage)

    def start(self, stack: Stack) -> Parameters:
        return Parameters.start(stack, self.components, self.noise, self.seed)

    def round_rates(self, temperature: float) -> list[float]:
        top = self.rate * _damping(temperature)
        return [top * (1.0 - 0.9 * step / self.round_steps) for step in range(self.round_steps)]

    def final_rates(self, temperature: float = 0.0) -> list[float]:
        """The last rates, after a fit that kept up with draws at this temperature."""
        top = self.rate * _damping(temperature)
        return [top * (1.0 - step / self.final_steps) for step in range(self.final_steps)]


def _damping(temperature: float) -> float:
    return min(1.0, SHARP / temperature) if temperature > 0 else 1.0


def components_for(codes: int) -> int:
    """As many components as keep the tables small: a power of two from 8 to 64."""
    fitting = 8
    while fitting < 64 and 2 * fitting * codes <= MOST_TABLE_ENTRIES:
        fitting *= 2
    return fitting


def extent(schema: Schema) -> float:
    """How much there is to learn about single attributes: Σ 2(1 − 1/v), v their sizes.

    That is one for a 0/1 column and nearly two for a large domain.
    """
    return float(np.sum(2.0 * (1.0 - 1.0 / schema.sizes)))


def shrinkage_for(schema: Schema) -> float:
    """Grows with the attributes a component can overfit, up to 200."""
    return min(extent(schema) / 6.0, 200.0)
