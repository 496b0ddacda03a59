"""Compiled loops over bits. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dualquery.base.compile import njit


def _popcount(typing_context: Any, word: Any) -> Any:
    """One machine instruction."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), code


popcount: Any = intrinsic(_popcount)
"""The number of ones of a 64-bit word."""


def _equal_rows(typing_context: Any, codes: Any, first: Any, code: Any) -> Any:
    """A comparison of 64 lanes, whose outcome is a word already."""

    def code_of(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, number = signature.args[0], signature.args[0].dtype
        lanes = ir.VectorType(ir.IntType(number.bitwidth), 64)
        data = context.make_array(array)(context, builder, arguments[0]).data
        place = builder.gep(data, [arguments[1]])
        loaded = builder.load(builder.bitcast(place, lanes.as_pointer()))
        loaded.align = number.bitwidth // 8
        wanted = context.cast(builder, arguments[2], signature.args[2], number)
        none = ir.Constant(lanes, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), None)
        first_lane = builder.insert_element(none, wanted, ir.Constant(ir.IntType(32), 0))
        same = builder.shuffle_vector(first_lane, none, zeros)
        return builder.bitcast(builder.icmp_unsigned("==", loaded, same), ir.IntType(64))

    return types.uint64(codes, types.intp, types.intp), code_of


equal_rows: Any = intrinsic(_equal_rows)
"""Which of 64 contiguous codes, from a place on, are a certain one: bit i is for row i of them."""

FEW = 60
"""Up to so many codes, comparing all rows with each code is faster than one bit after another."""


@njit(nogil=True, cache=True)
def pack_codes(codes, start, literals, bits, first_word):  # type: ignore[no-untyped-def]
    """Turn on, for a row with code c, the bits of `literals[start[c]:start[c + 1]]`.

    The first row is the first bit of word `first_word`. The codes are contiguous.
    """
    whole = len(codes) // 64 if len(start) <= FEW + 1 else 0
    for word in range(whole):
        for code in range(len(start) - 1):
            if start[code] < start[code + 1]:
                found = equal_rows(codes, 64 * word, code)
                for place in range(start[code], start[code + 1]):
                    bits[literals[place], first_word + word] |= found
    for row in range(64 * whole, len(codes)):
        code = codes[row]
        bit = np.uint64(1) << np.uint64(row & 63)
        for place in range(start[code], start[code + 1]):
            bits[literals[place], first_word + (row >> 6)] |= bit


@njit(nogil=True, cache=True)
def pack_ones(rows, columns, literals, first_row, bits):  # type: ignore[no-untyped-def]
    """Turn on the bits of the literals `literals[c]` (−1 for none) at pairs (row, column c)."""
    for place in range(len(rows)):
        row = rows[place] - first_row
        bit = np.uint64(1) << np.uint64(row & 63)
        for side in range(literals.shape[1]):
            literal = literals[columns[place], side]
            if literal >= 0:
                bits[literal, row >> 6] |= bit


@njit(nogil=True, cache=True)
def pack_columns(  # type: ignore[no-untyped-def]
    indices, cursor, stop, attributes, literals, first_row, end_row, bits, first, last
):
    """`pack_ones` for the columns `attributes[first:last]`, whose rows are sorted, up to `end_row`.

    The rows of attribute a are read from `indices[cursor[a]]` on; the cursor is then moved to the
    first row after the block.
    """
    for i in range(first, last):
        attribute = attributes[i]
        place = cursor[attribute]
        while place < stop[attribute] and indices[place] < end_row:
            row = indices[place] - first_row
            for side in range(literals.shape[1]):
                literal = literals[attribute, side]
                if literal >= 0:
                    bits[literal, row >> 6] |= np.uint64(1) << np.uint64(row & 63)
            place += 1
        cursor[attribute] = place


@njit(nogil=True, cache=True)
def list_runs(rows, begins, ends, items, attributes, found_rows, found_attributes):  # type: ignore[no-untyped-def]
    """List the ones of pairs that come in runs, run after run, and return their number.

    The pairs `begins[i]:ends[i]` are of row `rows[i]`; −1 leaves them out. Pair p is of attribute
    `attributes[items[p]]`; −1 leaves it out.
    """
    found = 0
    for run in range(len(rows)):
        if rows[run] < 0:
            continue
        for pair in range(begins[run], ends[run]):
            attribute = attributes[items[pair]]
            # Written in any case, and overwritten if it is left out: no branch to foresee.
            found_rows[found] = rows[run]
            found_attributes[found] = attribute
            found = found + 1 if attribute >= 0 else found
    return found
