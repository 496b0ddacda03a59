"""Releases whose model joins attributes: what is asked, stored, read back and sampled."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import dualquery as dq
from dualquery.base.errors import ReleaseError
from dualquery.game import declared
from dualquery.model.arranging import arranged
from dualquery.release.release import Release
from dualquery.workloads.workload import Workload
from tests.release.page.releases import hostile_schema, made_release, with_forest, with_mixture


@pytest.fixture(scope="module")
def release() -> Release:
    return with_forest(made_release(hostile_schema(), 30), 3)


def test_questions_are_answered_by_the_model_itself(release: Release) -> None:
    assert release.model is not None
    schema = release.schema
    for pair in combinations(range(len(schema)), 2):
        names = [schema.names[a] for a in pair]
        table = release.cross_table(*names, unknown="default")
        assert table.share.reshape(-1) == pytest.approx(
            release.model.table(pair).reshape(-1), abs=1e-12
        )
    queries = release.actions.queries
    expected = release.model.answers(queries)
    found = [release.answer(queries.query(q), unknown="default") for q in range(40)]
    assert found == pytest.approx(expected[:40], abs=1e-9)


def test_a_condition_across_a_tree(release: Release) -> None:
    assert release.model is not None
    assert release.model.edges is not None
    trees = release.model.edges.trees
    child = int(trees.children[-1])
    parent = int(trees.parent[child])
    other = next(a for a in range(len(release.schema)) if a not in (child, parent))
    whole = release.model.table((other, parent, child))
    schema = release.schema
    from dualquery.domain.query import Literal, Query

    condition = Query("conjunction", (Literal(child, (1,)), Literal(parent, (0,))))
    table = release.cross_table(schema.names[other], where=condition, unknown="default")
    assert table.share == pytest.approx(whole[:, 0, 1] / whole[:, 0, 1].sum(), abs=1e-9)


def test_it_is_stored_and_read_back(release: Release, tmp_path: Path) -> None:
    assert release.model is not None
    assert release.model.edges is not None
    release.save(tmp_path / "out")
    back = dq.load(tmp_path / "out")
    assert back.model is not None
    assert back.model.edges is not None
    assert np.array_equal(back.model.edges.ties, release.model.edges.ties)
    assert np.array_equal(back.model.edges.trees.parent, release.model.edges.trees.parent)
    queries: Workload = release.actions.queries
    assert back.model.answers(queries) == pytest.approx(release.model.answers(queries), abs=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(parent=_circle(a["parent"])), "circle"),
        (lambda a: a.update(ties=a["ties"][:, :-1]), "ties, expected"),
        (lambda a: a.update(group_of_code=np.zeros_like(a["group_of_code"])), "groups"),
    ],
)
def test_edges_that_are_none_are_refused(release: Release, change, message) -> None:
    assert release.model is not None
    assert release.model.edges is not None
    arrays = {
        "weights": release.model.weights,
        "tables": release.model.own,
        "error_scale": np.empty((0, 0)),
        **release.model.edges.to_arrays(),
    }
    declared.check_model(arrays, release.schema)
    change(arrays)
    with pytest.raises(ReleaseError, match=message):
        declared.check_model(arrays, release.schema)


def _circle(parent: np.ndarray) -> np.ndarray:
    found = parent.copy()
    child = int(np.flatnonzero(parent >= 0)[0])
    found[parent[child]] = child
    return found


def test_rows_are_dealt_along_edges(release: Release) -> None:
    """Far nearer to the model than independent rows, also in pairs that an edge joins."""
    assert release.model is not None
    assert release.model.edges is not None
    model, rows = release.model, 20_000
    codes = arranged(model, rows, np.random.default_rng(0))
    plain = model.sample(rows, np.random.default_rng(0))
    trees = model.edges.trees
    far, near = [], []
    for child in trees.children.tolist():
        pair = (int(trees.parent[child]), child)
        expected = model.table(pair)
        for found, kept in ((codes, near), (plain, far)):
            counts = np.zeros(expected.shape)
            np.add.at(counts, tuple(found[:, list(pair)].T), 1.0 / rows)
            kept.append(np.abs(counts - expected).sum())
    assert np.mean(near) < 0.35 * np.mean(far)


def test_a_model_without_edges_answers_as_before() -> None:
    plain = with_mixture(made_release(hostile_schema(), 30), 5)
    assert plain.model is not None
    assert plain.model.edges is None
    assert plain.model.tables is plain.model.own
