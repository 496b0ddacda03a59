"""Relations in a release beside the truth: where figures are known by hand, and by plain twins."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import dualquery as dq
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.evaluation import intervals
from dualquery.evaluation import relations as module
from dualquery.evaluation.coverage import Held, by_class, counted, sizes_of, strengths_of
from dualquery.evaluation.fidelity import cramers_v
from dualquery.evaluation.joint import correlation, numbers_of, shares_of
from dualquery.evaluation.relations import Kept, Relations, columns_of, relations
from dualquery.evaluation.wording import closeness_rows, coverage_heads, coverage_rows
from dualquery.model.mixture import Mixture
from dualquery.model.standard_errors import LEVELS, MOST_LITERALS, ErrorTable
from dualquery.release.release import Release
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.weighed import Strata
from tests.release.page.releases import made_release

SCHEMA = Schema(
    (
        Attribute.categorical("x", range(4)),
        Attribute.categorical("y", range(4)),
        Attribute.categorical("z", ["a", "b", "c"]),
        Attribute.binary("flag"),
        Attribute.numeric("amount", [0, 10, 20, 50], missing=True),
    )
)
ERRORS = ErrorTable(np.full((1, MOST_LITERALS, len(LEVELS) - 1), 0.01))


def table_of_codes(rows: int = 600) -> np.ndarray:
    random = np.random.default_rng(3)
    x = random.integers(0, 4, rows)
    y = np.where(random.random(rows) < 0.8, x, random.integers(0, 4, rows))
    z = random.choice(3, rows, p=[0.7, 0.2, 0.1])
    flag = (random.random(rows) < np.where(x > 1, 0.7, 0.3)).astype(int)
    amount = np.where(random.random(rows) < 0.1, 3, np.minimum(y, 2))
    return np.column_stack([x, y, z, flag, amount])


CODES = table_of_codes()
ROWS = EncodedRows(len(CODES), {a: CODES[:, a].astype(np.uint8) for a in range(5)})


def certain_of(codes: np.ndarray) -> Mixture:
    """A model with one component per row, which is certain of it."""
    tables = np.zeros((int(SCHEMA.code_start[-1]), len(codes)))
    for row, record in enumerate(codes):
        tables[SCHEMA.code_start[:-1] + record, row] = 1.0
    return Mixture(SCHEMA, np.full(len(codes), 1.0 / len(codes)), tables)


def margins_of(codes: np.ndarray) -> list[np.ndarray]:
    return [np.bincount(codes[:, a], minlength=int(SCHEMA.sizes[a])) / len(codes) for a in range(5)]


@pytest.fixture(scope="module")
def exact() -> Release:
    """A release that knows the private table."""
    return made_release(SCHEMA).with_model(certain_of(CODES), ERRORS)


@pytest.fixture(scope="module")
def independent() -> Release:
    """A release with the true single columns, and nothing else."""
    tables = np.concatenate(margins_of(CODES))[:, None]
    return made_release(SCHEMA).with_model(Mixture(SCHEMA, np.ones(1), tables), ERRORS)


def judged(release: Release) -> Relations:
    found = relations(release, ROWS)
    assert found is not None
    return found


def plain_pairs() -> tuple[np.ndarray, np.ndarray]:
    """Distance from independence, and Cramér's V, of all pairs: by counting."""
    margins, apart, v = margins_of(CODES), [], []
    for a, b in combinations(range(5), 2):
        joint = np.zeros((int(SCHEMA.sizes[a]), int(SCHEMA.sizes[b])))
        np.add.at(joint, (CODES[:, a], CODES[:, b]), 1.0 / len(CODES))
        apart.append(np.abs(joint - np.outer(margins[a], margins[b])).sum() / 2)
        v.append(cramers_v(joint))
    return np.array(apart), np.array(v)


def test_the_truth_as_a_release_has_no_errors(exact: Release) -> None:
    found = judged(exact)
    assert (found.columns, found.pairs, found.triples) == (5, 10, 10)
    ours = found.answers
    assert max(ours.pairs, ours.strongest, ours.association, ours.triples_l1) < 1e-12
    assert ours.correlations == pytest.approx(0.0, abs=1e-9)
    assert ours.k_marginal == pytest.approx(1000.0)
    assert ours.kept is not None
    assert (ours.kept.median, ours.kept.lowest) == (pytest.approx(1.0), pytest.approx(1.0))
    assert found.coverage is not None
    for kind, classes in found.coverage.items():
        assert {held.share for held in classes.values()} == {1.0}, kind
    # Rows are as many as private ones, and arranged.
    assert found.sampled == len(CODES)
    assert found.rows is not None
    assert found.rows.pairs < 0.03
    assert found.rows.kept is not None
    assert found.rows.kept.lowest > 0.8


def test_independent_columns_are_as_far_off_as_columns_depend(independent: Release) -> None:
    found = judged(independent).answers
    apart, v = plain_pairs()
    assert found.pairs == pytest.approx(apart.mean())
    assert found.strongest == pytest.approx(apart.max())  # a tenth of ten pairs is one
    assert found.association == pytest.approx(np.sqrt((v**2).mean()))
    assert found.kept is not None
    assert abs(found.kept.median) < 1e-9
    assert found.correlations is not None
    assert found.correlations > 0.3
    assert found.triples_l1 is not None
    assert found.k_marginal == pytest.approx(1000.0 - 500.0 * found.triples_l1)


def test_triples_are_those_of_a_plain_count(independent: Release) -> None:
    margins, total = margins_of(CODES), 0.0
    for a, b, c in combinations(range(5), 3):
        joint = np.zeros([int(SCHEMA.sizes[one]) for one in (a, b, c)])
        np.add.at(joint, (CODES[:, a], CODES[:, b], CODES[:, c]), 1.0 / len(CODES))
        product = np.einsum("i,j,k->ijk", margins[a], margins[b], margins[c])
        total += np.abs(joint - product).sum()
    assert judged(independent).answers.triples_l1 == pytest.approx(total / 10)


def test_the_correlation_is_that_of_the_numbers(exact: Release) -> None:
    (joint,) = shares_of(ROWS, SCHEMA, [(0, 1)])
    x, y = (numbers_of(exact, a) for a in (0, 1))
    assert x is not None
    assert y is not None
    assert correlation(joint, x, y) == pytest.approx(np.corrcoef(CODES[:, 0], CODES[:, 1])[0, 1])
    assert numbers_of(exact, 2) is None  # words
    assert correlation(np.eye(4)[:1].repeat(4, axis=0) * 0.25, x, y) is None  # y never varies
    assert correlation(np.zeros((4, 4)), x, y) is None
    # With bins and missing cells it is what the release says about its own table.
    amount = numbers_of(exact, 4)
    assert amount is not None
    (joint,) = shares_of(ROWS, SCHEMA, [(0, 4)])
    stated = correlation(joint, x, amount, inside=True)
    assert stated == pytest.approx(float(exact.correlation("x", "amount")))
    there = CODES[CODES[:, 4] < 3]
    twin = np.corrcoef(there[:, 0], amount.mean[there[:, 4]])[0, 1]
    assert correlation(joint, x, amount) == pytest.approx(twin)
    assert stated < twin  # what lies inside bins dilutes it
    assert correlation(np.diag([0.2, 0.3, 0.5]), amount, amount) == pytest.approx(1.0)


def test_kept_shares() -> None:
    true = np.array([0.5, -0.4, 0.1, 0.8])
    kept = Kept.of(true, np.array([0.25, -0.4, 0.9, -0.08]))
    assert kept is not None
    assert kept.correlations == 3  # .1 is not notable
    assert (kept.median, kept.lowest) == (pytest.approx(0.5), pytest.approx(-0.1))
    assert kept.lowest_tenth == pytest.approx(np.quantile([0.5, 1.0, -0.1], 0.1))
    assert Kept.of(np.array([0.2, -0.2]), np.zeros(2)) is None


def test_a_column_that_never_varies_in_the_release_keeps_no_correlation(exact: Release) -> None:
    still = CODES.copy()
    still[:, 0] = 0
    found = judged(exact.with_model(certain_of(still), ERRORS))
    assert found.answers.kept is not None
    assert found.answers.kept.lowest == 0.0
    assert found.coverage is not None
    held = found.coverage["correlations"]["all"]
    assert held.inside <= held.figures - 3  # x with y, flag and amount


# Intervals by class


def test_sizes_of_cells() -> None:
    records = np.array([0.0, 0.5, 1, 4, 4.9, 5, 19, 20, 99, 100, 999, 1000, 1e6])
    assert sizes_of(records).tolist() == [0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_strengths_of_pairs() -> None:
    found = strengths_of(np.arange(20.0))
    assert found.tolist() == [0] * 10 + [1] * 8 + [2] * 2
    assert strengths_of(np.zeros(4)).tolist() == [2, 1, 0, 0]
    assert strengths_of(np.ones(1)).tolist() == [2]


def test_planted_intervals_are_counted_by_size() -> None:
    truth = np.array([0.0, 0.0, 0.1, 0.1, 0.4, 0.4])
    low = np.array([0.0, 0.001, 0.05, 0.11, np.nan, np.inf])
    high = np.array([0.1, 0.1, 0.15, 0.2, np.nan, np.inf])
    found = counted(truth, low, high, 100 * truth)
    assert found[0].tolist() == [2, 0, 2, 1, 0, 0]  # NaN is no interval; infinite ends are one
    assert found[1].tolist() == [1, 0, 1, 0, 0, 0]


def test_classes_without_figures_are_left_out() -> None:
    weak = np.array([[4, 0, 10, 0, 0, 0], [4, 0, 9, 0, 0, 0]])
    strong = np.array([[2, 0, 0, 5, 0, 0], [1, 0, 0, 1, 0, 0]])
    assert by_class([weak, strong], [0, 2]) == {
        "all": Held(21, 15),
        "weakest half": Held(10, 9),
        "strongest tenth": Held(5, 1),
        "weakest half, empty cells": Held(4, 4),
        "strongest tenth, empty cells": Held(2, 1),
        "size 0": Held(6, 5),
        "size 5-19": Held(10, 9),
        "size 20-99": Held(5, 1),
    }
    assert set(by_class([weak], [1], sized=False)) == {
        "all", "next 40 %", "next 40 %, empty cells",
    }  # fmt: skip
    assert set(by_class([weak])) == {"all", "size 0", "size 5-19"}
    assert by_class([]) == {}
    assert by_class([np.zeros((2, 6), dtype=int)], [0]) == {}


def test_intervals_fail_where_the_relation_is_lost(independent: Release) -> None:
    """The strongest pair is lost, and intervals of ± .0196 do not reach it."""
    found = judged(independent).coverage
    assert found is not None
    assert found["one-way cells"]["all"].share == 1.0
    apart, _ = plain_pairs()
    a, b = list(combinations(range(5), 2))[int(np.argmax(apart))]
    (joint,) = shares_of(ROWS, SCHEMA, [(a, b)])
    margins = margins_of(CODES)
    inside = np.abs(joint - np.outer(margins[a], margins[b])) <= 1.96 * 0.01
    strong, empty = (
        found["two-way cells"].get(name)
        for name in ("strongest tenth", "strongest tenth, empty cells")
    )
    assert strong is not None
    assert strong == Held(int((joint > 0).sum()), int((inside & (joint > 0)).sum()))
    assert (0 if empty is None else empty.figures) == int((joint == 0).sum())
    assert found["correlations"]["strongest tenth"] == Held(1, 0)
    assert found["conditional shares"]["strongest tenth"].share < 0.5
    # Means among groups of the strongest pair are those of all records.
    assert found["means by group"]["strongest tenth"].share < 0.5
    sizes = [name for name in found["two-way cells"] if name.startswith("size")]
    assert sum(found["two-way cells"][name].figures for name in sizes) == (
        found["two-way cells"]["all"].figures
    )


def test_a_group_that_the_release_rules_out_counts_as_missed(exact: Release) -> None:
    without = CODES[CODES[:, 2] != 2]
    found = judged(exact.with_model(certain_of(without), ERRORS)).coverage
    assert found is not None
    whole = judged(exact).coverage
    assert whole is not None
    assert {k: c["all"].figures for k, c in found.items()} == {
        k: c["all"].figures for k, c in whole.items()
    }
    assert found["means by group"]["all"].inside < found["means by group"]["all"].figures


def test_a_release_without_errors_has_no_coverage(exact: Release) -> None:
    assert judged(exact.with_model(certain_of(CODES), None)).coverage is None


def test_too_many_pairs_and_triples_are_chosen_by_the_seed(
    exact: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PAIRS", 4)
    monkeypatch.setattr(module, "TRIPLES", 3)
    monkeypatch.setattr(intervals, "GROUPS", 5)
    monkeypatch.setattr(intervals, "CORRELATIONS", 1)
    first, again = judged(exact), judged(exact)
    assert (first.pairs, first.triples) == (4, 3)
    assert first.to_dict() == again.to_dict()
    assert first.coverage is not None
    assert first.coverage["correlations"]["all"].figures <= 3
    assert first.coverage["means by group"]["all"].figures <= 15
    monkeypatch.setattr(module, "MOST_CELLS", 8)
    small = judged(exact)  # x × flag, y × flag, z × flag and flag × amount
    assert (small.pairs, small.triples) == (4, 0)
    assert small.answers.triples_l1 is None
    assert small.answers.k_marginal is None
    monkeypatch.setattr(module, "MOST_CELLS", 1)
    assert relations(exact, ROWS) is None


def test_rows_of_a_very_wide_table_are_not_judged(
    exact: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SAMPLED", 5 * 599)
    found = judged(exact)
    assert (found.sampled, found.rows) == (0, None)
    assert closeness_rows(found)[0][2] == "–"


def test_given_rows_are_taken(exact: Release) -> None:
    found = relations(exact, ROWS, sample=CODES.astype(np.int32))
    assert found is not None
    assert found.rows is not None
    assert found.rows.pairs == found.rows.association == 0.0
    assert found.rows.correlations == pytest.approx(0.0, abs=1e-9)


def test_weighed_rows_count_what_they_weigh(exact: Release) -> None:
    """Rows that count twice are rows that are there twice."""
    twice = np.concatenate([CODES, CODES[:300]])
    doubled = EncodedRows(900, {a: twice[:, a].astype(np.uint8) for a in range(5)})
    weighed = replace(ROWS, strata=Strata.of(np.repeat([2, 1], 300)))
    sample = CODES.astype(np.int32)
    found, twin = (relations(exact, rows, sample=sample) for rows in (weighed, doubled))
    assert found is not None
    assert twin is not None
    assert found.answers.pairs > 0.0  # the release has every row once
    assert (found.answers, found.rows) == (twin.answers, twin.rows)


def test_text_and_plain_values(independent: Release) -> None:
    found = judged(independent)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["answers"]["pairs"] == found.answers.pairs
    assert told["coverage"]["correlations"]["all"]["figures"] >= 1
    assert "size 1000+" not in told["coverage"]["two-way cells"]  # 600 rows have no such cell
    lines = {line[0]: line[1:] for line in closeness_rows(found)}
    assert lines["TV of 10 pairs, mean"][0] == f"{found.answers.pairs:.4f}"
    assert found.coverage is not None
    rows = coverage_rows(found.coverage)
    assert {len(row) for row in rows} == {len(coverage_heads())} == {len(coverage_heads(True))}
    assert rows[0][0] == "one-way cells"
    assert rows[0][-1] == "–"


def test_a_table_of_words_has_no_correlations(exact: Release) -> None:
    found = relations(exact, replace(ROWS, columns={a: ROWS.columns[a] for a in (2, 3)}))
    assert found is not None
    assert found.answers.correlations is None
    assert found.answers.kept is None
    assert found.answers.triples_l1 is None
    assert "correlations" not in (found.coverage or {})
    assert [line[0] for line in closeness_rows(found)] == [
        "TV of 1 pairs, mean", "TV of the tenth that depends most", "error of Cramér's V",
    ]  # fmt: skip


def test_evaluate_returns_them(schema: Schema, rows) -> None:
    release = made_release(schema)
    found = dq.evaluate(release, rows)
    assert found.relations is not None
    assert found.relations.columns == len(columns_of(release)) == len(schema)
    assert found.to_dict()["relations"] == found.relations.to_dict()
    assert found.to_dict()["private"] is False
