"""Compiled searches over the records of a core: enumeration, annealing, elimination.

The search state is described in `_kernels`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from dualquery.oracles._kernels import lists, load_state, move

Array = Any

# Exponential and Gumbel variables, tabulated: a draw costs one read instead of logs.
CHANCE = -np.log((np.arange(4096) + 0.5) / 4096)
GUMBEL = -np.log(CHANCE)


@numba.njit(cache=True)
def enumerate_slots(
    core: Any, variables: Array, terms: Array, slot: Array, miss: Array, mark: Array, score: Array
) -> Any:
    """Try all slots of a few variables; leave the best in `slot`, return its value.

    A mixed-radix Gray code changes one variable a step, so a step costs its terms only.
    It begins at home, and among equals keeps the one with the most variables at home.
    """
    first, home_slot = core.first, core.home
    n = len(variables)
    width = np.empty(n, np.int32)
    digit = np.zeros(n, np.int32)
    way = np.ones(n, np.int32)
    best = np.empty(n, np.int32)
    for i in range(n):
        v = variables[i]
        width[i] = first[v + 1] - first[v]
        slot[v] = home_slot[v]
        best[i] = home_slot[v]
    value = load_state(core, variables, terms, slot, miss, mark, score)
    best_value = value
    home = n
    best_home = n
    while True:
        i = 0
        while i < n and (digit[i] + way[i] < 0 or digit[i] + way[i] >= width[i]):
            way[i] = -way[i]
            i += 1
        if i == n:
            break
        digit[i] += way[i]
        v = variables[i]
        offset = home_slot[v] - first[v] + digit[i]
        to = first[v] + (offset if offset < width[i] else offset - width[i])
        value += score[to] - score[slot[v]]
        home += (to == home_slot[v]) - (slot[v] == home_slot[v])
        move(core, v, to, slot, miss, mark, score)
        if value > best_value or (value == best_value and home > best_home):
            best_value = value
            best_home = home
            for k in range(n):
                best[k] = slot[variables[k]]
    for i in range(n):
        slot[variables[i]] = best[i]
    return best_value


@numba.njit(cache=True)
def cross(
    core: Any,
    variables: Array,
    other: Array,
    slot: Array,
    miss: Array,
    mark: Array,
    score: Array,
) -> Any:
    """Take from another assignment whatever is better there; return the gain.

    First it walks towards `other` (in the order of `variables`) as long as that costs
    nothing. The variables that still differ fall into groups that share no term, but for
    terms that fail whatever they do. Each group is worth the same gain whatever the others
    do, so the result is at least as good as either, and often better than both.
    """
    first, owner, parity, flag = core.first, core.variable, core.parity, core.flag
    term_of, term_start = core.occurrence_term, core.term_start
    slot_start, slot_occurrence = core.slot_start, core.slot_occurrence
    single, literal = core.single, core.literal
    literal_start, literal_slot = core.literal_start, core.literal_slot
    total = 0
    moved = True
    while moved:
        moved = False
        for i in range(len(variables)):
            now = slot[variables[i]]
            if now != other[i] and score[other[i]] >= score[now]:
                total += score[other[i]] - score[now]
                move(core, variables[i], other[i], slot, miss, mark, score)
                moved = True
    place = np.full(len(core.attribute), -1, np.int32)
    apart = np.zeros(len(core.attribute), np.int8)
    differing = 0
    for i in range(len(variables)):
        if slot[variables[i]] != other[i]:
            place[variables[i]] = i
            apart[variables[i]] = 1
            differing += 1
    stack = np.empty(differing, np.int32)
    old = np.empty(differing, np.int32)
    visited = np.zeros(len(core.weight), np.int8)
    for root in variables:
        if place[root] < 0:
            continue
        # One group, depth first; each variable is switched on the way.
        count = 1
        top = 0
        stack[0] = root
        old[0] = place[root]
        place[root] = -1
        gain = 0
        while top < count:
            v = stack[top]
            i = old[top]
            old[top] = slot[v]
            gain += score[other[i]] - score[slot[v]]
            move(core, v, other[i], slot, miss, mark, score)
            for at in range(slot_start[first[v]], slot_start[first[v + 1]]):
                j = term_of[slot_occurrence[at]]
                if visited[j]:
                    continue
                visited[j] = 1
                settled = False
                for o in range(term_start[j], term_start[j + 1]):
                    u = owner[o]
                    if not apart[u] and not parity[j]:
                        held = lists(single, literal, literal_start, literal_slot, o, slot[u])
                        settled = settled or held == flag[o]
                if settled:
                    continue
                for o in range(term_start[j], term_start[j + 1]):
                    u = owner[o]
                    if place[u] >= 0:
                        stack[count] = u
                        old[count] = place[u]
                        place[u] = -1
                        count += 1
            top += 1
        if gain > 0:
            total += gain
            continue
        for top in range(count):
            move(core, stack[top], old[top], slot, miss, mark, score)
    return total


@numba.njit(cache=True)
def anneal(
    core: Any,
    variables: Array,
    terms: Array,
    starts: Array,
    runs: int,
    sweeps: int,
    hot: float,
    cold: float,
    enough: int,
    agree: int,
    unanimous: int,
    seed: int,
    slot: Array,
    miss: Array,
    mark: Array,
    score: Array,
) -> Any:
    """Anneal some variables, leave the best slots found in `slot`, return the terms' value.

    Every other run begins hot at random slots; those between begin at the rows of `starts`,
    and when these are used up at the best so far, at half the heat, so that what they start
    from is not wiped out. `slot` as it comes is the first best. A value of `enough` ends it,
    and so do `agree` random runs that end at the best value, or `unanimous` of them while no
    run has ended elsewhere. Each run is crossed with the best before it. Ties are not tidied
    up: `descend` does that.
    """
    state = np.uint64(seed) | np.uint64(1)
    first = core.first
    best = slot[variables]
    best_value: Any = load_state(core, variables, terms, slot, miss, mark, score)
    alike = 0
    apart = False
    for run in range(runs):
        if best_value >= enough or alike >= (agree if apart else min(agree, unanimous)):
            break
        fresh = run % 2 == 0
        heat = hot if fresh else hot / 2
        for i in range(len(variables)):
            v = variables[i]
            if fresh:
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                width = np.uint64(first[v + 1] - first[v])
                slot[v] = first[v] + np.int32((state >> np.uint64(20)) % width)
            elif run // 2 < len(starts):
                slot[v] = starts[run // 2, v]
            else:
                slot[v] = best[i]
        value = load_state(core, variables, terms, slot, miss, mark, score)
        if value > best_value:
            # A good start must survive being heated.
            best_value = value
            alike = 0
            apart = run > 0
            for i in range(len(variables)):
                best[i] = slot[variables[i]]
        cooling = (cold / heat) ** (1.0 / max(sweeps - 1, 1))
        step = 0
        moved = True
        while step < sweeps or moved:
            # After the last sweep the heat is off: only gains are taken, until none is left.
            if step >= sweeps:
                heat = 0.0
            moved = False
            for v in variables:
                now = slot[v]
                to = now
                if heat == 0.0:
                    for i in range(first[v], first[v + 1]):
                        if score[i] > score[to]:
                            to = i
                elif first[v + 1] - first[v] == 2:
                    # Two slots: Metropolis, with ties taken half of the time, since taking
                    # all of them in a fixed order would make plateaus cycle.
                    other = 2 * first[v] + 1 - now
                    gain = score[other] - score[now]
                    if gain > 0:
                        to = other
                    elif gain >= -heat * CHANCE[0]:
                        state ^= state << np.uint64(13)
                        state ^= state >> np.uint64(7)
                        state ^= state << np.uint64(17)
                        tie = gain == 0 and state & np.uint64(1 << 20)
                        if not tie and gain >= -heat * CHANCE[state >> np.uint64(52)]:
                            to = other
                else:
                    # More: draw from the Gibbs distribution, as the largest of the scores
                    # with Gumbel noise, so that a visit costs one move at most.
                    top = -np.inf
                    for i in range(first[v], first[v + 1]):
                        state ^= state << np.uint64(13)
                        state ^= state >> np.uint64(7)
                        state ^= state << np.uint64(17)
                        key = score[i] + heat * GUMBEL[state >> np.uint64(52)]
                        if key > top:
                            top = key
                            to = i
                if to != now:
                    value += score[to] - score[now]
                    moved = True
                    move(core, v, to, slot, miss, mark, score)
            heat *= cooling
            step += 1
        own = value
        value += cross(core, variables, best, slot, miss, mark, score)
        if value > best_value:
            best_value = value
            alike = 0
            apart = run > 0
            for i in range(len(variables)):
                best[i] = slot[variables[i]]
        if own != best_value:
            apart = True
        elif fresh:
            alike += 1
    for i in range(len(variables)):
        slot[variables[i]] = best[i]
    return best_value


@numba.njit(cache=True)
def eliminate(core: Any, variables: Array, terms: Array, slot: Array) -> Any:
    """Set variables with two slots so that many heavy parities come out right.

    Each term is an equation over GF(2); those of `terms`, in that order, are taken as long
    as they are independent of the ones before, and then all hold. Variables with more
    slots stay where they are, free ones too. Returns the number of equations taken.
    """
    first, term_start, weight, parity = core.first, core.term_start, core.weight, core.parity
    flag, single, literal = core.flag, core.single, core.literal
    literal_start, literal_slot, variable = core.literal_start, core.literal_slot, core.variable
    place = np.full(len(core.attribute), -1, np.int32)
    owner = np.empty(len(variables), np.int32)
    n = 0
    for v in variables:
        if first[v + 1] - first[v] == 2:
            place[v] = n
            owner[n] = v
            n += 1
    words = (n + 63) // 64
    rows = np.zeros((n, words), np.uint64)
    pivot = np.empty(n, np.int32)
    right = np.zeros(n, np.int8)
    rank = 0
    row = np.zeros(words, np.uint64)
    one = np.uint64(1)
    for j in terms:
        length = term_start[j + 1] - term_start[j]
        if rank == n:
            break
        if not parity[j] and length > 1:
            continue
        row[:] = 0
        if parity[j]:
            value = 0 if weight[j] > 0 else 1
        else:
            value = flag[term_start[j]] ^ (1 if weight[j] > 0 else 0)
        for o in range(term_start[j], term_start[j + 1]):
            v = variable[o]
            if place[v] >= 0:
                row[place[v] >> 6] ^= one << np.uint64(place[v] & 63)
            elif lists(single, literal, literal_start, literal_slot, o, slot[v]):
                value ^= 1
        for r in range(rank):
            if (row[pivot[r] >> 6] >> np.uint64(pivot[r] & 63)) & one:
                value ^= right[r]
                for i in range(words):
                    row[i] ^= rows[r, i]
        for i in range(words):
            if row[i]:
                bit = 0
                while not (row[i] >> np.uint64(bit)) & one:
                    bit += 1
                pivot[rank] = 64 * i + bit
                right[rank] = value
                for k in range(words):
                    rows[rank, k] = row[k]
                rank += 1
                break
    # The last equation has no earlier pivot in it: solve from the end.
    for r in range(rank - 1, -1, -1):
        value = right[r]
        for c in range(n):
            if c != pivot[r] and (rows[r, c >> 6] >> np.uint64(c & 63)) & one:
                value ^= slot[owner[c]] - first[owner[c]]
        v = owner[pivot[r]]
        slot[v] = first[v] + value
    return rank
