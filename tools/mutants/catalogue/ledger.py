"""Mistakes in the budget ledger."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_LEDGER = "src/dualquery/privacy/ledger.py"
_TESTS = "tests/privacy/test_ledger.py"

MUTANTS = (
    Mutant(
        "ledger-checks-then-acts",
        _LEDGER,
        "        with self._open(write=True) as connection:\n"
        "            account = _read(connection, self.path)\n",
        "        with self._open() as connection:\n"
        "            account = _read(connection, self.path)\n"
        "        with self._open(write=True) as connection:\n",
        (f"{_TESTS}::test_processes_inside_reserve_at_once_never_pass_the_total",),
        "Two releases at the same moment would both find room for one.",
    ),
    Mutant(
        "ledger-looks-at-one-release-alone",
        _LEDGER,
        "after = (account.charge + charge).epsilon(account.delta)",
        "after = charge.epsilon(account.delta)",
        (f"{_TESTS}::test_a_release_past_the_total_is_refused_with_all_three_figures",),
        "Any number of releases would fit, each small enough by itself.",
    ),
    Mutant(
        "ledger-counts-published-releases-alone",
        _LEDGER,
        "return sum((entry.charge for entry in self.entries), Charge(0.0, 0.0))",
        'return sum((e.charge for e in self.entries if e.state == "spent"), Charge(0.0, 0.0))',
        (f"{_TESTS}::test_killed_between_reservation_and_release_counts_as_spent",),
        "A run that drew and died would cost nothing.",
    ),
    Mutant(
        "ledger-resumes-at-any-price",
        _LEDGER,
        "    if charge != entry.charge:\n",
        "    if False:\n",
        (f"{_TESTS}::test_an_id_cannot_be_used_for_something_else",),
        "A reserved id could be used for a run that costs more.",
    ),
    Mutant(
        "ledger-takes-other-neighbours",
        _LEDGER,
        "            if neighbours != account.neighbours:\n",
        "            if False:\n",
        (f"{_TESTS}::test_other_neighbours_and_seeded_runs_are_refused",),
        "Costs for two different units of privacy would be added up as if they were one.",
    ),
    Mutant(
        "ledger-takes-seeded-runs",
        _LEDGER,
        "        if not private:\n",
        "        if False:\n",
        (f"{_TESTS}::test_other_neighbours_and_seeded_runs_are_refused",),
        "A run that is not private at all would be entered at the price of one that is.",
    ),
    Mutant(
        "ledger-keeps-the-largest-mu",
        _LEDGER,
        "Charge(self.mu_squared + other.mu_squared, self.pure + other.pure, slack)",
        "Charge(max(self.mu_squared, other.mu_squared), self.pure + other.pure, slack)",
        (f"{_TESTS}::test_releases_compose_by_mu_squared",),
        "Costs of releases of one table add up; only the most expensive one would count.",
    ),
)
