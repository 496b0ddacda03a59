"""Integer noise has the probabilities it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.noise import discrete_laplace, rational_scale
from dualquery.privacy.sources import SeededSource


@pytest.mark.parametrize("scale", [0.4, 1.0, 3.7, 30.0])
def test_frequencies(scale: float) -> None:
    source = SeededSource(8)
    drawn = np.array([discrete_laplace(scale, source) for _ in range(6000)])
    shrink = math.exp(-1.0 / float(rational_scale(scale)))
    for value in range(-3, 4):
        chance = (1 - shrink) / (1 + shrink) * shrink ** abs(value)
        spread = math.sqrt(chance * (1 - chance) / len(drawn))
        assert abs(np.mean(drawn == value) - chance) < 4.5 * spread + 1e-9
    variance = 2 * shrink / (1 - shrink) ** 2
    assert drawn.var() == pytest.approx(variance, rel=0.15)


def test_scale_is_rounded_up_never_down() -> None:
    for scale in (1e-9, 1 / 3, 2.5, 1e6 + 0.1):
        assert scale <= rational_scale(scale) <= scale + 2.0**-20
    with pytest.raises(ParameterError, match="scale = 0"):
        rational_scale(0.0)
