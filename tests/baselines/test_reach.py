"""How far a record moves counts: the bound against every pair of records."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import public_rows
from dualquery.baselines.perturbation import Gaussian
from dualquery.baselines.projection import Projection
from dualquery.baselines.reach import reach
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import SeededSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import parities, random_marginals
from dualquery.workloads.matching import add_matches
from dualquery.workloads.workload import Workload

SCHEMA = Schema(
    (
        Attribute.categorical("a", ["0", "1", "2"]),
        Attribute.categorical("b", ["0", "1", "2", "3"]),
        Attribute.binary("c"),
    )
)
BOTH = (Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE)


def asked(*texts: str) -> Workload:
    return Workload.of([parse(text, SCHEMA) for text in texts], SCHEMA)


def farthest(workload: Workload, neighbours: Neighbours) -> int:
    """The most counts that one record moves, by looking at all records."""
    rows = []
    for record in product(*(range(int(size)) for size in workload.schema.sizes)):
        matches = np.zeros(len(workload), dtype=np.int32)
        add_matches(workload, np.array(record, dtype=np.int32), matches)
        rows.append(matches)
    held = np.array(rows)
    if neighbours is Neighbours.ADD_REMOVE:
        return int(held.sum(axis=1).max())
    return max(int(np.abs(held - one).sum(axis=1).max()) for one in held)


def different(workload: Workload) -> Workload:
    return workload.take(workload.different[0])


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("seed", range(8))
def test_no_record_moves_more_counts(seed: int, neighbours: Neighbours) -> None:
    generator = np.random.default_rng(seed)
    every = different(
        random_marginals(SCHEMA, 1, 40, seed=seed)
        + random_marginals(SCHEMA, 2, 200, seed=seed)
        + random_marginals(SCHEMA, 3, 300, seed=seed)
        + parities(SCHEMA, 2, 20, seed=seed)
    )
    some = every.take(np.flatnonzero(generator.random(len(every)) < generator.random()))
    assert farthest(some, neighbours) <= reach(some, neighbours) <= len(some)


@pytest.mark.parametrize("neighbours", BOTH)
def test_the_bound_is_reached_by_whole_marginals(neighbours: Neighbours) -> None:
    cells = asked(*(f"a={a} & b={b}" for a in range(3) for b in range(4)))
    records = 1 if neighbours is Neighbours.ADD_REMOVE else 2
    assert reach(cells, neighbours) == farthest(cells, neighbours) == records


def test_what_can_hold_together_is_added_up() -> None:
    add = Neighbours.ADD_REMOVE
    # Not to have one code excludes nothing.
    assert reach(asked("a!=0", "a!=1", "a!=2"), add) == 3
    # The two names of one cell of a binary attribute hold together.
    assert reach(asked("c=1", "c!=0", "c=0"), add) == 2
    assert reach(asked("a=0 & b!=0", "a=0 & b!=1", "a=1 & b!=0"), add) == 2
    # One code of several is not a single code.
    assert reach(asked("a in {0, 1}", "a in {1, 2}"), add) == 2
    assert reach(asked("parity(c)", "c=0", "c=1"), add) == 2
    # Other attributes are another marginal.
    assert reach(asked("a=0", "b=0", "b=1"), add) == 2


def test_under_add_remove_the_number_of_rows_is_not_read() -> None:
    workload = asked(*(f"a={a} & b={b}" for a in range(3) for b in range(4)))
    answers = Counted(np.arange(12) * 10, 1000)
    noise = {"epsilon": 1.0, "delta": 1e-5}
    add = {"neighbours": Neighbours.ADD_REMOVE}
    generator = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="reference is missing"):
        Gaussian.fit(answers, workload, **noise, generator=generator, **add)
    with pytest.raises(ParameterError, match="reference is missing"):
        Projection.fit(answers, workload, **noise, source=SeededSource(0), steps=2, **add)
    made = Gaussian.fit(answers, workload, **noise, generator=generator, reference=1200, **add)
    assert made.scale == pytest.approx(1.0 / mu_of(1.0, 1e-5))
    assert made.privacy.neighbours is Neighbours.ADD_REMOVE
    replaced = Gaussian.fit(answers, workload, **noise, generator=generator)
    assert replaced.scale == pytest.approx(np.sqrt(2.0) / mu_of(1.0, 1e-5))
    plain = Gaussian.fit(answers, workload, **noise, generator=generator, exclusive=False)
    assert plain.scale == pytest.approx(np.sqrt(12.0) / mu_of(1.0, 1e-5))
    assert public_rows(1000, Neighbours.REPLACE_ONE, 1200) == 1000
    assert public_rows(1000, Neighbours.ADD_REMOVE, 1200) == 1200
