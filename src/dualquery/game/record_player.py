"""The paper's data player: one record per round, found by an oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.domain.free import Filling, Free
from dualquery.game.moves import Move, RecordMove, expect
from dualquery.oracles.oracle import Oracle
from dualquery.oracles.problem import Problem
from dualquery.privacy.sampler import Draws
from dualquery.workloads.matching import add_matches, share
from dualquery.workloads.workload import Workload

WARM_STARTS = 4
"""How many of the last records an oracle may start from."""


@dataclass(frozen=True, eq=False)
class Played:
    """The records so far, and per query how many of them satisfy it."""

    records: tuple[npt.NDArray[np.int32], ...]
    matches: npt.NDArray[np.int32]


class RecordPlayer:
    """Best responses: round t plays a record that satisfies as many draws as it can find.

    Its strategy is the uniform distribution over the records so far, so its answers are
    their mean.
    """

    def __init__(
        self,
        workload: Workload,
        oracle: Oracle,
        *,
        free: Filling = Free.DEFAULT,
        seed: int = 0,
    ) -> None:
        self.workload = workload
        self.oracle = oracle
        self.free = free
        self.seed = seed

    def start(self) -> Played:
        return Played((), np.zeros(len(self.workload), dtype=np.int32))

    def answers(self, state: Played) -> npt.NDArray[np.float64]:
        return share(state.matches, max(1, len(state.records)))

    def respond(self, state: Played, temperature: float, draws: Draws) -> RecordMove:
        generator = np.random.default_rng([self.seed, len(state.records)])
        problem = Problem.of(
            self.workload,
            draws.queries,
            1 - 2 * draws.negated.astype(np.int8),
            defaults=self.free.record(self.workload.schema, generator),
            constraints=self.workload.schema.constraints,
        )
        response = self.oracle(
            problem, warm_starts=state.records[-WARM_STARTS:], generator=generator
        )
        return RecordMove(
            response.record.astype(np.int32),
            int(response.value),
            None if response.bound is None else float(response.bound),
            response.status,
        )

    def replay(self, state: Played, temperature: float, draws: Draws, move: Move) -> Played:
        record = expect(RecordMove, move).record
        matches = state.matches.copy()
        add_matches(self.workload, record, matches)
        return Played((*state.records, record), matches)
