"""Releases made without a game, for pages of any shape."""

from __future__ import annotations

import numpy as np

from dualquery.domain.attributes import Attribute
from dualquery.domain.free import Free
from dualquery.domain.query import Query
from dualquery.domain.schema import Schema
from dualquery.game.moves import ModelMove, RecordMove
from dualquery.game.plan import Player
from dualquery.game.transcript import Round, Transcript
from dualquery.model.forest.edges import Edges
from dualquery.model.forest.trees import Trees
from dualquery.model.mixture import Mixture
from dualquery.model.pair_kinds import PAIR_KINDS
from dualquery.model.schedule import Schedule
from dualquery.model.standard_errors import LEVELS, MOST_LITERALS, ErrorTable
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sampler import Draws
from dualquery.privacy.statement import PrivacyStatement
from dualquery.release.parameters import RunParameters
from dualquery.release.release import Release
from dualquery.workloads.actions import Actions
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.marginals import Groups

HOSTILE = (
    "<script>alert(1)</script>",
    '</script><img src=x onerror="alert(2)">',
    "<!-- & -->",
    'O\'Hara "quoted" \\ back',
    "日本語",
)


def hostile_schema() -> Schema:
    """Names and values that would be mischief if they were not text."""
    return Schema(
        (
            Attribute.categorical(HOSTILE[0], [HOSTILE[1], HOSTILE[2], "plain", "in", "missing"]),
            Attribute.categorical(HOSTILE[1], list(HOSTILE), missing=True),
            Attribute.binary(HOSTILE[3]),
            Attribute.numeric("a b", [0.0, 0.5, 1e16], missing=True),
            Attribute.categorical("missing", ["missing", "not"], missing=True),
            Attribute.numeric("count", [-5, 0, 10, 100]),
            Attribute.binary("__proto__"),
        )
    )


def wide_schema(width: int) -> Schema:
    return Schema(tuple(Attribute.binary(f"movie_{i:05d}") for i in range(width)))


def large_schema() -> Schema:
    """One column of 500 codes with groups, and 34 others."""
    codes = [f"{letter}{number:02d}" for letter in "ABCDE" for number in range(100)]
    return Schema(
        (
            Attribute.categorical("icd", codes, group="prefix:1"),
            *(Attribute.categorical(f"q{i}", ["a", "b", "c", "d"]) for i in range(17)),
            *(Attribute.binary(f"b{i}") for i in range(17)),
        )
    )


def made_release(
    schema: Schema,
    rounds: int = 40,
    *,
    seed: int = 0,
    queries: int = 500,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
    private: bool = True,
    player: Player = Player.RECORD,
    accountant: str = "gaussian",
) -> Release:
    """A release whose records and draws are random: no table stands behind it.

    If a model plays, the release has no records: give it a mixture.
    """
    random = np.random.default_rng(seed)
    k = min(3, len(schema))
    workload = random_marginals(schema, k, queries)
    temperatures = 2.0 * np.arange(rounds)
    turns = []
    for number in range(rounds):
        draws = Draws(random.integers(0, queries, 30), random.random(30) < 0.5)
        record = random.integers(0, schema.sizes, dtype=np.int32)
        value = int(random.integers(20, 29))
        move = (
            RecordMove(record, value, 30.0, "optimal" if value > 25 else "feasible")
            if player is Player.RECORD
            else ModelMove(np.zeros(4, dtype=np.float32), -100.0 * (number + 1), number)
        )
        turns.append(Round(float(temperatures[number]), draws, move))
    privacy = PrivacyStatement.of(
        Events.of(temperatures, [30] * rounds, 10_000, neighbours),
        delta=1e-6,
        rows=10_000,
        neighbours=neighbours,
        private=private,
        accountant=accountant,
    )
    parameters = RunParameters(
        player=player,
        budget=Budget(1.0, 1e-6, 10_000, neighbours, accountant),
        rounds=rounds,
        samples=30,
        eta=2.0,
        queries=queries,
        oracle="annealing" if player is Player.RECORD else None,
        free=Free.DEFAULT,
        training=Schedule.for_schema(schema),
        seed=None if private else 0,
    )
    return Release(schema, Actions.plain(workload), Transcript(tuple(turns)), privacy, parameters)


def with_mixture(
    base: Release, components: int, seed: int = 1, *, rehearsed: bool = False
) -> Release:
    """The release with a random model."""
    random = np.random.default_rng(seed)
    parts = []
    for size in base.schema.sizes:
        logits = 3.0 * random.normal(size=(int(size), components))
        parts.append(np.exp(logits) / np.exp(logits).sum(axis=0))
    weights = random.dirichlet(np.ones(components))
    errors = None
    if rehearsed:
        scale = random.uniform(1e-4, 1e-2, (PAIR_KINDS, MOST_LITERALS, len(LEVELS) - 1))
        errors = ErrorTable(scale, random.uniform(0.0, 0.2, PAIR_KINDS))
    return base.with_model(Mixture(base.schema, weights, np.concatenate(parts)), errors)


def with_forest(base: Release, seed: int = 1) -> Release:
    """The release with a random model whose attributes are joined at random, in two fits."""
    random = np.random.default_rng(seed)
    base = with_mixture(base, 6, seed, rehearsed=True)
    width = len(base.schema)
    joined = range(1, min(width, 40))
    trees = Trees.of_edges(
        width, [(int(random.integers(i)), i) for i in joined if random.random() < 0.7]
    )
    groups = Groups.single(base.schema)
    for a in np.flatnonzero(base.schema.sizes > 3).tolist():  # rare codes share a group
        size = int(base.schema.sizes[a])
        groups = groups.merged(a, np.minimum(np.arange(size), size - 2).astype(np.int32))
    ties = random.normal(size=(2, int(trees.tie_start(groups.sizes)[-1])))
    assert base.model is not None
    edges = Edges(trees, groups, ties, np.array([0, 0, 0, 1, 1, 1]))
    model = Mixture(base.schema, base.model.weights, base.model.own, edges)
    return base.with_model(model, base.errors)


def mixture_answer(release: Release, query: Query) -> float:
    """The answer of a mixture, by its definition."""
    assert release.model is not None
    start = np.concatenate([[0], np.cumsum(release.schema.sizes)])
    total = 0.0
    for k, weight in enumerate(release.model.weights):
        masses = []
        for literal in query.literals:
            size = int(release.schema.sizes[literal.attribute])
            allowed = sorted(literal.allowed(size))
            masses.append(
                release.model.tables[start[literal.attribute] + np.array(allowed, int), k].sum()
            )
        if query.kind == "parity":
            total += weight * (1.0 + np.prod([1.0 - 2.0 * m for m in masses])) / 2.0
        else:
            total += weight * np.prod(masses)
    return float(total)
