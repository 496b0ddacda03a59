"""The compact form of a problem that all solvers share.

A drawn problem mentions few attributes. Of each attribute it can tell only some codes
apart. The core keeps exactly that. It has one *variable* per mentioned attribute, and per
variable one *slot* for each class of codes that no drawn literal separates: `country` with
41 values and the literals `=US` and `=Cuba` has three slots. A literal is a list of slots.
The list holds either the literal's set or its complement, whichever is shorter; a flag on
each use of the literal says which of the two is meant.

The values here are named tuples, because compiled loops can take and return those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


class WeightedQueries(NamedTuple):
    """A problem as arrays: maximise constant + Σ_q weight[q]·[query q holds].

    Literals and queries are laid out as in a workload. Literal l says that `attribute[l]`
    has one of the codes `codes[literal_start[l]:literal_start[l+1]]`. Query q has the terms
    `terms[start[q]:start[q+1]]`, each of them twice a literal plus one where it is negated.
    Attribute a has the codes 0 to `sizes[a]` − 1; ties and attributes that nothing mentions
    take `defaults[a]`. A weight of −`penalty` marks a constraint.
    """

    attribute: Int32
    literal_start: Int64
    codes: Int32
    start: Int64
    terms: Int32
    is_parity: Bool
    weight: Int64
    sizes: Int32
    defaults: Int32
    constant: int
    penalty: int


class Core(NamedTuple):
    """Maximise constant + Σ_j weight[j]·[term j holds], where each variable has one slot.

    Variables: variable v stands for `attribute[v]`. It owns the slots `first[v]` up to but
    not including `first[v+1]`; slots are numbered through all variables. `home[v]` is the
    slot that holds the default. Slot i stands for `code[i]`. Code c of variable v lies in
    slot `slot_of_code[code_start[v] + c]`.

    Literals: literal l is about `literal_variable[l]` and lists the slots
    `literal_slot[literal_start[l]:literal_start[l+1]]`.

    Terms: term j has the occurrences `term_start[j]` up to but not including
    `term_start[j+1]`. Occurrence o says that the variable's slot is in the list of
    `literal[o]`, or that it is not, where `flag[o]`. A conjunction holds if all of its
    occurrences do. A parity (`parity[j]`; its flags are all zero) holds if an even number of
    them does. A constraint is a conjunction whose weight is −`penalty`; that outweighs all
    other terms together.

    Short cuts: `variable[o]` is the variable of occurrence o, `occurrence_term[o]` its term.
    `single[o]` is the one slot on its list, or −1 where the list is longer. The occurrences
    that list slot i are `slot_occurrence[slot_start[i]:slot_start[i+1]]`.
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
        """The number of variables."""
        return len(self.attribute)

    @property
    def terms(self) -> int:
        """The number of terms."""
        return len(self.weight)


class Part(NamedTuple):
    """Some variables of a core, and all terms that mention any of them."""

    variables: Int32
    terms: Int32

    @classmethod
    def whole(cls, core: Core) -> Part:
        """All variables and all terms."""
        return cls(np.arange(core.variables, dtype=np.int32), np.arange(core.terms, dtype=np.int32))

    def most(self, core: Core) -> int:
        """A value that no assignment of the part exceeds: all positive terms, no negative one."""
        return int(np.maximum(core.weight[self.terms], 0).sum())


class Search(NamedTuple):
    """An assignment of a core, and what a search keeps beside it to know every gain at once.

    `slot` is the assignment, per variable. `miss` and `mark` are per term. For a conjunction
    `miss` counts the occurrences that fail and `mark` is the XOR of their positions, so that
    a single failing occurrence can be read off. For a parity `miss` is 1 if an odd number of
    occurrences holds, else 0. `score` is per slot: moving a variable from one of its slots to
    another gains the difference of their scores.
    """

    slot: Int32
    miss: Int32
    mark: Int32
    score: Int64

    @classmethod
    def over(cls, core: Core, slots: Int32) -> Search:
        """A search that changes `slots` in place; `load` fills the rest, part by part."""
        return cls(
            slots,
            np.zeros(core.terms, np.int32),
            np.zeros(core.terms, np.int32),
            np.zeros(len(core.code), np.int64),
        )


class Cooling(NamedTuple):
    """How long a part is annealed, and how hot.

    There are at most `runs` runs. Each has `sweeps` sweeps, and cools from `hot` (a run from
    random slots) or half of it (any other) down to `cold`. The search ends early at a value of
    `enough`, once `agree` random runs have ended at the best value, or once `unanimous` of
    them have while no run has ended elsewhere.
    """

    runs: int
    sweeps: int
    hot: float
    cold: float
    enough: int
    agree: int
    unanimous: int


def decode(core: Core, slots: Int32, defaults: Int32) -> Int32:
    """The record that has the chosen slots, and the defaults everywhere else."""
    record = np.array(defaults, dtype=np.int32)
    record[core.attribute] = core.code[slots]
    return record


def encode(core: Core, records: Sequence[npt.NDArray[np.integer]]) -> Int32:
    """The slots of some records, one row per record."""
    rows = np.empty((len(records), core.variables), dtype=np.int32)
    for row, record in enumerate(records):
        rows[row] = core.slot_of_code[core.code_start[:-1] + record[core.attribute]]
    return rows
