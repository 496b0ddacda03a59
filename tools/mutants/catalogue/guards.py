"""Mistakes at the edges: messages, files of strangers, open ports."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_FILES = "src/dualquery/base/files.py"
_JOURNAL = "src/dualquery/game/journal.py"
_CLOSED = "src/dualquery/engines/closed.py"
_TESTS = "tests/base/test_files.py::"
_PLANTED = _TESTS + "test_what_was_planted_beside_the_output_stays_and_is_not_taken"
_THEIRS = _TESTS + "test_a_journal_that_others_could_have_made_is_refused_at_the_start"
_CLI = "tests/cli/test_guards.py::"
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
    Mutant(
        "guards-spills-that-others-may-open",
        _CLOSED,
        "        self._handle = os.open(self.path, os.O_RDONLY)\n",
        "        self.path.chmod(0o755)\n        self._handle = os.open(self.path, os.O_RDONLY)\n",
        (_PORTS,),
        "Every user of the machine could read what workers spill.",
    ),
    Mutant(
        "guards-spills-stay",
        _CLOSED,
        "        shutil.rmtree(self.path, ignore_errors=True)\n        os.close(self._handle)\n",
        "        os.close(self._handle)\n",
        (_PORTS,),
        "Private rows would stay on the disk after the run.",
    ),
    Mutant(
        "guards-spills-of-a-killed-run-stay",
        _CLOSED,
        "            _remove(left)\n",
        "            pass\n",
        ("tests/engines/test_closed.py::test_what_a_killed_run_leaves_goes_with_the_next",),
        "Private rows of a run that was killed would stay on the disk.",
    ),
    Mutant(
        "guards-spills-of-a-living-run-go",
        _CLOSED,
        "            if lock(handle):\n",
        "            if True:\n",
        ("tests/engines/test_closed.py::test_what_a_killed_run_leaves_goes_with_the_next",),
        "A second run would delete what the first one needs.",
    ),
    Mutant(
        "guards-pipe-that-nobody-reads",
        _FILES,
        "        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))\n    except",
        "        pass\n    except",
        (_TESTS + "test_a_pipe_that_nobody_reads_is_refused_at_once",),
        "A planted pipe would hang a run after its draws.",
    ),
    Mutant(
        "guards-pipe-of-another-user",
        _FILES,
        "    if found.st_uid != os.geteuid():\n",
        "    if False:\n",
        (_TESTS + "test_a_pipe_that_nobody_reads_is_refused_at_once",),
        "What is written would go to whoever planted the pipe.",
    ),
    Mutant(
        "guards-private-file-for-everybody",
        _FILES,
        "0o600 if private else 0o666",
        "0o666",
        (
            _CLI + "test_a_draft_is_its_owners_and_says_what_it_is",
            _CLI + "test_an_evaluation_says_what_it_is",
        ),
        "Other users could read drafts, evaluations and private pages.",
    ),
    Mutant(
        "guards-text-without-an-end",
        _FILES,
        "    if len(text) > MOST_TEXT:\n",
        "    if False:\n",
        (_TESTS + "test_a_text_that_does_not_end",),
        "Half of a schema would be taken for all of it.",
    ),
    Mutant(
        "guards-folder-of-another-user-taken",
        "src/dualquery/release/directory.py",
        "        is_ours(folder)\n        and folder.is_dir()\n",
        "        folder.is_dir()\n",
        (_PLANTED,),
        "A release that somebody planted would get the name of the output.",
    ),
    Mutant(
        "guards-folder-of-other-files-deleted",
        "src/dualquery/release/directory.py",
        ' <= {*FILES, "release.json", "mode"}',
        "",
        (_PLANTED,),
        "A folder that we did not make would be deleted.",
    ),
    Mutant(
        "guards-journal-of-another-user",
        _JOURNAL,
        "    if not is_ours(directory):\n",
        "    if False:\n",
        (_THEIRS,),
        "A run would go on from draws that somebody else chose.",
    ),
    Mutant(
        "guards-release-lost-with-its-journal",
        "src/dualquery/estimator/run.py",
        "            self.journal.remove()\n        except OSError as error:\n",
        "            self.journal.remove()\n        except ZeroDivisionError as error:\n",
        (_TESTS + "test_a_journal_that_cannot_be_deleted_does_not_lose_the_release",),
        "A run that is in place and paid for would be told to start again.",
    ),
    Mutant(
        "guards-terminal-obeys",
        "src/dualquery/base/escapes.py",
        "    return _CONTROL.sub(_spelled, text)\n",
        "    return text\n",
        (
            _CLI + "test_what_is_escaped",
            _CLI + "test_nothing_that_a_terminal_obeys_is_printed",
        ),
        "A value of a table could move the cursor or rename the window.",
    ),
    Mutant(
        "guards-comment-that-ends-early",
        "src/dualquery/base/escapes.py",
        "    return _LINE_ENDS.sub(_spelled, for_terminal(text))\n",
        "    return for_terminal(text)\n",
        (_CLI + "test_a_columns_name_declares_no_other_attribute",),
        "A line end in a column's name would declare another attribute.",
    ),
    Mutant(
        "guards-formulas-run",
        "src/dualquery/base/escapes.py",
        '    return f"\'{text}" if is_formula(text) else text\n',
        "    return text\n",
        (_CLI + "test_what_is_escaped", _CLI + "test_formulas_are_no_formulas_in_a_csv"),
        "A spreadsheet would run what a table holds.",
    ),
    Mutant(
        "guards-evaluation-without-a-mark",
        "src/dualquery/cli/evaluate.py",
        '{"not_private": WARNING, **result.to_dict()}',
        "result.to_dict()",
        (_CLI + "test_an_evaluation_says_what_it_is",),
        "Errors that were computed from private rows would be passed on as public.",
    ),
    Mutant(
        "guards-cells-shown-unasked",
        "src/dualquery/rows/checking.py",
        "        if self.show:\n",
        "        if True:\n",
        ("tests/cli/test_no_cell_in_messages.py::test_no_command_prints_a_cell",),
        "`check` would print cells of the private table.",
    ),
    Mutant(
        "guards-advice-that-protects-nobody",
        "src/dualquery/privacy/calibration.py",
        "    if enough > MOST_ADVISED:",
        "    if False:",
        (_CLI + "test_nobody_is_advised_to_promise_nothing",),
        "Whoever has one row would be told which ε publishes it.",
    ),
)
