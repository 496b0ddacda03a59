"""Compiled loops over queries and one public record. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

from dualquery.base.compile import njit


@njit(nogil=True, cache=True)
def add_matches(truth, start, terms, is_parity, matches, first, last):  # type: ignore[no-untyped-def]
    """Add to `matches[q]` whether one record satisfies query q, for q in [first, last).

    `truth[term]` is 1 if the record satisfies the term, polarity included.
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


@njit(nogil=True, cache=True)
def add_uniform_matches(truth, terms, matches, first, last):  # type: ignore[no-untyped-def]
    """`add_matches` for conjunctions of equal length, which reads only terms and matches."""
    k = terms.shape[1]
    if k == 3:
        for q in range(first, last):
            matches[q] += truth[terms[q, 0]] & truth[terms[q, 1]] & truth[terms[q, 2]]
    else:
        for q in range(first, last):
            holds = truth[terms[q, 0]]
            for place in range(1, k):
                holds &= truth[terms[q, place]]
            matches[q] += holds
