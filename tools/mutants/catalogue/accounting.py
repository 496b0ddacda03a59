"""Mistakes in ranges, events, accountants, calibration and plans."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_NEIGHBOURS = "src/dualquery/privacy/neighbours.py"
_EVENTS = "src/dualquery/privacy/events.py"
_CALIBRATION = "src/dualquery/privacy/calibration.py"
_ENUMERATED = "tests/privacy/test_enumeration.py::test_every_claim_holds_and_is_nearly_reached"
_PUBLISHED = "tests/privacy/test_accountants.py::test_reference_values"
_ONE_ROUND = (
    "tests/privacy/test_accountants.py::test_no_accountant_is_below_the_truth_for_one_round"
)

MUTANTS = (
    Mutant(
        "range-halved-under-replacement",
        _NEIGHBOURS,
        "factor = 2.0 if self is Neighbours.REPLACE_ONE else 1.0",
        "factor = 1.0 if self is Neighbours.REPLACE_ONE else 1.0",
        (_ENUMERATED,),
        "Replacing a record moves one count up and another down; half of that would be charged.",
    ),
    Mutant(
        "rounding-not-charged",
        _NEIGHBOURS,
        "ideal + rounding_charge(beta)",
        "ideal",
        (
            "tests/privacy/test_neighbours.py::"
            "test_temperature_zero_is_free_and_everything_else_pays_for_rounding",
        ),
        "The weights that are drawn from are rounded; nothing would be paid for that.",
    ),
    Mutant(
        "rounding-charge-does-not-grow",
        _NEIGHBOURS,
        "np.maximum(1.0, beta / COVERED_TEMPERATURE)",
        "np.maximum(1.0, 0.0 * beta)",
        (
            "tests/privacy/test_neighbours.py::"
            "test_the_rounding_charge_grows_with_exponents_beyond_the_covered_ones",
        ),
        "At temperatures above 2048 rounding would cost more than is paid for it.",
    ),
    Mutant(
        "cool-rounds-for-free",
        _NEIGHBOURS,
        "np.where(beta > 0.0,",
        "np.where(beta > 1.0,",
        (
            "tests/privacy/test_neighbours.py::"
            "test_temperature_zero_is_free_and_everything_else_pays_for_rounding",
        ),
        "Only temperature 0 is free; rounds at temperature 1 and below would be, too.",
    ),
    Mutant(
        "one-round-late",
        _EVENTS,
        "return float(rates[0]) * np.arange(rounds, dtype=np.float64)",
        "return float(rates[0]) * np.arange(1, rounds + 1, dtype=np.float64)",
        ("tests/privacy/test_events.py::test_a_constant_eta_gives_eta_times_rounds_before",),
        "With t for t − 1 the first round is not uniform, so it is not free.",
    ),
    Mutant(
        "gaussian-with-s-for-s-plus-one",
        _EVENTS,
        "float(np.sum((draws + 1.0) * ranges * ranges)) / 4.0",
        "float(np.sum(draws * ranges * ranges)) / 4.0",
        (_ONE_ROUND,),
        "The theorem needs s + 1; with s it is false for few draws per round.",
    ),
    Mutant(
        "rho-halved",
        _EVENTS,
        "float(np.sum(draws * ranges * ranges)) / 8.0",
        "float(np.sum(draws * ranges * ranges)) / 16.0",
        (_ENUMERATED,),
        "The zero-concentrated cost would be half of the truth.",
    ),
    Mutant(
        "small-ranges-for-free",
        _EVENTS,
        "keep = (self.draws > 0) & (self.ranges > 0.0)",
        "keep = (self.draws > 0) & (self.ranges > 1e-4)",
        ("tests/privacy/test_accountants.py::test_a_million_rounds",),
        "Many cheap rounds are not free together.",
    ),
    Mutant(
        "replacing-costs-like-removing",
        _EVENTS,
        "            2.0 * self.ranges,\n",
        "            1.0 * self.ranges,\n",
        ("tests/privacy/test_events.py::test_composition_concatenates",),
        "An add-remove run would be said to cost the same under replacement.",
    ),
    Mutant(
        "gaussian-epsilon-rounded-down",
        "src/dualquery/privacy/accountants/gaussian.py",
        "return root + GUARD * (root + 0.1 * mu)",
        "return root - GUARD * (root + 0.1 * mu)",
        (
            "tests/privacy/test_accountants.py::"
            "test_gaussian_never_under_reports_and_hardly_over_reports",
        ),
        "The ε that is stated would be below the one that is proved.",
    ),
    Mutant(
        "zcdp-conversion-with-the-wrong-sign",
        "src/dualquery/privacy/accountants/zcdp.py",
        "-(math.log(delta) + math.log1p(above)) / above,",
        "-(math.log(delta) + 2.0 * math.log1p(above)) / above,",
        ("tests/privacy/test_accountants.py::test_zcdp_is_the_best_order",),
        "ε from ρ would be below what the conversion proves.",
    ),
    Mutant(
        "per-round-without-drift",
        "src/dualquery/privacy/accountants/per_round.py",
        "drift = float(np.sum(steps * costs * np.expm1(costs)))",
        "drift = 0.0 * float(np.sum(steps * costs * np.expm1(costs)))",
        (_PUBLISHED,),
        "The mean of the privacy loss would be left out.",
    ),
    Mutant(
        "advanced-at-the-mean-range",
        "src/dualquery/privacy/accountants/advanced.py",
        "float(np.sum(steps)), float(np.max(costs))",
        "float(np.sum(steps)), float(np.mean(costs))",
        (_PUBLISHED,),
        "The theorem takes the largest range of all rounds.",
    ),
    Mutant(
        "pure-forgets-the-samples",
        "src/dualquery/privacy/accountants/pure.py",
        "return float(np.sum(steps * costs)) * (1.0 + GUARD)",
        "return float(np.sum(costs)) * (1.0 + GUARD)",
        ("tests/privacy/test_accountants.py::test_pure_is_the_papers_closed_form",),
        "A round of a thousand draws would cost as much as one of a single draw.",
    ),
    Mutant(
        "budget-stretched-by-a-thousandth",
        _CALIBRATION,
        "return self.cost(events) <= self.epsilon",
        "return self.cost(events) <= self.epsilon * 1.001",
        ("tests/game/test_game.py::TestPlan::test_two_of_three",),
        "Calibrated runs would cost more than the ε that was asked for.",
    ),
    Mutant(
        "first-that-does-not-fit",
        _CALIBRATION,
        "        low, high = (middle, high) if fits(middle) else (low, middle)\n"
        "    return low\n\n\ndef _two",
        "        low, high = (middle, high) if fits(middle) else (low, middle)\n"
        "    return high\n\n\ndef _two",
        ("tests/privacy/test_calibration.py::test_rounds_the_theorems_allow",),
        "The first number of rounds that is too expensive would be taken for the last that fits.",
    ),
    Mutant(
        "scale-from-the-upper-end",
        _CALIBRATION,
        "        low, high = (middle, high) if fits(middle) else (low, middle)\n"
        "    return low\n\n\ndef last",
        "        low, high = (middle, high) if fits(middle) else (low, middle)\n"
        "    return high\n\n\ndef last",
        ("tests/privacy/test_calibration.py::test_a_ramp_of_any_shape",),
        "The calibrated temperatures would cost more than the ε that was asked for.",
    ),
    Mutant(
        "budget-always-add-remove",
        _CALIBRATION,
        "return Events.of(temperatures, draws, self.rows, self.unit)",
        "return Events.of(temperatures, draws, self.rows, Neighbours.ADD_REMOVE)",
        ("tests/privacy/test_calibration.py::test_rounds_the_theorems_allow",),
        "Replace-one runs would be charged half of what they cost.",
    ),
    Mutant(
        "given-parameters-not-checked",
        "src/dualquery/game/plan.py",
        "        if cost > self.budget.epsilon:\n",
        "        if False:\n",
        ("tests/game/test_game.py::TestPlan::test_one_or_three",),
        "Rounds, samples and eta given together would pass whatever they cost.",
    ),
)
