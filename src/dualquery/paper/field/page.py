"""The page of the comparison, made from stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dualquery.base.files import write_whole
from dualquery.paper.experiments.experiment import file_stem
from dualquery.paper.experiments.store import FinishedRun, Store, distinct, mean, where
from dualquery.paper.field import tables
from dualquery.paper.field.alone import Limits
from dualquery.paper.field.figures import views, write_figures
from dualquery.paper.field.methods import OURS, titles
from dualquery.paper.field.runs import FIELD, LAYOUT, PEERS_FILE, PUBLISHED
from dualquery.paper.field.settings import MADE
from dualquery.paper.field.verdicts import ERRORS, peers_races, races

ALT = {
    "width": "Error against the number of columns",
    "time": "Processor seconds against the number of columns",
    "epsilon": "Error against ε",
}


def stored_runs(out: Path, quick: bool) -> tuple[list[FinishedRun], list[FinishedRun]]:
    """The runs of the comparison, those of other packages included; and of published settings.

    Args:
        out: the folder of the results.
        quick: whether to read the small ones.
    """

    def of(name: str) -> list[FinishedRun]:
        return Store(out / f"{file_stem(name, quick)}.csv", LAYOUT).runs

    return of(FIELD) + of(PEERS_FILE), of(PUBLISHED)


def write_page(out: Path, *, quick: bool = False) -> Path | None:
    """`field.md` in the results folder with its figures; None if no run is stored there.

    Args:
        out: the folder of the results.
        quick: whether to read the small runs.
    """
    runs, published = stored_runs(out, quick)
    if not runs and not published:
        return None
    stem = file_stem(FIELD, quick)
    write_figures(runs, out, stem)
    path = out / f"{stem}.md"
    write_whole(path, page_text(runs, published, stem))
    return path


def page_text(runs: Sequence[FinishedRun], published: Sequence[FinishedRun], stem: str) -> str:
    """The whole page.

    Args:
        runs: of the comparison.
        published: in published settings.
        stem: how the names of its figures begin.
    """
    parts = ["# The methods of the field, on the same tables", _setting(runs)]
    if runs:
        parts.extend(["## Verdicts", *verdicts(runs), *_figures(runs, stem), *_widths(runs)])
    if published:
        parts.extend(_published(published))
    if runs:
        parts.extend(_behind(runs))
    return "\n\n".join(parts).rstrip() + "\n"


def _setting(runs: Sequence[FinishedRun]) -> str:
    first = runs[0] if runs else None
    size = (
        f"{int(first['queries']):,} random 3-way queries per table (ratings-shaped and biased "
        f"tables have {int(where(runs, dataset='biased')[0]['table_rows']):,} rows), "
        f"δ = {first['delta']}"
        if first and where(runs, dataset="biased")
        else "Random 3-way queries"
    )
    return (
        f"Made by `dualquery experiment report` from the CSV files beside this page. {size}, "
        "neighbours add or remove a record, and the number of records is public. Each run is a "
        f"process of its own on one thread, within {Limits().text}. Runs are seeded: NOT PRIVATE. "
        "Nothing is tuned per table: this package and all others run with their defaults. "
        "Baselines whose proof is written for replaced records keep it at the same ε: it holds for "
        "added and removed ones too if n is a public constant, as it is here. "
        "Methods marked δ = 0 promise more than the others do. "
        "Baselines that start from counts have the time of counting left out. Methods of other "
        "packages give synthetic rows, on which the queries are counted. Seconds may include the "
        "compilation of kernels. An empty cell of a table was not run."
    )


def verdicts(runs: Sequence[FinishedRun]) -> list[str]:
    """Who is ahead, in sentences that follow from the runs; then where the package is not."""
    order = titles()
    all_races = races(runs)
    made = []
    for error, words in ERRORS.items():
        some = [race for race in all_races if race.error == error]
        ahead = [race for race in some if race.ahead]
        if some:
            others = sorted({race.others for race in some})
            number = f"{others[0]} to {others[-1]}" if len(others) > 1 else f"{others[0]}"
            made.append(
                f"- **{words}**: this package is ahead of every other method in {len(ahead)} of "
                f"{len(some)} settings (a table at an ε, with {number} other methods)."
            )
    rows = peers_races(runs)
    if rows:
        ahead = [race for race in rows if race.ahead]
        made.append(
            f"- **synthetic rows**: against the rows of other packages, the package's own rows are "
            f"ahead in {len(ahead)} of {len(rows)} comparisons (two errors per setting)."
        )
    widest = max(int(run["columns"]) for run in where(runs, method=OURS) if not run["end"])
    served = [
        order[name]
        for name in order
        if any(not run["end"] for run in where(runs, method=name, columns=widest))
    ]
    made.append(f"- **{widest:,} columns** are served by: {'; '.join(served)}.")
    behind = [race for race in all_races if not race.ahead]
    text = ["\n".join(made)]
    if behind:
        text.extend(["Where this package is not ahead:", tables.lost(behind, order)])
    return text


def _figures(runs: Sequence[FinishedRun], stem: str) -> list[str]:
    made = []
    for name, found in views(runs).items():
        shown = {id(run): run for view in found for run in view.of(runs)}
        most = max(int(run["run"]) for run in shown.values()) + 1
        each = "one run per point" if most == 1 else f"1 to {most} runs per point"
        made.append(f"![{ALT[name]}]({stem}-{name}.svg)")
        made.append(f"{ALT[name]}: {len(shown):,} runs, {each}.")
    return made


def _widths(runs: Sequence[FinishedRun]) -> list[str]:
    """Error by width, and the public tables."""
    order = titles()
    made = ["## Maximum and average error at ε = 1", "In bold the least average error."]
    public = [run for run in where(runs, epsilon=1.0) if run["dataset"] not in MADE]
    if public:
        names = sorted({run["dataset"] for run in public})
        heads = [
            (f"{name}, {distinct(where(public, dataset=name), 'columns')[0]} columns", name)
            for name in names
        ]
        made.append(tables.grid(public, "dataset", heads, order, tables.errors))
    for dataset in MADE:
        if where(runs, dataset=dataset, epsilon=1.0):
            made.append(f"### {dataset}, by columns")
            made.append(tables.widths(runs, dataset, order, tables.errors))
    made.extend(["## Where methods end", tables.ends_table(runs, order)])
    return made


def _published(runs: Sequence[FinishedRun]) -> list[str]:
    """Published settings, and what differs."""
    order = titles()
    made = [
        "## Published settings, run again",
        "FEM (Vietri and others, 2020) on Adult: 64 random marginals whose cells are at most the "
        "number of rows, all their cells asked, maximum error, δ = 1/n², replaced records. Its "
        "values are read off its figure. What differs: which 64 marginals; the table has 30,162 "
        "rows without missing cells, and the discretisation of the 2014 paper (15 columns, one of "
        "them with 60 values of which 54 never occur). GEM and RAP state theirs for marginals of "
        "the same kind as curves, without numbers that could be set beside these.",
    ]
    for kind, words in (("some-3", "3-way"), ("some-5", "5-way")):
        if where(runs, kind=kind):
            made.extend([f"### 64 {words} marginals: maximum error", _of(runs, kind)])
    everything = [run for run in where(runs, kind="all-3") if not run["end"]]
    if everything:
        lines = ["| ε | method | mean L1 | runs |", "| ---: | --- | ---: | ---: |"]
        for epsilon in sorted({run.number("epsilon") for run in everything}):
            for name, title in order.items():
                found = where(everything, method=name, epsilon=epsilon)
                if found:
                    value = tables.short(mean(found, "l1"))
                    lines.append(f"| {epsilon:g} | {title} | {value} | {len(found)} |")
        made.extend(
            [
                "### All 455 triples: mean L1 distance",
                "AIM's setting: all 3-way marginals, the L1 distance between shares, averaged over "
                "the marginals; δ = 10⁻⁹, added or removed records. AIM's authors show theirs as "
                "curves, on a table of 48,842 rows with another discretisation.",
                "\n".join(lines),
            ]
        )
    return made


def _of(runs: Sequence[FinishedRun], kind: str) -> str:
    return tables.published(runs, kind, titles())


def _behind(runs: Sequence[FinishedRun]) -> list[str]:
    """The long tables, folded away."""
    order = titles()
    made = ["## All figures"]
    for dataset in sorted({run["dataset"] for run in runs}):
        for columns in distinct(where(runs, dataset=dataset), "columns"):
            if len({r["epsilon"] for r in where(runs, dataset=dataset, columns=columns)}) > 1:
                made.append(
                    _folded(
                        f"{dataset}, {columns:,} columns: maximum and average error by ε",
                        tables.epsilons(runs, dataset, columns, order),
                    )
                )
    for dataset in MADE:
        if where(runs, dataset=dataset, epsilon=1.0):
            grid = tables.widths(runs, dataset, order, tables.effort)
            made.append(_folded(f"{dataset}: processor seconds and peak of memory, ε = 1", grid))
    return made


def _folded(title: str, text: str) -> str:
    return f'<details markdown="1"><summary>{title}</summary>\n\n{text}\n\n</details>'
