"""Mistakes in the budget ledger."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_LEDGER = "src/dualquery/privacy/ledger/ledger.py"
_PAGE = "src/dualquery/privacy/ledger/page.py"
_REFUSALS = "src/dualquery/privacy/ledger/refusals.py"
_ACCOUNT = "src/dualquery/privacy/ledger/account.py"
_RULE = "src/dualquery/privacy/ledger/rule.py"
_FILE = "src/dualquery/privacy/ledger/file.py"
_JOURNAL = "src/dualquery/game/journal.py"
_TESTS = "tests/privacy/test_ledger.py"
_CHAIN = "tests/privacy/test_ledger_chain.py"
_FILTER = "tests/privacy/test_filter.py"
_COPIES = "tests/game/test_copies.py"

MUTANTS = (
    Mutant(
        "ledger-checks-then-acts",
        _LEDGER,
        "        with self._writing(whole=True) as page:\n            account = page.account\n",
        "        account = self.account()\n        with self._writing(whole=True) as page:\n",
        (f"{_TESTS}::test_processes_inside_reserve_at_once_never_pass_the_total",),
        "Two releases at the same moment would both find room for one.",
    ),
    Mutant(
        "ledger-looks-at-one-release-alone",
        _REFUSALS,
        "total, rule = account.charge + charge, account.rule",
        "total, rule = charge, account.rule",
        (f"{_TESTS}::test_a_release_past_the_total_is_refused_with_all_three_figures",),
        "Any number of releases would fit, each small enough by itself.",
    ),
    Mutant(
        "ledger-counts-published-releases-alone",
        _ACCOUNT,
        "return sum((entry.charge for entry in self.entries), Charge(0.0, 0.0))",
        'return sum((e.charge for e in self.entries if e.state == "spent"), Charge(0.0, 0.0))',
        (f"{_TESTS}::test_killed_between_reservation_and_release_counts_as_spent",),
        "A run that drew and died would cost nothing.",
    ),
    Mutant(
        "ledger-resumes-at-any-price",
        _REFUSALS,
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
        _RULE,
        "Charge(self.mu_squared + other.mu_squared, self.pure + other.pure, slack)",
        "Charge(max(self.mu_squared, other.mu_squared), self.pure + other.pure, slack)",
        (f"{_TESTS}::test_releases_compose_by_mu_squared",),
        "Costs of releases of one table add up; only the most expensive one would count.",
    ),
    Mutant(
        "draws-on-disk-in-clear",
        "src/dualquery/base/sealing.py",
        "    return mixed.tobytes()\n",
        "    return content\n",
        (f"{_COPIES}::test_an_older_copy_put_back_before_the_ledger_knew",),
        "A copy of a stopped run would show draws that the ledger never saw.",
    ),
    Mutant(
        "ledger-told-after-the-draw",
        _JOURNAL,
        "            mark = self._turns.drawn(number + 1, self._chain.hex())\n",
        "            mark = self.mark\n",
        ("tests/game/test_crashes.py::test_the_ledger_knows_before_anything_is_drawn_or_used",),
        "The data player would answer draws that the ledger may still refuse.",
    ),
    Mutant(
        "ledger-takes-any-key",
        _LEDGER,
        "                or entry.begins != digest_of_key(key)\n",
        "",
        (f"{_TESTS}::test_a_round_is_drawn_under_the_key_that_it_began_with",),
        "A run whose copy was resumed since would go on beside it.",
    ),
    Mutant(
        "ledger-not-told-that-a-round-begins",
        "src/dualquery/estimator/run.py",
        "                begins=turns.begins,\n",
        '                begins="",\n',
        ("tests/game/test_crashes.py::test_the_ledger_knows_before_anything_is_drawn_or_used",),
        "The first round would be drawn before the ledger knows that it begins.",
    ),
    Mutant(
        "ledger-chain-not-verified",
        _PAGE,
        "    if wrong is not None:\n",
        "    if False:\n",
        (f"{_CHAIN}::test_an_edit_is_refused",),
        "An edited value would be believed.",
    ),
    Mutant(
        "ledger-lost-links-not-noticed",
        _FILE,
        "        and head == [(rows[-1][0], rows[-1][2])]\n",
        "",
        (f"{_CHAIN}::test_an_edit_is_refused",),
        "Deleting the last links would give back what they cost.",
    ),
    Mutant(
        "ledger-digest-without-the-link-before",
        "src/dualquery/privacy/ledger/chain.py",
        "hashlib.sha256((previous or _BEGINNING) + content)",
        "hashlib.sha256(_BEGINNING + content)",
        (f"{_CHAIN}::test_an_edit_is_refused",),
        "Links could be exchanged.",
    ),
    Mutant(
        "ledger-head-of-the-journal-not-compared",
        _PAGE,
        "        if found is None or found[0].hex() != seen.head:\n",
        "        if False:\n",
        (f"{_COPIES}::test_an_older_copy_of_the_ledger_put_back",),
        "An older copy of the ledger, with less spent, would be believed.",
    ),
    Mutant(
        "ledger-triggers-at-work",
        _FILE,
        "    if sorted(made) != sorted((statement.encode(),) for statement in _TABLES):\n",
        "    if False:\n",
        (f"{_CHAIN}::test_an_edit_is_refused",),
        "A trigger could undo every charge as soon as it is written.",
    ),
    Mutant(
        "ledger-numbers-believed",
        _ACCOUNT,
        "    if type(value) not in (int, float):\n",
        "    if False:\n",
        (f"{_CHAIN}::test_a_link_with_right_digests_that_says_nonsense_is_one_line",),
        "What looks like a number to a comparison, and is none, would be added up.",
    ),
    Mutant(
        "ledger-damaged-pages-written-to",
        _FILE,
        '    if connection.execute("PRAGMA quick_check").fetchall() != [(b"ok",)]:\n',
        "    if False:\n",
        (f"{_CHAIN}::test_pages_are_checked_before_they_are_written_to",),
        "A damaged list of free pages would have links overwritten.",
    ),
    Mutant(
        "ledger-slack-share-not-fixed",
        _RULE,
        "        return (self.delta - self.slack) * (1.0 - GUARD)\n",
        "        return self.delta\n",
        (f"{_FILTER}::test_a_ledger_refuses_one_of_the_branches",),
        "What is kept for failures would be spent on losses too.",
    ),
    Mutant(
        "ledger-slack-taken-beyond-its-share",
        _RULE,
        "        return self.may_fail(total) and self.spent(total) <= self.epsilon\n",
        "        return self.spent(total) <= self.epsilon\n",
        (f"{_FILTER}::test_no_adaptive_history_of_small_mechanisms_passes_the_total",),
        "Chances of failure would be admitted that nobody declared.",
    ),
    Mutant(
        "older-ledger-takes-slack",
        _ACCOUNT,
        "        slack = past if share is None else",
        '        slack = 0.5 * said["delta"] if share is None else',
        (f"{_CHAIN}::test_an_older_ledger_gets_a_chain_and_takes_no_more_slack",),
        "A ledger that declared no share would admit what the proof does not cover.",
    ),
    Mutant(
        "ledger-resumes-from-other-draws",
        _REFUSALS,
        "    if len(drawn) > rounds or (rounds and drawn[rounds - 1] != digest):\n",
        "    if False:\n",
        (f"{_TESTS}::test_a_round_is_drawn_under_the_key_that_it_began_with",),
        "A run would go on from draws that the ledger never saw.",
    ),
    Mutant(
        "ledger-takes-a-run-that-it-has-not-seen",
        _LEDGER,
        "            if drawn:\n",
        "            if False:\n",
        (f"{_TESTS}::test_a_round_is_drawn_under_the_key_that_it_began_with",),
        "An older copy of the ledger would charge a run that is half drawn as a new one.",
    ),
    Mutant(
        "ledger-draws-after-publication",
        _LEDGER,
        '                entry.state != "reserved"\n'
        "                or entry.rounds != rounds - 1\n",
        "                entry.rounds != rounds - 1\n",
        (f"{_TESTS}::test_a_round_is_drawn_under_the_key_that_it_began_with",),
        "A copy of a run would draw more rounds after its release was published.",
    ),
    Mutant(
        "ledger-spent-id-used-again",
        _REFUSALS,
        '    if entry.state == "spent" and not (rounds and len(drawn) == rounds):\n',
        "    if False:\n",
        (f"{_TESTS}::test_an_id_cannot_be_used_for_something_else",),
        "A published release could be drawn anew for nothing.",
    ),
    Mutant(
        "ledger-spends-without-a-look-at-what-was-seen",
        _LEDGER,
        '                page.check_seen(seen, f"the run of {release}")\n',
        "                pass\n",
        (f"{_CHAIN}::test_whoever_has_seen_a_head_notices_what_is_rewritten_before_it",),
        "A run would end in a ledger that was rewritten beside it.",
    ),
    Mutant(
        "ledger-spent-in-whichever-copy",
        "src/dualquery/estimator/run.py",
        "self.ledger.spend(self.journal.identity, self.journal.mark)",
        "self.ledger.spend(self.journal.identity)",
        (f"{_COPIES}::test_an_older_copy_of_the_ledger_put_back_before_the_end",),
        "A release would be marked as spent in an older copy, without its rounds.",
    ),
    Mutant(
        "ledger-gives-keys-without-a-look-at-what-was-seen",
        _LEDGER,
        '                page.check_seen(seen, "the unfinished run")\n',
        "                pass\n",
        (
            f"{_CHAIN}::test_whoever_has_seen_a_head_notices_what_is_rewritten_before_it",
            f"{_COPIES}::test_an_older_copy_of_the_ledger_put_back",
        ),
        "A run would go on with an older copy of its ledger.",
    ),
    Mutant(
        "ledger-verifies-without-a-look-at-releases",
        "src/dualquery/cli/ledger.py",
        "        book.check(mark, str(release))\n",
        "        pass\n",
        (
            "tests/privacy/test_commands.py::"
            "test_what_releases_and_unfinished_runs_have_seen_is_verified",
        ),
        "An older copy of a ledger would be verified as right.",
    ),
    Mutant(
        "journal-opens-other-draws",
        _JOURNAL,
        "        if chain.hex() != opening.digest:\n",
        "        if False:\n",
        ("tests/game/test_crashes.py::test_a_copy_cannot_be_resumed_a_second_time",),
        "Draws that the ledger never saw would be opened with a key that is not theirs.",
    ),
    Mutant(
        "journal-takes-draws-in-clear",
        _JOURNAL,
        "                if openings is not None and kind == _DRAWS:",
        "                if False:",
        (f"{_COPIES}::test_draws_in_clear_are_forged_where_there_is_a_ledger",),
        "Draws that the ledger never saw would be used, and the next ones paid for.",
    ),
    Mutant(
        "journal-without-a-mark-of-the-ledger",
        _JOURNAL,
        "        _append(file, one)\n        self.mark = mark\n",
        "        self.mark = mark\n",
        (f"{_COPIES}::test_an_older_copy_of_the_ledger_put_back",),
        "A run could not notice that an older copy of its ledger was put back.",
    ),
)
