"""Mistakes in sources, weights and draws."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_SAMPLER = "src/dualquery/privacy/sampler.py"
_SHARDS = "src/dualquery/privacy/shards.py"
_KERNELS = "src/dualquery/privacy/_kernels.py"
_SOURCES = "src/dualquery/privacy/sources.py"
_EXACT = "tests/privacy/test_sampler.py::test_the_map_is_exact_on_small_dyadic_weights"
_BORDERS = (
    "tests/privacy/test_sampler.py::test_buckets_are_exact_where_the_leading_bits_do_not_decide"
)

MUTANTS = (
    Mutant(
        "words-from-another-generator",
        _SOURCES,
        "np.frombuffer(os.urandom(8 * count), ",
        "np.frombuffer(np.random.bytes(8 * count), ",
        (
            "tests/privacy/test_sources.py::test_system_words_are_the_operating_systems",
            "tests/privacy/test_sources.py::"
            "test_a_run_without_a_seed_draws_from_the_operating_system_alone",
        ),
        "Draws would come from a generator whose state can be worked out from what it gave out.",
    ),
    Mutant(
        "prior-weights-from-the-counts",
        "src/dualquery/game/query_player.py",
        "self._shard = Shard(len(answers.counts), log_prior=log_prior)",
        "self._shard = Shard(len(answers.counts), log_prior=0.05 * answers.counts)",
        (
            "tests/privacy/test_enumeration_of_the_default.py::"
            "test_every_claim_about_the_default_holds_and_is_nearly_reached",
        ),
        "Prior weights are free because they are public; from the counts they are neither.",
    ),
    Mutant(
        "seeded-source-called-private",
        _SOURCES,
        "    private = False\n",
        "    private = True\n",
        ("tests/privacy/test_sources.py::test_only_the_operating_system_is_private",),
        "A run that anyone with the seed can repeat would be published as private.",
    ),
    Mutant(
        "no-seed-means-seed-zero",
        _SOURCES,
        "return SystemSource() if seed is None else SeededSource(seed)",
        "return SeededSource(seed or 0)",
        ("tests/privacy/test_sources.py::test_only_the_operating_system_is_private",),
        "A run without a seed would draw what every other run without a seed draws.",
    ),
    Mutant(
        "uniform-below-by-remainder",
        _SOURCES,
        "        if value < bound:\n            return value\n",
        "        return value % bound\n",
        ("tests/privacy/test_sources.py::test_uniform_below_maps_words_evenly",),
        "Small integers would be likelier than large ones, so no draw built on them is exact.",
    ),
    Mutant(
        "rank-past-the-bucket",
        _SAMPLER,
        "inside = ranks < self._counts[index]",
        "inside = ranks <= self._counts[index]",
        (_EXACT,),
        "A rank that no action has would be looked up.",
    ),
    Mutant(
        "mantissa-accepted-at-equality",
        _SAMPLER,
        "found[thirds < scaled]",
        "found[thirds <= scaled]",
        (_EXACT,),
        "Every weight would be one unit too large, and no longer the one the proof speaks of.",
    ),
    Mutant(
        "bucket-border-on-the-wrong-side",
        _SAMPLER,
        'index = np.searchsorted(self._leads, leads, side="right").astype(np.int64)',
        'index = np.searchsorted(self._leads, leads, side="left").astype(np.int64)',
        (_EXACT,),
        "Words at a border would count for the bucket before it.",
    ),
    Mutant(
        "leading-bits-decide-alone",
        _SAMPLER,
        "        if self._rest_bits:\n            undecided",
        "        if False:\n            undecided",
        (_BORDERS,),
        "Buckets below 2^-64 of the total could never be drawn: a hole in the support.",
    ),
    Mutant(
        "second-word-used-twice",
        _SAMPLER,
        "thirds = third[kept[inside]]",
        "thirds = second[kept[inside]]",
        (_EXACT,),
        "Rank and acceptance would depend on each other, so weights within a bucket are wrong.",
    ),
    Mutant(
        "bucket-size-ignored",
        _SAMPLER,
        "1 << (int(k) + deepest - int(b))",
        "1 << (deepest - int(b))",
        (_EXACT,),
        "A bucket would be drawn as often with a thousand actions in it as with one.",
    ),
    Mutant(
        "negation-scored-without-the-size",
        _KERNELS,
        "score = (2.0 * counts[query] - size) / (2.0 * reference)",
        "score = counts[query] / reference - 0.5",
        ("tests/game/test_game.py::test_the_add_remove_weights_use_negated_counts",),
        "q̄ scored 1 − c/n0 instead of (|D| − c)/n0 doubles the range under add-remove.",
    ),
    Mutant(
        "score-not-clipped",
        _KERNELS,
        "        score = min(1.0, max(-1.0, score))\n",
        "",
        ("tests/privacy/test_shards.py::test_exponents_equal_their_twin",),
        "Exponents would grow with |D|/n0, beyond what the rounding charge covers.",
    ),
    Mutant(
        "answers-not-clamped",
        _KERNELS,
        "        if answer < 0.0:\n            answer = 0.0\n",
        "        if answer < 0.0:\n            answer = answer\n",
        ("tests/privacy/test_shards.py::test_exponents_equal_their_twin",),
        "A model's answer below 0 would push exponents beyond what the rounding charge covers.",
    ),
    Mutant(
        "largest-without-log-priors",
        _KERNELS,
        "value: float = log_prior[query] + abs(scores[query])",
        "value: float = abs(scores[query])",
        ("tests/privacy/test_shards.py::test_log_priors_are_prior_weights",),
        "Falls would be measured from the wrong height, and cut off unequally between neighbours.",
    ),
    Mutant(
        "ranks-counted-on-from-the-last-block",
        _KERNELS,
        "                seen[buckets[end]] = 0\n",
        "",
        ("tests/privacy/test_shards.py::test_blocks_meet_without_gaps",),
        "A draw would stand for another action of its bucket, or for none.",
    ),
    Mutant(
        "negation-weighed-like-its-query",
        _SHARDS,
        "signed = np.where(positions & 1, -exponents, exponents)",
        "signed = np.where(positions & 1, exponents, exponents)",
        ("tests/privacy/test_shards.py::test_every_action_is_found_with_its_twins_weight",),
        "Mantissas of negations would be those of the queries: weights no theorem speaks of.",
    ),
    Mutant(
        "logarithm-of-two-in-one-part",
        _SHARDS,
        '_LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")',
        "_LN2_LOW = 0.0",
        (
            "tests/privacy/test_shards.py::"
            "test_weights_are_as_close_to_the_exponential_as_the_proof_says",
        ),
        "Weights would be off by more than the charge for rounding pays for.",
    ),
    Mutant(
        "short-exponential-series",
        _SHARDS,
        "for k in range(18)]",
        "for k in range(12)]",
        (
            "tests/privacy/test_shards.py::"
            "test_weights_are_as_close_to_the_exponential_as_the_proof_says",
        ),
        "Weights would be off by more than the charge for rounding pays for.",
    ),
    Mutant(
        "log-priors-of-any-size",
        _SHARDS,
        "if log_prior.shape != (queries,) or not np.all(np.abs(log_prior) <= LARGEST_LOG_PRIOR):",
        "if log_prior.shape != (queries,):",
        ("tests/privacy/test_shards.py::test_log_priors_stay_within_what_the_charge_covers",),
        "Prior weights beyond what the rounding charge covers would be taken without a word.",
    ),
    Mutant(
        "rank-in-the-shard-before",
        _SHARDS,
        "np.count_nonzero(ends[:, buckets] <= ranks, axis=0)",
        "np.count_nonzero(ends[:, buckets] < ranks, axis=0)",
        ("tests/privacy/test_shards.py::test_route_skips_shards_without_the_bucket",),
        "The first action of a shard would be looked for in the shard before it.",
    ),
    Mutant(
        "clip-too-near",
        "src/dualquery/privacy/_weights.py",
        "CLIP = -600.0",
        "CLIP = -6.0",
        ("tests/privacy/test_shards.py::test_the_clip_keeps_every_action_possible",),
        "Weights would be cut off where they still differ: draws follow the prior, not the table.",
    ),
)
