"""The paper's synthetic table: independent attributes, each with a bias of its own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.base.threads import over_ranges
from dualquery.paper.datasets.generated import GeneratedTable
from dualquery.rows.packed import Words


class BiasedTable(GeneratedTable):
    """Attribute i is on with probability `bias[i]`, uniform on the multiples of 2⁻¹⁶ in [0, 1]."""

    def __init__(self, rows: int, width: int, seed: int = 0) -> None:
        super().__init__(rows, width, seed)
        self._digits = np.random.default_rng(seed).integers(0, (1 << 16) + 1, width)

    @property
    def bias(self) -> npt.NDArray[np.float64]:
        shares: npt.NDArray[np.float64] = self._digits / 2.0**16
        return shares

    def _fill(self, attributes: npt.NDArray[np.int64], out: Words) -> None:
        from dualquery.paper.datasets._kernels import biased_columns

        seed = np.uint64(self.seed)

        def task(first: int, last: int) -> None:
            biased_columns(seed, attributes, self._digits, out, first, last)

        over_ranges(task, len(attributes), grain=8)
