from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from dualquery.base.errors import ParameterError
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.privacy.sources import (
    SeededSource,
    SystemSource,
    source_for,
    uniform_below,
    uniform_bits,
)

from .twins import ScriptedSource


def test_only_the_operating_system_is_private() -> None:
    assert SystemSource().private
    assert not SeededSource(1).private
    assert source_for(None).private
    assert not source_for(0).private


def test_system_words_differ_and_fill_all_bits() -> None:
    source = SystemSource()
    words = source.words(1000)
    assert words.dtype == np.uint64
    assert len(set(words.tolist())) == 1000
    assert int(np.bitwise_or.reduce(words)) == 2**64 - 1
    assert not np.array_equal(pickle.loads(pickle.dumps(source)).words(4), source.words(4))


def scripted_urandom(monkeypatch: pytest.MonkeyPatch, key: int) -> None:
    """An operating system that hands out a known stream."""
    stream = np.random.Philox(key)
    monkeypatch.setattr(
        "os.urandom", lambda size: stream.random_raw(-(-size // 8)).tobytes()[:size]
    )


def test_system_words_are_the_operating_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte comes from `os.urandom`, once and in order; no other generator is involved."""
    words = np.random.Philox(5).random_raw(7)
    scripted_urandom(monkeypatch, 5)
    source = SystemSource()
    assert np.array_equal(source.words(4), words[:4])
    assert np.array_equal(source.for_round(3).words(3), words[4:])


def test_a_run_without_a_seed_draws_from_the_operating_system_alone(
    schema: Schema, rows: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = DualQuery(
        epsilon=1.0, delta=1e-3, rounds=3, samples=30, queries=100, refit=False, errors=False
    )
    job.fit(rows, schema=schema)  # a kernel that is compiled here and now reads random bytes too
    drawn = []
    for key in (1, 1, 2):
        scripted_urandom(monkeypatch, key)
        made = job.fit(rows, schema=schema)
        assert made.privacy.private
        drawn.append([one.draws.queries.tolist() for one in made.transcript])
    assert drawn[0] == drawn[1]
    assert all(one != other for one, other in zip(drawn[0], drawn[2], strict=True))


def test_a_run_with_a_seed_is_not_stated_as_private(schema: Schema, rows: pa.Table) -> None:
    job = DualQuery(
        epsilon=1.0, delta=1e-3, rounds=2, samples=5, queries=20, player="record", refit=False,
        seed=0,
    )  # fmt: skip
    assert not job.fit(rows, schema=schema).privacy.private


def test_a_seed_repeats_however_the_words_are_asked_for() -> None:
    whole = SeededSource(7).words(10)
    parts = SeededSource(7)
    assert np.array_equal(whole, np.concatenate([parts.words(3), parts.words(7)]))
    assert not np.array_equal(whole, SeededSource(8).words(10))


def test_rounds_have_streams_of_their_own() -> None:
    source = SeededSource(7)
    streams = [source.for_round(t).words(4).tolist() for t in range(5)] + [source.words(4).tolist()]
    assert len({tuple(words) for words in streams}) == 6
    assert SeededSource(7).for_round(3).words(4).tolist() == streams[3]
    assert isinstance(SystemSource().for_round(3), SystemSource)


def test_the_seeded_stream_is_pinned() -> None:
    """Experiments must repeat in later versions too."""
    assert SeededSource(1).words(2).tolist() == [1232279569898196538, 1457532264001425278]


@pytest.mark.parametrize("bits", [1, 3, 64, 65, 200])
def test_uniform_bits_stay_below_and_reach_the_top_bit(bits: int) -> None:
    values = [uniform_bits(SystemSource(), bits) for _ in range(200)]
    assert max(values) < 1 << bits
    assert max(values) >= 1 << (bits - 1)
    assert uniform_bits(SystemSource(), 0) == 0


@pytest.mark.parametrize("bound", [2, 3, 5, 7, 8])
def test_uniform_below_maps_words_evenly(bound: int) -> None:
    """All 3-bit inputs, the largest first: values below the bound are kept, others drawn again."""
    bits = (bound - 1).bit_length()
    values = [v >> (3 - bits) for v in reversed(range(8))]
    kept = [v for v in values if v < bound]
    source = ScriptedSource(v << 61 for v in reversed(range(8)))
    assert [uniform_below(source, bound) for _ in kept] == kept
    assert set(Counter(kept).values()) == {8 >> bits}
    assert uniform_below(source, 1) == 0


def test_uniform_below_takes_any_integer() -> None:
    bound = 3**400
    assert 0 <= uniform_below(SystemSource(), bound) < bound


@pytest.mark.parametrize("seed", [-1, 1.5])
def test_a_bad_seed_is_named(seed: float) -> None:
    with pytest.raises(ParameterError, match=f"seed = {seed:g}"):
        SeededSource(seed)  # type: ignore[arg-type]


def test_a_bad_bound_is_named() -> None:
    with pytest.raises(ParameterError, match="bound = 0"):
        uniform_below(SystemSource(), 0)
