"""What fixes what: a release with `determines` rules settles them from what it released.

Public side. For every code of the first column the likeliest code of the second is taken from the
model, or from the records of the game. From then on the rule is like any other rule.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.domain.dependences import likeliest
from dualquery.domain.query import Query
from dualquery.domain.schema import Schema
from dualquery.model.mixture import Mixture

Records = npt.NDArray[np.int32]


def settled_model(model: Mixture) -> Mixture:
    """The model, with rows that obey every `determines` rule.

    Inside each component the second column follows the first one: its distribution is that of the
    codes that the first one's fix. It has no edge, so nothing else moves it.
    """
    schema = model.schema
    pairs = schema.dependences
    if not pairs:
        return model
    tables, own = model.tables.copy(), model.own.copy()
    maps = []
    for source, target in pairs:
        first = slice(*schema.code_start[source : source + 2])
        second = slice(*schema.code_start[target : target + 2])
        joint = model.table((source, target))
        fixed = likeliest(np.where(_allowed(schema, source, target), joint, -1.0))
        moved = np.zeros_like(tables[second])
        np.add.at(moved, fixed, tables[first])
        tables[second] = own[second] = moved
        maps.append(fixed)
    return Mixture(schema.settled(maps), model.weights, own, model.edges)


def settled_records(records: Records, schema: Schema) -> Records:
    """The records, changed where they break a `determines` rule."""
    pairs = schema.dependences
    if not pairs:
        return records
    records = records.copy()
    maps = []
    for source, target in pairs:
        joint = np.zeros((int(schema.sizes[source]), int(schema.sizes[target])))
        np.add.at(joint, (records[:, source], records[:, target]), 1.0)
        fixed = likeliest(np.where(_allowed(schema, source, target), joint, -1.0))
        records[:, target] = fixed[records[:, source]]
        maps.append(fixed)
    constraints = schema.settled(maps).constraints
    return records if constraints is None else constraints.repair(records)


def _allowed(schema: Schema, source: int, target: int) -> npt.NDArray[np.bool_]:
    """Per pair of codes, whether no other rule forbids it by itself."""
    allowed = np.ones((int(schema.sizes[source]), int(schema.sizes[target])), dtype=bool)
    if schema.constraints is None:
        return allowed
    for query in schema.constraints.forbidden:
        if {literal.attribute for literal in query.literals} <= {source, target}:
            allowed &= ~_held(query, source, target, allowed.shape)
    return allowed


def _held(query: Query, source: int, target: int, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    held = np.ones(shape, dtype=bool)
    for literal in query.literals:
        along = 0 if literal.attribute == source else 1
        marked = np.zeros(shape[along], dtype=bool)
        marked[list(literal.allowed(shape[along]))] = True
        held &= marked[:, None] if along == 0 else marked[None, :]
    return held
