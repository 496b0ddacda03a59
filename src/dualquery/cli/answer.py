"""`dualquery answer`: answers from a release."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from dualquery.cli import options
from dualquery.cli.figures import decimals

if TYPE_CHECKING:
    from dualquery.base.stored import Json
    from dualquery.release.answering import Asked
    from dualquery.release.asking.figure import Figure


def answer(
    directory: options.ReleaseDir,
    queries: Annotated[
        list[str],
        typer.Argument(metavar="QUERY…", help='Such as "sex=Female & (age>=50 | smoker)".'),
    ],
    given: Annotated[
        str | None,
        typer.Option(help="A condition: shares are those among the records that satisfy it."),
    ] = None,
    unknown: options.Unknown = "refuse",
    as_json: options.Json = False,
) -> int:
    """Answer queries from a release; the private table is not needed.

    If some of several queries are wrong, the others are answered and the exit code is 1.
    """
    from dualquery.base.errors import QueryError
    from dualquery.domain.formulas import Formula, format_formula
    from dualquery.release.asking.cutting import InsideBin, read_question
    from dualquery.release.asking.questions import named
    from dualquery.release.reading import read_asked

    release = read_asked(directory)
    told_given, condition = given, None
    if given is not None:
        about = read_question(given, release.schema)
        condition = about.query if isinstance(about, InsideBin) else about
        if condition is about:  # a limit inside a bin is said as it was asked
            told_given = format_formula(condition, release.schema)
    found: list[tuple[str, Formula, Figure]] = []
    hidden: dict[str, Figure] = {}  # by query, the share among all records
    wrong: list[tuple[str, QueryError]] = []
    for text in queries:
        try:
            read = read_question(text, release.schema)
            if isinstance(read, InsideBin):
                asked: Formula = read.query
                figure, shown = release.answer(text, given=given, unknown=unknown), text
            else:
                asked, shown = read, format_formula(read, release.schema)
                figure = release.answer(asked, given=given, unknown=unknown)
            found.append((shown, asked, figure))
            if given is not None and figure.low is not None and figure.high is not None:
                every = release.answer(text, unknown=unknown)
                if figure.low <= float(every) <= figure.high:
                    hidden[shown] = every
        except QueryError as error:
            wrong.append((text, error))
    if not found:
        raise wrong[0][1]
    blind = set[int]().union(*(named(asked) for _, asked, _ in found), named(condition))
    names = [release.schema.names[a] for a in sorted(blind) if not release.actions.named[a]]
    if as_json:
        told: Json = {
            "source": release.source,
            "stamp": release.stamp,
            "unknown": names,
            "answers": [
                _plain(text, figure) | ({} if given is None else {"below_noise": text in hidden})
                for text, _, figure in found
            ],
        }
        if told_given is not None:
            told["given"] = told_given
        if wrong:
            told["wrong"] = [
                {"query": text, "error": error.on_the_command_line} for text, error in wrong
            ]
        options.echo(json.dumps(told))
    else:
        for text, _, figure in found:
            options.echo(f"{_written(figure)}  {text}")
        _notes(release, [figure for _, _, figure in found], names)
        for text, every in hidden.items():
            options.echo(
                f"relation below the noise: {text} is {float(every):.3g} of all records, which the "
                "interval holds, too",
                err=True,
            )
    for text, refused in wrong:
        options.echo(f"error: query {text!r}: {refused.on_the_command_line}", err=True)
    return 1 if wrong else 0


def _written(figure: Figure) -> str:
    """A figure and half of its 95 % interval; both ends where that stops at 0 or at 1."""
    share, low, high = float(figure), figure.low, figure.high
    if low is None or high is None:
        return f"{share:.6f}"
    places = decimals(share, low, high)
    if low <= 0.0 or high >= 1.0:
        return f"{share:.{places}f} [{low:.{places}f}, {high:.{places}f}]"
    return f"{share:.{places}f} ± {(high - low) / 2.0:.{places}f}"


def _plain(text: str, figure: Figure) -> Json:
    return {
        "query": text,
        "answer": float(figure),
        "standard_error": figure.standard_error,
        "low": figure.low,
        "high": figure.high,
    }


def _notes(release: Asked, figures: list[Figure], blind: list[str]) -> None:
    """What a reader must know about the answers, on stderr."""
    from dualquery.release.unknown import listed

    note = ""
    if release.errors is not None:
        note = "; ± is half of the 95 % interval"
        if any(figure.standard_error is None for figure in figures):
            note += ", missing where no drawn query names an attribute"
    options.echo(f"from the {release.source}{note}", err=True)
    if blind:
        options.echo(
            f"unknown: no query of the release names {listed(blind)}; answers about that are what "
            "the declared default gives",
            err=True,
        )
    if release.stamp:
        options.echo(release.stamp, err=True)
