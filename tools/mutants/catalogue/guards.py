"""Mistakes at the edges: messages, files of strangers, open ports."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_FILES = "src/dualquery/base/files.py"
_JOURNAL = "src/dualquery/game/journal.py"
_CLOSED = "src/dualquery/engines/closed.py"
_TESTS = "tests/base/test_files.py::"
_PORTS = "tests/engines/test_closed.py::test_no_port_answers_a_stranger_and_spills_go_with_the_run"

MUTANTS = (
    Mutant(
        "guards-weight-decides-about-a-release",
        "src/dualquery/rows/weights.py",
        "    if refuses and is_none.any():",
        "    if is_none.any():",
        (
            "tests/rows/test_weights.py::"
            "test_whether_there_is_a_release_does_not_depend_on_one_weight",
        ),
        "Whether anything is released would tell about one person's weight.",
    ),
    Mutant(
        "guards-id-decides-about-a-release",
        "src/dualquery/rows/persons.py",
        "column, missing if refuses else None, inferred",
        "column, missing, inferred",
        ("tests/rows/test_weights.py::test_whether_there_is_a_release_does_not_depend_on_one_id",),
        "Whether anything is released would tell whether one row names its person.",
    ),
    Mutant(
        "guards-row-in-a-message",
        "src/dualquery/rows/csv_file.py",
        "            raise self._refused(before, error) from None",
        "            raise TableError(str(error)) from None",
        (
            "tests/rows/test_one_record_at_a_time.py::"
            "test_rows_that_are_none_are_refused_without_showing_them",
        ),
        "Arrow's own message shows the whole row, undeclared columns too.",
    ),
    Mutant(
        "guards-cell-in-the-message-of-a-query",
        "src/dualquery/rows/streams.py",
        "{type(error).__name__}",
        "{error}",
        (
            "tests/cli/test_no_cell_in_messages.py::"
            "test_a_query_that_fails_at_a_cell_does_not_show_it",
        ),
        "A query that fails when it is run names the cell that it failed at.",
    ),
    Mutant(
        "guards-start-that-is-not-private",
        "src/dualquery/estimator/start.py",
        "    if release.privacy.stamp and not seeded:",
        "    if False:",
        ("tests/cli/test_guards.py::test_a_start_that_is_not_private",),
        "A seeded release of the same table at any ε would cost nothing.",
    ),
    Mutant(
        "guards-draft-for-everybody",
        "src/dualquery/domain/documents.py",
        '"\\n".join(lines).lstrip("\\n") + "\\n", private=private)',
        '"\\n".join(lines).lstrip("\\n") + "\\n")',
        ("tests/cli/test_guards.py::test_a_draft_is_its_owners_and_says_what_it_is",),
        "A draft shows values of the private table, and other users could read it.",
    ),
    Mutant(
        "guards-planted-link-followed",
        _FILES,
        "    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK",
        "    new = os.O_WRONLY | os.O_CREAT",
        (_TESTS + "test_the_waiting_name_cannot_be_taken",),
        "Whoever guesses the name could have a victim's file overwritten.",
    ),
    Mutant(
        "guards-no-lock-taken-for-a-busy-one",
        _FILES,
        "    except BlockingIOError:",
        "    except OSError:",
        (_TESTS + "test_a_file_system_without_locks_is_no_other_process",),
        "A file system without locks would be reported as another process.",
    ),
    Mutant(
        "guards-journal-that-others-may-write",
        _JOURNAL,
        "    if directory.stat().st_mode & 0o022 and any(directory.iterdir()):",
        "    if False:",
        (_TESTS + "test_a_journal_that_others_could_have_made_is_refused_at_the_start",),
        "Others could put back an older journal, and rounds would be drawn again.",
    ),
    Mutant(
        "guards-journal-behind-a-link",
        _JOURNAL,
        "    if directory.is_symlink() or not directory.is_dir():",
        "    if not directory.is_dir():",
        (_TESTS + "test_a_journal_that_others_could_have_made_is_refused_at_the_start",),
        "A link that somebody planted would decide where draws are kept.",
    ),
    Mutant(
        "guards-pages-of-the-scheduler",
        _CLOSED,
        '                "cls": ClosedScheduler,',
        '                "cls": Scheduler,',
        (_PORTS,),
        "Every user of the machine could read names, sizes and times of tasks, and logs.",
    ),
    Mutant(
        "guards-ports-without-credentials",
        _CLOSED,
        "    security = _UNTYPED.Security.temporary()\n"
        '    shared = {"security": security, "protocol": "tls://", "host": "127.0.0.1"}',
        "    security = None\n"
        '    shared = {"security": security, "protocol": "tcp://", "host": "127.0.0.1"}',
        (_PORTS,),
        "Whoever can connect could run code in a worker, which holds private rows.",
    ),
)
