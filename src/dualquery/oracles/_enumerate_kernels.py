"""Compiled exact solution of small parts: every assignment is tried."""

from __future__ import annotations

import numpy as np

from dualquery.base.compile import njit
from dualquery.oracles._kernels import load, move
from dualquery.oracles.core import Core, Part, Search


@njit(cache=True)
def enumerate_slots(core: Core, part: Part, search: Search) -> int:
    """Try all slots of a few variables; leave the best ones in the search, return their value.

    A mixed-radix Gray code changes one variable per step, so a step costs only that
    variable's terms. It begins at home. Among assignments of equal value, the one with the
    most variables at home is kept.
    """
    slot, score = search.slot, search.score
    variables = part.variables
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
    value = load(core, part, search)
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
        move(core, search, v, to)
        if value > best_value or (value == best_value and home > best_home):
            best_value = value
            best_home = home
            for k in range(n):
                best[k] = slot[variables[k]]
    for i in range(n):
        slot[variables[i]] = best[i]
    return best_value
