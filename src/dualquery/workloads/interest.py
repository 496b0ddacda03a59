"""What a release should get right: the queries that are asked, and how much each of them counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import whole
from dualquery.base.errors import ParameterError
from dualquery.domain.schema import Schema
from dualquery.workloads.generators import random_marginals, whole_marginals
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

DEFAULT_QUERIES = 500_000
DEFAULT_K = 3

RANDOM = ("queries", "k", "positive", "parities")
"""What speaks of random queries alone."""

FOCUS = 10.0
"""A query that names a focused attribute counts as much as so many others."""


@dataclass(frozen=True)
class Interest:
    """What is asked where there is no list of queries, and which attributes matter most.

    Attributes:
        queries: how many random conjunctions are asked.
        k: how many attributes each of them names.
        marginals: ask for all cells of all marginals of so many attributes instead.
        focus: attributes whose queries count ten times as much as others.
        positive: whether random conjunctions hold positive literals only.
        parities: ask random parities of so many bits as well, or instead.
        parity_share: the share of the random queries that are parities; left out, all of them.
    """

    queries: int | None = None
    k: int | None = None
    marginals: tuple[int, ...] | None = None
    focus: tuple[str, ...] = ()
    positive: bool = False
    parities: int | None = None
    parity_share: float | None = None

    def check(self) -> None:
        """Refuse what says two different things, before the table is read."""
        if self.parities is None and self.parity_share is not None:
            raise ParameterError("parity_share is a share of parities; say of how many bits")
        if self.marginals is None:
            return
        for name in RANDOM:
            if getattr(self, name):
                raise ParameterError(
                    f"marginals asks whole marginals and {name} random conjunctions; give one"
                )
        if not self.marginals:
            raise ParameterError("marginals names no number of attributes; expected one or more")
        if len(set(self.marginals)) < len(self.marginals):
            raise ParameterError(
                f"marginals = {','.join(map(str, self.marginals))}; expected each number once"
            )
        for arity in self.marginals:
            whole("marginals", arity)

    def check_listed(self) -> None:
        """Refuse what speaks of other queries than those of a given list."""
        for name in ("marginals", *RANDOM):
            if getattr(self, name):
                raise ParameterError(f"a workload lists the queries itself; leave {name} out")

    def workload(self, schema: Schema) -> Workload:
        """The queries that are asked where no list is given."""
        self.check()
        if self.marginals is None:
            return random_marginals(
                schema,
                self.arity(schema),
                self.query_count,
                positive=self.positive,
                parities=self.parities,
                parity_share=1.0 if self.parity_share is None else self.parity_share,
            )
        return whole_marginals(schema, self.marginals)

    def weights(self, workload: Workload) -> Floats:
        """How much each query counts; all of it is public.

        Whole marginals count alike, whatever the number of their cells. So a marginal of millions
        of cells does not drown the others.
        """
        weights = np.ones(len(workload))
        attribute = workload.literals.attribute[workload.terms >> 1]
        if self.marginals is not None:
            cells = _marginal_of(workload, attribute)
            weights = 1.0 / np.bincount(cells)[cells]
            weights /= weights.max()
        for name in self.focus:
            position = workload.schema.position(name)
            if not (attribute == position).any():
                raise ParameterError(f"focus on {name!r}, which no asked query names")
        if self.focus:
            wanted = [workload.schema.position(name) for name in self.focus]
            named = np.add.reduceat(np.isin(attribute, wanted), workload.start[:-1]) > 0
            weights[named] *= FOCUS
        return weights

    @property
    def query_count(self) -> int:
        return DEFAULT_QUERIES if self.queries is None else whole("queries", self.queries)

    def arity(self, schema: Schema) -> int:
        """How many attributes a random conjunction names."""
        return min(DEFAULT_K, len(schema)) if self.k is None else self.k


def _marginal_of(workload: Workload, attribute: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Per query, the number of the marginal whose cell it is."""
    lengths = np.diff(workload.start)
    widest = int(lengths.max())
    row = np.repeat(np.arange(len(workload)), lengths)
    place = np.arange(len(attribute)) - np.repeat(workload.start[:-1], lengths)
    # One number per set of attributes, which the generator lists in rising order.
    number = np.zeros(len(workload), dtype=np.int64)
    for position in range(widest):
        digit = np.zeros(len(workload), dtype=np.int64)
        chosen = place == position
        digit[row[chosen]] = attribute[chosen] + 1
        number = number * (len(workload.schema) + 1) + digit
    found: npt.NDArray[np.int64] = np.unique(number, return_inverse=True)[1].astype(np.int64)
    return found


def numbers(text: str | Sequence[int]) -> tuple[int, ...]:
    """The numbers of a text such as `1,2`, or of a list."""
    if not isinstance(text, str):
        return tuple(text)
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(
            f"marginals = {text!r}; expected numbers of attributes, such as 1,2"
        ) from None


def names(text: str | Sequence[str]) -> tuple[str, ...]:
    """The names of a text such as `age,sex`, or of a list."""
    parts = [part.strip() for part in text.split(",")] if isinstance(text, str) else list(text)
    if not all(parts) or len(set(parts)) < len(parts):
        raise ParameterError(f"focus = {text!r}; expected names of attributes, each once")
    return tuple(parts)
