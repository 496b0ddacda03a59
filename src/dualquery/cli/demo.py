"""`dualquery demo`: the whole job on an embedded example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli import options

QUERIES = 20_000
QUESTIONS = (
    "smoker=1 & age>=65",
    "sex=female & education=university",
    "diabetes=1 & hypertension=1 & obesity=1",
)


def demo(
    out: Annotated[Path, typer.Option(help="The release directory to write.")] = Path(
        "demo-release"
    ),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier demo.")
    ] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Release an invented health survey, ask it a few questions, and measure the error."""
    from rich.console import Console

    from dualquery.cli.evaluate import error_table
    from dualquery.cli.progress import Reporter
    from dualquery.cli.release import describe
    from dualquery.domain.schema import Schema
    from dualquery.estimator import DualQuery
    from dualquery.evaluation.figures import evaluate
    from dualquery.paper.demo.survey import SCHEMA_FILE, make_survey
    from dualquery.release.directory import check_free
    from dualquery.release.frames import write_table

    check_free(out, overwrite=overwrite)
    schema = Schema.load(SCHEMA_FILE)
    survey = make_survey()
    inputs = out.with_name(f"{out.name}-input")
    inputs.mkdir(parents=True, exist_ok=True)
    write_table(survey, inputs / "survey.csv")
    schema.save(inputs / "schema.toml")
    if not as_json:
        people = f"{survey.num_rows:,} people, {len(schema)} columns"
        options.echo(f"an invented survey: {people} ({inputs})")
    job = DualQuery(epsilon=1.0, delta=1e-6, queries=QUERIES)
    with Reporter(quiet) as progress:
        made = job.release(survey, out, schema=schema, overwrite=overwrite, progress=progress)
        progress("evaluating", 0, 0)
        result = evaluate(made, survey)
    if as_json:
        told = {"release": str(out), **made.summary(), "evaluation": result.to_dict()}
        options.echo(json.dumps(told))
        return
    options.echo(describe(made, out))
    options.echo("")
    for question in QUESTIONS:
        options.echo(f"{made.answer(question):.4f}  {question}")
    options.echo("")
    Console().print(error_table(result))
    options.echo(f'next: dualquery answer {out} "{QUESTIONS[0]}"')
    options.echo(f"      dualquery sample {out} --rows 1000 --out rows.csv")
