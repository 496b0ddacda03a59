"""Mistakes about schemas with a price."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

QUANTILES = "src/dualquery/privacy/quantiles.py"
DISCOVERY = "src/dualquery/privacy/discovery.py"
PLAN = "src/dualquery/privacy/schema_plan.py"
PRICED = "src/dualquery/rows/priced.py"
LEVEL = "tests/privacy/test_quantiles.py::test_a_level_tells_no_more_of_a_unit_than_its_range"
APART = "tests/privacy/test_discovery.py::test_neighbours_are_no_further_apart_than_is_claimed"
SPREAD = (
    "tests/privacy/test_discovery.py::test_the_slack_is_the_largest_over_all_ways_to_spread_a_unit"
)
COST = "tests/privacy/test_discovery.py::test_a_plan_costs_what_it_may_and_hardly_less"
LEAVES = "tests/rows/test_priced.py::test_nothing_but_draws_leaves_the_table"
CHARGED = "tests/rows/test_priced.py::test_the_ledger_is_charged_before_the_first_draw"

MUTANTS = (
    Mutant(
        "quantiles-sensitivity-forgotten",
        QUANTILES,
        'return float(unit.ideal_range(positive("temperature", temperature), 1)) + (',
        'return float(positive("temperature", temperature)) + (',
        (LEVEL,),
        "A replaced unit, or a person of several records, is charged as one added record.",
    ),
    Mutant(
        "quantiles-score-twice-as-steep",
        QUANTILES,
        "rate = temperature / (2 * within.steps)",
        "rate = temperature / within.steps",
        (LEVEL,),
        "Exponents move twice as far as is charged.",
    ),
    Mutant(
        "edges-from-raw-data",
        PRICED,
        "steps = draw_quantiles(counts, plan.bins, plan.temperature, source)",
        "steps = [int(np.argmax(counts)) * steps_of(len(counts))]",
        (LEAVES,),
        "The fullest cell of a column becomes an edge, without a draw.",
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
        "slack-of-one-value",
        DISCOVERY,
        "max(most / least * chance(least), chance(most))",
        "chance(least)",
        (APART, SPREAD),
        "A person who holds several values alone is charged for one of them.",
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
        "for _ in range(self.cut)",
        "for _ in range(1)",
        (COST,),
        "Edges of one column are charged, whatever their number.",
    ),
    Mutant(
        "schema-not-charged",
        PRICED,
        "if book is not None:  # before the first draw",
        "if book is not None and book.path.name.endswith('x'):  # before the first draw",
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
    Mutant(
        "ledger-slack-not-taken-off",
        "src/dualquery/privacy/ledger.py",
        "left = (delta - self.slack) * (1.0 - GUARD)",
        "left = delta * (1.0 - GUARD)",
        ("tests/privacy/test_ledger.py::test_chances_of_failing_add_up_and_are_taken_off_delta",),
        "ε is stated at the whole δ, part of which discovery has used.",
    ),
)
