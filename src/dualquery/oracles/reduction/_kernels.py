"""Compiled parts of the reduction: fixing by bounds, restricting, components."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from dualquery.oracles._kernels import lists

Array = Any


@numba.njit(cache=True)
def credit(
    single: Array,
    literal: Array,
    literal_start: Array,
    literal_slot: Array,
    o: int,
    low: int,
    high: int,
    lo: Array,
    hi: Array,
) -> None:
    """Add a range to what the slots listed by occurrence `o` can gain."""
    if single[o] >= 0:
        lo[single[o]] += low
        hi[single[o]] += high
        return
    l = literal[o]
    for i in range(literal_start[l], literal_start[l + 1]):
        lo[literal_slot[i]] += low
        hi[literal_slot[i]] += high


@numba.njit(cache=True)
def span(w: int, parity: int, flag: int, live: int, odd: int) -> Any:
    """The range of what being listed gains over not being, for an occurrence of a term of weight w.

    While other occurrences of the term are open they hold or do not, so a conjunction
    gains between 0 and its weight; alone in its term an occurrence gains exactly that.
    """
    if parity:
        if live > 1:
            return -abs(w), abs(w)
        w = w if odd else -w
        return w, w
    if flag:
        w = -w
    if live > 1:
        return min(w, 0), max(w, 0)
    return w, w


@numba.njit(cache=True)
def persist(core: Any) -> Any:
    """Strike out slots that another slot of the variable beats whatever the rest is.

    Per slot keep the least and the most it can gain over a slot that nothing lists. If
    the most of one is no more than the least of another, the first can go: some optimum
    does without it. Each removal settles occurrences, narrows the ranges of their terms
    and puts the variables there back into the queue. Returns the living slots and, per
    occurrence, whether it is still open, and per term whether it is, and how many settled
    occurrences of a parity hold.
    """
    first, home, owner, term_start = core.first, core.home, core.variable, core.term_start
    term_of, weight, parity, flag = core.occurrence_term, core.weight, core.parity, core.flag
    slot_start, slot_occurrence = core.slot_start, core.slot_occurrence
    single, literal = core.single, core.literal
    literal_start, literal_slot = core.literal_start, core.literal_slot
    variables = len(core.attribute)
    terms = len(weight)
    slots = len(core.code)
    lo = np.zeros(slots, np.int64)
    hi = np.zeros(slots, np.int64)
    alive = np.ones(slots, np.int8)
    count = np.empty(variables, np.int32)
    for v in range(variables):
        count[v] = first[v + 1] - first[v]
    occurrences = len(literal)
    is_open = np.ones(occurrences, np.int8)
    left = np.empty(occurrences, np.int32)
    live = np.empty(terms, np.int32)
    odd = np.zeros(terms, np.int8)
    term_open = np.ones(terms, np.int8)
    for j in range(terms):
        live[j] = term_start[j + 1] - term_start[j]
        for o in range(term_start[j], term_start[j + 1]):
            l = literal[o]
            left[o] = literal_start[l + 1] - literal_start[l]
            low, high = span(weight[j], parity[j], flag[o], live[j], 0)
            credit(single, literal, literal_start, literal_slot, o, low, high, lo, hi)
    queue = np.arange(variables).astype(np.int32)
    waiting = np.ones(variables, np.int8)
    head = 0
    waits = variables
    settled = np.empty(occurrences, np.int32)
    while waits > 0:
        v = queue[head]
        head = head + 1 if head + 1 < variables else 0
        waits -= 1
        waiting[v] = 0
        if count[v] == 1:
            continue
        best = -1
        for i in range(first[v], first[v + 1]):
            if not alive[i]:
                continue
            # Of slots with the same least gain the one that may gain more can never be
            # beaten by the other; where both ends agree it is a tie, and home has it.
            if (
                best < 0
                or lo[i] > lo[best]
                or (lo[i] == lo[best] and hi[i] > hi[best])
                or (lo[i] == lo[best] and hi[i] == hi[best] and i == home[v])
            ):
                best = i
        found = 0
        for i in range(first[v], first[v + 1]):
            if alive[i] and i != best and hi[i] <= lo[best]:
                alive[i] = 0
                count[v] -= 1
                for at in range(slot_start[i], slot_start[i + 1]):
                    o = slot_occurrence[at]
                    left[o] -= 1
                    if left[o] == 0 and is_open[o]:
                        settled[found] = o
                        found += 1
        if count[v] == 1:
            for at in range(slot_start[best], slot_start[best + 1]):
                o = slot_occurrence[at]
                if is_open[o]:
                    settled[found] = o
                    found += 1
        for s in range(found):
            o = settled[s]
            j = term_of[o]
            if not term_open[j]:
                continue
            begin, end = term_start[j], term_start[j + 1]
            holds = (left[o] > 0) != flag[o]
            for p in range(begin, end):
                if is_open[p]:
                    low, high = span(weight[j], parity[j], flag[p], live[j], odd[j])
                    credit(single, literal, literal_start, literal_slot, p, -low, -high, lo, hi)
            is_open[o] = 0
            live[j] -= 1
            if parity[j]:
                odd[j] ^= holds
            elif not holds:
                term_open[j] = 0
            if live[j] == 0:
                term_open[j] = 0
            for p in range(begin, end):
                if is_open[p]:
                    if term_open[j]:
                        low, high = span(weight[j], parity[j], flag[p], live[j], odd[j])
                        credit(single, literal, literal_start, literal_slot, p, low, high, lo, hi)
                    else:
                        is_open[p] = 0
                    u = owner[p]
                    if not waiting[u] and count[u] > 1:
                        waiting[u] = 1
                        at = head + waits
                        queue[at if at < variables else at - variables] = u
                        waits += 1
    return alive, is_open, term_open, odd


@numba.njit(cache=True)
def peel(core: Any) -> Any:
    """Parities that a variable of their own can always set right, peeled off one by one.

    A variable with a single occurrence, in a parity, decides that parity whatever the
    others are: the term gets its better value and leaves the problem, which may leave
    other variables with a single occurrence. On sparse parities this is most of the
    elimination over GF(2). Returns the pairs in order; they are undone from the last.
    """
    first, owner, term_start, parity = core.first, core.variable, core.term_start, core.parity
    term_of = core.occurrence_term
    slot_start, slot_occurrence = core.slot_start, core.slot_occurrence
    uses = np.zeros(len(core.attribute), np.int32)
    last = np.empty(len(uses), np.int64)
    for o in range(len(owner)):
        v = owner[o]
        uses[v] += 1
        last[v] = o
    term_open = np.ones(len(parity), np.int8)
    queue = np.empty(len(uses), np.int32)
    waits = 0
    for v in range(len(uses)):
        if uses[v] == 1 and parity[term_of[last[v]]]:
            queue[waits] = v
            waits += 1
    owners = np.empty(len(parity), np.int32)
    peeled = np.empty(len(parity), np.int32)
    found = 0
    while waits > 0:
        waits -= 1
        v = queue[waits]
        if uses[v] != 1:
            continue
        # The one occurrence left, among those of the variable's slots.
        at: Any = np.int64(-1)
        for i in range(slot_start[first[v]], slot_start[first[v + 1]]):
            if term_open[term_of[slot_occurrence[i]]]:
                at = slot_occurrence[i]
        j = term_of[at]
        if not parity[j]:
            continue
        term_open[j] = 0
        owners[found] = v
        peeled[found] = j
        found += 1
        for o in range(term_start[j], term_start[j + 1]):
            u = owner[o]
            uses[u] -= 1
            if uses[u] == 1:
                queue[waits] = u
                waits += 1
    return term_open, owners[:found].copy(), peeled[:found].copy()


@numba.njit(cache=True)
def unpeel(core: Any, owners: Array, peeled: Array, slot: Array) -> None:
    """Set each peeled parity right by its own variable, the last peeled first."""
    first, owner, term_start, weight = core.first, core.variable, core.term_start, core.weight
    single, literal = core.single, core.literal
    literal_start, literal_slot = core.literal_start, core.literal_slot
    for step in range(len(owners) - 1, -1, -1):
        v, j = owners[step], peeled[step]
        holding = 0
        mine: Any = np.int64(-1)
        for o in range(term_start[j], term_start[j + 1]):
            u = owner[o]
            holding += lists(single, literal, literal_start, literal_slot, o, slot[u])
            if u == v:
                mine = o
        if (holding % 2 == 0) == (weight[j] > 0):
            continue
        wanted = not lists(single, literal, literal_start, literal_slot, mine, slot[v])
        for i in range(first[v], first[v + 1]):
            if lists(single, literal, literal_start, literal_slot, mine, i) == wanted:
                slot[v] = i
                break


@numba.njit(cache=True)
def restrict(core: Any, alive: Array, is_open: Array, term_open: Array, odd: Array) -> Any:
    """What is left after `persist`, as arrays laid out like a workload's."""
    first, home, term_start, weight = core.first, core.home, core.term_start, core.weight
    parity, flag, literal = core.parity, core.flag, core.literal
    literal_variable = core.literal_variable
    literal_start_in, literal_slot = core.literal_start, core.literal_slot
    variables = len(core.attribute)
    sizes = np.zeros(variables, np.int32)
    defaults = np.zeros(variables, np.int32)
    rank = np.full(len(core.code), -1, np.int32)
    chosen = np.empty(variables, np.int32)
    for v in range(variables):
        chosen[v] = -1
        for i in range(first[v], first[v + 1]):
            if alive[i]:
                rank[i] = sizes[v]
                sizes[v] += 1
                if chosen[v] < 0 or i == home[v]:
                    chosen[v] = i
        defaults[v] = rank[chosen[v]]
    terms = 0
    uses = 0
    number = np.full(len(literal_variable), -1, np.int32)
    literals = 0
    listed = 0
    for j in range(len(weight)):
        if term_open[j]:
            terms += 1
            for o in range(term_start[j], term_start[j + 1]):
                if is_open[o]:
                    uses += 1
                    l = literal[o]
                    if number[l] < 0:
                        number[l] = literals
                        literals += 1
                        listed += literal_start_in[l + 1] - literal_start_in[l]
    attribute = np.empty(literals, np.int32)
    literal_start = np.zeros(literals + 1, np.int64)
    codes = np.empty(listed, np.int32)
    start = np.zeros(terms + 1, np.int64)
    uses_out = np.empty(uses, np.int32)
    is_parity = np.empty(terms, np.bool_)
    weights = np.empty(terms, np.int64)
    at = 0
    n = 0
    t = 0
    done = 0
    for j in range(len(weight)):
        if not term_open[j]:
            continue
        turn = 1 if parity[j] and odd[j] else 0
        for o in range(term_start[j], term_start[j + 1]):
            if is_open[o]:
                l = literal[o]
                if number[l] == done:
                    attribute[done] = literal_variable[l]
                    for i in range(literal_start_in[l], literal_start_in[l + 1]):
                        if alive[literal_slot[i]]:
                            codes[at] = rank[literal_slot[i]]
                            at += 1
                    done += 1
                    literal_start[done] = at
                # A settled odd count turns one literal of the parity over.
                uses_out[n] = 2 * number[l] + (flag[o] ^ turn)
                turn = 0
                n += 1
        is_parity[t] = parity[j] == 1
        weights[t] = weight[j]
        t += 1
        start[t] = n
    return (
        attribute,
        literal_start,
        codes[:at].copy(),
        start,
        uses_out,
        is_parity,
        weights,
        sizes,
        defaults,
        chosen,
    )


@numba.njit(cache=True)
def settled_value(core: Any, slot: Array, term_open: Array) -> Any:
    """The weight of the terms that are settled, at any assignment of the living slots."""
    term_start, weight, parity, flag = core.term_start, core.weight, core.parity, core.flag
    single, literal, owner = core.single, core.literal, core.variable
    literal_start, literal_slot = core.literal_start, core.literal_slot
    total = 0
    for j in range(len(weight)):
        if term_open[j]:
            continue
        failing = 0
        holding = 0
        for o in range(term_start[j], term_start[j + 1]):
            at = slot[owner[o]]
            if lists(single, literal, literal_start, literal_slot, o, at) == flag[o]:
                failing += 1
            else:
                holding += 1
        if (parity[j] and holding % 2 == 0) or (not parity[j] and failing == 0):
            total += weight[j]
    return total


@numba.njit(cache=True)
def components(core: Any) -> Any:
    """Variables and terms grouped by connected component, both in rising order."""
    owner, begins = core.variable, core.term_start
    terms = len(core.weight)
    variables = len(core.attribute)
    parent = np.arange(variables).astype(np.int32)
    for j in range(terms):
        begin = begins[j]
        root = owner[begin]
        while parent[root] != root:
            parent[root] = parent[parent[root]]
            root = parent[root]
        for o in range(begin + 1, begins[j + 1]):
            other = owner[o]
            while parent[other] != other:
                parent[other] = parent[parent[other]]
                other = parent[other]
            if other < root:
                parent[root] = other
                root = other
            else:
                parent[other] = root
    label = np.full(variables, -1, np.int32)
    group = np.empty(variables, np.int32)
    found = 0
    for v in range(variables):
        root = v
        while parent[root] != root:
            root = parent[root]
        if label[root] < 0:
            label[root] = found
            found += 1
        group[v] = label[root]
    variable_start = np.zeros(found + 1, np.int32)
    term_start = np.zeros(found + 1, np.int32)
    for v in range(variables):
        variable_start[group[v] + 1] += 1
    for j in range(terms):
        term_start[group[owner[begins[j]]] + 1] += 1
    for c in range(found):
        variable_start[c + 1] += variable_start[c]
        term_start[c + 1] += term_start[c]
    by_variable = np.empty(variables, np.int32)
    by_term = np.empty(terms, np.int32)
    at_variable = variable_start[:-1].copy()
    at_term = term_start[:-1].copy()
    for v in range(variables):
        by_variable[at_variable[group[v]]] = v
        at_variable[group[v]] += 1
    for j in range(terms):
        c = group[owner[begins[j]]]
        by_term[at_term[c]] = j
        at_term[c] += 1
    return variable_start, by_variable, term_start, by_term
