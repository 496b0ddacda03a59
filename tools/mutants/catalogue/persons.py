"""Mistakes about persons who have several records, and about records that have weights."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

DRAW = "tests/privacy/test_persons.py::test_a_draw_tells_no_more_of_a_person_than_its_range"
TABLE = "tests/privacy/test_persons.py::test_a_person_moves_a_table_no_further_than_is_charged"
CAP = "tests/rows/test_persons.py::test_nobody_has_more_than_the_cap"
LONG = "tests/rows/test_persons.py::test_layers_of_a_long_table_over_batches_and_blocks"
PERSONS = "src/dualquery/rows/persons.py"
UNIT = "src/dualquery/privacy/unit.py"

WEIGHTS = "src/dualquery/rows/weights.py"
WEIGHTED_DRAW = (
    "tests/privacy/test_weights.py::test_a_draw_tells_no_more_of_a_weighted_record_than_its_range"
)
WEIGHTED_TABLE = (
    "tests/privacy/test_weights.py::test_a_weighted_record_moves_a_table_no_further_than_is_charged"
)

MUTANTS = (
    Mutant(
        "persons-cap-ignored",
        PERSONS,
        "kept = np.minimum(counts, persons.most)",
        "kept = counts",
        (DRAW, TABLE, CAP),
        "All records of a person count, however many there are.",
    ),
    Mutant(
        "persons-factor-forgotten",
        UNIT,
        "return self.most if self.weigh is Weigh.RECORD else self.parts",
        "return 1 if self.weigh is Weigh.RECORD else self.parts",
        (DRAW, TABLE),
        "A person of several records is charged as one record.",
    ),
    Mutant(
        "persons-weights-above-one",
        PERSONS,
        "share + (rank < over)",
        "share + 1",
        (CAP,),
        "The weights of a person's records add up to more than one.",
    ),
    Mutant(
        "persons-number-of-rows-public",
        UNIT,
        "same = not by_record and self.weight is None",
        "same = self.weight is None",
        (DRAW,),
        "Scores are divided by the number of records, which a replaced person changes.",
    ),
    Mutant(
        "persons-picked-beside-others",
        PERSONS,
        "picked = _mixed(seeds[owner[ordered]], within[ordered].astype(np.uint64))",
        "picked = _mixed(ordered.astype(np.uint64), within[ordered].astype(np.uint64))",
        ("tests/rows/test_persons.py::test_a_person_changes_nothing_for_the_others",),
        "Which records of a person are kept depends on the records of others.",
    ),
    Mutant(
        "persons-tables-unweighted",
        "src/dualquery/rows/tabulation.py",
        "counts += parts * tabulate(layer, marginals)",
        "counts += tabulate(layer, marginals)",
        ("tests/rows/test_persons.py::test_counts_agree_with_a_walk_over_the_rows",),
        "Measured tables count records where persons should weigh the same.",
    ),
    Mutant(
        "persons-long-rows-beyond-the-cap",
        "src/dualquery/rows/counting.py",
        "np.where(strata.of_row > DROPPED, first[strata.of_row] + strata.places, -1)",
        "np.maximum(first[strata.of_row], 0) + strata.places % strata.sizes[1:].min()",
        (LONG,),
        "Rows of a long table that are beyond the cap of their person are packed with others.",
    ),
    Mutant(
        "persons-pairs-of-the-next-row",
        "src/dualquery/rows/long.py",
        "np.minimum(self.ends[part], last) - first",
        "np.minimum(self.ends[part] + 1, last) - first",
        (LONG,),
        "The first pair of every row would go to the row before, of another person.",
    ),
    Mutant(
        "persons-runs-of-a-query",
        "src/dualquery/rows/long.py",
        "return not isinstance(self.table, LazyTable)",
        "return True",
        ("tests/rows/test_persons.py::test_a_query_whose_order_may_change_is_read_again",),
        "A query may give its pairs in another order, and items would go to other persons' rows.",
    ),
    Mutant(
        "empty-table-refused",
        "src/dualquery/estimator/stages.py",
        "if mechanism.protected.size_is_public:\n            raise\n",
        "if mechanism.protected.size_is_public or True:\n            raise\n",
        ("tests/release/test_empty.py::test_nobody_sees_that_there_is_nobody",),
        "Whether there is a release tells no rows from one row.",
    ),
    Mutant(
        "persons-events-of-records",
        "src/dualquery/estimator/stages.py",
        "transcript.events(budget.rows, budget.unit)",
        "transcript.events(budget.rows, budget.neighbours)",
        ("tests/release/test_persons.py::test_the_directory_says_whose_records_are_protected",),
        "The statement charges what a single record can do, not a person.",
    ),
    Mutant(
        "weights-not-cut",
        UNIT,
        "        cut = np.minimum(weights, self.bound)\n"
        "        rounded = np.floor(cut * self.parts + 0.5).astype(np.int64)\n"
        "        found: NDArray[np.int64] = np.minimum(rounded, self.influence)\n",
        "        rounded = np.floor(weights * self.parts + 0.5)\n"
        "        found: NDArray[np.int64] = rounded.astype(np.int64)\n",
        (WEIGHTED_DRAW, WEIGHTED_TABLE),
        "A record of a huge weight counts more than is charged.",
    ),
    Mutant(
        "weights-bound-forgotten",
        UNIT,
        "return records * (1 if self.weight is None else self.weight.influence)",
        "return records * (1 if self.weight is None else self.weight.parts)",
        (WEIGHTED_DRAW, WEIGHTED_TABLE),
        "A record that may weigh 2.5 is charged as one that weighs 1.",
    ),
    Mutant(
        "weights-not-charged",
        UNIT,
        "return records * (1 if self.weight is None else self.weight.influence)",
        "return records",
        (WEIGHTED_DRAW, WEIGHTED_TABLE),
        "A record of many parts is charged as one part.",
    ),
    Mutant(
        "weights-of-persons-not-multiplied",
        UNIT,
        "return records * (1 if self.weight is None else self.weight.influence)",
        "return records if self.weight is None else self.weight.influence",
        (WEIGHTED_DRAW, WEIGHTED_TABLE),
        "A person of several weighted records is charged as one of them.",
    ),
    Mutant(
        "weights-sum-public",
        UNIT,
        "same = not by_record and self.weight is None",
        "same = not by_record",
        (
            WEIGHTED_DRAW,
            "tests/privacy/test_weights.py::"
            "test_the_sum_of_weights_is_private_under_both_kinds_of_neighbours",
        ),
        "Scores are divided by the sum of weights, which a replaced record changes.",
    ),
    Mutant(
        "weights-left-out-of-the-statement",
        "src/dualquery/estimator/stages.py",
        "        weight=budget.weight,\n",
        "",
        ("tests/release/test_weights.py::test_the_directory_says_what_weighs",),
        "The statement does not say that records have weights.",
    ),
    Mutant(
        "weights-of-left-out-rows",
        WEIGHTS,
        "parts = np.where(self.persons.strata.of_row == DROPPED, 0, parts)",
        "pass",
        (WEIGHTED_DRAW, "tests/rows/test_weights.py::test_counts_agree_with_a_walk_over_the_rows"),
        "Records beyond a person's cap count if they have weights.",
    ),
    Mutant(
        "weights-digits-lost",
        "src/dualquery/rows/weighed.py",
        "digits = range(int(weights.max()).bit_length())",
        "digits = range(int(weights.max()).bit_length() - 1)",
        ("tests/rows/test_weights.py::test_counts_agree_with_a_walk_over_the_rows",),
        "Large weights lose their largest binary digit.",
    ),
)
