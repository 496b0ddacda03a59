# mypy: ignore-errors
# Compiled code has numba's types, not Python's; the twins in the tests check it.
"""Compiled sweeps through a forest, and tables inside its trees. Each has a plain NumPy twin.

Arrays end with one entry per component, so that loops over components are contiguous. `given` holds
one block per edge, `given[parent's code, child's code, k]`; a block of `ways` is the same for a way
of several edges.
"""

from __future__ import annotations

import numpy as np

from dualquery.base.compile import njit
from dualquery.model._kernels import fast_exp

_compiled = njit(nogil=True, cache=True, fastmath=True, error_model="numpy")
_part_of_a_kernel = njit(fastmath=True, error_model="numpy", inline="always")

LOWEST = np.float32(-80.0)
"""Exponents below it are as good as minus infinity in single precision."""


@_compiled
def sweep(logits, ties, start, parents, children, tie_start, margins, given):
    """Fill the conditional shares of every edge, and the margins of every child.

    The margins of roots are there already. Edges stand in an order in which parents come first.
    """
    components = logits.shape[1]
    top = np.empty(components, dtype=np.float32)
    total = np.empty(components, dtype=np.float32)
    for e in range(len(children)):
        above, below = start[parents[e]], start[children[e]]
        rows, columns = start[parents[e] + 1] - above, start[children[e] + 1] - below
        block = given[tie_start[e] : tie_start[e + 1]].reshape(rows, columns, components)
        for j in range(columns):
            for k in range(components):
                margins[below + j, k] = 0.0
        for i in range(rows):
            tied = ties[tie_start[e] + i * columns : tie_start[e] + (i + 1) * columns]
            for k in range(components):
                top[k] = logits[below, k] + tied[0]
                total[k] = 0.0
            for j in range(1, columns):
                for k in range(components):
                    top[k] = max(top[k], logits[below + j, k] + tied[j])
            for j in range(columns):
                for k in range(components):
                    share = fast_exp(max(logits[below + j, k] + tied[j] - top[k], LOWEST))
                    block[i, j, k] = share
                    total[k] += share
            for k in range(components):
                total[k] = np.float32(1.0) / total[k]
            for j in range(columns):
                for k in range(components):
                    block[i, j, k] *= total[k]
                    margins[below + j, k] += margins[above + i, k] * block[i, j, k]


@_compiled
def sweep_back(
    start, parents, children, tie_start, margins, given, by_margin, by_given, by_logits, by_ties
):
    """Turn slopes by margins and conditional shares into slopes by the logits of children and ties.

    `by_margin` of roots then holds what remains to be done for them.
    """
    components = margins.shape[1]
    dot = np.empty(components, dtype=np.float32)
    for e in range(len(children) - 1, -1, -1):
        above, below = start[parents[e]], start[children[e]]
        rows, columns = start[parents[e] + 1] - above, start[children[e] + 1] - below
        block = given[tie_start[e] : tie_start[e + 1]].reshape(rows, columns, components)
        slope = by_given[tie_start[e] : tie_start[e + 1]].reshape(rows, columns, components)
        for j in range(columns):
            for k in range(components):
                by_logits[below + j, k] = 0.0
        for i in range(rows):
            for k in range(components):
                dot[k] = 0.0
            for j in range(columns):
                for k in range(components):
                    pull = by_margin[below + j, k]
                    by_margin[above + i, k] += pull * block[i, j, k]
                    slope[i, j, k] += pull * margins[above + i, k]
                    dot[k] += slope[i, j, k] * block[i, j, k]
            for j in range(columns):
                tied = np.float32(0.0)
                for k in range(components):
                    moved = block[i, j, k] * (slope[i, j, k] - dot[k])
                    by_logits[below + j, k] += moved
                    tied += moved
                by_ties[tie_start[e] + i * columns + j] = tied


@_compiled
def walk(given, tie_start, first, rest, sizes, way_start, ways):
    """Fill the conditional shares along every way: an edge, times those of the rest of the way.

    `sizes[w]` are the numbers of codes at the top, after the first edge, and at the end of way w.
    """
    components = given.shape[1]
    for w in range(len(first)):
        rows, middle, columns = sizes[w, 0], sizes[w, 1], sizes[w, 2]
        edge = given[tie_start[first[w]] : tie_start[first[w] + 1]]
        block = ways[way_start[w] : way_start[w + 1]]
        if rest[w] < 0:
            block[:] = edge
            continue
        after = ways[way_start[rest[w]] : way_start[rest[w] + 1]]
        block[:] = 0.0
        for i in range(rows):
            for m in range(middle):
                for j in range(columns):
                    for k in range(components):
                        block[i * columns + j, k] += (
                            edge[i * middle + m, k] * after[m * columns + j, k]
                        )


@_compiled
def walk_back(given, tie_start, first, rest, sizes, way_start, ways, by_way, by_given):
    """Add the slopes by conditional shares of edges, from those by ways, which are used up."""
    components = given.shape[1]
    for w in range(len(first) - 1, -1, -1):
        rows, middle, columns = sizes[w, 0], sizes[w, 1], sizes[w, 2]
        edge = given[tie_start[first[w]] : tie_start[first[w] + 1]]
        edge_slope = by_given[tie_start[first[w]] : tie_start[first[w] + 1]]
        slope = by_way[way_start[w] : way_start[w + 1]]
        if rest[w] < 0:
            for i in range(rows * columns):
                for k in range(components):
                    edge_slope[i, k] += slope[i, k]
            continue
        after = ways[way_start[rest[w]] : way_start[rest[w] + 1]]
        after_slope = by_way[way_start[rest[w]] : way_start[rest[w] + 1]]
        for i in range(rows):
            for m in range(middle):
                for j in range(columns):
                    for k in range(components):
                        pull = slope[i * columns + j, k]
                        edge_slope[i * middle + m, k] += pull * after[m * columns + j, k]
                        after_slope[m * columns + j, k] += pull * edge[i * middle + m, k]


@_part_of_a_kernel
def _joint(margins, top, tops, left, right, lefts, rights, out):
    """out[i, j, k]: the shares of two attributes in each component, from where they meet.

    `margins[top:top + tops]` are those of the meeting point. `left` and `right` are the ways to the
    two attributes. An empty one says that the attribute is the meeting point itself.
    """
    components = margins.shape[1]
    if len(left) == 0:
        for i in range(lefts):
            for j in range(rights):
                for k in range(components):
                    out[i * rights + j, k] = margins[top + i, k] * right[i * rights + j, k]
    elif len(right) == 0:
        for j in range(rights):
            for i in range(lefts):
                for k in range(components):
                    out[i * rights + j, k] = margins[top + j, k] * left[j * lefts + i, k]
    else:
        out[: lefts * rights] = 0.0
        for c in range(tops):
            for i in range(lefts):
                for j in range(rights):
                    for k in range(components):
                        out[i * rights + j, k] += (
                            margins[top + c, k] * left[c * lefts + i, k] * right[c * rights + j, k]
                        )


@_part_of_a_kernel
def _joint_back(
    margins, top, tops, left, right, lefts, rights, slope, by_margin, by_left, by_right, held
):
    """Add the slopes by margins and ways, from `slope` by the shares that `_joint` filled."""
    components = margins.shape[1]
    if len(left) == 0:
        for i in range(lefts):
            for j in range(rights):
                for k in range(components):
                    pull = slope[i * rights + j, k]
                    by_margin[top + i, k] += pull * right[i * rights + j, k]
                    by_right[i * rights + j, k] += pull * margins[top + i, k]
    elif len(right) == 0:
        for j in range(rights):
            for i in range(lefts):
                for k in range(components):
                    pull = slope[i * rights + j, k]
                    by_margin[top + j, k] += pull * left[j * lefts + i, k]
                    by_left[j * lefts + i, k] += pull * margins[top + j, k]
    else:
        for c in range(tops):
            for i in range(lefts):
                for k in range(components):
                    held[k] = 0.0
                for j in range(rights):
                    for k in range(components):
                        pull = slope[i * rights + j, k]
                        held[k] += pull * right[c * rights + j, k]
                        by_right[c * rights + j, k] += (
                            pull * margins[top + c, k] * left[c * lefts + i, k]
                        )
                for k in range(components):
                    by_margin[top + c, k] += held[k] * left[c * lefts + i, k]
                    by_left[c * lefts + i, k] += held[k] * margins[top + c, k]


@_part_of_a_kernel
def _block(flat, start, number):
    """The block of a way; an empty one if there is none."""
    if number < 0:
        return flat[:0]
    return flat[start[number] : start[number + 1]]


@_compiled
def weigh_pairs(
    margins, weights, ways, way_start, pairs, start, counts, precision, total, by_margin, by_weight,
    by_way,
):  # fmt: skip
    """Add the slopes of pairs inside trees; returns Σ precision·(total·share − count)².

    Pair p has (first row and number of codes of the meeting point; way and number of codes of
    either attribute) in `pairs[p]`, and the cells `counts[start[p]:start[p + 1]]`.
    """
    components = margins.shape[1]
    most = 1
    for p in range(len(pairs)):
        most = max(most, start[p + 1] - start[p])
    shares = np.empty((most, components), dtype=np.float32)
    held = np.empty(components, dtype=np.float32)
    value = 0.0
    for p in range(len(pairs)):
        top, tops, one, ones, other, others = pairs[p]
        left, right = _block(ways, way_start, one), _block(ways, way_start, other)
        _joint(margins, top, tops, left, right, ones, others, shares)
        for c in range(start[p + 1] - start[p]):
            share = np.float32(0.0)
            for k in range(components):
                share += weights[k] * shares[c, k]
            away = total * share - counts[start[p] + c]
            pull = precision[p] * away
            value += pull * away
            pull *= total
            for k in range(components):
                by_weight[k] += pull * shares[c, k]
                shares[c, k] = pull * weights[k]
        _joint_back(
            margins, top, tops, left, right, ones, others, shares, by_margin,
            _block(by_way, way_start, one), _block(by_way, way_start, other), held,
        )  # fmt: skip
    return value


@_part_of_a_kernel
def _beside(margins, one, ones, other, others, out):
    """out[i, j, k]: the shares of two attributes of different trees in each component."""
    for i in range(ones):
        for j in range(others):
            for k in range(margins.shape[1]):
                out[i * others + j, k] = margins[one + i, k] * margins[other + j, k]


@_part_of_a_kernel
def _beside_back(margins, one, ones, other, others, slope, by_margin):
    """Add the slopes by both margins, from `slope` by the shares that `_beside` filled."""
    for i in range(ones):
        for j in range(others):
            for k in range(margins.shape[1]):
                pull = slope[i * others + j, k]
                by_margin[one + i, k] += pull * margins[other + j, k]
                by_margin[other + j, k] += pull * margins[one + i, k]


@_compiled
def weigh_triples(
    margins, weights, ways, way_start, triples, start, counts, precision, total, by_margin,
    by_weight, by_way,
):  # fmt: skip
    """Add the slopes of triples of which two or three attributes are in one tree.

    Two attributes meet at the *apex*, the lowest meeting point of the three. Given its code and the
    component, both are independent of each other and of the third. So the cells are a product of
    two matrices, whose inner side is codes of the apex times components.

    `triples[p]` has: first row and number of codes of the apex; first row and number of codes of
    the third attribute; first row and number of codes of where apex and third meet (-1 if they are
    in different trees), and the ways from there to either; then way and number of codes of each of
    the two. The cells of the third attribute change slowest.
    """
    components = margins.shape[1]
    outer, inner, wide = 1, 1, 1
    for p in range(len(triples)):
        codes, thirds, ones, others = (
            triples[p, 1], triples[p, 3], triples[p, 9], triples[p, 11]
        )  # fmt: skip
        outer = max(outer, codes * thirds)
        inner = max(inner, codes * ones * others)
        wide = max(wide, thirds * ones * others)
    pairs = np.empty((outer, components), dtype=np.float32)
    lefts = np.empty(outer * components, dtype=np.float32)
    left_slopes = np.empty(outer * components, dtype=np.float32)
    rights = np.empty(inner * components, dtype=np.float32)
    right_slopes = np.empty(inner * components, dtype=np.float32)
    cells = np.empty(wide, dtype=np.float32)
    held = np.empty(components, dtype=np.float32)
    value = 0.0
    for p in range(len(triples)):
        apex, codes, third, thirds, top, tops, to_apex, to_third, one, ones, other, others = (
            triples[p]
        )
        up, down = _block(ways, way_start, to_apex), _block(ways, way_start, to_third)
        if top < 0:
            _beside(margins, apex, codes, third, thirds, pairs)
        else:
            _joint(margins, top, tops, up, down, codes, thirds, pairs)
        if (
            one < 0
        ):  # the apex is one of the two, so every code of it is a matrix product of its own
            second, by_second = _block(ways, way_start, other), _block(by_way, way_start, other)
            few = lefts[: thirds * components].reshape(thirds, components)
            few_slopes = left_slopes[: thirds * components].reshape(thirds, components)
            more_slopes = right_slopes[: others * components].reshape(others, components)
            part = cells[: thirds * others].reshape(thirds, others)
            for m in range(codes):
                below = second[m * others : (m + 1) * others]
                for i in range(thirds):
                    for k in range(components):
                        few[i, k] = weights[k] * pairs[m * thirds + i, k]
                np.dot(few, below.T, part)
                for i in range(thirds):
                    first_cell = start[p] + (i * codes + m) * others
                    for j in range(others):
                        away = total * part[i, j] - counts[first_cell + j]
                        pull = precision[p] * away
                        value += pull * away
                        part[i, j] = pull * total
                np.dot(part, below, few_slopes)
                np.dot(part.T, few, more_slopes)
                for j in range(others):
                    for k in range(components):
                        by_second[m * others + j, k] += more_slopes[j, k]
                for i in range(thirds):
                    for k in range(components):
                        pull = few_slopes[i, k]
                        by_weight[k] += pull * pairs[m * thirds + i, k]
                        pairs[m * thirds + i, k] = pull * weights[k]
            if top < 0:
                _beside_back(margins, apex, codes, third, thirds, pairs, by_margin)
            else:
                _joint_back(
                    margins, top, tops, up, down, codes, thirds, pairs, by_margin,
                    _block(by_way, way_start, to_apex), _block(by_way, way_start, to_third), held,
                )  # fmt: skip
            continue
        # The left matrix: a row per code of the third attribute.
        depth = codes * components
        left = lefts[: thirds * depth].reshape(thirds, depth)
        for m in range(codes):
            for i in range(thirds):
                for k in range(components):
                    left[i, m * components + k] = weights[k] * pairs[m * thirds + i, k]
        # The right matrix: a column per pair of codes of the two.
        first, second = _block(ways, way_start, one), _block(ways, way_start, other)
        right = rights[: depth * ones * others].reshape(depth, ones * others)
        for m in range(codes):
            for k in range(components):
                row = right[m * components + k]
                for i in range(ones):
                    share = first[m * ones + i, k]
                    for j in range(others):
                        row[i * others + j] = share * second[m * others + j, k]
        table = cells[: thirds * ones * others].reshape(thirds, ones * others)
        np.dot(left, right, table)
        flat = cells[: thirds * ones * others]
        for c in range(len(flat)):
            away = total * flat[c] - counts[start[p] + c]
            pull = precision[p] * away
            value += pull * away
            flat[c] = pull * total
        left_slope = left_slopes[: thirds * depth].reshape(thirds, depth)
        right_slope = right_slopes[: depth * ones * others].reshape(depth, ones * others)
        np.dot(table, right.T, left_slope)
        np.dot(left.T, table, right_slope)
        by_first, by_second = _block(by_way, way_start, one), _block(by_way, way_start, other)
        for m in range(codes):
            for k in range(components):
                row = right_slope[m * components + k]
                for i in range(ones):
                    share = first[m * ones + i, k]
                    pulled = np.float32(0.0)
                    for j in range(others):
                        pull = row[i * others + j]
                        pulled += pull * second[m * others + j, k]
                        by_second[m * others + j, k] += pull * share
                    by_first[m * ones + i, k] += pulled
        for m in range(codes):
            for i in range(thirds):
                for k in range(components):
                    pull = left_slope[i, m * components + k]
                    by_weight[k] += pull * pairs[m * thirds + i, k]
                    pairs[m * thirds + i, k] = pull * weights[k]
        if top < 0:
            _beside_back(margins, apex, codes, third, thirds, pairs, by_margin)
        else:
            _joint_back(
                margins, top, tops, up, down, codes, thirds, pairs, by_margin,
                _block(by_way, way_start, to_apex), _block(by_way, way_start, to_third), held,
            )  # fmt: skip
    return value
