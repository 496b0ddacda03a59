"""Compiled loops that all searches share; the tests hold each against a plain twin.

Arrays are taken out of the core before a loop and handed on one by one. The reason: numba
counts a reference each time a field is read, and inside these loops that cost four times
the work itself.
"""

from __future__ import annotations

from dualquery.base.compile import njit
from dualquery.oracles.core import Core, Int8, Int32, Int64, Part, Search


@njit(inline="always")
def add_score(
    flag: Int8,
    single: Int32,
    literal: Int32,
    literal_start: Int32,
    literal_slot: Int32,
    o: int,
    amount: int,
    score: Int64,
) -> None:
    """Credit `amount` to the slots for which an occurrence holds (up to a constant).

    Args:
        flag, single, literal, literal_start, literal_slot: the core's arrays of these names.
        o: the occurrence.
        amount: what the slots are credited with.
        score: the scores that change, per slot.
    """
    if flag[o]:
        amount = -amount
    if single[o] >= 0:
        score[single[o]] += amount
        return
    l = literal[o]
    for i in range(literal_start[l], literal_start[l + 1]):
        score[literal_slot[i]] += amount


@njit(inline="always")
def lists(
    single: Int32, literal: Int32, literal_start: Int32, literal_slot: Int32, o: int, at: int
) -> bool:
    """Whether the list of an occurrence has a slot on it.

    Args:
        single, literal, literal_start, literal_slot: the core's arrays of these names.
        o: the occurrence.
        at: the slot.
    """
    if single[o] >= 0:
        return bool(single[o] == at)
    l = literal[o]
    found = False
    for i in range(literal_start[l], literal_start[l + 1]):
        found = found or literal_slot[i] == at
    return found


@njit(cache=True)
def load(core: Core, part: Part, search: Search) -> int:
    """Bring a search up to date with its slots on one part; return the value of the terms."""
    slot, miss, mark, score = search.slot, search.miss, search.mark, search.score
    first, owner, term_start, weight = core.first, core.variable, core.term_start, core.weight
    parity, flag, single, literal = core.parity, core.flag, core.single, core.literal
    literal_start, literal_slot = core.literal_start, core.literal_slot
    for v in part.variables:
        for i in range(first[v], first[v + 1]):
            score[i] = 0
    value = 0
    for j in part.terms:
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
                # If an odd number of the others holds, this one makes it even by holding.
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


@njit(cache=True, forceinline=True)
def move(core: Core, search: Search, v: int, to: int) -> None:
    """Put a variable into another of its slots.

    The cost is the terms that list the old slot or the new one.

    Args:
        core: the core that is searched.
        search: the search; all of it changes.
        v: the variable.
        to: its new slot, different from the old one.
    """
    slot, miss, mark, score = search.slot, search.miss, search.mark, search.score
    slot_start, slot_occurrence, owner = core.slot_start, core.slot_occurrence, core.variable
    term_of, term_start, weight = core.occurrence_term, core.term_start, core.weight
    parity, flag, single, literal = core.parity, core.flag, core.single, core.literal
    literal_start, literal_slot = core.literal_start, core.literal_slot
    old = slot[v]
    slot[v] = to
    # One loop serves both slots, so that its body is compiled once.
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
        # `left` is the number of failing occurrences except o. If it is 0, all other
        # occurrences gain or lose by what o does. If it is 1, only the failing one does.
        # If it is more, none does.
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


@njit(cache=True)
def descend(core: Core, variables: Int32, search: Search) -> int:
    """Make the best move of each variable until none gains; ties go home. Return the gain.

    This ends, because every move either raises the value, or keeps it and raises the number
    of variables at home.
    """
    slot, score = search.slot, search.score
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
                move(core, search, v, best)
                moved = True
    return total
