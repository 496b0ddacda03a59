"""By how much a fit misses dependences, seen on noisy counts that it was not shown.

Shrinkage draws every dependence towards none, and a fit to few noisy tables knows little of the
pairs that were not measured. A model cannot say how much it lost. Counts that were kept from a fit
can: their noise is known, and what they are off beyond it is the fit's error. All of it is
post-processing.

*Thinning* makes two tables of one. From y with noise σ come y + σG and y − σG, G standard normal;
their noises are independent. A fit to the first is judged by the second. The tables that draws
chose last are kept from it altogether: how far it is off there says how far the model may be off in
pairs that were not chosen, which depend less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.game.tables_steps import Kind, TablesPlan
from dualquery.model.bends import scores
from dualquery.model.forest.answers import shares_of
from dualquery.model.mixture import Mixture
from dualquery.model.pair_kinds import APART, PAIR_KINDS
from dualquery.privacy.measuring import Measurement

Floats = npt.NDArray[np.float64]

USUAL = 0.03
"""Errors of about this size are expected, in units of a correlation. Tables whose noise is far
larger count little."""

ENOUGH = 8
"""So many pairs with one direction are enough to judge by."""

LEFT = 0.5
"""The variance of what is missed in pairs that were not chosen, beside that in those chosen last:
these were the most dependent ones that were left."""


def missed_dependence(
    player: TablesPlayer, known: Known, steps: int, generator: np.random.Generator
) -> Floats:
    """The standard error of a dependence, by the kind of the pair, in units of a correlation.

    Args:
        player: makes fits for this purpose.
        known: what was measured.
        steps: of a fit.
        generator: public randomness.
    """
    last = _chosen_last(player.plan, known)
    shown, kept = [], []
    for place, one in enumerate(known.measurements):
        noise = np.rint(np.sqrt(one.variances) * generator.standard_normal(len(one.counts)))
        if place != last:
            shown.append(replace(one, counts=one.counts + noise.astype(np.int64)))
            kept.append(replace(one, counts=one.counts - noise.astype(np.int64)))
    again = player.fitted_anew(replace(known, measurements=tuple(shown)), steps)
    judge = _Judge(player, known, player.model(again))
    parts = [part for one in kept for part in judge.missed(one, 2.0)]
    found = np.full(PAIR_KINDS, _mean(parts))
    if last is not None:
        seen = {part.attributes for part in parts}
        new = [part for part in judge.missed(known.measurements[last], 1.0)
               if part.attributes not in seen]  # fmt: skip
        if new:
            found[APART] = LEFT * _mean(new)
    errors: Floats = np.sqrt(found)
    return errors


def _chosen_last(plan: TablesPlan, known: Known) -> int | None:
    """Which measurement is of the tables that were chosen last; None if no other was chosen."""
    larger = [place for place, one in enumerate(known.measurements) if one.marginals.arity == 2]
    chosen = any(step.kind is Kind.CHOICE for step in plan.steps)
    return larger[-1] if chosen and len(larger) > 1 else None


@dataclass(frozen=True)
class _Missed:
    """By how much a fit missed one pair: the square, and what noise adds to it.

    Attributes:
        directions: in how many directions the pair's dependence can be off.
    """

    attributes: tuple[int, int]
    square: float
    noise: float
    directions: int


def _mean(parts: Sequence[_Missed]) -> float:
    """The mean square beyond noise; pairs with much noise count less.

    In many directions most of what is missed is noise that a fit followed. That is in the errors of
    single cells already, so pairs with one direction are looked at if there are some.
    """
    parts = sorted(parts, key=lambda part: part.directions)
    single = [part for part in parts if part.directions == 1]
    parts = single if len(single) >= ENOUGH else parts[:ENOUGH]
    if not parts:
        return 0.0
    squares, noise = np.array([(part.square, part.noise) for part in parts]).T
    weights = 1.0 / (noise + USUAL**2)
    return max(0.0, float(weights @ (squares - noise) / weights.sum()))


class _Judge:
    """A fit beside noisy counts that it was not shown."""

    def __init__(self, player: TablesPlayer, known: Known, model: Mixture) -> None:
        self._stack, self._model = player.stack(known), model
        self._total = player.total(known)

    def missed(self, measured: Measurement, noisier: float) -> Iterator[_Missed]:
        """Per pair of a measurement what is missed.

        Args:
            measured: the counts.
            noisier: how much larger the variance of their noise is than it says.
        """
        if measured.marginals.arity < 2 or measured.parts is not None:
            return
        stack = self._stack
        marginals = replace(measured.marginals, groups=stack.groups)
        shares = shares_of(self._model, marginals)
        variance = noisier * measured.variance / self._total**2
        for t, attributes in enumerate(marginals.attributes.tolist()):
            part = slice(marginals.start[t], marginals.start[t + 1])
            shape = marginals.shapes[t]
            expected = shares[part].reshape(shape)
            away = measured.counts[part].reshape(shape) / self._total - expected
            ordered = [stack.is_ordered(int(place)) for place in stack.positions(attributes)]
            for i, j in combinations(range(len(shape)), 2):
                others = tuple(a for a in range(len(shape)) if a not in (i, j))
                pair = expected.sum(axis=others)
                one = scores(pair.sum(axis=1), linear=ordered[i])
                other = scores(pair.sum(axis=0), linear=ordered[j])
                square = float(((one @ away.sum(axis=others) @ other.T) ** 2).sum())
                cells = float(np.prod(shape[list(others)]))
                noise = variance * cells * float((one**2).sum() * (other**2).sum())
                yield _Missed((attributes[i], attributes[j]), square, noise, len(one) * len(other))
