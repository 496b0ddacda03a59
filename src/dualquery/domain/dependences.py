"""Rules of the form `determines = {region = "capital"}`: one column fixes another.

Which capital a region has need not be declared. A release then takes the likeliest one of each
region from what it released already, and every synthetic row has it. This is post-processing. Who
knows the pairs should declare them: `if = "region=North"`, `then = "capital=Oslo"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import SchemaError
from dualquery.domain.ordered import Attributes
from dualquery.domain.query import Literal

Pairs = tuple[tuple[int, int], ...]
"""Positions of columns: the first of a pair fixes the second."""


def read_dependences(declared: object, number: int, schema: Attributes) -> Pairs:
    """The pairs of columns that one rule declares.

    Args:
        declared: what stands after `determines`.
        number: the number of the rule, for messages.
        schema: the attributes.
    """
    if not isinstance(declared, Mapping) or not declared:
        raise SchemaError(
            f"constraint {number}: determines = {declared!r}; expected a table such as "
            '{region = "capital"}'
        )
    pairs = []
    for source, targets in declared.items():
        if not isinstance(targets, str | list | tuple):
            raise SchemaError(
                f"constraint {number}: {source!r} determines {targets!r}; expected a column or a "
                "list of columns"
            )
        for target in [targets] if isinstance(targets, str) else targets:
            try:
                pairs.append((schema.position(str(source)), schema.position(str(target))))
            except SchemaError as error:
                raise SchemaError(f"constraint {number}: {error}") from None
    return tuple(pairs)


def in_sequence(pairs: Iterable[tuple[int, int]], schema: Attributes) -> Pairs:
    """The pairs in an order in which a column is fixed before it fixes another one."""
    waiting = list(dict.fromkeys(pairs))
    fixed = [target for _, target in waiting]
    for target in fixed:
        if fixed.count(target) > 1:
            name = schema.names[target]
            raise SchemaError(f"constraints: {name!r} is determined by two columns; expected one")
    sequence: list[tuple[int, int]] = []
    while waiting:
        open_targets = {target for _, target in waiting}
        ready = [pair for pair in waiting if pair[0] not in open_targets]
        if not ready:
            names = ", ".join(repr(schema.names[source]) for source, _ in waiting)
            raise SchemaError(f"constraints: {names} determine one another in a circle")
        sequence += ready
        waiting = [pair for pair in waiting if pair not in ready]
    return tuple(sequence)


def likeliest(joint: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """Per code of the first column, the likeliest code of the second.

    Args:
        joint: the share of every pair of codes.
    """
    found: npt.NDArray[np.int64] = np.argmax(joint, axis=1)
    return found


def fixing_clauses(
    pairs: Pairs, maps: Sequence[npt.NDArray[np.integer]], schema: Attributes
) -> list[tuple[Literal, Literal]]:
    """Pairs of literals that no row may have once it is known what fixes what."""
    clauses = []
    for (source, target), fixed in zip(pairs, maps, strict=True):
        for code in np.unique(fixed):
            codes = tuple(int(c) for c in np.flatnonzero(fixed == code))
            if schema.attributes[target].size > 1:
                clauses.append((Literal(source, codes), Literal(target, (int(code),), True)))
    return clauses
