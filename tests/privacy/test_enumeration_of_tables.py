"""The default run, enumerated: tables are measured, then draws are made, then they name a table.

The loop is the package's own (`play_tables`). A journal hands it what earlier steps released, and
the step after that is not taken but looked at: which cells are measured with which noise, or which
weights are drawn from. So the distribution of every step is known exactly, for every table of a
small universe and for whatever was released before. Two tests put the steps together.

**Composed.** Records over {0,1}², with noise as large as in practice. A whole transcript would have
too many outcomes to list, but it need not be listed. Let L be the loss of the steps before the
draws, h_y(ε) the hockey-stick divergence of the draws given that y was released before them, and H
the largest h_y. The named tables come last, and their noise does not depend on what was drawn; a
named table that the changed record does not touch has no loss, and is a function of one that has.
So the divergence of the whole run is E[h_y(ε − L(y) − L')] ≤ E[H(ε − L − L')], with L' the loss of
named tables. The loss of a measurement is a sum over the cells that differ, one independent term
per cell, whatever y is: its distribution is a convolution. Losses are rounded up to a grid, so the
result is an upper bound; y runs over outcomes that were measured, and over extreme ones.

**Joint.** Records over {0,1}×{0}, noise of half a record: every outcome of the measured tables
with more than a negligible chance is listed, with the fit that follows it, and the draws after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy.signal import fftconvolve

from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.game import query_player
from dualquery.game import tables as loop
from dualquery.game.journal import NoJournal
from dualquery.game.query_player import QueryPlayer
from dualquery.game.tables import play_tables
from dualquery.game.tables_player import TablesPlayer
from dualquery.game.tables_steps import Kind, Step, TablesPlan
from dualquery.game.transcript import Released
from dualquery.model.again import in_sub_bins
from dualquery.privacy.accountants import ACCOUNTANTS
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Events, MeasurementEvent, Noise
from dualquery.privacy.measuring import Measurement, measure
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sampler import Draws
from dualquery.privacy.sources import SeededSource, SystemSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.matching import add_matches
from dualquery.workloads.workload import Workload

from .enumerated import ORDERS, Table, Vector, log_weights, neighbouring

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE


@dataclass(frozen=True)
class Seen:
    """The next step, looked at: cells with noise of a scale, or weights to be drawn from."""

    marginals: Marginals | None = None
    scale: float = 0.0
    temperature: float = 0.0
    played: Vector | None = None
    samples: int = 0
    reference: int | None = None


class LookedAtError(Exception):
    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self.seen = seen


class Past(NoJournal):
    """What earlier steps released; the moves that follow from it are made again."""

    def __init__(self, released: Sequence[Released]) -> None:
        super().__init__()
        self._past = released

    def released(self, number: int) -> Released | None:
        return self._past[number] if number < len(self._past) else None


class Looking:
    """A query player that says what it was asked to draw from."""

    def draw(self, temperature, played, samples, source, *, reference=None) -> Draws:
        raise LookedAtError(
            Seen(temperature=temperature, played=played, samples=samples, reference=reference)
        )


@pytest.fixture(autouse=True)
def looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are not taken: the loop's call for noise or draws ends with what it asked for."""

    def instead(counts, marginals, noise, scale, source):
        assert noise is Noise.GAUSSIAN
        np.testing.assert_array_equal(counts, 7)  # what was tabulated, and nothing else
        raise LookedAtError(Seen(marginals, scale))

    monkeypatch.setattr(loop, "measure", instead)
    monkeypatch.setattr(query_player, "draw", lambda actions, *_: log_weights(actions))


@dataclass(frozen=True)
class Universe:
    """Records, queries about them, and a plan with one step of each kind.

    With a share for second tables, records are codes of sub-bins.
    """

    schema: Schema
    queries: tuple[str, ...]
    records: tuple[tuple[int, ...], ...]
    unit: Neighbours
    rows: int
    epsilon: float
    shares: tuple[float, float, float, float]
    again: float = 0.0

    @cached_property
    def asked(self) -> Workload:
        return Workload.of([parse(text, self.schema) for text in self.queries], self.schema)

    @cached_property
    def plan(self) -> TablesPlan:
        one, pairs, drawn, named = self.shares
        return TablesPlan(
            Budget(self.epsilon, 1e-3, self.rows, self.unit),
            (
                Step(Kind.ONE_WAY, one, len(self.schema)),
                *([Step(Kind.AGAIN, self.again, 1)] if self.again else []),
                Step(Kind.PAIRS, pairs, 1),
                Step(Kind.DRAWS, drawn, draws=1),
                Step(Kind.NAMED, named, tables=1),
            ),
            10.0,
            components=2,
            members=1,
            round_members=1,
            first_steps=3,
            round_steps=1,
            last_steps=1,
        )

    @cached_property
    def tables(self) -> list[Table]:
        sizes = [self.rows] if self.unit is REPLACE else [self.rows, self.rows + 1]
        kinds = range(len(self.records))
        return [t for n in sizes for t in combinations_with_replacement(kinds, n)]

    @property
    def measured(self) -> int:
        """Steps that measure before anything is drawn."""
        return 3 if self.again else 2

    def coded(self, record: int, schema: Schema) -> np.ndarray:
        """A record in the codes of the schema, or in those of its sub-bins."""
        codes = np.array(self.records[record], dtype=np.int32)
        if not self.again or schema is not self.schema:
            return codes
        fine = self.schema.fine.code_start[:-1] + codes
        return (self.schema.code_of_fine[fine] - self.schema.code_start[:-1]).astype(np.int32)

    def counts(self, table: Table, workload: Workload) -> Counted:
        counts = np.zeros(len(workload), dtype=np.int32)
        for record in table:
            add_matches(workload, self.coded(record, workload.schema), counts)
        return Counted(counts.astype(np.int64), len(table))

    def cells(self, table: Table, marginals: Marginals) -> np.ndarray:
        fine = self.again and in_sub_bins(marginals, self.schema)
        schema = self.schema.fine if fine else self.schema
        return self.counts(table, marginals.queries(schema)).counts

    def next_step(self, past: Sequence[Released]) -> Seen:
        """What the package's loop does after these steps."""
        with pytest.raises(LookedAtError) as stop:
            play_tables(
                Looking(),
                lambda marginals: np.full(marginals.cells, 7),
                TablesPlayer(self.asked, self.plan, fine=self.again > 0.0),
                SystemSource(),
                journal=Past(past),
            )
        return stop.value.seen

    def weights(self, table: Table, seen: Seen) -> Vector:
        """The logarithms of the chances of each action."""
        player = QueryPlayer(self.counts(table, self.asked), self.rows)
        logs = player.draw(
            seen.temperature, seen.played, seen.samples, SystemSource(), reference=seen.reference
        )
        return logs - np.logaddexp.reduce(logs)  # type: ignore[operator, return-value]


def released(seen: Seen, counts: np.ndarray) -> Released:
    assert seen.marginals is not None
    return Released.measured(Measurement(seen.marginals, Noise.GAUSSIAN, seen.scale, counts))


def log_masses(sigma: float, reach: int) -> Vector:
    """ln P(Z = z) for |z| ≤ reach: exact probabilities of the rounded Gaussian."""
    from scipy.special import log_ndtr

    z = np.abs(np.arange(-reach, reach + 1))
    upper, beyond = log_ndtr(-(z - 0.5) / sigma), log_ndtr(-(z + 0.5) / sigma)
    return upper + np.log1p(-np.exp(beyond - upper))


# Composed

SQUARE = Universe(
    Schema((Attribute.binary("a"), Attribute.binary("b"))),
    ("a=1", "a=0 & b=0", "a=1 & b=1"),
    ((0, 0), (0, 1), (1, 0), (1, 1)),
    REPLACE,
    1,
    2.0,
    (0.3, 0.3, 0.1, 0.3),
)
GRID = 1e-3
"""Of losses. Nine cells are rounded up by less than this each."""


@dataclass(frozen=True)
class Losses:
    """The distribution of a privacy loss on a grid, rounded up; the rest counts as infinite."""

    first: int
    chances: Vector

    @classmethod
    @cache
    def of_cell(cls, sigma: float) -> Losses:
        """Of one cell whose counts differ by one."""
        reach = math.ceil(7.5 * sigma) + 1
        logs = log_masses(sigma, reach + 1)
        steps = np.ceil((logs[1:-1] - logs[2:]) / GRID - 1e-9).astype(int)
        first = int(steps.min())
        return cls(first, np.bincount(steps - first, np.exp(logs[1:-1])))

    def __add__(self, other: Losses) -> Losses:
        joint = np.maximum(fftconvolve(self.chances, other.chances), 0.0)
        return Losses(self.first + other.first, joint)

    @property
    def values(self) -> Vector:
        return GRID * (self.first + np.arange(len(self.chances)))


NOTHING = Losses(0, np.ones(1))


def cells_of(sigma: float, cells: int) -> Losses:
    total = NOTHING
    for _ in range(cells):
        total = total + Losses.of_cell(sigma)
    return total


def renyi_of_cell(sigma: float, alpha: float) -> float:
    logs = log_masses(sigma, math.ceil(7.5 * sigma + alpha) + 8)
    return float(np.logaddexp.reduce(alpha * logs[:-1] + (1 - alpha) * logs[1:])) / (alpha - 1)


def pasts(universe: Universe) -> Iterator[list[Released]]:
    """Outcomes of the measured steps: of every table some that were measured, and extreme ones."""
    for number, table in enumerate(universe.tables):
        for pull in (None, -6.0, 6.0):
            past: list[Released] = []
            for step in range(universe.measured):
                seen = universe.next_step(past)
                assert seen.marginals is not None
                counts = universe.cells(table, seen.marginals)
                if pull is None:
                    source = SeededSource(number).for_round(step)
                    noisy = measure(
                        counts, seen.marginals, Noise.GAUSSIAN, seen.scale, source
                    ).counts
                else:  # every second cell far above its count, the others far below
                    signs = 1 - 2 * (np.arange(len(counts)) & 1)
                    noisy = counts + np.round(pull * seen.scale * signs).astype(int)
                past.append(released(seen, noisy))
            yield past


@dataclass(frozen=True)
class Composed:
    """What a run really costs: ranges of draws, and upper bounds of divergences.

    Attributes:
        width: the largest range of a draw.
        epsilons: where the hockey-stick divergence was computed.
        deltas: what it is there, at most.
        renyi: Rényi divergences of the orders in `ORDERS`.
    """

    width: float
    epsilons: Vector
    deltas: Vector
    renyi: Vector

    def against(self, claimed: Events) -> dict[str, float]:
        """How close it comes to each claim, as a fraction: above 1 the claim is false."""
        found = {"width": self.width / float(claimed.ranges[0])}
        shown = self.deltas > 1e-9
        for name in ("gaussian", "zcdp"):
            claims = [ACCOUNTANTS[name].delta(claimed, float(e)) for e in self.epsilons[shown]]
            found[name] = float(np.max(self.deltas[shown] / claims))
        found["renyi"] = float(np.max(self.renyi / (np.array(ORDERS) * claimed.rho)))
        return found


def differing(universe: Universe, every: Sequence[Sequence[Released]]) -> list[np.ndarray]:
    """Per step and pair of tables, the most cells that differ, whatever was released before.

    Fewer cells have a smaller loss.
    """
    found = []
    for step in range(universe.measured):
        most = np.zeros((len(universe.tables),) * 2, dtype=int)
        different = {}
        for past in every:
            assert past[step].measurement is not None
            marginals = past[step].measurement.marginals
            different[marginals.groups.of_code.tobytes()] = marginals
        for marginals in different.values():
            cells = np.stack([universe.cells(table, marginals) for table in universe.tables])
            most = np.maximum(most, np.abs(cells[:, None] - cells[None]).sum(axis=2))
        found.append(most)
    return found


@cache
def composed(universe: Universe) -> Composed:
    every = list(pasts(universe))
    drawn = [universe.next_step(past) for past in every]
    before = [universe.next_step(every[0][:step]) for step in range(universe.measured)]
    scales = (*(seen.scale for seen in before), universe.plan.purse.scale(universe.shares[3], 1))
    if universe.again:  # which cells a second table has depends on the past; its price does not
        assert {universe.next_step(past[:1]).scale for past in every} == {before[1].scale}
    weights = {
        table: [universe.weights(table, seen) for seen in drawn] for table in universe.tables
    }
    changes = differing(universe, every)
    # Pairs of tables that change as many cells have the same losses of measurements.
    alike: dict[tuple[int, ...], list[tuple[Vector, Vector]]] = {}
    for i, j in neighbouring(universe.tables, universe.unit):
        one, other = universe.tables[i], universe.tables[j]
        moved = [int(change[i, j]) for change in changes]
        chances = alike.setdefault((*moved, moved[-1]), [])
        chances.extend(zip(weights[one], weights[other], strict=True))
    mu = math.sqrt(universe.plan.events.mu_squared)
    epsilons = np.linspace(0.0, 3.0 * mu + mu * mu / 2.0, 8)
    deltas, renyi, width = np.zeros(len(epsilons)), np.zeros(len(ORDERS)), 0.0
    for moved_cells, chances in alike.items():
        measured = NOTHING
        for scale, cells in zip(scales, moved_cells, strict=True):
            measured = measured + cells_of(scale, cells)
        width = max(width, *(float(np.ptp(p - q)) for p, q in chances))
        deltas = np.maximum(deltas, [_delta(measured, chances, float(e)) for e in epsilons])
        renyi = np.maximum(renyi, [_renyi(scales, moved_cells, chances, a) for a in ORDERS])
    return Composed(width, epsilons, deltas, renyi)


def _delta(measured: Losses, chances: Sequence[tuple[Vector, Vector]], epsilon: float) -> float:
    """E[H(ε − L)], H being the largest divergence of the draws."""
    left = epsilon - measured.values
    least = min(float(np.min(p - q)) for p, q in chances)
    most = max(float(np.max(p - q)) for p, q in chances)
    # Below the smallest loss of a draw H is 1 − e^ε, above the largest it is 0.
    largest = np.where(left >= most, 0.0, -np.expm1(np.minimum(left, 0.0)))
    inside = (left > least) & (left < most)
    powers = np.exp(left[inside, None])
    largest[inside] = np.max(
        [np.maximum(0.0, np.exp(p) - powers * np.exp(q)).sum(axis=1) for p, q in chances], axis=0
    )
    return float(measured.chances @ largest) + max(0.0, 1.0 - float(measured.chances.sum()))


def _renyi(
    scales: Sequence[float],
    moved: Sequence[int],
    chances: Sequence[tuple[Vector, Vector]],
    alpha: float,
) -> float:
    drawn = max(float(np.logaddexp.reduce(alpha * p + (1 - alpha) * q)) for p, q in chances)
    cells = sum(n * renyi_of_cell(scale, alpha) for scale, n in zip(scales, moved, strict=True))
    return drawn / (alpha - 1.0) + cells


def assert_close(found: dict[str, float]) -> None:
    """No claim is exceeded, and each is reached to these fractions."""
    for name, least in {"width": 0.99, "gaussian": 0.95, "zcdp": 0.6, "renyi": 0.98}.items():
        assert least <= found[name] <= 1.0 + 1e-9, (name, found)


@pytest.mark.parametrize("unit", list(Neighbours))
def test_the_default_run_costs_what_is_claimed_and_hardly_less(unit: Neighbours) -> None:
    universe = replace(SQUARE, unit=unit)
    claimed = universe.plan.events
    assert (len(claimed.measurements), len(claimed.draws)) == (3, 1)
    assert_close(composed(universe).against(claimed))


LONG = Universe(
    Schema(
        (
            Attribute.numeric("a", [1.0, 4.0, 16.0], sub_bins=2),
            Attribute.binary("b"),
        )
    ),
    ("a<4", "a<4 & b=0", "a>=4 & b=1"),
    ((0, 0), (1, 1), (2, 0), (3, 1)),
    REPLACE,
    1,
    2.0,
    (0.3, 0.2, 0.1, 0.2),
    again=0.2,
)
"""One column has a long tail: two bins of two sub-bins each, on a logarithmic scale."""


@pytest.mark.slow
@pytest.mark.parametrize("unit", list(Neighbours))
def test_second_tables_cost_what_is_claimed_and_hardly_less(unit: Neighbours) -> None:
    universe = replace(LONG, unit=unit)
    assert universe.schema.long == (0,)
    for past in pasts(universe):  # whatever was released, the second table is about that column
        assert past[1].measurement is not None
        assert past[1].measurement.marginals.attributes.tolist() == [[0]]
    claimed = universe.plan.events
    assert (len(claimed.measurements), len(claimed.draws)) == (4, 1)
    found = composed(universe)
    assert_close(found.against(claimed))
    without = [one for number, one in enumerate(claimed.measurements) if number != 1]
    assert found.against(_with(claimed, without))["renyi"] > 1.0


def _with(claimed: Events, measurements: Sequence[MeasurementEvent]) -> Events:
    return replace(
        claimed, measurements=tuple(measurements), after=claimed.after[: len(measurements)]
    )


@pytest.mark.parametrize("unit", list(Neighbours))
def test_claims_that_are_too_small_are_noticed(unit: Neighbours) -> None:
    """Each is a mistake in the price of measured tables; see also `make mutants`."""
    universe = replace(SQUARE, unit=unit)
    found, claimed = composed(universe), universe.plan.events
    one_way, *rest = claimed.measurements
    assert one_way.l2 == pytest.approx(math.sqrt(2.0) * unit.table_l2)
    wrong = {
        "a batch priced as one": [replace(one_way, l2=unit.table_l2), *rest],
        "a sensitivity one per cent small": [
            replace(one, l2=0.99 * one.l2) for one in claimed.measurements
        ],
        "a sigma one per cent large": [
            replace(one, scale=1.01 * one.scale) for one in claimed.measurements
        ],
        "a measurement missing": list(claimed.measurements[:2]),
    }
    for name, measurements in wrong.items():
        assert found.against(_with(claimed, measurements))["renyi"] > 1.0, name
    narrow = replace(claimed, ranges=0.99 * claimed.ranges)
    assert found.against(narrow)["width"] > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("unit", list(Neighbours))
@pytest.mark.parametrize("epsilon", [0.7, 2.0])
def test_the_default_run_on_more_tables(unit: Neighbours, epsilon: float) -> None:
    universe = replace(SQUARE, unit=unit, rows=2, epsilon=epsilon)
    assert_close(composed(universe).against(universe.plan.events))


# Joint

LINE = Universe(
    Schema((Attribute.binary("a"), Attribute.categorical("b", ["z"]))),
    ("a=1", "a=1 & b=z"),
    ((0, 0), (1, 0)),
    REPLACE,
    1,
    36.0,
    (0.35, 0.25, 0.1, 0.3),
)


@dataclass(frozen=True)
class Listed:
    """Every outcome of the tables before the draws that is not negligible.

    Attributes:
        chances: of each outcome, the log-probability for each table of the universe.
        draws: of each outcome, the log-probability of each action, for each table.
        shifts: of each outcome, the counts that the named table has, for each table.
    """

    chances: list[Vector]
    draws: list[list[Vector]]
    shifts: list[list[tuple[int, ...]]]


def outcomes(
    universe: Universe, seen: Seen, before: Vector, negligible: float
) -> Iterator[tuple[np.ndarray, Vector]]:
    """Noisy counts, with their log-probabilities for each table, after those of `before`."""
    assert seen.marginals is not None
    reach = math.ceil(7.5 * seen.scale) + 1
    logs = log_masses(seen.scale, reach)
    centres = np.array([universe.cells(table, seen.marginals) for table in universe.tables])
    values = [range(c.min() - reach, c.max() + reach + 1) for c in centres.T]
    for noisy in product(*values):
        places = np.array(noisy) - centres + reach
        known = (places >= 0) & (places < len(logs))
        each = np.where(known, logs[np.clip(places, 0, len(logs) - 1)], -np.inf)
        chances = before + each.sum(axis=1)
        if chances.max() > negligible:
            yield np.array(noisy), chances


def listed(universe: Universe, negligible: float) -> Listed:
    every = Listed([], [], [])
    first = universe.next_step([])
    for noisy, before in outcomes(universe, first, np.zeros(len(universe.tables)), negligible):
        one_way = released(first, noisy)
        second = universe.next_step([one_way])
        assert second.marginals is not None
        # The last step measures a table of the same groups: its cells shift as these do.
        cells = [tuple(universe.cells(t, second.marginals)) for t in universe.tables]
        for again, chances in outcomes(universe, second, before, negligible):
            drawn = universe.next_step([one_way, released(second, again)])
            every.chances.append(chances)
            every.draws.append([universe.weights(table, drawn) for table in universe.tables])
            every.shifts.append(cells)
    return every


@pytest.mark.slow
@pytest.mark.parametrize("unit", list(Neighbours))
def test_all_outcomes_of_a_small_default_run(unit: Neighbours) -> None:
    """Thousands of fits: .98 and .96 of the claim are reached, though noise is rounded coarsely."""
    universe = replace(LINE, unit=unit, epsilon=36.0 if unit is REPLACE else 22.0)
    every = listed(universe, math.log(1e-9))
    chances = np.array(every.chances)
    missed = 1.0 - np.exp(chances).sum(axis=0)
    assert missed.max() < 1e-4
    claimed = universe.plan.events
    scale = universe.plan.purse.scale(universe.shares[3], 1)
    mu = math.sqrt(claimed.mu_squared)
    draws = np.array(every.draws)
    closest = 0.0
    for i, j in neighbouring(universe.tables, unit):
        p = (chances[:, i, None] + draws[:, i]).ravel()
        q = (chances[:, j, None] + draws[:, j]).ravel()
        moved = np.array([sum(abs(a - b) for a, b in zip(c[i], c[j], strict=True))
                          for c in every.shifts])  # fmt: skip
        for epsilon in (0.0, 0.5 * mu, mu, 1.5 * mu):
            total = missed[i]
            for cells in np.unique(moved):
                named = cells_of(scale, int(cells))
                part = np.repeat(moved == cells, draws.shape[2])
                for loss, chance in zip(named.values, named.chances, strict=True):
                    if chance > 1e-9:
                        powers = np.exp(epsilon - loss + q[part])
                        total += chance * np.maximum(0.0, np.exp(p[part]) - powers).sum()
            claim = ACCOUNTANTS["gaussian"].delta(claimed, epsilon)
            assert total <= claim
            closest = max(closest, total / claim)
    assert 0.9 < closest <= 1.0
