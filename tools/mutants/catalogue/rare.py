"""Mistakes in rare cells: what a record may change, what is paid, and what a resume believes."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_RARE = "src/dualquery/privacy/rare.py"
_KERNELS = "src/dualquery/rows/_rare_kernels.py"
_ROWS = "src/dualquery/rows/rare.py"
_STEPS = "src/dualquery/game/rare_steps.py"
_APART = "tests/privacy/test_rare.py::test_no_neighbours_are_further_apart_than_is_paid_for"
_PAID = "tests/privacy/test_rare.py::test_charges_and_cells_are_both_paid_for"
_WIDE = "tests/game/test_wide.py"
_STATED = f"{_WIDE}::test_rare_cells_cost_what_is_planned"

MUTANTS = (
    Mutant(
        "rare-rows-not-cut",
        _KERNELS,
        "                if left < 0:\n                    break\n",
        "",
        (_APART,),
        "A record with many rare codes changes more counts than are paid for.",
    ),
    Mutant(
        "rare-rows-cut-one-cell-late",
        _KERNELS,
        "                if left < 0:\n",
        "                if left < -1:\n",
        (_APART,),
        "A record may be charged one more than the bound that is paid.",
    ),
    Mutant(
        "rare-heavy-rows-counted-twice",
        _ROWS,
        "sizes <= most, rows)",
        "sizes <= 2 * most, rows)",
        (_APART,),
        "A record above the bound counts in all of its cells, and in some twice.",
    ),
    Mutant(
        "rare-weights-forgotten",
        _ROWS,
        "partial(cells_per_row, bits, terms, weight, sizes)",
        "partial(cells_per_row, bits, terms, 1, sizes)",
        (_APART,),
        "A cell with a larger weight, and so with less noise, is charged like any other.",
    ),
    Mutant(
        "rare-bound-paid-by-half",
        _RARE,
        "batch_event(Noise.GAUSSIAN, self.scale, self.most, neighbours)",
        "batch_event(Noise.GAUSSIAN, self.scale, (self.most + 1) // 2, neighbours)",
        (_APART, _PAID),
        "Half of what a record may change is paid for.",
    ),
    Mutant(
        "rare-charges-not-paid",
        _RARE,
        "        return (batch_event(Noise.GAUSSIAN, self.scale, 1, neighbours),)\n",
        "        return ()\n",
        (_PAID,),
        "The histogram that decides the bound is released for nothing.",
    ),
    Mutant(
        "rare-noise-by-weight-not-its-root",
        _RARE,
        "scale / math.sqrt(weight) * _ROUNDED_UP",
        "scale / weight * _ROUNDED_UP",
        ("tests/privacy/test_rare.py::test_the_scale_of_a_cell_is_never_rounded_down",),
        "A cell of weight 4 would cost 16.",
    ),
    Mutant(
        "rare-scale-rounded-down",
        _RARE,
        "scale / math.sqrt(weight) * _ROUNDED_UP",
        "scale / math.sqrt(weight)",
        ("tests/privacy/test_rare.py::test_the_scale_of_a_cell_is_never_rounded_down",),
        "Rounding makes a cell dearer than its weight, by the last digit.",
    ),
    Mutant(
        "rare-one-noise-for-all-cells",
        _RARE,
        "rounded_gaussian(cell_scale(scale, weight), len(chosen), source)",
        "rounded_gaussian(cell_scale(scale, weight), 1, source)",
        ("tests/privacy/test_rare.py::test_the_noise_of_a_cell_follows_its_weight",),
        "The difference of two cells would be exact.",
    ),
    Mutant(
        "rare-bound-without-noise-on-its-price",
        _STEPS,
        "return measure_rare(counts, cells, most, purse.scale(step.share, most), source)",
        "return measure_rare(counts, cells, most, purse.scale(step.share, 1), source)",
        (_STATED,),
        "The noise of the cells is that of one, and the run exceeds its budget.",
    ),
    Mutant(
        "rare-charges-come-on-top",
        "src/dualquery/game/wide_plan.py",
        "    rest = 1.0 - FIRST_LOOK - 2.0 * CHARGES - RARE - RARE_PAIRS\n",
        "    rest = 1.0 - FIRST_LOOK - RARE - RARE_PAIRS\n",
        (f"{_WIDE}::test_the_plan_costs_no_more_than_the_budget",),
        "What records are charged is measured on top of the budget.",
    ),
    Mutant(
        "rare-cells-of-a-journal-believed",
        _STEPS,
        "        paid = paid and one.scale == purse.scale(step.share, most)\n",
        "",
        (f"{_WIDE}::test_a_journal_with_other_rare_cells_is_refused",),
        "A journal that was tampered with would be published, whatever it costs.",
    ),
)
