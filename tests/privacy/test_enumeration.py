"""Whole runs, enumerated: every transcript, every table, every pair of neighbours.

Records over {0,1}², three predicates and their negations, three rounds of two draws: 21³ = 9261
transcripts of sample multisets. Probabilities come from the package's own query player (the exact
weights that its draw would use), records from its data player. Nothing is sampled, so a constant
that is wrong by a percent fails; three such mistakes are made on purpose below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.game import query_player
from dualquery.game.query_player import QueryPlayer
from dualquery.game.record_player import Played, RecordPlayer
from dualquery.oracles.exhaustive import Exhaustive
from dualquery.privacy.events import Events, record_player_temperatures
from dualquery.privacy.neighbours import ROUNDING_CHARGE, Neighbours
from dualquery.privacy.sampler import Draws
from dualquery.privacy.sources import SystemSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.matching import add_matches
from dualquery.workloads.workload import Workload

from .enumerated import Findings, Outcome, Table, Vector, compare, log_weights, neighbouring

ROUNDS, SAMPLES = 3, 2
SCHEMA = Schema([Attribute.binary("a"), Attribute.binary("b")])
WORKLOAD = Workload.of([parse(text, SCHEMA) for text in ("a=1", "a=0 & b=0", "a=1 & b=1")], SCHEMA)
RECORDS = [np.array(r, dtype=np.int32) for r in ((0, 0), (0, 1), (1, 0), (1, 1))]
MULTISETS = list(combinations_with_replacement(range(2 * len(WORKLOAD)), SAMPLES))
DATA_PLAYER = RecordPlayer(WORKLOAD, Exhaustive())


@dataclass(frozen=True)
class Setting:
    """A game and the claim about it; the defaults are right, mutants change one thing."""

    unit: Neighbours
    rows: int
    eta: float
    negation_ignores_size: bool = False
    late: int = 0

    @property
    def played_temperatures(self) -> Vector:
        return record_player_temperatures(self.eta, ROUNDS + self.late)[self.late :]

    @property
    def claimed(self) -> Events:
        return Events.of(
            record_player_temperatures(self.eta, ROUNDS), SAMPLES, self.rows, self.unit
        )

    def tables(self) -> list[Table]:
        sizes = [self.rows] if self.unit is Neighbours.REPLACE_ONE else [self.rows, self.rows + 1]
        return [t for n in sizes for t in combinations_with_replacement(range(4), n)]


SETTINGS = [
    Setting(unit, rows, eta) for unit in Neighbours for rows in (3, 4) for eta in (1.0, 0.3)
]


def draws_of(multiset: tuple[int, ...]) -> Draws:
    positions = np.array(multiset)
    return Draws(positions >> 1, (positions & 1).astype(np.bool_))


@cache
def answer(history: tuple[tuple[int, ...], ...]) -> Played:
    """The data player's state after these rounds of draws."""
    if not history:
        return DATA_PLAYER.start()
    before, draws = answer(history[:-1]), draws_of(history[-1])
    move = DATA_PLAYER.respond(before, 0.0, draws)
    return DATA_PLAYER.replay(before, 0.0, draws, move)


@pytest.fixture(autouse=True)
def weights_instead_of_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The query player does everything as usual, but hands out its weights."""
    monkeypatch.setattr(query_player, "draw", lambda actions, *_: log_weights(actions))


def play(setting: Setting, table: Table) -> Outcome:
    """Every transcript of one table."""
    counts = np.zeros(len(WORKLOAD), dtype=np.int32)
    for record in table:
        add_matches(WORKLOAD, RECORDS[record], counts)
    size = setting.rows if setting.negation_ignores_size else len(table)
    player = QueryPlayer(Counted(counts.astype(np.int64), size), setting.rows)
    orders = np.array([2.0 if a != b else 1.0 for a, b in MULTISETS])
    first, second = np.array(MULTISETS).T
    seen: dict[tuple[int, tuple[int, ...]], Vector] = {}

    def round_of(number: int, state: Played) -> Vector:
        key = (number, tuple(state.matches.tolist()))
        if key not in seen:
            seen[key] = player.draw(  # type: ignore[assignment]
                float(setting.played_temperatures[number]),
                DATA_PLAYER.answers(state),
                SAMPLES,
                SystemSource(),
            )
        logs = seen[key] - np.logaddexp.reduce(seen[key])
        return logs[first] + logs[second] + np.log(orders)

    parts = []
    opening = round_of(0, answer(()))
    for one, chance in zip(MULTISETS, opening, strict=True):
        middle = round_of(1, answer((one,)))
        for two, further in zip(MULTISETS, middle, strict=True):
            parts.append(chance + further + round_of(2, answer((one, two))))
    return Outcome(np.concatenate(parts), seen)


def examine(setting: Setting, claimed: Events) -> Findings:
    tables = setting.tables()
    outcomes = [play(setting, table) for table in tables]
    return compare(outcomes, neighbouring(tables, setting.unit), claimed)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: f"{s.unit},n={s.rows},eta={s.eta}")
def test_every_claim_holds_and_is_nearly_reached(setting: Setting) -> None:
    found = examine(setting, setting.claimed)
    slack = 1.0 + 1e-9
    # The range is exact: the charge for rounding is all that separates truth and claim.
    assert 1.0 - 2.0 * ROUNDING_CHARGE / float(setting.claimed.ranges[1]) <= found.width <= slack
    # A large η reaches the pure bound (the loss of the worst transcript), a small one the
    # Rényi bound (which is quadratic where ranges are small).
    assert (0.9 if setting.eta == 1.0 else 0.65) <= found.pure <= slack
    assert (0.84 if setting.eta == 1.0 else 0.975) <= found.divergence <= slack
    assert 0.6 <= found.hockey_stick["zcdp"] <= slack
    # Two draws are charged like three: √(2/3) is 0.82.
    assert 0.75 <= found.hockey_stick["gaussian"] <= slack


def test_an_under_count_of_one_percent_is_caught() -> None:
    setting = Setting(Neighbours.ADD_REMOVE, 4, 0.3)
    found = examine(setting, Events(setting.claimed.draws, setting.claimed.ranges * 0.99))
    assert found.width > 1.01
    assert found.divergence > 1.01


def test_mutant_range_halved_under_replacement() -> None:
    setting = Setting(Neighbours.REPLACE_ONE, 3, 1.0)
    halved = Events(setting.claimed.draws, setting.claimed.ranges / 2.0)
    found = examine(setting, halved)
    assert found.width > 1.9
    assert found.least > 1.0


def test_mutant_negation_scored_without_the_size_under_add_remove() -> None:
    setting = Setting(Neighbours.ADD_REMOVE, 3, 1.0, negation_ignores_size=True)
    found = examine(setting, setting.claimed)
    assert found.width > 1.9
    assert found.least > 1.0


@pytest.mark.parametrize("unit", list(Neighbours))
def test_mutant_one_round_late(unit: Neighbours) -> None:
    setting = Setting(unit, 3, 1.0, late=1)
    found = examine(setting, setting.claimed)
    assert found.width == math.inf
    assert found.least > 1.0
