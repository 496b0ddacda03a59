"""A public start: an earlier release, or a public table, that says what tables may look like.

It costs nothing, because it is public, and it cannot spoil a promise: what it expects of a table
is written beside the measurement, and the fit weighs both. Whoever hands in a private table as a
start breaks the promise to the people in that table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError
from dualquery.domain.schema import Schema
from dualquery.model.forest.answers import shares_of
from dualquery.release.release import Release, load
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.opening import open_table
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.marginals import Marginals

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Start:
    """What a public source expects of tables.

    Attributes:
        name: of the source, for the page and the journal: its kind, columns and digest.
        covered: whether each attribute of the schema is known to it.
        cells: the shares of all cells of some marginals on covered attributes.
    """

    name: str
    covered: npt.NDArray[np.bool_]
    cells: Callable[[Marginals], Floats]

    def expected(self, marginals: Marginals) -> Floats | None:
        """The expected share of each cell; not a number where the start knows too little."""
        known = self.covered[marginals.attributes].all(axis=1)
        if not known.any():
            return None
        found = np.full(marginals.cells, np.nan)
        every = np.repeat(known, np.diff(marginals.start))
        found[every] = self.cells(Marginals(marginals.groups, marginals.attributes[known]))
        return found


def open_start(source: object, schema: Schema, *, seeded: bool = False) -> Start:
    """A start from an earlier release (its directory or the value) or a public table.

    Args:
        source: the release or the table.
        schema: of the table that is to be released.
        seeded: whether the run itself is NOT PRIVATE, so that its start may be, too.
    """
    if isinstance(source, Release):
        return _of_release(source, schema, seeded)
    if isinstance(source, str | Path) and (Path(source) / "release.json").is_file():
        return _of_release(load(source), schema, seeded)
    return _of_table(source, schema)


def _of_release(release: Release, schema: Schema, seeded: bool) -> Start:
    if release.privacy.stamp and not seeded:
        # Whoever has its seed can work out its noise, and with it what this run measures again.
        raise ParameterError(
            "start: that release was made with a seed and is NOT PRIVATE; start from one that is "
            "private, or from a public table"
        )
    model = release.model
    if model is None:
        raise ParameterError("start: that release has no model; fit one with `dualquery refit`")
    places = _places(release.schema, schema)
    digest = hashlib.sha256(model.weights.tobytes() + model.tables.tobytes())
    if model.edges is not None:
        digest.update(model.edges.trees.parent.tobytes() + model.edges.ties.tobytes())
    return Start(
        _name("an earlier release", places, digest.hexdigest()),
        places >= 0,
        lambda marginals: shares_of(model, marginals, places),
    )


def _of_table(source: object, schema: Schema) -> Start:
    table = open_table(source)
    if not isinstance(table, ArrowTable):
        raise ParameterError("start: expected the directory of a release, a frame, CSV or Parquet")
    shared = [a for a in schema.attributes if a.name in table.header]
    if not shared:
        raise ParameterError("start: that table has none of the columns of the schema")
    narrow = Schema(tuple(shared))
    rows = EncodedRows.read(table, table.bind(narrow), range(len(narrow)))
    places = _places(narrow, schema)
    columns = {a: rows.columns[int(p)] for a, p in enumerate(places) if p >= 0}
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(c).tobytes() for c in columns.values()))
    found = EncodedRows(rows.rows, columns)
    return Start(
        _name("a public table", places, digest.hexdigest()),
        places >= 0,
        lambda marginals: tabulate(found, marginals) / found.rows,
    )


def _places(known: Schema, schema: Schema) -> npt.NDArray[np.int64]:
    """Where each attribute stands in the start's schema; −1 if it is not there as it is here."""
    places = np.full(len(schema), -1)
    for number, attribute in enumerate(schema.attributes):
        other = known.index.get(attribute.name, -1)
        if other >= 0 and known.attributes[other] == attribute:
            places[number] = other
    if not (places >= 0).any():
        raise ParameterError("start: none of its columns is declared as in this schema")
    return places


def _name(kind: str, places: npt.NDArray[np.int64], digest: str) -> str:
    return f"{kind}, {(places >= 0).sum()} of {len(places)} columns, sha256 {digest[:16]}"
