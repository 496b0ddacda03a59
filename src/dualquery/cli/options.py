"""Options that several commands share, with one wording."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

SchemaFile = Annotated[
    Path, typer.Option("--schema", help="Schema file (TOML, or an mbi domain JSON).")
]
Epsilon = Annotated[float, typer.Option(help="Privacy budget ε, above 0.")]
Delta = Annotated[float, typer.Option(help="Privacy budget δ, between 0 and 1.")]
Queries = Annotated[
    int | None, typer.Option(help="How many random k-way marginals to ask. [default: 500000]")
]
K = Annotated[int | None, typer.Option("--k", help="Attributes per random marginal. [default: 3]")]
Workload = Annotated[
    Path | None, typer.Option(help="A file of queries, one per line, instead of random ones.")
]
Marginals = Annotated[
    str | None,
    typer.Option(metavar="1,2", help="Ask for whole marginals of so many columns instead."),
]
Focus = Annotated[
    str | None, typer.Option(metavar="A,B", help="Queries on these columns count ten times.")
]
Player = Annotated[
    str | None, typer.Option(help="Who answers the draws: model or record. [default: by width]")
]
Rounds = Annotated[int | None, typer.Option(help="Rounds T. [default: planned]")]
Samples = Annotated[int | None, typer.Option(help="Draws s per round. [default: planned]")]
Eta = Annotated[float | None, typer.Option(help="Learning rate η. [default: planned]")]
Neighbours = Annotated[str, typer.Option(help="replace-one or add-remove.")]
Accountant = Annotated[str, typer.Option(help="pure, advanced, per-round, zcdp or gaussian.")]
Json = Annotated[bool, typer.Option("--json", help="Figures as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
ReleaseDir = Annotated[Path, typer.Argument(metavar="DIR", help="A release directory.")]
Where = Annotated[
    str | None, typer.Option(help='Only the records that satisfy a query, e.g. "age>=50".')
]
Unknown = Annotated[
    str,
    typer.Option(
        help="Attributes that no query of the release names: refuse, or answer by their declared "
        "default."
    ),
]


class Format(StrEnum):
    """How a table is printed."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"


TableFormat = Annotated[
    Format, typer.Option("--format", help="text, csv or json.", show_default=True)
]
TablePath = Annotated[
    Path, typer.Argument(metavar="TABLE", help="CSV (.gz), Parquet, or sparse .npz of 0/1.")
]
Long = Annotated[
    str | None,
    typer.Option("--long", metavar="RECORD,ITEM", help="TABLE holds pairs, in these two columns."),
]
ItemPrefix = Annotated[
    str, typer.Option(help="With --long: item 7 is the attribute PREFIX7 of the schema.")
]
LongRecords = Annotated[
    int | None,
    typer.Option(help="With --long: the public number of records, with or without items."),
]


def table_source(table: Path, long: str | None, prefix: str, records: int | None) -> object:
    """The table that a command was given: a path, or pairs in long format.

    Args:
        table: the path.
        long: the names of the columns with record and item, with a comma between them; None if
            the table has one row per record.
        prefix: what the schema's attribute names have before the item.
        records: the public number of records, if not only those with items count.
    """
    from dualquery.base.errors import ParameterError

    if long is None:
        if prefix or records is not None:
            raise ParameterError("--item-prefix and --records go with --long RECORD,ITEM")
        return table
    from dualquery.rows.long import LongTable

    columns = [name.strip() for name in long.split(",")]
    if len(columns) != 2 or not all(columns):
        raise ParameterError(f"--long {long!r}; expected the names of two columns, RECORD,ITEM")
    return LongTable(table, columns[0], columns[1], prefix=prefix, declared_rows=records)


def warn(line: str) -> None:
    """Print what the curator should know before the first draw, even with --quiet."""
    typer.echo(f"warning: {line}", err=True)
