"""`dualquery sample`: synthetic rows from a release."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli import options


def sample(
    directory: options.ReleaseDir,
    rows: Annotated[int, typer.Option(help="How many rows.")],
    out: Annotated[Path, typer.Option(help="The file to write: .csv, .csv.gz or .parquet.")],
    where: Annotated[
        str | None, typer.Option(help='Only rows that satisfy a query, e.g. "age>=50".')
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Make the sample repeatable; this costs no privacy.")
    ] = None,
    independent: Annotated[
        bool,
        typer.Option(
            "--independent",
            help="Draw every row independently of the others, instead of arranging them.",
        ),
    ] = False,
    describe: Annotated[
        bool,
        typer.Option(
            "--describe",
            help="Also write descriptions for data portals (Frictionless, Croissant) and a "
            "codebook.",
        ),
    ] = False,
    raw: options.Raw = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    as_json: options.Json = False,
) -> None:
    """Write synthetic rows in the schema of the release."""
    from dualquery.base.errors import ReleaseError
    from dualquery.base.files import check_target
    from dualquery.release.frames import write_table
    from dualquery.release.release import load as read_release
    from dualquery.release.unknown import about_sample

    if os.path.lexists(out) and not overwrite:
        raise ReleaseError(f"{str(out)!r} exists; choose another name or pass --overwrite")
    if not os.access(out.parent, os.W_OK):  # before rows are drawn
        raise ReleaseError(f"no folder to write to: {str(out.parent)!r}")
    check_target(out)
    if describe:
        from dualquery.release.metadata import check_descriptions_free, unsaid

        check_descriptions_free(out, overwrite=overwrite)
    release = read_release(directory)
    stamp = release.privacy.stamp
    made = release.sample(rows, where=where, seed=seed, independent=independent)
    write_table(made, out, release.file_notes, raw=raw)
    written = release.write_description(out, overwrite=overwrite) if describe else {}
    if as_json:
        told = {"rows": rows, "file": str(out), "source": release.source, "stamp": stamp}
        told |= {"descriptions": {kind: str(file) for kind, file in written.items()}}
        options.echo(json.dumps({**told, "unknown": list(release.unknown)}))
        return
    options.echo(f"{rows} rows from the {release.source} in {out}")
    for file in written.values():
        options.echo(f"described in {file}")
    if written and (missing := unsaid(release)):
        options.echo(
            f"portals want to know {', '.join(missing)} too: say it with [about] in the schema "
            "file, or with options of release",
            err=True,
        )
    if stamp:
        csv = ".csv" in out.suffixes
        options.echo(f"{stamp} (a csv file cannot carry this stamp)" if csv else stamp, err=True)
    if release.unknown:
        options.echo(about_sample(release.unknown), err=True)
