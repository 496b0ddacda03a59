"""Totals that are publicly known, and a model that obeys them.

A total says which share of records has some codes of one attribute: "sex=Female = 0.512". Of all
distributions that obey it, the one nearest to the model (in relative entropy) is the model with the
probabilities of those codes multiplied by one factor and those of the others by another. A mixture
of products stays one. Several totals are obeyed in turn until all of them hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dualquery.base.errors import ParameterError, QueryError
from dualquery.base.files import read_text
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.model.mixture import Mixture

CLOSE = 1e-9
"""Totals are obeyed to this distance."""

SWEEPS = 20_000


@dataclass(frozen=True)
class Total:
    """A share of records that is known.

    Attributes:
        text: as it was written.
        attribute: the position of its attribute.
        codes: which of its codes count.
        share: how many records have one of them.
    """

    text: str
    attribute: int
    codes: tuple[int, ...]
    share: float


def read_totals(source: str | Path | Sequence[str], schema: Schema) -> tuple[Total, ...]:
    """Totals from a file or from lines such as `sex=Female = 0.512`; they must be consistent.

    Args:
        source: a path, or the lines themselves.
        schema: of the table.
    """
    if isinstance(source, str | Path):
        text = read_text(Path(source), "file of known shares", ParameterError)
        lines: Iterable[str] = text.splitlines()
    else:
        lines = source
    kept = [line.strip() for line in lines]
    found = tuple(_total(line, schema) for line in kept if line and not line.startswith("#"))
    if not found:
        raise ParameterError("known: no totals; expected lines such as: sex=Female = 0.512")
    for attribute in {total.attribute for total in found}:
        own = [total for total in found if total.attribute == attribute]
        _check_consistent(own, int(schema.sizes[attribute]), schema.names[attribute])
    return found


def _total(line: str, schema: Schema) -> Total:
    text, equals, number = line.rpartition("=")
    try:
        share = float(number)
    except ValueError:
        share = -1.0
    if not equals or not 0.0 <= share <= 1.0:
        raise ParameterError(
            f"known: {line!r}; expected a query, =, and a share from 0 to 1, such as "
            "sex=Female = 0.512"
        )
    try:
        query = parse(text.strip(), schema)
    except QueryError as error:
        raise ParameterError(f"known: {line!r}: {error}") from None
    if query.kind != "conjunction" or len(query.literals) != 1:
        raise ParameterError(f"known: {line!r}; expected a condition on one column")
    literal = query.literals[0]
    size = int(schema.sizes[literal.attribute])
    return Total(line, literal.attribute, tuple(sorted(literal.allowed(size))), share)


def _check_consistent(totals: Sequence[Total], size: int, name: str) -> None:
    """Refuse totals of one attribute that no distribution of its codes obeys."""
    from scipy.optimize import linprog

    rows = [np.isin(np.arange(size), total.codes).astype(float) for total in totals]
    shares = [total.share for total in totals]
    found = linprog(
        np.zeros(size), A_eq=np.vstack([*rows, np.ones(size)]), b_eq=[*shares, 1.0], bounds=(0, 1)
    )
    if found.status != 0:
        told = "; ".join(total.text for total in totals)
        raise ParameterError(f"known: the totals of column {name!r} contradict one another: {told}")


def obeying(model: Mixture, totals: Sequence[Total]) -> Mixture:
    """The model nearest to this one that obeys all totals."""
    if not totals:
        return model
    sizes = model.schema.sizes
    for _ in range(SWEEPS):
        farthest = 0.0
        for total in totals:
            a = total.attribute
            inside = np.zeros(int(sizes[a]), dtype=bool)
            inside[list(total.codes)] = True
            part = model.tables[slice(*model.schema.code_start[a : a + 2])]
            share = float(part[inside].sum(axis=0) @ model.weights)
            farthest = max(farthest, abs(share - total.share))
            factor = np.where(
                inside, _ratio(total.share, share), _ratio(1 - total.share, 1 - share)
            )
            weights, own = model.tilted({a: factor})
            model = Mixture(model.schema, weights / weights.sum(), own, model.edges)
        if farthest <= CLOSE:
            return model
    raise ParameterError(f"known: the model is still {farthest:.2g} away from its totals")


def _ratio(wanted: float, share: float) -> float:
    return wanted / share if share > 0.0 else 0.0
