"""Mistakes where counts meet weights: estimator, engines, workers."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_RANGE = "tests/engines/test_ranges.py::test_a_round_moves_by_its_range_and_no_more"

MUTANTS = (
    Mutant(
        "plan-from-the-private-size",
        "src/dualquery/estimator.py",
        '                "reference size with rows"\n            )\n        return self.rows\n',
        '                "reference size with rows"\n            )\n        return rows\n',
        ("tests/test_non_interference.py::test_add_remove_hides_the_number_of_rows",),
        "Under add-remove |D| is private, and every parameter of the run would show it.",
    ),
    Mutant(
        "private-values-show-in-logs",
        "src/dualquery/engines/parts.py",
        '        return "<private>"\n',
        '        return f"<private {self.value}>"\n',
        ("tests/engines/test_engines.py::test_private_values_do_not_show",),
        "Counts on their way between machines would end in a scheduler's log.",
    ),
)
