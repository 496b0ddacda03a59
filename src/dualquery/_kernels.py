"""Compiled loops over bits. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """The number of ones of a 64-bit word, as one machine instruction."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), code


@njit(nogil=True, cache=True)
def set_bits(row, ones, first_row):  # type: ignore[no-untyped-def]
    """Turn on the bits of one packed column at the given row numbers."""
    for position in range(len(ones)):
        bit = ones[position] - first_row
        row[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@njit(nogil=True, cache=True)
def count_block(bits, last_word, start, terms, is_parity, counts, first, last):  # type: ignore[no-untyped-def]
    """Add to `counts[q]` the rows of one block that satisfy query q, for q in [first, last).

    `last_word` has ones at the valid rows of the final word: a negated term turns the
    padding on, and only there does it have to be masked.
    """
    words = bits.shape[1]
    held = np.empty(words, dtype=np.uint64)
    for q in range(first, last):
        for place in range(start[q], start[q + 1]):
            row = bits[terms[place] >> 1]
            flip = np.uint64(0) - np.uint64(terms[place] & 1)
            if place == start[q]:
                for w in range(words):
                    held[w] = row[w] ^ flip
            elif is_parity[q]:
                for w in range(words):
                    held[w] ^= row[w] ^ flip
            else:
                for w in range(words):
                    held[w] &= row[w] ^ flip
        if is_parity[q]:  # an even number of ones is a zero of the XOR
            for w in range(words):
                held[w] = ~held[w]
        held[words - 1] &= last_word
        total = np.uint64(0)
        for w in range(words):
            total += popcount(held[w])  # type: ignore[call-arg]
        counts[q] += np.int64(total)


@njit(nogil=True, cache=True)
def add_matches(truth, start, terms, is_parity, matches, first, last):  # type: ignore[no-untyped-def]
    """Add to `matches[q]` whether one record satisfies query q, for q in [first, last).

    `truth[term]` is 1 where the record satisfies the term, polarity included.
    """
    for q in range(first, last):
        if is_parity[q]:
            odd = 0
            for place in range(start[q], start[q + 1]):
                odd ^= truth[terms[place]]
            matches[q] += 1 - odd
        else:
            holds = 1
            for place in range(start[q], start[q + 1]):
                holds &= truth[terms[place]]
            matches[q] += holds
