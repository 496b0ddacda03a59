"""How two columns are known together: by an edge of the model, by a measured table, or by neither.

Errors hang on that more than on anything else. What shrinkage smooths is surer than what was
measured, and an edge is not smoothed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.model.forest.trees import Trees
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.workload import Workload

APART, TOGETHER, JOINED = range(3)
"""Neither measured in one table nor joined; measured; joined by an edge."""

PAIR_KINDS = 3

WIDEST = 2_000
"""With more attributes no pairs are told apart."""


@dataclass(frozen=True, eq=False)
class PairKinds:
    """The kind of every pair of attributes.

    Attributes:
        of_pair: a symmetric matrix; None if all pairs are apart.
    """

    of_pair: npt.NDArray[np.uint8] | None = None

    @classmethod
    def of(cls, attributes: int, measured: Iterable[Marginals], trees: Trees | None) -> PairKinds:
        """The kinds of all pairs.

        Args:
            attributes: how many there are.
            measured: the tables that were measured.
            trees: which attributes are joined; None without edges.
        """
        larger = [one.attributes for one in measured if one.arity > 1]
        if attributes > WIDEST or (trees is None and not larger):
            return cls()
        found = np.zeros((attributes, attributes), dtype=np.uint8)
        for sets in larger:
            for i, j in combinations(range(sets.shape[1]), 2):
                found[sets[:, i], sets[:, j]] = TOGETHER
        if trees is not None:
            found[trees.children, trees.parents] = JOINED
        return cls(np.maximum(found, found.T))

    def of_set(self, attributes: Iterable[int]) -> int:
        """The largest kind among the pairs of some attributes; of three or more, not apart.

        What fits miss of three columns hangs little on which pairs of them were measured.
        """
        if self.of_pair is None:
            return APART
        named = sorted(set(attributes))
        least = TOGETHER if len(named) > 2 else APART
        return int(self.of_pair[np.ix_(named, named)].max(initial=least))

    def of_queries(self, workload: Workload) -> npt.NDArray[np.int64]:
        """The same for every query."""
        found = np.zeros(len(workload), dtype=np.int64)
        if self.of_pair is None:
            return found
        matrix = workload.sorted_terms()
        named = workload.literals.attribute[np.maximum(matrix, 0) >> 1]
        for i, j in combinations(range(matrix.shape[1]), 2):
            both = (matrix[:, i] >= 0) & (matrix[:, j] >= 0)
            kind = np.where(both, self.of_pair[named[:, i], named[:, j]], APART)
            found = np.maximum(found, kind)
        return np.where(np.diff(workload.start) > 2, np.maximum(found, TOGETHER), found)

    def among(self, attributes: Sequence[int]) -> npt.NDArray[np.uint8]:
        """The kinds of the pairs of some attributes, those of the first one first."""
        if self.of_pair is None:
            return np.empty(0, dtype=np.uint8)
        chosen = self.of_pair[np.ix_(attributes, attributes)]
        return chosen[np.triu_indices(len(chosen), 1)]
