"""`dualquery schema`: a draft for the curator to review, or one that is paid for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli import options

PRICED = "With a price"

Chosen = tuple[list[str] | None, list[str]]
"""Only these columns, and none of those."""


def schema(
    table: options.TablePath,
    out: Annotated[Path, typer.Option("--out", "-o", help="The schema file to write.")],
    bins: Annotated[
        int | None,
        typer.Option(help="Bins of a column of numbers or dates. (default: 10, with a price 8)"),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only these columns, in this order.")
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(metavar="C,D", help="All columns except these.")
    ] = None,
    skeleton: Annotated[
        bool,
        typer.Option(
            "--skeleton", rich_help_panel=PRICED, help="Write a declaration to be filled in."
        ),
    ] = False,
    declare: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=PRICED,
            help="Declared columns: names, types, bounds, known or open values.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(rich_help_panel=PRICED, help="ε to spend on edges and values.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(rich_help_panel=PRICED, help="δ to spend on them.")
    ] = None,
    ledger: options.LedgerFile = None,
    note: options.Note = None,
    neighbours: options.Neighbours = "replace-one",
    unit: options.Unit = None,
    most_records: options.MostRecords = None,
    weigh: options.Weigh = "record",
    seed: options.Seed = None,
    long: options.Long = None,
    item_prefix: options.ItemPrefix = "",
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    as_json: options.Json = False,
) -> None:
    """Draft a schema from a table. Without --epsilon it must be reviewed: it SHOWS WHAT IT READ."""
    from dualquery.base.errors import ParameterError, SchemaError
    from dualquery.base.files import check_target

    if os.path.lexists(out) and not overwrite:
        raise SchemaError(f"{str(out)!r} exists; choose another name or pass --overwrite")
    if not os.access(out.parent, os.W_OK):  # before anything is paid for
        raise SchemaError(f"no folder to write to: {str(out.parent)!r}")
    check_target(out)
    chosen = (options.names(columns), options.names(exclude) or [])
    if epsilon is None:
        given = {"declare": declare, "delta": delta, "ledger": ledger, "note": note, "unit": unit,
                 "most-records": most_records, "seed": seed}  # fmt: skip
        for name, value in given.items():
            if value is not None:
                raise ParameterError(f"--{name} is for a schema with a price; give --epsilon too")
        source = options.table_source(table, long, item_prefix, encoding=encoding, sheet=sheet)
        (_skeleton if skeleton else _draft)(source, out, bins, chosen, as_json)
        return
    if declare is None or delta is None:
        missing = "--delta D" if delta is None else "--declare FILE"
        raise ParameterError(
            f"a schema with a price needs {missing}; `dualquery schema {table} --skeleton -o FILE` "
            "writes a declaration to be filled in"
        )
    if columns is not None or exclude is not None or skeleton or long is not None:
        raise ParameterError(
            "--columns, --exclude, --skeleton and --long go without a price; with one, the file of "
            "--declare says which columns there are"
        )
    from dualquery.rows.priced import draft_with_price

    made = draft_with_price(
        options.table_source(table, encoding=encoding, sheet=sheet), declare, epsilon=epsilon,
        delta=delta, bins=bins, neighbours=neighbours, unit=unit,
        most_records=most_records, weigh=weigh, ledger=ledger, note=note or str(out), seed=seed,
    )  # fmt: skip
    made.save(out)
    if as_json:
        options.echo(json.dumps({"file": str(out), **made.to_dict()}))
    else:
        options.echo(f"schema of {len(made.schema)} attributes in {out}")
        options.echo("\n".join(line for line in made.header() if line))


def _draft(source: object, out: Path, bins: int | None, chosen: Chosen, as_json: bool) -> None:
    from dualquery.domain.documents import NOT_PRIVATE
    from dualquery.rows.drafting import draft

    columns, exclude = chosen
    made = draft(source, 10 if bins is None else bins, columns=columns, exclude=exclude)
    made.save(out)
    if as_json:
        told = {"file": str(out), "attributes": len(made.schema), "left_out": dict(made.left_out)}
        options.echo(json.dumps({"not_private": NOT_PRIVATE, **told}))
    else:
        options.echo(f"draft of {len(made.schema)} attributes in {out}")
        for name, reason in made.left_out.items():
            options.echo(f"left out: {name} {reason}", err=True)
    options.echo(
        "this command read the private table: values and edges in the draft were seen in it. "
        "Replace them by what is publicly known before you release anything.",
        err=True,
    )


def _skeleton(source: object, out: Path, bins: int | None, chosen: Chosen, as_json: bool) -> None:
    from dualquery.base.errors import ParameterError
    from dualquery.domain.documents import NOT_PRIVATE, write_document
    from dualquery.rows.drafting import skeleton

    if bins is not None:
        raise ParameterError("--bins: a skeleton has no bins; give it with --epsilon")
    columns, exclude = chosen
    content, header = skeleton(source, columns=columns, exclude=exclude)
    listed = len(made) if isinstance(made := content["attributes"], dict) else 0
    write_document(content, out, header)
    if as_json:
        told = {"not_private": NOT_PRIVATE, "file": str(out), "columns": listed}
        options.echo(json.dumps(told))
    else:
        options.echo(f"skeleton of {listed} columns in {out}: fill in its bounds")
    options.echo(
        "this command read the private table: column names and types were seen in it. Check them "
        "before you use the file with --declare.",
        err=True,
    )
