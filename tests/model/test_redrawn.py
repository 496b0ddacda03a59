"""Models whose shares are drawn anew for a rehearsal."""

from __future__ import annotations

import numpy as np

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model.mixture import Mixture
from dualquery.model.redrawn import redrawn, share_noise
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Groups, Marginals

SIZES = (3, 2, 4)


def schema() -> Schema:
    return Schema(
        tuple(Attribute.categorical(f"a{i}", list(range(s))) for i, s in enumerate(SIZES))
    )


def measurement(groups: Groups, attributes: list[tuple[int, ...]], scale: float) -> Measurement:
    marginals = Marginals(groups, np.array(attributes, dtype=np.int32))
    return Measurement(marginals, Noise.GAUSSIAN, scale, np.zeros(marginals.cells, np.int64))


def test_noise_of_shares_adds_up_what_every_table_says() -> None:
    declared = schema()
    groups = Groups.single(declared)
    coarse = groups.merged(2, np.array([0, 0, 1, 1], np.int32))
    one = measurement(groups, [(0,), (1,)], 5.0)
    two = measurement(coarse, [(0, 1), (0, 2)], 7.0)
    found = share_noise(declared, [one, two], 1000.0)
    # Column 0: its own table, a pair whose two cells add up to a code, and one of two groups.
    first = 1.0 / np.sqrt(1.0 / one.variance + 0.5 / two.variance + 0.5 / two.variance) / 1000.0
    second = 1.0 / np.sqrt(1.0 / one.variance + 1.0 / (3.0 * two.variance)) / 1000.0
    np.testing.assert_allclose(found[:3], first)
    np.testing.assert_allclose(found[3:5], second)
    assert np.all(found[5:] == 0.0)  # its codes were seen in groups only


def test_shares_are_redrawn_around_their_own_and_others_stay() -> None:
    declared = schema()
    random = np.random.default_rng(2)
    tables = np.concatenate([random.dirichlet(np.full(s, 5.0), 3).T for s in SIZES])
    model = Mixture(declared, random.dirichlet(np.ones(3)), tables)
    spread = np.array([0.01] * 3 + [0.02] * 2 + [0.0] * 4)
    shares = tables @ model.weights
    found = np.stack(
        [
            (made := redrawn(model, spread, np.random.default_rng(i))).tables @ made.weights
            for i in range(400)
        ]
    )
    np.testing.assert_allclose(found[:, :3].sum(axis=1), 1.0)
    np.testing.assert_allclose(found.mean(axis=0), shares, atol=0.003)
    assert np.all(found[:, :5].std(axis=0) > 0.004)
    assert np.all(found[:, :5].std(axis=0) < 0.025)
    np.testing.assert_allclose(found[:, 5:], np.tile(shares[5:], (400, 1)), rtol=1e-9)


def test_a_share_far_below_its_spread_neither_grows_nor_vanishes() -> None:
    declared = Schema((Attribute.categorical("a", list(range(3))),))
    model = Mixture(declared, np.ones(1), np.array([[0.999], [0.001], [0.0]]))
    found = np.stack(
        [
            redrawn(model, np.full(3, 0.05), np.random.default_rng(i)).tables[:, 0]
            for i in range(900)
        ]
    )
    assert 0.0008 < found[:, 1].mean() < 0.0013
    assert 0.0007 < found[:, 1].std() < 0.0016
    assert np.all(found[:, 2] < 1e-9)
