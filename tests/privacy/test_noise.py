"""Exact noise: bit for bit against plain twins, and against exact probabilities."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from dualquery.base.errors import ParameterError
from dualquery.privacy import noise
from dualquery.privacy.noise import discrete_laplace, rounded_gaussian
from dualquery.privacy.sources import SeededSource, SystemSource
from tests.privacy.noise_twins import Bits, discrete_laplace_twin, rounded_gaussian_twin
from tests.privacy.twins import ScriptedSource

DRAWS = 1_000_000
SIGMAS = [2.0**-10, 0.001, 0.3, 1.0, 1.1, 7.25, 100 / 3, 12345.678, 1e9, 2.0**40]


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
def test_rounded_gaussian_reads_the_bits_as_its_twin_does(sigma: float, width: int) -> None:
    """Narrow digits tie often, so comparisons and roundings go many digits deep."""
    bits = Bits(SeededSource(width))
    expected = [rounded_gaussian_twin(sigma, bits, width) for _ in range(400)]
    assert rounded_gaussian(sigma, 400, SeededSource(width), digit_bits=width).tolist() == expected


@given(
    sigma=st.floats(2.0**-10, 2.0**40),
    width=st.sampled_from([1, 2, 4, 8, 16, 32]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=200, deadline=None)
def test_any_sigma_is_the_fraction_that_it_is(sigma: float, width: int, seed: int) -> None:
    bits = Bits(SeededSource(seed))
    expected = [rounded_gaussian_twin(sigma, bits, width) for _ in range(10)]
    assert rounded_gaussian(sigma, 10, SeededSource(seed), digit_bits=width).tolist() == expected


@pytest.mark.parametrize(("last", "expected"), [("1", 1), ("0", 0)])
@pytest.mark.parametrize("width", [1, 8, 32])
def test_digits_are_drawn_until_the_rounding_is_decided(
    last: str, expected: int, width: int
) -> None:
    """3·x rounds up from x = 1/6 on; here x agrees with 1/6 for 200 bits."""
    sixth = f"{(1 << 200) // 6:0200b}"
    # The whole part is 0 (an odd number of successes) and accepted at once. Then come x, and the
    # sign, which does not matter here.
    text = "0" + "11" + "1" + sixth + last * 600
    text += "0" * (-len(text) % 64)
    words = [int(text[i : i + 64], 2) for i in range(0, len(text), 64)]
    drawn = rounded_gaussian(3.0, 1, ScriptedSource(words), digit_bits=width)
    assert abs(int(drawn[0])) == expected
    assert drawn[0] == rounded_gaussian_twin(3.0, Bits(ScriptedSource(words)), width)


@given(
    scale=st.one_of(
        st.fractions(Fraction(1, 1024), 10**6, max_denominator=10**6),
        st.floats(2.0**-10, 2.0**50).map(Fraction),
    ),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=200, deadline=None)
def test_discrete_laplace_reads_the_bits_as_its_twin_does(scale: Fraction, seed: int) -> None:
    bits = Bits(SeededSource(seed))
    expected = [discrete_laplace_twin(scale, bits) for _ in range(20)]
    assert discrete_laplace(scale, 20, SeededSource(seed)).tolist() == expected


@pytest.mark.parametrize("block", [1, 2, 7, 64, 4096])
def test_a_value_cut_by_the_end_of_a_block_is_made_from_the_same_bits(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise values that need few bits would be too frequent."""
    plain = rounded_gaussian(5.5, 500, SeededSource(3))
    laplace = discrete_laplace(2.5, 500, SeededSource(3))
    monkeypatch.setattr(noise, "BLOCK", block)
    assert rounded_gaussian(5.5, 500, SeededSource(3)).tolist() == plain.tolist()
    assert discrete_laplace(2.5, 500, SeededSource(3)).tolist() == laplace.tolist()


def gaussian_distribution(sigma: float, edges: NDArray[np.int64]) -> list[float]:
    """P(Z ≤ e) for every edge e, with enough digits for differences in the tails."""
    with mpmath.workdps(40):
        return [mpmath.ncdf((int(e) + mpmath.mpf(1) / 2) / mpmath.mpf(sigma)) for e in edges]


def laplace_distribution(scale: float, edges: NDArray[np.int64]) -> list[float]:
    with mpmath.workdps(40):
        q = mpmath.exp(-1 / mpmath.mpf(scale))
        return [
            1 - q ** (int(e) + 1) / (1 + q) if e >= 0 else q ** (-int(e)) / (1 + q) for e in edges
        ]


def edges_for(deviation: float) -> NDArray[np.int64]:
    """Borders of about sixty bins; for small scales one bin per integer."""
    wide = np.linspace(-5.2, 5.2, 61) * deviation
    return np.unique(np.floor(wide).astype(np.int64))


def chance(observed: NDArray[np.float64], probabilities: NDArray[np.float64]) -> float:
    """The chance of a χ² as large as this; bins that expect fewer than ten are put together."""
    expected = probabilities * observed.sum()
    rare = expected < 10.0
    if np.any(rare):
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0.0
    assert observed[~keep].sum() == 0
    if expected[-1] < 1.0:  # too rare for χ²; almost none of them may occur
        assert observed[-1] <= 5
        keep[-1] = False
    statistic = float(np.sum((observed[keep] - expected[keep]) ** 2 / expected[keep]))
    return float(chi2.sf(statistic, keep.sum() - 1))


def binned(values: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    places = np.searchsorted(edges, values, side="left")
    return np.bincount(places, minlength=edges.size + 1).astype(np.float64)


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0, math.sqrt(2.0), 3.7, 41.3, 1e5, 1e9])
def test_rounded_gaussian_has_its_exact_probabilities(sigma: float) -> None:
    values = rounded_gaussian(sigma, DRAWS, SeededSource(20))
    edges = edges_for(max(sigma, 1.0))
    cumulated = [0.0, *gaussian_distribution(sigma, edges), 1.0]
    assert chance(binned(values, edges), np.diff(cumulated).astype(np.float64)) > 1e-4
    if sigma >= 1e5:  # the low bits are as good as uniform, and drawn like all others
        low = np.bincount(values & 63, minlength=64).astype(np.float64)
        assert chance(low, np.full(64, 1.0 / 64.0)) > 1e-4
    if sigma == 1e9:  # about 141 pairs are expected to agree, far more if few bits decide
        assert DRAWS - np.unique(values).size < 300
    # The moments see a scale that is off by half a per cent. A lattice adds 1/12 from σ = 1 on.
    if sigma >= 1.0:
        variance = sigma**2 + 1.0 / 12.0
        assert abs(values.mean()) < 4.5 * math.sqrt(variance / DRAWS)
        assert abs(values.var() / variance - 1.0) < 4.5 * math.sqrt(2.0 / DRAWS)


@pytest.mark.parametrize("sigma", [1.0, 17.3, 1e9])
def test_tails_of_the_rounded_gaussian(sigma: float) -> None:
    values = np.abs(rounded_gaussian(sigma, DRAWS, SeededSource(21)))
    for deviations in (2.5, 3.5, 4.0):
        edge = math.floor(deviations * sigma)
        with mpmath.workdps(40):
            beyond = float(2 * mpmath.ncdf(-(edge + mpmath.mpf(1) / 2) / mpmath.mpf(sigma)))
        seen = int(np.count_nonzero(values > edge))
        assert abs(seen - DRAWS * beyond) < 4.5 * math.sqrt(DRAWS * beyond) + 1.0


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0 / 0.37, 10.0, 1234.5])
def test_discrete_laplace_has_its_exact_probabilities(scale: float) -> None:
    values = discrete_laplace(scale, DRAWS, SeededSource(22))
    edges = edges_for(max(2.0 * scale, 1.0))
    cumulated = [0.0, *laplace_distribution(scale, edges), 1.0]
    assert chance(binned(values, edges), np.diff(cumulated).astype(np.float64)) > 1e-4


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_sign_size_and_neighbouring_values_are_independent(kind: str) -> None:
    draw = rounded_gaussian if kind == "gaussian" else discrete_laplace
    values = draw(30.0, DRAWS, SeededSource(23))
    size = np.minimum(np.abs(values) // 10, 7)
    half = np.abs(values) % 2
    nonzero = values[1:] != 0
    for one, other in (
        (size[1:], values[1:] < 0),
        (half[1:], values[1:] < 0),
        (size[:-1], size[1:]),
        (values[:-1] < 0, values[1:] < 0),
        (size[:-1], values[1:] < 0),
        (values[:-1] < 0, size[1:]),
        (half[:-1], half[1:]),
    ):
        first, second = one[nonzero].astype(np.int64), other[nonzero].astype(np.int64)
        table = np.zeros((first.max() + 1, second.max() + 1))
        np.add.at(table, (first, second), 1.0)
        expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
        statistic = float(np.sum((table - expected) ** 2 / expected))
        assert chi2.sf(statistic, (table.shape[0] - 1) * (table.shape[1] - 1)) > 1e-4


@pytest.mark.parametrize("draw", [rounded_gaussian, discrete_laplace])
def test_the_operating_system_never_repeats_itself(draw: object) -> None:
    first = draw(1e6, 1000, SystemSource())  # type: ignore[operator]
    second = draw(1e6, 1000, SystemSource())  # type: ignore[operator]
    assert first.dtype == np.int64
    assert np.count_nonzero(first == second) < 10
    assert draw(3.0, 0, SystemSource()).size == 0  # type: ignore[operator]


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, 2.0**-11, 2.0**41])
def test_a_sigma_without_room_is_named(sigma: float) -> None:
    with pytest.raises(ParameterError, match="sigma ="):
        rounded_gaussian(sigma, 1, SystemSource())


@pytest.mark.parametrize(
    "scale", [0.0, -1.0, math.nan, math.inf, 2.0**-11, 2.0**54, Fraction(2**60 + 1, 3)]
)
def test_a_scale_without_room_is_named(scale: float | Fraction) -> None:
    with pytest.raises(ParameterError, match="scale ="):
        discrete_laplace(scale, 1, SystemSource())


def test_other_arguments_are_named() -> None:
    with pytest.raises(ParameterError, match="size = -1"):
        rounded_gaussian(1.0, -1, SystemSource())
    with pytest.raises(ParameterError, match="digit_bits = 3"):
        rounded_gaussian(1.0, 1, SystemSource(), digit_bits=3)
