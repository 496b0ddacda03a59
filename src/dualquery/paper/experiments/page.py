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
from dualquery.paper.experiments.solving import solvers_table, stored_with_solvers
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


def write_figures(experiment: Experiment, runs: list[FinishedRun], out: Path, stem: str) -> Path:
    """The figures of one experiment, as a file.

    Args:
        experiment: what was run.
        runs: its finished runs.
        out: the folder of all results.
        stem: what its files are called.
    """
    return save_figure(experiment.panels(runs), runs, out / stem)


def write_summary(
    experiment: Experiment, runs: list[FinishedRun], out: Path, quick: bool, stem: str
) -> Path:
    """`STEM.md`: the claims and the means of one experiment.

    Args:
        experiment: what was run.
        runs: its finished runs.
        out: the folder of all results.
        quick: whether the sizes were small.
        stem: what its files are called; quick runs and those with a solver are kept apart.
    """
    path = out / f"{stem}.md"
    write_whole(path, _section(experiment, runs, quick, stem, level=1))
    return path


def is_stored(out: Path, *, quick: bool = False) -> bool:
    """Whether a run of the paper's experiments is stored in a folder."""
    return any((out / f"{file_stem(name, quick)}.csv").exists() for name in NAMES)


def write_page(out: Path, *, quick: bool = False) -> list[Path]:
    """The pages of the results folder, from all experiments that are stored there.

    `README.md` has the verdicts and the figures, `tables.md` the means of all runs.
    """
    sections, claims, figures = [], data_claims(), []
    stored: dict[str, list[FinishedRun]] = {}
    for name in NAMES:
        experiment = load(name)
        runs = Store(out / f"{file_stem(name, quick)}.csv").runs
        if not runs:
            continue
        stem = file_stem(name, quick)
        write_figures(experiment, runs, out, stem)
        sections.append(_section(experiment, runs, quick, stem, level=2))
        figures.append(_figure(experiment, runs, quick))
        claims.extend(experiment.verdicts(runs, quick))
        stored[name] = runs
    if not sections:
        raise ParameterError(f"no experiment is stored in {str(out)!r}; run one first")
    tables = "quick-tables.md" if quick else "tables.md"
    text = "\n\n".join(
        [
            "# The paper's experiments, run again",
            _summary(claims),
            "Made by `dualquery experiment report` from the CSV files beside this page. [The means "
            f"of all runs]({tables}) stand on a page of their own, and so does [the comparison "
            "with today's methods](field.md). Runs are seeded, so that they can be repeated with "
            "the code that made them, which `version` in the files names. They are NOT PRIVATE, "
            "and on public data they need not be. Errors are means over the runs. Times are those "
            "of the fastest run, because other work may share the machine; they leave out "
            "counting, except for independent marginals and for this package, which count for "
            "themselves. How to make the runs, and where they depart from the paper: "
            "[reproducing](../reproducing.md).",
            "## What the package adds at ε = 1",
            "Max and average error, each the mean of the runs: the paper's algorithm under its own "
            "theorem, the same under the Gaussian accountant, with valid records, with a model "
            "refitted to the draws, with the model as the player, and the package as it is today, "
            "which measures whole tables. Then follows by how many times the error shrank in all. "
            "Binary tables have no invalid records. The number of runs is that of the last step.",
            gains_table({name: stored[name] for name in SAME_PROMISE if name in stored}),
            "## What the paper states",
            "Statements that differ come first.",
            claims_table(sorted(claims, key=lambda claim: claim.agrees is not False)),
            *_solvers(out, quick),
            "## Figures",
            *figures,
        ]
    )
    path = out / ("quick.md" if quick else "README.md")
    write_whole(path, text.rstrip() + "\n")
    long = [
        "# The paper's experiments: all means",
        f"The verdicts stand [on the first page]({path.name}).",
        *sections,
        "## The machine",
        _machines(out),
    ]
    write_whole(out / tables, "\n\n".join(long).rstrip() + "\n")
    return [path, out / tables]


def _solvers(out: Path, quick: bool) -> list[str]:
    """What exact solvers proved in the runs that were made with them."""
    runs = [run for name in NAMES for run in stored_with_solvers(out, file_stem(name, quick))]
    if not runs:
        return []
    ended, rounds = (sum(run.number(name) for run in runs) for name in ("timeouts", "rounds"))
    return [
        "## With a solver",
        'The paper\'s timeout is 20 seconds per call, and it was "rarely reached". Here the rounds '
        f"of {len(runs)} runs were given to a solver (`--oracle`): {ended:,.0f} of {rounds:,.0f} "
        "reached the limit. A gap is the share of the draws by which the record may miss the best.",
        solvers_table(runs),
    ]


def _summary(claims: list[Claim]) -> str:
    """The verdicts, counted."""
    found = [claim.verdict for claim in claims]
    return (
        f"Of {len(claims)} statements of the paper that were looked at, {found.count('agrees')} "
        f"agree with what was measured here, {found.count('differs')} differ, and "
        f"{found.count('not comparable')} cannot be compared. Each is listed below with its reason."
    )


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
                measured=False,
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


def _section(
    experiment: Experiment, runs: list[FinishedRun], quick: bool, stem: str, level: int
) -> str:
    parts = [
        f"{'#' * level} {experiment.title}{' (quick)' if quick else ''}",
        experiment.about + (QUICK if quick else ""),
    ]
    claims = experiment.verdicts(runs, quick)
    if level == 1:
        parts.append(f"![{experiment.title}]({stem}.svg)")
    if level == 1 and claims:
        parts.append(claims_table(claims))
    if "oracle" in runs[0].cells:
        parts.append(solvers_table(runs))
    parts.append(means_table(runs))
    parts.append(f"Runs: [{stem}.csv]({stem}.csv); figure: [{stem}.svg]({stem}.svg).")
    return "\n\n".join(parts) + ("\n" if level == 1 else "")


def _figure(experiment: Experiment, runs: list[FinishedRun], quick: bool) -> str:
    stem = file_stem(experiment.name, quick)
    return (
        f"### {experiment.title}\n\n{experiment.about} {len(runs):,} runs.\n\n"
        f"![{experiment.title}]({stem}.svg)"
    )


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
