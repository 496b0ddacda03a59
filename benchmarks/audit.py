"""A statistical audit: how well can neighbours really be told apart from the draws?

    python -m benchmarks.audit [--runs 10000]

Two tables of the same size differ in one record: x in one, its complement in the other. The
workload asks for every attribute alone, so the two records differ on every query. The classical
game is played many times on either table, through the package's own exponents and draws; each
run is then judged by the likelihood ratio of its draws, the best test there is. With the threshold
fixed beforehand at 0, rates a of false and b of true alarms show a μ of at least Φ⁻¹(b) − Φ⁻¹(a).

A correct and tight accountant claims more than this estimate, but not much more: above the claim
the privacy statement would be false, below 80% of it the audit would be too weak to notice.
"""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dualquery.privacy.events import Events, record_player_temperatures
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sampler import Draws, draw
from dualquery.privacy.shards import Shard
from dualquery.privacy.sources import RandomSource, SystemSource

ATTRIBUTES = 3
ROWS = 21
ETA = 2.0
SAMPLES = 8
ROUNDS = 5


class Table:
    """The counts of one table, and the log-probabilities of all actions under it."""

    def __init__(self, last_record: int) -> None:
        # Besides the last record, each attribute is on in half of the records.
        self.counts = np.full(ATTRIBUTES, (ROWS - 1) // 2 + last_record, dtype=np.int64)
        self.shard = Shard(ATTRIBUTES)

    def play(self, temperature: float, answers: NDArray[np.float64]) -> None:
        """Weigh the actions against the answers so far: the package's own exponents."""
        self.shard.score(self.counts, answers, temperature, size=ROWS, reference=ROWS)

    def log_likelihood(self, draws: Draws) -> float:
        """The log-probability of the draws, for the exponents as they stand."""
        exponents = self.shard.exponents
        total = math.log(float(np.sum(2.0 * np.cosh(exponents))))
        drawn = np.where(draws.negated, -exponents[draws.queries], exponents[draws.queries])
        return float(np.sum(drawn)) - len(draws) * total


def best_response(draws: Draws) -> NDArray[np.float64]:
    """The record that satisfies most drawn queries: each attribute by its own majority."""
    votes = np.where(draws.negated, -1.0, 1.0)
    return (np.bincount(draws.queries, votes, ATTRIBUTES) > 0.0).astype(np.float64)


def one_run(truth: Table, other: Table, source: RandomSource) -> float:
    """Play the game on `truth`; how much likelier its draws are than under `other`, as a log."""
    played = np.zeros(ATTRIBUTES)
    ratio = 0.0
    for number, temperature in enumerate(record_player_temperatures(ETA, ROUNDS)):
        answers = played / max(number, 1)
        truth.play(temperature, answers)
        other.play(temperature, answers)
        draws = draw(truth.shard, SAMPLES, source)
        ratio += truth.log_likelihood(draws) - other.log_likelihood(draws)
        played += best_response(draws)
    return ratio


def run(runs: int = 10_000, source: RandomSource | None = None) -> list[dict[str, Any]]:
    """One row: the claimed μ, the estimate from the runs, its standard error, and the verdict."""
    source = SystemSource() if source is None else source
    with_x, with_complement = Table(1), Table(0)
    true_alarms = sum(one_run(with_x, with_complement, source) > 0.0 for _ in range(runs))
    false_alarms = sum(one_run(with_complement, with_x, source) < 0.0 for _ in range(runs))
    events = Events.of(
        record_player_temperatures(ETA, ROUNDS), SAMPLES, ROWS, Neighbours.REPLACE_ONE
    )
    claimed = math.sqrt(events.mu_squared)
    rates = [true_alarms / runs, false_alarms / runs]
    high, low = (float(ndtri(rate)) for rate in rates)
    variance = sum(
        rate * (1.0 - rate) / runs * 2.0 * math.pi * math.exp(point * point)
        for rate, point in zip(rates, (high, low), strict=True)
    )
    estimate = high - low
    return [
        {
            "runs": runs,
            "claimed_mu": claimed,
            "estimated_mu": estimate,
            "standard_error": math.sqrt(variance),
            "estimate_over_claim": estimate / claimed,
            "passed": 0.8 * claimed < estimate < claimed,
        }
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="runs on each table")
    rows = run(parser.parse_args().runs)
    print(json.dumps(rows))
    if not all(row["passed"] for row in rows):
        raise SystemExit("the audit failed")


if __name__ == "__main__":
    main()
