"""Truths of rehearsals that are as dependent as measured tables say."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model.matched import Matching
from dualquery.model.mixture import Mixture
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Groups, Marginals

SIZES = (3, 2, 4, 3)
SCHEMA = Schema(tuple(Attribute.categorical(f"a{i}", list(range(s))) for i, s in enumerate(SIZES)))
SETS = {
    2: [(i, j) for j in range(4) for i in range(j)],
    3: [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)],
}
ROWS = 5000


def mixture(strength: float) -> Mixture:
    """Two halves whose columns differ the more, the larger the strength; the margins stay."""
    random = np.random.default_rng(7)
    tables = []
    for size in SIZES:
        middle, move = random.dirichlet(np.full(size, 5.0)), random.normal(size=size)
        move = 0.5 * middle.min() * (move - move.mean()) / np.abs(move - move.mean()).max()
        tables.append(np.column_stack([middle + strength * move, middle - strength * move]))
    return Mixture(SCHEMA, np.array([0.5, 0.5]), np.vstack(tables))


def measured(shares: np.ndarray, arity: int, scale: float, seed: int = 0) -> Measurement:
    noise = scale * np.random.default_rng(seed).standard_normal(len(shares))
    counts = np.rint(ROWS * shares + noise).astype(np.int64)
    sets = Marginals(Groups.single(SCHEMA), np.array(SETS[arity], dtype=np.int32))
    return Measurement(sets, Noise.GAUSSIAN, scale, counts)


def shares(model: Mixture, arity: int) -> np.ndarray:
    sets = Marginals(Groups.single(SCHEMA), np.array(SETS[arity], dtype=np.int32))
    return model.answers(sets.queries(SCHEMA))


def squares(model: Mixture, arity: int) -> float:
    """The same sum by its definition."""
    return float(((shares(model, arity) - shares(mixture(0.0), arity)) ** 2).sum())


@pytest.mark.parametrize("arity", [2, 3])
def test_the_squares_of_noisy_tables_are_those_of_the_truth(arity: int) -> None:
    truth, weak = mixture(1.0), mixture(0.4)
    found = [
        Matching([measured(shares(truth, arity), arity, 40.0, seed)], weak, ROWS).seen
        for seed in range(400)
    ]
    # Rounding to whole numbers adds a twelfth per cell, which is far below the noise.
    spread = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - squares(truth, arity)) < 4.0 * spread
    assert spread < 0.1 * squares(truth, arity)


@pytest.mark.parametrize("arity", [2, 3])
def test_a_part_of_a_looser_fit_makes_up_for_what_was_lost(arity: int) -> None:
    exact = measured(shares(mixture(1.0), arity), arity, 1e-3)
    matching = Matching([exact], mixture(0.5), ROWS)
    assert matching.lost
    made = matching.with_part_of(mixture(1.5))
    assert 0.0 < matching.part_of(mixture(1.5)) < 1.0
    assert squares(made, arity) == pytest.approx(squares(mixture(1.0), arity), rel=0.02)
    assert made.weights.sum() == pytest.approx(1.0)


def test_pairs_count_if_there_are_both() -> None:
    both = [measured(shares(mixture(1.0), k), k, 1e-3) for k in (2, 3)]
    assert Matching(both, mixture(0.5), ROWS).seen == Matching(both[:1], mixture(0.5), ROWS).seen


def test_a_model_that_has_lost_nothing_stays_and_one_that_cannot_reach_goes_all_the_way() -> None:
    exact = measured(shares(mixture(1.0), 2), 2, 1e-3)
    assert not Matching([exact], mixture(1.0), ROWS).lost
    assert Matching([exact], mixture(1.2), ROWS).part_of(mixture(1.5)) == 0.0
    assert Matching([exact], mixture(0.4), ROWS).part_of(mixture(0.6)) == 1.0


@pytest.mark.parametrize("arity", [2, 3])
def test_chance_of_independent_rows_is_no_dependence(arity: int) -> None:
    model, random = mixture(0.0), np.random.default_rng(3)
    sets = Marginals(Groups.single(SCHEMA), np.array(SETS[arity], dtype=np.int32))
    plain, beyond = [], []
    for _ in range(300):
        rows = model.sample(ROWS, random)
        counts = [
            np.bincount(sets.cell_of(t, rows), minlength=int(shape.prod()))
            for t, shape in enumerate(sets.shapes)
        ]
        # The margins are those of the rows, as a fit would have them.
        margins = [np.bincount(rows[:, a], minlength=s) / ROWS for a, s in enumerate(SIZES)]
        own = Mixture(SCHEMA, np.ones(1), np.concatenate(margins)[:, None])
        one = Measurement(sets, Noise.GAUSSIAN, 1e-3, np.concatenate(counts))
        plain.append(Matching([one], own, ROWS).seen)
        beyond.append(Matching([one], own, ROWS, chance=1.0).seen)
    assert np.mean(plain) > 10.0 * np.std(plain) / np.sqrt(len(plain))
    assert abs(np.mean(beyond)) < 0.05 * np.mean(plain)
