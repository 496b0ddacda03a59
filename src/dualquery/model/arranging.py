"""Rows as accurate as the model: dealt out in proportion, then exchanged towards a target.

Rows drawn independently of one another have sampling errors of about √(a(1 − a)/rows), often more
than the privacy noise. Rows are post-processing, so they may be arranged instead: every component
gets its share of the rows, every code its share of a component's rows, and then codes are exchanged
between rows of a component until the marginals that the queries are about are near the model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.base.threads import over_ranges
from dualquery.domain.schema import Schema
from dualquery.model.mixture import Mixture
from dualquery.workloads.workload import Workload

Records = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]

MOST_CELLS = 4_000_000
"""Cells of all target marginals together. They are looked up at random, so they should fit into a
cache, or nearly."""

PROPOSALS_A_CELL = 6
"""Exchanges proposed per cell of the sampled table."""

MOST_PROPOSALS = 12_000_000
"""Exchanges proposed in all: a few seconds."""


def arranged(
    model: Mixture,
    rows: int,
    generator: np.random.Generator,
    targets: Sequence[tuple[int, ...]] = (),
    fixed: Sequence[int] = (),
) -> Records:
    """Records of the model whose marginals are as near to the model's as so many rows allow.

    Args:
        model: the distribution.
        rows: how many records to make.
        generator: public randomness.
        targets: sets of two or more attributes whose marginals should be near the model's.
        fixed: attributes whose codes are dealt out but not exchanged.
    """
    sizes = _in_proportion(model.weights, rows, generator)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    codes = _dealt(model, sizes, generator)
    wanted = [target for target in targets if len(target) > 1]
    if wanted and rows > 1:
        _exchange(model, codes, bounds, _uses(model.schema, wanted), fixed, generator)
    generator.shuffle(codes, axis=0)
    return codes


def targets_of(workload: Workload, most_cells: int = MOST_CELLS) -> list[tuple[int, ...]]:
    """The sets of up to three attributes that the queries are about, the most asked ones first.

    They are taken while their cells together are at most `most_cells`.
    """
    schema = workload.schema
    attribute = workload.literals.attribute[workload.terms >> 1].astype(np.int64)
    lengths = np.diff(workload.start)
    sizes = schema.sizes.astype(np.int64)
    number, asked = [], []
    for length in np.unique(lengths).tolist():
        chosen = np.flatnonzero(lengths == length)
        sets = np.sort(attribute[workload.start[chosen][:, None] + np.arange(length)], axis=1)
        for places in combinations(range(length), min(3, length)):
            if len(places) < 2:
                continue
            # One number per set: sorting numbers is many times faster than sorting rows.
            key = np.zeros(len(sets), dtype=np.int64)
            for place in places:
                key = key * (len(schema) + 1) + sets[:, place] + 1
            found, counts = np.unique(key, return_counts=True)
            number.append(found)
            asked.append(counts)
    if not number:
        return []
    every, place = np.unique(np.concatenate(number), return_inverse=True)
    often = np.bincount(place, np.concatenate(asked))
    targets = _digits(every, len(schema) + 1)
    cells = np.where(targets >= 0, sizes[np.maximum(targets, 0)], 1).prod(axis=1)
    kept, total = [], 0
    for index in np.argsort(-often, kind="stable").tolist():
        if total + int(cells[index]) <= most_cells:
            total += int(cells[index])
            kept.append(tuple(int(a) for a in targets[index] if a >= 0))
    return kept


def _digits(numbers: npt.NDArray[np.int64], base: int) -> npt.NDArray[np.int64]:
    """Three digits of each number, minus one: −1 where a set has fewer than three attributes."""
    digits = []
    for _ in range(3):
        numbers, digit = np.divmod(numbers, base)
        digits.append(digit - 1)
    return np.stack(digits[::-1], axis=1)


def _in_proportion(
    weights: npt.NDArray[np.float64], rows: int, generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Whole numbers that add up to `rows`, each within one of its share."""
    ends = np.floor(rows * np.cumsum(weights) / weights.sum() + generator.random())
    ends[-1] = rows
    sizes: npt.NDArray[np.int64] = np.diff(np.minimum(ends, rows), prepend=0.0).astype(np.int64)
    return sizes


def _dealt(model: Mixture, sizes: npt.NDArray[np.int64], generator: np.random.Generator) -> Records:
    from dualquery.model._arranging_kernels import deal

    start = model.schema.code_start
    codes = np.empty((int(sizes.sum()), len(model.schema)), dtype=np.int32, order="F")
    seeds = generator.integers(1, 1 << 63, len(model.schema), dtype=np.uint64)

    def task(first: int, last: int) -> None:
        for a in range(first, last):
            deal(model.tables[start[a] : start[a + 1]], sizes, codes[:, a], seeds[a : a + 1])

    over_ranges(task, len(model.schema), grain=1)
    return np.ascontiguousarray(codes)


@dataclass(frozen=True, eq=False)
class _Uses:
    """Target marginals, and per attribute the places where it occurs in them."""

    targets: list[tuple[int, ...]]
    strides: list[npt.NDArray[np.int64]]
    first: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    use_first: npt.NDArray[np.int64]
    use_stride: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    other_strides: npt.NDArray[np.int64]


def _uses(schema: Schema, targets: list[tuple[int, ...]]) -> _Uses:
    sizes = schema.sizes.astype(np.int64)
    strides = [np.cumprod([1, *sizes[list(t)][:0:-1]])[::-1].copy() for t in targets]
    cells = [int(np.prod(sizes[list(t)])) for t in targets]
    first = np.concatenate([[0], np.cumsum(cells)])
    widest = max(len(t) for t in targets) - 1
    found: list[list[tuple[int, int, list[int], list[int]]]] = [[] for _ in range(len(schema))]
    for target, stride, begin in zip(targets, strides, first[:-1], strict=True):
        for place, attribute in enumerate(target):
            rest = [i for i in range(len(target)) if i != place]
            pad = [-1] * (widest - len(rest))
            others = [target[i] for i in rest] + pad
            found[attribute].append(
                (int(begin), int(stride[place]), others, [int(stride[i]) for i in rest] + pad)
            )
    flat = [use for uses in found for use in uses]
    return _Uses(
        targets,
        strides,
        first,
        np.concatenate([[0], np.cumsum([len(uses) for uses in found])]),
        np.array([use[0] for use in flat], dtype=np.int64),
        np.array([use[1] for use in flat], dtype=np.int64),
        np.array([use[2] for use in flat], dtype=np.int64).reshape(len(flat), widest),
        np.array([use[3] for use in flat], dtype=np.int64).reshape(len(flat), widest),
    )


def _exchange(
    model: Mixture,
    codes: Records,
    bounds: npt.NDArray[np.int64],
    uses: _Uses,
    fixed: Sequence[int],
    generator: np.random.Generator,
) -> None:
    from dualquery.model._arranging_kernels import exchange

    excess = _excess(model, codes, uses)
    movable = np.setdiff1d(np.flatnonzero(np.diff(uses.start)), np.asarray(fixed, dtype=np.int64))
    if not len(movable):
        return
    component = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    proposals = min(MOST_PROPOSALS, PROPOSALS_A_CELL * len(codes) * len(movable))
    state = generator.integers(1, 1 << 63, 1, dtype=np.uint64)
    exchange(
        codes, bounds, component, uses.start, uses.use_first, uses.use_stride, uses.others,
        uses.other_strides, movable, excess, proposals, state,
    )  # fmt: skip


def _excess(model: Mixture, codes: Records, uses: _Uses) -> Singles:
    """How many rows too many every cell of the targets has."""
    from dualquery.model._arranging_kernels import add_cells

    excess = np.empty(int(uses.first[-1]), dtype=np.float32)
    start = model.schema.code_start
    tables = model.tables.astype(np.float32)
    weights = model.weights.astype(np.float32)

    def task(first: int, last: int) -> None:
        for number in range(first, last):
            target = uses.targets[number]
            *others, final = target
            cells = weights[None, :]
            for a in others:
                table = tables[start[a] : start[a + 1]]
                cells = (cells[:, None, :] * table[None, :, :]).reshape(-1, len(weights))
            part = excess[uses.first[number] : uses.first[number + 1]]
            expected = cells @ tables[start[final] : start[final + 1]].T
            part[:] = -len(codes) * expected.reshape(-1)
            add_cells(codes, np.array(target), uses.strides[number], 0, part)

    over_ranges(task, len(uses.targets), grain=1)
    return excess
