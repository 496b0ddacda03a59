"""The model of the records that obey the public constraints.

A fit knows a forbidden combination only by what was measured of it, which is noise around zero. But
constraints are public: a mixture given that none is broken is a mixture again, with components for
each of the disjoint ways to obey. It answers zero to what is forbidden, exactly, and its rows need
no mending.
"""

from __future__ import annotations

from dualquery.base.errors import QueryError
from dualquery.domain.diagrams import Diagram
from dualquery.domain.formulas import AnyOf, Not
from dualquery.domain.query import Query
from dualquery.model.mixture import Mixture

MOST_WAYS = 16
"""Constraints with more disjoint ways to obey them are left to sampling, which mends rows."""

MOST_ENTRIES = 1_000_000
"""Of the tables of the new model. Every reader of a release has to load them."""


def without_forbidden(model: Mixture) -> Mixture:
    """The model given that no constraint is broken; the model itself where that is too much."""
    constraints = model.schema.constraints
    if constraints is None:
        return model
    most = min(MOST_WAYS, MOST_ENTRIES // model.tables.size)
    try:
        allowed = Diagram.of(Not(AnyOf(constraints.forbidden)), model.schema)
        ways = allowed.parts(most)
    except QueryError:  # more ways than that
        return model
    return model.given_any([Query("conjunction", way) for way in ways])
