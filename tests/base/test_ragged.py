"""Ragged arrays against plain lists of lists."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dualquery.base.ragged import offsets, taken


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6), st.data())
def test_rows_are_found_where_offsets_say(rows: list[list[int]], data: st.DataObject) -> None:
    flat = np.array([entry for row in rows for entry in row], dtype=np.int64)
    start = offsets([len(row) for row in rows])
    assert start.dtype == np.int64
    assert [flat[a:b].tolist() for a, b in pairwise(start)] == rows

    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)) if rows else []
    begins, places = taken(start, np.array(chosen, dtype=np.int64))
    found = [flat[places[a:b]].tolist() for a, b in pairwise(begins)]
    assert found == [rows[i] for i in chosen]


def test_sums_of_narrow_lengths_do_not_wrap_around() -> None:
    assert offsets(np.array([200, 200], dtype=np.uint8)).tolist() == [0, 200, 400]
    assert offsets(np.array([2**31 - 1, 1], dtype=np.int32)).tolist() == [0, 2**31 - 1, 2**31]
