"""Compiled simulated annealing. Start reading at `anneal`."""

from __future__ import annotations

import numpy as np

from dualquery.base._kernels import next_random
from dualquery.base.compile import njit
from dualquery.oracles._kernels import lists, load, move
from dualquery.oracles.core import Cooling, Core, Int8, Int32, Int64, Part, Search

# Exponential and Gumbel variables, tabulated: a draw costs one read instead of logarithms.
EXPONENTIAL = -np.log((np.arange(4096) + 0.5) / 4096)
GUMBEL = -np.log(EXPONENTIAL)


@njit(cache=True)
def anneal(
    core: Core, part: Part, cooling: Cooling, starts: Int32, seed: int, search: Search
) -> int:
    """Anneal one part; leave the best slots found in the search, return the terms' value.

    Every other run begins at random slots. The runs between them begin at the rows of
    `starts`, and at the best slots so far once the rows are used up. These begin at half the
    heat, so that what they start from is not wiped out. After each run the result is crossed
    with the best slots before it. Ties are not tidied up: `descend` does that.

    Args:
        core: the core that is searched.
        part: what to anneal.
        cooling: how long, and how hot.
        starts: assignments worth starting from, one row per assignment.
        seed: of the random numbers.
        search: the search; its slots as they come are the first best.
    """
    variables, slot = part.variables, search.slot
    random = np.uint64(seed) | np.uint64(1)
    best = np.empty(len(variables), np.int32)
    keep(variables, slot, best)
    best_value = load(core, part, search)
    alike = 0
    apart = False
    for run in range(cooling.runs):
        wanted = cooling.agree if apart else min(cooling.agree, cooling.unanimous)
        if best_value >= cooling.enough or alike >= wanted:
            break
        fresh = run % 2 == 0
        if fresh:
            random = scatter(core.first, variables, slot, random)
        else:
            for i in range(len(variables)):
                v = variables[i]
                slot[v] = starts[run // 2, v] if run // 2 < len(starts) else best[i]
        value = load(core, part, search)
        if value > best_value:
            # A good start must survive being heated.
            best_value = value
            keep(variables, slot, best)
            alike = 0
            apart = run > 0
        heat = cooling.hot if fresh else cooling.hot / 2
        gain, random = cool(core, variables, cooling, heat, search, random)
        own = value + gain
        value = own + cross(core, variables, best, search)
        if value > best_value:
            best_value = value
            keep(variables, slot, best)
            alike = 0
            apart = run > 0
        if own != best_value:
            apart = True
        elif fresh:
            alike += 1
    for i in range(len(variables)):
        slot[variables[i]] = best[i]
    return best_value


@njit(inline="always")
def keep(variables: Int32, slot: Int32, best: Int32) -> None:
    """Write down the slots of some variables."""
    for i in range(len(variables)):
        best[i] = slot[variables[i]]


@njit(inline="always")
def scatter(first: Int32, variables: Int32, slot: Int32, random: np.uint64) -> np.uint64:
    """Put every variable into a random slot; return the state of the generator.

    Args:
        first: the core's array of that name.
        variables: the variables to scatter.
        slot: the assignment that changes.
        random: the state of the generator.
    """
    for v in variables:
        random = next_random(random)
        width = np.uint64(first[v + 1] - first[v])
        slot[v] = first[v] + np.int32((random >> np.uint64(20)) % width)
    return random


@njit(inline="always")
def cool(
    core: Core, variables: Int32, cooling: Cooling, heat: float, search: Search, random: np.uint64
) -> tuple[int, np.uint64]:
    """One run: sweeps at falling heat, then without heat until nothing gains.

    Args:
        core: the core that is searched.
        variables: the variables to move.
        cooling: how many sweeps there are, and how cold the last is.
        heat: the heat of the first sweep.
        search: the search; all of it changes.
        random: the state of the generator.

    Returns:
        The gain, and the new state of the generator.
    """
    total = 0
    moved = True
    factor = (cooling.cold / heat) ** (1.0 / max(cooling.sweeps - 1, 1))
    for _ in range(cooling.sweeps):
        gain, moved, random = sweep(core, variables, heat, search, random)
        total += gain
        heat *= factor
    while moved:
        gain, moved, random = sweep(core, variables, 0.0, search, random)
        total += gain
    return total, random


@njit(cache=True, forceinline=True)
def sweep(
    core: Core, variables: Int32, heat: float, search: Search, random: np.uint64
) -> tuple[int, bool, np.uint64]:
    """Visit every variable once.

    Args:
        core: the core that is searched.
        variables: the variables to visit, in that order.
        heat: losses up to about this size are likely to be taken; at 0 only gains are.
        search: the search; all of it changes.
        random: the state of the generator.

    Returns:
        The gain, whether anything moved, and the new state of the generator.
    """
    first, slot, score = core.first, search.slot, search.score
    total = 0
    moved = False
    for v in variables:
        now = slot[v]
        begin, end = first[v], first[v + 1]
        if heat == 0.0:
            to = best_slot(score, begin, end, now)
        elif end - begin == 2:
            to, random = metropolis(score, 2 * begin + 1 - now, now, heat, random)
        else:
            to, random = gibbs(score, begin, end, heat, random)
        if to != now:
            total += score[to] - score[now]
            moved = True
            move(core, search, v, to)
    return total, moved, random


@njit(inline="always")
def best_slot(score: Int64, begin: int, end: int, now: int) -> int:
    """The slot with the best score; on ties the present one, else the first.

    Args:
        score: the scores, per slot.
        begin: the variable's first slot.
        end: one more than its last slot.
        now: its present slot.
    """
    to = now
    for i in range(begin, end):
        if score[i] > score[to]:
            to = i
    return to


@njit(inline="always")
def metropolis(
    score: Int64, other: int, now: int, heat: float, random: np.uint64
) -> tuple[int, np.uint64]:
    """Whether a variable with two slots changes: a gain always, a loss by chance.

    A tie is taken half of the time. Taking every tie, in a fixed order of the variables,
    would make plateaus cycle.

    Args:
        score: the scores, per slot.
        other: the slot it may move to.
        now: its present slot.
        heat: the size of a loss that is taken with probability 1/e.
        random: the state of the generator.

    Returns:
        The slot to be in, and the new state of the generator.
    """
    to = now
    gain = score[other] - score[now]
    if gain > 0:
        to = other
    elif gain >= -heat * EXPONENTIAL[0]:
        random = next_random(random)
        refused = gain == 0 and random & np.uint64(1 << 20)
        if not refused and gain >= -heat * EXPONENTIAL[random >> np.uint64(52)]:
            to = other
    return to, random


@njit(inline="always")
def gibbs(
    score: Int64, begin: int, end: int, heat: float, random: np.uint64
) -> tuple[int, np.uint64]:
    """Draw a slot with probability proportional to exp(score/heat).

    The largest score plus Gumbel noise has that distribution, so a visit costs at most one
    move.

    Args:
        score: the scores, per slot.
        begin: the variable's first slot.
        end: one more than its last slot.
        heat: see above.
        random: the state of the generator.

    Returns:
        The slot, and the new state of the generator.
    """
    to = begin
    top = -np.inf
    for i in range(begin, end):
        random = next_random(random)
        key = score[i] + heat * GUMBEL[random >> np.uint64(52)]
        if key > top:
            top = key
            to = i
    return to, random


@njit(cache=True)
def cross(core: Core, variables: Int32, other: Int32, search: Search) -> int:
    """Take from another assignment whatever is better there; return the gain.

    First the search walks towards `other` as long as that costs nothing. The variables that
    still differ fall into groups. No term is shared by two groups, except terms that fail
    whatever these variables do. So the gain of switching one group does not depend on the
    others, and every group that gains is switched. The result is at least as good as either
    assignment, and often better than both.

    Args:
        core: the core that is searched.
        variables: the variables that may differ; the walk visits them in that order.
        other: the other assignment, one slot per variable of `variables`.
        search: the search; all of it changes.
    """
    slot = search.slot
    total = walk_towards(core, variables, other, search)
    place = np.full(len(core.attribute), -1, np.int32)
    apart = np.zeros(len(core.attribute), np.int8)
    differing = 0
    for i in range(len(variables)):
        if slot[variables[i]] != other[i]:
            place[variables[i]] = i
            apart[variables[i]] = 1
            differing += 1
    group = np.empty(differing, np.int32)
    old = np.empty(differing, np.int32)
    visited = np.zeros(len(core.weight), np.int8)
    for root in variables:
        if place[root] < 0:
            continue
        gain, count = switch_group(core, root, other, search, place, apart, visited, group, old)
        if gain > 0:
            total += gain
        else:
            for i in range(count):
                move(core, search, group[i], old[i])
    return total


@njit(inline="always")
def walk_towards(core: Core, variables: Int32, other: Int32, search: Search) -> int:
    """Move variables to their slots in `other` until every such move loses; return the gain.

    Args:
        core: the core that is searched.
        variables: the variables to move.
        other: the other assignment, one slot per variable of `variables`.
        search: the search; all of it changes.
    """
    slot, score = search.slot, search.score
    total = 0
    moved = True
    while moved:
        moved = False
        for i in range(len(variables)):
            now = slot[variables[i]]
            if now != other[i] and score[other[i]] >= score[now]:
                total += score[other[i]] - score[now]
                move(core, search, variables[i], other[i])
                moved = True
    return total


@njit(inline="always")
def switch_group(
    core: Core,
    root: int,
    other: Int32,
    search: Search,
    place: Int32,
    apart: Int8,
    visited: Int8,
    group: Int32,
    old: Int32,
) -> tuple[int, int]:
    """Switch the differing variables that a chain of undecided terms connects with `root`.

    Args:
        core: the core that is searched.
        root: the variable to begin with.
        other: the other assignment.
        search: the search; all of it changes.
        place: where `other` has each variable that still waits, else −1; changes.
        apart: per variable, whether it differed at the start.
        visited: per term, whether some group has passed it; changes.
        group: filled with the variables that were switched.
        old: filled with the slots they had before.

    Returns:
        The gain, and the number of variables switched.
    """
    slot, score = search.slot, search.score
    first, owner = core.first, core.variable
    term_start, term_of = core.term_start, core.occurrence_term
    slot_start, slot_occurrence = core.slot_start, core.slot_occurrence
    count = 1
    done = 0
    group[0] = root
    old[0] = place[root]
    place[root] = -1
    gain = 0
    while done < count:
        v = group[done]
        to = other[old[done]]
        old[done] = slot[v]
        gain += score[to] - score[slot[v]]
        move(core, search, v, to)
        for at in range(slot_start[first[v]], slot_start[first[v + 1]]):
            j = term_of[slot_occurrence[at]]
            if visited[j]:
                continue
            visited[j] = 1
            if fails_anyway(core, j, apart, slot):
                continue
            for o in range(term_start[j], term_start[j + 1]):
                u = owner[o]
                if place[u] >= 0:
                    group[count] = u
                    old[count] = place[u]
                    place[u] = -1
                    count += 1
        done += 1
    return gain, count


@njit(inline="always")
def fails_anyway(core: Core, j: int, apart: Int8, slot: Int32) -> bool:
    """Whether a conjunction fails because of a variable on which both assignments agree.

    Args:
        core: the core that is searched.
        j: the term; a parity never fails like that.
        apart: per variable, whether the assignments differ on it.
        slot: either assignment.
    """
    owner, flag, single, literal = core.variable, core.flag, core.single, core.literal
    literal_start, literal_slot = core.literal_start, core.literal_slot
    if core.parity[j]:
        return False
    for o in range(core.term_start[j], core.term_start[j + 1]):
        u = owner[o]
        if not apart[u]:
            held = lists(single, literal, literal_start, literal_slot, o, slot[u])
            if held == flag[o]:
                return True
    return False
