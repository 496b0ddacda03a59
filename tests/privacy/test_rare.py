"""The price of rare cells: sensitivities by exhaustion, noise by weight, events, files."""

from itertools import combinations, product

import numpy as np
import pytest

from dualquery.base.errors import DualQueryError, ParameterError
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.rare import (
    FEW,
    SURE,
    Charges,
    Rare,
    cell_scale,
    edges_of,
    measure_charges,
    measure_rare,
    read_measured,
)
from dualquery.privacy.sources import SeededSource
from dualquery.rows.rare import RareRows
from dualquery.workloads.rare import RareCells
from tests.rows.test_rare import packed_rows, sets_of

WIDTH = 5
RECORDS = np.array(list(product((0, 1), repeat=WIDTH)))


def some_cells(arity: int) -> RareCells:
    sets = sets_of(WIDTH, arity)
    weights = 1 + np.arange(len(sets)) % 4
    return RareCells(sets, np.array([1, 0, 1, 1, 0], np.uint8), weights.astype(np.int64))


@pytest.mark.parametrize("arity", [1, 2, 3])
@pytest.mark.parametrize("most", [1, 2, 5, 9, 1000])
def test_no_neighbours_are_further_apart_than_is_paid_for(arity: int, most: int) -> None:
    """All pairs of records of a small universe, beside other records and alone."""
    cells = some_cells(arity)
    of_code = np.ones(WIDTH, int)
    others = RECORDS[[3, 17, 30]]

    def counts(record: np.ndarray) -> np.ndarray:
        rows = np.vstack([others, record[None, :]])
        return RareRows(packed_rows(rows, of_code), cells).counts(most)

    without = RareRows(packed_rows(others, of_code), cells).counts(most)
    each = [counts(record) for record in RECORDS]
    scale = 2.5
    made = Rare(cells, most, scale, without)
    precision = cells.weights / scale**2
    largest = {
        Neighbours.ADD_REMOVE: max(float(precision @ (one - without) ** 2) for one in each),
        Neighbours.REPLACE_ONE: max(
            float(precision @ (one - other) ** 2) for one, other in combinations(each, 2)
        ),
    }
    for neighbours, found in largest.items():
        (event,) = made.events(neighbours)
        assert found <= event.mu_squared * (1 + 1e-12)
        if most <= 5:  # the bound is reached, or nearly: it is not paid for twice
            assert found >= 0.4 * event.mu_squared


def test_charges_and_cells_are_both_paid_for() -> None:
    cells = some_cells(2)
    charges = Charges(cells, np.array([0, 3, 100]), np.array([5, 6]), 4.0)
    made = Rare(cells, 7, 2.0, np.zeros(len(cells), np.int64))
    for neighbours, one in ((Neighbours.ADD_REMOVE, 1.0), (Neighbours.REPLACE_ONE, 2.0)):
        events = Events.of_measurements(*charges.events(neighbours), *made.events(neighbours))
        assert events.mu_squared == pytest.approx(one / 16.0 + one * 7 / 4.0)
        assert events.rho == pytest.approx(0.5 * events.mu_squared)


def test_the_noise_of_a_cell_follows_its_weight() -> None:
    weights = np.repeat([1, 4, 9, 64], 5000).astype(np.int64)
    sets = np.arange(len(weights), dtype=np.int32)[:, None]
    cells = RareCells(sets, np.ones(len(weights), np.uint8), weights)
    counts = np.full(len(weights), 100, np.int64)
    made = measure_rare(counts, cells, 50, 40.0, SeededSource(3))
    for weight in (1, 4, 9, 64):
        noise = (made.counts - counts)[weights == weight]
        expected = 1600.0 / weight + 1.0 / 12.0
        assert made.variances[weights == weight] == pytest.approx(expected)
        assert noise.var() == pytest.approx(expected, rel=0.08)
        assert abs(noise.mean()) < 5 * np.sqrt(expected / 5000)
    assert abs(np.corrcoef(made.counts[:5000], made.counts[5000:10000])[0, 1]) < 0.06


def test_the_scale_of_a_cell_is_never_rounded_down() -> None:
    from fractions import Fraction

    random = np.random.default_rng(1)
    for weight in range(1, 65):
        for scale in random.uniform(0.01, 1e6, 50):
            rounded = Fraction(cell_scale(scale, weight))
            assert rounded**2 * weight >= Fraction(scale) ** 2


def test_the_bound_cuts_few_records() -> None:
    random, cells = np.random.default_rng(0), some_cells(1)
    charged = random.poisson(40, 20_000)
    edges = edges_of(40.0, 500)
    assert edges[0] == 0
    assert edges[-1] == 501
    assert (np.diff(edges) > 0).all()
    counts = np.histogram(charged, edges)[0]
    for seed in range(5):
        made = measure_charges(counts, cells, edges, 10.0, SeededSource(seed))
        most = made.most(20_000, 45.0)
        assert 0.0 < (charged > most).mean() < 0.02
        assert most < 80
    # Without records, or with records in no cell, the bound is the smallest there is.
    nothing = Charges(cells, edges, np.zeros(len(counts), np.int64), 10.0)
    assert nothing.most(20_000, 0.0) >= 1


def test_a_few_records_with_all_codes_are_not_cut() -> None:
    """They are few, but they hold a large part of every cell: without them all shares are off."""
    random, cells = np.random.default_rng(0), some_cells(1)
    charged = random.poisson(40, 20_000)
    charged[:80] = 2000  # 0.4 %
    edges = edges_of(48.0, 2000)
    counts = np.histogram(charged, edges)[0]
    plain = np.where(np.arange(len(counts)) < len(counts) - 1, counts, 0)
    for seed in range(5):
        made = measure_charges(counts, cells, edges, 5.0, SeededSource(seed))
        assert made.most(20_000, 60.0) >= 1900
        without = measure_charges(plain, cells, edges, 5.0, SeededSource(seed))
        assert without.most(20_000, 60.0) < 80


def test_edges_serve_every_expectation() -> None:
    for expected in (0.0, 0.01, 1.0, 7.3, 1e4):
        for heaviest in (1, 2, 50, 10**7):
            edges = edges_of(expected, heaviest)
            assert edges[0] == 0
            assert edges[-1] == heaviest + 1
            assert (np.diff(edges) > 0).all()
            assert len(edges) < 200


def test_there_and_back() -> None:
    cells = some_cells(2)
    counts = np.arange(len(cells))
    charges = Charges(cells, np.array([0, 3, 100]), np.array([5, -6]), 2.0)
    for made in (Rare(cells, 7, 2.0, counts), charges):
        back = read_measured(made.to_arrays())
        assert type(back) is type(made)
        assert back.scale == 2.0
        for name, array in made.to_arrays().items():
            np.testing.assert_array_equal(back.to_arrays()[name], array)


def test_of_a_large_table_no_more_records_are_cut_than_noise_hides() -> None:
    """What records lose that are charged far more than others would be seen in every cell."""
    random, cells, scale = np.random.default_rng(0), some_cells(1), 40.0
    charged = np.minimum(40 * random.lognormal(0.0, 1.0, 2_000_000), 5000).astype(int)
    edges = edges_of(40.0, 5000)
    counts = np.histogram(charged, edges)[0]
    for seed in range(5):
        made = measure_charges(counts, cells, edges, scale, SeededSource(seed))
        most = made.most(len(charged), 0.0)
        above = int((edges > most + 1).sum())
        assert 0 < (charged > most).sum() < (FEW + 2 * SURE * above**0.5) * scale


def test_noise_of_a_huge_budget_can_be_drawn_for_every_weight() -> None:
    cells = RareCells(
        np.arange(2, dtype=np.int32)[:, None], np.ones(2, np.uint8), np.array([1, 64])
    )
    made = measure_rare(np.array([5, 7]), cells, 1, 2.0**-10, SeededSource(0))
    np.testing.assert_array_equal(made.counts, [5, 7])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attributes", np.array([[0, 0]])),
        ("attributes", np.array([[0, 99]])),
        ("attributes", np.array([[0, 1], [1, 0]])),
        ("attributes", np.zeros((0, 0), int)),
        ("rare_codes", np.array([7, 7, 7, 7, 7])),
        ("weights", np.zeros(10, int)),
        ("weights", np.ones(3, int)),
        ("rare_codes", np.array([1, 0, -1, 1, 0])),
        ("most", np.array(0)),
        ("most", np.array([1, 2])),
        ("scale", np.array(-1.0)),
        ("scale", np.array(np.nan)),
        ("counts", np.arange(3)),
        ("counts", np.arange(10) / 2),
        ("edges", np.array([0, 5])),
        ("edges", np.array([[0, 3, 100]])),
        ("edges", np.array([0.0, 3.0, 100.0])),
    ],
)
def test_forged_rare_cells_are_refused(name: str, value: np.ndarray) -> None:
    charges = Charges(some_cells(2), np.array([0, 3, 100]), np.array([5, 6]), 4.0)
    rare = Rare(some_cells(2), 7, 2.0, np.arange(10))
    forged = [one for one in (charges, rare) if name in one.to_arrays()]
    assert forged
    for one in forged:
        with pytest.raises(DualQueryError):
            read_measured({**one.to_arrays(), name: value})


def test_counts_of_another_shape_are_refused() -> None:
    cells = some_cells(1)
    with pytest.raises(ParameterError):
        measure_rare(np.zeros(3, np.int64), cells, 2, 1.0, SeededSource(0))
    with pytest.raises(ParameterError):
        measure_charges(np.zeros(3, np.int64), cells, np.array([0, 1]), 1.0, SeededSource(0))
