"""Rows as accurate as the model: dealt out in proportion, then exchanged towards a target.

Rows drawn independently of one another have sampling errors of about √(a(1 − a)/rows), often more
than the privacy noise. Rows are post-processing, so they may be arranged instead: every component
gets its share of the rows, every code its share of a component's rows, and then codes are exchanged
between rows of a component until the marginals that the queries are about are near the model's.
No exchange breaks a public constraint. Why this works, and how well, is in
docs/decisions/rows.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.base.ragged import offsets
from dualquery.base.threads import over_ranges
from dualquery.domain.constraints import Constraints
from dualquery.domain.schema import Schema
from dualquery.model.corrections import NOTHING, Ratios, dealt_again
from dualquery.model.forest.edges import Edges
from dualquery.model.mixture import TRIES, Mixture
from dualquery.workloads.workload import Workload

Records = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]

MOST_CELLS = 4_000_000
"""Cells of all target marginals together. They are looked up at random, so they should fit into a
cache, or nearly."""

PROPOSALS_PER_CELL = 3
"""Exchanges proposed per cell of the sampled table."""

MOST_PROPOSALS = 10_000_000
MOST_LOOKUPS = 800_000_000
"""Exchanges proposed in all, and cells of targets looked at for them: a few seconds each."""

MOST_COUNTED = 4e9
"""Cells of rows looked at to count the targets. In a wide table each of them is another line of
memory, and counts as up to `FAR`; so fewer targets are taken."""

FAR = 32.0

UNTANGLING = 200
"""How often a row that breaks a rule is offered another row's code before it is drawn again."""

BLOCK = 256
"""Attributes dealt at a time: of a wide table no second copy fits into memory."""


def arranged(
    model: Mixture,
    rows: int,
    generator: np.random.Generator,
    targets: Sequence[tuple[int, ...]] = (),
    fixed: Sequence[int] = (),
    corrected: Ratios = NOTHING,
) -> Records:
    """Records of the model whose marginals are as near to the model's as so many rows allow.

    Args:
        model: the distribution.
        rows: how many records to make.
        generator: public randomness.
        targets: sets of two or more attributes whose marginals should be near the model's.
        fixed: attributes whose codes are dealt out but not exchanged.
        corrected: pairs that the model does not express, as `corrections` finds them. Rows follow
            the corrected tables instead of the model's.
    """
    sizes = in_proportion(model.weights, rows, generator)
    bounds = offsets(sizes)
    codes = _dealt(model, sizes, generator)
    fixed = (*fixed, *dealt_again(model, codes, corrected, generator))
    state = generator.integers(1, 1 << 63, 1, dtype=np.uint64)
    rules = _Rules.of(model.schema)
    _obey(model, codes, bounds, rules, fixed, generator, state)
    wanted = _countable([target for target in targets if len(target) > 1], codes)
    # Exchanges inside a component would undo what edges join; dealt along them, rows are near.
    if wanted and rows > 1 and model.edges is None:
        uses = _uses(model.schema, wanted)
        _exchange(model, codes, bounds, uses, rules, fixed, state, corrected)
    _shuffle(codes, generator)
    return codes


def _countable(targets: list[tuple[int, ...]], codes: Records) -> list[tuple[int, ...]]:
    """As many of the first targets as can be counted in a few seconds."""
    rows, width = codes.shape
    looked = rows * min(FAR, max(1.0, width / 64.0)) * np.cumsum([len(t) for t in targets])
    return targets[: int(np.searchsorted(looked, MOST_COUNTED, side="right"))]


def _shuffle(codes: Records, generator: np.random.Generator) -> None:
    """Put the rows into a random order, a block of attributes at a time."""
    order = generator.permutation(len(codes))
    for first in range(0, codes.shape[1], BLOCK):
        codes[:, first : first + BLOCK] = codes[order, first : first + BLOCK]


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


def in_proportion(
    weights: npt.NDArray[np.float64], rows: int, generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Whole numbers that add up to `rows`, each within one of its share.

    Args:
        weights: the shares, up to a common factor.
        rows: what to divide.
        generator: says where the rounding begins, so that no share gains from it on average.
    """
    ends = np.floor(rows * np.cumsum(weights) / weights.sum() + generator.random())
    ends[-1] = rows
    sizes: npt.NDArray[np.int64] = np.diff(np.minimum(ends, rows), prepend=0.0).astype(np.int64)
    return sizes


def _dealt(model: Mixture, sizes: npt.NDArray[np.int64], generator: np.random.Generator) -> Records:
    from dualquery.model._arranging_kernels import deal

    start = model.schema.code_start
    width = len(model.schema)
    codes = np.empty((int(sizes.sum()), width), dtype=np.int32)
    seeds = generator.integers(1, 1 << 63, width, dtype=np.uint64)
    for begin in range(0, width, BLOCK):
        part = np.empty((len(codes), min(BLOCK, width - begin)), dtype=np.int32, order="F")

        def task(first: int, last: int, begin: int = begin, part: Records = part) -> None:
            for place in range(first, last):
                a = begin + place
                shares = model.tables[start[a] : start[a + 1]]
                deal(shares, sizes, part[:, place], seeds[a : a + 1])

        over_ranges(task, part.shape[1], grain=1)
        codes[:, begin : begin + BLOCK] = part
    if model.edges is not None:
        for child in model.edges.trees.children.tolist():
            _deal_child(model, model.edges, child, sizes, codes, seeds[child : child + 1])
    return codes


def _deal_child(
    model: Mixture,
    edges: Edges,
    child: int,
    sizes: npt.NDArray[np.int64],
    codes: Records,
    seed: npt.NDArray[np.uint64],
) -> None:
    """Deal the codes of a child in proportion among the rows whose parents are alike.

    Args:
        model: the distribution.
        edges: of the model.
        child: an attribute whose parent is dealt already.
        sizes: rows of each component.
        codes: the rows, those of the first component first.
        seed: of the order within equal rows.
    """
    from dualquery.model._arranging_kernels import deal

    parent = int(edges.trees.parent[child])
    groups = int(edges.groups.sizes[parent])
    above = edges.groups.of_attribute(parent)[codes[:, parent]]
    alike = np.repeat(np.arange(len(sizes)), sizes) * groups + above
    order = np.argsort(alike, kind="stable")
    shares = [model.given_parent(child, k) for k in range(len(sizes))]
    dealt = np.empty(len(codes), dtype=np.int32)
    rows = np.bincount(alike, minlength=groups * len(sizes)).astype(np.int64)
    deal(np.ascontiguousarray(np.concatenate(shares).T), rows, dealt, seed)
    codes[order, child] = dealt


@dataclass(frozen=True, eq=False)
class _Rules:
    """The public constraints as the kernels read them; see `_arranging_kernels.untangle`."""

    constraints: Constraints | None
    rule_start: npt.NDArray[np.int64]
    rules: npt.NDArray[np.int64]
    clause_start: npt.NDArray[np.int64]
    members: npt.NDArray[np.int64]
    rows_of: npt.NDArray[np.int64]
    forbidden: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, schema: Schema) -> _Rules:
        constraints = schema.constraints
        queries = () if constraints is None else constraints.forbidden
        members, marks, touching = [], [np.zeros(0, dtype=bool)], []
        for number, query in enumerate(queries):
            for literal in query.literals:
                size = int(schema.sizes[literal.attribute])
                marked = np.zeros(size, dtype=bool)
                marked[list(literal.allowed(size))] = True
                members.append(literal.attribute)
                marks.append(marked)
                touching.append((literal.attribute, number))
        by_attribute = np.array(sorted(touching), dtype=np.int64).reshape(-1, 2)
        starts = np.searchsorted(by_attribute[:, 0], np.arange(len(schema) + 1))
        every = np.concatenate([by_attribute[:, 1], np.arange(len(queries))])
        return cls(
            constraints,
            np.append(starts, len(every)).astype(np.int64),
            every.astype(np.int64),
            offsets([len(query.literals) for query in queries]),
            np.array(members, dtype=np.int64),
            offsets([len(marked) for marked in marks[1:]])[:-1],
            np.concatenate(marks),
        )


def _obey(
    model: Mixture,
    codes: Records,
    bounds: npt.NDArray[np.int64],
    rules: _Rules,
    fixed: Sequence[int],
    generator: np.random.Generator,
    state: npt.NDArray[np.uint64],
) -> None:
    """Make all rows obey the rules.

    Rows that break one exchange codes with others of their component, which keeps every share. The
    few that cannot be helped so are drawn again, and mended in the end.
    """
    from dualquery.model._arranging_kernels import untangle

    constraints = rules.constraints
    if constraints is None:
        return
    component = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    ruled = constraints.attributes
    movable = np.setdiff1d(ruled, np.asarray(fixed, dtype=np.int64))
    broken = np.flatnonzero(~constraints.holds(codes))
    if len(movable):
        untangle(
            codes, bounds, component, broken, UNTANGLING, rules.rule_start, rules.rules,
            rules.clause_start, rules.members, rules.rows_of, rules.forbidden,
            movable.astype(np.int64), state,
        )  # fmt: skip
    for _ in range(TRIES):
        broken = broken[~constraints.holds(codes[broken])]
        if not len(broken):
            return
        # Inside a component the attributes are independent, so the others may stay as they are.
        again = model.drawn(component[broken], generator)
        codes[np.ix_(broken, ruled)] = again[:, ruled]
    broken = broken[~constraints.holds(codes[broken])]
    codes[broken] = constraints.repair(codes[broken], generator)


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
    first = offsets(cells)
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
        offsets([len(uses) for uses in found]),
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
    rules: _Rules,
    fixed: Sequence[int],
    state: npt.NDArray[np.uint64],
    corrected: Ratios,
) -> None:
    from dualquery.model._arranging_kernels import exchange

    often = np.diff(uses.start)
    movable = np.setdiff1d(np.flatnonzero(often), np.asarray(fixed, dtype=np.int64))
    if not len(movable):
        return
    excess = _excess(model, codes, uses, corrected)
    component = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    lookups = max(1.0, float(often[movable].mean()))
    proposals = min(
        MOST_PROPOSALS, int(MOST_LOOKUPS / lookups), PROPOSALS_PER_CELL * len(codes) * len(movable)
    )
    exchange(
        codes, bounds, component, uses.start, uses.use_first, uses.use_stride, uses.others,
        uses.other_strides, movable, excess, proposals, rules.rule_start, rules.rules,
        rules.clause_start, rules.members, rules.rows_of, rules.forbidden, state,
    )  # fmt: skip


def _excess(model: Mixture, codes: Records, uses: _Uses, corrected: Ratios = NOTHING) -> Singles:
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
            expected = _corrected(expected, target, model.schema.sizes, corrected)
            part[:] = -len(codes) * expected.reshape(-1)
            add_cells(codes, np.array(target), uses.strides[number], 0, part)

    over_ranges(task, len(uses.targets), grain=1)
    return excess


def _corrected(
    expected: Singles,
    target: tuple[int, ...],
    sizes: npt.NDArray[np.int32],
    corrected: Ratios,
) -> Singles:
    """The cells of a target, each pair in it corrected; they add up to one again."""
    shape = tuple(int(sizes[a]) for a in target)
    cells = expected.reshape(shape)
    for (a, b), ratio in corrected.items():
        if a in target and b in target:
            one, other = target.index(a), target.index(b)
            along = [1] * len(target)
            along[one], along[other] = shape[one], shape[other]
            factor = (ratio if one < other else ratio.T).reshape(along).astype(np.float32)
            cells = cells * factor
            cells /= cells.sum()
    return cells
