"""The runs of the comparison: which there are, and how those that are missing are made.

Each run is a process of its own. Its row is on disk before the next run begins, so a comparison can
be stopped and gone on with. `beforehand` says which runs need not be tried.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dualquery.base.checks import one_of
from dualquery.base.errors import ParameterError, TableError
from dualquery.paper.datasets.catalogue import DATA_SETS, get
from dualquery.paper.experiments.experiment import Options, file_stem, require_folder
from dualquery.paper.experiments.series import Progress
from dualquery.paper.experiments.sizes import MARGINALS
from dualquery.paper.experiments.state import state_of_code
from dualquery.paper.experiments.store import FinishedRun, Layout, Store, as_text
from dualquery.paper.field import methods
from dualquery.paper.field.alone import Limits, run_alone
from dualquery.paper.field.beforehand import untried
from dualquery.paper.field.methods import Promise
from dualquery.paper.field.settings import MADE, ROWS, Setting
from dualquery.privacy.neighbours import Neighbours

FIELD, PUBLISHED = "field", "published"
COMPARISONS = (FIELD, PUBLISHED)
PEERS_FILE = "peers"
"""The file of the runs of other packages, which `python -m tools.peers field` writes."""

LAYOUT = Layout(
    key=(
        "dataset",
        "table_rows",
        "columns",
        "kind",
        "queries",
        "method",
        "epsilon",
        "delta",
        "neighbours",
        "run",
    ),
    measured=(
        "kept_delta",
        "kept_neighbours",
        "max_error",
        "average_error",
        "l1",
        "seconds",
        "processor_seconds",
        "peak_bytes",
        "counting_seconds",
        "end",
        "version",
    ),
    texts=("dataset", "kind", "method", "neighbours", "kept_neighbours", "end", "version"),
)

WIDTHS = (15, 32, 100, 256, 1_000, 17_770, 512_000)
QUERIES, TABLE_ROWS, DELTA = 100_000, 100_000, 1e-6
QUICK_QUERIES, QUICK_ROWS = 500, 2_000
EPSILONS = (0.1, 0.3, 3.0, 10.0)
"""Beside ε = 1, at which every table is asked."""

SWEPT = (("adult", 15), ("biased", 100), ("ratings", 1_000))
"""The tables on which ε is varied."""

FEM_EPSILONS = (0.1, 0.15, 0.2, 0.25, 0.5, 1.0)
TRIPLES_EPSILONS = (0.1, 1.0, 10.0)
"""At which published settings are repeated: FEM's own, and some of AIM's curves."""


@dataclass(frozen=True)
class Run:
    """One run of one method.

    Attributes:
        setting: the table and the workload.
        method: its name.
        promise: that is asked for.
        number: which of several equal runs it is; also its seed.
    """

    setting: Setting
    method: str
    promise: Promise
    number: int

    @property
    def key(self) -> dict[str, object]:
        """The cells that tell this run from all others."""
        return {
            **self.setting.cells(),
            "method": self.method,
            "epsilon": self.promise.epsilon,
            "delta": self.promise.delta,
            "neighbours": str(self.promise.neighbours),
            "run": self.number,
        }

    @property
    def title(self) -> str:
        size = f"{self.setting.dataset} {self.setting.columns:,}"
        return f"{size} ε={self.promise.epsilon:g} {self.method}"


def field_runs(options: Options, chosen: Sequence[str]) -> Iterator[Run]:
    """The comparison: every width at ε = 1, then further ε on a few tables; run by run.

    Args:
        options: what the user changed about it.
        chosen: the methods.
    """
    rows = QUICK_ROWS if options.quick else TABLE_ROWS
    queries = options.queries_or(QUERIES, QUICK_QUERIES)
    widths = (15,) if options.quick else WIDTHS
    tables = [Setting(name, rows, width, MARGINALS, queries) for name in MADE for width in widths]
    if not options.quick:
        tables[:0] = [Setting.named(name, MARGINALS, queries) for name in ROWS]
    tables = [one for one in tables if options.dataset in (None, one.dataset)]
    wanted = options.epsilon or (1.0, *(() if options.quick else EPSILONS))
    for number in range(options.runs or 1):
        for epsilon in wanted:
            swept = [one for one in tables if epsilon == 1.0 or (one.dataset, one.columns) in SWEPT]
            yield from _runs(swept, chosen, Promise(epsilon, DELTA), number)


def published_runs(options: Options, chosen: Sequence[str]) -> Iterator[Run]:
    """Settings of published comparisons on Adult: FEM's 64 marginals, and all triples.

    Args:
        options: what the user changed about it.
        chosen: the methods.
    """
    epsilons = options.epsilon or ((1.0,) if options.quick else FEM_EPSILONS)
    for number in range(options.runs or 1):
        for kind in ("some-3",) if options.quick else ("some-3", "some-5"):
            setting = Setting.named("adult", kind)
            delta = 1.0 / setting.table_rows**2
            for epsilon in epsilons:
                promise = Promise(epsilon, delta, Neighbours.REPLACE_ONE)
                yield from _runs([setting], chosen, promise, number)
        if not options.quick:
            everything = Setting.named("adult", "all-3")
            for epsilon in options.epsilon or TRIPLES_EPSILONS:
                yield from _runs([everything], chosen, Promise(epsilon, 1e-9), number)


def _runs(
    settings: Iterable[Setting], chosen: Sequence[str], promise: Promise, number: int
) -> Iterator[Run]:
    for setting in settings:
        for method in chosen:
            yield Run(setting, method, promise, number)


PUBLISHED_METHODS = (methods.OURS, methods.OUR_ROWS, "fem", "matrix mechanism", "mwem on the model")
"""Methods that are run in published settings; the others answer counts of single queries."""


def runs_of(name: str, options: Options) -> list[Run]:
    """The runs that a comparison consists of.

    Args:
        name: `field` or `published`.
        options: what the user changed about it.
    """
    known = methods.names() if name == FIELD else PUBLISHED_METHODS
    if options.dataset:
        allowed = (*ROWS, *MADE) if name == FIELD else ("adult",)
        one_of(f"dataset of experiment {name!r}", options.dataset, allowed)
    if options.oracle:
        raise ParameterError(f"experiment {name!r} compares methods as they are: leave out oracle")
    for one in options.series or ():
        if one not in known:
            raise ParameterError(
                f"experiment {name!r} has no series {one!r}; expected one of {', '.join(known)}"
            )
    chosen = options.series or known
    listed = field_runs if name == FIELD else published_runs
    found = list(listed(options, chosen))
    if not found:
        raise ParameterError(f"experiment {name!r} has nothing to do with these options")
    return found


Performer = Callable[[Run, Path], dict[str, object]]
"""Makes a run from the file of its counts; its measured cells."""

Beforehand = Callable[[Mapping[str, object], Sequence[FinishedRun]], str]
"""Why a run need not be tried, from its key and all runs so far; empty if it may run."""


def perform(
    name: str,
    options: Options,
    out: Path,
    progress: Progress,
    limits: Limits | None = None,
    notice: Callable[[str], None] = lambda line: None,
) -> list[FinishedRun]:
    """Make all runs that are not in the file yet, and return all of them.

    Args:
        name: `field` or `published`.
        options: what the user changed about it.
        out: the folder of the results.
        progress: told the stage, how many runs are done, and how many there are.
        limits: of each run; None for the usual ones.
        notice: told in a line which tables are left out.
    """
    limits = limits or Limits()
    planned = runs_of(name, options)
    absent = _absent({run.setting.dataset for run in planned}, options, notice)
    planned = [run for run in planned if run.setting.dataset not in absent]
    if not planned:
        raise ParameterError(f"experiment {name!r} has nothing to do: its tables are not here")

    def performer(run: Run, counts: Path) -> dict[str, object]:
        request = {**_request(run.setting, counts, options), "method": run.method}
        request |= {name: run.key[name] for name in ("epsilon", "delta", "neighbours")}
        ended = run_alone(PROGRAM, {**request, "seed": run.number}, limits)
        return {**ended.told, "end": ended.end}

    require_folder(out)
    store = Store(out / f"{file_stem(name, options.quick)}.csv", LAYOUT)
    with tempfile.TemporaryDirectory(prefix="dualquery-field-") as folder:
        make(planned, store, performer, options, Path(folder), progress)
    return store.runs


PROGRAM = (sys.executable, "-m", "dualquery.paper.field.one_run")


def make(
    planned: Sequence[Run],
    store: Store,
    performer: Performer,
    options: Options,
    folder: Path,
    progress: Progress,
    beforehand: Beforehand = untried,
) -> None:
    """Make the planned runs that a store does not have.

    Args:
        planned: the runs.
        store: where they are kept.
        performer: makes one.
        options: where public tables are.
        folder: for files of counts.
        progress: told the stage, how many runs are done, and how many there are.
        beforehand: says which of them need not be tried.
    """
    version = state_of_code()  # before the first run: sources may be edited while it is made
    with store.writing():
        done = sum(run.key in store for run in planned)
        for run in planned:
            if run.key in store:
                continue
            progress(f"run {done + 1}/{len(planned)}: {run.title}", done, len(planned))
            cells: dict[str, object]
            if past := beforehand(run.key, store.runs):
                cells = {"end": past}
            else:
                cells = performer(run, counted(run.setting, options, folder))
            store.append({**run.key, **cells, "version": version})
            done += 1
    progress("all runs are there", done, len(planned))


def counted(setting: Setting, options: Options, folder: Path) -> Path:
    """The file of the counts of a setting; made in a process of its own, which frees its memory.

    Args:
        setting: the table and the workload.
        options: where public tables are.
        folder: for the file. Only the latest is kept, because they are large.
    """
    path = folder / ("-".join(as_text(cell) for cell in setting.cells().values()) + ".counts")
    if not path.is_file():
        for old in folder.glob("*.counts"):
            old.unlink()
        ended = run_alone(PROGRAM, _request(setting, path, options), Limits(3600, 16 << 30))
        if ended.end:
            raise TableError(f"{setting.dataset} could not be counted: {ended.end}")
    return path


def _request(setting: Setting, counts: Path, options: Options) -> dict[str, object]:
    data = str(options.data) if options.data and setting.dataset in DATA_SETS else ""
    return {"setting": asdict(setting), "counts": str(counts), "data": data}


def _absent(datasets: set[str], options: Options, notice: Callable[[str], None]) -> set[str]:
    """Public tables that are not here; each is named in a line."""
    gone = set()
    for name in sorted(datasets & set(DATA_SETS)):
        data = options.data if options.data and options.data.is_dir() else None
        if options.data and not options.data.is_dir():
            continue
        try:
            get(name).locate(data, download=options.download)
        except TableError as error:
            gone.add(name)
            notice(f"left out: {error}")
    return gone
