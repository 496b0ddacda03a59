"""A table like film ratings: few films and people have most ratings, and tastes are shared."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.base.ragged import offsets
from dualquery.base.threads import over_ranges
from dualquery.paper.datasets.generated import GeneratedTable
from dualquery.rows.packed import Words

TASTES = 6
BANDS = 8
MOST = 0.8
"""No film is rated by more than this share of a group."""


class RatingsTable(GeneratedTable):
    """Records are people, attributes films; a one is a rating.

    A film's popularity falls like a power of its rank. People differ in how much they rate, in
    eight bands that are evenly spread over a log-normal distribution. They also differ in taste:
    each person has two of six tastes, and prefers films that both favour. Given these, ratings are
    independent. By default the table has the size of the Netflix prize, with ones in 1.2% of
    480,189 × 17,770 cells.

    Args:
        rows: people.
        width: films.
        share: the share of ones among all cells.
        seed: what decides everything random.
    """

    def __init__(
        self, rows: int = 480_189, width: int = 17_770, share: float = 0.012, seed: int = 0
    ) -> None:
        super().__init__(rows, width, seed)
        generator = np.random.default_rng(seed)
        tastes = generator.integers(0, TASTES, size=(2, rows))
        bands = generator.integers(0, BANDS, size=rows)
        group = (tastes[0] * TASTES + tastes[1]) * BANDS + bands
        self._place = np.argsort(group, kind="stable")
        members = np.bincount(group, minlength=TASTES * TASTES * BANDS)
        self._start = offsets(members)
        self._chance = _chances(generator, width, members, share)

    def _fill(self, attributes: npt.NDArray[np.int64], out: Words) -> None:
        from dualquery.paper.datasets._kernels import rated_columns

        seed = np.uint64(self.seed)

        def task(first: int, last: int) -> None:
            rated_columns(
                seed, attributes, self._chance, self._start, self._place, out, first, last
            )

        over_ranges(task, len(attributes), grain=8)


def _chances(
    generator: np.random.Generator, width: int, members: npt.NDArray[np.int64], share: float
) -> npt.NDArray[np.float64]:
    """The chance of a rating, by film and group, scaled to the wanted share of ones."""
    popularity = generator.permutation((np.arange(width) + 30.0) ** -1.1)
    favour = np.exp(generator.normal(0.0, 1.0, size=(width, TASTES)))
    middles = (np.arange(BANDS) + 0.5) / BANDS
    activity = np.exp(1.2 * _normal_quantile(middles))
    liked = (favour[:, :, None] + favour[:, None, :]).reshape(width, -1) / 2
    chance = popularity[:, None] * (liked[:, :, None] * activity).reshape(width, -1)
    weights = members / members.sum()
    for _ in range(20):  # capping removes some ones, so scale again until the share is right
        found = float((chance @ weights).mean())
        if abs(found / share - 1.0) < 1e-3:
            break
        chance = np.minimum(chance * (share / found), MOST)
    return chance


def _normal_quantile(shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    from scipy.special import ndtri

    found: npt.NDArray[np.float64] = ndtri(shares)
    return found
