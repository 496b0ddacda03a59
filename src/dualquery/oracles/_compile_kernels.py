"""Compiled loops that turn draws into a core; the tests hold each against a plain twin."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = Any


@numba.njit(cache=True)
def collect(signed: Array) -> Any:
    """The distinct drawn queries and their summed signs; what cancels is left out.

    A draw of query q is 2q + 1, of its negation 2q; they come sorted.
    """
    chosen = np.empty(len(signed), np.int64)
    weights = np.empty(len(signed), np.int64)
    kept = 0
    total = 0
    for i in range(len(signed)):
        total += 1 if signed[i] & 1 else -1
        if i + 1 == len(signed) or signed[i + 1] >> 1 != signed[i] >> 1:
            if total != 0:
                chosen[kept] = signed[i] >> 1
                weights[kept] = total
                kept += 1
            total = 0
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

    # What an occurrence needs most often, its variable and the one slot that most
    # literals list, saves the way over the literal.
    variable = np.empty(n, np.int32)
    single = np.full(n, -1, np.int32)
    for o in range(n):
        l = literal[o]
        variable[o] = literal_variable[l]
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
        variable,
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
