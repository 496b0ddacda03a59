"""Several fits of one release, averaged: a mixture of mixtures.

A fit from a random start ends in one of many optima that explain what was released equally well.
Where the release says something, they agree; elsewhere each makes up something of its own. Their
average keeps the first and loses most of the second. It is a mixture of products again, with the
components of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

import numpy as np
from threadpoolctl import threadpool_limits

from dualquery.base.threads import over_ranges
from dualquery.domain.free import Filling, Free
from dualquery.model.forest.edges import Edges
from dualquery.model.mixture import Mixture
from dualquery.model.terms import Term
from dualquery.model.training import Ascent, Parameters

Members = tuple[Parameters, ...]

Climb = Callable[
    [Members, Callable[[], Ascent], Sequence[Term], Sequence[float]],
    Members,
]
"""Takes every member one step at each rate, as `climbed` does; possibly on other machines."""


def climbed(
    members: Members,
    ascent: Callable[[], Ascent],
    terms: Sequence[Term],
    rates: Sequence[float],
    observer: Callable[[int, int], None] = lambda done, total: None,
) -> Members:
    """Every member after one step at each rate, on as many threads as there are.

    Args:
        members: where the fits stand.
        ascent: makes an ascent; each thread needs buffers of its own.
        terms: what is climbed. Terms are read by all threads at once.
        rates: one per step.
        observer: told how many members are done, and of how many.
    """
    found: list[Parameters] = list(members)
    done: list[int] = []

    def task(first: int, last: int) -> None:
        for number in range(first, last):
            found[number], _ = ascent().climb(found[number], terms, rates)
            done.append(number)
            observer(len(done), len(members))

    # Kernels take SciPy's matrix product, which must be loaded before its threads can be limited.
    import_module("scipy.linalg.cython_blas")
    # Members share out the cores; a matrix product that woke threads of its own would only spin.
    with threadpool_limits(1, user_api="blas"):
        over_ranges(task, len(members), grain=1)
    return tuple(found)


def merged(members: Sequence[Mixture], parts: Sequence[float] = ()) -> Mixture:
    """The average of several mixtures over the same schema, with the same edges.

    Args:
        members: the mixtures.
        parts: of each in the average, adding up to one; all alike if left out.
    """
    parts = parts or [1.0 / len(members)] * len(members)
    weights = np.concatenate([part * m.weights for part, m in zip(parts, members, strict=True)])
    edges = [one.edges for one in members if one.edges is not None]
    return Mixture(
        members[0].schema,
        weights,
        np.hstack([one.own for one in members]),
        Edges.merged(edges) if edges else None,
    )


def published(members: Members, ascent: Ascent, free: Filling = Free.DEFAULT) -> Mixture:
    """The model as it is published; `free` says what attributes take that are not modelled."""
    return merged([ascent.mixture(one, free) for one in members])
