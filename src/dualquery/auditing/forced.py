"""Noise and draws that do not depend on the table: what is left then must not either.

With these in place, two releases of unrelated tables are equal, byte for byte, unless something
besides noise and draws leaves the private side.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.rare import Charges, Rare
from dualquery.privacy.sampler import Draws
from dualquery.privacy.shards import WeightedActions
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.rare import RareCells

Int64 = npt.NDArray[np.int64]

LARGEST = 500
"""Forced counts lie below this."""


@contextmanager
def forced() -> Iterator[None]:
    """Put fixed counts and draws in the place of noisy ones, for as long as this lasts.

    What is replaced is where counts meet noise, and nothing else: exact counts go everywhere that
    they go in a release. It is not for use beside another run in the same process.
    """
    with ExitStack() as held:
        for place, made in _PLACES.items():
            held.enter_context(patch(place, made))
        yield


def _counts(size: int, source: RandomSource) -> Int64:
    generator = np.random.default_rng(source.words(2))
    return generator.integers(0, LARGEST, size, dtype=np.int64)


def _measure(
    counts: Int64, marginals: Marginals, noise: Noise, scale: float, source: RandomSource
) -> Measurement:
    return Measurement(marginals, noise, scale, _counts(len(counts), source))


def _charges(
    counts: Int64, cells: RareCells, edges: Int64, scale: float, source: RandomSource
) -> Charges:
    return Charges(cells, edges, _counts(len(counts), source), scale)


def _rare(counts: Int64, cells: RareCells, most: int, scale: float, source: RandomSource) -> Rare:
    return Rare(cells, most, scale, _counts(len(counts), source))


def _draw(actions: WeightedActions, samples: int, source: RandomSource) -> Draws:
    generator = np.random.default_rng(source.words(2))
    queries = generator.integers(0, actions.queries, samples)
    return Draws(queries, generator.random(samples) < 0.5)


_PLACES = {
    "dualquery.game.tables.measure": _measure,
    "dualquery.game.free_tables.measure": _measure,
    "dualquery.game.rare_steps.measure_charges": _charges,
    "dualquery.game.rare_steps.measure_rare": _rare,
    "dualquery.game.query_player.draw": _draw,
}
"""Where exact counts meet randomness: the module that calls, and the name that it calls."""
