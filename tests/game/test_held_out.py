"""By how much a fit misses dependences, seen on counts that it was not shown."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.game.held_out import LEFT, _Judge, _mean, missed_dependence
from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.game.tables_steps import Kind, Step, TablesPlan
from dualquery.game.wide_player import player_of
from dualquery.model.mixture import Mixture
from dualquery.model.pair_kinds import APART, JOINED, TOGETHER
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.neighbours import Neighbours
from dualquery.workloads.generators import all_marginals
from dualquery.workloads.marginals import Groups, Marginals
from tests.model.test_bends import by_rank

ROWS, COLUMNS, CODES = 20_000, 10, 4
PAIRS = list(combinations(range(COLUMNS), 2))
SCHEMA = Schema(
    tuple(Attribute.categorical(f"a{i}", list(range(CODES)), ordered=True) for i in range(COLUMNS))
)


def truth(strength: float) -> Mixture:
    """Two components that pull all columns the same way, the later ones more."""
    tables = []
    for column in range(COLUMNS):
        tilt = strength * (column + 1) / COLUMNS * np.linspace(-1.0, 1.0, CODES) / CODES
        tables.append(np.column_stack([1.0 / CODES + tilt, 1.0 / CODES - tilt]))
    return Mixture(SCHEMA, np.array([0.5, 0.5]), np.concatenate(tables))


def player_for(kinds: list[Kind]) -> TablesPlayer:
    budget = Budget(
        epsilon=1.0, delta=1e-6, rows=ROWS, neighbours=Neighbours.REPLACE_ONE, accountant="gaussian"
    )
    steps = tuple(Step(kind, 1.0 / len(kinds), COLUMNS) for kind in kinds)
    plan = TablesPlan(budget, steps, 1000.0, 4, 2, 2, 20, 20, 20, False)
    return player_of(all_marginals(SCHEMA, 2), plan)


def measured(model: Mixture, sets: list[tuple[int, ...]], sigma: float, seed: int) -> Measurement:
    random = np.random.default_rng(seed)
    counts = [ROWS * model.table(list(one)).reshape(-1) for one in sets]
    noise = sigma * random.standard_normal(sum(map(len, counts)))
    return Measurement(
        Marginals(Groups.single(SCHEMA), np.array(sets, dtype=np.int32)),
        Noise.GAUSSIAN,
        sigma,
        np.rint(np.concatenate(counts) + noise).astype(np.int64),
    )


def known_of(model: Mixture, sigma: float, *larger: list[tuple[int, ...]]) -> Known:
    ones = [(column,) for column in range(COLUMNS)]
    parts = [measured(model, sets, sigma, seed) for seed, sets in enumerate((ones, *larger))]
    return Known(tuple(parts))


def dependence(model: Mixture, pair: tuple[int, int]) -> float:
    joint = model.table(list(pair))
    return float(by_rank(joint.sum(1)) @ joint @ by_rank(joint.sum(0)))


def without_dependence() -> Mixture:
    return Mixture(SCHEMA, np.ones(1), np.full((COLUMNS * CODES, 1), 1.0 / CODES))


@pytest.mark.parametrize("sigma", [5.0, 300.0])
@pytest.mark.parametrize("strength", [0.0, 0.9])
def test_what_a_model_misses_is_seen_beside_noise(sigma: float, strength: float) -> None:
    """A model without any dependence is judged: the mean square over many measurements."""
    model, player = truth(strength), player_for([Kind.ONE_WAY, Kind.PAIRS])
    expected = np.mean([dependence(model, pair) ** 2 for pair in PAIRS])
    found = []
    for seed in range(30):
        known = known_of(model, sigma, PAIRS)
        judge = _Judge(player, known, without_dependence())
        parts = list(judge.missed(measured(model, PAIRS, sigma, 100 + seed), 1.0))
        assert [part.attributes for part in parts] == PAIRS
        assert all(part.directions == 1 for part in parts)
        found.append(np.mean([part.square - part.noise for part in parts]))
        assert _mean(parts) == pytest.approx(max(0.0, found[-1]), rel=1e-2, abs=1e-12)
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - expected) < 4.0 * error + 1e-4


def test_a_fit_to_loud_tables_misses_more() -> None:
    model, player = truth(0.9), player_for([Kind.ONE_WAY, Kind.PAIRS])
    missed = [
        missed_dependence(player, known_of(model, sigma, PAIRS), 200, np.random.default_rng(1))
        for sigma in (100.0, 300.0)
    ]
    strongest = max(dependence(model, pair) for pair in PAIRS)
    assert 0.02 * strongest < missed[0].min() <= missed[0].max() < 0.1 * strongest
    assert missed[1].min() > 0.2 * strongest
    for one in missed:  # no table was chosen, so all kinds of pairs have one error
        assert one[APART] == one[TOGETHER] == one[JOINED]


def test_pairs_that_were_not_chosen_are_judged_by_those_chosen_last() -> None:
    """The tables chosen last depend much, and a fit that does not see them knows nothing of it."""
    model, kinds = truth(0.9), [Kind.ONE_WAY, Kind.CHOICE, Kind.NAMED, Kind.CHOICE, Kind.NAMED]
    first, last = [(0, 1), (0, 2), (1, 2)], [(3, 4), (5, 6), (7, 8)]
    weak = replace(model, own=without_dependence().own.repeat(2, axis=1))
    known = known_of(weak, 10.0, first)
    known = replace(known, measurements=(*known.measurements, measured(model, last, 10.0, 9)))
    found = missed_dependence(player_for(kinds), known, 200, np.random.default_rng(1))
    expected = np.mean([dependence(model, pair) ** 2 for pair in last])
    assert found[APART] ** 2 == pytest.approx(LEFT * expected, rel=0.2)
    assert found[TOGETHER] == found[JOINED] < 0.1 * found[APART]
