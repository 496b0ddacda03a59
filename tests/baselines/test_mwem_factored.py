"""MWEM in factors: the same as MWEM where all hangs together, and far wider where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.mwem import IMPROVED, Mwem, Settings
from dualquery.baselines.mwem_factored import Factor, FactoredMwem, Factors
from dualquery.baselines.product import Uniform
from dualquery.baselines.universe import OnUniverse
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.privacy.sources import SeededSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import parities, random_marginals
from dualquery.workloads.workload import Workload

SCHEMA = Schema(
    (
        Attribute.binary("a"),
        Attribute.categorical("b", ["x", "y", "z"]),
        Attribute.binary("c"),
        Attribute.categorical("d", ["p", "q", "r", "s"]),
        Attribute.binary("e"),
    )
)


def test_a_product_answers_as_the_whole_distribution() -> None:
    """Conjunctions and parities, across factors and over attributes that are in none."""
    random = np.random.default_rng(1)
    one, two = random.random((2, 2)), random.random((3, 4))
    product = Factors(SCHEMA, (Factor((0, 2), one / one.sum()), Factor((1, 3), two / two.sum())))
    whole = np.einsum("ac,bd,e->abcde", one / one.sum(), two / two.sum(), [0.5, 0.5])
    workload = random_marginals(SCHEMA, 3, 200) + parities(SCHEMA, 3, 100) + parities(SCHEMA, 1, 9)
    np.testing.assert_allclose(
        product.answers(workload), OnUniverse(workload).answers(whole), atol=1e-12
    )
    factor, others = product.merged([2, 3])
    assert (factor.attributes, others) == ((0, 1, 2, 3), ())
    asked = Workload.of([parse("c & d=q", SCHEMA), parse("a & c", SCHEMA)], SCHEMA)
    np.testing.assert_allclose(product.entries(asked), [factor.distribution.size, 4])
    np.testing.assert_allclose(factor.distribution, whole.sum(axis=4))


def test_where_all_hangs_together_it_is_mwem() -> None:
    schema = Schema(SCHEMA.attributes[:3])
    workload = random_marginals(schema, 3, 40)
    counts = Counted(np.random.default_rng(2).integers(0, 5_000, 40), 20_000)
    made = FactoredMwem.fit(counts, workload, epsilon=2.0, source=SeededSource(4))
    known = Mwem.fit(counts, workload, epsilon=2.0, source=SeededSource(4), settings=IMPROVED)
    np.testing.assert_allclose(made.answers(workload), known.answers(workload), atol=1e-9)
    assert made.privacy.epsilon == known.privacy.epsilon


def rows_in_groups(groups: int, rows: int = 4_000) -> tuple[Workload, Counted]:
    """Disjoint groups of four 0/1 columns that hang together, and queries inside the groups."""
    random = np.random.default_rng(groups)
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(4 * groups)))
    hidden = np.repeat(random.random((rows, groups)) < 0.2, 4, axis=1)
    table = (hidden ^ (random.random(hidden.shape) < 0.05)).astype(np.int32)
    inside = random_marginals(Schema(schema.attributes[:4]), 3, 20)
    bits = inside.literals.attribute[inside.terms >> 1] + 4 * np.repeat(
        random.integers(0, groups, 20), 3
    )
    literals = random_marginals(schema, 1, 1).literals.single(
        np.arange(4 * groups), np.ones(4 * groups, dtype=np.int64)
    )
    terms = (2 * bits + (inside.terms & 1)).reshape(20, 3)
    workload = Workload.conjunctions(schema, literals, terms)
    held = (table[:, bits.reshape(20, 3)] == 1) ^ (terms & 1).astype(bool)
    return workload, Counted(held.all(axis=2).sum(axis=0).astype(np.int64), rows)


@pytest.mark.parametrize("groups", [20, 250])
def test_disjoint_groups_are_cheap_at_77_and_at_1000_attributes(groups: int) -> None:
    """The widths of its authors: 77 in general, 1,000 where queries stay inside groups."""
    workload, counts = rows_in_groups(groups)
    made = FactoredMwem.fit(
        counts,
        workload,
        epsilon=30.0,
        source=SeededSource(1),
        settings=Settings(20, passes=60, repeats=False),
    )
    assert all(len(one.attributes) <= 4 for one in made.product.factors)
    truth = counts.counts / counts.rows
    error = np.abs(made.answers(workload) - truth).mean()
    assert error < 0.2 * np.abs(Uniform().answers(workload) - truth).mean()


def test_factors_stay_small_whatever_is_chosen() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(60)))
    workload = random_marginals(schema, 3, 300)
    counts = Counted(np.random.default_rng(3).integers(0, 3_000, 300), 4_000)
    settings = Settings(40, passes=1, repeats=False)
    made = FactoredMwem.fit(
        counts, workload, epsilon=9.0, source=SeededSource(1), settings=settings, largest=64
    )
    assert max(one.distribution.size for one in made.product.factors) <= 64
    assert max(one.distribution.size for one in made.product.factors) > 8
    with pytest.raises(ParameterError, match="more than 4 combinations"):
        FactoredMwem.fit(counts, workload, epsilon=9.0, source=SeededSource(1), largest=4)
