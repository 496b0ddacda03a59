"""The compact form of a problem that the solvers share.

A drawn problem mentions few attributes, and of each attribute it can tell only some
codes apart. The core keeps exactly that: a *variable* per mentioned attribute, with one
*slot* per class of codes that no drawn literal separates (`country` with 41 values and
the literals `=US` and `=Cuba` has three slots). A literal is a list of slots, the shorter
of its set and its complement, and a flag on each use says which of the two is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from dualquery.oracles.problem import Problem

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Int8 = npt.NDArray[np.int8]


class Core(NamedTuple):
    """Maximise constant + Σ_j weight[j]·[term j holds], one slot per variable.

    Slots are numbered through: variable v owns `first[v]:first[v+1]`, of which `home[v]`
    holds the default, and slot i stands for `code[i]`. Term j has the occurrences
    `term_start[j]:term_start[j+1]`; occurrence o says that the variable's slot is in the
    list of `literal[o]`, or not in it where `flag[o]`. A conjunction holds when all of its
    occurrences do; a parity (`parity[j]`, flags all zero) when an even number of them does.
    `variable[o]` is the one that occurrence o is about. Where its list has one slot,
    `single[o]` names it, else it is −1;
    `slot_start`/`slot_occurrence` lead from a slot to the occurrences that list it.
    Code c of variable v lies in slot `slot_of_code[code_start[v] + c]`.
    Constraints are conjunctions whose weight is −`penalty`, more than all others together.
    """

    attribute: Int32
    first: Int32
    code: Int32
    home: Int32
    literal_variable: Int32
    literal_start: Int32
    literal_slot: Int32
    term_start: Int32
    literal: Int32
    flag: Int8
    variable: Int32
    single: Int32
    occurrence_term: Int32
    weight: Int64
    parity: Int8
    slot_start: Int32
    slot_occurrence: Int32
    code_start: Int32
    slot_of_code: Int32
    constant: int
    penalty: int

    @property
    def variables(self) -> int:
        return len(self.attribute)

    @property
    def terms(self) -> int:
        return len(self.weight)


def compile_problem(problem: Problem) -> Core:
    """Bring a problem into its compact form, in time linear in its literals and codes."""
    workload, weights = problem.workload, problem.weights
    penalty = int(np.abs(weights).sum()) + 1
    literals, start, terms = workload.literals, workload.start, workload.terms
    attribute, literal_start, codes = literals.attribute, literals.start, literals.codes
    is_parity = workload.is_parity
    if problem.constraints is not None and len(problem.constraints):
        rules = problem.constraints.forbidden
        terms = np.concatenate([terms, rules.terms + 2 * len(literals)]).astype(np.int32)
        start = np.concatenate([start, start[-1] + rules.start[1:]])
        attribute = np.concatenate([attribute, rules.literals.attribute])
        literal_start = np.concatenate(
            [literal_start, literal_start[-1] + rules.literals.start[1:]]
        )
        codes = np.concatenate([codes, rules.literals.codes])
        weights = np.concatenate([weights, np.full(len(rules), -penalty, np.int64)])
        is_parity = np.concatenate([is_parity, rules.is_parity])
    return build(
        attribute,
        literal_start,
        codes,
        start,
        terms,
        is_parity,
        weights,
        problem.workload.schema.sizes,
        problem.defaults,
        problem.constant,
        penalty,
    )


def build(
    attribute: Int32,
    literal_start: Int64,
    codes: Int32,
    start: Int64,
    terms: Int32,
    is_parity: npt.NDArray[np.bool_],
    weights: Int64,
    sizes: Int32,
    defaults: Int32,
    constant: int,
    penalty: int,
) -> Core:
    """The core of queries given as arrays, laid out as in a workload."""
    from dualquery.oracles import _compile_kernels

    arrays = _compile_kernels.compile_core(
        attribute,
        np.asarray(literal_start, dtype=np.int64),
        codes,
        np.asarray(start, dtype=np.int64),
        terms,
        is_parity,
        weights,
        sizes,
        defaults,
    )
    made: Core = Core._make([*arrays[:-1], constant + int(arrays[-1]), penalty])
    return made


def decode(core: Core, slots: Int32, defaults: Int32) -> Int32:
    """The record that has the chosen slots, and the defaults everywhere else."""
    record = np.array(defaults, dtype=np.int32)
    record[core.attribute] = core.code[slots]
    return record


def encode(core: Core, records: Sequence[npt.NDArray[np.integer]]) -> Int32:
    """The slots of some records, one row each."""
    rows = np.empty((len(records), core.variables), dtype=np.int32)
    for row, record in enumerate(records):
        rows[row] = core.slot_of_code[core.code_start[:-1] + record[core.attribute]]
    return rows
