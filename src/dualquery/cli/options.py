"""Options that several commands share, with one wording."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dualquery.base.escapes import for_terminal

PRIVACY = "Privacy"
ASKED = "What is asked"
READING = "Reading the table"
PUBLIC = "What is public already; it costs nothing"
PLAYING = "How it is played; what is left out is planned"
ABOUT = r"What the page says; left out, as \[about] in the schema file says"
RUNNING = "Running"
"""The groups in which `--help` lists options."""

SchemaFile = Annotated[
    Path, typer.Option("--schema", help="Schema file (TOML, or an mbi domain JSON).")
]
Epsilon = Annotated[float, typer.Option(help="Privacy budget ε, above 0.")]
Delta = Annotated[float, typer.Option(help="Privacy budget δ, between 0 and 1.")]
ReleaseEpsilon = Annotated[
    float | None,
    typer.Option("--epsilon", help="Privacy budget ε, above 0. Needed, except with --paper."),
]
Paper = Annotated[
    bool,
    typer.Option(
        "--paper",
        rich_help_panel=PLAYING,
        help="The paper's algorithm as it is printed; by --alpha, or by --epsilon and --delta.",
    ),
]
Bits = Annotated[
    bool | None,
    typer.Option(
        "--bits/--valid",
        rich_help_panel=PLAYING,
        help="With --player record: every value a 0/1 column of its own, or valid records. "
        "(default: bits with --paper)",
    ),
]
Positive = Annotated[
    bool,
    typer.Option(
        "--positive", rich_help_panel=ASKED, help="Random marginals of positive literals only."
    ),
]
Parities = Annotated[
    int | None,
    typer.Option(metavar="K", rich_help_panel=ASKED, help="Ask random parities of K bits instead."),
]
ParityShare = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        rich_help_panel=ASKED,
        help="With --parities: this share of the queries; the others are marginals. (default: 1)",
    ),
]
DeltaOrUsual = Annotated[
    float | None,
    typer.Option(
        "--delta",
        help="Privacy budget δ. (default: 1/n², rounded down to a power of ten; 0 with --paper)",
    ),
]
Queries = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=ASKED, help="How many random k-way marginals to ask. (default: 500000)"
    ),
]
K = Annotated[
    int | None,
    typer.Option("--k", rich_help_panel=ASKED, help="Attributes per random marginal. (default: 3)"),
]
Workload = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=ASKED, help="A file of queries, one per line, instead of random ones."
    ),
]
Marginals = Annotated[
    str | None,
    typer.Option(
        metavar="1,2",
        rich_help_panel=ASKED,
        help="Ask for whole marginals of so many columns instead.",
    ),
]
Focus = Annotated[
    str | None,
    typer.Option(
        metavar="A,B", rich_help_panel=ASKED, help="Queries on these columns count ten times."
    ),
]
Player = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=PLAYING, help="Who answers the draws: model or record. (default: by width)"
    ),
]
Rounds = Annotated[
    int | None, typer.Option(rich_help_panel=PLAYING, help="Rounds T. (default: planned)")
]
Samples = Annotated[
    int | None, typer.Option(rich_help_panel=PLAYING, help="Draws s per round. (default: planned)")
]
Eta = Annotated[
    float | None, typer.Option(rich_help_panel=PLAYING, help="Learning rate η. (default: planned)")
]
Alpha = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=PLAYING,
        help="Accuracy α of the paper's Algorithm 2: sets T, s and η. Needs --player record.",
    ),
]
Beta = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=PLAYING,
        help="Chance that --alpha fails; alone, α is the smallest that is promised.",
    ),
]
Neighbours = Annotated[
    str,
    typer.Option(
        "--neighbours", "--neighbors", rich_help_panel=PRIVACY, help="replace-one or add-remove."
    ),
]
ReleaseNeighbours = Annotated[
    str | None,
    typer.Option(
        "--neighbours",
        "--neighbors",
        rich_help_panel=PRIVACY,
        help="replace-one (default), or add-remove (default with --paper).",
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=PRIVACY,
        help="Column that names the person of a row: their rows are protected together.",
    ),
]
MostRecords = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=PRIVACY, help="With --unit: the most rows of one person that are counted."
    ),
]
Weigh = Annotated[
    str,
    typer.Option(
        rich_help_panel=PRIVACY,
        help="With --unit, what counts once: record, or person (shared by rows).",
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=PRIVACY,
        help="Column with the survey weight of a row: answers are weighted shares.",
    ),
]
WeightBound = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=PRIVACY,
        help="With --weight: the most that one row may weigh; larger weights are cut.",
    ),
]
Accountant = Annotated[
    str, typer.Option(rich_help_panel=PRIVACY, help="pure, advanced, per-round, zcdp or gaussian.")
]
ReleaseAccountant = Annotated[
    str | None,
    typer.Option(
        "--accountant",
        rich_help_panel=PRIVACY,
        help="pure, advanced, per-round, zcdp or gaussian (default; with --paper its theorems: "
        "advanced, or pure at δ = 0).",
    ),
]
Json = Annotated[bool, typer.Option("--json", rich_help_panel=RUNNING, help="Figures as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", rich_help_panel=RUNNING, help="No progress.")]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw", help="CSV cells as they are, also those that a spreadsheet would run as formulas."
    ),
]
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
    str,
    typer.Argument(
        metavar="TABLE",
        help="A file (CSV, Parquet, Stata, SPSS, SAS, Excel, …), a folder, or sqlite:FILE#TABLE.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=READING,
        help="Encoding of a file's text, such as windows-1252. (default: utf-8)",
    ),
]
Sheet = Annotated[
    str | None, typer.Option(rich_help_panel=READING, help="Which sheet of a spreadsheet.")
]
Long = Annotated[
    str | None,
    typer.Option(
        "--long",
        metavar="RECORD,ITEM",
        rich_help_panel=READING,
        help="TABLE holds pairs, in these two columns.",
    ),
]
ItemPrefix = Annotated[
    str,
    typer.Option(
        rich_help_panel=READING, help="With --long: item 7 is the attribute PREFIX7 of the schema."
    ),
]
LongRecords = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=READING,
        help="With --long: the public number of records, with or without items.",
    ),
]

# Options of `release` alone stand here too, so that the command itself fits on one screen.

Out = Annotated[Path, typer.Option(help="The release directory to write.")]
Measure = Annotated[
    bool,
    typer.Option(
        "--measure/--no-measure",
        rich_help_panel=PLAYING,
        help="Measure whole marginals where they are affordable, or leave it to the draws.",
    ),
]
Refit = Annotated[
    bool | None,
    typer.Option(
        "--refit/--no-refit",
        rich_help_panel=PLAYING,
        help="Fit a model to the draws at the end. (default: except with --alpha, --beta, --paper)",
    ),
]
Errors = Annotated[
    bool | None,
    typer.Option(
        "--errors/--no-errors",
        rich_help_panel=PLAYING,
        help="Compute standard errors by a rehearsal. (default: except with --paper)",
    ),
]


def _oracles(chosen: str | None) -> str | None:
    """Say what there is, if that was asked."""
    if chosen == "list":
        from dualquery.oracles.registry import described

        echo(described())
        raise typer.Exit
    return chosen


Oracle = Annotated[
    str,
    typer.Option(
        rich_help_panel=PLAYING,
        callback=_oracles,
        is_eager=True,
        help="How records are found, by name; `--oracle list` says what each is for.",
    ),
]
ExperimentOracle = Annotated[
    str | None,
    typer.Option(
        "--oracle",
        callback=_oracles,
        is_eager=True,
        help="Find records with this oracle, and count proofs, time-outs and gaps; or list.",
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=PLAYING, help="Seconds per call of a solver. (default: 20, portfolio 1)"
    ),
]
Certify = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=PLAYING,
        help="Bound every round's gap and check the accuracy theorem for this α.",
    ),
]
Reference = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=PRIVACY,
        help="Public reference size, with add-remove neighbours or --weight (the sum of weights).",
    ),
]
Free = Annotated[
    str,
    typer.Option(
        rich_help_panel=PLAYING,
        help="Value of attributes that no draw names: zero, random, default or measured.",
    ),
]
ReleaseFree = Annotated[
    str | None,
    typer.Option(
        "--free",
        rich_help_panel=PLAYING,
        help="Value of attributes that no draw names: default, zero (default with --paper), random "
        "or measured.",
    ),
]
FreeShare = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=PLAYING,
        help="Share of the budget for the tables of --free measured. (default: 0.05)",
    ),
]
OutOfDomain = Annotated[
    str,
    typer.Option(
        rich_help_panel=READING, help="Cells outside their domain: refuse, clamp or missing."
    ),
]
Engine = Annotated[
    str, typer.Option(rich_help_panel=RUNNING, help="Where counting runs: local or dask.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=RUNNING, help="Address of a Dask scheduler. (default: a local cluster)"
    ),
]
PublicHeader = Annotated[
    bool,
    typer.Option(
        "--public-header",
        rich_help_panel=PRIVACY,
        help="The table's column names are public; a pattern may name them.",
    ),
]
Start = Annotated[
    Path | None,
    typer.Option(rich_help_panel=PUBLIC, help="An earlier release or a public table to lean on."),
]
Known = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=PUBLIC,
        help="File of publicly known shares, lines such as: sex=Female = 0.512",
    ),
]
Note = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=PRIVACY, help="What the ledger says of it. (default: the path of --out)"
    ),
]
LedgerFile = Annotated[
    Path | None, typer.Option(rich_help_panel=PRIVACY, help="Charge this budget ledger.")
]
Seed = Annotated[
    int | None,
    typer.Option(rich_help_panel=PRIVACY, help="Repeatable draws, for experiments: NOT PRIVATE."),
]
Title = Annotated[str | None, typer.Option(rich_help_panel=ABOUT, help="The name of the release.")]
Description = Annotated[
    str | None, typer.Option(rich_help_panel=ABOUT, help="What the table is about.")
]
Publisher = Annotated[str | None, typer.Option(rich_help_panel=ABOUT, help="Who publishes it.")]
Date = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=ABOUT, metavar="YYYY-MM-DD", help="The day of publication, or: today."
    ),
]
Contact = Annotated[
    str | None, typer.Option(rich_help_panel=ABOUT, help="Mail or web address for questions.")
]
Licence = Annotated[
    str | None,
    typer.Option("--licence", "--license", rich_help_panel=ABOUT, help="The terms of use."),
]
Citation = Annotated[
    str | None,
    typer.Option(rich_help_panel=ABOUT, help="How to cite it. (default: made of the others)"),
]
Address = Annotated[
    str | None, typer.Option("--url", rich_help_panel=ABOUT, help="Where it is published.")
]
Registry = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=ABOUT,
        help="Also write the entry for a registry of deployments, as JSON.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", rich_help_panel=RUNNING, help="Continue a run that was killed.")
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite", rich_help_panel=RUNNING, help="Replace an existing release at --out."
    ),
]


def given(**options: object) -> dict[str, Any]:
    """The options that were given; what was left out is left to whoever has a default for it."""
    return {name: value for name, value in options.items() if value is not None}


def about(**said: str | None) -> dict[str, str]:
    """What the options say about a release; today is the day on which it is asked for."""
    from datetime import date

    found = given(**said)
    if found.get("date") == "today":
        found["date"] = date.today().isoformat()
    return found


def table_source(
    table: str,
    long: str | None = None,
    prefix: str = "",
    records: int | None = None,
    *,
    encoding: str | None = None,
    sheet: str | None = None,
) -> object:
    """The table that a command was given: a path, or pairs in long format.

    Args:
        table: the path.
        long: the names of the columns with record and item, with a comma between them; None if
            the table has one row per record.
        prefix: what the schema's attribute names have before the item.
        records: the public number of records, if not only those with items count.
        encoding: of the file's text.
        sheet: of a spreadsheet.
    """
    from dualquery.base.errors import ParameterError
    from dualquery.rows.opening import TableFile

    source = table if encoding is None and sheet is None else TableFile(table, encoding, sheet)
    if long is None:
        if prefix or records is not None:
            raise ParameterError("--item-prefix and --records go with --long RECORD,ITEM")
        return source
    from dualquery.rows.long import LongTable

    columns = [name.strip() for name in long.split(",")]
    if len(columns) != 2 or not all(columns):
        raise ParameterError(f"--long {long!r}; expected the names of two columns, RECORD,ITEM")
    return LongTable(source, columns[0], columns[1], prefix=prefix, declared_rows=records)


def names(listed: str | None) -> list[str] | None:
    """Names of columns with commas between them; None if the option was not given."""
    return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]


def echo(text: str, err: bool = False) -> None:
    """Print a line. Names and values in it may come from strangers: a terminal obeys none."""
    typer.echo(for_terminal(text), err=err)


def shown(text: str) -> str:
    """A text for rich's tables, in which neither the terminal nor rich's markup is obeyed."""
    from rich.markup import escape

    return escape(for_terminal(text))


def warn(line: str) -> None:
    """Print what the curator should know before the first draw, even with --quiet."""
    echo(f"warning: {line}", err=True)
