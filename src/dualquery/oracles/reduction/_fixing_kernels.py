"""Compiled fixing by bounds: slots that some optimum does without. Start at `persist`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dualquery.base.compile import njit
from dualquery.oracles.core import Core, Int8, Int32, Int64


class Fixing(NamedTuple):
    """What is fixed so far.

    Per slot: the least (`low`) and the most (`high`) it can gain over a slot that nothing
    lists, and whether it is `alive`. Per variable: the number of its living slots (`width`).
    Per occurrence: whether it `is_open`, that is, still undecided, and how many slots on its
    list are alive (`listed`). Per term: whether `term_open`, how many of its occurrences are
    open (`open_count`), and for a parity whether an odd number of decided ones holds (`odd`).
    """

    low: Int64
    high: Int64
    alive: Int8
    width: Int32
    is_open: Int8
    listed: Int32
    term_open: Int8
    open_count: Int32
    odd: Int8


class Waiting(NamedTuple):
    """The variables to look at, in a ring: `ends` holds its head and how many wait."""

    ring: Int32
    waits: Int8
    ends: Int64


@njit(cache=True)
def persist(core: Core) -> Fixing:
    """Strike out every slot that another slot of its variable beats whatever the rest does.

    A slot can go if the most it can gain is no more than the least that another slot gains:
    some optimum does without it. Each removal decides occurrences. That narrows the ranges in
    their terms, and the variables there are looked at again.
    """
    fixing = everything_open(core)
    variables = len(core.attribute)
    waiting = Waiting(
        np.arange(variables).astype(np.int32),
        np.ones(variables, np.int8),
        np.zeros(2, np.int64),
    )
    waiting.ends[1] = variables
    decided = np.empty(len(core.literal), np.int32)
    while waiting.ends[1] > 0:
        v = take(waiting)
        if fixing.width[v] == 1:
            continue
        found = strike(core, fixing, v, decided)
        for i in range(found):
            decide(core, fixing, decided[i], waiting)
    return fixing


@njit(inline="always")
def everything_open(core: Core) -> Fixing:
    """The beginning: every slot lives, and every occurrence may hold or fail."""
    first, term_start, literal = core.first, core.term_start, core.literal
    literal_start = core.literal_start
    slots, terms, occurrences = len(core.code), len(core.weight), len(literal)
    fixing = Fixing(
        low=np.zeros(slots, np.int64),
        high=np.zeros(slots, np.int64),
        alive=np.ones(slots, np.int8),
        width=first[1:] - first[:-1],
        is_open=np.ones(occurrences, np.int8),
        listed=np.empty(occurrences, np.int32),
        term_open=np.ones(terms, np.int8),
        open_count=term_start[1:] - term_start[:-1],
        odd=np.zeros(terms, np.int8),
    )
    listed = fixing.listed
    for o in range(occurrences):
        listed[o] = literal_start[literal[o] + 1] - literal_start[literal[o]]
    for j in range(terms):
        credit_term(core, fixing, j, 1)
    return fixing


@njit(cache=True, forceinline=True)
def credit_term(core: Core, fixing: Fixing, j: int, sign: int) -> None:
    """Add to the slots, or take from them again, what the open occurrences of a term can gain.

    Args:
        core: the core that is reduced.
        fixing: what is fixed so far; its ranges change.
        j: the term.
        sign: 1 to add, −1 to take away.
    """
    low, high, is_open = fixing.low, fixing.high, fixing.is_open
    flag, single, literal = core.flag, core.single, core.literal
    literal_start, literal_slot = core.literal_start, core.literal_slot
    w, parity, open_count = core.weight[j], core.parity[j], fixing.open_count[j]
    odd = fixing.odd[j]
    for o in range(core.term_start[j], core.term_start[j + 1]):
        if not is_open[o]:
            continue
        least, most = gain_range(w, parity, flag[o], open_count, odd)
        if single[o] >= 0:
            low[single[o]] += sign * least
            high[single[o]] += sign * most
            continue
        l = literal[o]
        for i in range(literal_start[l], literal_start[l + 1]):
            low[literal_slot[i]] += sign * least
            high[literal_slot[i]] += sign * most


@njit(inline="always")
def gain_range(w: int, parity: int, flag: int, open_count: int, odd: int) -> tuple[int, int]:
    """The least and the most that a slot gains by being on the list of an occurrence.

    While other occurrences of a conjunction are open, the gain lies between 0 and the weight.
    An occurrence that is alone in its term gains exactly the weight.

    Args:
        w: the weight of the term.
        parity: whether the term is a parity.
        flag: whether the occurrence means the complement of its list.
        open_count: the number of open occurrences of the term.
        odd: whether an odd number of decided occurrences of the parity holds.
    """
    if parity:
        least, most = (-abs(w), abs(w)) if open_count > 1 else (w, w) if odd else (-w, -w)
    else:
        gain = -w if flag else w
        least, most = (min(gain, 0), max(gain, 0)) if open_count > 1 else (gain, gain)
    return least, most


@njit(cache=True, forceinline=True)
def take(waiting: Waiting) -> int:
    """Take the first variable out of the ring."""
    ring, waits, ends = waiting.ring, waiting.waits, waiting.ends
    v = ring[ends[0]]
    ends[0] = ends[0] + 1 if ends[0] + 1 < len(ring) else 0
    ends[1] -= 1
    waits[v] = 0
    return int(v)


@njit(cache=True, forceinline=True)
def strike(core: Core, fixing: Fixing, v: int, decided: Int32) -> int:
    """Strike out the slots of a variable that are beaten.

    Args:
        core: the core that is reduced.
        fixing: what is fixed so far; what is about slots changes.
        v: the variable.
        decided: filled with the occurrences that this decides.

    Returns:
        The number of occurrences decided.
    """
    slot_start, slot_occurrence, first = core.slot_start, core.slot_occurrence, core.first
    low, high, alive = fixing.low, fixing.high, fixing.alive
    width, listed, is_open = fixing.width, fixing.listed, fixing.is_open
    best = strongest(core, fixing, v)
    found = 0
    for i in range(first[v], first[v + 1]):
        if alive[i] and i != best and high[i] <= low[best]:
            alive[i] = 0
            width[v] -= 1
            for at in range(slot_start[i], slot_start[i + 1]):
                o = slot_occurrence[at]
                listed[o] -= 1
                if listed[o] == 0 and is_open[o]:
                    decided[found] = o
                    found += 1
    if width[v] == 1:
        for at in range(slot_start[best], slot_start[best + 1]):
            o = slot_occurrence[at]
            if is_open[o]:
                decided[found] = o
                found += 1
    return found


@njit(cache=True, forceinline=True)
def strongest(core: Core, fixing: Fixing, v: int) -> int:
    """The living slot of a variable that gains most in the worst case.

    Of two slots that gain the same in the worst case, the one that may gain more is never
    beaten by the other, so it is taken. If that is equal too, home is taken.
    """
    low, high, alive, home = fixing.low, fixing.high, fixing.alive, core.home[v]
    best = -1
    for i in range(core.first[v], core.first[v + 1]):
        if alive[i] and (
            best < 0
            or low[i] > low[best]
            or (low[i] == low[best] and high[i] > high[best])
            or (low[i] == low[best] and high[i] == high[best] and i == home)
        ):
            best = i
    return best


@njit(cache=True, forceinline=True)
def decide(core: Core, fixing: Fixing, o: int, waiting: Waiting) -> None:
    """Close an occurrence that now always holds, or always fails.

    Its term may close with it. The ranges of the term change, so its other variables wait to
    be looked at again.

    Args:
        core: the core that is reduced.
        fixing: what is fixed so far; what is about the term changes, and the ranges.
        o: the occurrence; it holds if a slot on its list is alive, and fails if none is.
        waiting: gets the variables to look at again.
    """
    j = core.occurrence_term[o]
    if not fixing.term_open[j]:
        return
    owner, is_open, width = core.variable, fixing.is_open, fixing.width
    ring, waits, ends = waiting.ring, waiting.waits, waiting.ends
    holds = (fixing.listed[o] > 0) != core.flag[o]
    credit_term(core, fixing, j, -1)
    is_open[o] = 0
    fixing.open_count[j] -= 1
    if core.parity[j]:
        fixing.odd[j] ^= holds
    elif not holds:
        fixing.term_open[j] = 0
    if fixing.open_count[j] == 0:
        fixing.term_open[j] = 0
    if fixing.term_open[j]:
        credit_term(core, fixing, j, 1)
    for p in range(core.term_start[j], core.term_start[j + 1]):
        if is_open[p]:
            if not fixing.term_open[j]:
                is_open[p] = 0
            u = owner[p]
            if not waits[u] and width[u] > 1:
                waits[u] = 1
                at = ends[0] + ends[1]
                ring[at if at < len(ring) else at - len(ring)] = u
                ends[1] += 1
