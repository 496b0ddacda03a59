"""Mistakes in what measured pairs say: how tables are cleaned, and which attributes are joined."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_CLEANING = "src/dualquery/model/forest/cleaning.py"
_KERNELS = "src/dualquery/model/forest/_cleaning_kernels.py"
_PAIRS = "src/dualquery/model/forest/pairs.py"
_GROUPING = "src/dualquery/model/grouping.py"
_TESTS = "tests/model/forest/test_cleaning.py"

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
)
