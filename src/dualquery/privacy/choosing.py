"""Tables chosen by draws: scores go in, a choice comes out.

A table's *score* is the distance of its counts from what a public model expects of them, less a
public *penalty*: what chance and the noise of measuring would show of a table that is as expected.
Tables are drawn one after the other, each with weight exp(β·score), and a table that was drawn is
drawn no more. Choosing is far cheaper than measuring, because a score adds up a whole table.

Expectations and penalties are whole numbers of 1/`FINENESS` of a count. So scores are exact, and
one record moves a score by what the proof says, to the last digit (``docs/proofs/choosing.md``).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import not_negative, whole
from dualquery.base.errors import ParameterError
from dualquery.base.stored import Array, Arrays
from dualquery.privacy._weights import BUCKETS, CLIP
from dualquery.privacy.events import DrawEvent
from dualquery.privacy.neighbours import ROUNDING_CHARGE, Neighbours
from dualquery.privacy.sampler import draw
from dualquery.privacy.shards import mantissas
from dualquery.privacy.sources import RandomSource
from dualquery.privacy.unit import Unit
from dualquery.workloads.marginals import Groups, Marginals, require_distinct

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FINENESS = 1 << 8
"""F: expectations are kept in so many parts of a count. A power of two, so that dividing by it is
exact. The expectations of a table of 256 cells are rounded by less than one count together."""

LARGEST = 1 << 60
"""Neither F times the counts of a table, nor its expectations, nor its penalty add up to more. So
no score and no difference of two scores overflows 64 bits."""

NONE = -1
"""Fills up the sets of a choice that have fewer attributes than the largest."""

_MEAN_OF_NORMAL = math.sqrt(2.0 / math.pi)
_LOG2_E = 1.4426950408889634
_DIGEST = 16


@dataclass(frozen=True, eq=False)
class Candidates:
    """The tables that can be chosen: pairs, triples, or both; a function of what was released.

    Attributes:
        tables: marginals, those of one number of attributes together. All of them, laid end to
            end, are numbered from 0.
    """

    tables: tuple[Marginals, ...]

    def __post_init__(self) -> None:
        arities = [one.arity for one in self.tables]
        if not len(self) or len(set(arities)) < len(arities):
            raise ParameterError(
                f"candidates of {arities} attributes; expected tables, those of one number of "
                "attributes together"
            )

    def __len__(self) -> int:
        return sum(len(one) for one in self.tables)

    @cached_property
    def attributes(self) -> Int32:
        """The attributes of every table, filled up with `NONE`."""
        width = max(one.arity for one in self.tables)
        return np.concatenate(
            [
                np.pad(one.attributes, ((0, 0), (0, width - one.arity)), constant_values=NONE)
                for one in self.tables
            ]
        ).astype(np.int32)

    @cached_property
    def digest(self) -> npt.NDArray[np.uint8]:
        """Tells these candidates from others. How codes are grouped does not enter."""
        content = np.ascontiguousarray(self.attributes, dtype="<i4")
        found = hashlib.blake2b(repr(content.shape).encode(), digest_size=_DIGEST)
        found.update(content.tobytes())
        return np.frombuffer(found.digest(), dtype=np.uint8)

    def batches(self, cells: int) -> Iterator[Marginals]:
        """The tables in order, about so many cells at a time; a larger table comes alone."""
        for one in self.tables:
            first = 0
            while first < len(one):
                last = int(np.searchsorted(one.start, one.start[first] + cells, side="right")) - 1
                last = max(last, first + 1)
                yield Marginals(one.groups, one.attributes[first:last])
                first = last


@dataclass(frozen=True, eq=False)
class Expected:
    """What some tables are compared with, in parts of 1/F of a count; public.

    Attributes:
        cells: F·N·a of every cell, rounded.
        penalty: F·b of every table, rounded.
    """

    cells: Int64
    penalty: Int64


@dataclass(frozen=True, eq=False)
class Against:
    """What candidates are scored against: public figures, from which `of` makes whole numbers.

    Attributes:
        shares: a, what the current model expects of each cell of some marginals, laid end to end.
        total: N, the public number of parts, or its public estimate.
        noise: σ of a cell, if the table is measured.
        chance: how much of what chance alone shows is taken off a score.
        penalty: how much of what noise will show is taken off.
        spread: the variance that chance gives to a count, per part; see `Unit.chance`.
    """

    shares: Callable[[Marginals], Floats]
    total: float
    noise: float
    chance: float = 1.0
    penalty: float = 0.5
    spread: float = 1.0

    def of(self, marginals: Marginals) -> Expected:
        """Expectations of all cells, and the penalty b of every table.

        b = √(2/π)·(chance·Σ√(spread·N·a) + penalty·σ·cells): the mean distance that chance, and
        the noise of measuring, would give to a table that is as expected.
        """
        shares, start = self.shares(marginals), marginals.start[:-1]
        if shares.shape != (marginals.cells,) or not np.all(np.isfinite(shares)):
            raise ParameterError(f"expected a share per cell, {marginals.cells}, each a number")
        counts = not_negative("total", self.total) * np.maximum(shares, 0.0)
        by_chance = self.chance * np.add.reduceat(np.sqrt(self.spread * counts), start)
        by_noise = self.penalty * self.noise * np.diff(marginals.start)
        cells = FINENESS * counts
        penalty = FINENESS * _MEAN_OF_NORMAL * (by_chance + by_noise)
        largest = np.maximum(np.add.reduceat(cells, start), np.abs(penalty)).max()
        if not largest < LARGEST:  # so that NaN is refused, too
            raise ParameterError(
                f"total = {self.total:g}, noise = {self.noise:g} are too large for exact scores; "
                f"expected below {LARGEST // FINENESS:,}"
            )
        return Expected(np.rint(cells).astype(np.int64), np.rint(penalty).astype(np.int64))


def scores_of(counts: Int64, marginals: Marginals, expected: Expected) -> Int64:
    """The private score of every table: Σ |F·c − F·N·a| − F·b, exactly.

    Guarantee: neighbours' scores are at most F times `table_l1` of the unit apart, because nothing
    but the counts depends on the rows.

    Args:
        counts: private counts of all cells, laid end to end.
        marginals: the tables they are the cells of.
        expected: what they are compared with; public.
    """
    if counts.shape != (marginals.cells,):
        raise ParameterError(f"expected {marginals.cells} counts, found {counts.shape}")
    start = marginals.start[:-1]
    # As floating-point numbers: whole ones would wrap around, and seem small.
    if not np.add.reduceat(counts.astype(np.float64), start).max() * FINENESS < LARGEST:
        raise ParameterError(f"a table counts {LARGEST // FINENESS:,} or more: too many to score")
    apart = np.abs(FINENESS * counts - expected.cells)
    found: Int64 = np.add.reduceat(apart, start) - expected.penalty
    return found


class Scored:
    """Tables as actions of the exact draw: their weights are exp(β·score/F), rounded as charged.

    The distance from the largest score is a difference of whole numbers. It is exact, so the
    weight of a table does not depend on how large all scores are. An action is a table; there are
    no negations, so all positions are even.
    """

    def __init__(self, scores: Int64, temperature: float) -> None:
        self._falls = np.maximum(-(temperature / FINENESS) * (scores.max() - scores), CLIP)
        self._buckets = (-_LOG2_E * self._falls).astype(np.int64)
        self._order = np.argsort(self._buckets, kind="stable")

    @property
    def queries(self) -> int:
        return len(self._falls)

    def largest(self) -> float:
        """The largest exponent: exponents are distances from it."""
        return 0.0

    def tally(self, largest: float) -> Int64:
        return np.bincount(self._buckets, minlength=BUCKETS)

    def locate(self, buckets: Int64, ranks: Int64) -> tuple[Int64, npt.NDArray[np.uint64]]:
        begins = np.searchsorted(self._buckets[self._order], buckets)
        tables = self._order[begins + ranks]
        return 2 * tables, mantissas(self._falls[tables], buckets)


def choice_range(temperature: float, neighbours: Neighbours | Unit) -> float:
    """The bounded range of one draw of a table, as it is computed.

    A score moves up or down by at most the L1 distance of neighbours' counts of a marginal, so
    exponents move within an interval of twice that, times β: 4β if a record is replaced, 2β if one
    is added or removed. Rounding is charged once, relative to the range where that is above 1.

    Args:
        temperature: β, per count.
        neighbours: the unit of privacy.
    """
    if not_negative("temperature", temperature) == 0.0:
        return 0.0
    ideal = 2.0 * temperature * neighbours.table_l1
    return ideal + ROUNDING_CHARGE * max(1.0, ideal)


@dataclass(frozen=True, eq=False)
class Choice:
    """Some of the candidates, in the order in which they were drawn.

    Attributes:
        attributes: those of each chosen table, filled up with `NONE`.
        temperature: β, per count.
        candidates: from how many tables the first one was drawn.
        digest: of the candidates.
    """

    attributes: Int32
    temperature: float
    candidates: int
    digest: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.attributes)

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The attributes of each chosen table."""
        return tuple(tuple(a for a in one if a != NONE) for one in self.attributes.tolist())

    def marginals(self, groups: Groups) -> tuple[Marginals, ...]:
        """The chosen tables: those of one number of attributes together, in the order drawn."""
        return tuple(Marginals(groups, sets) for sets in _by_arity(self.attributes))

    def events(self, neighbours: Neighbours | Unit) -> tuple[DrawEvent, ...]:
        """What the choice costs: every table is one draw, from what the draws before it left."""
        return (DrawEvent(1, choice_range(self.temperature, neighbours)),) * len(self)

    def is_of(self, candidates: Candidates, temperature: float, draws: int) -> bool:
        """Whether it is so many draws from these candidates at this temperature."""
        every = {tuple(one) for one in candidates.attributes.tolist()}
        return (
            self.candidates == len(candidates)
            and self.temperature == temperature
            and len(self) == draws
            and np.array_equal(self.digest, candidates.digest)
            and all(tuple(one) in every for one in self.attributes.tolist())
        )

    def to_arrays(self) -> dict[str, Array]:
        """The choice as arrays, for files."""
        return {
            "attributes": self.attributes,
            "temperature": np.array(self.temperature),
            "candidates": np.array(self.candidates),
            "digest": self.digest,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Choice:
        """The inverse of `to_arrays`."""
        attributes, candidates = arrays["attributes"], int(arrays["candidates"])
        if attributes.ndim != 2 or not attributes.size or len(attributes) > candidates:
            raise ParameterError(
                f"a choice of shape {attributes.shape} from {candidates} tables; expected "
                "different tables"
            )
        for sets in _by_arity(attributes):
            if not sets.size or (sets == NONE).any():
                raise ParameterError("a chosen table has no attributes, or a gap between them")
            require_distinct(sets, "a chosen table")
        return cls(attributes, float(arrays["temperature"]), candidates, arrays["digest"])


def choose(
    scores: Int64, candidates: Candidates, temperature: float, draws: int, source: RandomSource
) -> Choice:
    """Draw tables one after the other, each from those that are left, by their private scores.

    Guarantee: the result costs what its events say, whatever the scores, if neighbours' scores are
    as close as `scores_of` leaves them and `source` is the operating system's.

    Args:
        scores: private, one per candidate.
        candidates: the tables; a function of what was released before.
        temperature: β, per count.
        draws: how many tables are chosen.
        source: where random words come from.
    """
    if scores.shape != (len(candidates),):
        raise ParameterError(f"expected {len(candidates)} scores, found {scores.shape}")
    if whole("draws", draws) > len(candidates):
        raise ParameterError(f"draws = {draws}; expected at most {len(candidates)}, the candidates")
    left = np.arange(len(candidates))
    chosen = []
    for _ in range(draws):
        place = draw(Scored(scores[left], not_negative("temperature", temperature)), 1, source)
        chosen.append(left[place.queries[0]])
        left = np.delete(left, place.queries[0])
    drawn = candidates.attributes[chosen]
    return Choice(drawn, temperature, len(candidates), candidates.digest)


def _by_arity(attributes: Int32) -> Iterator[Int32]:
    """Sets of attributes without what fills them up, those of one size together."""
    arities = (attributes != NONE).sum(axis=1)
    for arity in np.unique(arities).tolist():
        yield np.ascontiguousarray(attributes[arities == arity, :arity])
