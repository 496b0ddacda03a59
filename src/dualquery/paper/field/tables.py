"""The tables of the comparison, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from dualquery.paper.experiments.store import FinishedRun, distinct, mean, where
from dualquery.paper.field.beforehand import REFUSED
from dualquery.paper.field.methods import OURS
from dualquery.paper.field.reasons import reason
from dualquery.paper.field.runs import FEM_EPSILONS
from dualquery.paper.field.verdicts import AVERAGE, ERRORS, MAXIMUM, End, Race, ends

FEM_PUBLISHED = {
    "some-3": dict(zip(FEM_EPSILONS, (0.172, 0.133, 0.113, 0.106, 0.078, 0.076), strict=True)),
    "some-5": dict(zip(FEM_EPSILONS, (0.153, 0.133, 0.110, 0.108, 0.080, 0.071), strict=True)),
}
"""Maximum errors that FEM's authors state on Adult, read off their figure."""

Cell = Callable[[Sequence[FinishedRun]], str]

MISSING = "not run yet"
"""What a cell says if its run is not stored."""

_NEEDED = re.compile(r"[\d.^]+ (?:bytes|minutes)\b")
_THOUSANDS = re.compile(r"(?<=\d);(?=\d{3})")
_PREDICTED = re.compile(r"(?<=predicted )\d+")


def short(value: float) -> str:
    """Two digits that count, without the zero before the point."""
    if value != value:
        return ""
    text = f"{value:.1e}" if value < 5e-5 else f"{float(f'{value:.2g}'):f}".rstrip("0")
    return text.removeprefix("0") if text.startswith("0.") else text


def errors(runs: Sequence[FinishedRun]) -> str:
    """Maximum and average error."""
    return f"{short(mean(runs, MAXIMUM))} {short(mean(runs, AVERAGE))}"


def effort(runs: Sequence[FinishedRun]) -> str:
    """Processor seconds and the peak of memory."""
    seconds = min(run.number("processor_seconds") for run in runs)
    peak = max(run.number("peak_bytes") for run in runs) / 2**30
    return f"{seconds:.0f} s {peak:.1f} GB" if seconds >= 10 else f"{seconds:.1f} s {peak:.1f} GB"


def grid(
    runs: Sequence[FinishedRun],
    column: str,
    heads: Sequence[tuple[str, object]],
    order: Mapping[str, str],
    cell: Cell,
) -> str:
    """One row per method and one column per table or ε. No cell is empty: what ended says how.

    Args:
        runs: the stored runs.
        column: the column of a run that tells the columns of the grid apart.
        heads: the heading and the value of each.
        order: the title of each method that has a row, in order.
        cell: the text of some equal runs that ended well.
    """
    lines = [
        f"| method | {' | '.join(head for head, _ in heads)} |",
        f"| --- | {' | '.join('---:' for _ in heads)} |",
    ]
    best = {value: _best(where(runs, **{column: value})) for _, value in heads}
    for method, title in order.items():
        here = where(runs, method=method)
        texts = []
        for _, value in heads:
            found = where(here, **{column: value})
            answered = [run for run in found if not run["end"]]
            text = cell(answered) if answered else brief(found)
            marked = answered and cell is errors and best[value] == method
            texts.append(f"**{text}**" if marked else text)
        pure = [run for run in here if not run["end"] and run.number("kept_delta") == 0.0]
        shown = f"**{title}**" if method == OURS else title + (" (δ = 0)" if pure else "")
        lines.append(f"| {shown} | {' | '.join(texts)} |")
    return "\n".join(lines)


def _best(runs: Sequence[FinishedRun]) -> str:
    """The method with the least average error."""
    answered = [run for run in runs if not run["end"]]
    means = {run["method"]: 0.0 for run in answered}
    for name in means:
        means[name] = mean(where(answered, method=name), AVERAGE)
    return min(means, key=lambda name: means[name], default="")


def brief(runs: Sequence[FinishedRun]) -> str:
    """How some equal runs ended, short enough for a cell.

    A refusal is cut to what the method says it needs. `ends_table` has it in full.

    Args:
        runs: those without answers; none, if they are not stored.
    """
    if not runs:
        return MISSING
    end = _rounded(runs[0]["end"])
    if not end.startswith(REFUSED):
        return end
    needed = _NEEDED.search(end)
    return f"{REFUSED}: needs {needed.group()}" if needed else end.partition(";")[0]


def _rounded(end: str) -> str:
    """A prediction with two digits that count: it is not known better."""
    return _PREDICTED.sub(lambda found: f"{int(float(f'{int(found.group()):.2g}')):,}", end)


def shown(runs: Sequence[FinishedRun], order: Mapping[str, str]) -> dict[str, str]:
    """The methods of which any run is stored: each has a row in every table, also where none is.

    Args:
        runs: the stored runs.
        order: the title of each method, in order.
    """
    stored = {run["method"] for run in runs}
    return {name: title for name, title in order.items() if name in stored}


def widths(runs: Sequence[FinishedRun], dataset: str, order: Mapping[str, str], cell: Cell) -> str:
    """A grid over the widths of a generated table, at ε = 1.

    Args:
        runs: the stored runs.
        dataset: the kind of table.
        order: the title of each method, in order.
        cell: what each cell says.
    """
    here = where(runs, dataset=dataset, epsilon=1.0)
    heads = [(f"{columns:,}", columns) for columns in distinct(here, "columns")]
    return grid(here, "columns", heads, shown(runs, order), cell)


def epsilons(
    runs: Sequence[FinishedRun], dataset: str, columns: int, order: Mapping[str, str]
) -> str:
    """A grid over ε on one table.

    Args:
        runs: the stored runs.
        dataset: the kind of table.
        columns: its width.
        order: the title of each method, in order.
    """
    here = where(runs, dataset=dataset, columns=columns)
    values = sorted({run.number("epsilon") for run in here})
    heads = [(f"ε = {value:g}", value) for value in values]
    return grid(here, "epsilon", heads, shown(runs, order), errors)


def glance(races: Sequence[Race], order: Mapping[str, str]) -> str:
    """One row per place: the errors of the package, and the least of all others.

    Args:
        races: all races.
        order: the title of each method.
    """
    lines = [
        "| table | this package | least maximum error of others | least average error of others |",
        "| --- | ---: | --- | --- |",
    ]
    for place in dict.fromkeys(race.place for race in races):
        here = {race.error: race for race in races if race.place == place}
        most, mean_of = here[MAXIMUM], here[AVERAGE]
        ours = f"{short(most.ours)} {short(mean_of.ours)}"
        theirs = [f"{short(race.theirs)} {_title(race, order)}" for race in (most, mean_of)]
        lines.append(f"| {place.text} | {ours} | {' | '.join(theirs)} |")
    return "\n".join(lines)


def _title(race: Race, order: Mapping[str, str]) -> str:
    return order.get(race.best, race.best) + (" (δ = 0)" if race.pure else "")


def lost(races: Sequence[Race], runs: Sequence[FinishedRun], order: Mapping[str, str]) -> str:
    """Where the package is not ahead, and why.

    Args:
        races: those that it does not win.
        runs: the stored runs, from which the reasons are read.
        order: the title of each method.
    """
    lines = ["| table | error | this package | best other | its error | why |", "| --- " * 6 + "|"]
    for race in races:
        words = f"{ERRORS[race.error]}, even" if race.even else ERRORS[race.error]
        lines.append(
            f"| {race.place.text} | {words} | {short(race.ours)} | {_title(race, order)} | "
            f"{short(race.theirs)} | {reason(race, runs)} |"
        )
    return "\n".join(lines)


def ends_table(runs: Sequence[FinishedRun], order: Mapping[str, str]) -> str:
    """Where each method ends, and why.

    Args:
        runs: the stored runs.
        order: the title of each method, in order.
    """
    lines = ["| method | table | served up to | ended at | reason |", "| --- " * 5 + "|"]
    for end in ends(runs, list(order)):
        served = f"{end.served:,}" if end.served else "none"
        lines.append(
            f"| {order[end.method]} | {end.dataset} | {served} | {_ended_at(end)} | "
            f"{_whole_words(end.reason)} |"
        )
    return "\n".join(lines) if len(lines) > 2 else "No run ended without answers."


def _ended_at(end: End) -> str:
    return f"{end.columns:,}" if end.epsilon == 1.0 else f"{end.columns:,} (ε = {end.epsilon:g})"


def _whole_words(reason: str, most: int = 160) -> str:
    """A reason that was cut to fit into its cell ends at its last whole part.

    The CSV file has no commas in its cells. Those of large numbers are put back.
    """
    reason = _rounded(_THOUSANDS.sub(",", reason))
    return reason if len(reason) <= most else reason[:most].rpartition(";")[0] or reason[:most]


def published(runs: Sequence[FinishedRun], kind: str, order: Mapping[str, str]) -> str:
    """Published settings by ε: FEM's maximum errors beside ours, or the mean L1 of all triples.

    Args:
        runs: the runs in published settings.
        kind: which setting.
        order: the title of each method, in order.
    """
    here = where(runs, kind=kind)
    methods = shown(runs, order)
    theirs = FEM_PUBLISHED.get(kind)
    error = MAXIMUM if theirs else "l1"
    heads = ["ε", *(["FEM, published"] if theirs else []), *methods.values()]
    lines = [f"| {' | '.join(heads)} |", "| ---: " * len(heads) + "|"]
    for epsilon in sorted({run.number("epsilon") for run in here}):
        texts = [f"{epsilon:g}"]
        if theirs:
            texts.append(short(theirs[epsilon]) if epsilon in theirs else "none")
        for name in methods:
            found = where(here, method=name, epsilon=epsilon)
            well = [run for run in found if not run["end"]]
            texts.append(short(mean(well, error)) if well else brief(found))
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines)
