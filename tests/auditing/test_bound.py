"""A lower bound on μ that holds as often as it says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dualquery.auditing.bound import Rates


def test_the_bound_of_known_rates() -> None:
    low, found, high = Rates(100, 1000, 100, 1000).mu()
    assert found == pytest.approx(-2 * stats.norm.ppf(0.1), abs=0.01)
    # The limits of Clopper and Pearson of 100 in 1,000, as they are tabulated.
    assert low == pytest.approx(-2 * stats.norm.ppf(0.12029), abs=1e-3)
    assert high == pytest.approx(-2 * stats.norm.ppf(0.08212), abs=1e-3)


def test_a_test_that_is_always_or_never_wrong() -> None:
    low, _, high = Rates(0, 100, 0, 100).mu()
    assert 3.5 < low < 3.7
    assert high == np.inf
    assert Rates(100, 100, 100, 100).mu()[0] == 0.0


def test_it_is_above_the_truth_in_one_of_forty_cases_at_most() -> None:
    random = np.random.default_rng(5)
    for mu in (0.5, 2.7):
        errors = stats.norm.cdf(-mu / 2)
        bounds = [
            Rates(int(a), 300, int(b), 300).mu()[0]
            for a, b in random.binomial(300, errors, (400, 2))
        ]
        assert np.mean(np.array(bounds) > mu) <= 0.06
        assert np.mean(bounds) > mu - 0.45
