"""The fit of a forest: its objective and its slopes against brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import dualquery as dq
from dualquery.model.forest.trees import Trees
from dualquery.model.measured import Measured
from dualquery.model.stack import Stack
from dualquery.model.training import RIDGE, Ascent, Parameters, _summed
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Groups, Marginals
from tests.model.forest import enumerated

SIZES = (2, 3, 2, 4, 2, 3)
SCHEMA = dq.Schema.from_dict(
    {"attributes": {f"a{i}": {"values": list(range(n))} for i, n in enumerate(SIZES)}}
)
FORESTS = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star": [(1, 0), (1, 2), (1, 3), (1, 4)],
    "two trees": [(0, 1), (0, 2), (3, 4), (4, 5)],
    "one tree": [(0, 1), (1, 2), (1, 3), (3, 4), (3, 5)],
    "no edge": [],
}
TOTAL = 500.0


def measured(random: np.random.Generator, arity: int) -> Measurement:
    sets = np.array(list(combinations(range(len(SIZES)), arity)), dtype=np.int32)
    marginals = Marginals(Groups.single(SCHEMA), sets)
    counts = random.integers(0, 200, marginals.cells)
    return Measurement(marginals, Noise.GAUSSIAN, 7.0 + arity, counts)


def value(
    trees: Trees, start: np.ndarray, flat: np.ndarray, k: int, tables: list[Measurement]
) -> float:
    rows = int(start[-1])
    logits, rest = flat[: rows * k].reshape(rows, k), flat[rows * k :]
    ties, weights = rest[:-k], enumerated.softmax(rest[-k:])
    whole = enumerated.joint(trees, start, logits, ties, weights)
    found = -RIDGE / 2.0 * (ties**2).sum()
    for one in tables:
        for t, attributes in enumerate(one.marginals.attributes.tolist()):
            cells = one.counts[one.marginals.start[t] : one.marginals.start[t + 1]]
            away = cells - TOTAL * enumerated.table(whole, tuple(attributes)).reshape(-1)
            found -= (away**2).sum() / (2.0 * one.variance)
    return found


@pytest.mark.parametrize("name", FORESTS)
def test_slopes_are_those_of_the_enumerated_likelihood(name: str) -> None:
    random, k = np.random.default_rng(3), 3
    trees = Trees.of_edges(len(SIZES), FORESTS[name])
    stack = Stack.of(SCHEMA, np.arange(len(SIZES)))
    tables = [measured(random, arity) for arity in (1, 2, 3)]
    ascent = Ascent(stack, k, trees=trees)
    here = Parameters.start(stack, k, 1.0, 5, tied=int(ascent.tie_start[-1]))
    here.ties[:] = random.standard_normal(here.tied)
    here.flat[-k:] = random.standard_normal(k)
    probabilities, weights = ascent.tables(here), here.weights
    term = Measured(stack, tables, TOTAL, trees)
    slopes = _summed([term], probabilities, weights.astype(np.float32), ascent.given)
    gradient = ascent.gradient(here, probabilities, slopes, weights)
    flat = here.flat.astype(float)
    plain = value(trees, stack.start, flat, k, tables)
    assert slopes.value == pytest.approx(plain + RIDGE / 2.0 * (here.ties**2).sum(), rel=1e-4)
    for place in [*random.choice(len(flat), 25, replace=False).tolist(), -1, -k - 1]:
        step = np.zeros_like(flat)
        step[place] = 1e-4
        higher = value(trees, stack.start, flat + step, k, tables)
        lower = value(trees, stack.start, flat - step, k, tables)
        expected = (higher - lower) / 2e-4
        assert gradient[place] == pytest.approx(expected, rel=2e-3, abs=2e-2 * abs(plain) ** 0.5)
