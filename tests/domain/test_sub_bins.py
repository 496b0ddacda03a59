"""Sub-bins: the rule that cuts bins, and where values are drawn inside them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.domain.sub_bins import SubBins
from dualquery.release.within import Within

WHOLE_EDGES = st.lists(st.integers(-10_000, 1_000_000), min_size=2, max_size=8, unique=True)
DECIMAL_EDGES = st.lists(
    st.floats(-1e6, 1e9).filter(lambda edge: abs(edge) > 1e-3 or edge == 0.0),
    min_size=2,
    max_size=8,
    unique=True,
)


@st.composite
def numeric(draw: st.DrawFn) -> Attribute:
    edges = sorted(draw(st.one_of(WHOLE_EDGES, DECIMAL_EDGES)))
    parts = draw(st.one_of(st.none(), st.integers(1, 40)))
    return Attribute.numeric("x", edges, sub_bins=parts)


@given(numeric())
def test_sub_bins_are_a_finer_partition(attribute: Attribute) -> None:
    sub_bins = SubBins.of(attribute)
    assert np.all(np.diff(sub_bins.edges) > 0)
    assert set(attribute.edges) <= set(sub_bins.edges)
    np.testing.assert_array_equal(sub_bins.edges[sub_bins.start], attribute.edges)
    np.testing.assert_allclose(
        np.add.reduceat(sub_bins.plain, sub_bins.start[:-1]), 1.0, rtol=1e-12
    )
    low, high = sub_bins.ends
    assert np.all(high > low)
    if sub_bins.whole:
        assert np.all(sub_bins.edges == np.rint(sub_bins.edges))


@given(numeric(), st.integers(0, 2**32))
def test_values_never_leave_their_bin(attribute: Attribute, seed: int) -> None:
    within = Within.unmeasured(attribute)
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, attribute.proper_size, 300)
    values = within.draw(codes, generator)
    for value, code in zip(values.tolist(), codes.tolist(), strict=True):
        assert attribute.code_of(value) == code
    # Neither do the ends of each sub-bin, however they are rounded.
    every = np.repeat(np.arange(len(within.edges) - 1), 2)
    places = np.tile([0.0, np.nextafter(1.0, 0.0)], len(within.edges) - 1)
    for value, part in zip(within.sub_bins.values(every, places), every, strict=True):
        assert attribute.code_of(value) == within.bin_of[part]


@given(numeric())
def test_means_are_those_of_the_drawn_values(attribute: Attribute) -> None:
    sub_bins = SubBins.of(attribute)
    low, high = sub_bins.ends
    places = (np.arange(4000) + 0.5) / 4000
    for part in range(min(len(sub_bins), 6)):
        drawn = sub_bins.values(np.full(4000, part), places).mean()
        # The grid of places is coarse beside the logarithm's bend and the whole numbers.
        tolerance = 2e-3 * (high - low)[part]
        assert drawn == pytest.approx(sub_bins.means[part], rel=1e-3, abs=tolerance)


def test_wide_bins_are_cut_logarithmically() -> None:
    money = SubBins.of(Attribute.numeric("cost", [0.0, 100.0, 1000.0, 1_000_000.0]))
    assert money.logarithmic.tolist() == [False] * 21 + [True] * 42
    ratios = money.edges[43:] / money.edges[42:-1]
    np.testing.assert_allclose(ratios, 1000 ** (1 / 21))
    steps = np.diff(money.edges[:22])
    np.testing.assert_allclose(steps, 100 / 21)


def test_few_whole_numbers_stand_for_themselves() -> None:
    ages = SubBins.of(Attribute.numeric("age", [0, 25, 35, 50, 65, 120]))
    assert ages.edges.tolist() == list(range(121))
    assert ages.start.tolist() == [0, 25, 35, 50, 65, 120]
    low, high = ages.ends
    assert (low[-1], high[-1]) == (119, 121)  # the last bin is closed: 120 is one of its values


def test_the_rule_is_part_of_the_format() -> None:
    """Releases hold counts of sub-bins without their edges: the rule must not change."""
    found = SubBins.of(Attribute.numeric("x", [0, 10, 1000, 20000, 3_000_000]))
    assert found.start.tolist() == [0, 10, 26, 42, 58]
    assert found.edges[[9, 11, 20, 30, 57, 58]].tolist() == [9, 13, 178, 2115, 2193388, 3000000]
    only = SubBins.of(Attribute.numeric("x", [0.0, 5000.0]))
    assert len(only) == 64
    np.testing.assert_allclose(only.edges[:3], [0.0, 0.5, 0.57873], rtol=1e-4)
    many = SubBins.of(Attribute.numeric("x", [float(e) for e in range(100)]))
    assert len(many) == 99


def test_whole_and_decimal_columns_with_the_same_edges_differ() -> None:
    assert SubBins.of(Attribute.numeric("x", [0, 10])).whole
    assert not SubBins.of(Attribute.numeric("x", [0.0, 10.0])).whole


def test_sub_bins_can_be_declared() -> None:
    schema = Schema.from_dict({"attributes": {"x": {"edges": [0, 1000, 2000], "sub_bins": 5}}})
    assert SubBins.of(schema["x"]).edges.tolist() == list(range(0, 2001, 200))
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize("value", [0, -1, 1001, 2.5, True, "8"])
def test_a_bad_number_of_sub_bins_is_refused(value: object) -> None:
    with pytest.raises(SchemaError, match=r"'x': sub_bins = .* whole number from 1 to 1,000"):
        Schema.from_dict({"attributes": {"x": {"edges": [0, 10], "sub_bins": value}}})


def test_sub_bins_need_edges() -> None:
    with pytest.raises(SchemaError, match="'x': sub_bins is for columns with edges only"):
        Schema.from_dict({"attributes": {"x": {"values": ["a"], "sub_bins": 3}}})
