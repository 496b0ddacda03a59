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
        "src/dualquery/baselines/projection.py",
        "scale = float(rational_scale(l1 / epsilon))",
        "scale = float(rational_scale(l2 / epsilon))",
        (
            "tests/baselines/test_projection.py::test_no_noisy_counts_tell_neighbours_apart_by_more_than_the_pure_epsilon",
        ),
        "Laplace noise for an L2 distance: m counts move by m in L1, not by √m.",
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
)
