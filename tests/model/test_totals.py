"""Known totals are obeyed, and the model moves no further than it must."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.model.mixture import Mixture
from dualquery.model.totals import obeying, read_totals
from dualquery.workloads.generators import all_marginals
from dualquery.workloads.workload import Workload

SCHEMA = Schema(
    (
        Attribute.categorical("sex", ["Female", "Male"]),
        Attribute.numeric("age", [0, 20, 40, 60, 80]),
        Attribute.categorical("ward", ["a", "b", "c"]),
    )
)
LINES = ["# the census", "sex=Female = 0.512", "", "age>=40 = 0.45", "age in [20, 60) = 0.5"]


def model(seed: int = 1) -> Mixture:
    random = np.random.default_rng(seed)
    tables = np.vstack([random.dirichlet(np.ones(size), 5).T for size in SCHEMA.sizes])
    return Mixture(SCHEMA, random.dirichlet(np.ones(5)), tables)


def test_all_totals_hold_and_it_is_still_a_distribution() -> None:
    totals = read_totals(LINES, SCHEMA)
    made = obeying(model(), totals)
    asked = [parse(text, SCHEMA) for text in ("sex=Female", "age>=40", "age in [20, 60)")]
    answers = made.answers(Workload.of(asked, SCHEMA))
    assert answers == pytest.approx([0.512, 0.45, 0.5], abs=1e-6)
    assert made.weights.sum() == pytest.approx(1.0)
    for a in range(3):
        part = made.tables[SCHEMA.code_start[a] : SCHEMA.code_start[a + 1]]
        assert part.sum(axis=0) == pytest.approx(np.ones(5))


def test_the_joint_table_is_the_nearest_by_a_twin() -> None:
    """Proportional fitting on the full table of 24 cells, which knows nothing of mixtures."""
    totals = read_totals(LINES, SCHEMA)
    cells = all_marginals(SCHEMA, 3)
    joint = model().answers(cells).reshape(2, 4, 3)
    for _ in range(5000):
        for total in totals:
            inside = np.isin(np.arange(joint.shape[total.attribute]), total.codes)
            shape = [-1 if a == total.attribute else 1 for a in range(3)]
            share = joint[np.broadcast_to(inside.reshape(shape), joint.shape)]
            factor = np.where(
                inside, total.share / share.sum(), (1 - total.share) / (1 - share.sum())
            )
            joint = joint * factor.reshape(shape)
    assert obeying(model(), totals).answers(cells) == pytest.approx(joint.ravel(), abs=1e-8)


def test_a_share_of_nothing_and_of_everything() -> None:
    made = obeying(model(), read_totals(["ward=c = 0", "sex=Male = 1"], SCHEMA))
    asked = Workload.of([parse("ward=c", SCHEMA), parse("sex=Male & ward!=c", SCHEMA)], SCHEMA)
    assert made.answers(asked) == pytest.approx([0.0, 1.0], abs=1e-9)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["sex=Female = 0.5", "sex=Male = 0.6"], r"column 'sex' contradict one another: sex=F"),
        (["sex=Female 0.5"], r"'sex=Female 0.5'"),
        (["sex=Female = 51"], r"a share from 0 to 1"),
        (["sex=Other = 0.5"], r"known: 'sex=Other = 0.5'"),
        (["sex=Female & ward=a = 0.1"], r"expected a condition on one column"),
        (["# nothing"], r"known: no totals"),
    ],
)
def test_what_cannot_be_known_is_refused(lines: list[str], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        read_totals(lines, SCHEMA)
