"""Mistakes in counting."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "counts-levels",
        "src/dualquery/rows/counting.py",
        ("    asked = np.unique(cells)\n    code = literals.codes[literals.start[asked]]"),
        (
            "    asked = np.flatnonzero(np.isin(literals.attribute, attributes))\n"
            "    code = np.arange(len(asked))"
        ),
        ("tests/rows/test_counting_routes.py::test_cells_keep_their_counts_beside_sets",),
        "Cells of whole tables are counted wrong beside sets on the same attribute.",
    ),
    Mutant(
        "counts-levels-16-bit",
        "src/dualquery/rows/counting.py",
        "width = np.uint16 if sizes.max() <= 1 << 16 else np.int32",
        "width = np.uint16",
        ("tests/rows/test_counting_routes.py::test_more_levels_than_sixteen_bits_hold",),
        "Levels beyond 65,536 wrap around, and rows land in the wrong cell.",
    ),
    Mutant(
        "counts-same-code-two-levels",
        "src/dualquery/rows/counting.py",
        (
            "    fresh = np.concatenate([[True], "
            "(owner[1:] != owner[:-1]) | (code[1:] != code[:-1])])\n"
            "    distinct"
        ),
        ("    fresh = np.ones(len(asked), dtype=bool)\n    distinct"),
        ("tests/rows/test_counting_routes.py::test_a_literal_that_is_there_twice_is_one_level",),
        "A literal that is there twice makes two levels, and rows are shared out between them.",
    ),
    Mutant(
        "counts-other-codes-first-level",
        "src/dualquery/rows/counting.py",
        "            row[:] = len(members)",
        "            row[:] = 0",
        ("tests/rows/test_counting_routes.py::test_every_route_by_force",),
        "Rows with a code that nobody asked about are counted for the first that was.",
    ),
    Mutant(
        "counts-tables-last-block",
        "src/dualquery/rows/counting.py",
        "    for bits, rows in zip(tally.packed.blocks, tally.packed.block_rows, strict=True):",
        "    for bits, rows in list(zip(tally.packed.blocks, tally.packed.block_rows))[:2]:",
        ("tests/rows/test_counting_routes.py::test_every_route_by_force",),
        "Rows of the last blocks are not counted.",
    ),
    Mutant(
        "counts-tables-take-negated",
        "src/dualquery/rows/counting.py",
        "((terms & 1) == 0).all(axis=1) & single",
        "single",
        ("tests/workloads/test_combinations.py::test_the_default_workload_of_a_narrow_table",),
        "Negated literals are counted as if they were plain.",
    ),
    Mutant(
        "counts-tables-take-sets",
        "src/dualquery/rows/counting.py",
        "single[terms >> 1].all(axis=1)",
        "single[terms >> 1].any(axis=1)",
        ("tests/rows/test_counting_routes.py::test_dense_tables",),
        "A query with a set in it is counted as the cell of one code.",
    ),
    Mutant(
        "counts-tables-no-bound",
        "src/dualquery/rows/counting.py",
        " & (levels.prod(axis=1) <= MOST_CELLS)",
        "",
        (
            "tests/rows/test_counting_routes.py::test_a_table_of_too_many_cells_is_not_chosen_and_refused",
        ),
        "A table of more cells than memory holds is counted.",
    ),
    Mutant(
        "counts-bound-by-all-literals",
        "src/dualquery/rows/counting.py",
        "np.bincount(workload.literals.attribute[asked])",
        "np.bincount(workload.literals.attribute)",
        (
            "tests/rows/test_counting_routes.py::test_sets_beside_cells_do_not_make_their_tables_too_large",
        ),
        "Sets on the same attribute keep cells from being counted the fast way.",
    ),
    Mutant(
        "counts-padding",
        "src/dualquery/rows/counting.py",
        "    counts -= _padding(tally.packed) * (ordered & 1).all(axis=1)",
        "",
        ("tests/rows/test_counting_routes.py::test_every_route_by_force",),
        "Bits past the last row count as rows.",
    ),
    Mutant(
        "counts-padding-any",
        "src/dualquery/rows/counting.py",
        "(ordered & 1).all(axis=1)",
        "(ordered & 1).any(axis=1)",
        ("tests/rows/test_counting_routes.py::test_every_route_by_force",),
        "Rows are taken away from queries that never counted the bits past the end.",
    ),
    Mutant(
        "counts-singles-negation",
        "src/dualquery/rows/counting.py",
        "np.where(terms & 1, tally.packed.rows - ones, ones)",
        "ones",
        ("tests/rows/test_counting_routes.py::test_every_route_by_force",),
        "A negated single literal has the count of the literal itself.",
    ),
    Mutant(
        "counts-parity-negations",
        "src/dualquery/rows/counting.py",
        "(terms & 1).sum(axis=1) & 1",
        "(terms & 1).any(axis=1)",
        ("tests/rows/test_counting_routes.py::test_every_route_by_force",),
        "Two negations in a parity turn it around.",
    ),
    Mutant(
        "counts-tile-boundary",
        "src/dualquery/rows/counting.py",
        "bits[:, first : first + size]",
        "bits[:, first : first + size - 1]",
        ("tests/rows/test_counting_routes.py::test_a_table_of_several_whole_blocks",),
        "The last word of every tile is not counted.",
    ),
    Mutant(
        "counts-popcounts-last-block",
        "src/dualquery/rows/counting.py",
        ("    for bits in tally.packed.blocks:\n        for tile"),
        ("    for bits in tally.packed.blocks[:2]:\n        for tile"),
        ("tests/rows/test_counting_routes.py::test_a_table_of_several_whole_blocks",),
        "Rows of the last blocks are not counted.",
    ),
    Mutant(
        "counts-lists-last-block",
        "src/dualquery/rows/counting.py",
        ("    for bits, ones in zip(tally.packed.blocks, tally.ones, strict=True):\n        start"),
        ("    for bits, ones in list(zip(tally.packed.blocks, tally.ones))[:2]:\n        start"),
        ("tests/rows/test_counting_routes.py::test_a_table_of_several_whole_blocks",),
        "Rows of the last blocks are not counted.",
    ),
    Mutant(
        "counts-kinds-merged",
        "src/dualquery/rows/counting.py",
        "kinds = 2 * lengths + workload.is_parity",
        "kinds = 2 * lengths",
        ("tests/rows/test_counting_routes.py::test_every_route_by_force",),
        "Parities are counted as conjunctions.",
    ),
    Mutant(
        "counts-table-odd-row",
        "src/dualquery/rows/_counting_kernels.py",
        ("            if len(held) & 1:\n                table[held[-1]] += 1"),
        "",
        ("tests/rows/test_counting_routes.py::test_every_route_by_force",),
        "The last row of an odd number is not counted.",
    ),
    Mutant(
        "counts-table-second-copy",
        "src/dualquery/rows/_counting_kernels.py",
        "counts[q] += table[cells[q]] + table[size + cells[q]]",
        "counts[q] += 2 * table[cells[q]]",
        ("tests/rows/test_counting_routes.py::test_cells_keep_their_counts_beside_sets",),
        "Half of the rows are counted twice and the other half not at all.",
    ),
    Mutant(
        "counts-listed-negation",
        "src/dualquery/rows/_counting_kernels.py",
        "held &= (bits[term >> 1, w] >> shift) ^ np.uint64(term & 1)",
        "held &= bits[term >> 1, w] >> shift",
        ("tests/rows/test_counting_routes.py::test_every_route_by_force",),
        "Negated literals are counted as if they were plain.",
    ),
    Mutant(
        "counts-listed-negation-of-two",
        "src/dualquery/rows/_counting_kernels.py",
        "((b[w] >> shift) ^ g) & np.uint64(1)",
        "(b[w] >> shift) & np.uint64(1)",
        ("tests/rows/test_counting_routes.py::test_every_route_by_force",),
        "Negated literals are counted as if they were plain.",
    ),
    Mutant(
        "counts-odd-shared",
        "src/dualquery/rows/_counting_kernels.py",
        "not _same(literals, q, q - 1, k - 1)",
        "not _same(literals, q, q - 1, k - 2)",
        ("tests/rows/test_counting_routes.py::test_every_route_by_force",),
        "Queries that share all literals except the last two are taken for relatives.",
    ),
)
