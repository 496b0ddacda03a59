"""`dualquery audit`: would a release of this table keep its promise?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dualquery.cli import options


def audit(
    table: options.TablePath,
    schema: options.SchemaFile,
    releases: Annotated[
        int | None,
        typer.Option(
            help="Make so many small releases, and bound mu from below by them. (default: none)"
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Privacy budget ε that is audited.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Privacy budget δ that is audited.")] = 1e-2,
    accountant: options.Accountant = "gaussian",
    neighbours: options.Neighbours = "replace-one",
    unit: options.Unit = None,
    most_records: options.MostRecords = None,
    out_of_domain: options.OutOfDomain = "refuse",
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Look for what would break the promise of a release. NOT PRIVATE: for the curator's eyes.

    The exit code is 0 if all of it holds, and 1 if something fails. Nothing is published or
    charged.
    """
    from dualquery.auditing.run import audit as audited
    from dualquery.cli.progress import Reporter

    with Reporter(quiet or as_json) as progress:
        found = audited(
            options.table_source(table, encoding=encoding, sheet=sheet), schema,
            epsilon=epsilon, delta=delta, accountant=accountant, neighbours=neighbours,
            unit=unit, most_records=most_records, out_of_domain=out_of_domain,
            releases=releases, progress=progress,
        )  # fmt: skip
    options.echo(json.dumps(found.to_dict()) if as_json else found.text())
    if not found.ok:
        raise typer.Exit(1)
