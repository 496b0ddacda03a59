"""Synthetic rows of a release: arranged, or drawn independently of one another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ReleaseError
from dualquery.domain.query import Query
from dualquery.domain.schema import Schema
from dualquery.model.arranging import arranged
from dualquery.model.corrections import NOTHING, Ratios
from dualquery.model.mixture import Mixture
from dualquery.workloads.matching import satisfying

Records = npt.NDArray[np.int32]


def rows_of_model(
    model: Mixture,
    rows: int,
    generator: np.random.Generator,
    targets: Sequence[tuple[int, ...]] | None,
    parts: Sequence[Query] = (),
    corrected: Ratios = NOTHING,
) -> Records:
    """Rows of a model that obey the constraints, and the condition if there is one.

    Args:
        model: the distribution.
        rows: how many.
        generator: public randomness.
        targets: the sets of attributes whose marginals are kept near the model's; None for rows
            that are independent of one another.
        parts: conjunctions that exclude one another; every row satisfies one of them. Empty for
            no condition.
        corrected: pairs in which arranged rows follow what was measured, not the model.
    """
    given = model.given_any(parts) if parts else model
    if targets is None:
        codes = given.sample(rows, generator)
    else:
        codes = arranged(given, rows, generator, targets, corrected=corrected)
    if not parts or model.schema.constraints is None:
        return codes
    # A row that broke a constraint may have been mended at the price of the condition.
    kept = _satisfying(codes, parts, model.schema)
    if not kept.any():
        raise ReleaseError("no row of the model obeys the constraints and satisfies the condition")
    codes[~kept] = codes[generator.choice(np.flatnonzero(kept), int((~kept).sum()))]
    return codes


def rows_of_records(
    records: Records,
    rows: int,
    generator: np.random.Generator,
    schema: Schema,
    parts: Sequence[Query] = (),
    *,
    independent: bool,
) -> Records:
    """Rows of the records of a game that satisfy the condition, if there is one.

    Unless they are independent, no record occurs more than once oftener than another.

    Args:
        records: the records.
        rows: how many.
        generator: public randomness.
        schema: of the records.
        parts: as in `rows_of_model`.
        independent: whether to draw them with replacement.
    """
    if parts:
        records = records[_satisfying(records, parts, schema)]
        if not len(records):
            raise ReleaseError("no record of the release satisfies the condition")
    if independent:
        chosen = generator.integers(0, len(records), size=rows)
    else:
        order = generator.permutation(len(records))
        chosen = generator.permutation(np.resize(order, rows))
    found: Records = records[chosen]
    return found


def _satisfying(codes: Records, parts: Sequence[Query], schema: Schema) -> npt.NDArray[np.bool_]:
    kept = np.zeros(len(codes), dtype=bool)
    for part in parts:
        kept |= satisfying(codes, part, schema)
    return kept
