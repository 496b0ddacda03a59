"""sepFEM (Vietri, Tian, Bun, Steinke and Wu 2020): FEM with a perturbed separator.

Private side: it reads counts. Draws and cost are those of FEM. The data player perturbs the queries
of a separator, a small set of queries that tells any two records apart, by Laplace weights of
either sign. FEM puts a positive weight on each value. Here the separator is "attribute = value" for
every value except the first one of each attribute.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dualquery.baselines.baseline import Floats
from dualquery.baselines.fem import Fem, Leader, Settings
from dualquery.oracles.oracle import Oracle
from dualquery.workloads.workload import Workload


class SeparatorLeader(Leader):
    """The data player: the best response to all draws and a perturbed separator."""

    def __init__(self, workload: Workload, settings: Settings, oracle: Oracle | None) -> None:
        super().__init__(workload, settings, oracle)
        codes = self.singles.literals.codes
        # Two records that differ in an attribute cannot both have its first value.
        self.singles = self.singles.take(np.flatnonzero(codes > 0))

    def law(self, generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
        return generator.laplace(0.0, self._settings.perturbation, shape)


@dataclass(frozen=True, eq=False)
class SepFem(Fem):
    """The records of all rounds; see `Fem`."""

    name: str = "sepfem"

    leader = SeparatorLeader
