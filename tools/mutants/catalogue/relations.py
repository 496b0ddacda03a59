"""Mistakes in what measured pairs say: how tables are cleaned, which attributes are joined, and how
sure their relations are."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_CLEANING = "src/dualquery/model/forest/cleaning.py"
_KERNELS = "src/dualquery/model/forest/_cleaning_kernels.py"
_PAIRS = "src/dualquery/model/forest/pairs.py"
_GROUPING = "src/dualquery/model/grouping.py"
_TESTS = "tests/model/forest/test_cleaning.py"
_ERRORS = "src/dualquery/model/standard_errors.py"
_QUESTIONS = "src/dualquery/release/asking/questions.py"
_HELD_OUT = "src/dualquery/game/held_out.py"

MUTANTS = (
    Mutant(
        "cleaned-by-the-counts-it-is-judged-on",
        _CLEANING,
        "        tried = _ways(counts + GAMMA * thinned, rows, columns, more, ordered)\n",
        "        tried = _ways(counts - thinned / GAMMA, rows, columns, more, ordered)\n",
        (f"{_TESTS}::test_a_smooth_relation_loses_nearly_all_of_its_noise",),
        "The way of cleaning is judged by the noise that it has seen, so that most noise is best.",
    ),
    Mutant(
        "slopes-without-margins",
        _KERNELS,
        "                    one[i, j] -= total / rows[i]\n",
        "                    one[i, j] -= 0.0 * total / rows[i]\n",
        (f"{_TESTS}::test_slopes_are_the_difference_quotients_of_raked_tables",),
        "A smooth table's slopes forget that its margins are fixed.",
    ),
    Mutant(
        "determined-attributes-anywhere",
        _PAIRS,
        "                    said = 0.0\n",
        "                    pass\n",
        (f"{_TESTS}::test_nothing_hangs_on_a_bin_whose_number_is_measured",),
        "What depends on a number is joined to its bin, and loses what the bin does not say.",
    ),
    Mutant(
        "ties-turned-round",
        _PAIRS,
        "            return self.table(b, a).T\n",
        "            return self.table(b, a).T[::-1]\n",
        (f"{_TESTS}::test_a_table_is_turned_with_its_pair",),
        "An edge whose parent stands after its child has another order of codes.",
    ),
    Mutant(
        "two-measurements-as-noisy-as-one",
        _PAIRS,
        "        both = 1.0 / (1.0 / self.variance + 1.0 / variance)\n",
        "        both = self.variance\n",
        (f"{_TESTS}::test_two_measurements_are_one_that_is_more_precise",),
        "A pair that was measured twice is cleaned as if it had been measured once.",
    ),
    Mutant(
        "rare-ends-of-a-column-together",
        _GROUPING,
        "            ordered = parents is None and (one.is_numeric or one.ordered)\n",
        "            ordered = False\n",
        (
            "tests/model/test_grouping.py::"
            "test_rare_codes_of_an_ordered_column_stand_with_their_neighbours",
        ),
        "The shortest and the longest stays become one group, so that what they depend on is lost.",
    ),
    Mutant(
        "kind-of-pair-ignored",
        _ERRORS,
        "        several = np.minimum(np.broadcast_to(kind, found.shape), len(self.scale) - 1)\n",
        "        several = np.zeros(found.shape, dtype=np.int64)\n",
        ("tests/model/test_errors.py::test_each_kind_of_pair_has_errors_of_its_own",),
        "A relation that was never measured gets the error of one that was.",
    ),
    Mutant(
        "missed-dependence-left-out",
        _QUESTIONS,
        "        return float(np.hypot(alone, np.linalg.norm(self.bends @ every)))\n",
        "        return float(alone)\n",
        (
            "tests/release/asking/test_questions.py::"
            "test_a_range_has_the_noise_of_its_cells_and_what_was_missed_of_a_dependence",
        ),
        "Intervals hold if the errors of all cells are independent, which they are not.",
    ),
    Mutant(
        "held-out-noise-counted-as-missed",
        _HELD_OUT,
        "    return max(0.0, float(weights @ (squares - noise) / weights.sum()))\n",
        "    return max(0.0, float(weights @ squares / weights.sum()))\n",
        ("tests/game/test_held_out.py::test_what_a_model_misses_is_seen_beside_noise",),
        "The noise of the counts that judge a fit counts as the fit's error.",
    ),
    Mutant(
        "held-out-by-what-was-shown",
        _HELD_OUT,
        "            kept.append(replace(one, counts=one.counts - noise.astype(np.int64)))\n",
        "            kept.append(shown[-1])\n",
        ("tests/game/test_held_out.py::test_a_fit_to_loud_tables_misses_more",),
        "A fit is judged by the noise that it was fitted to, and seems to miss nothing.",
    ),
    Mutant(
        "visible-without-being-chosen",
        "src/dualquery/estimator/visible.py",
        "    return max(measured, above / (temperature * SCORE * rows))\n",
        "    return measured\n",
        (
            "tests/estimator/test_visible.py::"
            "test_where_draws_choose_pairs_such_a_relation_is_chosen_in_95_of_100_cases",
        ),
        "A plan promises relations that draws may never choose to measure.",
    ),
)
