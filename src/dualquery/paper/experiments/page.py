"""The results page, made from the stored CSV files."""

from __future__ import annotations

import json
from pathlib import Path

from dualquery.base.errors import ParameterError
from dualquery.base.files import write_whole
from dualquery.paper.datasets.catalogue import get
from dualquery.paper.experiments import NAMES
from dualquery.paper.experiments.experiment import Claim, Experiment, file_stem, load
from dualquery.paper.experiments.machine import describe
from dualquery.paper.experiments.plots import save_figure
from dualquery.paper.experiments.sizes import size_of
from dualquery.paper.experiments.store import FinishedRun, Store
from dualquery.paper.experiments.summary import claims_table, gains_table, means_table

MACHINE = "machine.json"
SAME_PROMISE = ("accuracy", "attributes")
"""Experiments in which the paper's algorithm and the package's spend the same ε and δ."""
QUICK = " Quick sizes, to see that everything runs: the figures do not compare with the paper's."


def known_machines(out: Path) -> dict[str, dict[str, str]]:
    """The machine of each experiment that is stored."""
    path = out / MACHINE
    if not path.is_file():
        return {}
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        known = None
    if not isinstance(known, dict):
        raise ParameterError(f"{str(path)!r} does not hold machines as JSON; move it away")
    return known


def record_machine(out: Path, name: str) -> None:
    """Keep the machine beside the runs that were made on it."""
    known = known_machines(out) | {name: describe()}
    write_whole(out / MACHINE, json.dumps(known, indent=2, ensure_ascii=False) + "\n")


def write_figures(
    experiment: Experiment, runs: list[FinishedRun], out: Path, quick: bool
) -> list[Path]:
    """The figures of one experiment, as files.

    Args:
        experiment: what was run.
        runs: its finished runs.
        out: the folder of all results.
        quick: whether the sizes were small; such results are kept apart.
    """
    stem = out / file_stem(experiment.name, quick)
    return save_figure(experiment.panels(runs), runs, stem)


def write_summary(experiment: Experiment, runs: list[FinishedRun], out: Path, quick: bool) -> Path:
    """`NAME.md`: the claims and the means of one experiment.

    Args:
        experiment: what was run.
        runs: its finished runs.
        out: the folder of all results.
        quick: whether the sizes were small; such results are kept apart.
    """
    path = out / f"{file_stem(experiment.name, quick)}.md"
    write_whole(path, _section(experiment, runs, quick, level=1))
    return path


def write_page(out: Path, *, quick: bool = False) -> Path:
    """`README.md` in the results folder, from all experiments that are stored there."""
    sections, claims = [], data_claims()
    stored: dict[str, list[FinishedRun]] = {}
    for name in NAMES:
        experiment = load(name)
        runs = Store(out / f"{file_stem(name, quick)}.csv").runs
        if not runs:
            continue
        write_figures(experiment, runs, out, quick)
        sections.append(_section(experiment, runs, quick, level=2))
        claims.extend(experiment.claims(runs))
        stored[name] = runs
    if not sections:
        raise ParameterError(f"no experiment is stored in {str(out)!r}; run one first")
    text = "\n\n".join(
        [
            "# The paper's experiments, run again",
            "Made by `dualquery experiment report` from the CSV files beside this page. Runs are "
            "seeded, so that they can be repeated with the code that made them, which `version` in "
            "the files names. They are NOT PRIVATE, and on public data they need not be. Errors "
            "are means over the runs. Times are those of the fastest run, because other work may "
            "share the machine; they leave out counting, except for independent marginals, which "
            "count for themselves. How to make the runs, and where they depart from the paper: "
            "[reproducing](../reproducing.md).",
            "## What the paper states",
            claims_table(claims),
            "## What the package adds at ε = 1",
            "Max and average error, each the mean of the runs: the paper's algorithm under its own "
            "theorem, the same under the Gaussian accountant, with valid records, with a model "
            "refitted to the draws, and with the model as the player. Then follows by how many "
            "times the error shrank in all. Binary tables have no invalid records. The number of "
            "runs is that of the model.",
            gains_table({name: stored[name] for name in SAME_PROMISE if name in stored}),
            "## The machine",
            _machines(out),
            *sections,
        ]
    )
    path = out / ("quick.md" if quick else "README.md")
    write_whole(path, text.rstrip() + "\n")
    return path


def data_claims() -> list[Claim]:
    """The paper's table of data sets."""
    made = []
    for name, rows, attributes in (("adult", 30_162, 14), ("kdd99", 494_021, 41)):
        schema = get(name).schema()
        published, bits = size_of(name)
        ours = int(schema.bit_counts.sum())
        made.append(
            Claim(
                f"{name}: records, attributes, binary attributes",
                f"{rows:,}, {attributes}, {bits}",
                f"{published:,}, {len(schema)}, {ours}",
                rows == published and bits == ours,
                "" if len(schema) == attributes else "235 bits include the class, income",
            )
        )
    made.append(
        Claim(
            "Netflix: records, binary attributes",
            "480,189, 17,770",
            "{:,}, {:,}".format(*size_of("ratings")),
            None,
            "an invented table of the same size: the prize's was withdrawn by its publisher",
        )
    )
    return made


def _section(experiment: Experiment, runs: list[FinishedRun], quick: bool, level: int) -> str:
    stem = file_stem(experiment.name, quick)
    parts = [
        f"{'#' * level} {experiment.title}{' (quick)' if quick else ''}",
        experiment.about + (QUICK if quick else ""),
        f"![{experiment.title}]({stem}.png)",
    ]
    claims = experiment.claims(runs)
    if level == 1 and claims:
        parts.append(claims_table(claims))
    parts.append(means_table(runs))
    parts.append(f"Runs: [{stem}.csv]({stem}.csv); figure: [{stem}.svg]({stem}.svg).")
    return "\n\n".join(parts) + ("\n" if level == 1 else "")


def _machines(out: Path) -> str:
    known = known_machines(out)
    if not known:
        return "Not recorded."
    shared: dict[str, list[str]] = {}
    for name, machine in known.items():
        shared.setdefault(json.dumps(machine, ensure_ascii=False), []).append(name)
    blocks = []
    for text, names in shared.items():
        lines = [f"{', '.join(names)}:", ""]
        lines.extend(f"- {key}: {value}" for key, value in json.loads(text).items())
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
