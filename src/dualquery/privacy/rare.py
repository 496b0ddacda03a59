"""Rare cells with exact noise: what a record is charged is bounded, and only that is paid for.

First the table says, with noise, how much its records are charged: a histogram, which costs as much
as one marginal. It decides the most that a record may be charged. Records that would be charged
more count in some of their cells only. Then the cells are counted and get their noise. A record
changes cells whose weights add up to at most that bound, whatever the number of cells
(``docs/proofs/rare_cells.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError
from dualquery.base.stored import Array, Arrays
from dualquery.privacy.choosing import Choice
from dualquery.privacy.events import MeasurementEvent, Noise
from dualquery.privacy.measuring import Measurement, batch_event
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.noise import SMALLEST_SIGMA, rounded_gaussian
from dualquery.privacy.sources import RandomSource
from dualquery.privacy.unit import Unit
from dualquery.workloads.rare import RareCells

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_ROUNDED_UP = 1.0 + 2.0**-51
"""More than a root, a quotient and a product are off by rounding, together."""

FINE, MIDDLE, COARSE = 1.03, 1.06, 1.5
"""How much wider each bin of charges is than the one before: up to twice what a record is expected
to be charged, up to eight times, and beyond."""

CUT, LOST = 0.005, 0.01
"""The share of records that may be charged less than their cells, and the share of all charges that
they may lose by that, as far as noise lets it be seen."""

FEW = 5.0
"""So many times the noise of a count, and no more records, may be cut. In a large table 0.5 % of
the records would be many beside the noise of the cells, and no interval would know of it."""

SURE = 3.0
"""Standard deviations of noise that a number of records is above if it is seen. The sums from the
top down to every bin are compared, and the largest of so many is above two often enough."""


@dataclass(frozen=True, eq=False)
class Charges:
    """How many records are charged how much for some rare cells, with noise.

    Attributes:
        cells: which.
        edges: the records of bin i are charged from `edges[i]` up to `edges[i + 1] − 1`.
        counts: the noisy number of records of each bin.
        scale: σ of their noise.
    """

    cells: RareCells
    edges: Int64
    counts: Int64
    scale: float

    def most(self, total: float, least: float) -> int:
        """The largest charge with which nearly all records count in all their cells.

        Bins are added up from the top, until they hold more records than may be cut, or until what
        they would lose is more than may be lost; both beyond what noise alone would show.

        Args:
            total: about how many records there are.
            least: where the charges of independent attributes end; noise may hide so much.
        """
        above = np.cumsum(self.counts[::-1])
        noise = SURE * self.scale * np.sqrt(np.arange(1, len(above) + 1))
        many = above > min(CUT * total, FEW * self.scale) + noise
        lost, unsure = self._lost()
        much = lost > LOST * self._charged() + SURE * unsure
        seen = np.flatnonzero(many | much)
        bins = seen[0] if len(seen) else len(above) - 1
        return max(1, int(self.edges[len(self.counts) - bins]) - 1, math.ceil(least))

    def _middles(self) -> Floats:
        return 0.5 * (self.edges[:-1] + self.edges[1:] - 1).astype(np.float64)

    def _charged(self) -> float:
        """About what all records together are charged."""
        return max(0.0, float(self.counts @ self._middles()))

    def _lost(self) -> tuple[Floats, Floats]:
        """What would be lost if the last bin were cut to where it begins, the last two, and so on.

        The second array is the standard deviation of each.
        """
        middles, begins = self._middles()[::-1], self.edges[:-1][::-1]
        counts = self.counts[::-1].astype(np.float64)
        ones = np.arange(1, len(counts) + 1)
        lost = np.cumsum(counts * middles) - begins * np.cumsum(counts)
        # Σ (m − b)² over the bins so far.
        squares = np.cumsum(middles**2) - 2.0 * begins * np.cumsum(middles) + ones * begins**2
        return lost, self.scale * np.sqrt(np.maximum(squares, 0.0))

    def events(self, neighbours: Neighbours | Unit) -> tuple[MeasurementEvent, ...]:
        """What the charges cost: one marginal."""
        return (batch_event(Noise.GAUSSIAN, self.scale, 1, neighbours),)

    def to_arrays(self) -> dict[str, Array]:
        """The charges as arrays, for files."""
        return {
            **_arrays_of(self.cells),
            "edges": self.edges,
            "counts": self.counts,
            "scale": np.array(self.scale),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Charges:
        """The inverse of `to_arrays`."""
        edges, counts = arrays["edges"], arrays["counts"]
        whole = all(one.dtype.kind in "iu" for one in (edges, counts))
        if not whole or edges.ndim != 1 or counts.shape != (len(edges) - 1,) or not len(counts):
            raise ParameterError("expected a noisy number of records per bin of charges")
        return cls(_cells_of(arrays), edges, counts, _number(arrays["scale"]))


def edges_of(expected: float, heaviest: int) -> Int64:
    """The edges of bins of charges, from 0 to above the largest that there can be.

    Args:
        expected: what a record is expected to be charged.
        heaviest: what a record would be charged that is in all cells.
    """
    edge, edges = max(1.0, 0.5 * expected), [0]
    while edge <= heaviest:
        if round(edge) > edges[-1]:
            edges.append(round(edge))
        wider = FINE if edge < 2 * expected else MIDDLE if edge < 8 * expected else COARSE
        edge = max(edge * wider, edge + 1.0)
    return np.array([*edges, heaviest + 1], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Rare:
    """The noisy counts of some rare cells, measured together.

    Attributes:
        cells: which.
        most: the most that a record is charged; it counts in no more cells than that pays for.
        scale: σ of the noise of a cell of weight 1; of a cell of weight w it is σ/√w.
        counts: the noisy count of each cell.
    """

    cells: RareCells
    most: int
    scale: float
    counts: Int64

    @property
    def variances(self) -> Floats:
        """The variance of the noise in each cell."""
        return self.scale**2 / self.cells.weights + 1.0 / 12.0

    def events(self, neighbours: Neighbours | Unit) -> tuple[MeasurementEvent, ...]:
        """What the cells cost: as many marginals as a record may be charged."""
        return (batch_event(Noise.GAUSSIAN, self.scale, self.most, neighbours),)

    def to_arrays(self) -> dict[str, Array]:
        """The measurement as arrays, for files."""
        return {
            **_arrays_of(self.cells),
            "most": np.array(self.most),
            "scale": np.array(self.scale),
            "counts": self.counts,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Rare:
        """The inverse of `to_arrays`."""
        cells, counts, most = _cells_of(arrays), arrays["counts"], arrays["most"]
        if counts.shape != (len(cells),) or any(
            one.dtype.kind not in "iu" for one in (counts, most)
        ):
            raise ParameterError(f"expected {len(cells)} noisy counts, found {counts.shape}")
        return cls(cells, int(_number(most)), _number(arrays["scale"]), counts)


def _arrays_of(cells: RareCells) -> dict[str, Array]:
    return {
        "attributes": cells.attributes,
        "rare_codes": cells.codes,
        "weights": cells.weights,
    }


def _cells_of(arrays: Arrays) -> RareCells:
    attributes, codes, weights = (arrays[n] for n in ("attributes", "rare_codes", "weights"))
    whole = all(one.dtype.kind in "iu" for one in (attributes, codes, weights))
    if not whole or codes.ndim != 1:
        raise ParameterError("expected rare cells of attributes that have a rare code")
    return RareCells(attributes, codes, weights)


def _number(array: Array) -> float:
    if array.shape != () or not array > 0:
        raise ParameterError("expected one positive number for the scale, and for the bound")
    return float(array)


Noisy = Measurement | Charges | Rare
"""Counts with noise."""

Measured = Noisy | Choice
"""What one step measured, or which tables it chose."""


def read_measured(arrays: Arrays) -> Measured:
    """A measurement or a choice from its arrays, of whichever kind."""
    if "candidates" in arrays:
        return Choice.from_arrays(arrays)
    if "rare_codes" not in arrays:
        return Measurement.from_arrays(arrays)
    return Charges.from_arrays(arrays) if "edges" in arrays else Rare.from_arrays(arrays)


def measure_charges(
    counts: Int64, cells: RareCells, edges: Int64, scale: float, source: RandomSource
) -> Charges:
    """Add exact noise to the private histogram of charges.

    Args:
        counts: private numbers of records, one per bin.
        cells: what records are charged for.
        edges: of the bins; a function of what was released before.
        scale: σ of the noise.
        source: where random words come from; only the operating system's source is private.
    """
    if counts.shape != (len(edges) - 1,):
        raise ParameterError(f"expected {len(edges) - 1} counts, found {counts.shape}")
    return Charges(cells, edges, counts + rounded_gaussian(scale, len(counts), source), scale)


def measure_rare(
    counts: Int64,
    cells: RareCells,
    most: int,
    scale: float,
    source: RandomSource,
) -> Rare:
    """Add exact noise to private counts of rare cells.

    Guarantee: the result costs what its events say, if no record counts in cells whose weights add
    up to more than `most`.

    Args:
        counts: private, one per cell.
        cells: which; a function of what was released before.
        most: the most that a record was charged.
        scale: σ of the noise of a cell of weight 1.
        source: where random words come from; only the operating system's source is private.
    """
    if counts.shape != (len(cells),):
        raise ParameterError(f"expected {len(cells)} counts, found {counts.shape}")
    noisy = counts.copy()
    for weight in np.unique(cells.weights).tolist():
        chosen = np.flatnonzero(cells.weights == weight)
        noisy[chosen] += rounded_gaussian(cell_scale(scale, weight), len(chosen), source)
    return Rare(cells, most, scale, noisy)


def cell_scale(scale: float, weight: int) -> float:
    """σ/√w, rounded up: with less noise a cell would cost more than its weight.

    It is never below what noise can be drawn for: a run must not stop at a huge budget's weights.
    """
    if weight == 1:
        return scale
    return max(SMALLEST_SIGMA, scale / math.sqrt(weight) * _ROUNDED_UP)
