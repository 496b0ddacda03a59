# mypy: ignore-errors
# Compiled code has numba's types, not Python's; the twins in the tests check it.
"""Compiled answers to queries that name several attributes of a tree. They have a plain NumPy twin.

What a literal says at an attribute is the chance that it holds, given each group of codes there. It
is known at the literal's own attribute and at all attributes above. Where two literals of a query
meet, what they say is multiplied, and what comes of it is moved on upwards.
"""

from __future__ import annotations

import numpy as np

from dualquery.base.compile import njit

_compiled = njit(nogil=True, cache=True, fastmath=True, error_model="numpy")
_part_of_a_kernel = njit(fastmath=True, error_model="numpy")


@_part_of_a_kernel
def _meeting(one, other, parent, depth):
    """The lowest common ancestor of two attributes of one tree."""
    while one != other:
        if depth[one] >= depth[other]:
            one = parent[one]
        else:
            other = parent[other]
    return one


@_part_of_a_kernel
def _moved_up(said, rows, block, moved):
    """Fill what is said at an attribute's parent; `block` are the shares given the parent."""
    components = said.shape[1]
    for i in range(len(block) // rows):
        for k in range(components):
            moved[i, k] = 0.0
        for j in range(rows):
            for k in range(components):
                moved[i, k] += block[i * rows + j, k] * said[j, k]


@_part_of_a_kernel
def _said_by_literal(vectors, first, rows, is_parity, said):
    """Fill what a literal says; of a parity, one less twice the chance that it holds."""
    scale, base = (-2.0, 1.0) if is_parity else (1.0, 0.0)
    for i in range(rows):
        for k in range(vectors.shape[1]):
            said[i, k] = base + scale * vectors[first + i, k]


@_compiled
def answer_joined(
    terms, is_parity, weights, attribute, place, vectors, alone, parent, depth, root, edge,
    margin_start, margins, given_start, given, found, first_query, last_query,
):  # fmt: skip
    """Fill the probabilities of some queries.

    Row q of `terms` holds the terms of query q, and -1 behind them. Term t is about
    `attribute[t]`. `vectors[place[t, d]:]` is what it says at the attribute d steps above, and
    `alone[t]` is its probability in each component. Margins and conditional shares are those of
    groups, a row each.
    """
    components, most = len(weights), terms.shape[1]
    rows = 1
    for a in range(len(parent)):
        rows = max(rows, margin_start[a + 1] - margin_start[a])
    shares = np.empty(components)
    said = np.empty((most + 2, rows, components))
    node = np.empty(most, dtype=np.int64)
    literal = np.empty(most, dtype=np.int64)
    done = np.empty(most, dtype=np.bool_)
    for q in range(first_query, last_query):
        shares[:] = weights
        count = 0
        while count < most and terms[q, count] >= 0:
            done[count] = False
            count += 1
        for i in range(count):
            if done[i]:
                continue
            left = 0
            for j in range(i, count):
                if root[attribute[terms[q, j]]] == root[attribute[terms[q, i]]]:
                    done[j] = True
                    literal[left] = terms[q, j]
                    node[left] = attribute[terms[q, j]]
                    left += 1
            if left == 1:
                t = literal[0]
                for k in range(components):
                    own = alone[t, k]
                    shares[k] *= 1.0 - 2.0 * own if is_parity[q] else own
                continue
            while left > 1:
                # The two that meet lowest come first.
                one, other, top = 0, 1, _meeting(node[0], node[1], parent, depth)
                for a in range(left):
                    for b in range(max(a + 1, 2 if a == 0 else 0), left):
                        here = _meeting(node[a], node[b], parent, depth)
                        if depth[here] > depth[top]:
                            one, other, top = a, b, here
                size = margin_start[top + 1] - margin_start[top]
                for slot, which in ((most, one), (most + 1, other)):
                    t, at = literal[which], node[which]
                    if t >= 0:
                        _said_by_literal(
                            vectors, place[t, depth[at] - depth[top]], size, is_parity[q],
                            said[slot],
                        )  # fmt: skip
                        continue
                    while at != top:
                        e, own = edge[at], margin_start[at + 1] - margin_start[at]
                        _moved_up(said[which], own, given[given_start[e] : given_start[e + 1]],
                                  said[slot])  # fmt: skip
                        at = parent[at]
                        above = margin_start[at + 1] - margin_start[at]
                        said[which, :above] = said[slot, :above]
                    said[slot, :size] = said[which, :size]
                for g in range(size):
                    for k in range(components):
                        said[one, g, k] = said[most, g, k] * said[most + 1, g, k]
                node[one], literal[one] = top, -1
                left -= 1
                if other != left:
                    node[other], literal[other] = node[left], literal[left]
                    size = margin_start[node[other] + 1] - margin_start[node[other]]
                    said[other, :size] = said[left, :size]
            top = node[0]
            size = margin_start[top + 1] - margin_start[top]
            for k in range(components):
                said[most, 0, k] = 0.0
            for g in range(size):
                for k in range(components):
                    said[most, 0, k] += margins[margin_start[top] + g, k] * said[0, g, k]
            for k in range(components):
                shares[k] *= said[most, 0, k]
        total = 0.0
        for k in range(components):
            total += shares[k]
        found[q] = 0.5 + 0.5 * total if is_parity[q] else total
