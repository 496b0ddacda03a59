"""Compiled loops over cells of text and over numbers. Each has a plain twin in the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dualquery.base.compile import njit

_MIX = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(29)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


def _load_word(typing_context: Any, data: Any, place: Any) -> Any:
    """Eight bytes from any place, in one instruction; arrays load from multiples of eight only."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        begun = builder.bitcast(array.data, cgutils.voidptr_t)
        at = builder.bitcast(
            builder.gep(begun, [arguments[1]]), context.get_value_type(types.uint64).as_pointer()
        )
        word = builder.load(at)
        word.align = 1
        return word

    return types.uint64(data, types.uint64), code


load_word: Any = intrinsic(_load_word)
"""The eight bytes of an array of bytes that begin at a place; the caller sees to its end."""


@njit(inline="always")
def _word(data, place, length):  # type: ignore[no-untyped-def]
    """The first eight bytes of what begins at a place, those past its length being zero."""
    held = min(length, np.uint64(8))
    if held == np.uint64(0):
        return np.uint64(0)
    if place + np.uint64(8) <= np.uint64(len(data)):
        return load_word(data, place) & (_ONES >> (np.uint64(64) - (held << np.uint64(3))))
    word = np.uint64(0)
    for i in range(held):
        word |= np.uint64(data[place + np.uint64(i)]) << np.uint64(8 * i)
    return word


@njit(inline="always")
def _rest_is_alike(data, one, other, length):  # type: ignore[no-untyped-def]
    """Whether two cells have the same bytes after the first eight."""
    done = np.uint64(8)
    while done < length:
        left = length - done
        if _word(data, one + done, left) != _word(data, other + done, left):
            return False
        done += np.uint64(8)
    return True


@njit(nogil=True, cache=True)
def distinct_cells(start, data, is_missing, most, places, examples):  # type: ignore[no-untyped-def]
    """Number the distinct cells of a column in the order in which they appear.

    Cell i has the bytes `data[start[i]:start[i + 1]]`. Its number goes to `places[i]`, or −1 if
    it is missing; `examples[number]` is the first row that has it. `is_missing` may be empty.

    Returns:
        How many distinct cells there are; −1 as soon as there are more than `most`.
    """
    bits = 2
    while 1 << bits < 4 * most:
        bits += 1
    # A slot holds the first word of a cell, its length, and one more than its number.
    words = np.zeros(1 << bits, dtype=np.uint64)
    lengths = np.zeros(1 << bits, dtype=np.uint64)
    numbers = np.zeros(1 << bits, dtype=np.int32)
    shift, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
    found = 0
    some_missing = len(is_missing) > 0
    end = np.uint64(start[0])
    for row in range(len(start) - 1):
        begin, end = end, np.uint64(start[row + 1])
        if some_missing and is_missing[row]:
            places[row] = -1
            continue
        length = end - begin
        word = _word(data, begin, length)
        mixed = (word ^ (length << np.uint64(56))) * _MIX
        if length > np.uint64(8):
            done = np.uint64(8)
            while done < length:
                mixed ^= mixed >> _FOLD
                mixed = (mixed ^ _word(data, begin + done, length - done)) * _MIX
                done += np.uint64(8)
        slot = mixed >> shift
        while True:
            number = numbers[slot]
            if number == 0:
                if found == most:
                    return -1
                words[slot], lengths[slot] = word, length
                examples[found] = row
                found += 1
                numbers[slot] = number = found
                break
            if words[slot] == word and lengths[slot] == length:
                if length <= np.uint64(8):
                    break
                other = np.uint64(start[examples[number - 1]])
                if _rest_is_alike(data, begin, other, length):
                    break
            slot = (slot + np.uint64(1)) & mask
        places[row] = number - 1
    return found


_TENS = np.array([10.0**power for power in range(23)])
"""The powers of ten that a double holds exactly."""

_MOST_DIGITS = 15
"""So many digits are a whole number below 2^53, which a double holds exactly."""


@njit(inline="always")
def _digits(data, place, end):  # type: ignore[no-untyped-def]
    """The number that the digits from a place on make, and the place after them."""
    number = np.int64(0)
    while place < end and np.uint8(48) <= data[place] <= np.uint8(57):
        number = number * 10 + np.int64(data[place] - np.uint8(48))
        place += 1
    return number, place


@njit(nogil=True, cache=True)
def written_numbers(start, data, is_missing, numbers, is_read):  # type: ignore[no-untyped-def]
    """Read cells of text that are plainly numbers: a sign, digits, a point, an exponent, spaces.

    Cell i has the bytes `data[start[i]:start[i + 1]]`. Its number goes to `numbers[i]`; that of a
    missing cell stays as it is. `is_read[i]` becomes False if the cell is no number, or if it has
    more digits than this loop reads exactly: up to 15 digits are a whole number below 2^53, and
    one multiplication with a power of ten up to 10^22 rounds once, as reading digit by digit does.
    """
    some_missing = len(is_missing) > 0
    for row in range(len(start) - 1):
        if some_missing and is_missing[row]:
            continue
        place, end = start[row], start[row + 1]
        while place < end and data[place] == np.uint8(32):
            place += 1
        while place < end and data[end - 1] == np.uint8(32):
            end -= 1
        is_negative = place < end and data[place] == np.uint8(45)
        if place < end and (is_negative or data[place] == np.uint8(43)):
            place += 1
        if end - place > _MOST_DIGITS + 6:
            is_read[row] = False
            continue
        first = place
        whole, place = _digits(data, place, end)
        digits, power = place - first, np.int64(0)
        if place < end and data[place] == np.uint8(46):
            first = place + 1
            part, place = _digits(data, first, end)
            power = -np.int64(place - first)
            digits += place - first
            if digits <= _MOST_DIGITS:
                whole = whole * np.int64(_TENS[-power]) + part
        if digits > 0 and place < end and data[place] | np.uint8(32) == np.uint8(101):
            place += 1
            lowers = place < end and data[place] == np.uint8(45)
            if place < end and (lowers or data[place] == np.uint8(43)):
                place += 1
            first = place
            exponent, place = _digits(data, place, end)
            power += -exponent if lowers else exponent
            if place == first:
                digits = 0  # an exponent without digits
        if place != end or digits == 0 or digits > _MOST_DIGITS or not -22 <= power <= 22:
            is_read[row] = False
            continue
        number = np.float64(whole)
        number = number / _TENS[-power] if power < 0 else number * _TENS[power]
        numbers[row] = -number if is_negative else number


TILE = 1024
"""The number of rows whose bins are counted up at a time; they stay in the nearest cache."""


@njit(nogil=True, cache=True)
def bins_of(numbers, edges, last, missing, below, above, codes):  # type: ignore[no-untyped-def]
    """Write the bin of every number to `codes`.

    Bin b is [edges[b], edges[b + 1]); the last one, of code `last`, has its upper end. A NaN gets
    `missing`, a number outside all bins `below` or `above`. The bin is the number of inner edges
    that a number reaches. All rows of a tile are compared with one edge after the other, in
    vectors; a search per number would take branches that nobody can foresee.
    """
    first, end = edges[0], edges[-1]
    for begin in range(0, len(numbers), TILE):
        part, found = numbers[begin : begin + TILE], codes[begin : begin + TILE]
        found[:] = 0
        for place in range(1, len(edges) - 1):
            edge = edges[place]
            for row in range(len(part)):
                found[row] += np.int32(part[row] >= edge)
        for row in range(len(part)):
            number = part[row]
            code = min(found[row], last)
            code = above if number > end else code
            code = below if number < first else code
            found[row] = missing if number != number else code
