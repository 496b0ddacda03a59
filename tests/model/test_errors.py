"""Standard errors: the table, and whether intervals cover the truth."""

from __future__ import annotations

import numpy as np
import pytest

import dualquery as dq
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.evaluation.figures import evaluate
from dualquery.model.pair_kinds import PAIR_KINDS, PairKinds
from dualquery.model.standard_errors import LEVELS, MOST_LITERALS, ErrorTable
from dualquery.release.frames import decode
from dualquery.rows.counting import count_rows
from dualquery.workloads.generators import all_marginals, random_marginals
from dualquery.workloads.workload import Workload


def chained_table(rows: int, width: int, seed: int) -> tuple[np.ndarray, Schema]:
    """Attributes that each depend on two earlier ones."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 9, width)
    codes = np.zeros((rows, width), np.int32)
    for j in range(width):
        state, states = np.zeros(rows, np.int64), 1
        for parent in random.choice(j, min(j, 2), replace=False) if j else ():
            state, states = state * sizes[parent] + codes[:, parent], states * sizes[parent]
        chances = np.cumsum(random.dirichlet(np.full(sizes[j], 0.5), states), axis=1)[state]
        codes[:, j] = np.minimum((random.random(rows)[:, None] > chances).sum(1), sizes[j] - 1)
    schema = Schema(
        tuple(Attribute.categorical(f"a{j}", list(range(s))) for j, s in enumerate(sizes))
    )
    return codes, schema


def test_the_table_gives_back_the_errors_it_was_made_from() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(30)))
    workload = random_marginals(schema, 2, 20_000)
    random = np.random.default_rng(0)
    answers = random.uniform(0.0, 1.0, len(workload))
    scale = 0.01 * np.sqrt(np.minimum(answers, 1.0 - answers))
    truth = answers + scale * random.normal(size=len(workload))
    table = ErrorTable.of(workload, answers, truth)
    found = table.of_answers(workload, answers)
    moderate = np.minimum(answers, 1.0 - answers) > 0.01
    np.testing.assert_allclose(found[moderate], scale[moderate], rtol=0.25)
    assert table.scale.shape == (1, 3, len(LEVELS) - 1)
    assert np.isfinite(table.scale).all()


def test_a_class_without_queries_borrows_from_its_neighbour() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(10)))
    workload = random_marginals(schema, 3, 200)
    table = ErrorTable.of(workload, np.full(200, 0.3), np.full(200, 0.29))
    np.testing.assert_allclose(table.scale, 0.01)
    ones = all_marginals(schema, 1)
    np.testing.assert_allclose(table.of_answers(ones, np.full(len(ones), 0.5)), 0.01)


def test_every_class_takes_its_largest_error() -> None:
    first = np.tile([2e-4, 4e-4, 1e-3, 2e-3, 4e-3, 5e-3, 5e-3, 5e-3, 4e-3], (1, 3, 1))
    second = first * np.array([[0.5], [2.0], [1.0]])
    second[0, 2, 4] = 7e-3
    found = ErrorTable.larger([ErrorTable(first), ErrorTable(second)]).scale
    for place in np.ndindex(found.shape):
        assert found[place] == max(first[place], second[place])


def test_each_kind_of_pair_has_errors_of_its_own() -> None:
    """Pairs that an edge joins are off by twice as much as measured ones, those apart by four."""
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(30)))
    of_pair = np.random.default_rng(5).integers(0, PAIR_KINDS, (30, 30)).astype(np.uint8)
    kinds = PairKinds(np.maximum(of_pair, of_pair.T))
    workload = all_marginals(schema, 1) + all_marginals(schema, 2)
    kind = kinds.of_queries(workload)
    random = np.random.default_rng(6)
    answers = random.uniform(0.2, 0.5, len(workload))
    squares = np.square(np.array([0.04, 0.01, 0.02])[kind])
    table = ErrorTable.of_rehearsals(workload, [answers], [squares], kinds)
    assert table.scale.shape == (PAIR_KINDS, MOST_LITERALS, len(LEVELS) - 1)
    found = table.of_answers(workload, answers, kinds)
    two = np.diff(workload.start) == 2
    assert all((kind[two] == one).sum() > 100 for one in range(PAIR_KINDS))
    np.testing.assert_allclose(found[two], np.sqrt(squares[two]), rtol=0.1)


def test_few_errors_are_no_sure_scale() -> None:
    """Intervals hold for 95 % of new errors, however few the scale was learnt from.

    Twenty queries on one 0/1 attribute have one error per rehearsal.
    """
    schema = Schema((Attribute.binary("x"), Attribute.binary("y"), Attribute.binary("z")))
    asked = random_marginals(schema, 1, 60)
    attribute = asked.literals.attribute[asked.terms >> 1]
    random = np.random.default_rng(3)
    inside, plain = [], []
    for _ in range(500):
        answers, squares = [], []
        for _ in range(2):
            error = 0.01 * random.standard_normal(3)
            answers.append(0.3 + error[attribute])
            squares.append(error[attribute] ** 2)
        new = 0.01 * random.standard_normal(3)
        table = ErrorTable.of_rehearsals(asked, answers, squares)
        inside += list(np.abs(new) <= 1.96 * table.at(np.ones(3, np.int64), 0.3 + new))
        every = np.concatenate(answers), np.concatenate(squares)
        simple = ErrorTable.of_squares(asked + asked, *every)
        plain += list(np.abs(new) <= 1.96 * simple.at(np.ones(3, np.int64), 0.3 + new))
    assert 0.92 < np.mean(inside) < 0.98
    assert np.mean(plain) < 0.92


def test_a_release_without_errors_says_so() -> None:
    codes, schema = chained_table(2000, 6, 1)
    job = dq.DualQuery(epsilon=1.0, delta=1e-5, queries=500, seed=1, errors=False)
    made = job.fit(decode(codes, schema), schema=schema)
    assert made.answer_with_error("a0=0")[1] is None
    assert made.standard_errors(made.workload) is None


def test_no_error_is_stated_for_an_attribute_that_no_draw_names() -> None:
    codes, schema = chained_table(2000, 6, 1)
    narrow = [q for q in all_marginals(schema, 2) if not {0, 5} & {l.attribute for l in q.literals}]
    workload = Workload.of(narrow, schema)
    job = dq.DualQuery(epsilon=1.0, delta=1e-5, seed=1)
    made = job.fit(decode(codes, schema), schema=schema, workload=workload)
    assert made.answer_with_error("a1=0")[1] is not None
    for text in ("a0=0", "a1=0 & a5=0"):
        assert made.answer_with_error(text, unknown="default")[1] is None
    spread = made.standard_errors(all_marginals(schema, 1))
    silent = made.times_drawn[all_marginals(schema, 1).literals.attribute] == 0
    assert np.array_equal(np.isnan(spread), silent)
    assert {0, 5} <= set(np.flatnonzero(made.times_drawn == 0).tolist())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "width", "seed"),
    [(20_000, 15, 1), (5_000, 12, 3), (8_000, 20, 4), (8_000, 20, 6)],
)
def test_intervals_cover_the_truth(rows: int, width: int, seed: int) -> None:
    codes, schema = chained_table(rows, width, seed)
    table = decode(codes, schema)
    made = dq.DualQuery(epsilon=1.0, delta=1e-5, queries=30_000, seed=seed).fit(
        table, schema=schema
    )
    result = evaluate(made, table)
    spread = made.standard_errors(made.workload)
    moderate = (result.released > 0.05) & (result.released < 0.95)
    covered = np.abs(result.released - result.truth) <= 1.96 * spread
    assert 0.92 <= covered[moderate].mean() <= 0.99


@pytest.mark.slow
def test_rows_of_the_model_answer_like_the_model() -> None:
    codes, schema = chained_table(20_000, 12, 2)
    table = decode(codes, schema)
    made = dq.DualQuery(epsilon=1.0, delta=1e-5, queries=20_000, seed=1, errors=False).fit(
        table, schema=schema
    )
    own = evaluate(made, table).distance.max_error
    rows = made.sample_codes(20_000, np.random.default_rng(0))
    assert (rows < schema.sizes).all()
    from dualquery.rows.opening import open_table

    def shares(source) -> np.ndarray:
        return count_rows(open_table(source), made.workload).counts / 20_000

    sampled = np.abs(shares(decode(rows, schema)) - shares(table)).max()
    noise = 4.5 * np.sqrt(0.25 / 20_000)  # the largest of 20,000 binomial deviations
    assert sampled <= 1.3 * own + noise
