"""Mistakes about schemas with a price."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

QUANTILES = "src/dualquery/privacy/quantiles.py"
DISCOVERY = "src/dualquery/privacy/discovery.py"
PLAN = "src/dualquery/privacy/schema_plan.py"
PRICED = "src/dualquery/rows/priced.py"
CONTRASTS = "src/dualquery/privacy/contrasts.py"
MOVED = (
    "tests/privacy/test_quantiles.py::test_a_unit_moves_what_is_measured_no_further_than_is_charged"
)
APART = "tests/privacy/test_discovery.py::test_neighbours_are_no_further_apart_than_is_claimed"
SPREAD = (
    "tests/privacy/test_discovery.py::test_the_slack_is_the_largest_over_all_ways_to_spread_a_unit"
)
COST = "tests/privacy/test_discovery.py::test_a_plan_costs_what_it_may_and_hardly_less"
LEAVES = "tests/rows/test_priced.py::test_nothing_but_noisy_counts_leaves_the_table"
CHARGED = "tests/rows/test_priced.py::test_the_ledger_is_charged_before_anything_is_measured"

MUTANTS = (
    Mutant(
        "contrasts-replaced-charged-as-added",
        CONTRASTS,
        "if neighbours is Neighbours.ADD_REMOVE:\n            return",
        "if neighbours:\n            return",
        (MOVED, COST),
        "A record that moves between two parts is charged as one that is added.",
    ),
    Mutant(
        "contrasts-of-one-part",
        CONTRASTS,
        "columns * unit.influence**2 * self",
        "columns * unit.influence * self",
        (MOVED, COST),
        "A person of several records is charged too little for moving all of them.",
    ),
    Mutant(
        "contrasts-noise-not-scaled",
        QUANTILES,
        "rounded_gaussian(sigma * within.steps, len(contrasts.rows), source)",
        "rounded_gaussian(sigma, len(contrasts.rows), source)",
        ("tests/privacy/test_quantiles.py::test_noise_has_the_scale_of_what_is_measured",),
        "Counts are in steps and the noise is not, so it is many times too small.",
    ),
    Mutant(
        "contrasts-without-noise",
        QUANTILES,
        "contrasts.of(within.parts(borders)) + noise",
        "contrasts.of(within.parts(borders)) + 0 * noise",
        ("tests/privacy/test_quantiles.py::test_noise_has_the_scale_of_what_is_measured",),
        "Contrasts are released as they are.",
    ),
    Mutant(
        "edges-from-raw-data",
        PRICED,
        "steps = find_quantiles(counts, plan.contrasts, plan.sigmas, source)",
        "steps = [int(np.argmax(counts)) * steps_of(len(counts))]",
        (LEAVES,),
        "The fullest cell of a column becomes an edge, without any noise.",
    ),
    Mutant(
        "rounds-not-all-charged",
        PLAN,
        "for sigma in self.sigmas]\n        if",
        "for sigma in self.sigmas[1:]]\n        if",
        (COST,),
        "The first round is taken for free.",
    ),
    Mutant(
        "noise-of-values-not-cut",
        DISCOVERY,
        "while (again := np.flatnonzero(noise >= threshold)).size:",
        "while (again := np.flatnonzero(noise >= 2 * threshold)).size:",
        (
            "tests/privacy/test_discovery.py::test_noise_is_cut_below_the_threshold_and_nowhere_else",
        ),
        "A value that one unit alone holds is published more often than is charged.",
    ),
    Mutant(
        "threshold-half-too-low",
        DISCOVERY,
        "float(ndtr(-(threshold - 0.5 - parts) / sigma))",
        "float(ndtr(-(threshold + 0.5 - parts) / sigma))",
        (APART, SPREAD),
        "Noise that rounds up is forgotten, so the chance is stated too small.",
    ),
    Mutant(
        "slack-of-one-record",
        DISCOVERY,
        "for parts in (0, most))",
        "for parts in (0, 1))",
        (APART, SPREAD),
        "A person of several records is charged for one of them.",
    ),
    Mutant(
        "slack-of-one-column",
        PLAN,
        "self.discovered * slack_of(self.threshold, self.sigma, self.unit)",
        "slack_of(self.threshold, self.sigma, self.unit)",
        ("tests/privacy/test_discovery.py::test_every_open_column_may_fail",),
        "Several open columns are charged for the failure of one.",
    ),
    Mutant(
        "one-column-charged",
        PLAN,
        "l2 = self.contrasts.distance(self.unit, self.cut)",
        "l2 = self.contrasts.distance(self.unit)",
        (COST,),
        "Edges of one column are charged, whatever their number.",
    ),
    Mutant(
        "schema-not-charged",
        PRICED,
        "if book is not None:  # before anything is measured",
        "if book is not None and book.path.name.endswith('x'):  # before anything is measured",
        (CHARGED,),
        "A private schema leaves no entry in the ledger.",
    ),
    Mutant(
        "schema-slack-not-charged",
        PRICED,
        "            slack=plan.slack,\n",
        "",
        (CHARGED,),
        "The chance that discovery fails is not taken off the ledger's δ.",
    ),
    Mutant(
        "schema-weights-ignored",
        PRICED,
        "every = np.ones(rows, dtype=np.int64) if weights is None else weights[done : done + rows]",
        "every = np.ones(rows, dtype=np.int64)",
        ("tests/rows/test_priced.py::test_a_person_counts_no_more_than_the_cap",),
        "All rows of a person count, those beyond the cap, too.",
    ),
    Mutant(
        "values-of-raw-counts",
        PRICED,
        "kept = discover(counts, plan.sigma, plan.threshold, source)",
        "kept = counts > 0",
        (LEAVES,),
        "Every value that occurs is published.",
    ),
)
