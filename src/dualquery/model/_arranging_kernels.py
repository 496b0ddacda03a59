# mypy: ignore-errors
# Compiled code has numba's types, not Python's; the twins in the tests check it.
"""Compiled loops that arrange rows. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

import numpy as np

from dualquery.base._kernels import next_random
from dualquery.base.compile import njit

_compiled = njit(nogil=True, cache=True, error_model="numpy")


@njit(inline="always")
def _below(state, bound):
    """A number below `bound`, uniform up to one part in 2³²; `state[0]` is the generator's."""
    state[0] = next_random(state[0])
    return np.int64(((state[0] >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@_compiled
def deal(shares, sizes, codes, state):
    """Deal the codes of one attribute to the rows, component by component.

    Component k has `sizes[k]` consecutive rows, and `shares[c, k]` of them should have code c.
    What rounding leaves over in one component is carried on to the next, so that over all rows
    every code is off by less than one row or so. Inside a component the order is random.
    """
    carried = np.zeros(len(shares))
    wanted = np.empty(len(shares))
    given = np.empty(len(shares), dtype=np.int64)
    first = 0
    for k in range(len(sizes)):
        left = sizes[k]
        for c in range(len(shares)):
            wanted[c] = sizes[k] * shares[c, k] + carried[c]
            given[c] = np.int64(max(0.0, np.floor(wanted[c])))
            left -= given[c]
        while left != 0:
            # The code that is furthest behind takes a row; if too many were given, the one
            # furthest ahead loses one.
            best = -1
            for c in range(len(shares)):
                if left < 0 and given[c] == 0:
                    continue
                if left > 0 and shares[c, k] <= 0.0:
                    continue
                behind = wanted[c] - given[c]
                if (
                    best < 0
                    or (left > 0 and behind > wanted[best] - given[best])
                    or (left < 0 and behind < wanted[best] - given[best])
                ):
                    best = c
            step = 1 if left > 0 else -1
            given[best] += step
            left -= step
        place = first
        for c in range(len(shares)):
            carried[c] = wanted[c] - given[c]
            for _ in range(given[c]):
                codes[place] = c
                place += 1
        for i in range(place - 1, first, -1):
            j = first + _below(state, i - first + 1)
            codes[i], codes[j] = codes[j], codes[i]
        first = place


@_compiled
def add_cells(codes, attributes, strides, first, excess):
    """Add one to `excess[first + cell]` for the cell of every row in one marginal."""
    for row in range(len(codes)):
        cell = first
        for i in range(len(attributes)):
            cell += strides[i] * codes[row, attributes[i]]
        excess[cell] += 1.0


@njit(inline="always")
def _breaks(codes, row, a, code, first, last, clauses, clause_start, members, rows_of, forbidden):
    """Whether a row would break one of some rules if attribute a had this code in it."""
    for place in range(first, last):
        clause = clauses[place]
        hit = True
        for i in range(clause_start[clause], clause_start[clause + 1]):
            attribute = members[i]
            found = code if attribute == a else codes[row, attribute]
            if not forbidden[rows_of[i] + found]:
                hit = False
                break
        if hit:
            return True
    return False


@_compiled
def untangle(
    codes,
    bounds,
    component,
    broken,
    tries,
    rule_start,
    rules,
    clause_start,
    members,
    rows_of,
    forbidden,
    allowed,
    state,
):
    """Exchange codes between rows of a component until the rows in `broken` obey all rules.

    Rule j forbids a row that has one of the codes marked in `forbidden[rows_of[i]:]` in attribute
    `members[i]` for every i in `clause_start[j]:clause_start[j + 1]`. The rules about attribute a
    are `rules[rule_start[a]:rule_start[a + 1]]`, and the last part of `rules` lists them all.
    """
    every = rule_start[len(rule_start) - 2]
    for place in range(len(broken)):
        one = broken[place]
        k = component[one]
        for _ in range(tries):
            a = allowed[_below(state, len(allowed))]
            two = bounds[k] + _below(state, bounds[k + 1] - bounds[k])
            x, y = codes[one, a], codes[two, a]
            if x == y:
                continue
            if _breaks(
                codes, one, a, y, every, len(rules), rules, clause_start, members, rows_of,
                forbidden,
            ):  # fmt: skip
                continue
            if _breaks(
                codes, two, a, x, every, len(rules), rules, clause_start, members, rows_of,
                forbidden,
            ):  # fmt: skip
                continue
            codes[one, a], codes[two, a] = y, x
            break


@_compiled
def exchange(
    codes,
    bounds,
    component,
    use_start,
    use_first,
    use_stride,
    others,
    other_strides,
    allowed,
    excess,
    proposals,
    rule_start,
    rules,
    clause_start,
    members,
    rows_of,
    forbidden,
    state,
):
    """Exchange codes between rows of a component where that brings the cells nearer their targets.

    `excess[cell]` is how many rows too many a cell has. A proposal takes an attribute and two rows
    of one component with different codes of it; it is accepted if the sum of all squared excesses
    falls. The uses of attribute a are `use_start[a]:use_start[a + 1]`: in a marginal whose cells
    begin at `use_first`, the attribute has the stride `use_stride`, and the other attributes (−1:
    none) have `other_strides`. Only attributes in `allowed` are exchanged. No exchange
    breaks a rule; see `untangle` for how rules are laid out. Returns how many proposals were
    accepted.
    """
    accepted = 0
    widest = 0
    for a in range(len(use_start) - 1):
        widest = max(widest, use_start[a + 1] - use_start[a])
    base_one = np.empty(widest, dtype=np.int64)
    base_two = np.empty(widest, dtype=np.int64)
    for _ in range(proposals):
        a = allowed[_below(state, len(allowed))]
        one = _below(state, len(codes))
        k = component[one]
        two = bounds[k] + _below(state, bounds[k + 1] - bounds[k])
        x, y = codes[one, a], codes[two, a]
        if x == y:
            continue
        change = np.float32(0.0)
        begin = use_start[a]
        for use in range(begin, use_start[a + 1]):
            u = use_first[use]
            v = u
            for i in range(others.shape[1]):
                other = others[use, i]
                if other >= 0:
                    u += other_strides[use, i] * codes[one, other]
                    v += other_strides[use, i] * codes[two, other]
            base_one[use - begin] = u
            base_two[use - begin] = v
            if u != v:
                stride = use_stride[use]
                change += excess[u + stride * y] - excess[u + stride * x]
                change += excess[v + stride * x] - excess[v + stride * y]
                change += np.float32(2.0)
        if change < 0.0:
            first, last = rule_start[a], rule_start[a + 1]
            if _breaks(
                codes, one, a, y, first, last, rules, clause_start, members, rows_of, forbidden
            ) or _breaks(
                codes, two, a, x, first, last, rules, clause_start, members, rows_of, forbidden
            ):
                continue
            accepted += 1
            codes[one, a], codes[two, a] = y, x
            for use in range(begin, use_start[a + 1]):
                u, v = base_one[use - begin], base_two[use - begin]
                if u != v:
                    stride = use_stride[use]
                    excess[u + stride * x] -= np.float32(1.0)
                    excess[u + stride * y] += np.float32(1.0)
                    excess[v + stride * y] -= np.float32(1.0)
                    excess[v + stride * x] += np.float32(1.0)
    return accepted
