"""From errors of a test to a lower bound on μ."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rates:
    """How often a test took one table for the other.

    Attributes:
        false_alarms: runs on the second table that were taken for the first.
        seconds: all runs on the second.
        misses: runs on the first table that were taken for the second.
        firsts: all runs on the first.
    """

    false_alarms: int
    seconds: int
    misses: int
    firsts: int

    def mu(self) -> tuple[float, float, float]:
        """Lower end, estimate and upper end of the μ at which the tables can be told apart.

        A μ-GDP mechanism keeps Φ⁻¹(1 − a) − Φ⁻¹(b) ≤ μ for the error rates a and b of every test.
        Each rate is below the upper end of its Clopper-Pearson interval with a probability of
        97.5 %, so both are with 95 %.
        """
        tail = (1.0 - CONFIDENCE) / 2.0
        pairs = ((self.false_alarms, self.seconds), (self.misses, self.firsts))
        high = [_upper(errors, runs, tail) for errors, runs in pairs]
        low = [1.0 - _upper(runs - errors, runs, tail) for errors, runs in pairs]
        rates = [(errors + 0.5) / (runs + 1.0) for errors, runs in pairs]
        return _apart(*high), _apart(*rates), _apart(*low)


def _upper(errors: int, runs: int, tail: float) -> float:
    """The upper end of the one-sided Clopper-Pearson interval of a rate."""
    if errors >= runs:
        return 1.0
    return float(stats.beta.ppf(1.0 - tail, errors + 1, runs - errors))


def _apart(first: float, second: float) -> float:
    return max(0.0, float(-stats.norm.ppf(first) - stats.norm.ppf(second)))
