"""Tables chosen by draws: sensitivities by exhaustion, every outcome of small choices, the price.

Five records of {0,1}³, three pairs and one triple, two draws: 12 outcomes. Tables go through the
package's own loop (`choose_tables`), and chances come from the weights that its draw would use.
Nothing is sampled, so a range that is wrong by a percent fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.game import choosing as step
from dualquery.game.choosing import choose_tables
from dualquery.privacy import choosing
from dualquery.privacy.calibration import Budget
from dualquery.privacy.choosing import (
    FINENESS,
    LARGEST,
    NONE,
    Against,
    Candidates,
    Choice,
    Expected,
    Scored,
    choice_range,
    choose,
    scores_of,
)
from dualquery.privacy.events import DrawEvent, Events, MeasurementEvent
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.purse import Purse
from dualquery.privacy.rare import read_measured
from dualquery.privacy.sampler import Draws
from dualquery.privacy.shards import BUCKETS
from dualquery.privacy.sources import SeededSource, SystemSource
from dualquery.privacy.unit import Persons, Unit, Weigh, Weight
from dualquery.workloads.marginals import Groups, Marginals

from .enumerated import Findings, Outcome, Table, Vector, compare, neighbouring

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
SCHEMA = Schema(tuple(Attribute.binary(name) for name in "abc"))
RECORDS = np.array([(0, 0, 0), (1, 1, 1), (0, 1, 1), (0, 0, 1), (1, 0, 0)], dtype=np.int32)


def marginals(arity: int, schema: Schema = SCHEMA) -> Marginals:
    sets = np.array(list(combinations(range(len(schema)), arity)), dtype=np.int32)
    return Marginals(Groups.single(schema), sets)


PAIRS, TRIPLES = marginals(2), marginals(3)
CANDIDATES = Candidates((PAIRS, TRIPLES))


def cells(table: Table, asked: Marginals) -> np.ndarray:
    """The counts of all cells, by definition."""
    rows = RECORDS[list(table)]
    sizes = np.diff(asked.start)
    return np.concatenate(
        [np.bincount(asked.cell_of(t, rows), minlength=sizes[t]) for t in range(len(asked))]
    )


def shares(asked: Marginals) -> Vector:
    """Pairs and triples that a model expects in opposite corners, or nowhere in particular."""
    if asked.arity == 3:
        return np.array([0.05, 0.4, 0.05, 0.0, 0.4, 0.0, 0.05, 0.05])
    corners = {(0, 1): [1, 0, 0, 0], (0, 2): [0, 0, 0, 1], (1, 2): [0.25, 0.25, 0.25, 0.25]}
    return np.concatenate([np.array(corners[tuple(s)], float) for s in asked.attributes.tolist()])


def all_tables(unit: Neighbours, rows: int) -> list[Table]:
    sizes = [rows] if unit is REPLACE else [rows, rows + 1]
    return [t for n in sizes for t in combinations_with_replacement(range(len(RECORDS)), n)]


# Sensitivity


@pytest.mark.parametrize("asked", [PAIRS, TRIPLES], ids=["pairs", "triples"])
@pytest.mark.parametrize("unit", list(Neighbours))
def test_no_neighbours_scores_are_further_apart_than_is_charged(
    unit: Neighbours, asked: Marginals
) -> None:
    """Every table of three rows, every neighbour, expectations of every kind."""
    tables, random = all_tables(unit, 3), np.random.default_rng(4)
    several = [
        Expected(random.integers(0, 4 * FINENESS, asked.cells), random.integers(0, 999, len(asked)))
        for _ in range(6)
    ]
    several.append(Against(shares, 3.0, 1.0).of(asked))
    several.append(Expected(np.full(asked.cells, 9 * FINENESS), np.zeros(len(asked), np.int64)))
    counts = [cells(table, asked) for table in tables]
    found = [
        np.concatenate([scores_of(one, asked, expected) for expected in several]) for one in counts
    ]
    moved = np.array([found[i] - found[j] for i, j in neighbouring(tables, unit)])
    assert np.abs(moved).max() == FINENESS * unit.table_l1


# Every outcome


def log_weights(actions: Scored) -> Vector:
    """The exact weights of the tables, as logarithms."""
    totals = actions.tally(actions.largest())
    buckets = np.repeat(np.arange(BUCKETS), totals)
    positions, scaled = actions.locate(buckets, np.concatenate([np.arange(t) for t in totals]))
    assert not (positions & 1).any()
    found = np.empty(positions.size)
    found[positions >> 1] = np.log(scaled.astype(np.float64)) - (buckets + 53) * math.log(2.0)
    return found


ROWS, BETA, DRAWN = 3, 0.4, 2
ORDERS = list(permutations(range(len(CANDIDATES)), DRAWN))


def outcome(counter: Callable[[Marginals], np.ndarray], patch: pytest.MonkeyPatch) -> Outcome:
    """The chance of every order in which two tables can be chosen, through the package's loop."""
    met: dict[tuple[int, Hashable], Vector] = {}
    past: list[int] = []
    forced = 0

    def scripted(actions: Scored, samples: int, source: object) -> Draws:
        assert samples == 1
        met[len(past), tuple(past)] = log_weights(actions)
        past.append(0 if past else forced)
        return Draws(np.array([past[-1]]), np.array([False]))

    patch.setattr(choosing, "draw", scripted)
    for forced in range(len(CANDIDATES)):
        past.clear()
        against = Against(shares, float(ROWS), 0.3)
        made = choose_tables(counter, CANDIDATES, against, BETA, DRAWN, SystemSource())
        assert made.attributes.tolist() == CANDIDATES.attributes[[forced, int(not forced)]].tolist()
    chances = []
    for first, second in ORDERS:
        begun, then = met[0, ()], met[1, (first,)]
        chance = begun[first] - np.logaddexp.reduce(begun)
        chances.append(chance + then[second - (second > first)] - np.logaddexp.reduce(then))
    assert np.exp(chances).sum() == pytest.approx(1.0)
    return Outcome(np.array(chances), met)


@cache
def outcomes(unit: Neighbours) -> list[Outcome]:
    with pytest.MonkeyPatch.context() as patch:
        return [
            outcome(lambda asked, table=table: cells(table, asked), patch)
            for table in all_tables(unit, ROWS)
        ]


def examined(unit: Neighbours, claimed: Events) -> Findings:
    return compare(outcomes(unit), neighbouring(all_tables(unit, ROWS), unit), claimed)


def claim(unit: Neighbours) -> Events:
    """What a choice states of itself."""
    made = Choice(CANDIDATES.attributes[:DRAWN], BETA, len(CANDIDATES), CANDIDATES.digest)
    return Events.in_sequence(*made.events(unit))


@pytest.mark.parametrize("unit", list(Neighbours))
def test_every_outcome_of_a_choice_is_as_private_as_it_states(unit: Neighbours) -> None:
    found = examined(unit, claim(unit))
    assert 0.999 < found.width <= 1.0
    assert found.pure <= 1.0
    assert found.divergence <= 1.0
    assert all(0.3 < one <= 1.0 for one in found.hockey_stick.values())


@pytest.mark.parametrize("unit", list(Neighbours))
def test_a_smaller_claim_would_be_false(unit: Neighbours) -> None:
    """The enumeration is sharp enough to notice half a range, and draws that are not paid for."""
    claimed = claim(unit)
    assert examined(unit, Events(claimed.draws, claimed.ranges / 2.0)).width > 1.9
    once = Events(claimed.draws, np.array([claimed.ranges[0], 1e-9]))
    assert examined(unit, once).width > 1e6


# Scores and weights


def test_scores_are_those_of_plain_integers() -> None:
    schema = Schema(
        tuple(Attribute.categorical(f"x{i}", list("abcdef")[: 2 + i]) for i in range(4))
    )
    random = np.random.default_rng(7)
    for arity in (1, 2, 3):
        asked = marginals(arity, schema)
        counts = random.integers(0, 1 << 40, asked.cells)
        penalty = random.integers(-(1 << 50), 1 << 50, len(asked))
        expected = Expected(random.integers(0, 1 << 48, asked.cells), penalty)
        plain = [
            sum(
                abs(FINENESS * int(counts[cell]) - int(expected.cells[cell]))
                for cell in range(asked.start[t], asked.start[t + 1])
            )
            - int(expected.penalty[t])
            for t in range(len(asked))
        ]
        assert scores_of(counts, asked, expected).tolist() == plain


def test_expectations_and_penalties_are_those_of_the_formula() -> None:
    asked = CANDIDATES.tables[0]
    against = Against(shares, 50.0, 3.0, chance=0.8, penalty=0.4, spread=2.0)
    made = against.of(asked)
    expected = 50.0 * shares(asked)
    np.testing.assert_array_equal(made.cells, np.rint(FINENESS * expected))
    parts = expected.reshape(3, 4)
    wanted = math.sqrt(2 / math.pi) * (0.8 * np.sqrt(2.0 * parts).sum(axis=1) + 0.4 * 3.0 * 4)
    np.testing.assert_array_equal(made.penalty, np.rint(FINENESS * wanted))
    below = Against(lambda asked: shares(asked) - 1.0, 50.0, 3.0).of(asked)
    assert below.cells.min() == 0  # no share is below 0


@pytest.mark.parametrize("top", [0, -(1 << 61), 1 << 61])
def test_weights_are_exponentials_of_exact_differences(top: int) -> None:
    """However large all scores are, and down to the clip."""
    below = np.array([0, 1, 100, 25_600, 10**6, 3 * 10**7, 10**12])
    logs = log_weights(Scored(top - below, 0.01))
    wanted = np.maximum(-0.01 * below / FINENESS, -600.0)
    np.testing.assert_allclose(logs - logs[0], wanted, rtol=0, atol=2.0**-38)


def test_draws_follow_the_weights() -> None:
    scores = np.array([0, 200, 300, -400]) * FINENESS
    first, second = np.zeros(4), np.zeros((4, 4))
    source, made = SeededSource(5), 2_000
    for _ in range(made):
        sets = choose(scores, CANDIDATES, 0.005, 2, source).attributes
        a, b = (CANDIDATES.attributes.tolist().index(one) for one in sets.tolist())
        first[a] += 1
        second[a, b] += 1
    weights = np.exp(0.005 * scores / FINENESS)
    chances = weights / weights.sum()
    joint = chances[:, None] * weights / (weights.sum() - weights)[:, None]
    np.fill_diagonal(joint, 0.0)
    np.testing.assert_allclose(first / made, chances, atol=5 * math.sqrt(0.25 / made))
    np.testing.assert_allclose(second / made, joint, atol=5 * math.sqrt(0.25 / made))
    assert np.trace(second) == 0


def test_all_tables_can_be_chosen_and_no_more() -> None:
    scores = np.zeros(4, np.int64)
    every = choose(scores, CANDIDATES, 1.0, 4, SeededSource(1))
    assert sorted(every.sets) == [(0, 1), (0, 1, 2), (0, 2), (1, 2)]
    with pytest.raises(ParameterError, match="draws = 5; expected at most 4"):
        choose(scores, CANDIDATES, 1.0, 5, SeededSource(1))
    with pytest.raises(ParameterError, match="expected 4 scores"):
        choose(scores[:3], CANDIDATES, 1.0, 1, SeededSource(1))
    with pytest.raises(ParameterError, match="temperature"):
        choose(scores, CANDIDATES, math.nan, 1, SeededSource(1))


def test_nothing_overflows_unnoticed() -> None:
    asked = PAIRS
    none = Expected(np.zeros(asked.cells, np.int64), np.zeros(len(asked), np.int64))
    for counts in (np.full(asked.cells, 1 << 51), np.full(asked.cells, 1 << 62)):
        with pytest.raises(ParameterError, match="too many to score"):
            scores_of(counts, asked, none)
    largest = Expected(np.full(asked.cells, LARGEST // 4), np.full(len(asked), LARGEST))
    assert scores_of(np.zeros(asked.cells, np.int64), asked, largest).tolist() == [0, 0, 0]
    for bad in ({"total": 2.0**52}, {"noise": 2.0**52}, {"total": math.inf}, {"noise": math.nan}):
        with pytest.raises(ParameterError):
            replace(Against(shares, 1.0, 1.0), **bad).of(asked)
    with pytest.raises(ParameterError, match="a share per cell"):
        Against(lambda asked: np.full(asked.cells, np.nan), 1.0, 1.0).of(asked)


@pytest.mark.parametrize("at_once", [1, 5, 8, 20, 1 << 22])
def test_batches_make_no_difference(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counter(batch: Marginals) -> np.ndarray:
        asked.append(batch.cells)
        return cells((0, 3, 3, 4), batch)

    monkeypatch.setattr(step, "CELLS_AT_ONCE", at_once)
    given: list[np.ndarray] = []
    monkeypatch.setattr(step, "choose", lambda scores, *rest: given.append(scores))
    choose_tables(counter, CANDIDATES, Against(shares, 4.0, 1.0), 1.0, 1, SeededSource(1))
    whole = [
        scores_of(cells((0, 3, 3, 4), one), one, Against(shares, 4.0, 1.0).of(one))
        for one in CANDIDATES.tables
    ]
    np.testing.assert_array_equal(given[0], np.concatenate(whole))
    assert sum(asked) == 3 * 4 + 8
    assert max(asked) <= max(at_once, 8)


def test_with_forced_draws_a_choice_does_not_depend_on_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor on how many there are."""
    monkeypatch.setattr(
        choosing, "draw", lambda actions, *_: Draws(np.array([actions.queries // 2]), np.zeros(1))
    )
    made = [
        choose_tables(
            lambda asked, table=table: cells(table, asked),
            CANDIDATES, Against(shares, 3.0, 1.0), BETA, 3, SystemSource(),
        ).to_arrays()
        for table in ((), (0,), (4, 4, 4), (1, 2, 3, 4, 0))
    ]  # fmt: skip
    for other in made[1:]:
        assert {k: v.tobytes() for k, v in made[0].items()} == {
            k: v.tobytes() for k, v in other.items()
        }


# The price

UNITS = [
    Unit(REPLACE),
    Unit(ADD),
    Unit(REPLACE, Persons("who", 3)),
    Unit(ADD, Persons("who", 3, Weigh.PERSON)),
    Unit(REPLACE, None, Weight("w", 40.0)),
]


def test_the_range_of_a_draw() -> None:
    """4β if a record is replaced, 2β if one is added or removed, times what a unit may weigh."""
    for unit in (REPLACE, ADD, *UNITS):
        g = unit.influence if isinstance(unit, Unit) else 1
        relation = unit.neighbours if isinstance(unit, Unit) else unit
        ideal = g * (4.0 if relation is REPLACE else 2.0) * 0.25
        found = choice_range(0.25, unit)
        assert ideal + 2.0**-37 < found < ideal * (1 + 2.0**-35) + 2.0**-35
        assert choice_range(0.0, unit) == 0.0
    with pytest.raises(ParameterError, match="temperature"):
        choice_range(-1.0, REPLACE)


def test_every_draw_is_paid_for_as_one_after_the_other() -> None:
    made = Choice(CANDIDATES.attributes[:3], 0.25, 4, CANDIDATES.digest)
    events = Events.in_sequence(*made.events(REPLACE))
    r = choice_range(0.25, REPLACE)
    assert events == Events(np.ones(3, np.int64), np.full(3, r))
    assert events.mu_squared == pytest.approx(3 * r * r / 2)
    assert events.rho == pytest.approx(3 * r * r / 8)


@pytest.mark.parametrize("accountant", ["gaussian", "zcdp", "pure"])
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("draws", [1, 7, 120])
def test_a_share_buys_what_it_says(accountant: str, unit: Unit, draws: int) -> None:
    delta = 0.0 if accountant == "pure" else 1e-6
    purse = Purse(
        Budget(1.0, delta, 10_000, unit.neighbours, accountant, unit.persons, unit.weight)
    )
    beta = purse.choice_temperature(0.1, draws)
    event = DrawEvent(1, choice_range(beta, unit))
    events = Events.in_sequence(*(event,) * draws)
    spent = {
        "gaussian": events.mu_squared / purse._whole**2,
        "zcdp": events.rho / purse._whole,
        "pure": float(events.draws @ events.ranges) / purse._whole,
    }[accountant]
    assert 0.1 * (1 - 1e-6) < spent <= 0.1
    with pytest.raises(ParameterError, match="too small to choose"):
        purse.choice_temperature(1e-30, draws)


def test_events_in_sequence_is_the_inverse_of_in_order() -> None:
    table = MeasurementEvent.gaussian(3.0)
    events = (table, DrawEvent(1, 0.5), DrawEvent(4, 0.25), table, table, DrawEvent(1, 0.5), table)
    made = Events.in_sequence(*events)
    assert tuple(made.in_order()) == events
    assert Events.in_sequence(table) == Events.of_measurements(table)
    assert len(Events.in_sequence()) == 0


# Candidates and files


def test_candidates_are_told_apart() -> None:
    assert CANDIDATES.attributes.tolist() == [
        [0, 1, NONE], [0, 2, NONE], [1, 2, NONE], [0, 1, 2],
    ]  # fmt: skip
    assert not np.array_equal(CANDIDATES.digest, Candidates((PAIRS,)).digest)
    for tables in ((), (PAIRS, PAIRS), (Marginals(PAIRS.groups, PAIRS.attributes[:0]),)):
        with pytest.raises(ParameterError, match="expected tables"):
            Candidates(tables)


def test_a_choice_says_what_it_is_of() -> None:
    made = choose(np.zeros(4, np.int64), CANDIDATES, 0.5, 3, SeededSource(2))
    assert made.is_of(CANDIDATES, 0.5, 3)
    assert not made.is_of(CANDIDATES, 0.25, 3)
    assert not made.is_of(CANDIDATES, 0.5, 2)
    assert not made.is_of(Candidates((PAIRS,)), 0.5, 3)
    elsewhere = made.attributes.copy()
    elsewhere[0] = [2, 1, NONE]
    assert not replace(made, attributes=elsewhere).is_of(CANDIDATES, 0.5, 3)
    assert not replace(made, digest=made.digest ^ 1).is_of(CANDIDATES, 0.5, 3)
    assert not replace(made, candidates=5).is_of(CANDIDATES, 0.5, 3)


def test_a_choice_is_read_back_as_it_was() -> None:
    made = choose(np.array([0, 0, 0, 9]), CANDIDATES, 0.5, 4, SeededSource(2))
    again = read_measured(made.to_arrays())
    assert isinstance(again, Choice)
    assert again.is_of(CANDIDATES, 0.5, 4)
    assert again.sets == made.sets
    assert again.events(ADD) == made.events(ADD)
    pairs, triples = again.marginals(PAIRS.groups)
    assert [tuple(one) for one in pairs.attributes.tolist()] == [
        one for one in made.sets if len(one) == 2
    ]
    assert triples.attributes.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    "attributes",
    [
        [[0, 1], [0, 1]],
        [[0, 1], [1, 0]],
        [[1, 1]],
        [[NONE, 1]],
        [[NONE, NONE]],
        [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3]],
        [],
        [0, 1],
    ],
)  # fmt: skip
def test_a_choice_of_no_tables_is_refused(attributes: list[list[int]]) -> None:
    arrays = Choice(np.array(attributes, np.int32), 0.5, 4, CANDIDATES.digest).to_arrays()
    with pytest.raises(ParameterError, match=r"chos|choice"):
        Choice.from_arrays(arrays)
