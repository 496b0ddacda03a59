"""Compiled elimination over GF(2): a first assignment that sets many parities right."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.base.compile import njit
from dualquery.oracles._kernels import lists
from dualquery.oracles.core import Core, Int8, Int32, Part

Words = npt.NDArray[np.uint64]


@njit(inline="always")
def has_bit(row: Words, bit: int) -> bool:
    """Whether a bit of a packed row is set."""
    return bool((row[bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1))


@njit(cache=True)
def eliminate(core: Core, part: Part, slot: Int32) -> int:
    """Set variables with two slots so that many heavy parities come out right.

    Each term is an equation over GF(2). They are taken in the order of `part.terms`, each
    only if it is independent of those taken before. All equations taken hold in the end.
    Variables with more than two slots, and free ones, stay where they are.

    Args:
        core: the core that is searched.
        part: its variables, and its terms in the order in which they matter.
        slot: the assignment that changes.

    Returns:
        The number of equations taken.
    """
    first, term_start, parity = core.first, core.term_start, core.parity
    place = np.full(len(core.attribute), -1, np.int32)
    owner = np.empty(len(part.variables), np.int32)
    n = 0
    for v in part.variables:
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
    for j in part.terms:
        if rank == n:
            break
        if not parity[j] and term_start[j + 1] - term_start[j] > 1:
            continue
        value = write_equation(core, j, place, slot, row)
        for r in range(rank):
            if has_bit(row, pivot[r]):
                value ^= right[r]
                for i in range(words):
                    row[i] ^= rows[r, i]
        lead = lowest_bit(row)
        if lead >= 0:
            pivot[rank] = lead
            right[rank] = value
            for i in range(words):
                rows[rank, i] = row[i]
            rank += 1
    solve_backwards(first, rows[:rank], pivot, right, owner[:n], slot)
    return rank


@njit(inline="always")
def write_equation(core: Core, j: int, place: Int32, slot: Int32, row: Words) -> int:
    """Write a term as an equation: the sum of the bits in `row` equals the result.

    The equation asks for the better value of the term. A variable's bit says whether it is in
    its second slot.

    Args:
        core: the core that is searched.
        j: the term, a parity or a single occurrence.
        place: per variable its bit, or −1 if the variable stays where it is.
        slot: the assignment, for the variables that stay.
        row: filled with the bits of the term.
    """
    owner, single, literal = core.variable, core.single, core.literal
    literal_start, literal_slot = core.literal_start, core.literal_slot
    begin, end = core.term_start[j], core.term_start[j + 1]
    row[:] = 0
    wanted = 1 if core.weight[j] > 0 else 0
    value = 1 - wanted if core.parity[j] else core.flag[begin] ^ wanted
    for o in range(begin, end):
        v = owner[o]
        if place[v] >= 0:
            row[place[v] >> 6] ^= np.uint64(1) << np.uint64(place[v] & 63)
        elif lists(single, literal, literal_start, literal_slot, o, slot[v]):
            value ^= 1
    return value


@njit(inline="always")
def lowest_bit(row: Words) -> int:
    """The first bit that is set in a packed row, or −1."""
    for i in range(len(row)):
        if row[i]:
            bit = 64 * i
            while not has_bit(row, bit):
                bit += 1
            return bit
    return -1


@njit(inline="always")
def solve_backwards(
    first: Int32, rows: Words, pivot: Int32, right: Int8, owner: Int32, slot: Int32
) -> None:
    """Set the pivot of each equation so that it holds, the last equation first.

    No equation contains the pivot of an earlier one, so what is set stays right.

    Args:
        first: the core's array of that name.
        rows: the equations, one packed row per equation.
        pivot: per equation, the bit that it decides.
        right: per equation, what its bits sum to.
        owner: per bit its variable.
        slot: the assignment that changes.
    """
    for r in range(len(rows) - 1, -1, -1):
        value = right[r]
        for c in range(len(owner)):
            if c != pivot[r] and has_bit(rows[r], c):
                value ^= slot[owner[c]] - first[owner[c]]
        v = owner[pivot[r]]
        slot[v] = first[v] + value
