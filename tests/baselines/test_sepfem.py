"""sepFEM: its separator, its leader against a plain twin, and the draws and cost of FEM."""

from __future__ import annotations

import numpy as np

from dualquery.baselines.fem import Fem, Settings
from dualquery.baselines.sepfem import SeparatorLeader, SepFem
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.privacy.sources import SeededSource
from dualquery.workloads.generators import random_marginals
from tests.baselines.test_mwem import wide
from tests.baselines.test_projection import universe

FEW = Settings(rounds=3, records=4, perturbation=1.5)


def test_the_separator_tells_any_two_records_apart() -> None:
    schema = Schema(
        (Attribute.binary("a"), Attribute.categorical("b", ["x", "y", "z"]), Attribute.binary("c"))
    )
    leader = SeparatorLeader(random_marginals(schema, 2, 60), FEW, None)
    values = universe(leader.singles)
    assert len(leader.singles) == 1 + 2 + 1
    assert len(np.unique(values, axis=0)) == len(values)


def test_the_leader_answers_like_the_plain_twin() -> None:
    _, workload, _ = wide(6, 100, 50)
    leader = SeparatorLeader(workload, FEW, None)
    drawn = [(3, 1), (17, -1), (3, 1), (40, 1), (41, -1)]
    noises = leader.noise(len(drawn))
    assert (noises < 0).any()
    assert (noises > 0).any()
    every = np.array(list(np.ndindex(*(2,) * 6)))
    payoff = sum(sign * universe(workload)[:, query] for query, sign in drawn)
    for record, noise in zip(leader.respond(drawn), noises, strict=True):
        total = payoff + every @ noise
        place = int(np.flatnonzero((every == record).all(axis=1))[0])
        assert total[place] >= total.max() - 0.01, "up to the rounding of perturbations"


def test_draws_and_cost_are_those_of_fem() -> None:
    _, workload, counted = wide(6, 1000, 50)
    made, fem = (
        kind.fit(counted, workload, epsilon=1.0, delta=1e-6, source=SeededSource(1), settings=FEW)
        for kind in (SepFem, Fem)
    )
    assert made.drawn[0] == fem.drawn[0], "nothing was played before"
    assert made.privacy == fem.privacy
    assert (made.name, fem.name) == ("sepfem", "fem")
