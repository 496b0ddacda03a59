"""Mistakes about persons who have several records."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

DRAW = "tests/privacy/test_persons.py::test_a_draw_tells_no_more_of_a_person_than_its_range"
TABLE = "tests/privacy/test_persons.py::test_a_person_moves_a_table_no_further_than_is_charged"
CAP = "tests/rows/test_persons.py::test_nobody_has_more_than_the_cap"
PERSONS = "src/dualquery/rows/persons.py"
UNIT = "src/dualquery/privacy/unit.py"

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
        "return self.neighbours is Neighbours.REPLACE_ONE and not by_record",
        "return self.neighbours is Neighbours.REPLACE_ONE",
        (DRAW,),
        "Scores are divided by the number of records, which a replaced person changes.",
    ),
    Mutant(
        "persons-picked-beside-others",
        PERSONS,
        "picked = _mixed(np.repeat(_digests(names), counts), within.astype(np.uint64))",
        "picked = _mixed(np.arange(len(order), dtype=np.uint64), within.astype(np.uint64))",
        ("tests/rows/test_persons.py::test_a_person_changes_nothing_for_the_others",),
        "Which records of a person are kept depends on the records of others.",
    ),
    Mutant(
        "persons-tables-unweighted",
        "src/dualquery/rows/tabulation.py",
        "counts += weight * tabulate(part, marginals)",
        "counts += tabulate(part, marginals)",
        ("tests/rows/test_persons.py::test_counts_agree_with_a_walk_over_the_rows",),
        "Measured tables count records where persons should weigh the same.",
    ),
    Mutant(
        "persons-events-of-records",
        "src/dualquery/estimator/stages.py",
        "transcript.events(budget.rows, budget.unit)",
        "transcript.events(budget.rows, budget.neighbours)",
        ("tests/release/test_persons.py::test_the_directory_says_whose_records_are_protected",),
        "The statement charges what a single record can do, not a person.",
    ),
)
