"""Exact counts of all cells of marginals of 0/1 attributes, from packed rows. Private side.

The codes of 0/1 attributes take a byte per row; their packed columns, which are there from
counting the queries, an eighth of that. The cells of a table follow from how many rows have ones in
all attributes of each subset.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema
from dualquery.rows.counting import Tally, count_conjunctions_of
from dualquery.rows.packed import PackedRows
from dualquery.rows.tabulation import Cells
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.workload import Literals

Terms = npt.NDArray[np.int32]


class PackedOnes:
    """Packed rows whose literals are single codes of 0/1 attributes."""

    def __init__(self, packed: PackedRows, width: int) -> None:
        self.packed = packed
        self._tally = Tally(packed)
        literals = packed.literals
        self._term = np.full(width, -1, dtype=np.int32)
        # A term is twice its literal; the rows without a code 0 are those with code 1.
        self._term[literals.attribute] = 2 * np.arange(len(literals)) + (literals.codes == 0)

    @classmethod
    def of(cls, packed: PackedRows, schema: Schema) -> PackedOnes | None:
        """None if any literal is about something else."""
        return cls(packed, len(schema)) if cls.fit(packed.literals, schema) else None

    @staticmethod
    def fit(literals: Literals, schema: Schema) -> bool:
        """Whether all literals are single codes of attributes that have two."""
        single = bool(np.all(np.diff(literals.start) == 1))
        return single and bool(np.all(schema.sizes[literals.attribute] == 2))

    def hold(self, marginals: Marginals) -> bool:
        """Whether all attributes of these marginals are here.

        A column of two bins may be asked for in sub-bins, which no bit tells apart.
        """
        two = marginals.groups.sizes[marginals.attributes] == 2
        return bool(np.all((self._term[marginals.attributes] >= 0) & two))

    def tabulate(self, marginals: Marginals) -> Cells:
        """The private counts of every cell of every marginal, laid end to end."""
        arity = marginals.arity
        ones = self._term[marginals.attributes]
        cells = np.empty((len(marginals), 1 << arity), dtype=np.int64)
        # The last attribute varies fastest: cell m has ones where the digits of m have them.
        digits = [1 << (arity - 1 - place) for place in range(arity)]
        for cell in range(1 << arity):
            chosen = [place for place, digit in enumerate(digits) if cell & digit]
            cells[:, cell] = self._together(ones[:, chosen])
        # So far attributes that are not chosen could have any code. Their ones are taken off.
        for digit in digits:
            for cell in range(1 << arity):
                if not cell & digit:
                    cells[:, cell] -= cells[:, cell | digit]
        return cells.reshape(-1)

    def _together(self, terms: Terms) -> npt.NDArray[np.int64] | int:
        """How many rows satisfy all terms of each row of a matrix."""
        if terms.shape[1] == 0:
            return self.packed.rows
        return count_conjunctions_of(self._tally, terms)
