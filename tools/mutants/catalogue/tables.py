"""Mistakes in measured tables: their price, their noise, and what a resume does with them."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_TABLES = "src/dualquery/game/tables.py"
_MEASURING = "src/dualquery/privacy/measuring.py"
_PURSE = "src/dualquery/privacy/purse.py"
_TRANSCRIPT = "src/dualquery/game/transcript.py"
_ROUNDS = "tests/game/test_measured_rounds.py"
_GAME = "tests/game/test_tables.py"
_FINE = "tests/game/test_fine_tables.py"
_AGAIN = "tests/game/test_again.py"
_KILLED = f"{_ROUNDS}::test_killed_inside_a_fit"
_PRICE = "tests/privacy/test_measurements.py"
_STATED = f"{_GAME}::test_the_planned_and_the_stated_cost_are_within_the_budget"
_WORKERS = f"{_ROUNDS}::test_workers_count_cells_and_the_client_adds_the_noise"

MUTANTS = (
    Mutant(
        "tables-sub-bins-believed-unchecked",
        "src/dualquery/release/verifying.py",
        "schema.code_start) or _fine(one, first, schema))",
        "schema.code_start) or one.measurement.marginals.arity == 1)",
        (f"{_FINE}::test_forged_sub_bins_are_refused",),
        "A release may hold tables of other cells than its schema's sub-bins.",
    ),
    Mutant(
        "tables-second-without-a-first",
        "src/dualquery/release/verifying.py",
        "        and np.array_equal(begun.groups.of_code, every.of_code)\n",
        "",
        (f"{_AGAIN}::test_forged_second_tables_are_refused",),
        "A release might hold second tables of columns whose first table says nothing.",
    ),
    Mutant(
        "tables-second-not-paid-for",
        "src/dualquery/game/tables_plan.py",
        "    left = 1.0 - again - sum(step.share for step in rounds)\n",
        "    left = 1.0 - sum(step.share for step in rounds)\n",
        (f"{_AGAIN}::test_the_planned_and_the_stated_cost_are_within_the_budget",),
        "Second tables come on top of the budget.",
    ),
    Mutant(
        "tables-rounds-not-paid-for",
        "src/dualquery/game/tables_plan.py",
        "    left = 1.0 - again - sum(step.share for step in rounds)\n",
        "    left = 1.0 - again\n",
        (f"{_GAME}::test_the_planned_and_the_stated_cost_are_within_the_budget",),
        "Rounds of draws come on top of the budget.",
    ),
    Mutant(
        "tables-second-of-all-pairs",
        "src/dualquery/game/tables_player.py",
        "        return Marginals(self.stack(known).groups, self.used[:, None])\n",
        "        return Marginals(self.stack(known).groups, self._sets(Kind.PAIRS)[0])\n",
        (f"{_AGAIN}::test_where_means_are_sure_the_share_goes_to_one_way_tables",),
        "What second tables leave would go to noisy tables of all pairs: chosen ones drown.",
    ),
    Mutant(
        "numbers-counts-heard-one-by-one",
        "src/dualquery/model/smoothing.py",
        "both = (self.members * self.open) @ self.members.T + np.diag(self.sum_noise**2)",
        "both = np.diag((self.members * self.open).sum(axis=1) + self.sum_noise**2)",
        ("tests/model/test_smoothing.py::test_counts_that_overlap_are_heard_together",),
        "Tables of a column that have sub-bins in common would be believed too much.",
    ),
    Mutant(
        "numbers-known-row-counted-twice",
        "src/dualquery/model/smoothing.py",
        "counts=self.counts - rows, sums",
        "counts=self.counts, sums",
        (
            "tests/model/test_smoothing.py::test_rows_that_are_known_leave_every_count_that_holds_them",
            "tests/model/test_inside.py::test_a_row_at_the_end_counts_once_and_lies_there",
        ),
        "The row at the end of a long tail would be in the counts, and beside them.",
    ),
    Mutant(
        "tables-second-of-a-journal-believed",
        _TABLES,
        "        fits = player.may_be_second(one.marginals)\n",
        "        fits = True\n",
        (f"{_AGAIN}::test_a_journal_with_other_second_tables_is_refused",),
        "A journal that was tampered with could hold tables of any column.",
    ),
    Mutant(
        "tables-noise-of-a-bin-as-of-one-sub-bin",
        _MEASURING,
        "return found if self.parts is None else found * self.parts",
        "return found",
        (f"{_FINE}::test_noise_of_a_bin_is_that_of_its_sub_bins_together",),
        "Sums of several noisy counts would pass for one: errors are stated too small.",
    ),
    Mutant(
        "tables-batch-priced-as-one",
        _MEASURING,
        "math.sqrt(tables) * neighbours.table_l2",
        "neighbours.table_l2",
        (f"{_GAME}::test_the_mean_price_of_a_batch_is_that_of_its_tables",),
        "A batch of T tables costs √T times what is stated.",
    ),
    Mutant(
        "tables-batch-priced-as-one-in-l1",
        _MEASURING,
        "tables * neighbours.table_l1, math",
        "neighbours.table_l1, math",
        (f"{_GAME}::test_the_mean_price_of_a_batch_is_that_of_its_tables",),
        "A batch of T tables with Laplace noise costs T times what is stated.",
    ),
    Mutant(
        "tables-noise-of-one-for-a-batch",
        _PURSE,
        "l2 = math.sqrt(tables) * self.budget.unit.table_l2",
        "l2 = self.budget.unit.table_l2",
        (_STATED, f"{_ROUNDS}::test_tables_that_cover_one_another_are_paid_for_one_by_one"),
        "The noise of a batch is that of one table, and the run exceeds its budget.",
    ),
    Mutant(
        "tables-noise-for-fewer-than-are-measured",
        _TABLES,
        "scale = plan.purse.scale(step.share, len(marginals))",
        "scale = plan.purse.scale(step.share, 1)",
        (_STATED,),
        "The noise of a batch is that of one table, and the run exceeds its budget.",
    ),
    Mutant(
        "tables-sensitivity-of-adding",
        "src/dualquery/privacy/neighbours.py",
        "return math.sqrt(2.0) if self is Neighbours.REPLACE_ONE else 1.0",
        "return math.sqrt(2.0) if self is Neighbours.REPLACE_ONE else 0.99",
        (f"{_PRICE}::test_the_rounded_gaussian_mechanism_costs_what_its_event_says",),
        "An added record changes one cell by one: the cost would be above what is stated.",
    ),
    Mutant(
        "tables-sensitivity-of-replacing-by-a-hair",
        "src/dualquery/privacy/neighbours.py",
        "return math.sqrt(2.0) if self is Neighbours.REPLACE_ONE else 1.0",
        "return 1.4 if self is Neighbours.REPLACE_ONE else 1.0",
        (f"{_PRICE}::test_the_rounded_gaussian_mechanism_costs_what_its_event_says",),
        "Δ = 1.4 instead of √2: a cost that is one per cent too small is stated.",
    ),
    Mutant(
        "tables-measured-with-less-noise-than-stated",
        _MEASURING,
        "counts + draw(scale, len(counts), source)",
        "counts + draw(0.99 * scale, len(counts), source)",
        (f"{_ROUNDS}::test_the_noise_has_the_scale_that_the_measurement_states",),
        "The noise is one per cent smaller than the scale that is stated and paid for.",
    ),
    Mutant(
        "tables-one-noise-for-all-cells",
        _MEASURING,
        "counts + draw(scale, len(counts), source)",
        "counts + draw(scale, 1, source)",
        (f"{_ROUNDS}::test_the_noise_has_the_scale_that_the_measurement_states",),
        "The difference of two cells would be exact.",
    ),
    Mutant(
        "tables-noise-of-the-first-round-again",
        _TABLES,
        "made = source.for_round(number)",
        "made = source.for_round(0)",
        (f"{_ROUNDS}::test_every_round_takes_its_own_part_of_the_source",),
        "Noise that serves twice cancels out between two tables of a repeatable run.",
    ),
    Mutant(
        "tables-used-before-they-are-on-disk",
        _TABLES,
        "            journal.write_released(number, released)\n",
        "            player.respond(known, number, released)\n"
        "            journal.write_released(number, released)\n",
        (_KILLED,),
        "A run killed while it fits would measure that round again: two tables for one price.",
    ),
    Mutant(
        "tables-measured-again-after-a-kill",
        _TABLES,
        "        if released is None:\n            made",
        "        kept = released\n"
        "        if released is None or journal.move(number) is None:\n            made",
        (_KILLED,),
        "A resumed run would measure again what was measured: two tables for one price.",
    ),
    Mutant(
        "tables-forgotten-by-the-journal",
        "src/dualquery/game/journal.py",
        '                    if "attributes" in arrays:\n',
        "                    if False:\n",
        (_KILLED,),
        "A resumed run would not know what it measured, nor pay for it.",
    ),
    Mutant(
        "tables-noise-per-worker",
        "src/dualquery/engines/cluster.py",
        "return self.count(table, marginals.queries(schema), out_of_domain).counts",
        "found = self.count(table, marginals.queries(schema), out_of_domain).counts\n"
        "        return found + np.random.default_rng().integers(-1, 2, found.shape)",
        (_WORKERS,),
        "Noise is added where the rows are, besides that of the client: σ is not what is stated.",
    ),
    Mutant(
        "tables-measured-on-one-part",
        "src/dualquery/engines/cluster.py",
        "                    for i, part in enumerate(parts)\n",
        "                    for i, part in enumerate(parts[:1])\n",
        (_WORKERS,),
        "Only the first part of a table is measured.",
    ),
    Mutant(
        "counted-on-one-part",
        "src/dualquery/engines/cluster.py",
        "                    for part in parts\n",
        "                    for part in parts[:1]\n",
        ("tests/engines/test_engines.py::test_tables_of_wide_rows_are_counted_where_the_rows_are",),
        "Only the first part of a table is counted.",
    ),
    Mutant(
        "tables-left-out-of-the-events",
        _TRANSCRIPT,
        "                found = found.then(Events.in_sequence(*one.measurement"
        ".events(neighbours)))",
        "                pass",
        (_STATED, f"{_GAME}::test_forged_tables_are_refused_in_one_line"),
        "Measured tables are free, in the statement and when a release is read.",
    ),
    Mutant(
        "tables-left-out-when-a-release-is-read",
        _TRANSCRIPT,
        "read_measured(measured) if measured else None,",
        "None,",
        (f"{_GAME}::test_a_release_is_read_back_with_its_measurements",),
        "The ε of a release is computed again without its measured tables.",
    ),
    Mutant(
        "tables-last-one-left-out-of-the-events",
        _TRANSCRIPT,
        "        for one in self.rounds:\n            if one.measurement is None or",
        "        for one in self.rounds[:-1]:\n            if one.measurement is None or",
        (_STATED,),
        "What the last round released is not charged.",
    ),
    Mutant(
        "tables-drawn-at-a-temperature-for-another-divisor",
        _TABLES,
        "scaled = budget.unit.rescaled(temperature, budget.rows, reference)",
        "scaled = 1.01 * temperature * reference / budget.rows",
        (f"{_GAME}::test_draws_under_add_remove_use_the_temperature_that_was_paid_for",),
        "Under add-remove, draws between tables cost more than is charged.",
    ),
    Mutant(
        "tables-drawn-against-the-charged-size",
        _TABLES,
        "return drawer.draw(scaled, answers, samples, source, reference=reference)",
        "return drawer.draw(scaled, answers, samples, source)",
        (f"{_GAME}::test_draws_under_add_remove_use_the_temperature_that_was_paid_for",),
        "Scores are divided by n0 at a temperature for the estimated size: another range.",
    ),
    Mutant(
        "tables-of-a-journal-believed",
        _TABLES,
        "        elif not _is_of(step, released, player, known):\n",
        "        elif False:\n",
        (f"{_ROUNDS}::test_a_journal_that_does_not_fit_the_plan_is_refused",),
        "A journal that was tampered with would be published, whatever it costs.",
    ),
    Mutant(
        "tables-forged-groups-believed",
        "src/dualquery/game/declared.py",
        "minlength=int(sizes.sum())).all():",
        "minlength=int(sizes.sum())).any():",
        (f"{_GAME}::test_forged_tables_are_refused_in_one_line",),
        "The price of a table rests on disjoint cells; a forged release might have others.",
    ),
)
