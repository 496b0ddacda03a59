"""Mistakes of the audit: it would say that all holds where something fails."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

TESTS = "tests/auditing/test_audit.py::"
ROOM = "src/dualquery/auditing/"

MUTANTS = (
    Mutant(
        "audit-blind-to-hostile-records",
        ROOM + "hostile.py",
        "return sum(int(np.count_nonzero(both[others] != one)) for both, one in pairs)",
        "return sum(int(np.count_nonzero(one != one)) for both, one in pairs)",
        (TESTS + "test_a_block_that_falls_back_is_found",),
        "The audit would not see that one cell changes how others are read.",
    ),
    Mutant(
        "audit-no-cell-across-a-border",
        ROOM + "hostile.py",
        "            with parsed_in(SMALL_PART):",
        "            with parsed_in(1 << 20):",
        (TESTS + "test_line_ends_that_cut_rows_are_found",),
        "The audit would not see that a line end in quotes cuts rows at a border.",
    ),
    Mutant(
        "audit-persons-without-a-choice",
        ROOM + "hostile.py",
        'persons = Persons("person", 2)',
        'persons = Persons("person", 5)',
        (TESTS + "test_ids_as_they_were_inferred_are_found",),
        "If all records are kept, the audit cannot see that others are.",
    ),
    Mutant(
        "audit-forgets-files",
        ROOM + "unrelated.py",
        "sorted(set(contents[0]) | set(contents[1]))",
        "('transcript.npz',)",
        (TESTS + "test_a_file_with_a_true_count_is_found",),
        "The audit would not see a private figure in another file of a release.",
    ),
    Mutant(
        "audit-noise-of-any-scale",
        ROOM + "scales.py",
        "least >= SURE",
        "least >= 0.0",
        (TESTS + "test_noise_that_is_smaller_than_stated_is_found",),
        "The audit would not see noise that is smaller than stated.",
    ),
    Mutant(
        "audit-group-forgotten",
        ROOM + "transcripts.py",
        "one / group for one in",
        "one / group**2 for one in",
        (
            TESTS + "test_noise_that_is_smaller_than_stated_is_found",
            TESTS + "test_right_noise_passes_and_its_bound_is_below_the_statement",
        ),
        "The bound on μ would be far too low to find anything.",
    ),
    Mutant(
        "audit-ratio-without-measurements",
        ROOM + "playing.py",
        "return self.drawn + sum(_measured_ratio(one, *both) for one, both in pairs)",
        "return self.drawn + 0.0 * sum(_measured_ratio(one, *both) for one, both in pairs)",
        (TESTS + "test_the_ratio_is_a_ratio_of_likelihoods",),
        "The likelihood ratio would be of the draws alone, and the bound would see no noise.",
    ),
)
