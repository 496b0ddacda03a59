"""Probes: coarse questions that tell a model more per draw than the asked ones do.

The answer to an asked query such as `education=Doctorate & age in [80,85)` is nearly 0 for every
table, so a draw of it says little. A *half-set literal* says that the value is in a random half of
the domain. It holds for about half of the rows, so its answer is as uncertain as an answer can be.
The squared errors of all half-sets of an attribute add up to the squared error of its whole
marginal. So the query player is also offered one-way and two-way conjunctions of half-sets. They
are made from the asked queries and a public seed alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from dualquery.workloads.actions import Actions
from dualquery.workloads.workload import Literals, Workload

Ints = npt.NDArray[np.int64]

SETS_PER_CODE, MOST_SETS = 8, 256
"""The number of half-sets of one attribute: per code of its domain, and at most."""

ONE_WAY, TWO_WAY = 0.1, 0.5
"""The shares of the prior weight that the probes have; the asked queries have the rest."""


def with_probes(
    workload: Workload, seed: int = 0, weights: npt.NDArray[np.float64] | None = None
) -> Actions:
    """The asked queries and the probes that fit them.

    Args:
        workload: the asked queries.
        seed: of the choice of probes, which is public.
        weights: how much each query counts; all of them alike where left out.
    """
    generator = np.random.default_rng([seed, 99])
    weights = np.ones(len(workload)) if weights is None else weights
    used = np.bincount(
        workload.literals.attribute[workload.terms >> 1],
        np.repeat(weights, np.diff(workload.start)),
        len(workload.schema),
    )
    halves = _half_sets(workload, np.flatnonzero(used), generator)
    every = 2 * np.arange(len(halves.literals))[:, None]
    one_way = Workload.conjunctions(workload.schema, halves.literals, every)
    one_prior = (used / used.sum() / np.maximum(halves.count, 1))[halves.literals.attribute]
    two_way = _two_way(workload, halves, generator)
    parts, priors = [workload, one_way], [weights / weights.sum(), one_prior]
    masses = [1.0 - ONE_WAY, ONE_WAY]
    if two_way is not None:
        parts.append(two_way)
        priors.append(np.full(len(two_way), 1.0 / len(two_way)))
        masses = [1.0 - ONE_WAY - TWO_WAY, ONE_WAY, TWO_WAY]
    prior = np.concatenate([mass * part for mass, part in zip(masses, priors, strict=True)])
    queries = parts[0]
    for part in parts[1:]:
        queries = queries + part
    return Actions(queries, len(workload), np.log(prior / prior.max()))


@dataclass(frozen=True, eq=False)
class _HalfSets:
    """Half-set literals, attribute by attribute: a has `count[a]` of them, from `first[a]` on."""

    literals: Literals
    first: Ints
    count: Ints


def _half_sets(workload: Workload, attributes: Ints, generator: np.random.Generator) -> _HalfSets:
    sizes = workload.schema.sizes
    sets: list[tuple[int, tuple[int, ...]]] = []
    first = np.zeros(len(sizes), dtype=np.int64)
    count = np.zeros(len(sizes), dtype=np.int64)
    for attribute in attributes.tolist():
        first[attribute] = len(sets)
        chosen = _halves(int(sizes[attribute]), generator)
        sets.extend((attribute, codes) for codes in chosen)
        count[attribute] = len(chosen)
    return _HalfSets(Literals.of(sets), first, count)


def _halves(size: int, generator: np.random.Generator) -> list[tuple[int, ...]]:
    """Different random halves of a domain; a half and its complement count as one."""
    if size <= 2:
        return [(size - 1,)]
    if size <= 5:  # few enough to take every cut in two, even and uneven
        every = range(1, 2 ** (size - 1))
        return [tuple(c for c in range(1, size) if cut >> (c - 1) & 1) for cut in every]
    exist = comb(size, size // 2) // (2 if size % 2 == 0 else 1)
    wanted = min(exist, SETS_PER_CODE * size, MOST_SETS)
    found: set[tuple[int, ...]] = set()
    while len(found) < wanted:
        half = np.sort(generator.permutation(size)[: size // 2])
        if half[0] == 0:
            half = np.setdiff1d(np.arange(size), half)
        found.add(tuple(half.tolist()))
    return sorted(found)


def _two_way(
    workload: Workload, halves: _HalfSets, generator: np.random.Generator
) -> Workload | None:
    """Conjunctions of two half-sets whose attributes occur together in an asked query."""
    lengths = np.diff(workload.start)
    able = np.flatnonzero(lengths >= 2)
    if not len(able):
        return None
    count = max(1000, len(workload) // 10)
    chosen = able[generator.integers(0, len(able), count)]
    one = generator.integers(0, lengths[chosen])
    other = (one + generator.integers(1, lengths[chosen])) % lengths[chosen]
    terms = workload.terms[workload.start[chosen][:, None] + np.column_stack([one, other])]
    attributes = workload.literals.attribute[terms >> 1]
    literals = halves.first[attributes] + (
        generator.random(attributes.shape) * halves.count[attributes]
    ).astype(np.int64)
    terms = 2 * literals + generator.integers(0, 2, attributes.shape)
    return Workload.conjunctions(workload.schema, halves.literals, terms)
