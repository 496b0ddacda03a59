"""Mistakes in the noise on measured counts, and in what it costs."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "noise-sensitivity-of-replacing",
        "src/dualquery/privacy/neighbours.py",
        "return math.sqrt(2.0) if self is Neighbours.REPLACE_ONE else 1.0",
        "return 1.0 if self is Neighbours.REPLACE_ONE else 1.0",
        (
            "tests/privacy/test_measurements.py::test_the_rounded_gaussian_mechanism_costs_what_its_event_says",
        ),
        "A replaced record changes two cells: the cost would be √2 times what is stated.",
    ),
    Mutant(
        "noise-l1-of-replacing",
        "src/dualquery/privacy/neighbours.py",
        "return 2.0 if self is Neighbours.REPLACE_ONE else 1.0",
        "return 1.0 if self is Neighbours.REPLACE_ONE else 1.0",
        (
            "tests/privacy/test_measurements.py::test_the_discrete_laplace_mechanism_costs_what_its_event_says",
        ),
        "Δ₁ = 1 instead of 2 under replacement: half of the true pure ε is stated.",
    ),
    Mutant(
        "noise-sigma-one-per-cent-small",
        "src/dualquery/privacy/noise.py",
        "math.frexp(check_sigma(sigma))",
        "math.frexp(check_sigma(sigma) * 0.99)",
        ("tests/privacy/test_noise.py::test_rounded_gaussian_has_its_exact_probabilities",),
        "The noise is one per cent smaller than the σ that is paid for.",
    ),
    Mutant(
        "noise-event-one-per-cent-cheap",
        "src/dualquery/privacy/events.py",
        "return (self.l2 / self.scale) ** 2",
        "return (self.l2 / (1.01 * self.scale)) ** 2",
        (
            "tests/privacy/test_measurements.py::test_the_rounded_gaussian_mechanism_costs_what_its_event_says",
        ),
        "The event charges for a σ that is one per cent larger than the noise's.",
    ),
    Mutant(
        "noise-rounded-towards-zero",
        "src/dualquery/privacy/_noise_kernels.py",
        "base = mantissa * np.uint64(whole) + (one << np.uint64(shift - 1))",
        "base = mantissa * np.uint64(whole)",
        ("tests/privacy/test_noise.py::test_rounded_gaussian_has_its_exact_probabilities",),
        "Truncation instead of rounding: c + trunc(σN) is no function of c + σN.",
    ),
    Mutant(
        "noise-sign-bit-used-twice",
        "src/dualquery/privacy/_noise_kernels.py",
        (
            "        negative, at = _take(words, at, 1)\n"
            "        if at >= SPENT:\n"
            "            return done, start\n"
            "        out[done] = -size if negative else size"
        ),
        (
            "        negative, _ = _take(words, at - 1, 1)\n"
            "        if at >= SPENT:\n"
            "            return done, start\n"
            "        out[done] = -size if negative else size"
        ),
        ("tests/privacy/test_noise.py::test_sign_size_and_neighbouring_values_are_independent",),
        "The sign is the last bit of the size's digits: sign and size depend on one another.",
    ),
    Mutant(
        "noise-sign-bit-also-begins-the-next-value",
        "src/dualquery/privacy/_noise_kernels.py",
        (
            "        out[done] = -size if negative else size\n"
            "        done += 1\n"
            "    return done, at\n"
            "\n"
            "\n"
            "@njit()\n"
            "def _exp_minus"
        ),
        (
            "        out[done] = -size if negative else size\n"
            "        done += 1\n"
            "        at -= 1\n"
            "    return done, at\n"
            "\n"
            "\n"
            "@njit()\n"
            "def _exp_minus"
        ),
        ("tests/privacy/test_noise.py::test_sign_size_and_neighbouring_values_are_independent",),
        "The sign bit is read again as the first bit of the next value.",
    ),
    Mutant(
        "noise-digits-kept-for-the-next-value",
        "src/dualquery/privacy/_noise_kernels.py",
        ("        depth = 0\n        if kept:\n            for _ in range(whole + 1):"),
        (
            "        depth = 1 if at > 64 else 0\n"
            "        if kept:\n"
            "            for _ in range(whole + 1):"
        ),
        ("tests/privacy/test_noise.py::test_sign_size_and_neighbouring_values_are_independent",),
        "A value begins with the first digit of the last one.",
    ),
    Mutant(
        "noise-begun-value-dropped-at-the-end-of-a-block",
        "src/dualquery/privacy/noise.py",
        (
            "words = np.concatenate([words[at >> 6 :], fresh])\n"
            "        done, at = fill(words, at & 63, out, done)"
        ),
        ("words = fresh\n        done, at = fill(words, 0, out, done)"),
        (
            "tests/privacy/test_noise.py::test_a_value_cut_by_the_end_of_a_block_is_made_from_the_same_bits",
        ),
        "Values that need few bits are favoured.",
    ),
    Mutant(
        "noise-comparison-stops-at-a-tie",
        "src/dualquery/privacy/_noise_kernels.py",
        "if fresh != digits[place] or at >= SPENT:",
        "if place >= 0:",
        ("tests/privacy/test_noise.py::test_rounded_gaussian_reads_the_bits_as_its_twin_does",),
        "Comparisons of uniform numbers end after one digit, as floats would.",
    ),
    Mutant(
        "noise-rounding-undecided-taken-as-down",
        "src/dualquery/privacy/_noise_kernels.py",
        ("        if known == 64:\n            break\n"),
        ("        if known == 64:\n            return value, at\n"),
        ("tests/privacy/test_noise.py::test_digits_are_drawn_until_the_rounding_is_decided",),
        "Rounding is decided by 64 bits, whether they decide it or not.",
    ),
    Mutant(
        "noise-rounding-decided-too-early",
        "src/dualquery/privacy/_noise_kernels.py",
        "if end_high < unit or (end_high == unit and end_low == none):",
        "if end_high < unit or known >= 16:",
        ("tests/privacy/test_noise.py::test_rounded_gaussian_has_its_exact_probabilities",),
        "A rounding that 16 bits do not decide is taken as decided.",
    ),
    Mutant(
        "noise-accept-one-coin-too-few",
        "src/dualquery/privacy/_noise_kernels.py",
        "for _ in range(whole + 1):",
        "for _ in range(max(whole, 1)):",
        ("tests/privacy/test_noise.py::test_rounded_gaussian_has_its_exact_probabilities",),
        "The density is not that of a normal variable beyond one deviation.",
    ),
    Mutant(
        "noise-whole-part-kept-too-often",
        "src/dualquery/privacy/_noise_kernels.py",
        "for _ in range(whole * (whole - 1)):",
        "for _ in range(whole):",
        ("tests/privacy/test_noise.py::test_rounded_gaussian_has_its_exact_probabilities",),
        "Whole parts have the wrong weights: tails are too heavy.",
    ),
    Mutant(
        "noise-zero-with-two-signs",
        "src/dualquery/privacy/_noise_kernels.py",
        "if size > 0 or not negative:",
        "if size >= 0:",
        ("tests/privacy/test_noise.py::test_discrete_laplace_has_its_exact_probabilities",),
        "Laplace noise of 0 has twice its share, and the ratio of 0 to 1 exceeds e^ε.",
    ),
    Mutant(
        "noise-laplace-without-its-remainder-test",
        "src/dualquery/privacy/_noise_kernels.py",
        ("            if not kept:\n                continue\n            whole = 0"),
        "            whole = 0",
        ("tests/privacy/test_noise.py::test_discrete_laplace_has_its_exact_probabilities",),
        "The remainder is uniform: noise has steps, and the ratio at a step exceeds e^ε.",
    ),
    Mutant(
        "noise-gaussian-left-out-of-the-pure-sum",
        "src/dualquery/privacy/accountants/protocol.py",
        "    if not np.all(np.isfinite(costs)):",
        ("    costs = costs[np.isfinite(costs)]\n    if costs.size > events.draws.size + 10**9:"),
        (
            "tests/privacy/test_measurements.py::test_accountants_of_bounded_loss_refuse_gaussian_noise",
        ),
        "Accountants of bounded loss would leave Gaussian noise out instead of refusing it.",
    ),
    Mutant(
        "noise-laplace-left-out-of-steps",
        "src/dualquery/privacy/accountants/protocol.py",
        "return np.append(draws, np.ones(costs.size)), np.append(ranges, costs)",
        "return draws, ranges",
        ("tests/privacy/test_measurements.py::test_costs_add_up_over_draws_and_measurements",),
        "Measurements with Laplace noise are free under the pure accountant.",
    ),
    Mutant(
        "noise-measurements-left-out-of-mu",
        "src/dualquery/privacy/events.py",
        "return drawn + math.fsum(event.mu_squared for event in self.measurements)",
        "return drawn",
        (
            "tests/privacy/test_measurements.py::test_the_rounded_gaussian_mechanism_costs_what_its_event_says",
        ),
        "Measurements are free under the Gaussian accountant and in the ledger.",
    ),
    Mutant(
        "noise-measurements-left-out-of-rho",
        "src/dualquery/privacy/events.py",
        "return drawn + math.fsum(event.rho for event in self.measurements)",
        "return drawn",
        (
            "tests/privacy/test_measurements.py::test_the_rounded_gaussian_mechanism_costs_what_its_event_says",
        ),
        "Measurements are free under the zero-concentrated accountant.",
    ),
    Mutant(
        "noise-measurements-lost-in-composition",
        "src/dualquery/privacy/events.py",
        (
            "self.measurements + other.measurements,\n"
            "            self.after + tuple(self.draws.size + place for place in other.after),"
        ),
        ("self.measurements,\n            self.after,"),
        ("tests/privacy/test_measurements.py::test_costs_add_up_over_draws_and_measurements",),
        "The measurements of a later part of a run are not charged.",
    ),
    Mutant(
        "noise-mu-of-laplace-as-if-gaussian",
        "src/dualquery/privacy/events.py",
        "(2.0 * _normal_quantile_of_logistic(self.pure) * _ROUNDED_UP) ** 2",
        "(self.pure * _ROUNDED_UP) ** 2",
        ("tests/privacy/test_measurements.py::test_mu_of_laplace_noise_is_the_coins",),
        "Μ = ε₀, which is too small for one release: a coin is not that close to a Gaussian pair.",
    ),
    Mutant(
        "noise-replacing-costs-as-adding",
        "src/dualquery/privacy/events.py",
        "l1=2.0 * self.l1, l2=math.sqrt(2.0) * self.l2",
        "l1=2.0 * self.l1, l2=self.l2",
        ("tests/privacy/test_measurements.py::test_replacing_a_record_of_an_add_remove_run",),
        "The statement's figure for replacing a record is the one for adding it.",
    ),
    Mutant(
        "noise-infinite-pure-cost-stored-as-nothing",
        "src/dualquery/privacy/ledger/rule.py",
        "return cls(events.mu_squared, math.inf, slack)",
        "return cls(events.mu_squared, 0.0, slack)",
        ("tests/privacy/test_measurements.py::test_measurements_are_charged_to_a_ledger",),
        "The ledger takes the smaller total, so Gaussian noise would cost nothing.",
    ),
    Mutant(
        "noise-sigma-rounded-down",
        "src/dualquery/privacy/scales.py",
        "return _smallest(math.sqrt(needed), lambda sigma: sigma * sigma >= needed)",
        "return math.nextafter(math.sqrt(needed), 0.0)",
        (
            "tests/privacy/test_measurements.py::test_sigma_is_the_smallest_that_is_within_its_share",
        ),
        "The noise for a share of the budget is a little too small.",
    ),
    Mutant(
        "noise-groups-forget-measurements",
        "src/dualquery/privacy/events.py",
        "tuple(replace(e, l1=size * e.l1, l2=size * e.l2) for e in self.measurements),",
        "self.measurements,",
        (
            "tests/privacy/test_measurements.py::test_a_group_of_records_moves_counts_as_often_as_it_is_large",
        ),
        "The stated ε for several records of one person counts measurements for one record.",
    ),
)
