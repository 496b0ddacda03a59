"""Whole marginals with exact noise: counts go in, a measurement comes out.

The cells of a marginal partition the records, so one record changes at most two of its counts,
and a batch of T marginals at most two per marginal. A batch is one event, whatever the number of
its cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError
from dualquery.base.ragged import taken
from dualquery.base.stored import Array, Arrays
from dualquery.domain.schema import Schema
from dualquery.privacy.events import MeasurementEvent, Noise
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.noise import discrete_laplace, rounded_gaussian
from dualquery.privacy.sources import RandomSource
from dualquery.privacy.unit import Unit
from dualquery.workloads.marginals import Groups, Marginals

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Measurement:
    """The noisy counts of some marginals, measured together.

    Attributes:
        marginals: which tables.
        noise: which noise every cell has.
        scale: σ of Gaussian noise, b of Laplace noise.
        counts: the noisy counts of all cells, laid end to end.
        expected: the share of each cell by a public start; not a number where it does not say.
            None without a start.
        parts: per cell, its variance in units of one noisy count's: how many counts it is the sum
            of, if it is a sum. None if it is one count.
    """

    marginals: Marginals
    noise: Noise
    scale: float
    counts: Int64
    expected: npt.NDArray[np.float64] | None = None
    parts: npt.NDArray[np.integer | np.floating] | None = None

    @property
    def variance(self) -> float:
        """The variance of the noise in one count."""
        if self.noise is Noise.GAUSSIAN:
            return self.scale**2 + 1.0 / 12.0
        return 0.5 / math.sinh(0.5 / self.scale) ** 2

    @property
    def variances(self) -> npt.NDArray[np.float64]:
        """The variance of the noise in each cell."""
        found = np.full(len(self.counts), self.variance)
        return found if self.parts is None else found * self.parts

    def in_codes(self, schema: Schema) -> Measurement:
        """One-way tables of sub-bins as tables of bins: counts added up, and so is their noise.

        Other tables are returned as they are.
        """
        fine, measured = schema.fine, self.marginals
        if measured.arity > 1 or np.array_equal(measured.groups.code_start, schema.code_start):
            return self
        marginals = Marginals(Groups.single(schema), measured.attributes)
        sizes = np.diff(measured.start)
        attribute = np.repeat(measured.attributes[:, 0], sizes)
        cell = np.arange(measured.cells) - np.repeat(measured.start[:-1], sizes)
        code = schema.code_of_fine[fine.code_start[attribute] + cell]
        place = np.repeat(marginals.start[:-1], sizes) + code - schema.code_start[attribute]
        counts = np.zeros(marginals.cells, dtype=np.int64)
        np.add.at(counts, place, self.counts)
        parts = np.bincount(place, minlength=marginals.cells)
        return Measurement(marginals, self.noise, self.scale, counts, parts=parts)

    def of_tables(self, chosen: npt.NDArray[np.integer]) -> Measurement:
        """Some of the tables, as a fit reads them; what they cost is that of all together."""
        _, cells = taken(self.marginals.start, chosen)
        return replace(
            self,
            marginals=Marginals(self.marginals.groups, self.marginals.attributes[chosen]),
            counts=self.counts[cells],
            expected=None if self.expected is None else self.expected[cells],
            parts=None if self.parts is None else self.parts[cells],
        )

    def event(self, neighbours: Neighbours | Unit) -> MeasurementEvent:
        """What the measurement costs, as accountants read it."""
        return batch_event(self.noise, self.scale, len(self.marginals), neighbours)

    def events(self, neighbours: Neighbours | Unit) -> tuple[MeasurementEvent, ...]:
        """The same as the events of a step: one."""
        return (self.event(neighbours),)

    def to_arrays(self) -> dict[str, Array]:
        """The measurement as arrays, for files."""
        groups = self.marginals.groups
        return {
            "attributes": self.marginals.attributes,
            "code_start": groups.code_start,
            "of_code": groups.of_code,
            "sizes": groups.sizes,
            "counts": self.counts,
            "scale": np.array(self.scale),
            "laplace": np.array(self.noise is Noise.LAPLACE),
            **({} if self.expected is None else {"expected": self.expected}),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Measurement:
        """The inverse of `to_arrays`."""
        groups = Groups(arrays["code_start"], arrays["of_code"], arrays["sizes"])
        marginals = Marginals(groups, arrays["attributes"])
        if arrays["counts"].shape != (marginals.cells,):
            raise ParameterError(
                f"expected {marginals.cells} noisy counts, found {arrays['counts'].shape}"
            )
        scale, laplace = arrays["scale"], arrays["laplace"]
        if scale.shape != () or laplace.shape != () or laplace.dtype != np.bool_:
            raise ParameterError("expected one scale and one kind of noise for all tables")
        expected = arrays.get("expected")
        if expected is not None and expected.shape != (marginals.cells,):
            raise ParameterError(f"expected a share per cell, found {expected.shape}")
        noise = Noise.LAPLACE if laplace else Noise.GAUSSIAN
        return cls(marginals, noise, float(scale), arrays["counts"], expected)


def batch_event(
    noise: Noise, scale: float, tables: int, neighbours: Neighbours | Unit
) -> MeasurementEvent:
    """The event of `tables` marginals measured with noise of the same scale.

    Each of them moves by at most one table's sensitivity, so together they move by √T of it in L2
    and by T of it in L1.

    Args:
        noise: its kind.
        scale: of the noise in one cell.
        tables: T, how many marginals.
        neighbours: the unit of privacy.
    """
    return MeasurementEvent(
        noise, scale, tables * neighbours.table_l1, math.sqrt(tables) * neighbours.table_l2
    )


def measure(
    counts: Int64, marginals: Marginals, noise: Noise, scale: float, source: RandomSource
) -> Measurement:
    """Add exact noise to private counts.

    Guarantee: the result costs what its event says, whatever the counts.

    Args:
        counts: private counts of all cells, laid end to end.
        marginals: the tables they are the cells of; a function of what was released before.
        noise: which noise to add.
        scale: σ of Gaussian noise, b of Laplace noise.
        source: where random words come from; only the operating system's source is private.
    """
    if counts.shape != (marginals.cells,):
        raise ParameterError(f"expected {marginals.cells} counts, found {counts.shape}")
    draw = rounded_gaussian if noise is Noise.GAUSSIAN else discrete_laplace
    return Measurement(marginals, noise, scale, counts + draw(scale, len(counts), source))
