"""The compiled loop that finds where rows of a CSV file end. It has a plain twin in the tests."""

from __future__ import annotations

import numpy as np

from dualquery.base.compile import njit

FIELD, PLAIN, QUOTED, CLOSED, BROKEN = 0, 1, 2, 3, 4
"""Where the loop stands: before a cell, inside one without quotes, inside quotes, after a quote
that may close them, or behind text that follows a closing quote."""

_QUOTE, _LINE, _RETURN = np.uint8(34), np.uint8(10), np.uint8(13)


@njit(nogil=True, cache=True)
def whole_rows(data, separator, most):  # type: ignore[no-untyped-def]
    """Where the last of at most so many whole rows ends; the first byte begins a row.

    A line end inside quotes does not end a row. A row that ends with a return counts as whole
    when the byte after it is known, because that may be a line feed.

    Returns:
        The number of bytes of whole rows, how many line ends close them, and where the loop stands
        after the last byte, or where it gave up.
    """
    state, end, rows = FIELD, 0, 0
    size = len(data)
    for place in range(size):
        byte = data[place]
        if state == QUOTED:
            if byte == _QUOTE:
                state = CLOSED
            continue
        if byte == separator:
            state = FIELD
        elif byte in (_LINE, _RETURN):
            state = FIELD
            if byte == _LINE or (place + 1 < size and data[place + 1] != _LINE):
                end, rows = place + 1, rows + 1
                if rows == most:
                    break
        elif byte == _QUOTE and state != PLAIN:
            state = QUOTED
        elif state == CLOSED:
            return end, rows, BROKEN
        else:
            state = PLAIN
    return end, rows, state
