"""Mistakes of the reader: one record changes how others are read."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

TESTS = "tests/rows/test_one_record_at_a_time.py::"
ENCODING = "src/dualquery/rows/encoding.py"
CSV = "src/dualquery/rows/csv_file.py"

MUTANTS = (
    Mutant(
        "reader-block-falls-back",
        ENCODING,
        "        codes[odd] = np.array([*found, reader.missing], dtype=np.int32)[rare.places]",
        "        codes[:] = reader.unfit\n"
        "        codes[odd] = np.array([*found, reader.missing], dtype=np.int32)[rare.places]",
        (
            TESTS + "test_no_pair_of_cells_interferes",
            TESTS + "test_a_paid_schema_moves_by_one_record_at_most",
        ),
        "One cell that is no plain number makes words of all numbers in its block.",
    ),
    Mutant(
        "reader-line-ends-in-quotes",
        CSV,
        """if b'"' not in piece and b"\\r" not in piece:""",
        "if piece:",
        (
            TESTS + "test_quoted_line_ends_are_read_right_at_every_border",
            TESTS + "test_hostile_rows_change_no_other_code",
        ),
        "A line end inside quotes cuts rows, if it lies where a piece of the file ends.",
    ),
    Mutant(
        "reader-id-as-it-was-inferred",
        "src/dualquery/rows/ids.py",
        "[None if _is_none(cell) else id_text(cell) for cell in found]",
        "[None if _is_none(cell) else repr(cell) for cell in found]",
        (
            TESTS + "test_a_strange_id_changes_no_record_that_others_keep",
            TESTS + "test_one_person_however_the_id_is_written",
        ),
        "One strange id changes the type of its column, and other records of others are kept.",
    ),
    Mutant(
        "reader-unclosed-quote-swallows",
        CSV,
        "if is_last and state == QUOTED:",
        "if is_last and state == BROKEN:",
        (TESTS + "test_rows_that_are_none_are_refused_without_showing_them",),
        "A quote that is never closed swallows the rows of others.",
    ),
    Mutant(
        "reader-clamp-refuses-a-number",
        "src/dualquery/rows/cells.py",
        "return math.inf if number is None or number > 0 else -math.inf",
        "return math.copysign(math.inf, number or 1)",
        (TESTS + "test_every_route_reads_a_cell_as_the_one_function_does",),
        "Whether anything is released depends on one number that is too long.",
    ),
    Mutant(
        "reader-dictionaries-unified",
        ENCODING,
        "column = pa.chunked_array([decoded(chunk) for chunk in column.chunks])",
        "column = column.unify_dictionaries()",
        (TESTS + "test_no_cell_stops_a_typed_column_however_it_is_held",),
        "A dictionary that lists a missing value stops all, or halves of others become infinite.",
    ),
    Mutant(
        "reader-chunks-joined-by-others",
        "src/dualquery/rows/arrow.py",
        "if isinstance(native, pa.Table) and names:",
        "if isinstance(native, int) and names:",
        (TESTS + "test_no_cell_stops_a_typed_column_however_it_is_held",),
        "One chunk whose dictionary lists a missing value makes texts of all cells.",
    ),
    Mutant(
        "reader-periods-by-their-number",
        "src/dualquery/rows/arrow.py",
        "if isinstance(column.type, pa.BaseExtensionType):",
        "if isinstance(column, int):",
        (TESTS + "test_a_pandas_column_is_read_as_it_was_when_one_cell_changes_its_type",),
        "Periods are numbers until one cell is none; then all of them are dates.",
    ),
    Mutant(
        "reader-durations-by-their-type",
        "src/dualquery/rows/cells.py",
        "cell = cell.total_seconds()",
        "cell = str(cell)",
        (TESTS + "test_a_pandas_column_is_read_as_it_was_when_one_cell_changes_its_type",),
        "Durations are no numbers until one cell is none; then all of them are.",
    ),
    Mutant(
        "reader-large-ids-leave-all-out",
        "src/dualquery/rows/ids.py",
        "if (inferred or missing is not None) and",
        "if missing is not None and",
        (TESTS + "test_large_whole_numbers_that_a_frame_made_decimal_are_refused",),
        "One missing id makes decimal numbers of all, and nobody's rows are kept.",
    ),
    Mutant(
        "reader-large-number-decides",
        ENCODING,
        "and not attribute.is_numeric and reader.is_exact:",
        "and not attribute.is_numeric and reader.refuses:",
        (TESTS + "test_large_whole_numbers_that_a_frame_made_decimal_are_refused",),
        "One missing cell makes decimal numbers of all, and neighbouring values become one.",
    ),
    Mutant(
        "reader-pair-that-stops-all",
        "src/dualquery/rows/long.py",
        "if refuses and cells.null_count:",
        "if cells.null_count:",
        (TESTS + "test_a_pair_that_names_nobody_or_nothing_stops_no_release",),
        "Whether anything is released would tell whether one pair lacks its item.",
    ),
    Mutant(
        "reader-entry-that-stops-all",
        "src/dualquery/rows/sparse.py",
        "if len(wrong) and out_of_domain is OutOfDomain.REFUSE:",
        "if len(wrong):",
        (TESTS + "test_another_number_in_a_sparse_matrix_is_what_a_frame_would_make_of_it",),
        "Whether anything is released would tell whether one entry is neither 0 nor 1.",
    ),
    Mutant(
        "reader-one-day-spoils-all",
        "src/dualquery/rows/files/statistics.py",
        "fits = np.abs(np.where(gone, 0.0, counted)) < 2.0**40",
        "fits = np.full(len(gone), (np.abs(np.where(gone, 0.0, counted)) < 2.0**40).all())",
        ("tests/rows/test_files.py::test_days_and_times_that_are_none_are_judged_by_the_schema",),
        "One number that is no day makes all days of a Stata or SPSS file unreadable.",
    ),
    Mutant(
        "reader-encoding-swallows-separators",
        CSV,
        'if len(codec.decode(bytes(range(256)), "replace")[0]) == 256:',
        "if codec.name:",
        ("tests/rows/test_files.py::test_encodings_and_sheets_stand_where_they_mean_something",),
        "In an encoding of several bytes, one broken character takes the cell after it along.",
    ),
    Mutant(
        "reader-spelling-by-one-route-only",
        ENCODING,
        "if is_text(column.type) and attribute.spelling == PLAIN:",
        "if is_text(column.type):",
        (TESTS + "test_every_route_reads_a_cell_as_the_one_function_does",),
        "What 1.234 means depends on how many different cells its block has.",
    ),
)
