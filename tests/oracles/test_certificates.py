"""Gaps, and the accuracy theorem applied to finished games."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.game.moves import RecordMove
from dualquery.oracles.certificates import accuracy_guarantee, log_universe_size
from tests.oracles.problems import PEOPLE

RECORD = np.zeros(6, dtype=np.int32)


def theorem(alpha: float, **changes):
    log_universe, queries, beta = 235 * math.log(2), 500_000, 0.05
    rounds = math.ceil(16 * math.log(2 * queries) / alpha**2)
    samples = math.ceil(48 * (math.log(2 * rounds / beta) + log_universe) / alpha**2)
    parameters = {
        "alpha": alpha,
        "beta": beta,
        "rounds": rounds,
        "samples": samples,
        "eta": alpha / 4,
        "queries": queries,
        "log_universe": log_universe,
        "gaps": [alpha / 4] * rounds,
    }
    parameters |= changes
    return accuracy_guarantee(**parameters)


@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.5])
def test_the_theorems_parameters_give_its_guarantee(alpha: float) -> None:
    found = theorem(alpha)
    assert (found.alpha, found.beta) == (alpha, 0.05)
    assert found.within_every_round
    assert found.parameters_met
    assert found.error_bound <= alpha
    rounds = found.rounds_needed
    # One bad round breaks the condition as stated, not what the proof needs.
    bad = theorem(alpha, gaps=[1.0] + [0.0] * (rounds - 1))
    assert not bad.within_every_round
    assert bad.within_on_average
    assert bad.alpha == alpha


def test_each_condition_is_needed() -> None:
    alpha = 0.2
    good = theorem(alpha)
    rounds = good.rounds_needed
    assert theorem(alpha, samples=good.samples_needed - 1).alpha is None
    assert theorem(alpha, eta=2.0).alpha is None
    assert theorem(alpha, rounds=rounds - 1, gaps=[0.0] * (rounds - 1)).alpha is None
    assert theorem(alpha, gaps=[alpha / 3] * rounds).alpha is None
    unknown = theorem(alpha, gaps=[None] + [0.0] * (rounds - 1))
    assert unknown.alpha is None
    assert unknown.error_bound == math.inf
    with pytest.raises(ParameterError, match="expected one gap per round"):
        theorem(alpha, gaps=[0.0])
    with pytest.raises(ParameterError, match="alpha = 2"):
        accuracy_guarantee(
            alpha=2, beta=0.1, rounds=1, samples=1, eta=1, queries=1, log_universe=1, gaps=[0]
        )


def test_gaps_are_shares_of_the_draws() -> None:
    assert RecordMove(RECORD, 8, 10.0, "feasible").gap(20) == 0.1
    assert RecordMove(RECORD, 8, None, "feasible").gap(20) is None
    assert RecordMove(RECORD, 0, 0.0, "optimal").gap(0) == 0.0
    assert log_universe_size(PEOPLE) == pytest.approx(math.log(2 * 4 * 5 * 2 * 2 * 4))
