"""What rehearsals of measured tables say about errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.game.rehearsal import (
    _chance,
    _chance_of_three,
    _Rows,
    _with_narrow,
    rehearse_tables,
)
from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.game.tables_steps import Kind, Step, TablesPlan
from dualquery.game.wide_player import player_of
from dualquery.model.matched import Matching
from dualquery.model.mixture import Mixture
from dualquery.model.standard_errors import ErrorTable
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.neighbours import Neighbours
from dualquery.workloads.generators import all_marginals
from dualquery.workloads.marginals import Groups, Marginals

ROWS = 2000


def fitted(
    *, wide: bool, kept: float = 0.7, noise_scale: float = 20.0
) -> tuple[TablesPlayer, Known]:
    """Three columns that depend on one another, all pairs measured, and two short fits."""
    schema = Schema(tuple(Attribute.categorical(f"a{i}", list(range(3))) for i in range(3)))
    random = np.random.default_rng(4)
    hidden = random.integers(0, 3, ROWS)
    rows = np.stack(
        [
            np.where(random.random(ROWS) < kept, hidden, random.integers(0, 3, ROWS))
            for _ in range(3)
        ]
    )
    budget = Budget(
        epsilon=1.0, delta=1e-6, rows=ROWS, neighbours=Neighbours.REPLACE_ONE, accountant="gaussian"
    )
    steps = (Step(Kind.ONE_WAY, 0.1, 3), Step(Kind.PAIRS, 0.9, 3))
    plan = TablesPlan(budget, steps, 1000.0, 4, 2, 2, 20, 20, 20, wide)
    groups, measurements = Groups.single(schema), []
    for sets in ([(0,), (1,), (2,)], [(0, 1), (0, 2), (1, 2)]):
        marginals = Marginals(groups, np.array(sets, dtype=np.int32))
        counts = [np.bincount(3 * rows[s[0]] + rows[s[-1]], minlength=9) for s in sets]
        if len(sets[0]) == 1:
            counts = [np.bincount(rows[s[0]], minlength=3) for s in sets]
        noise = np.rint(noise_scale * random.standard_normal(marginals.cells)).astype(np.int64)
        measurements.append(
            Measurement(marginals, Noise.GAUSSIAN, noise_scale, np.concatenate(counts) + noise)
        )
    player = player_of(all_marginals(schema, 2), plan)
    return player, player.fitted_anew(Known(tuple(measurements)), 20)


@pytest.mark.parametrize("wide", [False, True])
def test_narrow_tables_take_the_larger_error_and_wide_ones_the_mean(
    wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    player, known = fitted(wide=wide)
    seen: list[tuple[int, ErrorTable]] = []
    tabulate = ErrorTable.of_rehearsals

    def watched(workload: Any, answers: Sequence[Any], *others: Any) -> ErrorTable:
        seen.append((len(answers), tabulate(workload, answers, *others)))
        return seen[-1][1]

    monkeypatch.setattr(ErrorTable, "of_rehearsals", watched)
    found = rehearse_tables(player, known)
    if wide:
        assert [count for count, _ in seen] == [2]
        expected = seen[0][1].scale
    else:
        assert [count for count, _ in seen] == [1, 1]
        first, second = (table.scale for _, table in seen)
        assert (first < second).any()
        assert (first > second).any()
        expected = np.where(first > second, first, second)
    np.testing.assert_array_equal(found.scale, expected)
    assert (found.missed >= 0.0).all()
    assert found.missed.any() != wide


def test_chance_is_what_counts_scatter_beyond_the_counts_of_their_literals() -> None:
    """Three independent columns: the formula beside the scatter of many drawn tables."""
    player, known = fitted(wide=False)
    judged = all_marginals(player.workload.schema, 3)
    shares = np.array([0.2, 0.3, 0.5])
    random = np.random.default_rng(0)
    tables = np.stack(
        [
            np.bincount(random.choice(27, ROWS, p=np.kron(np.kron(shares, shares), shares)))
            for _ in range(2000)
        ]
    ).reshape(-1, 3, 3, 3)
    one, two, three = (tables.sum(axis=axes) / ROWS for axes in ((2, 3), (1, 3), (1, 2)))
    product = one[:, :, None, None] * two[:, None, :, None] * three[:, None, None, :]
    scatter = np.mean((tables / ROWS - product) ** 2, axis=0).reshape(-1)
    term = judged.terms >> 1
    held = shares[judged.literals.codes[term]]
    np.testing.assert_allclose(_chance(player, known, judged, held), scatter, rtol=0.2)


def test_truths_have_rows_where_columns_are_independent_and_only_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[float] = []
    draw = _Rows.drawn

    def watched(model: Any, people: float, generator: Any) -> _Rows:
        drawn.append(people)
        return draw(model, people, generator)

    monkeypatch.setattr(_Rows, "drawn", watched)
    for kept, expected in ((0.7, np.inf), (0.0, ROWS)):
        drawn.clear()
        rehearse_tables(*fitted(wide=False, kept=kept))
        assert drawn == [pytest.approx(expected, rel=0.1)] * 2


def test_truths_are_as_dependent_as_the_tables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit that was shrunk to near independence is no truth to rehearse with."""
    player, known = fitted(wide=False, noise_scale=60.0)
    with monkeypatch.context() as patch:
        patch.setattr("dualquery.game.tables_player.strengths", lambda *_, **__: np.full(3, 500.0))
        known = player.fitted_anew(known, 200)
    truths: list[Mixture] = []
    draw = _Rows.drawn

    def watched(model: Mixture, people: float, generator: Any) -> _Rows:
        truths.append(model)
        return draw(model, people, generator)

    monkeypatch.setattr(_Rows, "drawn", watched)
    rehearse_tables(player, known)
    cells = known.measurements[1].marginals.queries(player.workload.schema)

    def squares(model: Mixture) -> float:
        tables = model.answers(cells).reshape(3, 3, 3)
        product = tables.sum(axis=2)[:, :, None] * tables.sum(axis=1)[:, None, :]
        return float(((tables - product) ** 2).sum())

    seen = Matching(known.measurements, player.model(known), ROWS).seen
    assert squares(player.model(known)) < 0.5 * seen
    # Four components of the looser fit do not reach all of it.
    assert 0.6 * seen < squares(truths[0]) < 1.1 * seen
    assert truths[1].tables.shape == truths[0].tables.shape


@pytest.mark.parametrize("people", [2_000, 80_000])
def test_rows_depart_from_their_model_as_far_as_chance_does(people: int) -> None:
    """Of 80,000 rows a quarter is drawn; its chance is scaled to that of all."""
    player, known = fitted(wide=False)
    model, judged = player.model(known), all_marginals(player.workload.schema, 2)
    share = model.answers(judged)
    off = [
        _Rows.drawn(model, people, np.random.default_rng(seed)).answers(judged) - share
        for seed in range(60)
    ]
    expected = np.mean(share * (1.0 - share)) / people
    assert np.mean(np.square(off)) == pytest.approx(expected, rel=0.15)
    np.testing.assert_array_equal(
        _Rows.drawn(model, np.inf, np.random.default_rng(0)).answers(judged), share
    )


def test_triples_depart_by_chance_from_what_their_pairs_say() -> None:
    """Three fair 0/1 columns: what is left of a cell when its pairs are taken off."""
    schema = Schema(tuple(Attribute.binary(name) for name in "abc"))
    fair = Mixture(schema, np.ones(1), np.full((6, 1), 0.5))
    asked = all_marginals(schema, 2)
    judged = asked + all_marginals(schema, 3)
    found = _chance_of_three(fair, judged, len(asked), ROWS)
    assert not found[: len(asked)].any()
    random = np.random.default_rng(1)
    counts = random.multinomial(ROWS, np.full(8, 0.125), 4000) / ROWS
    # In eight cells, all that no pair shows is the sum with alternating signs.
    signs = np.array([1, -1, -1, 1, -1, 1, 1, -1])
    unseen = np.var(counts @ signs / 8.0)
    np.testing.assert_allclose(found[len(asked) :], unseen, rtol=0.1)
    # Triples that were asked for were measured or drawn: the rehearsal has them.
    assert not _chance_of_three(fair, judged, len(judged), ROWS).any()


def test_triples_are_rehearsed_though_pairs_alone_are_asked() -> None:
    player, _ = fitted(wide=False)
    lengths = np.diff(_with_narrow(player.workload, 0).start)
    assert np.bincount(lengths)[1:].min() >= 4000
    schema = player.workload.schema
    asked = all_marginals(schema, 3)
    assert (np.diff(_with_narrow(asked, 0).start) == 3).sum() == len(asked)
