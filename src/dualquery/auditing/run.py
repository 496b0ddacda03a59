"""The audit: five questions about a table, its schema and a budget. Private side; NOT PRIVATE."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from dualquery.auditing import hostile, pieces, scales, transcripts, unrelated
from dualquery.auditing.playing import Setting
from dualquery.auditing.report import Audit
from dualquery.auditing.worlds import Worlds
from dualquery.base.checks import whole
from dualquery.base.errors import ParameterError, TableError
from dualquery.domain.schema import Schema
from dualquery.estimator.conventions import as_schema
from dualquery.estimator.settings import Mechanism
from dualquery.privacy.sources import SystemSource
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import Codes, OutOfDomain
from dualquery.rows.opening import open_table

PLAYED_ROWS, RELEASED_ROWS = 50_000, 1_000
"""The most rows that are played on for (d) and (e), and that are released for (c)."""

PLAYED, RELEASED, SMALL = 40, 5, 6
"""The most attributes of (d), of (c), and of the small releases of (e)."""

LEAST_ROWS, LEAST_RELEASES = 64, 100

Progress = Callable[[str, int, int], None]


def audit(
    table: object,
    schema: Schema | str | Path,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-2,
    accountant: str = "gaussian",
    neighbours: str = "replace-one",
    unit: str | None = None,
    most_records: int | None = None,
    out_of_domain: str = "refuse",
    releases: int | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> Audit:
    """Look for what would break the promise of a release of this table. NOT PRIVATE.

    (a) The table is read whole and in pieces: codes, rows and kept records must be the same.
    (b) Hostile records are planted: no other code may change.
    (c) The table and an unrelated one are released with forced noise: no byte may differ.
    (d) Noise and draws are compared with what is stated of them.
    (e) Many small releases of two tables bound μ from below: not above what is stated.

    Nothing is published or charged, and what is written to a temporary folder is deleted.

    Args:
        table: whatever `DualQuery.fit` takes, with a row per record.
        schema: the declared domain, or the path of a schema file.
        epsilon: ε of the budget that is audited.
        delta: δ of it.
        accountant: the theorem that states ε.
        neighbours: "replace-one" or "add-remove".
        unit: the column that names the person of a row.
        most_records: the most rows of one person that are counted.
        out_of_domain: the treatment of cells outside their domain.
        releases: how many small releases are made for (e), at least 100; left out, none.
        progress: told a stage, what is done of it, and its total.
    """
    if releases is not None and whole("releases", releases) < LEAST_RELEASES:
        raise ParameterError(f"releases = {releases}; expected at least {LEAST_RELEASES}")
    treatment = OutOfDomain.parse(out_of_domain)
    declared = as_schema(schema)
    source = open_table(table)
    if not isinstance(source, ArrowTable):
        raise TableError("an audit needs a row per record: a frame, a CSV or a Parquet file")
    bound = source.bind(declared)
    # The size may be private in a release. An audit knows the table.
    rows = _row_count(source)
    if rows < LEAST_ROWS:
        raise TableError(f"the table has fewer than {LEAST_ROWS} rows, too few for an audit")
    mechanism = Mechanism(
        epsilon, delta, neighbours, accountant, unit=unit, most_records=most_records,
        rows=min(rows, PLAYED_ROWS),
    )  # fmt: skip
    mechanism.check()
    persons = mechanism.persons
    with tempfile.TemporaryDirectory(prefix="dualquery-audit-") as made:
        folder = Path(made)
        progress("reading whole and in pieces", 0, 0)
        read = pieces.look(source, bound, treatment, persons)
        progress("planting hostile records", 0, 0)
        planted = hostile.look(source, bound, persons, folder)
        progress("releasing two unrelated tables", 0, 0)
        few = narrowed(bound, RELEASED)
        size = min(rows, RELEASED_ROWS)
        shown = _first(source, few, size, unit)
        apart = unrelated.look(shown, few, replace(mechanism, rows=size), out_of_domain, folder)
    progress("measuring noise", 0, 0)
    chosen = narrowed(bound, PLAYED)
    fine = _fine(source, chosen, treatment)
    worlds = Worlds.of(chosen, fine, mechanism.protected.influence, mechanism.relation)
    noise = scales.look(Setting(worlds, mechanism), SystemSource())
    if releases is None:
        bounded = transcripts.not_asked()
    else:
        small = smallest(bound, SMALL)
        bounded = transcripts.look(
            small,
            _fine(source, small, treatment),
            mechanism,
            releases,
            lambda done, total: progress("small releases", done, total),
        )
    return Audit((read, planted, apart, noise, bounded), epsilon, delta)


def narrowed(schema: Schema, most: int) -> Schema:
    """Some attributes of a schema, evenly spread, without constraints."""
    chosen = np.unique(np.linspace(0, len(schema) - 1, min(most, len(schema))).astype(int))
    return Schema(tuple(schema.attributes[a] for a in chosen))


def smallest(schema: Schema, most: int) -> Schema:
    """The attributes with the fewest codes, of those that have two or more, without sub-bins.

    Sub-bins are smoothed after they are measured, which takes a second per release and tells
    nothing of what was measured.
    """
    sizes = schema.sizes
    order = np.argsort(np.where(sizes > 1, sizes, sizes.max() + 1), kind="stable")
    few = [schema.attributes[a] for a in np.sort(order[:most])]
    return Schema(tuple(replace(one, sub_bins=1) if one.is_numeric else one for one in few))


def _row_count(table: ArrowTable) -> int:
    return sum(batch.num_rows for batch in table.batches(table.header[:1]))


def _first(table: ArrowTable, schema: Schema, rows: int, unit: str | None) -> pa.Table:
    """The first rows of the table, with the columns of the schema and of persons."""
    names = list(dict.fromkeys(one.column for one in schema.attributes))
    names += [unit] if unit is not None and unit not in names else []
    found, held = [], 0
    for batch in table.batches(names):
        found.append(batch.slice(0, rows - held))
        held += found[-1].num_rows
        if held >= rows:
            break
    return pa.Table.from_batches(found)


def _fine(table: ArrowTable, schema: Schema, treatment: OutOfDomain) -> Codes:
    """The first rows as codes of sub-bins, a row per record."""
    fine = schema.fine
    rows = _first(table, schema, PLAYED_ROWS, None)
    read = EncodedRows.read(open_table(rows), fine, range(len(fine)), treatment)
    found: Codes = np.stack([read.columns[a].astype(np.int32) for a in range(len(fine))], axis=1)
    return found
