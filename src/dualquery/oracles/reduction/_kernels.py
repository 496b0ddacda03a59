"""Compiled parts of the reduction: peeling parities, cutting the core down, components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dualquery.base.compile import njit
from dualquery.oracles._kernels import lists
from dualquery.oracles.core import Core, Int8, Int32, WeightedQueries


class Peeled(NamedTuple):
    """The terms that stay open, and the pairs (variable, parity) that left, in order."""

    term_open: Int8
    owners: Int32
    parities: Int32


class Kept(NamedTuple):
    """What of a core is still open: its living slots, open occurrences and open terms.

    `odd` says per parity whether an odd number of its closed occurrences holds.
    """

    alive: Int8
    is_open: Int8
    term_open: Int8
    odd: Int8


class Living(NamedTuple):
    """The living slots, numbered afresh within their variables.

    Per variable: how many live (`sizes`), the one that stands for the default (`chosen`), and
    its new number (`defaults`). Per slot: its new number (`rank`), or −1.
    """

    sizes: Int32
    chosen: Int32
    defaults: Int32
    rank: Int32


class OpenSizes(NamedTuple):
    """How much is open, and per literal its new number in the order of first use, or −1."""

    terms: int
    uses: int
    literals: int
    listed: int
    number: Int32


class ConnectedGroups(NamedTuple):
    """Variables and terms by connected component, in rising order within each."""

    variable_start: Int32
    variables: Int32
    term_start: Int32
    terms: Int32


@njit(cache=True)
def peel(core: Core) -> Peeled:
    """Peel off parities that a variable of their own can always set right.

    A variable whose only occurrence is in a parity decides that parity, whatever the others
    do. So the parity gets its better value and leaves the problem. Other variables may then
    be left with a single occurrence. On sparse parities this is most of the elimination over
    GF(2). `unpeel` undoes the pairs, the last one first.
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
    stack = np.empty(len(uses), np.int32)
    waits = 0
    for v in range(len(uses)):
        if uses[v] == 1 and parity[term_of[last[v]]]:
            stack[waits] = v
            waits += 1
    owners = np.empty(len(parity), np.int32)
    peeled = np.empty(len(parity), np.int32)
    found = 0
    while waits > 0:
        waits -= 1
        v = stack[waits]
        if uses[v] != 1:
            continue
        # The one open occurrence of the variable is among those that list its slots.
        at = -1
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
                stack[waits] = u
                waits += 1
    return Peeled(term_open, owners[:found].copy(), peeled[:found].copy())


@njit(cache=True)
def unpeel(core: Core, owners: Int32, parities: Int32, slot: Int32) -> None:
    """Set each peeled parity right by its own variable, the last peeled first.

    Args:
        core: the core before peeling.
        owners: the variables that left, in order.
        parities: the parities that left with them.
        slot: the assignment that changes.
    """
    first, owner, term_start, weight = core.first, core.variable, core.term_start, core.weight
    single, literal = core.single, core.literal
    literal_start, literal_slot = core.literal_start, core.literal_slot
    for step in range(len(owners) - 1, -1, -1):
        v, j = owners[step], parities[step]
        holding = 0
        mine = -1
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


@njit(cache=True)
def living_slots(core: Core, alive: Int8) -> Living:
    """Number the living slots of each variable from 0, in their order."""
    first, home = core.first, core.home
    variables = len(core.attribute)
    sizes = np.zeros(variables, np.int32)
    chosen = np.full(variables, -1, np.int32)
    defaults = np.zeros(variables, np.int32)
    rank = np.full(len(core.code), -1, np.int32)
    for v in range(variables):
        for i in range(first[v], first[v + 1]):
            if alive[i]:
                rank[i] = sizes[v]
                sizes[v] += 1
                if chosen[v] < 0 or i == home[v]:
                    chosen[v] = i
        defaults[v] = rank[chosen[v]]
    return Living(sizes, chosen, defaults, rank)


@njit(inline="always")
def count_open(core: Core, kept: Kept) -> OpenSizes:
    """Count what is open, so that the arrays for it can be made."""
    is_open, term_open = kept.is_open, kept.term_open
    term_start, literal, literal_start = core.term_start, core.literal, core.literal_start
    number = np.full(len(core.literal_variable), -1, np.int32)
    terms = 0
    uses = 0
    literals = 0
    listed = 0
    for j in range(len(term_open)):
        if not term_open[j]:
            continue
        terms += 1
        for o in range(term_start[j], term_start[j + 1]):
            if is_open[o]:
                uses += 1
                l = literal[o]
                if number[l] < 0:
                    number[l] = literals
                    literals += 1
                    listed += literal_start[l + 1] - literal_start[l]
    return OpenSizes(terms, uses, literals, listed, number)


@njit(cache=True)
def open_queries(core: Core, kept: Kept, living: Living, constant: int) -> WeightedQueries:
    """What is open, as queries over the living slots: slots become codes.

    Args:
        core: the core to cut down.
        kept: what of it is open.
        living: its living slots.
        constant: the value of all that is not open.
    """
    alive, is_open, term_open, odd = kept.alive, kept.is_open, kept.term_open, kept.odd
    term_start, weight, parity, flag = core.term_start, core.weight, core.parity, core.flag
    literal, literal_slot, rank = core.literal, core.literal_slot, living.rank
    counted = count_open(core, kept)
    number = counted.number
    attribute = np.empty(counted.literals, np.int32)
    literal_start = np.zeros(counted.literals + 1, np.int64)
    codes = np.empty(counted.listed, np.int32)
    start = np.zeros(counted.terms + 1, np.int64)
    uses = np.empty(counted.uses, np.int32)
    is_parity = np.empty(counted.terms, np.bool_)
    weights = np.empty(counted.terms, np.int64)
    written = 0
    listed = 0
    used = 0
    t = 0
    for j in range(len(weight)):
        if not term_open[j]:
            continue
        # If an odd number of closed occurrences holds, one literal of the parity is negated.
        turn = 1 if parity[j] and odd[j] else 0
        for o in range(term_start[j], term_start[j + 1]):
            if not is_open[o]:
                continue
            l = literal[o]
            if number[l] == written:
                attribute[written] = core.literal_variable[l]
                for i in range(core.literal_start[l], core.literal_start[l + 1]):
                    if alive[literal_slot[i]]:
                        codes[listed] = rank[literal_slot[i]]
                        listed += 1
                written += 1
                literal_start[written] = listed
            uses[used] = 2 * number[l] + (flag[o] ^ turn)
            turn = 0
            used += 1
        is_parity[t] = parity[j] == 1
        weights[t] = weight[j]
        t += 1
        start[t] = used
    return WeightedQueries(
        attribute=attribute,
        literal_start=literal_start,
        codes=codes[:listed].copy(),
        start=start,
        terms=uses,
        is_parity=is_parity,
        weight=weights,
        sizes=living.sizes,
        defaults=living.defaults,
        constant=constant,
        penalty=core.penalty,
    )


@njit(cache=True)
def settled_value(core: Core, slot: Int32, term_open: Int8) -> int:
    """The value of the terms that are closed; it is the same for all living slots."""
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


@njit(cache=True)
def components(core: Core) -> ConnectedGroups:
    """Group what terms connect; components are in the order of their smallest variables."""
    owner, begins = core.variable, core.term_start
    terms = len(core.weight)
    variables = len(core.attribute)
    parent = np.arange(variables).astype(np.int32)
    for j in range(terms):
        begin = begins[j]
        root = find_root(parent, owner[begin])
        for o in range(begin + 1, begins[j + 1]):
            other = find_root(parent, owner[o])
            if other < root:
                parent[root] = other
                root = other
            else:
                parent[other] = root
    # A root is the smallest variable of its component, so it is numbered before the others.
    label = np.empty(variables, np.int32)
    found = 0
    for v in range(variables):
        root = find_root(parent, v)
        if root == v:
            label[v] = found
            found += 1
        else:
            label[v] = label[root]
    term_label = np.empty(terms, np.int32)
    for j in range(terms):
        term_label[j] = label[owner[begins[j]]]
    variable_start, by_variable = sort_by_label(label, found)
    term_start, by_term = sort_by_label(term_label, found)
    return ConnectedGroups(variable_start, by_variable, term_start, by_term)


@njit(inline="always")
def find_root(parent: Int32, v: int) -> int:
    """The root of a variable's tree; the way there is halved for the next time."""
    root = v
    while parent[root] != root:
        parent[root] = parent[parent[root]]
        root = parent[root]
    return root


@njit(cache=True)
def sort_by_label(label: Int32, labels: int) -> tuple[Int32, Int32]:
    """Positions by label, rising within each, and where each label starts."""
    start = np.zeros(labels + 1, np.int32)
    for each in label:
        start[each + 1] += 1
    for i in range(labels):
        start[i + 1] += start[i]
    cursor = start[:-1].copy()
    order = np.empty(len(label), np.int32)
    for i in range(len(label)):
        order[cursor[label[i]]] = i
        cursor[label[i]] += 1
    return start, order
