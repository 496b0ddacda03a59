"""Baselines that read no data, against the tables they stand for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dualquery.baselines.product import Uniform, Zeros
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.workloads.generators import all_marginals
from dualquery.workloads.matching import mean_answers
from dualquery.workloads.workload import Workload

BITS = Schema(tuple(Attribute.binary(name) for name in "abc"))
ASKED = ["a=0", "a=1", "a!=0", "a!=1 & b=0", "parity(a, b)", "parity(a, b=0)", "a in {0, 1} & c=0"]


@pytest.fixture(scope="module")
def workload() -> Workload:
    return Workload.of([parse(text, BITS) for text in ASKED], BITS) + all_marginals(BITS, 2)


def test_zeros_is_the_table_of_zeros(workload: Workload) -> None:
    table = np.zeros((5, 3), dtype=np.int32)
    np.testing.assert_array_equal(Zeros().answers(workload), mean_answers(workload, table))


def test_uniform_is_the_table_of_all_records(workload: Workload) -> None:
    table = np.array(list(itertools.product((0, 1), repeat=3)), dtype=np.int32)
    np.testing.assert_allclose(Uniform().answers(workload), mean_answers(workload, table))


def test_an_attribute_whose_bits_are_off_has_none_of_its_values(schema: Schema) -> None:
    texts = ["sex=Male", "sex=Female", "sex!=Male", "smoker=0 & grade=mid", "smoker=0 & grade!=mid"]
    workload = Workload.of([parse(text, schema) for text in texts], schema)
    assert Zeros().answers(workload).tolist() == [0.0, 0.0, 1.0, 0.0, 1.0]
