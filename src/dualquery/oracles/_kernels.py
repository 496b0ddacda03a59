"""Compiled inner loops of the oracles; the tests hold each against a plain twin.

A search keeps, beside the core, `slot` (per variable), `miss` and `mark` (per term) and
`score` (per slot). For a conjunction `miss` counts the occurrences that fail and `mark` is
the XOR of their positions, so that a single failing occurrence can be read off; for a
parity `miss` is the parity of the occurrences that hold. `score` differs between two slots
of a variable by exactly the gain of moving from one to the other.
"""

from __future__ import annotations

from typing import Any

import numba

Array = Any


@numba.njit(cache=True)
def add_score(core: Any, o: int, amount: int, score: Array) -> None:
    """Credit `amount` to the slots for which occurrence `o` holds (up to a constant)."""
    if core.flag[o]:
        amount = -amount
    if core.single[o] >= 0:
        score[core.single[o]] += amount
        return
    l = core.literal[o]
    for i in range(core.literal_start[l], core.literal_start[l + 1]):
        score[core.literal_slot[i]] += amount


@numba.njit(cache=True)
def lists(core: Any, o: int, at: int) -> bool:
    """Whether occurrence `o` lists slot `at`."""
    if core.single[o] >= 0:
        return bool(core.single[o] == at)
    l = core.literal[o]
    for i in range(core.literal_start[l], core.literal_start[l + 1]):
        if core.literal_slot[i] == at:
            return True
    return False


@numba.njit(cache=True)
def load_state(
    core: Any, variables: Array, terms: Array, slot: Array, miss: Array, mark: Array, score: Array
) -> Any:
    """Fill the search state of some variables and all their terms; return the terms' value."""
    for v in variables:
        for i in range(core.first[v], core.first[v + 1]):
            score[i] = 0
    value = 0
    for j in terms:
        begin, end = core.term_start[j], core.term_start[j + 1]
        failing = 0
        which = 0
        holding = 0
        for o in range(begin, end):
            if lists(core, o, slot[core.literal_variable[core.literal[o]]]) == core.flag[o]:
                failing += 1
                which ^= o
            else:
                holding += 1
        w = core.weight[j]
        if core.parity[j]:
            odd = holding & 1
            miss[j] = odd
            mark[j] = 0
            if odd == 0:
                value += w
            for o in range(begin, end):
                v = core.literal_variable[core.literal[o]]
                own = 1 if lists(core, o, slot[v]) else 0
                # With the others odd in number, holding makes the term even.
                add_score(core, o, w if odd ^ own else -w, score)
        else:
            miss[j] = failing
            mark[j] = which
            if failing == 0:
                value += w
                for o in range(begin, end):
                    add_score(core, o, w, score)
            elif failing == 1:
                add_score(core, which, w, score)
    return value


@numba.njit(cache=True)
def toggle(
    core: Any, o: int, now: int, slot: Array, miss: Array, mark: Array, score: Array
) -> None:
    """Occurrence `o` has changed: it is listed (`now` is 1) or no longer (0)."""
    j = core.occurrence_term[o]
    w = core.weight[j]
    begin, end = core.term_start[j], core.term_start[j + 1]
    if core.parity[j]:
        for p in range(begin, end):
            if p != o:
                own = lists(core, p, slot[core.literal_variable[core.literal[p]]])
                # What p was credited with turns into its opposite.
                add_score(core, p, -2 * w if miss[j] != own else 2 * w, score)
        miss[j] ^= 1
    elif now != core.flag[o]:
        miss[j] -= 1
        mark[j] ^= o
        if miss[j] == 0:
            for p in range(begin, end):
                if p != o:
                    add_score(core, p, w, score)
        elif miss[j] == 1:
            add_score(core, mark[j], w, score)
    else:
        if miss[j] == 0:
            for p in range(begin, end):
                if p != o:
                    add_score(core, p, -w, score)
        elif miss[j] == 1:
            add_score(core, mark[j], -w, score)
        miss[j] += 1
        mark[j] ^= o


@numba.njit(cache=True)
def move(core: Any, v: int, to: int, slot: Array, miss: Array, mark: Array, score: Array) -> None:
    """Put variable `v` into slot `to`; costs the terms that list either slot."""
    old = slot[v]
    slot[v] = to
    # One loop for both slots, so that `toggle` is compiled into it once.
    middle = core.slot_start[old + 1] - core.slot_start[old]
    end = middle + core.slot_start[to + 1] - core.slot_start[to]
    for i in range(end):
        now = 1 if i >= middle else 0
        at = core.slot_start[to] + i - middle if now else core.slot_start[old] + i
        o = core.slot_occurrence[at]
        if not lists(core, o, old if now else to):
            toggle(core, o, now, slot, miss, mark, score)


@numba.njit(cache=True)
def descend(
    core: Any, variables: Array, slot: Array, miss: Array, mark: Array, score: Array
) -> Any:
    """Best moves until none gains, and ties go home. Return the gain.

    Every move raises the value, or keeps it and raises the number of variables at home,
    so this ends.
    """
    total = 0
    moved = True
    while moved:
        moved = False
        for v in variables:
            now = slot[v]
            best = now
            for i in range(core.first[v], core.first[v + 1]):
                if score[i] > score[best]:
                    best = i
            if score[core.home[v]] == score[best]:
                best = core.home[v]
            if best != now:
                total += score[best] - score[now]
                move(core, v, best, slot, miss, mark, score)
                moved = True
    return total
