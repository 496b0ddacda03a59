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
import numpy as np

Array = Any


@numba.njit(cache=True)
def collect(queries: Array, signs: Array, total: int) -> Any:
    """The distinct drawn queries and their summed signs; what cancels is left out."""
    sums = np.zeros(total, np.int32)
    for i in range(len(queries)):
        sums[queries[i]] += signs[i]
    chosen = np.empty(len(queries), np.int64)
    weights = np.empty(len(queries), np.int64)
    kept = 0
    for q in range(total):
        if sums[q] != 0:
            chosen[kept] = q
            weights[kept] = sums[q]
            kept += 1
    return chosen[:kept].copy(), weights[:kept].copy()


@numba.njit(cache=True)
def gather(chosen: Array, start: Array, terms: Array, literals: int) -> Any:
    """The terms of some queries, their literals renumbered; and which literals these are."""
    out_start = np.zeros(len(chosen) + 1, np.int64)
    for i in range(len(chosen)):
        out_start[i + 1] = out_start[i] + start[chosen[i] + 1] - start[chosen[i]]
    out = np.empty(out_start[len(chosen)], np.int32)
    place = np.zeros(literals, np.int32)
    for q in chosen:
        for i in range(start[q], start[q + 1]):
            place[terms[i] >> 1] = 1
    # Literals keep their order, which lies close together in memory for one attribute.
    used = np.empty(min(literals, len(out)), np.int64)
    found = 0
    for l in range(literals):
        if place[l]:
            place[l] = found
            used[found] = l
            found += 1
    n = 0
    for q in chosen:
        for i in range(start[q], start[q + 1]):
            out[n] = 2 * place[terms[i] >> 1] + (terms[i] & 1)
            n += 1
    return out_start, out, used[:found].copy()


@numba.njit(cache=True)
def compile_core(
    attribute: Array,
    literal_start: Array,
    codes: Array,
    start: Array,
    terms: Array,
    is_parity: Array,
    weights: Array,
    sizes: Array,
    defaults: Array,
) -> Any:
    n_literals = len(attribute)
    # Variables: the attributes mentioned, in order of first mention.
    local = np.full(len(sizes), -1, np.int32)
    found = np.empty(n_literals, np.int32)
    variables = 0
    for l in range(n_literals):
        a = attribute[l]
        if local[a] < 0:
            local[a] = variables
            found[variables] = a
            variables += 1
    found = found[:variables].copy()
    code_start = np.zeros(variables + 1, np.int32)
    for v in range(variables):
        code_start[v + 1] = code_start[v] + sizes[found[v]]
    total = code_start[variables]

    # Classes of codes by partition refinement: a literal splits every class it cuts.
    group = np.zeros(total, np.int32)
    members = np.zeros(total, np.int32)
    inside = np.zeros(total, np.int32)
    fresh = np.empty(total, np.int32)
    seen = np.full(total, -1, np.int32)
    touched = np.empty(total, np.int32)
    groups = np.ones(variables, np.int32)
    for v in range(variables):
        members[code_start[v]] = sizes[found[v]]
    for l in range(n_literals):
        v = local[attribute[l]]
        base = code_start[v]
        count = 0
        for i in range(literal_start[l], literal_start[l + 1]):
            at = base + codes[i]
            if seen[at] != l:
                seen[at] = l
                g = base + group[at]
                if inside[g] == 0:
                    touched[count] = g
                    count += 1
                inside[g] += 1
        for t in range(count):
            g = touched[t]
            fresh[g] = g - base
            if inside[g] < members[g]:
                fresh[g] = groups[v]
                members[base + groups[v]] = inside[g]
                members[g] -= inside[g]
                groups[v] += 1
            inside[g] = 0
        for i in range(literal_start[l], literal_start[l + 1]):
            at = base + codes[i]
            if seen[at] == l:
                seen[at] = -1
                group[at] = fresh[base + group[at]]

    # Slots: classes in the order of their smallest code.
    first = np.zeros(variables + 1, np.int32)
    for v in range(variables):
        first[v + 1] = first[v] + groups[v]
    slots = first[variables]
    code = np.full(slots, -1, np.int32)
    home = np.empty(variables, np.int32)
    slot_of_code = np.empty(total, np.int32)
    rank = np.full(total, -1, np.int32)
    for v in range(variables):
        base = code_start[v]
        size = sizes[found[v]]
        count = 0
        for c in range(size):
            g = group[base + c]
            if rank[base + g] < 0:
                rank[base + g] = count
                count += 1
            slot_of_code[base + c] = first[v] + rank[base + g]
        default = defaults[found[v]]
        home[v] = slot_of_code[base + default]
        # A class stands for the first of its codes at or after the default, cyclically.
        for step in range(size):
            c = default + step
            if c >= size:
                c -= size
            at = slot_of_code[base + c]
            if code[at] < 0:
                code[at] = c

    # Literals as slot lists, the shorter side of set and complement.
    literal_variable = np.empty(n_literals, np.int32)
    out_start = np.zeros(n_literals + 1, np.int32)
    turned = np.zeros(n_literals, np.int8)
    listed = np.full(slots, -1, np.int32)
    for l in range(n_literals):
        v = local[attribute[l]]
        literal_variable[l] = v
        count = 0
        for i in range(literal_start[l], literal_start[l + 1]):
            at = slot_of_code[code_start[v] + codes[i]]
            if listed[at] != l:
                listed[at] = l
                count += 1
        width = groups[v]
        if 2 * count > width or (2 * count == width and listed[first[v]] == l):
            turned[l] = 1
            count = width - count
        out_start[l + 1] = out_start[l] + count
    literal_slot = np.empty(out_start[n_literals], np.int32)
    listed[:] = -1
    for l in range(n_literals):
        v = literal_variable[l]
        at = out_start[l]
        for i in range(literal_start[l], literal_start[l + 1]):
            i_slot = slot_of_code[code_start[v] + codes[i]]
            if listed[i_slot] != l:
                listed[i_slot] = l
                if turned[l] == 0:
                    literal_slot[at] = i_slot
                    at += 1
        if turned[l] == 1:
            for i_slot in range(first[v], first[v + 1]):
                if listed[i_slot] != l:
                    literal_slot[at] = i_slot
                    at += 1

    # Terms: constant literals disappear, and with them what they decide.
    queries = len(start) - 1
    term_start = np.zeros(queries + 1, np.int32)
    literal = np.empty(len(terms), np.int32)
    flag = np.empty(len(terms), np.int8)
    occurrence_term = np.empty(len(terms), np.int32)
    weight = np.empty(queries, np.int64)
    parity = np.empty(queries, np.int8)
    constant = 0
    kept = 0
    n = 0
    for q in range(queries):
        begin = n
        w = weights[q]
        dead = w == 0
        odd = 0
        for i in range(start[q], start[q + 1]):
            l = terms[i] >> 1
            negated = (terms[i] & 1) ^ turned[l]
            if out_start[l + 1] == out_start[l]:
                if is_parity[q]:
                    odd ^= negated
                elif negated == 0:
                    dead = True
                continue
            literal[n] = l
            flag[n] = negated
            occurrence_term[n] = kept
            if is_parity[q]:
                odd ^= negated
                flag[n] = 0
            n += 1
        if dead:
            n = begin
            continue
        even = 0
        if is_parity[q]:
            # [an odd number holds] = 1 − [an even number holds].
            if odd == 1:
                constant += w
                w = -w
            if n == begin + 1:
                flag[begin] = 1
            else:
                even = 1
        if n == begin:
            constant += w
            continue
        weight[kept] = w
        parity[kept] = even
        kept += 1
        term_start[kept] = n
    literal = literal[:n].copy()

    # Most literals list one slot; knowing it at the occurrence saves the way there.
    single = np.full(n, -1, np.int32)
    for o in range(n):
        l = literal[o]
        if out_start[l + 1] == out_start[l] + 1:
            single[o] = literal_slot[out_start[l]]

    # From slots back to the occurrences that list them.
    slot_start = np.zeros(slots + 1, np.int32)
    for o in range(n):
        l = literal[o]
        for i in range(out_start[l], out_start[l + 1]):
            slot_start[literal_slot[i] + 1] += 1
    for i in range(slots):
        slot_start[i + 1] += slot_start[i]
    cursor = slot_start[:-1].copy()
    slot_occurrence = np.empty(slot_start[slots], np.int32)
    for o in range(n):
        l = literal[o]
        for i in range(out_start[l], out_start[l + 1]):
            at = literal_slot[i]
            slot_occurrence[cursor[at]] = o
            cursor[at] += 1
    return (
        found,
        first,
        code,
        home,
        literal_variable,
        out_start,
        literal_slot,
        term_start[: kept + 1].copy(),
        literal,
        flag[:n].copy(),
        single,
        occurrence_term[:n].copy(),
        weight[:kept].copy(),
        parity[:kept].copy(),
        slot_start,
        slot_occurrence,
        code_start,
        slot_of_code,
        constant,
    )


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


@numba.njit(cache=True)
def enumerate_slots(
    core: Any, variables: Array, terms: Array, slot: Array, miss: Array, mark: Array, score: Array
) -> Any:
    """Try all slots of a few variables; leave the best in `slot`, return its value.

    A mixed-radix Gray code changes one variable a step, so a step costs its terms only.
    It begins at home, and among equals keeps the one with the most variables at home.
    """
    n = len(variables)
    width = np.empty(n, np.int32)
    digit = np.zeros(n, np.int32)
    way = np.ones(n, np.int32)
    best = np.empty(n, np.int32)
    for i in range(n):
        v = variables[i]
        width[i] = core.first[v + 1] - core.first[v]
        slot[v] = core.home[v]
        best[i] = core.home[v]
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
        offset = core.home[v] - core.first[v] + digit[i]
        to = core.first[v] + (offset if offset < width[i] else offset - width[i])
        value += score[to] - score[slot[v]]
        home += (to == core.home[v]) - (slot[v] == core.home[v])
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
            for at in range(core.slot_start[core.first[v]], core.slot_start[core.first[v + 1]]):
                j = core.occurrence_term[core.slot_occurrence[at]]
                if visited[j]:
                    continue
                visited[j] = 1
                settled = False
                for o in range(core.term_start[j], core.term_start[j + 1]):
                    u = core.literal_variable[core.literal[o]]
                    if not apart[u] and not core.parity[j]:
                        settled = settled or lists(core, o, slot[u]) == core.flag[o]
                if settled:
                    continue
                for o in range(core.term_start[j], core.term_start[j + 1]):
                    u = core.literal_variable[core.literal[o]]
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
    and so do `agree` random runs that end at the best value. Each run is crossed with the
    best before it. Ties are not tidied up:
    `descend` does that.
    """
    state = np.uint64(seed) | np.uint64(1)
    # Exponential and Gumbel variables, tabulated: a draw costs one read instead of logs.
    chance = -np.log((np.arange(4096) + 0.5) / 4096)
    gumbel = -np.log(chance)
    best = slot[variables]
    best_value: Any = load_state(core, variables, terms, slot, miss, mark, score)
    alike = 0
    for run in range(runs):
        if best_value >= enough or alike >= agree:
            break
        fresh = run % 2 == 0
        heat = hot if fresh else hot / 2
        for i in range(len(variables)):
            v = variables[i]
            if fresh:
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                width = np.uint64(core.first[v + 1] - core.first[v])
                slot[v] = core.first[v] + np.int32((state >> np.uint64(20)) % width)
            elif run // 2 < len(starts):
                slot[v] = starts[run // 2, v]
            else:
                slot[v] = best[i]
        value = load_state(core, variables, terms, slot, miss, mark, score)
        if value > best_value:
            # A good start must survive being heated.
            best_value = value
            alike = 0
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
                    for i in range(core.first[v], core.first[v + 1]):
                        if score[i] > score[to]:
                            to = i
                elif core.first[v + 1] - core.first[v] == 2:
                    # Two slots: Metropolis, with ties taken half of the time, since taking
                    # all of them in a fixed order would make plateaus cycle.
                    other = 2 * core.first[v] + 1 - now
                    gain = score[other] - score[now]
                    if gain > 0:
                        to = other
                    elif gain >= -heat * chance[0]:
                        state ^= state << np.uint64(13)
                        state ^= state >> np.uint64(7)
                        state ^= state << np.uint64(17)
                        tie = gain == 0 and state & np.uint64(1 << 20)
                        if not tie and gain >= -heat * chance[state >> np.uint64(52)]:
                            to = other
                else:
                    # More: draw from the Gibbs distribution, as the largest of the scores
                    # with Gumbel noise, so that a visit costs one move at most.
                    top = -np.inf
                    for i in range(core.first[v], core.first[v + 1]):
                        state ^= state << np.uint64(13)
                        state ^= state >> np.uint64(7)
                        state ^= state << np.uint64(17)
                        key = score[i] + heat * gumbel[state >> np.uint64(52)]
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
            for i in range(len(variables)):
                best[i] = slot[variables[i]]
        if fresh and own == best_value:
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
    place = np.full(len(core.attribute), -1, np.int32)
    owner = np.empty(len(variables), np.int32)
    n = 0
    for v in variables:
        if core.first[v + 1] - core.first[v] == 2:
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
        length = core.term_start[j + 1] - core.term_start[j]
        if rank == n:
            break
        if not core.parity[j] and length > 1:
            continue
        row[:] = 0
        if core.parity[j]:
            value = 0 if core.weight[j] > 0 else 1
        else:
            value = core.flag[core.term_start[j]] ^ (1 if core.weight[j] > 0 else 0)
        for o in range(core.term_start[j], core.term_start[j + 1]):
            v = core.literal_variable[core.literal[o]]
            if place[v] >= 0:
                row[place[v] >> 6] ^= one << np.uint64(place[v] & 63)
            elif lists(core, o, slot[v]):
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
                value ^= slot[owner[c]] - core.first[owner[c]]
        v = owner[pivot[r]]
        slot[v] = core.first[v] + value
    return rank
