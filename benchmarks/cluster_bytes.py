"""Bytes per round between a client and many workers, simulated and on paper.

    python -m benchmarks cluster_bytes

Many small workers run in one process. What the client sends and receives in a round of draws is
pickled to be measured, and compared with the arithmetic of docs/decisions/cluster.md, which is then
worked out for 100 workers. DUALQUERY_WORKERS sets how many are simulated.
"""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.engines.cluster import RemoteShards
from dualquery.model.mixture import Mixture
from dualquery.privacy.sampler import draw
from dualquery.privacy.sources import SeededSource
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals

WORKERS = int(os.environ.get("DUALQUERY_WORKERS", "50"))
QUESTION, ANSWER = 200, 320
"""Bytes of a question and of an answer besides their arrays: names of classes and fields."""


class Weighing:
    """A Dask client that adds up what passes through it."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.sent: dict[str, int] = {}
        self.received: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def add(self, where: dict[str, int], what: str, value: object) -> None:
        where[what] = where.get(what, 0) + len(pickle.dumps(value, protocol=5))

    def scatter(self, value: Any, **options: Any) -> Any:
        what = "model" if isinstance(value, Mixture) else "births"
        self.add(self.sent, what, value.value if what == "births" else value)
        return self._client.scatter(value, **options)

    def submit(self, function: Any, *arguments: Any, **options: Any) -> Any:
        plain = [one for one in arguments if not hasattr(one, "result")]
        self.add(self.sent, "questions", plain)
        future = self._client.submit(function, *arguments, **options)
        return Weighed(future, self)


class Weighed:
    """A future whose result is weighed when it arrives."""

    def __init__(self, future: Any, client: Weighing) -> None:
        self._future, self._client = future, client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._future, name)

    def result(self, **options: Any) -> Any:
        found = self._future.result(**options)
        self._client.add(self._client.received, "answers", found and found.value)
        return found


def on_paper(workers: int, draws: int, buckets: int, codes: int, components: int) -> dict[str, int]:
    """Bytes of one round at the client: three questions per worker, and what they bring back."""
    return {
        "questions": 3 * workers * QUESTION + 16 * draws,
        "answers": 3 * workers * ANSWER + 8 * workers * buckets + 16 * draws,
        "model": 4 * components * (codes + 1),
    }


def run(workers: int = WORKERS) -> list[dict[str, Any]]:
    import distributed

    sizes, components, queries, draws = (16, 8, 8, 16, 7, 14, 6, 5, 2, 20, 41), 64, 20_000, 200
    schema = Schema(
        tuple(Attribute.categorical(f"a{i}", list(range(s))) for i, s in enumerate(sizes))
    )
    random = np.random.default_rng(0)
    tables = np.concatenate([random.dirichlet(np.ones(s), components).T for s in sizes])
    weights = random.dirichlet(np.ones(components))
    model = Mixture(schema, weights.astype(np.float32), tables.astype(np.float32))
    actions = Actions.plain(random_marginals(schema, 3, queries))
    counted = Counted(random.integers(0, 30_000, queries), 30_000)
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        weighing = Weighing(client)
        shards = RemoteShards(weighing, "bytes", actions, counted, 30_000)
        for number in range(2):  # the first round makes the shards
            weighing.sent.clear()
            weighing.received.clear()
            shards.news(100.0, model)
            draw(shards, draws, SeededSource(number))
    buckets = shards._totals.shape[1]
    paper = on_paper(workers, draws, buckets, len(tables), components)
    measured = {**weighing.sent, **weighing.received}
    rows = [
        {
            "what": what,
            "workers": workers,
            "bytes": measured[what],
            "on_paper": paper[what],
            "over_paper": measured[what] / paper[what],
        }
        for what in paper
    ]
    many = on_paper(100, 1000, buckets, 235, 512)
    rows += [{"what": what, "workers": 100, "on_paper": size} for what, size in many.items()]
    return rows
