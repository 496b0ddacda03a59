"""Mistakes in the methods that a release is compared with."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "baselines-choice-of-one-sided-range",
        "src/dualquery/baselines/mwem_model.py",
        "choice = (wide - charge) / 2.0",
        "choice = wide - charge",
        (
            "tests/baselines/test_mwem_model.py::test_no_transcript_tells_neighbours_apart_by_more_than_the_pure_epsilon",
        ),
        "A score moves up or down by one: a choice has twice the range of its factor.",
    ),
    Mutant(
        "baselines-many-counts-for-the-price-of-one",
        "src/dualquery/baselines/spending.py",
        "rational_scale(l1 / (share * epsilon))",
        "rational_scale(l2 / (share * epsilon))",
        (
            "tests/baselines/test_projection.py::test_no_noisy_counts_tell_neighbours_apart_by_more_than_the_pure_epsilon",
        ),
        "Laplace noise for an L2 distance: m counts move by m in L1, not by √m.",
    ),
    Mutant(
        "baselines-choices-for-the-price-of-one",
        "src/dualquery/baselines/spending.py",
        "return share * epsilon / choices",
        "return share * epsilon",
        (
            "tests/baselines/test_mwem_model.py::test_no_transcript_tells_neighbours_apart_by_more_than_the_pure_epsilon",
        ),
        "Every round chooses, and every choice costs.",
    ),
    Mutant(
        "baselines-replaced-record-at-the-price-of-an-added-one",
        "src/dualquery/baselines/reach.py",
        "records = 1 if neighbours is Neighbours.ADD_REMOVE else 2",
        "records = 1",
        (
            "tests/baselines/test_reach.py::test_no_record_moves_more_counts",
            "tests/baselines/test_projection.py::test_no_noisy_counts_tell_neighbours_apart_by_more_than_the_pure_epsilon",
        ),
        "A replaced record leaves one cell of a marginal and enters another: both counts move.",
    ),
    Mutant(
        "baselines-codes-that-exclude-what-they-do-not",
        "src/dualquery/baselines/reach.py",
        "((factor != 0.0).sum(axis=1) == 1)",
        "((factor != 0.0).sum(axis=1) >= 1)",
        (
            "tests/baselines/test_reach.py::test_no_record_moves_more_counts",
            "tests/baselines/test_reach.py::test_what_can_hold_together_is_added_up",
        ),
        "Literals that several codes satisfy can hold together.",
    ),
    Mutant(
        "baselines-private-number-of-rows-in-the-answers",
        "src/dualquery/baselines/baseline.py",
        "    if neighbours is Neighbours.REPLACE_ONE:\n        return rows\n",
        "    if rows:\n        return rows\n",
        (
            "tests/baselines/test_reach.py::test_under_add_remove_the_number_of_rows_is_not_read",
            "tests/baselines/test_matrix.py::test_under_add_remove_the_number_of_rows_is_not_read",
        ),
        "Where a record may be added, the number of rows is private.",
    ),
    Mutant(
        "baselines-residual-of-one-record",
        "src/dualquery/baselines/matrix.py",
        "return 2.0 * length * smallest / (smallest - 1.0)",
        "return 2.0 * length",
        (
            "tests/baselines/test_matrix.py::test_the_sensitivity_is_the_largest_distance_of_two_records",
        ),
        "Residuals of two records are not orthogonal: they are more than √2 lengths apart.",
    ),
    Mutant(
        "baselines-residual-of-an-added-record",
        "src/dualquery/baselines/matrix.py",
        "        return length\n",
        "        return 0.5 * length\n",
        (
            "tests/baselines/test_matrix.py::test_the_sensitivity_is_the_largest_distance_of_two_records",
        ),
        "To add a record moves a residual by the whole of that record's residual.",
    ),
    Mutant(
        "baselines-contrast-without-its-length",
        "src/dualquery/baselines/matrix.py",
        "scale = sigma * math.sqrt(float(length))",
        "scale = sigma",
        ("tests/baselines/test_matrix.py::test_a_measured_residual_has_the_stated_noise",),
        "Whole-number contrasts are longer than orthonormal ones, and so must be their noise.",
    ),
    Mutant(
        "baselines-comparisons-without-noise-on-the-level",
        "src/dualquery/baselines/online.py",
        "return level + int(discrete_laplace(self.prices.level_scale, 1, source)[0])",
        "return level",
        ("tests/baselines/test_online.py::test_levels_scores_and_counts_have_the_stated_noise",),
        "Without noise on the level every comparison costs, and their number is not paid for.",
    ),
    Mutant(
        "baselines-rounds-for-the-price-of-one",
        "src/dualquery/baselines/fem.py",
        "temperature = largest_scale(budget, np.ones(rounds), 1)",
        "temperature = largest_scale(budget, np.ones(1), 1)",
        ("tests/baselines/test_fem.py::test_the_cost_is_that_of_single_draws",),
        "The temperature that one round may have, in all of them.",
    ),
    Mutant(
        "baselines-score-of-a-pair-moves-by-one",
        "src/dualquery/baselines/privbayes_prices.py",
        "return 3.0 + 2.0 / rows if",
        "return 1.0 + 2.0 / rows if",
        (
            "tests/baselines/test_privbayes.py::test_a_record_alone_in_its_corner_moves_a_score_by_almost_two",
        ),
        "A record moves the joint table and both of its margins.",
    ),
    Mutant(
        "baselines-tables-of-a-network-for-the-price-of-one",
        "src/dualquery/baselines/privbayes_prices.py",
        "math.sqrt(tables) * neighbours.table_l2",
        "neighbours.table_l2",
        ("tests/baselines/test_privbayes.py::test_the_events_are_choices_and_one_batch_of_tables",),
        "Every attribute of the network has a table that a record is in.",
    ),
    Mutant(
        "baselines-pair-chosen-with-a-one-sided-range",
        "src/dualquery/baselines/privbayes_prices.py",
        "choice = (wide - charge) / (2.0 * reach)",
        "choice = (wide - charge) / reach",
        ("tests/baselines/test_privbayes.py::test_the_events_are_choices_and_one_batch_of_tables",),
        "Scores move up for one pair and down for another: twice the range.",
    ),
    Mutant(
        "baselines-coin-at-the-price-of-its-likely-side",
        "src/dualquery/baselines/dqrs.py",
        "coin_range = (eta / rows + COIN_CHARGE) / gamma * (1.0 + 2.0**-30)",
        "coin_range = (eta / rows + COIN_CHARGE) * (1.0 + 2.0**-30)",
        (
            "tests/baselines/test_dqrs.py::test_no_outcome_of_a_step_tells_neighbours_apart_by_more_than_stated",
        ),
        "A rejected draw is rare, and tells neighbours apart by far more than a kept one.",
    ),
    Mutant(
        "baselines-coin-without-the-least-rejection",
        "src/dualquery/baselines/dqrs.py",
        "chances: Floats = math.log1p(-gamma) - self.eta",
        "chances: Floats = -self.eta",
        (
            "tests/baselines/test_dqrs.py::test_no_outcome_of_a_step_tells_neighbours_apart_by_more_than_stated",
            "tests/baselines/test_dqrs.py::test_coins_fall_with_their_chances",
        ),
        "A draw of payoff one would always be kept, so a rejection would tell everything.",
    ),
    Mutant(
        "baselines-coins-are-not-charged",
        "src/dualquery/baselines/dqrs.py",
        "draws = [np.append(np.ones(one.coins, dtype=np.int64), one.fresh) for one in self.steps]",
        "draws = [np.append(np.zeros(one.coins, dtype=np.int64), one.fresh) for one in self.steps]",
        ("tests/baselines/test_dqrs.py::test_every_coin_and_every_new_draw_is_an_event",),
        "What is kept depends on the table too.",
    ),
    Mutant(
        "baselines-separator-that-leaves-records-alike",
        "src/dualquery/baselines/sepfem.py",
        "np.flatnonzero(codes > 0)",
        "np.flatnonzero(codes > 1)",
        ("tests/baselines/test_sepfem.py::test_the_separator_tells_any_two_records_apart",),
        "Records that no perturbation tells apart are not perturbed against each other.",
    ),
    Mutant(
        "baselines-badness-of-the-last-synopsis-alone",
        "src/dualquery/baselines/boosting.py",
        "ramp = slope * np.arange(rounds, dtype=np.float64)",
        "ramp = slope * np.minimum(np.arange(rounds, dtype=np.float64), 1.0)",
        (
            "tests/baselines/test_boosting.py::test_the_events_are_draws_of_growing_range_and_measurements",
        ),
        "Badness adds up over synopses, and so does what a record moves.",
    ),
    Mutant(
        "baselines-drawn-counts-for-the-price-of-one",
        "src/dualquery/baselines/boosting.py",
        "l1=float(counts)",
        "l1=float(rounds)",
        (
            "tests/baselines/test_boosting.py::test_no_transcript_tells_neighbours_apart_by_more_than_the_pure_epsilon",
        ),
        "Every drawn query is measured.",
    ),
    Mutant(
        "baselines-badness-that-a-record-moves-by-three",
        "src/dualquery/baselines/boosting.py",
        "np.abs(table.counts - modelled) - self.accurate",
        "3 * np.abs(table.counts - modelled) - self.accurate",
        ("tests/baselines/test_boosting.py::test_a_record_moves_badness_by_at_most_one",),
        "A ramp that is steeper than one per record.",
    ),
)
