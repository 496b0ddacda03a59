"""`dualquery check`: everything that a release would refuse, all at once."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dualquery.cli import options


def check(
    table: options.TablePath,
    schema: options.SchemaFile,
    out_of_domain: Annotated[
        str, typer.Option(help="Cells outside their domain: refuse, clamp or missing.")
    ] = "refuse",
    long: options.Long = None,
    item_prefix: options.ItemPrefix = "",
    records: options.LongRecords = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    weight: options.Weight = None,
    weight_bound: options.WeightBound = None,
    show: Annotated[
        bool, typer.Option("--show", help="Show some of the refused cells too: NOT PRIVATE.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Say everything that a release would refuse. FOR THE CURATOR'S EYES: it counts private cells.

    The exit code is 0 if a release would take the table, and 1 if it would refuse it.
    """
    from dualquery.domain.schema import Schema
    from dualquery.rows.checking import check as check_table

    declared = Schema.load(schema)
    source = options.table_source(table, long, item_prefix, records, encoding=encoding, sheet=sheet)
    found = check_table(
        source, declared, out_of_domain=out_of_domain, weight=weight, weight_bound=weight_bound,
        show=show,
    )  # fmt: skip
    if as_json:
        options.echo(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        options.echo(found.text())
        if declared.draft:
            options.echo(
                "note: the schema says draft = true; a release takes it when you have reviewed it "
                "and removed that line"
            )
    if not found.ok:
        raise typer.Exit(1)
