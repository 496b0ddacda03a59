"""What a release says of its relations: pairs that were not measured, and how its model fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualquery.domain.schema import Schema
from dualquery.game.moves import TablesMove
from dualquery.game.transcript import Released, Round, Transcript
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.release.knowledge import FitDistance, KnownPairs
from dualquery.release.page.render import render_page
from dualquery.release.release import Release
from dualquery.workloads.marginals import Groups, Marginals
from tests.release.page.releases import made_release, with_mixture

NOISE = 30.0


def measured(schema: Schema, *, off: float = 0.0) -> Release:
    """All columns measured alone and two pairs, with noise around what the model says.

    Args:
        schema: six columns.
        off: how many noises the second pair is off in each cell.
    """
    base = with_mixture(made_release(schema, 30), 3)
    assert base.model is not None
    random, turns = np.random.default_rng(1), list(base.transcript)
    ones = [(a,) for a in range(len(schema))]
    for sets, away in ((ones, 0.0), ([(0, 1)], 0.0), ([(2, 3)], off)):
        counts = np.concatenate([10_000 * base.model.table(one).reshape(-1) for one in sets])
        signs = np.where(np.arange(len(counts)) % 2, 1.0, -1.0)
        counts = counts + NOISE * (random.standard_normal(len(counts)) + away * signs)
        tables = Marginals(Groups.single(schema), np.array(sets, dtype=np.int32))
        one = Measurement(tables, Noise.GAUSSIAN, NOISE, np.rint(counts).astype(np.int64))
        turns.append(Round(0.0, Released.measured(one).draws, TablesMove(), one))
    return replace(base, transcript=Transcript(tuple(turns)))


def test_pairs_that_no_table_held_are_told_by_column(schema: Schema) -> None:
    found = KnownPairs.of(measured(schema))
    assert found is not None
    assert (found.pairs, found.measured) == (15, 2)
    names = schema.names
    assert found.left_out[names[0]] == (names[2], names[3], names[4], names[5])
    assert found.left_out[names[3]] == (names[0], names[1], names[4], names[5])
    assert sum(map(len, found.left_out.values())) == 2 * 13
    assert found.told.startswith("2 of 15 pairs of columns were measured together")


def test_a_model_that_the_tables_came_from_is_as_far_as_noise_explains(schema: Schema) -> None:
    found = FitDistance.of(measured(schema))
    assert found is not None
    assert (found.tables, found.beyond) == (8, 0)
    assert found.told == "noise explains how far the model is from each of 8 tables"


def test_a_table_that_the_model_does_not_have_is_named(schema: Schema) -> None:
    found = FitDistance.of(measured(schema, off=3.0))
    assert found is not None
    assert (found.tables, found.beyond) == (8, 1)
    assert found.farthest == tuple(schema.names[2:4])
    assert found.ratio == pytest.approx(np.sqrt(1.0 + 3.0**2), rel=0.4)
    assert " × ".join(found.farthest) in found.told


def test_without_measured_tables_nothing_is_told(schema: Schema) -> None:
    base = made_release(schema, 30)
    for release in (base, with_mixture(base, 3)):
        assert KnownPairs.of(release) is None
        assert FitDistance.of(release) is None


def test_the_page_tells_specialists(schema: Schema) -> None:
    page = render_page(measured(schema, off=3.0))
    assert "2 of 15 pairs of columns were measured together" in page
    assert "farther from the model than noise explains" in page
    assert "Columns that were not measured together" in page
    assert "Columns that were not measured together" not in render_page(made_release(schema, 30))
