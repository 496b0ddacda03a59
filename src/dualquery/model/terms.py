"""What a fit climbs: a sum of terms, each a function of the mixture's tables and weights."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Singles = npt.NDArray[np.float32]


class Slopes(NamedTuple):
    """The value of a term, and its gradient by the probabilities and by the mixture weights.

    With edges there is the gradient by their conditional probabilities, too.
    """

    value: float
    by_table: Singles
    by_weight: npt.NDArray[np.float64]
    by_given: Singles | None = None


class Term(Protocol):
    """A part of the log-likelihood of what was released."""

    def slopes(self, tables: Singles, weights: Singles) -> Slopes:
        """The term at these tables (a row per code, a column per component) and weights."""
        ...


class JoinedTerm(Term, Protocol):
    """A term that knows edges."""

    def slopes(self, tables: Singles, weights: Singles, given: Singles | None = None) -> Slopes:
        """The same, with the conditional probabilities of edges."""
        ...
