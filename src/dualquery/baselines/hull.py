"""The nearest point of the hull of records, by Frank–Wolfe. Public: it reads noisy answers only.

Each record has a vector of answers, one entry of 0 or 1 per query. A table is a mean of such
vectors, so answers that belong to any table at all are in their hull. The linear step of
Frank–Wolfe is the data player's best response, with real weights in place of draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.oracles.annealing import Annealing
from dualquery.oracles.oracle import Oracle, Record
from dualquery.oracles.problem import Problem
from dualquery.workloads.matching import add_matches
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

UNIT = 256
"""The root mean square of the whole-number weights that an oracle sees."""

EXCHANGES = 40
"""Exchanges of weight between two records per record, after each step."""


def quick_oracle() -> Oracle:
    """Annealing for weights of the size of `UNIT`, with few runs: all queries are in the sum."""
    return Annealing(runs=4, agree=2, unanimous=2, hot=0.8 * UNIT, cold=0.1 * UNIT)


@dataclass(frozen=True, eq=False)
class Hull:
    """A point of the hull: records with weights that sum to one.

    Attributes:
        workload: the queries.
        records: one row of codes each.
        matches: per record and query, whether the record satisfies it.
        weights: of the records.
        gap: by how much half the squared distance may exceed the smallest one, if the last best
            response was a best one.
    """

    workload: Workload
    records: npt.NDArray[np.int32]
    matches: npt.NDArray[np.bool_]
    weights: Floats
    gap: float

    @property
    def answers(self) -> Floats:
        return _mean(self.matches, self.weights)

    def answers_to(self, workload: Workload) -> Floats:
        """The answers of the weighted records to any queries over their schema."""
        total = np.zeros(len(workload))
        for record, weight in zip(self.records, self.weights, strict=True):
            matches = np.zeros(len(workload), dtype=np.int32)
            add_matches(workload, record, matches)
            total += weight * matches
        return np.clip(total, 0.0, 1.0)


def weighted_problem(workload: Workload, slope: Floats) -> Problem:
    """Maximise Σ slope_q·[x satisfies q] over records x, with the slopes as whole numbers."""
    size = float(np.sqrt(np.mean(slope * slope))) or 1.0
    weights = np.rint(slope * (UNIT / size)).astype(np.int64)
    kept = np.flatnonzero(weights)
    if not len(kept):
        kept = np.arange(1)
    chosen = weights[kept]
    return Problem(
        workload.take(kept),
        chosen,
        int(-chosen[chosen < 0].sum()),
        int(np.abs(chosen).sum()),
        workload.schema.defaults,
        workload.schema.constraints,
    )


def nearest_in_hull(
    workload: Workload,
    target: Floats,
    start: Floats,
    *,
    steps: int,
    oracle: Oracle,
    exchanges: int = EXCHANGES,
    observer: Callable[[int, int], None] = lambda done, total: None,
) -> Hull:
    """The point of the hull of records that is nearest to some answers.

    Step t adds the record that the negative gradient, target − answers, points to. Then the weights
    of all records so far are made optimal, as far as exchanges of weight between two records do it
    ("fully corrective" Frank–Wolfe). It stops early when a step finds no record that helps.

    Args:
        workload: the queries.
        target: the answers to come near to; they need not be between 0 and 1.
        start: answers that the first record is a response to.
        steps: how many records at most.
        oracle: finds records.
        exchanges: of weight after each step, per record so far.
        observer: told how many steps are done, and of how many.
    """
    generator = np.random.default_rng(0)  # public randomness
    records: list[Record] = []
    matches = np.zeros((0, len(workload)), dtype=np.bool_)
    gram, pull = np.zeros((0, 0)), np.zeros(0)
    weights, answers, gap = np.zeros(0), start, np.inf
    for number in range(steps):
        slope = target - answers
        response = oracle(
            weighted_problem(workload, slope), warm_starts=records[-4:], generator=generator
        )
        found = np.zeros(len(workload), dtype=np.int32)
        add_matches(workload, response.record, found)
        held = found.astype(np.bool_)
        if records:
            gap = float(slope[held].sum() - slope @ answers)
            if gap <= 1e-12 * len(workload):
                break
        shared = np.array([np.count_nonzero(one & held) for one in matches], dtype=np.float64)
        size = np.count_nonzero(held)
        # A record that is there already needs more exchanges, not a second weight.
        if not np.any((shared == size) & (np.diag(gram) == size)):
            records.append(response.record)
            matches = np.concatenate([matches, held[None]])
            gram = np.block([[gram, shared[:, None]], [shared[None], size]])
            pull = np.append(pull, target[held].sum())
            weights = np.append(weights, 0.0 if number else 1.0)
        weights = exchanged(gram, pull, weights, exchanges * len(weights))
        answers = _mean(matches, weights)
        observer(number + 1, steps)
    return Hull(workload, np.array(records, dtype=np.int32), matches, weights, gap)


def exchanged(gram: Floats, pull: Floats, weights: Floats, exchanges: int) -> Floats:
    """Weights that sum to one, moved towards the minimum of ½·wᵀGw − pᵀw by pairwise exchanges.

    Args:
        gram: G, the inner products of the records' answers.
        pull: p, their inner products with the target.
        weights: where to begin; none is negative, and they sum to one.
        exchanges: how many at most.
    """
    found = weights.copy()
    slope = pull - gram @ found
    for _ in range(exchanges):
        up = int(np.argmax(slope))
        down = int(np.argmin(np.where(found > 0.0, slope, np.inf)))
        gain = slope[up] - slope[down]
        curve = gram[up, up] + gram[down, down] - 2.0 * gram[up, down]
        if gain <= 1e-12 or curve <= 0.0:
            break
        moved = min(found[down], gain / curve)
        found[up] += moved
        found[down] = 0.0 if moved == found[down] else found[down] - moved
        slope -= moved * (gram[:, up] - gram[:, down])
    normal: Floats = found / found.sum()
    return normal


def _mean(matches: npt.NDArray[np.bool_], weights: Floats) -> Floats:
    answers = np.zeros(matches.shape[1])
    for held, weight in zip(matches, weights, strict=True):
        if weight > 0.0:
            answers[held] += weight
    return answers
