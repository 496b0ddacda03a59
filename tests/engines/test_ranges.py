"""The whole job on neighbouring tables: no round's weights move by more than is charged for it.

From the table through counting, the plan and an engine to the very weights that are drawn from. The
reference size is far from the number of rows, so whoever divides by the wrong one is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.engines import cluster
from dualquery.estimator import DualQuery
from dualquery.game import query_player
from dualquery.privacy.neighbours import ROUNDING_CHARGE
from dualquery.privacy.sampler import Draws
from dualquery.workloads.generators import random_marginals
from tests.privacy.enumerated import log_weights

SCHEMA = Schema(tuple(Attribute.binary(name) for name in "abc"))
WORKLOAD = random_marginals(SCHEMA, 2, 12)
ROWS, REFERENCE, ROUNDS, SAMPLES = 20, 60, 3, 4
RUN = {
    "epsilon": 50.0,
    "delta": 1e-3,
    "rounds": ROUNDS,
    "samples": SAMPLES,
    "eta": 2.0,
    "refit": False,
    "errors": False,
    "seed": 1,
}
# What distributed warns about on its own account is not ours to fail on.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Two workers in this process: they start at once."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as running:
        yield running.scheduler_address


def rows_of(size: int, last: int) -> pa.Table:
    """Random rows, the last one all zeros or all ones."""
    cells = np.random.default_rng(3).integers(0, 2, (size, 3))
    cells[-1] = last
    return pa.table({name: cells[:, i] for i, name in enumerate("abc")})


NEIGHBOURS = {
    "replace-one": ({}, rows_of(ROWS, 0), rows_of(ROWS, 1), ROWS),
    "add-remove": (
        {"neighbours": "add-remove", "rows": REFERENCE},
        rows_of(ROWS + 1, 1).slice(0, ROWS),
        rows_of(ROWS + 1, 1),
        REFERENCE,
    ),
}


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[np.ndarray]]:
    """Draws are replaced by a script that looks at the weights; call to take what it saw."""
    seen: list[np.ndarray] = []

    def look(actions, samples, source) -> Draws:
        seen.append(log_weights(actions))
        random = np.random.default_rng(len(seen) % ROUNDS)
        return Draws(random.integers(0, len(WORKLOAD), samples), random.random(samples) < 0.5)

    for module in (query_player, cluster):
        monkeypatch.setattr(module, "draw", look)

    def take() -> list[np.ndarray]:
        taken = list(seen)
        seen.clear()
        return taken

    return take


@pytest.mark.parametrize("player", ["model", "record"])
@pytest.mark.parametrize("unit", NEIGHBOURS)
@pytest.mark.parametrize("engine", ["local", "dask"])
def test_a_round_moves_by_its_range_and_no_more(
    engine: str, unit: str, player: str, weights, request: pytest.FixtureRequest
) -> None:
    extra, table, neighbour, reference = NEIGHBOURS[unit]
    where = {"engine": "dask", "scheduler": request.getfixturevalue("address")}
    job = DualQuery(**RUN, **extra, player=player, **(where if engine == "dask" else {}))
    met = []
    for one in (table, neighbour):
        job.fit(one, schema=SCHEMA, workload=WORKLOAD)
        met.append(weights())
    claimed = job.plan(reference, SCHEMA, WORKLOAD).events
    assert len(met[0]) == len(met[1]) == ROUNDS
    for one, other, charged in zip(*met, claimed.ranges.tolist(), strict=True):
        moved = float(np.ptp(other - one))
        assert moved <= charged
        # The charge for rounding is all that separates truth and claim.
        assert moved >= charged - 2.0 * ROUNDING_CHARGE
