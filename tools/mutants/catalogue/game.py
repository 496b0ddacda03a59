"""Mistakes in the round, the journal and the order of what a run does."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_LOOP = "src/dualquery/game/loop.py"
_JOURNAL = "src/dualquery/game/journal.py"
_CRASHES = "tests/game/test_crashes.py"

MUTANTS = (
    Mutant(
        "game-tables-of-free-attributes-are-not-charged",
        "src/dualquery/game/free_tables.py",
        "return Events(drawn.draws, drawn.ranges, (measured,), (1,))",
        "return drawn",
        (
            "tests/game/test_free_tables.py::test_tables_and_draws_together_keep_the_budget",
            "tests/game/test_free_tables.py::test_the_whole_way",
        ),
        "The draws alone would spend the whole budget.",
    ),
    Mutant(
        "game-tables-of-free-attributes-for-the-price-of-one",
        "src/dualquery/game/free_tables.py",
        "return Purse(budget).scale(self.share, self.tables)",
        "return Purse(budget).scale(self.share, 1)",
        (
            "tests/game/test_free_tables.py::test_no_tables_tell_neighbours_apart_by_more_than_their_share",
        ),
        "A record is in the table of every attribute.",
    ),
    Mutant(
        "game-tables-of-free-attributes-measured-again",
        "src/dualquery/game/loop.py",
        "measurement = measuring.checked(released.measurement)",
        "measurement = measuring.take(source)",
        (
            "tests/game/test_free_tables.py::test_tables_that_are_in_the_journal_are_not_measured_again",
        ),
        "A resumed run would pay once and measure twice.",
    ),
    Mutant(
        "drawn-hotter-than-stated",
        _LOOP,
        "draws = query_player.draw(temperature, played,",
        "draws = query_player.draw(1.1 * temperature, played,",
        ("tests/game/test_game.py::test_rounds_are_drawn_against_the_mean_of_the_records",),
        "The statement is made from the temperatures of the transcript; draws would cost more.",
    ),
    Mutant(
        "draws-journalled-after-use",
        _LOOP,
        "            journal.write_draws(number, draws)\n"
        "        else:\n"
        "            released = Released(draws, measuring.take(made))\n"
        "            journal.write_released(number, released)\n"
        "    draws, measurement = released.draws, None\n"
        "    if measuring is not None:\n"
        "        measurement = measuring.checked(released.measurement)\n"
        "        data_player = measuring.knowing(measurement)\n"
        "    move = journal.move(number)\n"
        "    if move is None:\n"
        "        move = data_player.respond(state, temperature, draws)\n",
        "        else:\n"
        "            released = Released(draws, measuring.take(made))\n"
        "            journal.write_released(number, released)\n"
        "    draws, measurement = released.draws, None\n"
        "    if measuring is not None:\n"
        "        measurement = measuring.checked(released.measurement)\n"
        "        data_player = measuring.knowing(measurement)\n"
        "    move = journal.move(number)\n"
        "    if move is None:\n"
        "        move = data_player.respond(state, temperature, draws)\n"
        "        if journal.draws(number) is None:\n"
        "            journal.write_draws(number, draws)\n",
        (f"{_CRASHES}::test_killed_inside_respond",),
        "A run killed while it answers would draw that round again: two rounds for one price.",
    ),
    Mutant(
        "round-without-a-move-drawn-again",
        _JOURNAL,
        "        return self._draws[number] if number < len(self._draws) else None\n",
        "        return self._draws[number] if number < len(self._moves) else None\n",
        (f"{_CRASHES}::test_killed_inside_respond",),
        "Draws that were seen but not answered would be drawn again: two rounds for one price.",
    ),
    Mutant(
        "draws-not-synced",
        _JOURNAL,
        (
            "            write_all(self._handle, fields + chain + body)\n"
            "            os.fsync(self._handle)\n"
        ),
        "            write_all(self._handle, fields + chain + body)\n",
        (f"{_CRASHES}::test_draws_survive_a_loss_of_power_before_they_are_used",),
        "A loss of power would lose draws that were used, and the resume draws them again.",
    ),
    Mutant(
        "ledger-reserved-after-the-game",
        "src/dualquery/estimator/run.py",
        "            self._reserve(plan, mechanism.seed is None)\n",
        "            pass\n",
        (f"{_CRASHES}::test_the_ledger_knows_before_anything_is_drawn_or_used",),
        "Everything would be drawn before the ledger could refuse it.",
    ),
    Mutant(
        "journal-head-outside-the-digest",
        _JOURNAL,
        "        digest.update(fields)\n",
        "",
        ("tests/game/test_journal.py::test_no_flipped_bit_is_taken_for_the_end",),
        "A flipped bit in a round number or a length would pass for what was written.",
    ),
    Mutant(
        "another-table-resumes",
        _JOURNAL,
        "            counts is not None\n            and kept is not None\n",
        "            False\n            and kept is not None\n",
        (f"{_CRASHES}::test_another_table_of_the_same_size_is_refused",),
        "Half of the rounds would be drawn from one table and half from another.",
    ),
    Mutant(
        "older-copy-resumes",
        "src/dualquery/privacy/ledger/refusals.py",
        "    if len(drawn) < rounds:\n",
        "    if False:\n",
        (f"{_CRASHES}::test_a_copy_cannot_be_resumed_a_second_time",),
        "A copied journal would draw rounds a second time on one charge.",
    ),
    Mutant(
        "copies-go-on-side-by-side",
        "src/dualquery/privacy/ledger/ledger.py",
        "                or entry.rounds != rounds - 1\n",
        "",
        ("tests/privacy/test_ledger.py::test_a_round_is_drawn_under_the_key_that_it_began_with",),
        "Two copies of a run would draw the same rounds twice on one charge.",
    ),
    Mutant(
        "journal-shared-by-two-processes",
        _JOURNAL,
        "    if not free:",
        "    if False:",
        ("tests/game/test_resume.py::test_two_processes_cannot_share_a_journal",),
        "Two processes on one journal would both draw the next round.",
    ),
    Mutant(
        "mark-of-use-not-synced",
        _JOURNAL,
        "        write_all(handle, content)\n        os.fsync(handle)\n",
        "        write_all(handle, content)\n",
        (f"{_CRASHES}::test_draws_survive_a_loss_of_power_before_they_are_used",),
        "After a loss of power, draws that were used would pass for draws that never were.",
    ),
    Mutant(
        "damage-taken-for-a-torn-end",
        _JOURNAL,
        "        if self.rounds_drawn < used:",
        "        if False:",
        ("tests/game/test_journal.py::test_no_flipped_bit_is_taken_for_the_end",),
        "Draws that were used but cannot be read would be drawn again.",
    ),
    Mutant(
        "journal-goes-before-the-release-is-synced",
        "src/dualquery/release/directory.py",
        "            scratch.rename(path)\n            sync_directory(path.parent)\n    except",
        "            scratch.rename(path)\n    except",
        (f"{_CRASHES}::test_the_release_is_on_disk_before_the_journal_goes",),
        "A loss of power could take both the draws and the release that they paid for.",
    ),
    Mutant(
        "statement-believed-as-it-stands",
        "src/dualquery/release/directory.py",
        "check_statement(privacy, transcript)",
        "pass",
        ("tests/release/test_verifying.py::test_a_statement_that_the_draws_do_not_bear_out",),
        "An ε edited by hand would be shown as if the draws bore it out.",
    ),
)
