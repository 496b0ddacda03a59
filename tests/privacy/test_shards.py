"""Weights: kernels equal their twins, shards equal the whole, rounding is as claimed."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualquery.base.errors import ParameterError
from dualquery.privacy.neighbours import Neighbours, rounding_charge
from dualquery.privacy.sampler import draw
from dualquery.privacy.shards import BLOCK, BUCKETS, CLIP, Shard, Shards, mantissas, route
from dualquery.privacy.sources import SeededSource

from .twins import exponents_twin, weights_twin


def filled(exponents: NDArray[np.float64]) -> Shard:
    shard = Shard(exponents.size)
    shard.exponents[:] = exponents
    return shard


def every_action(shard: Shard | Shards) -> tuple[list[int], list[int], list[int]]:
    """Bucket, position and mantissa of every (bucket, rank), in order of position."""
    totals = shard.tally(shard.largest())
    buckets = np.repeat(np.arange(BUCKETS), totals)
    ranks = np.concatenate([np.arange(t) for t in totals])
    positions, scaled = shard.locate(buckets, ranks)
    order = np.argsort(positions)
    return buckets[order].tolist(), positions[order].tolist(), scaled[order].tolist()


@given(
    counts=st.lists(st.integers(0, 1000), min_size=1, max_size=30),
    size=st.integers(0, 5000),
    reference=st.integers(1, 1000),
    temperature=st.floats(0.0, 1e4),
    seed=st.integers(0, 99),
)
@settings(max_examples=50, deadline=None)
def test_exponents_equal_their_twin(
    counts: list[int], size: int, reference: int, temperature: float, seed: int
) -> None:
    answers = np.random.default_rng(seed).uniform(-0.2, 1.2, len(counts))
    shard = Shard(len(counts))
    array = np.array(counts, dtype=np.int64)
    shard.score(array, answers, temperature, size=size, reference=reference)
    twin = exponents_twin(array, answers, temperature, size, reference)
    assert np.array_equal(shard.exponents, twin)
    assert shard.largest() <= 2.0 * temperature


def test_exponents_are_the_scores_of_the_game() -> None:
    counts = np.array([0, 3, 10])
    answers = np.array([0.5, 0.25, 1.0])
    shard = Shard(3)
    shard.score(counts, answers, 4.0, size=10, reference=10)
    assert shard.exponents == pytest.approx(4.0 * (counts / 10 - answers))
    # add-remove: half the difference between the scores of a query and of its negation
    shard.score(counts, answers, 4.0, size=12, reference=10)
    query, negation = counts / 10 - answers, (12 - counts) / 10 - (1 - answers)
    assert shard.exponents == pytest.approx(4.0 * (query - negation) / 2)


@given(
    st.lists(st.floats(-700, 700), min_size=1, max_size=60),
)
@settings(max_examples=60, deadline=None)
def test_every_action_is_found_with_its_twins_weight(values: list[float]) -> None:
    exponents = np.array(values)
    buckets, positions, scaled = every_action(filled(exponents))
    assert positions == list(range(2 * exponents.size))
    assert (buckets, scaled) == weights_twin(exponents)


@pytest.mark.parametrize("queries", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 17])
def test_blocks_meet_without_gaps(queries: int) -> None:
    exponents = np.random.default_rng(queries).normal(0.0, 3.0, queries)
    _, positions, _ = every_action(filled(exponents))
    assert positions == list(range(2 * queries))


@given(cuts=st.lists(st.integers(1, 5999), max_size=6, unique=True), spread=st.floats(0, 300))
@settings(max_examples=15, deadline=None)
def test_shards_equal_the_whole_however_they_are_cut(cuts: list[int], spread: float) -> None:
    exponents = np.random.default_rng(5).normal(0.0, spread, 6000)
    parts = Shards([filled(part) for part in np.split(exponents, sorted(cuts))])
    assert parts.queries == 6000
    assert every_action(parts) == every_action(filled(exponents))


def test_shards_may_be_nested() -> None:
    exponents = np.random.default_rng(5).normal(0.0, 3.0, 90)
    a, b, c = np.split(exponents, [10, 40])
    nested = Shards([filled(a), Shards([filled(b), filled(c)])])
    assert every_action(nested) == every_action(filled(exponents))


def test_route_skips_shards_without_the_bucket() -> None:
    totals = np.zeros((3, BUCKETS), dtype=np.int64)
    totals[:, 4] = [2, 0, 3]
    shards, ranks = route(totals, np.full(5, 4), np.arange(5))
    assert shards.tolist() == [0, 0, 2, 2, 2]
    assert ranks.tolist() == [0, 1, 0, 1, 2]


def test_threads_do_not_change_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    exponents = np.random.default_rng(3).normal(0.0, 9.0, 300_000)
    outcomes = []
    for threads in ("1", "3"):
        monkeypatch.setenv("DUALQUERY_THREADS", threads)
        shard = filled(exponents)
        totals = shard.tally(shard.largest())
        buckets = np.repeat(np.flatnonzero(totals), 3)
        ranks = np.stack([0 * totals, totals // 2, totals - 1])[:, np.flatnonzero(totals)].T.ravel()
        positions, scaled = shard.locate(buckets, ranks)
        outcomes.append((totals.tolist(), positions.tolist(), scaled.tolist()))
    assert outcomes[0] == outcomes[1]


def test_equal_weights_at_temperature_zero() -> None:
    shard = Shard(5)
    shard.score(np.arange(5), np.linspace(0, 1, 5), 0.0, size=9, reference=9)
    buckets, _, scaled = every_action(shard)
    assert buckets == [0] * 10
    assert scaled == [2**53] * 10


def test_the_clip_keeps_every_action_possible() -> None:
    shard = filled(np.array([5000.0, 0.0, -1.0]))
    buckets, positions, scaled = every_action(shard)
    assert positions == list(range(6))
    assert buckets == [0, 865, 865, 865, 865, 865]
    assert len(set(scaled[1:])) == 1
    assert min(scaled) >= 2**52


def test_weights_are_as_close_to_the_exponential_as_the_proof_says() -> None:
    """|ln(mantissa·2^{−b−53}) − x| ≤ 2⁻⁴⁹ + 2⁻⁵²·|x|, the second term at the buckets' borders."""
    rng = np.random.default_rng(11)
    borders = -np.log(2.0) * np.arange(0, 866)
    falls = np.concatenate(
        [
            -rng.uniform(0.0, 600.0, 400),
            -rng.uniform(0.0, 1e-3, 50),
            borders,
            np.nextafter(borders, -math.inf),
            np.nextafter(borders[1:], 0.0),
            [CLIP, 0.0],
        ]
    )
    falls = falls[falls >= CLIP]
    buckets = np.floor(-1.4426950408889634 * falls).astype(np.int64)
    assert buckets.max() < BUCKETS
    with mpmath.workdps(40):
        for fall, bucket, scaled in zip(falls, buckets, mantissas(falls, buckets), strict=True):
            logarithm = mpmath.log(int(scaled)) - (int(bucket) + 53) * mpmath.log(2)
            assert abs(logarithm - mpmath.mpf(float(fall))) <= 2.0**-49 - 2.0**-52 * fall


@pytest.mark.parametrize("temperature", [0.3, 200.0, 2048.0, 20_000.0])
def test_the_rounding_charge_covers_the_whole_computation(temperature: float) -> None:
    """From counts to weights: the error of every log-weight is a quarter of the charge at most."""
    rng = np.random.default_rng(2)
    counts, answers = rng.integers(0, 30163, 200), rng.uniform(0, 1, 200)
    shard = Shard(200)
    shard.score(counts, answers, temperature, size=30162, reference=30162)
    buckets, _, scaled = every_action(shard)
    charge = float(rounding_charge(temperature))
    with mpmath.workdps(40):
        exact = [
            sign * mpmath.mpf(temperature) * (mpmath.mpf(int(c)) / 30162 - mpmath.mpf(float(a)))
            for c, a in zip(counts, answers, strict=True)
            for sign in (1, -1)
        ]
        top = mpmath.mpf(shard.largest())
        for value, bucket, mantissa in zip(exact, buckets, scaled, strict=True):
            logarithm = mpmath.log(mantissa) - (bucket + 53) * mpmath.log(2)
            assert abs(logarithm - max(value - top, mpmath.mpf(-600))) <= charge / 4


def test_answers_that_are_not_numbers_are_refused() -> None:
    shard = Shard(2)
    shard.score(np.array([1, 2]), np.array([0.5, math.nan]), 1.0, size=3, reference=3)
    with pytest.raises(ParameterError, match="an exponent is nan"):
        shard.largest()


def test_bad_shapes_and_parameters_are_named() -> None:
    shard = Shard(2)
    with pytest.raises(ParameterError, match=r"answers of shape .*; expected one per query, 2"):
        shard.score(np.array([1, 2]), np.array([0.5]), 1.0, size=3, reference=3)
    with pytest.raises(ParameterError, match="temperature = -1"):
        shard.score(np.array([1, 2]), np.array([0.5, 0.5]), -1.0, size=3, reference=3)
    with pytest.raises(ParameterError, match="reference = 0"):
        shard.score(np.array([1, 2]), np.array([0.5, 0.5]), 1.0, size=3, reference=0)
    with pytest.raises(ParameterError, match="queries = 0"):
        Shard(0)
    with pytest.raises(ParameterError, match="there is no shard"):
        Shards([])


def test_log_priors_are_prior_weights() -> None:
    """A query with log prior o is drawn e^o times as often as one without, at the same exponent."""
    log_prior = np.log(np.array([1.0, 3.0, 0.5]))
    exponents = np.array([0.2, -0.4, 0.0])
    shard = Shard(3, log_prior=log_prior)
    shard.exponents[:] = exponents
    draws = draw(shard, 200_000, SeededSource(5))
    weights = np.exp(np.concatenate([log_prior + exponents, log_prior - exponents]))
    found = np.bincount(draws.queries + 3 * draws.negated, minlength=6) / 200_000
    np.testing.assert_allclose(found, weights / weights.sum(), atol=0.005)


def test_no_log_prior_is_a_log_prior_of_zeros() -> None:
    plain, zero = Shard(50), Shard(50, log_prior=np.zeros(50))
    plain.exponents[:] = zero.exponents[:] = np.linspace(-3.0, 2.0, 50)
    one, other = draw(plain, 300, SeededSource(1)), draw(zero, 300, SeededSource(1))
    np.testing.assert_array_equal(one.queries, other.queries)
    np.testing.assert_array_equal(one.negated, other.negated)


def test_log_priors_stay_within_what_the_charge_covers() -> None:
    with pytest.raises(ParameterError, match="each within ±32"):
        Shard(2, log_prior=np.array([0.0, 33.0]))
    with pytest.raises(ParameterError, match="expected one per query, 2"):
        Shard(2, log_prior=np.zeros(3))


@pytest.mark.parametrize("unit", list(Neighbours))
def test_the_range_with_log_priors_is_the_one_charged(unit: Neighbours) -> None:
    """Random neighbours, log priors and temperatures, clip included: never above, and reached."""
    random = np.random.default_rng(7)
    closest = 0.0
    for _ in range(300):
        queries, reference = 12, int(random.integers(3, 30))
        size = reference if unit is Neighbours.REPLACE_ONE else int(random.integers(0, 80))
        counts = random.integers(0, size + 1, queries)
        answers, beta = random.random(queries), float(10.0 ** random.uniform(-1, 3.3))
        log_prior = random.uniform(-32.0, 32.0, queries)
        holds = random.random(queries) < 0.5
        if unit is Neighbours.REPLACE_ONE:
            change = np.where(random.random(queries) < 0.3, 0, np.where(holds, 1, -1))
            change = np.clip(counts + change, 0, size) - counts
            other, larger = counts + change, size
        else:
            other, larger = counts + holds, size + 1
        falls = []
        for c, n in ((counts, size), (other, larger)):
            shard = Shard(queries, log_prior=log_prior)
            shard.score(c.astype(np.int64), answers, beta, size=n, reference=reference)
            both = np.concatenate([log_prior + shard.exponents, log_prior - shard.exponents])
            falls.append(np.maximum(both - shard.largest(), CLIP))
        moved = falls[1] - falls[0]
        spread, charged = float(np.ptp(moved)), float(unit.draw_range(beta, reference))
        assert spread <= charged
        closest = max(closest, spread / charged)
    assert closest > 0.999
