"""Baselines that know one probability per literal and treat attributes as independent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.baselines.baseline import FREE, Cost
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]


def product_answers(workload: Workload, probability: Floats) -> Floats:
    """The answers if the literals held independently with these probabilities.

    The answer to a conjunction is the product of the probabilities p of its terms. The answer to a
    parity, "an even number of them holds", is (1 + Π (1 − 2p))/2.
    """
    positive = probability[workload.terms >> 1]
    p = np.where(workload.terms & 1, 1.0 - positive, positive)
    starts = workload.start[:-1]
    answers: Floats = np.multiply.reduceat(p, starts)
    if workload.is_parity.any():
        signed: Floats = np.multiply.reduceat(1.0 - 2.0 * p, starts)
        answers = np.where(workload.is_parity, (1.0 + signed) / 2.0, answers)
    return answers


@dataclass(frozen=True)
class Zeros:
    """The table in which every bit of every record is off. It costs no privacy.

    A 0/1 column then holds 0. An attribute with one bit per value has none of its values.
    """

    name: str = "zeros"
    privacy: Cost = FREE

    def answers(self, workload: Workload) -> Floats:
        literals = workload.literals
        has_zero = np.logical_or.reduceat(literals.codes == 0, literals.start[:-1])
        schema = workload.schema
        is_bit = (schema.bit_counts == 1) & (schema.sizes == 2)
        return product_answers(workload, (has_zero & is_bit[literals.attribute]).astype(np.float64))


@dataclass(frozen=True)
class Uniform:
    """The table that holds each valid record once. It costs no privacy."""

    name: str = "uniform"
    privacy: Cost = FREE

    def answers(self, workload: Workload) -> Floats:
        literals = workload.literals
        sizes = workload.schema.sizes[literals.attribute]
        return product_answers(workload, np.diff(literals.start) / sizes)
