"""The exponential mechanism over a list, by the package's exact draw. Private side."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.baselines.baseline import Floats
from dualquery.privacy.sampler import draw
from dualquery.privacy.shards import Shard
from dualquery.privacy.sources import RandomSource


def weighed(exponents: Floats) -> Shard:
    """Entries to choose from, with these exponents, none of them negative."""
    shard = Shard(len(exponents))
    shard.exponents[:] = np.maximum(exponents, 0.0)
    return shard


def choose(shard: Shard, source: RandomSource) -> int:
    """An entry, with probability exactly proportional to its weight."""
    return int(choose_some(shard, 1, source)[0])


def choose_some(shard: Shard, number: int, source: RandomSource) -> npt.NDArray[np.int64]:
    """Independent entries, each with probability exactly proportional to its weight.

    The exact draw is over entries and their negations, which have opposite exponents. Exponents are
    0 or more, so a negation is drawn at most half the time. Then the draw is repeated.

    Args:
        shard: the entries.
        number: how many to choose.
        source: the random source.
    """
    found: list[int] = []
    while len(found) < number:
        drawn = draw(shard, number - len(found), source)
        found.extend(drawn.queries[~drawn.negated].tolist())
    return np.array(found, dtype=np.int64)
