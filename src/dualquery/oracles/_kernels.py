"""Compiled inner loops of the oracles; the tests hold each against a plain twin.

A search keeps, beside the core, `slot` (per variable), `miss` and `mark` (per term) and
`score` (per slot). For a conjunction `miss` counts the occurrences that fail and `mark` is
the XOR of their positions, so that a single failing occurrence can be read off; for a
parity `miss` is the parity of the occurrences that hold. `score` differs between two slots
of a variable by exactly the gain of moving from one to the other.

Arrays are taken out of the core before a loop and handed on one by one: numba counts a
reference each time a field is read, and in these loops that cost four times the work.
"""

from __future__ import annotations

from typing import Any

import numba

Array = Any


@numba.njit(inline="always")
def add_score(
    flag: Array,
    single: Array,
    literal: Array,
    literal_start: Array,
    literal_slot: Array,
    o: int,
    amount: int,
    score: Array,
) -> None:
    """Credit `amount` to the slots for which occurrence `o` holds (up to a constant)."""
    if flag[o]:
        amount = -amount
    if single[o] >= 0:
        score[single[o]] += amount
        return
    l = literal[o]
    for i in range(literal_start[l], literal_start[l + 1]):
        score[literal_slot[i]] += amount


@numba.njit(inline="always")
def lists(
    single: Array, literal: Array, literal_start: Array, literal_slot: Array, o: int, at: int
) -> bool:
    """Whether occurrence `o` lists slot `at`."""
    if single[o] >= 0:
        return bool(single[o] == at)
    l = literal[o]
    found = False
    for i in range(literal_start[l], literal_start[l + 1]):
        found = found or literal_slot[i] == at
    return found


@numba.njit(cache=True)
def load_state(
    core: Any, variables: Array, terms: Array, slot: Array, miss: Array, mark: Array, score: Array
) -> Any:
    """Fill the search state of some variables and all their terms; return the terms' value."""
    first, owner, term_start, weight = core.first, core.variable, core.term_start, core.weight
    parity, flag, single, literal = core.parity, core.flag, core.single, core.literal
    literal_start, literal_slot = core.literal_start, core.literal_slot
    for v in variables:
        for i in range(first[v], first[v + 1]):
            score[i] = 0
    value = 0
    for j in terms:
        begin, end = term_start[j], term_start[j + 1]
        failing = 0
        which = 0
        for o in range(begin, end):
            at = slot[owner[o]]
            if lists(single, literal, literal_start, literal_slot, o, at) == flag[o]:
                failing += 1
                which ^= o
        w = weight[j]
        if parity[j]:
            odd = (end - begin - failing) & 1
            miss[j] = odd
            mark[j] = 0
            if odd == 0:
                value += w
            for o in range(begin, end):
                own = lists(single, literal, literal_start, literal_slot, o, slot[owner[o]])
                # With the others odd in number, holding makes the term even.
                gain = w if odd != own else -w
                add_score(flag, single, literal, literal_start, literal_slot, o, gain, score)
        else:
            miss[j] = failing
            mark[j] = which
            if failing == 0:
                value += w
            elif failing == 1:
                begin, end = which, which + 1
            else:
                continue
            for o in range(begin, end):
                add_score(flag, single, literal, literal_start, literal_slot, o, w, score)
    return value


@numba.njit(cache=True)
def move(core: Any, v: int, to: int, slot: Array, miss: Array, mark: Array, score: Array) -> None:
    """Put variable `v` into slot `to`; costs the terms that list either slot."""
    slot_start, slot_occurrence, owner = core.slot_start, core.slot_occurrence, core.variable
    term_of, term_start, weight = core.occurrence_term, core.term_start, core.weight
    parity, flag, single, literal = core.parity, core.flag, core.single, core.literal
    literal_start, literal_slot = core.literal_start, core.literal_slot
    old = slot[v]
    slot[v] = to
    # One loop for both slots, so that what it does is compiled once.
    middle = slot_start[old + 1] - slot_start[old]
    end = middle + slot_start[to + 1] - slot_start[to]
    for i in range(end):
        entered = i >= middle
        o = slot_occurrence[slot_start[to] + i - middle if entered else slot_start[old] + i]
        if lists(single, literal, literal_start, literal_slot, o, old if entered else to):
            continue
        j = term_of[o]
        w = weight[j]
        if parity[j]:
            for p in range(term_start[j], term_start[j + 1]):
                if p != o:
                    own = lists(single, literal, literal_start, literal_slot, p, slot[owner[p]])
                    # What p was credited with turns into its opposite.
                    gain = -2 * w if miss[j] != own else 2 * w
                    add_score(flag, single, literal, literal_start, literal_slot, p, gain, score)
            miss[j] ^= 1
            continue
        # `left` occurrences fail apart from o. With none o decides for all the others, with
        # one it decides for that one, with more for nobody.
        if entered != flag[o]:
            miss[j] -= 1
            mark[j] ^= o
            left, others = miss[j], mark[j]
        else:
            left, others = miss[j], mark[j]
            miss[j] += 1
            mark[j] ^= o
            w = -w
        if left > 1:
            continue
        first_one = others if left else term_start[j]
        last_one = others + 1 if left else term_start[j + 1]
        for p in range(first_one, last_one):
            if p != o:
                add_score(flag, single, literal, literal_start, literal_slot, p, w, score)


@numba.njit(cache=True)
def descend(
    core: Any, variables: Array, slot: Array, miss: Array, mark: Array, score: Array
) -> Any:
    """Best moves until none gains, and ties go home. Return the gain.

    Every move raises the value, or keeps it and raises the number of variables at home,
    so this ends.
    """
    first, home = core.first, core.home
    total = 0
    moved = True
    while moved:
        moved = False
        for v in variables:
            now = slot[v]
            best = now
            for i in range(first[v], first[v + 1]):
                if score[i] > score[best]:
                    best = i
            if score[home[v]] == score[best]:
                best = home[v]
            if best != now:
                total += score[best] - score[now]
                move(core, v, best, slot, miss, mark, score)
                moved = True
    return total
