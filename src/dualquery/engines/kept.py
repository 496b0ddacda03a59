"""Codes of parts, kept on workers between measurements. Runs on workers: private side.

Tables are measured in several steps. Without this, every step would read all parts again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualquery.base.errors import NoRowsError
from dualquery.domain.schema import Schema
from dualquery.engines.held import KeptRows, keep_rows, rows_of
from dualquery.engines.parts import PartTable, Piece, Private, another_version, enveloped
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.tabulation import tabulate
from dualquery.version import __version__
from dualquery.workloads.counts import Counted
from dualquery.workloads.marginals import Marginals

MOST_WIDTH = 1 << 12
"""Rows whose codes take more bytes are counted from packed columns, and read at every step."""


def bytes_of_codes(schema: Schema) -> int:
    """The bytes that the codes of a row take: one per column, two for more than 256 codes."""
    return int(np.where(schema.sizes > 256, 2, 1).sum())


def tabulate_part(
    name: str,
    pieces: Sequence[Piece],
    asked: tuple[Schema, Marginals],
    out_of_domain: OutOfDomain,
    version: str = __version__,
) -> Private[Counted]:
    """Count the cells of some marginals in one part.

    Args:
        name: of the part in this run; its codes are kept under this name.
        pieces: the row groups of the part.
        asked: the schema whose codes are counted, and the marginals.
        out_of_domain: what to do with a cell outside its declared domain.
        version: the client's version; a worker of another version refuses.
    """
    try:
        if version != __version__:
            raise another_version(__version__, version)
        schema, marginals = asked
        try:
            rows = _rows(name, pieces, schema, marginals, out_of_domain)
        except NoRowsError:
            return Private(Counted(np.zeros(marginals.cells, dtype=np.int64), 0))
        return Private(Counted(tabulate(rows, marginals), rows.rows))
    except Exception as error:
        return enveloped(error)


def _rows(
    name: str,
    pieces: Sequence[Piece],
    schema: Schema,
    marginals: Marginals,
    out_of_domain: OutOfDomain,
) -> EncodedRows:
    """The codes of a part: those that are kept, or read and then kept."""
    attributes = np.unique(marginals.attributes).tolist()
    kept = rows_of(name)
    same = kept is not None and kept.pieces == pieces
    if kept is not None and same and set(attributes) <= set(kept.rows.columns):
        if kept.schema == schema:
            return kept.rows
        if kept.schema == schema.fine:  # one-way tables come first, and need finer codes
            rows = kept.rows.coarser(schema)
            keep_rows(name, KeptRows(pieces, schema, rows))
            return rows
    rows = EncodedRows.read(PartTable(pieces), schema, attributes, out_of_domain)
    keep_rows(name, KeptRows(pieces, schema, rows))
    return rows
