"""Compiled loops over bits. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
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


@njit(nogil=True, cache=True)
def pack_codes(codes, start, literals, bits, first_word):  # type: ignore[no-untyped-def]
    """Turn on, for a row with code c, the bits of `literals[start[c]:start[c + 1]]`.

    The first row is the first bit of word `first_word`.
    """
    for row in range(len(codes)):
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
