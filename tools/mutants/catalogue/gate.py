"""Mistakes in what is believed of files that are read back."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_GATE = "src/dualquery/base/gate.py"
_DECLARED = "src/dualquery/game/declared.py"
_TESTS = "tests/base/test_gate.py"
_FORGED = "tests/release/test_gate.py::test_values_that_no_release_has"
_FITS = f"{_TESTS}::test_what_does_not_fit_is_refused"

MUTANTS = (
    Mutant(
        "gate-without-the-range",
        _GATE,
        "    if not (lowest >= what.least and highest <= most):",
        "    if False:",
        (_FITS, _FORGED),
        "Compiled code would follow an index beyond its array.",
    ),
    Mutant(
        "gate-nan-within-every-range",
        _GATE,
        "    if not (lowest >= what.least and highest <= most):",
        "    if lowest < what.least or highest > most:",
        (_FITS, _FORGED),
        "NaN compares as neither, so answers would be NaN, silently.",
    ),
    Mutant(
        "gate-offsets-may-fall",
        _GATE,
        " or not (array[1:] > array[:-1]).all():",
        ":",
        (_FITS,),
        "A row of a ragged array would have a negative length.",
    ),
    Mutant(
        "gate-offsets-may-end-anywhere",
        _GATE,
        "if array[0] != 0 or array[-1] != end or",
        "if array[0] != 0 or",
        (_FITS, _FORGED),
        "The last row of a ragged array would reach beyond it.",
    ),
    Mutant(
        "gate-without-the-shape",
        _GATE,
        "        if length != wanted:\n",
        "        if False:\n",
        (_FITS, f"{_TESTS}::test_arrays_must_fit_one_another"),
        "Arrays of different lengths would be read side by side.",
    ),
    Mutant(
        "gate-without-the-type",
        _GATE,
        "    if kind not in what.types.split() or not header.dtype.isnative:",
        "    if False:",
        (_FITS,),
        "Fractions, texts and swapped bytes would be taken for indexes.",
    ),
    Mutant(
        "gate-memory-before-sizes",
        _GATE,
        "            if total > memory():\n",
        "            if False:\n",
        (f"{_TESTS}::test_no_memory_is_taken_before_all_headers_fit",),
        "A small file would take all memory.",
    ),
    Mutant(
        "gate-bombs-unpacked",
        _GATE,
        "    if header.bytes > ROOM and header.bytes > FOLD * header.info.compress_size:\n",
        "    if False:\n",
        (f"{_TESTS}::test_a_bomb_is_refused_by_how_much_it_is_packed",),
        "A few bytes would unpack into gigabytes.",
    ),
    Mutant(
        "gate-sizes-not-those-of-the-archive",
        _GATE,
        "        or header.begins + header.bytes != info.file_size\n",
        "",
        (f"{_TESTS}::test_an_array_is_all_that_its_member_holds",),
        "Bytes of an array could be changed unnoticed, if others follow that nobody reads.",
    ),
    Mutant(
        "gate-everything-unpacked",
        _GATE,
        "                for one in declared\n                if one in members\n",
        "                for one in members\n",
        (f"{_TESTS}::test_what_nobody_declared_is_never_unpacked",),
        "A large array that nobody asked for would be looked into.",
    ),
    Mutant(
        "gate-numbers-believed",
        _GATE,
        "            or not what.least <= value <= what.most\n",
        "",
        (
            f"{_TESTS}::test_numbers_that_are_none",
            "tests/release/test_gate.py::test_training_that_would_never_end",
        ),
        "A release could ask for 10¹² steps of training.",
    ),
    Mutant(
        "gate-codes-of-the-next-attribute",
        _DECLARED,
        '    if (codes >= np.repeat(schema.sizes[arrays["attribute"]], lengths)).any():\n',
        "    if False:\n",
        (_FORGED,),
        "Tables of codes lie end to end, so such a code is read as one of the next attribute.",
    ),
    Mutant(
        "gate-records-of-other-codes",
        _DECLARED,
        "    if records is not None and (records >= schema.sizes).any():\n",
        "    if False:\n",
        (_FORGED, "tests/game/test_resume.py::test_a_journal_with_forged_moves_is_refused"),
        "Records would have codes that their attributes do not have.",
    ),
    Mutant(
        "gate-weights-of-any-sum",
        _DECLARED,
        "    if abs(float(weights.sum()) - 1.0) > SAME or (np.abs(sums - 1.0) > SAME).any():\n",
        "    if False:\n",
        (_FORGED,),
        "Shares would be answered that are no shares.",
    ),
    Mutant(
        "gate-cells-wrap-around",
        _DECLARED,
        "sizes.astype(np.float64)[arrays",
        "sizes.astype(np.int64)[arrays",
        ("tests/release/test_gate.py::test_cells_that_wrap_around_are_not_believed",),
        "A product of sizes that wraps around may fit any number of counts.",
    ),
    Mutant(
        "gate-draws-not-those-of-the-rounds",
        _DECLARED,
        '    if int(arrays["draw_counts"].sum()) != len(arrays["queries"]):\n',
        "    if False:\n",
        (_FORGED,),
        "A round could state more draws than it shows, or fewer.",
    ),
    Mutant(
        "gate-journal-of-any-size",
        "src/dualquery/estimator/run.py",
        "return Journal.resume(self.directory, run, counts, actions, self._openings())",
        "return Journal.resume(self.directory, run, counts, None, self._openings())",
        ("tests/game/test_resume.py::test_a_journal_with_forged_moves_is_refused",),
        "A journal could hold draws of queries that there are not.",
    ),
    Mutant(
        "gate-schema-of-any-width",
        "src/dualquery/domain/schema.py",
        "            or not 1 <= count <= MOST_DECLARED\n",
        "            or count < 1\n",
        ("tests/release/test_gate.py::test_a_schema_declares_no_more_columns_than_the_most",),
        "One number in a schema would take all memory.",
    ),
)
