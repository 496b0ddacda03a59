"""Compiled loops that turn draws into a core; the tests hold them against plain twins.

`build_core` is the way through: one function per section of the core, each with a named
result. Start reading there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dualquery.base.compile import njit
from dualquery.oracles.core import Core, Int8, Int32, Int64, WeightedQueries


class Collected(NamedTuple):
    """The distinct drawn queries, and the sum of the signs of each."""

    queries: Int64
    weights: Int64


class Gathered(NamedTuple):
    """Some queries by themselves: where their terms start, the terms, and the literals used."""

    start: Int64
    terms: Int32
    literals: Int64


class Variables(NamedTuple):
    """The attributes that are mentioned, in the order of their first mention.

    `of_attribute` leads back from an attribute to its variable, or to −1.
    """

    attribute: Int32
    of_attribute: Int32
    code_start: Int32


class Classes(NamedTuple):
    """Per code the class it is in, numbered within its variable; per variable their number."""

    of_code: Int32
    per_variable: Int32


class Slots(NamedTuple):
    """The classes as slots, as the core describes them."""

    first: Int32
    code: Int32
    home: Int32
    of_code: Int32


class Lists(NamedTuple):
    """Per literal its variable and its slots; `turned` where these are the complement."""

    variable: Int32
    start: Int32
    slot: Int32
    turned: Int8


class Terms(NamedTuple):
    """The terms that are not constant, and the value of those that are."""

    start: Int32
    literal: Int32
    flag: Int8
    occurrence_term: Int32
    weight: Int64
    parity: Int8
    constant: int


class ShortCuts(NamedTuple):
    """Per occurrence its variable and the one slot it lists; per slot the way back."""

    variable: Int32
    single: Int32
    slot_start: Int32
    slot_occurrence: Int32


@njit(cache=True)
def collect(signed: Int64) -> Collected:
    """Sum the signs of equal queries, and leave out what cancels.

    A draw of query q is 2q + 1, a draw of its negation 2q. They come sorted.
    """
    queries = np.empty(len(signed), np.int64)
    weights = np.empty(len(signed), np.int64)
    kept = 0
    total = 0
    for i in range(len(signed)):
        total += 1 if signed[i] & 1 else -1
        if i + 1 == len(signed) or signed[i + 1] >> 1 != signed[i] >> 1:
            if total != 0:
                queries[kept] = signed[i] >> 1
                weights[kept] = total
                kept += 1
            total = 0
    return Collected(queries[:kept].copy(), weights[:kept].copy())


@njit(cache=True)
def gather(chosen: Int64, start: Int64, terms: Int32, literals: int) -> Gathered:
    """Take some queries out of a workload, and number the literals they use afresh.

    Args:
        chosen: the queries to take.
        start: where the terms of each query of the workload start.
        terms: the terms of the workload.
        literals: the number of literals of the workload.
    """
    out_start = np.zeros(len(chosen) + 1, np.int64)
    for i in range(len(chosen)):
        out_start[i + 1] = out_start[i] + start[chosen[i] + 1] - start[chosen[i]]
    out = np.empty(out_start[len(chosen)], np.int32)
    place = np.zeros(literals, np.int32)
    for q in chosen:
        for i in range(start[q], start[q + 1]):
            place[terms[i] >> 1] = 1
    # Literals keep their order: those of one attribute then lie close together in memory.
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
    return Gathered(out_start, out, used[:found].copy())


@njit(cache=True)
def build_core(queries: WeightedQueries) -> Core:
    """The core of weighted queries, section by section."""
    variables = find_variables(queries)
    classes = separate_codes(queries, variables)
    slots = number_slots(queries, variables, classes)
    lists = list_slots(queries, variables, slots)
    terms = keep_terms(queries, lists)
    short = find_short_cuts(terms.literal, lists, len(slots.code))
    return Core(
        attribute=variables.attribute,
        first=slots.first,
        code=slots.code,
        home=slots.home,
        literal_variable=lists.variable,
        literal_start=lists.start,
        literal_slot=lists.slot,
        term_start=terms.start,
        literal=terms.literal,
        flag=terms.flag,
        variable=short.variable,
        single=short.single,
        occurrence_term=terms.occurrence_term,
        weight=terms.weight,
        parity=terms.parity,
        slot_start=short.slot_start,
        slot_occurrence=short.slot_occurrence,
        code_start=variables.code_start,
        slot_of_code=slots.of_code,
        constant=queries.constant + terms.constant,
        penalty=queries.penalty,
    )


@njit(inline="always")
def find_variables(queries: WeightedQueries) -> Variables:
    """Make a variable of each attribute that a literal mentions."""
    attribute, sizes = queries.attribute, queries.sizes
    of_attribute = np.full(len(sizes), -1, np.int32)
    found = np.empty(len(attribute), np.int32)
    count = 0
    for a in attribute:
        if of_attribute[a] < 0:
            of_attribute[a] = count
            found[count] = a
            count += 1
    code_start = np.zeros(count + 1, np.int32)
    for v in range(count):
        code_start[v + 1] = code_start[v] + sizes[found[v]]
    return Variables(found[:count].copy(), of_attribute, code_start)


@njit(inline="always")
def separate_codes(queries: WeightedQueries, variables: Variables) -> Classes:
    """Put codes that no literal separates into one class, by partition refinement.

    All codes of a variable begin in class 0. Each literal in turn splits every class that
    it holds in part: the codes it holds move to a new class.
    """
    attribute, literal_start, codes = queries.attribute, queries.literal_start, queries.codes
    of_attribute, code_start = variables.of_attribute, variables.code_start
    total = code_start[-1]
    of_code = np.zeros(total, np.int32)
    count = np.ones(len(variables.attribute), np.int32)
    # Arrays about classes have room for one class per code, at the variable's codes.
    members = np.zeros(total, np.int32)
    inside = np.zeros(total, np.int32)
    fresh = np.empty(total, np.int32)
    touched = np.empty(total, np.int32)
    seen_by = np.full(total, -1, np.int32)
    for v in range(len(count)):
        members[code_start[v]] = code_start[v + 1] - code_start[v]
    for l in range(len(attribute)):
        v = of_attribute[attribute[l]]
        base = code_start[v]
        met = 0
        for i in range(literal_start[l], literal_start[l + 1]):
            at = base + codes[i]
            if seen_by[at] != l:
                seen_by[at] = l
                g = base + of_code[at]
                if inside[g] == 0:
                    touched[met] = g
                    met += 1
                inside[g] += 1
        for t in range(met):
            g = touched[t]
            fresh[g] = g - base
            if inside[g] < members[g]:
                fresh[g] = count[v]
                members[base + count[v]] = inside[g]
                members[g] -= inside[g]
                count[v] += 1
            inside[g] = 0
        for i in range(literal_start[l], literal_start[l + 1]):
            at = base + codes[i]
            if seen_by[at] == l:
                seen_by[at] = -1
                of_code[at] = fresh[base + of_code[at]]
    return Classes(of_code, count)


@njit(inline="always")
def number_slots(queries: WeightedQueries, variables: Variables, classes: Classes) -> Slots:
    """Number the classes of each variable in the order of their smallest codes."""
    defaults, attribute, code_start = queries.defaults, variables.attribute, variables.code_start
    class_of_code, per_variable = classes.of_code, classes.per_variable
    first = np.zeros(len(attribute) + 1, np.int32)
    for v in range(len(attribute)):
        first[v + 1] = first[v] + per_variable[v]
    code = np.full(first[-1], -1, np.int32)
    home = np.empty(len(attribute), np.int32)
    of_code = np.empty(code_start[-1], np.int32)
    rank = np.full(code_start[-1], -1, np.int32)
    for v in range(len(attribute)):
        base = code_start[v]
        size = code_start[v + 1] - base
        ranked = 0
        for c in range(size):
            g = class_of_code[base + c]
            if rank[base + g] < 0:
                rank[base + g] = ranked
                ranked += 1
            of_code[base + c] = first[v] + rank[base + g]
        default = defaults[attribute[v]]
        home[v] = of_code[base + default]
        # A slot stands for the first of its codes at or after the default, cyclically.
        for step in range(size):
            c = default + step
            if c >= size:
                c -= size
            at = of_code[base + c]
            if code[at] < 0:
                code[at] = c
    return Slots(first, code, home, of_code)


@njit(inline="always")
def list_slots(queries: WeightedQueries, variables: Variables, slots: Slots) -> Lists:
    """List the slots of each literal or those of its complement, whichever are fewer.

    Where both are as many, the list without the variable's first slot is taken: a literal of
    a variable with two slots always lists the second.
    """
    attribute, literal_start, codes = queries.attribute, queries.literal_start, queries.codes
    of_attribute, code_start = variables.of_attribute, variables.code_start
    first, slot_of_code = slots.first, slots.of_code
    literals = len(attribute)
    variable = np.empty(literals, np.int32)
    start = np.zeros(literals + 1, np.int32)
    turned = np.zeros(literals, np.int8)
    seen_by = np.full(first[-1], -1, np.int32)
    for l in range(literals):
        v = of_attribute[attribute[l]]
        variable[l] = v
        count = 0
        for i in range(literal_start[l], literal_start[l + 1]):
            at = slot_of_code[code_start[v] + codes[i]]
            if seen_by[at] != l:
                seen_by[at] = l
                count += 1
        width = first[v + 1] - first[v]
        if 2 * count > width or (2 * count == width and seen_by[first[v]] == l):
            turned[l] = 1
            count = width - count
        start[l + 1] = start[l] + count
    slot = np.empty(start[literals], np.int32)
    seen_by[:] = -1
    for l in range(literals):
        v = variable[l]
        n = start[l]
        for i in range(literal_start[l], literal_start[l + 1]):
            at = slot_of_code[code_start[v] + codes[i]]
            if seen_by[at] != l:
                seen_by[at] = l
                if turned[l] == 0:
                    slot[n] = at
                    n += 1
        if turned[l] == 1:
            for at in range(first[v], first[v + 1]):
                if seen_by[at] != l:
                    slot[n] = at
                    n += 1
    return Lists(variable, start, slot, turned)


@njit(inline="always")
def keep_terms(queries: WeightedQueries, lists: Lists) -> Terms:
    """Turn queries into terms, without the literals that are constant.

    A literal with an empty list holds always or never. It leaves its query, and may decide
    it: a decided query adds its weight to the constant, or nothing.
    """
    start, uses, is_parity = queries.start, queries.terms, queries.is_parity
    weights = queries.weight
    list_start, turned = lists.start, lists.turned
    count = len(start) - 1
    term_start = np.zeros(count + 1, np.int32)
    literal = np.empty(len(uses), np.int32)
    flag = np.empty(len(uses), np.int8)
    occurrence_term = np.empty(len(uses), np.int32)
    weight = np.empty(count, np.int64)
    parity = np.empty(count, np.int8)
    constant = 0
    kept = 0
    n = 0
    for q in range(count):
        begin = n
        w = weights[q]
        dead = w == 0
        odd = 0
        for i in range(start[q], start[q + 1]):
            l = uses[i] >> 1
            negated = (uses[i] & 1) ^ turned[l]
            if list_start[l + 1] == list_start[l]:
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
    return Terms(
        term_start[: kept + 1].copy(),
        literal[:n].copy(),
        flag[:n].copy(),
        occurrence_term[:n].copy(),
        weight[:kept].copy(),
        parity[:kept].copy(),
        constant,
    )


@njit(inline="always")
def find_short_cuts(literal: Int32, lists: Lists, slots: int) -> ShortCuts:
    """What a search reads most often, so that it need not go through the literal."""
    list_variable, list_start, list_slot = lists.variable, lists.start, lists.slot
    variable = np.empty(len(literal), np.int32)
    single = np.full(len(literal), -1, np.int32)
    slot_start = np.zeros(slots + 1, np.int32)
    for o in range(len(literal)):
        l = literal[o]
        variable[o] = list_variable[l]
        if list_start[l + 1] == list_start[l] + 1:
            single[o] = list_slot[list_start[l]]
        for i in range(list_start[l], list_start[l + 1]):
            slot_start[list_slot[i] + 1] += 1
    for i in range(slots):
        slot_start[i + 1] += slot_start[i]
    cursor = slot_start[:-1].copy()
    slot_occurrence = np.empty(slot_start[slots], np.int32)
    for o in range(len(literal)):
        l = literal[o]
        for i in range(list_start[l], list_start[l + 1]):
            at = list_slot[i]
            slot_occurrence[cursor[at]] = o
            cursor[at] += 1
    return ShortCuts(variable, single, slot_start, slot_occurrence)
