"""Pairs that a mixture cannot express, in the rows that are arranged from it."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model.arranging import arranged
from dualquery.model.corrections import CLEAR, corrections, dealt_again
from dualquery.model.mixture import Mixture
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Groups, Marginals

ROWS = 20_000
SCHEMA = Schema(
    (
        Attribute.categorical("dose", range(10)),
        Attribute.categorical("step", range(10)),
        Attribute.categorical("ward", range(3)),
        Attribute.categorical("region", range(4)),
        Attribute.categorical("site", range(12)),
    )
)


def records() -> np.ndarray:
    """Step is nine minus dose, the region follows from the site, and the ward from the dose."""
    random = np.random.default_rng(4)
    dose = np.clip(np.rint(random.normal(4.5, 2.0, ROWS)), 0, 9)
    ward = np.where(random.random(ROWS) < 0.8, dose // 4, random.integers(0, 3, ROWS))
    site = random.integers(0, 12, ROWS)
    return np.column_stack([dose, 9 - dose, ward, site // 3, site]).astype(np.int32)


def measured(noise: float, seed: int = 0) -> tuple[Measurement, ...]:
    """One-way tables and all pairs."""
    random, rows = np.random.default_rng(seed), records()
    found = []
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    for sets in ([(a,) for a in range(5)], pairs):
        tables = Marginals(Groups.single(SCHEMA), np.array(sets, dtype=np.int32))
        counts = np.concatenate(
            [
                np.bincount(tables.cell_of(t, rows), minlength=int(size))
                for t, size in enumerate(np.diff(tables.start))
            ]
        )
        counts = counts + np.rint(noise * random.standard_normal(len(counts))).astype(np.int64)
        found.append(Measurement(tables, Noise.GAUSSIAN, noise, counts))
    return tuple(found)


def blurred() -> Mixture:
    """Three components by ward: dose and step are independent within each, site and region too."""
    rows = records()
    weights = np.bincount(rows[:, 2], minlength=3) / ROWS
    tables = np.zeros((int(SCHEMA.code_start[-1]), 3))
    for k in range(3):
        for a in range(5):
            chosen = rows[rows[:, 2] == k, a] if a < 3 else rows[:, a]
            part = np.bincount(chosen, minlength=int(SCHEMA.sizes[a])) / len(chosen)
            tables[SCHEMA.code_start[a] : SCHEMA.code_start[a + 1], k] = part
    return Mixture(SCHEMA, weights, tables)


def correlation(codes: np.ndarray) -> float:
    return float(np.corrcoef(codes[:, 0], codes[:, 1])[0, 1])


def test_only_pairs_far_beyond_their_noise_are_corrected() -> None:
    assert set(corrections(blurred(), measured(60.0))) == {(0, 1), (3, 4)}
    assert corrections(blurred(), measured(1e5)) == {}, "nothing is seen through such noise"
    assert corrections(blurred(), measured(60.0)[:1]) == {}
    assert corrections(blurred(), ()) == {}


def test_arranged_rows_keep_what_determined_columns_say() -> None:
    model, truth = blurred(), records()
    targets = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    found = corrections(model, measured(60.0))
    plain = arranged(model, ROWS, np.random.default_rng(1), targets)
    better = arranged(model, ROWS, np.random.default_rng(1), targets, corrected=found)
    assert correlation(plain) > -0.8
    assert correlation(better) < -0.97
    assert np.mean(better[:, 4] // 3 == better[:, 3]) > 0.97
    for a in (0, 1, 2, 3, 4):  # shares of codes stay near the truth
        shares = [np.bincount(rows[:, a], minlength=12) / ROWS for rows in (better, truth)]
        assert np.abs(shares[0] - shares[1]).max() < 0.01
    for rows in (plain, better):  # and so does what the model expressed
        joint = [np.mean((one[:, 0] < 4) & (one[:, 2] == 0)) for one in (rows, truth)]
        assert abs(joint[0] - joint[1]) < 0.01


def test_no_more_rows_change_than_the_tables_differ_by() -> None:
    model = blurred()
    found = corrections(model, measured(60.0))
    codes = model.sample(ROWS, np.random.default_rng(2))
    before = codes.copy()
    settled = dealt_again(model, codes, found, np.random.default_rng(3))
    assert settled == [0, 1, 3, 4]
    changed = (codes != before).mean(axis=0)
    assert changed[2] == 0.0
    assert changed[4] == 0.0, "the region follows from the site, not the site from the region"
    # Under the model site and region agree in a quarter of the rows.
    assert changed[3] == pytest.approx(0.75, abs=0.02)


def test_a_pair_without_rows_is_left_alone() -> None:
    model = blurred()
    ratio = np.ones((10, 10))
    ratio[3] = 0.0  # no corrected share for this dose
    codes = model.sample(500, np.random.default_rng(5))
    kept = codes[codes[:, 0] == 3].copy()
    dealt_again(model, codes, {(0, 1): ratio}, np.random.default_rng(6))
    assert len(kept)
    assert codes.shape == (500, 5)
    assert codes.min() >= 0
    assert (codes.max(axis=0) < SCHEMA.sizes).all()


def test_blur_is_seen_where_the_squares_of_all_cells_do_not_show_it() -> None:
    """A pair that the model nearly expresses departs in a few directions of a hundred."""
    rows, near = records(), blurred()
    table = np.zeros((10, 10))
    np.add.at(table, (rows[:, 0], rows[:, 1]), 1.0 / ROWS)
    # Ten components, one per dose, each with a tenth of its steps spread over all others.
    tables = np.zeros((int(SCHEMA.code_start[-1]), 10))
    share = table.sum(axis=1)
    for k in range(10):
        tables[k, k] = 1.0
        tables[10:20, k] = 0.88 * np.eye(10)[9 - k] + 0.12 * table.sum(axis=0)
    tables[20:] = (near.tables @ near.weights)[20:, None]
    model = Mixture(SCHEMA, share, tables)
    found = corrections(model, measured(150.0))
    assert (0, 1) in found
    departure = _departure(model, measured(150.0)[1], 0)
    assert departure < CLEAR, "the sum of squares alone would have left the pair blurred"
    fixed = found[0, 1] * ((tables[:10] * share) @ tables[10:20].T)
    assert np.trace(fixed[:, ::-1]) > 0.95
    np.testing.assert_allclose(fixed.sum(axis=1), share, atol=1e-4)


def _departure(model: Mixture, one: Measurement, t: int) -> float:
    a, b = (SCHEMA.code_start[x] for x in one.marginals.attributes[t])
    expected = (model.tables[a : a + 10] * model.weights) @ model.tables[b : b + 10].T
    cells = one.counts[one.marginals.start[t] : one.marginals.start[t + 1]].reshape(10, 10)
    squares = ((cells - ROWS * expected) ** 2).sum() / one.variance
    return float((squares - 100) / np.sqrt(200.0))
