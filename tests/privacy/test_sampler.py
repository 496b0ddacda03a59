"""The draw is exact: checked by enumerating random inputs, by its twin, and by χ²."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dualquery.base.errors import ParameterError
from dualquery.privacy.sampler import Proposal, draw
from dualquery.privacy.shards import BUCKETS, Shard, Shards
from dualquery.privacy.sources import SeededSource, SystemSource

from .twins import ScriptedSource, TableActions, draw_twin, weights_twin, words_of


def exact_weights(buckets: list[int], scaled: list[int]) -> list[Fraction]:
    return [Fraction(m, 2 ** (b + 53)) for b, m in zip(buckets, scaled, strict=True)]


@pytest.mark.parametrize(
    ("buckets", "eighths"),
    [
        ([0, 0], [8, 8]),
        ([0, 1], [8, 5]),
        ([0, 0, 0, 1, 1, 2], [8, 5, 7, 4, 6, 5]),
        ([2, 0, 2, 3, 0, 2, 2, 2], [4, 8, 5, 7, 6, 8, 4, 7]),
        ([3, 3, 3, 3, 3, 0], [8, 7, 6, 5, 4, 4]),
    ],
)
def test_the_map_is_exact_on_small_dyadic_weights(buckets: list[int], eighths: list[int]) -> None:
    """All inputs of a few bits, once each, give every action exactly its share.

    Mantissas are multiples of 2⁵⁰, so three bits decide the third test; the first and second word
    are enumerated to as many bits as the bucket weights and ranks have.
    """
    scaled = [e << 50 for e in eighths]
    actions = TableActions(buckets, scaled)
    first_bits = Proposal(actions.tally(0.0))._bits
    assert first_bits <= 6
    inputs = product(range(1 << first_bits), range(8), range(8))
    words = [
        word
        for first, second, third in inputs
        for word in (first << (64 - first_bits), second << 61, third << 61)
    ]
    weights = exact_weights(buckets, scaled)
    # A draw of an action uses up its share of the inputs; exactly this many inputs succeed.
    attempts = len(words) // 3
    one = Proposal(actions.tally(0.0)).attempt(attempts, ScriptedSource(words))
    _, mantissa = actions.locate(one[0], one[1])
    successes = int(np.count_nonzero(one[2] < mantissa))
    drawn = draw(actions, successes, ScriptedSource(words))
    seen = Counter((2 * drawn.queries + drawn.negated).tolist())
    for position, weight in enumerate(weights):
        assert Fraction(seen[position], successes) == weight / sum(weights)


@pytest.mark.parametrize("lead_bits", [1, 2, 3, 7])
@pytest.mark.parametrize(
    "counts", [{0: 1, 3: 3}, {1: 3, 2: 1, 6: 7}, {0: 4}, {2: 1}, {0: 1, 1: 1, 2: 1, 3: 2}]
)
def test_buckets_are_exact_where_the_leading_bits_do_not_decide(
    counts: dict[int, int], lead_bits: int
) -> None:
    totals = np.zeros(BUCKETS, dtype=np.int64)
    totals[list(counts)] = list(counts.values())
    proposal = Proposal(totals, lead_bits=lead_bits)
    deepest = max(counts)
    expected = [2 ** ((c - 1).bit_length() + deepest - b) for b, c in sorted(counts.items())]
    bits = max((sum(expected) - 1).bit_length(), 1)
    rest_bits = max(0, bits - lead_bits)
    seen: Counter[int] = Counter()
    for lead in range(1 << lead_bits):
        word = np.array([lead << (64 - lead_bits)], dtype=np.uint64)
        for rest in range(1 << rest_bits):
            source = ScriptedSource(words_of([rest], bits=rest_bits) if rest_bits else [0])
            seen[int(proposal.bucket_index(word, source)[0])] += 1
    repeats = 1 << max(0, lead_bits - bits)
    assert [seen[i] for i in range(len(expected))] == [e * repeats for e in expected]
    assert seen[len(expected)] == ((1 << bits) - sum(expected)) * repeats


@given(
    values=st.lists(st.floats(-40, 40), min_size=1, max_size=40),
    samples=st.integers(0, 50),
    seed=st.integers(0, 2**64),
)
@settings(max_examples=60, deadline=None)
def test_draws_equal_the_plain_twins(values: list[float], samples: int, seed: int) -> None:
    exponents = np.array(values)
    shard = Shard(exponents.size)
    shard.exponents[:] = exponents
    drawn = draw(shard, samples, SeededSource(seed))
    assert len(drawn) == samples
    twin = draw_twin(exponents, samples, SeededSource(seed))
    assert list(zip(drawn.queries.tolist(), drawn.negated.tolist(), strict=True)) == twin


@given(cuts=st.lists(st.integers(1, 4999), max_size=5, unique=True), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_shards_draw_what_the_whole_draws(cuts: list[int], seed: int) -> None:
    exponents = np.random.default_rng(seed).normal(0.0, 5.0, 5000)
    drawn = []
    for pieces in ([exponents], np.split(exponents, sorted(cuts))):
        parts = []
        for piece in pieces:
            parts.append(Shard(piece.size))
            parts[-1].exponents[:] = piece
        one = draw(Shards(parts), 200, SeededSource(seed))
        drawn.append((one.queries.tolist(), one.negated.tolist()))
    assert drawn[0] == drawn[1]


def test_chi_square_of_a_hundred_thousand_draws() -> None:
    exponents = np.random.default_rng(1).normal(0.0, 2.5, 40)
    shard = Shard(40)
    shard.exponents[:] = exponents
    drawn = draw(shard, 100_000, SystemSource())
    seen = np.bincount(2 * drawn.queries + drawn.negated, minlength=80)
    weights = exact_weights(*weights_twin(exponents))
    expected = np.array([float(w / sum(weights)) for w in weights]) * 100_000
    rare = expected < 5.0
    assert rare.any()
    observed = np.append(seen[~rare], seen[rare].sum())
    predicted = np.append(expected[~rare], expected[rare].sum())
    assert chisquare(observed, predicted).pvalue > 1e-6


def test_an_action_at_the_clip_can_be_drawn() -> None:
    """The input that leads there has probability about 2⁻⁸⁶⁵, so it is written out."""
    shard = Shard(2)
    shard.exponents[:] = [2000.0, -1000.0]
    totals = shard.tally(shard.largest())
    assert totals[0] == 1
    assert totals[865] == 3
    # Bucket 0 owns 2^865 integers, the last one four; the total has 866 bits.
    wanted = 2**865
    lead, rest = wanted >> (866 - 64), wanted & (2 ** (866 - 64) - 1)
    count = -(-(866 - 64) // 64)
    low = (rest << (64 * count - (866 - 64))).to_bytes(8 * count, "little")
    tail = np.frombuffer(low, dtype="<u8").tolist()
    for rank, action in enumerate([(0, True), (1, False), (1, True)]):
        words = [lead, rank << 62, 0]
        source = ScriptedSource([*words, *tail])
        buckets, ranks, thirds = Proposal(totals).attempt(1, source)
        assert (buckets.tolist(), ranks.tolist()) == ([865], [rank])
        positions, scaled = shard.locate(buckets, ranks)
        assert (positions[0] // 2, bool(positions[0] % 2)) == action
        assert thirds[0] < scaled[0]


def test_no_draws() -> None:
    assert len(draw(Shard(3), 0, SystemSource())) == 0


@pytest.mark.parametrize("samples", [-1, 1.5, float("nan")])
def test_bad_samples_are_named(samples: float) -> None:
    with pytest.raises(ParameterError, match="samples ="):
        draw(Shard(3), samples, SystemSource())  # type: ignore[arg-type]


def test_the_seeded_draws_are_pinned() -> None:
    """Experiments must repeat in later versions and on other machines."""
    shard = Shard(1000)
    shard.exponents[:] = np.sin(np.arange(1000.0)).round(6) * 5
    drawn = draw(shard, 6, SeededSource(2024).for_round(3))
    assert drawn.queries.tolist() == [150, 907, 620, 376, 536, 724]
    assert drawn.negated.tolist() == [True, False, True, True, False, False]
