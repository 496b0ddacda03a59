"""What a run releases, as far as its privacy is concerned: draws, and measured counts.

A round of draws is a pair (s, r): s draws, each of bounded range r. A measurement is a vector of
counts with noise; it is described by its sensitivity and the scale of its noise. Accountants read
events. Events know nothing about accountants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualquery.base.checks import not_negative, positive, refusal, whole
from dualquery.base.errors import ParameterError
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.unit import Unit

_ROUNDED_UP = 1.0 + 1e-12
_STEEP = 1.0


class Noise(StrEnum):
    """The noise of a measurement."""

    GAUSSIAN = "gaussian"
    """Rounded Gaussian noise; its scale is σ."""
    LAPLACE = "laplace"
    """Discrete Laplace noise; its scale is b."""


@dataclass(frozen=True)
class MeasurementEvent:
    """Counts released with independent noise in every cell.

    Proofs: ``docs/proofs/rounded_gaussian.md``, ``docs/proofs/discrete_laplace.md``.

    Attributes:
        noise: which noise was added.
        scale: σ of Gaussian noise, b of Laplace noise.
        l1: the largest L1 distance between the counts of neighbours.
        l2: the largest L2 distance between them.
    """

    noise: Noise
    scale: float
    l1: float
    l2: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", Noise(self.noise))
        for name in ("scale", "l1", "l2"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    @classmethod
    def gaussian(
        cls, sigma: float, neighbours: Neighbours = Neighbours.REPLACE_ONE
    ) -> MeasurementEvent:
        """One marginal with rounded Gaussian noise; its cells partition the records."""
        scale = positive("sigma", sigma)
        return cls(Noise.GAUSSIAN, scale, neighbours.table_l1, neighbours.table_l2)

    @classmethod
    def laplace(
        cls, scale: float, neighbours: Neighbours = Neighbours.REPLACE_ONE
    ) -> MeasurementEvent:
        """One marginal with discrete Laplace noise; its cells partition the records."""
        return cls(Noise.LAPLACE, scale, neighbours.table_l1, neighbours.table_l2)

    @property
    def pure(self) -> float:
        """ε₀ = Δ₁/b for Laplace noise; infinite for Gaussian noise."""
        return math.inf if self.noise is Noise.GAUSSIAN else self.l1 / self.scale

    @property
    def mu_squared(self) -> float:
        """μ² = Δ₂²/σ²; for Laplace noise μ = 2·Φ⁻¹(e^{ε₀}/(1 + e^{ε₀})), rounded up."""
        if self.noise is Noise.GAUSSIAN:
            return (self.l2 / self.scale) ** 2
        return (2.0 * _normal_quantile_of_logistic(self.pure) * _ROUNDED_UP) ** 2

    @property
    def rho(self) -> float:
        """ρ = Δ₂²/(2σ²); for Laplace noise ρ = ε₀²/2."""
        cost = self.l2 / self.scale if self.noise is Noise.GAUSSIAN else self.pure
        return 0.5 * cost * cost

    def replaced(self) -> MeasurementEvent:
        """What this event of add-remove neighbours becomes if a record is replaced instead.

        Removing lowers counts and adding raises them, so the two changes are at an angle of at
        least 90 degrees when one is taken from the other: Δ₂ grows by √2 and Δ₁ by 2.
        """
        return replace(self, l1=2.0 * self.l1, l2=math.sqrt(2.0) * self.l2)


@dataclass(frozen=True)
class DrawEvent:
    """One round of draws: how many, and the bounded range of each."""

    draws: int
    range: float


@dataclass(frozen=True, eq=False)
class Events:
    """Rounds of draws, and measurements between them, in the order of their release.

    Attributes:
        draws: s_t, the number of draws of round t.
        ranges: r_t, the bounded range of one draw of round t. In a round of range 0 the
            distribution of the draws does not depend on the table, so the round costs nothing.
        measurements: the measurements, in the order of their release.
        after: for each measurement, how many rounds of draws were released before it.
    """

    draws: NDArray[np.int64]
    ranges: NDArray[np.float64]
    measurements: tuple[MeasurementEvent, ...] = ()
    after: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        draws = _whole_numbers(self.draws)
        ranges = np.array(self.ranges, dtype=np.float64, ndmin=1)
        if ranges.ndim != 1 or draws.shape != ranges.shape:
            raise ParameterError(
                f"draws of shape {draws.shape} and ranges of shape {ranges.shape}; "
                "expected one number of draws per range"
            )
        bad = ~(np.isfinite(ranges) & (ranges >= 0.0))
        if np.any(bad):
            not_negative("range", ranges[bad][0])
        after = tuple(whole("after", place, least=0) for place in self.after)
        measurements = tuple(self.measurements)
        if len(after) != len(measurements) or list(after) != sorted(after):
            raise ParameterError(
                f"{len(measurements)} measurements and after = {after}; expected one place per "
                "measurement, in order"
            )
        if after and after[-1] > draws.size:
            raise refusal("after", after[-1], f"at most {draws.size}, the rounds of draws")
        object.__setattr__(self, "measurements", measurements)
        object.__setattr__(self, "after", after)
        draws.flags.writeable = False
        ranges.flags.writeable = False
        object.__setattr__(self, "draws", draws)
        object.__setattr__(self, "ranges", ranges)

    @classmethod
    def of(
        cls,
        temperatures: ArrayLike,
        draws: ArrayLike,
        rows: int,
        neighbours: Neighbours | Unit = Neighbours.REPLACE_ONE,
    ) -> Events:
        """The events of a run that draws `draws[t]` actions at temperature `temperatures[t]`.

        Round t draws actions with log-weights ±β_t·(q(D) − a_q), where a_q is whatever the data
        player answered. The privacy of a round depends on nothing else, so these events describe
        the run of every data player.

        Args:
            temperatures: β_t, one per round.
            draws: s_t, one per round, or one number for all rounds.
            rows: the public n (replace-one) or the public reference n0 (add-remove).
            neighbours: the unit of privacy.
        """
        beta = np.atleast_1d(np.asarray(temperatures, dtype=np.float64))
        counts = _whole_numbers(draws)
        if counts.size == 1:
            counts = np.full(beta.shape, counts[0], dtype=np.int64)
        return cls(counts, neighbours.draw_range(beta, rows))

    @classmethod
    def of_measurements(cls, *measurements: MeasurementEvent) -> Events:
        """Measurements alone, in this order; put them between draws with `then`."""
        nothing = np.empty(0)
        return cls(nothing.astype(np.int64), nothing, measurements, (0,) * len(measurements))

    @classmethod
    def in_sequence(cls, *events: DrawEvent | MeasurementEvent) -> Events:
        """These events, in this order: the inverse of `in_order`."""
        drawn: list[DrawEvent] = []
        measured: list[MeasurementEvent] = []
        after: list[int] = []
        for one in events:
            if isinstance(one, DrawEvent):
                drawn.append(one)
            else:
                measured.append(one)
                after.append(len(drawn))
        return cls(
            np.array([one.draws for one in drawn], dtype=np.int64),
            np.array([one.range for one in drawn], dtype=np.float64),
            tuple(measured),
            tuple(after),
        )

    @property
    def costly(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draws and ranges, as floats, of the rounds of draws that cost anything.

        Measurements are not included. An accountant has to read them too, or refuse them.
        """
        keep = (self.draws > 0) & (self.ranges > 0.0)
        return self.draws[keep].astype(np.float64), self.ranges[keep]

    @property
    def mu_squared(self) -> float:
        """μ² of the whole run: ¼·Σ (s_t + 1)·r_t², plus the μ² of all measurements."""
        draws, ranges = self.costly
        drawn = float(np.sum((draws + 1.0) * ranges * ranges)) / 4.0
        return drawn + math.fsum(event.mu_squared for event in self.measurements)

    @property
    def rho(self) -> float:
        """ρ of the whole run: ⅛·Σ s_t·r_t², plus the ρ of all measurements."""
        draws, ranges = self.costly
        drawn = float(np.sum(draws * ranges * ranges)) / 8.0
        return drawn + math.fsum(event.rho for event in self.measurements)

    def replaced(self) -> Events:
        """What the events of an add-remove run become if a record is replaced instead."""
        return Events(
            self.draws,
            2.0 * self.ranges,
            tuple(event.replaced() for event in self.measurements),
            self.after,
        )

    def for_group(self, size: int) -> Events:
        """The events of the same run for tables that differ in `size` records instead of one.

        Change the records one after the other. Each step moves the exponents of a draw by values
        in an interval as long as its range, so all steps together move them by values in an
        interval `size` times as long; and measured counts move `size` times as far
        (``docs/proofs/composition.md``, Groups).
        """
        size = whole("size", size)
        return Events(
            self.draws,
            size * self.ranges,
            tuple(replace(e, l1=size * e.l1, l2=size * e.l2) for e in self.measurements),
            self.after,
        )

    def then(self, other: Events) -> Events:
        """The events of this run followed by another on the same table."""
        return Events(
            np.concatenate([self.draws, other.draws]),
            np.concatenate([self.ranges, other.ranges]),
            self.measurements + other.measurements,
            self.after + tuple(self.draws.size + place for place in other.after),
        )

    def in_order(self) -> Iterator[DrawEvent | MeasurementEvent]:
        """One event after another, as they were released."""
        done = 0
        for event, place in zip(self.measurements, self.after, strict=True):
            yield from self._rounds(done, place)
            yield event
            done = place
        yield from self._rounds(done, self.draws.size)

    def _rounds(self, first: int, last: int) -> Iterator[DrawEvent]:
        for draws, width in zip(self.draws[first:last], self.ranges[first:last], strict=True):
            yield DrawEvent(int(draws), float(width))

    def __len__(self) -> int:
        return int(self.draws.size) + len(self.measurements)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Events)
            and np.array_equal(self.draws, other.draws)
            and np.array_equal(self.ranges, other.ranges)
            and self.measurements == other.measurements
            and self.after == other.after
        )

    __hash__ = None  # type: ignore[assignment]


def record_player_temperatures(eta: ArrayLike, rounds: int | None = None) -> NDArray[np.float64]:
    """Temperatures of the classical game, in which the data player answers with records.

    The exponent of round t is Σ_{i<t} η_i·(q(D) − q(x^i)) = β_t·(q(D) − a_q) with
    β_t = Σ_{i<t} η_i and a_q the η-weighted average of the records so far. For a constant η that
    is β_t = η·(t−1): the first round is uniform and free.

    Args:
        eta: the learning rate, one number or one per round (the last one is never used).
        rounds: how many rounds; may be left out when `eta` has one entry per round.
    """
    rates = np.atleast_1d(np.asarray(eta, dtype=np.float64))
    bad = ~(np.isfinite(rates) & (rates > 0.0))
    if np.any(bad):
        positive("eta", rates[bad][0])
    if rounds is None:
        rounds = rates.size
    rounds = whole("rounds", rounds)
    if rates.size == 1:
        return float(rates[0]) * np.arange(rounds, dtype=np.float64)
    if rates.size != rounds:
        raise ParameterError(
            f"{rates.size} values of eta for rounds = {rounds}; expected one per round"
        )
    return np.concatenate([[0.0], np.cumsum(rates[:-1])])


def _normal_quantile_of_logistic(x: float) -> float:
    """Φ⁻¹(1/(1 + e^{−x})) for x > 0, without cancellation for small x or overflow for large x."""
    from scipy.special import erfinv, ndtri_exp

    if x < _STEEP:
        return math.sqrt(2.0) * float(erfinv(math.tanh(0.5 * x)))
    return -float(ndtri_exp(-x - math.log1p(math.exp(-x))))


def _whole_numbers(values: ArrayLike) -> NDArray[np.int64]:
    array = np.atleast_1d(np.asarray(values))
    if array.dtype.kind not in "iu":
        numbers = array.astype(np.float64)
        bad = ~(np.isfinite(numbers) & (numbers == np.floor(numbers)))
        if np.any(bad):
            whole("samples", numbers[bad][0], least=0)
    if np.any(array < 0):
        whole("samples", array[array < 0][0], least=0)
    return array.astype(np.int64)
