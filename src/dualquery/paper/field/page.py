"""The page of the comparison, made from stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dualquery.base.files import write_whole
from dualquery.paper.experiments.experiment import file_stem
from dualquery.paper.experiments.store import FinishedRun, Store, distinct, where
from dualquery.paper.field import tables
from dualquery.paper.field.alone import Limits
from dualquery.paper.field.beforehand import CLEARLY
from dualquery.paper.field.figures import views, write_figures
from dualquery.paper.field.methods import titles
from dualquery.paper.field.runs import FIELD, LAYOUT, PEERS_FILE, PUBLISHED
from dualquery.paper.field.settings import MADE
from dualquery.paper.field.verdicts import ERRORS, EVEN, peers_races, races

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
    parts = ["# The methods of the field, on the same tables", INTRODUCTION]
    if runs:
        parts.extend(["## Verdicts", *verdicts(runs), *_figures(runs, stem)])
        parts.extend(["## Where methods end", tables.ends_table(runs, titles())])
    if published:
        parts.extend(_published(published))
    if runs:
        parts.extend(["## All figures", *_widths(runs), *_behind(runs)])
        parts.extend(["## How it was run", _setting(runs)])
    return "\n\n".join(parts).rstrip() + "\n"


INTRODUCTION = (
    "Every method gets the same table, the same random 3-way queries and the same promise: ε, δ, "
    "and neighbours that add or remove a record. Each cell is one run with the method's own "
    "defaults, or the mean of several; nothing is tuned per table. The verdicts come first, the "
    "long tables are folded away behind them, and the last section says how the runs were made."
)


def _repeated(runs: Sequence[FinishedRun]) -> list[str]:
    """Which cells are means of several runs, if any are."""
    again = [run for run in runs if int(run["run"]) > 0 and not run["end"]]
    if not again:
        return []
    order = titles()
    named = sorted(
        {f"{order.get(run['method'], run['method'])} on {run['dataset']}" for run in again}
    )
    most = max(int(run["run"]) for run in again) + 1
    return [f"Means of up to {most} runs: {'; '.join(named)}. All other cells are one run."]


def _setting(runs: Sequence[FinishedRun]) -> str:
    """What the numbers mean, as a list."""
    first = runs[0]
    made = where(runs, dataset="biased")
    rows = f"{int(made[0]['table_rows']):,} rows" if made else "their own number of rows"
    lines = [
        "Made by `dualquery experiment report` from the CSV files beside this page. `dualquery "
        "experiment field` and `python -m tools.peers field` make the runs. Runs are seeded: NOT "
        "PRIVATE.",
        f"{int(first['queries']):,} random 3-way queries per table. Biased and ratings-shaped "
        f"tables have {rows}. δ = {first['delta']}. The number of records is public.",
        *_repeated(runs),
        f"Each run is a process of its own on one thread, within {Limits().text}. A method that "
        "died or refused is not asked for a wider table of the same kind.",
        "Where two runs of a method at ε = 1 on narrower tables of the same kind are stored, the "
        "processor seconds of the two widest are continued as a power of the number of columns. If "
        f"that is more than {CLEARLY:g} times the limit, the cell has the prediction.",
        "Baselines whose proof is written for replaced records keep it at the same ε. It holds "
        "for added and removed ones too, because n is a public constant here and no count moves "
        "by more than one.",
        "The constants of FEM, sepFEM, DQRS and boosting were fixed on Adult, those of MWEM on the "
        "model on Adult and on 32 biased columns. All other tables show what they are worth.",
        "Multiplicative weights online answer a stream: each query before the next one is known.",
        "Methods marked δ = 0 promise more than the others do.",
        "Methods of other packages give synthetic rows, on which the queries are counted. They run "
        "with their own defaults: AIM is asked for pairs.",
        "Time is processor time. For baselines that start from counts it leaves counting out, and "
        "it may include the compilation of kernels.",
        f'A cell that says "{tables.MISSING}" has no stored run; these commands make it.',
    ]
    return "\n".join(f"- {line}" for line in lines)


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
            even = sum(race.even for race in some)
            made.append(
                f"- **{words}**: this package is ahead of every other method in {len(ahead)} of "
                f"{len(some)} settings (a table at an ε, with {number} other methods), even with "
                f"the best of them in {even}, behind in {len(some) - len(ahead) - even}."
            )
    rows = peers_races(runs)
    if rows:
        ahead = [race for race in rows if race.ahead]
        made.append(
            f"- **synthetic rows**: against the rows of other packages, the package's own rows are "
            f"ahead in {len(ahead)} of {len(rows)} comparisons (two errors per setting)."
        )
    widest = max((int(run["columns"]) for run in runs if not run["end"]), default=0)
    served = [
        order[name]
        for name in order
        if any(not run["end"] for run in where(runs, method=name, columns=widest))
    ]
    made.append(f"- **{widest:,} columns** were run, with answers, by: {'; '.join(served)}.")
    text = ["\n".join(made)]
    if all_races:
        text.append(
            "Maximum and average error of this package, and the least of all others. Errors "
            f"within {EVEN - 1.0:.0%} of each other count as even."
        )
        text.append(tables.glance(all_races, order))
    if any(not race.ahead for race in all_races):
        lost = [race for race in all_races if not race.ahead]
        text.extend(["Where this package is not ahead, and why:", tables.lost(lost, runs, order)])
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
    made = ["Maximum and average error at ε = 1; in bold the least average error."]
    public = [run for run in where(runs, epsilon=1.0) if run["dataset"] not in MADE]
    if public:
        names = sorted({run["dataset"] for run in public})
        heads = [
            (f"{name}, {distinct(where(public, dataset=name), 'columns')[0]} columns", name)
            for name in names
        ]
        grid = tables.grid(public, "dataset", heads, tables.shown(runs, order), tables.errors)
        made.append(_folded("public tables: maximum and average error, ε = 1", grid))
    for dataset in MADE:
        if where(runs, dataset=dataset, epsilon=1.0):
            grid = tables.widths(runs, dataset, order, tables.errors)
            made.append(_folded(f"{dataset}, by columns: maximum and average error, ε = 1", grid))
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
        "them with 60 values of which 54 never occur). FEM as run here has one set of constants "
        "for all tables and ε; its authors chose theirs. GEM and RAP state theirs for marginals "
        "of the same kind as curves, without numbers that could be set beside these.",
    ]
    for kind, words in (("some-3", "3-way"), ("some-5", "5-way")):
        if where(runs, kind=kind):
            title = f"### 64 {words} marginals: maximum error"
            made.extend([title, tables.published(runs, kind, order)])
    if where(runs, kind="all-3"):
        made.extend(
            [
                "### All 455 triples: mean L1 distance",
                "AIM's setting: all 3-way marginals, the L1 distance between shares, averaged over "
                "the marginals; δ = 10⁻⁹, added or removed records. AIM's authors show theirs as "
                "curves, on a table of 48,842 rows with another discretisation.",
                tables.published(runs, "all-3", order),
            ]
        )
    return made


def _behind(runs: Sequence[FinishedRun]) -> list[str]:
    """The long tables, folded away."""
    order = titles()
    made = []
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
