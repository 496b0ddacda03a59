"""What a run releases, as far as its privacy is concerned: draws and their range, per round.

Events know nothing about what they cost; the accountants read them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualquery.errors import ParameterError
from dualquery.privacy._checks import whole
from dualquery.privacy.neighbours import Neighbours


@dataclass(frozen=True, eq=False)
class Events:
    """One entry per round: how many independent draws, and the bounded range of each.

    Attributes:
        draws: s_t, the number of draws of round t.
        ranges: r_t, the bounded range of one draw of round t. A round of range 0 is drawn from
            the same distribution whatever the table, and costs nothing under every accountant.
    """

    draws: NDArray[np.int64]
    ranges: NDArray[np.float64]

    def __post_init__(self) -> None:
        draws = _whole_numbers(self.draws)
        ranges = np.array(self.ranges, dtype=np.float64, ndmin=1)
        if ranges.ndim != 1 or draws.shape != ranges.shape:
            raise ParameterError(
                f"expected one number of draws per range, got draws of shape {draws.shape} "
                f"and ranges of shape {ranges.shape}"
            )
        bad = ~(np.isfinite(ranges) & (ranges >= 0.0))
        if np.any(bad):
            raise ParameterError(f"expected range={ranges[bad][0]} to be finite and >= 0")
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
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
    ) -> Events:
        """The events of a run that draws `draws[t]` actions at temperature `temperatures[t]`.

        Round t draws actions with log-weights ±β_t·(q(D) − a_q), where a_q is whatever the data
        player answered: that is the only thing the privacy of a round depends on, so one notion
        serves every player. `draws` may be one number for all rounds. `rows` is the public n
        (replace-one) or the public reference n0 (add-remove).
        """
        beta = np.atleast_1d(np.asarray(temperatures, dtype=np.float64))
        counts = _whole_numbers(draws)
        if counts.size == 1:
            counts = np.full(beta.shape, counts[0], dtype=np.int64)
        return cls(counts, neighbours.draw_range(beta, rows))

    @property
    def costly(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draws and ranges, as floats, of the rounds that cost anything."""
        keep = (self.draws > 0) & (self.ranges > 0.0)
        return self.draws[keep].astype(np.float64), self.ranges[keep]

    @property
    def mu_squared(self) -> float:
        """μ² = ¼·Σ (s_t + 1)·r_t², the square of the Gaussian parameter of the whole run."""
        draws, ranges = self.costly
        return float(np.sum((draws + 1.0) * ranges * ranges)) / 4.0

    @property
    def rho(self) -> float:
        """ρ = ⅛·Σ s_t·r_t², the zero-concentrated parameter of the whole run."""
        draws, ranges = self.costly
        return float(np.sum(draws * ranges * ranges)) / 8.0

    def doubled(self) -> Events:
        """The events of the same run for neighbours twice as far apart.

        For an add-remove run these are its events under replacement.
        """
        return Events(self.draws, 2.0 * self.ranges)

    def then(self, other: Events) -> Events:
        """The events of this run followed by another on the same table."""
        return Events(
            np.concatenate([self.draws, other.draws]), np.concatenate([self.ranges, other.ranges])
        )

    def __len__(self) -> int:
        return int(self.draws.size)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Events)
            and np.array_equal(self.draws, other.draws)
            and np.array_equal(self.ranges, other.ranges)
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
        raise ParameterError(f"expected eta={rates[bad][0]:g} to be finite and > 0")
    if rounds is None:
        rounds = rates.size
    rounds = whole("rounds", rounds)
    if rates.size == 1:
        return float(rates[0]) * np.arange(rounds, dtype=np.float64)
    if rates.size != rounds:
        raise ParameterError(f"expected one eta per round, got {rates.size} for rounds={rounds}")
    return np.concatenate([[0.0], np.cumsum(rates[:-1])])


def _whole_numbers(values: ArrayLike) -> NDArray[np.int64]:
    array = np.atleast_1d(np.asarray(values))
    if array.dtype.kind not in "iu":
        numbers = array.astype(np.float64)
        bad = ~(np.isfinite(numbers) & (numbers == np.floor(numbers)))
        if np.any(bad):
            raise ParameterError(f"expected samples={numbers[bad][0]} to be a whole number")
    if np.any(array < 0):
        raise ParameterError(f"expected samples={array[array < 0][0]} >= 0")
    return array.astype(np.int64)
