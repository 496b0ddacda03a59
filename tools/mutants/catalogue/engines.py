"""Mistakes where counts meet weights: estimator, engines, workers."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_RANGE = "tests/engines/test_ranges.py::test_a_round_moves_by_its_range_and_no_more"

MUTANTS = (
    Mutant(
        "estimator-divides-by-the-true-size",
        "src/dualquery/estimator/stages.py",
        "engine.query_player(ready.actions, ready.counted, plan.budget.rows)",
        "engine.query_player(ready.actions, ready.counted, ready.counted.rows)",
        (_RANGE,),
        "Under add-remove, scores divided by the private |D| have no bounded range.",
    ),
    Mutant(
        "local-engine-divides-by-the-true-size",
        "src/dualquery/engines/local.py",
        "return QueryPlayer(answers, reference, log_prior=actions.log_prior)",
        "return QueryPlayer(answers, log_prior=actions.log_prior)",
        (_RANGE,),
        "Under add-remove, scores divided by the private |D| have no bounded range.",
    ),
    Mutant(
        "workers-divide-by-the-true-size",
        "src/dualquery/engines/cluster.py",
        "                self._answers.rows,\n                self._reference,\n",
        "                self._answers.rows,\n                self._answers.rows,\n",
        (_RANGE,),
        "Under add-remove, scores divided by the private |D| have no bounded range.",
    ),
    Mutant(
        "held-shard-divides-by-the-true-size",
        "src/dualquery/engines/held.py",
        "reference=self.birth.reference if news.reference is None else news.reference,",
        "reference=self.birth.size,",
        (_RANGE,),
        "Under add-remove, scores divided by the private |D| have no bounded range.",
    ),
    Mutant(
        "held-shard-negates-with-the-reference",
        "src/dualquery/engines/held.py",
        "size=self.birth.size,",
        "size=self.birth.reference,",
        (_RANGE,),
        "The negated count n0 − c instead of |D| − c doubles the range under add-remove.",
    ),
    Mutant(
        "held-shard-without-prior-weights",
        "src/dualquery/engines/held.py",
        "self.shard = Shard(len(birth.workload), log_prior=birth.log_prior)",
        "self.shard = Shard(len(birth.workload), log_prior=None)",
        ("tests/engines/test_engines.py::test_the_same_release_from_workers",),
        "Workers would draw from other weights than those the model is fitted with.",
    ),
    Mutant(
        "parts-counted-twice",
        "src/dualquery/engines/parts.py",
        "reduce(np.add, (part.counts for part in opened))",
        "reduce(np.add, (part.counts for part in opened), opened[0].counts)",
        ("tests/engines/test_engines.py::test_parts_cover_the_table",),
        "A record would count twice, and move the weights by twice what is charged.",
    ),
    Mutant(
        "positions-of-workers-not-shifted",
        "src/dualquery/engines/cluster.py",
        "positions[part] += 2 * self._cuts[i]",
        "positions[part] += self._cuts[i]",
        ("tests/engines/test_engines.py::test_a_lost_shard_is_made_again",),
        "Draws of all workers except the first would name queries other than those drawn.",
    ),
    Mutant(
        "seeded-run-stated-as-private",
        "src/dualquery/estimator/stages.py",
        "        private=mechanism.seed is None,\n",
        "        private=True,\n",
        ("tests/privacy/test_sources.py::test_a_run_with_a_seed_is_not_stated_as_private",),
        "A run that anyone with the seed can repeat would be published as private.",
    ),
    Mutant(
        "padding-taken-under-add-remove",
        "src/dualquery/estimator/stages.py",
        "if table.declared_rows is not None and mechanism.relation is Neighbours.ADD_REMOVE:",
        "if False:",
        (
            "tests/rows/test_streams.py::test_a_declared_number_of_records_is_refused_under_add_remove",
        ),
        "Adding a record to a padded table replaces an empty one, at twice the price charged.",
    ),
    Mutant(
        "records-that-occur-taken-for-a-public-number",
        "src/dualquery/estimator/stages.py",
        "if table.declared_rows is None and mechanism.relation is Neighbours.REPLACE_ONE:",
        "if False:",
        ("tests/rows/test_streams.py::test_the_number_of_records_that_occur_is_not_published",),
        "In a long table, whether a person has any item at all would change the published n.",
    ),
    Mutant(
        "plan-from-the-private-size",
        "src/dualquery/estimator/settings.py",
        "return self.rows * self.protected.parts",
        "return rows",
        ("tests/test_non_interference.py::test_add_remove_hides_the_number_of_rows",),
        "Under add-remove |D| is private, and every parameter of the run would show it.",
    ),
    Mutant(
        "private-values-show-in-logs",
        "src/dualquery/engines/parts.py",
        '        return "<private>"\n',
        '        return f"<private {self.value}>"\n',
        ("tests/engines/test_engines.py::test_private_values_do_not_show",),
        "Counts on their way between machines would end in a scheduler's log.",
    ),
    Mutant(
        "signals-raise-anywhere",
        "src/dualquery/base/interrupts.py",
        "        elif is_safe(frame):\n",
        "        elif True:\n",
        ("tests/base/test_interrupts.py::test_what_must_not_be_left_is_finished_first",),
        "A signal inside a kernel's named tuple is a segmentation fault.",
    ),
    Mutant(
        "signals-are-not-held",
        "src/dualquery/base/interrupts.py",
        "        if _depth:\n",
        "        if False:\n",
        ("tests/base/test_interrupts.py::test_an_archive_that_is_written_is_finished",),
        "An archive that is left half-written hides the interrupt.",
    ),
)
