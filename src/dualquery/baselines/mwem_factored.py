"""MWEM in factors (Hardt, Ligett, McSherry 2012): small distributions, merged where they must be.

Private side: it reads counts. The distribution of greatest entropy that meets some measurements
is a product over the groups of attributes that the measured queries connect. So MWEM need not
hold one number per possible record: it begins with one factor per attribute, and a measured query
merges the factors that it names. That is how its authors come to 77 attributes, and to 1,000 where
queries stay inside disjoint groups. A query that would make a factor of more than `LARGEST`
entries is not measured; which ones these are follows from what was released before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError
from dualquery.base.ragged import offsets
from dualquery.baselines.baseline import SEEDED, Cost, Floats
from dualquery.baselines.charging import charged
from dualquery.baselines.mwem import IMPROVED, PrivatePart, Rates, Settings, Weights, pure_events
from dualquery.baselines.product import Uniform
from dualquery.baselines.universe import OnUniverse
from dualquery.domain.schema import Schema
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Literals, Workload

LARGEST = 2**16
"""Entries of a factor at most."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Factor:
    """A distribution over some attributes, and the measurements it was fitted to.

    Attributes:
        attributes: their positions, in rising order.
        distribution: one axis per attribute.
        measured: the queries within it, with their noisy answers.
    """

    attributes: tuple[int, ...]
    distribution: Floats
    measured: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, eq=False)
class Factors:
    """A product of factors; attributes that are in none are uniform and independent."""

    schema: Schema
    factors: tuple[Factor, ...] = ()

    def answers(self, workload: Workload) -> Floats:
        """The answer to each query: a product over the factors that it names."""
        if workload.schema != self.schema:
            raise ParameterError("the workload has another schema than the one MWEM was fitted on")
        held = np.full(len(self.schema), -1, dtype=np.int64)
        for number, factor in enumerate(self.factors):
            held[list(factor.attributes)] = number
        found = np.ones(len(workload))
        for number in range(-1, len(self.factors)):
            part = Part.of(workload, np.flatnonzero(held == number))
            if part is None:
                continue
            shares = part.answers(self.factors[number].distribution if number >= 0 else None)
            # A parity is (1 + e)/2, and it is e, a product of signs, that multiplies.
            even = workload.is_parity[part.places]
            found[part.places] *= np.where(even, 2.0 * shares - 1.0, shares)
        return np.clip(np.where(workload.is_parity, (1.0 + found) / 2.0, found), 0.0, 1.0)

    def merged(self, attributes: Sequence[int]) -> tuple[Factor, tuple[Factor, ...]]:
        """One factor for all factors that name one of the attributes, and the others."""
        wanted = set(attributes)
        touched = [one for one in self.factors if wanted & set(one.attributes)]
        others = tuple(one for one in self.factors if not wanted & set(one.attributes))
        alone = wanted - {a for one in touched for a in one.attributes}
        sizes = self.schema.sizes
        parts = [
            *touched,
            *(Factor((a,), np.full(int(sizes[a]), 1.0 / int(sizes[a]))) for a in sorted(alone)),
        ]
        order = [a for one in parts for a in one.attributes]
        product = parts[0].distribution
        for one in parts[1:]:
            product = np.multiply.outer(product, one.distribution)
        place = np.argsort(order)
        measured = tuple(each for one in parts for each in one.measured)
        return Factor(tuple(sorted(order)), product.transpose(place), measured), others

    def entries(self, workload: Workload) -> Floats:
        """Per query, how many entries the factor would have that measuring it makes."""
        sizes = [float(one.distribution.size) for one in self.factors]
        logs = np.log(np.concatenate([sizes, self.schema.sizes]))
        owner = np.arange(len(self.schema)) + len(self.factors)
        for number, factor in enumerate(self.factors):
            owner[list(factor.attributes)] = number
        named = owner[workload.literals.attribute[workload.terms >> 1]]
        query = np.repeat(np.arange(len(workload)), np.diff(workload.start))
        pairs = np.unique(query * len(logs) + named)  # a factor counts once, however often named
        return np.exp(np.bincount(pairs // len(logs), logs[pairs % len(logs)], len(workload)))

    def learn(self, query: int, share: float, workload: Workload, passes: int) -> Factors:
        """The product after one more measurement; see `Weights.learn`.

        Args:
            query: the query that was measured.
            share: its noisy answer.
            workload: the queries.
            passes: how often the steps go over all measurements of the factor.
        """
        factor, others = self.merged(attributes_of(workload, query))
        numbers = [*(number for number, _ in factor.measured), query]
        part = Part.of(workload.take(np.array(numbers)), np.array(factor.attributes))
        assert part is not None  # the query names attributes of the factor
        # The weights count measurements from 0; outside they go by their numbers in the workload.
        past = tuple((at, answer) for at, (_, answer) in enumerate(factor.measured))
        state = Weights(factor.distribution, past)
        state = state.learn(len(past), share, OnUniverse(part.spread), passes)
        made = Factor(factor.attributes, state.distribution, (*factor.measured, (query, share)))
        return Factors(self.schema, (*others, made))


@dataclass(frozen=True, eq=False)
class Part:
    """What queries say of some attributes.

    Attributes:
        places: the queries that name one of them.
        distinct: the different parts, over a schema of these attributes alone.
        which: per place, its part.
    """

    places: Ints
    distinct: Workload
    which: Ints

    @classmethod
    def of(cls, workload: Workload, attributes: Ints) -> Part | None:
        """The part about some attributes; None if no query names any."""
        place = np.full(len(workload.schema), -1, dtype=np.int64)
        place[attributes] = np.arange(len(attributes))
        literals = workload.literals
        kept = place[literals.attribute[workload.terms >> 1]] >= 0
        query = np.repeat(np.arange(len(workload)), np.diff(workload.start))[kept]
        if not len(query):
            return None
        used, number = np.unique(workload.terms[kept] >> 1, return_inverse=True)
        chosen = literals.take(used)
        narrow = Literals(place[chosen.attribute].astype(np.int32), chosen.start, chosen.codes)
        places, lengths = np.unique(query, return_counts=True)
        parts = Workload(
            Schema(tuple(workload.schema.attributes[a] for a in attributes.tolist())),
            narrow,
            offsets(lengths),
            (2 * number + (workload.terms[kept] & 1)).astype(np.int32),
            workload.is_parity[places],
        )
        first, which = parts.different
        return cls(places, parts.take(first), which)

    @property
    def spread(self) -> Workload:
        """The part of every query, repeats included."""
        return self.distinct.take(self.which)

    def answers(self, distribution: Floats | None) -> Floats:
        """Per place, the answer on a distribution over the attributes; None for the uniform one."""
        if distribution is None:
            return Uniform().answers(self.distinct)[self.which]
        return OnUniverse(self.distinct).answers(distribution)[self.which]


def attributes_of(workload: Workload, query: int) -> list[int]:
    """The attributes that a query names."""
    terms = workload.terms[workload.start[query] : workload.start[query + 1]]
    return sorted(int(a) for a in workload.literals.attribute[terms >> 1])


@dataclass(frozen=True, eq=False)
class FactoredMwem:
    """The product that MWEM ends with; it answers any query over its schema."""

    product: Factors
    privacy: Cost
    name: str = "mwem in factors"

    @classmethod
    def fit(
        cls,
        answers: Counted,
        workload: Workload,
        *,
        epsilon: float,
        source: RandomSource,
        settings: Settings = IMPROVED,
        largest: int = LARGEST,
        observer: Callable[[int, int], None] = lambda done, total: None,
        ledger: str | Path | None = None,
    ) -> FactoredMwem:
        """Run MWEM on the counts of a workload. The number of rows is public.

        Args:
            answers: the true counts.
            workload: the queries that were counted.
            epsilon: the budget; δ is 0, and neighbours replace one record.
            source: the random source of draws and noise.
            settings: how to run; answers are always those of the last product.
            largest: the most entries of a factor.
            observer: told how many rounds are done, and of how many.
            ledger: a budget ledger that the run is charged to before its first draw.
        """
        rates = Rates.of(epsilon, answers.rows, settings)
        private = PrivatePart(answers, rates)
        state = Factors(workload.schema)
        which = workload.different[1]
        measured = np.zeros(int(which.max()) + 1, dtype=bool)
        events = pure_events(rates.epsilon)
        with charged(ledger, events, private=source.private, note=cls.name):
            for number in range(settings.rounds):
                here = source.for_round(number)
                fits = state.entries(workload) < largest + 0.5
                if not fits.any():
                    raise ParameterError(
                        f"every query names more than {largest} combinations of values; use fewer "
                        "codes"
                    )
                fresh = fits & ~measured[which]
                allowed = np.flatnonzero(fresh if fresh.any() else fits)
                query = private.choose(state.answers(workload), allowed, here)
                measured[which[query]] = not settings.repeats
                share = private.measure(query, here)
                state = state.learn(query, share, workload, settings.passes)
                observer(number + 1, settings.rounds)
        cost = Cost(
            rates.epsilon,
            0.0,
            Neighbours.REPLACE_ONE,
            "exponential mechanism and discrete Laplace noise",
            "" if source.private else SEEDED,
        )
        return cls(state, cost)

    def answers(self, workload: Workload) -> Floats:
        return self.product.answers(workload)
