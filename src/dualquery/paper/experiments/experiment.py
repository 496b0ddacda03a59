"""What an experiment is, and how it is run: task by task, and each finished run is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dualquery.base.checks import one_of, positive, whole
from dualquery.base.errors import ParameterError, TableError
from dualquery.oracles.oracle import Oracle
from dualquery.oracles.registry import oracle as make_oracle
from dualquery.paper.experiments.bench import Bench, NamedTable, named_table
from dualquery.paper.experiments.series import (
    DATA_FREE,
    LABELS,
    RECORDS,
    Game,
    Progress,
    Spend,
    run,
)
from dualquery.paper.experiments.sizes import GENERATED, BenchSize
from dualquery.paper.experiments.solving import SOLVED, limit_of, require_records
from dualquery.paper.experiments.state import state_of_code
from dualquery.paper.experiments.store import PAPER, FinishedRun, Store

DELTA = 1e-3
PACKAGE, PACKAGE_RUNS = "package", 1
"""The series of the package as it is today, and its runs per table. It is run if asked for."""


@dataclass(frozen=True)
class Options:
    """What a user may change about an experiment; None keeps the experiment's own choice.

    Attributes:
        quick: whether to run small sizes, which only show that everything works.
        runs: runs per setting.
        queries: queries of the workload.
        epsilon: the budgets to run at.
        dataset: the one data set to use.
        data: its file, or a folder of such files.
        download: whether to fetch a file that is not there.
        series: the series to run.
        oracle: the oracle of the series that play records; only they are run then.
        time_limit: the seconds that each of its calls may take.
    """

    quick: bool = False
    runs: int | None = None
    queries: int | None = None
    epsilon: tuple[float, ...] | None = None
    dataset: str | None = None
    data: Path | None = None
    download: bool = False
    series: tuple[str, ...] | None = None
    oracle: str | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        self.solver()
        for name, value in (("runs", self.runs), ("queries", self.queries)):
            if value is not None:
                whole(name, value)
        for epsilon in self.epsilon or ():
            positive("epsilon", epsilon)

    def solver(self) -> Oracle | None:
        """The oracle that was chosen."""
        limit = {} if self.time_limit is None else {"time_limit": self.time_limit}
        if self.oracle is None:
            if limit:
                raise ParameterError("time_limit is that of an oracle: say which with oracle")
            return None
        return make_oracle(self.oracle, **limit)

    def table(self, name: str) -> NamedTable:
        """A named table, from where the user said."""
        return named_table(name, self.data, download=self.download, quick=self.quick)

    def bench(self, name: str, queries: int) -> Bench:
        """So many random marginals on a named table, counted."""
        return Bench.of(self.table(name), queries)

    def runs_or(self, full: int) -> int:
        return self.runs or (1 if self.quick else full)

    def queries_or(self, full: int, quick: int) -> int:
        return self.queries or (quick if self.quick else full)

    def epsilons_or(self, full: tuple[float, ...], quick: tuple[float, ...]) -> tuple[float, ...]:
        return self.epsilon or (quick if self.quick else full)

    def datasets_or(self, full: tuple[str, ...], quick: tuple[str, ...]) -> tuple[str, ...]:
        names = (self.dataset,) if self.dataset else (quick if self.quick else full)
        if self.data is not None and len(names) > 1 and not self.data.is_dir():
            raise ParameterError(
                f"data={str(self.data)!r} is one file and there are {len(names)} data sets; "
                "say which with dataset, or give a folder"
            )
        return names


@dataclass(frozen=True)
class Task:
    """One run of one series.

    Attributes:
        size: the table and the workload, as announced.
        series: how the workload is answered.
        spend: the privacy that the run may use.
        game: the parameters of the paper's game.
        number: which of several equal runs it is; also its seed.
        bench: makes the table, the workload and the true answers when the run needs them.
    """

    size: BenchSize
    series: str
    spend: Spend
    game: Game
    number: int
    bench: Callable[[], Bench]

    @property
    def key(self) -> dict[str, object]:
        """The cells that tell this run from all others."""
        return {
            **self.size.cells(),
            "series": self.series,
            "epsilon": self.spend.epsilon,
            "delta": self.spend.delta,
            "accountant": self.spend.accountant,
            "run": self.number,
            **self._solver,
        }

    @property
    def _solver(self) -> dict[str, object]:
        """What tells runs with one oracle from runs with another; nothing of the usual one."""
        oracle = self.game.oracle
        return {} if oracle is None else {"oracle": oracle.name, "time_limit": limit_of(oracle)}

    def cells(self, progress: Progress) -> dict[str, object]:
        """Make the run; all its cells."""
        bench = self.bench()
        expected = self.size.cells()
        for name, found in bench.size.cells().items():
            if found != expected[name]:
                raise TableError(f"the table has {name} = {found}; expected {expected[name]}")
        result = run(self.series, bench, self.spend, self.game, self.number, progress)
        return {
            **self.key,
            **result.cells(bench.truth),
            "counting_seconds": bench.counting_seconds,
        }


def tasks_for(
    series: Sequence[str],
    spends: dict[str, Spend],
    games: dict[str, Game],
    runs: int,
    size: BenchSize,
    bench: Callable[[], Bench],
    wanted: tuple[str, ...] | None = None,
) -> Iterator[Task]:
    """The runs of several series on one bench.

    A series that reads no data is run once, because a second run would be the same.

    Args:
        series: the series, in the order in which they are run.
        spends: the privacy that each may use; the entry "" is for every series not named.
        games: the parameters of the paper's game, in the same way.
        runs: runs per series.
        size: the table and the workload.
        bench: makes them.
        wanted: the series that the user chose; None for all.
    """
    for name in series:
        if wanted is not None and name not in wanted:
            continue
        spend = spends.get(name, spends[""])
        for number in range(1 if name in DATA_FREE else runs):
            yield Task(size, name, spend, games.get(name, games[""]), number, bench)


def tasks_by_epsilon(
    epsilons: Sequence[float],
    series: Sequence[str],
    game: Game,
    runs: int,
    size: BenchSize,
    bench: Callable[[], Bench],
    wanted: tuple[str, ...] | None = None,
) -> Iterator[Task]:
    """The runs at each ε: the paper under its own theorem, all else by the Gaussian accountant.

    Args:
        epsilons: the budgets, each at δ = `DELTA`.
        series: the series, in the order in which they are run.
        game: the parameters of the paper's game.
        runs: runs per series and ε.
        size: the table and the workload.
        bench: makes them.
        wanted: the series that the user chose; None for all.
    """
    for epsilon in epsilons:
        spends = {
            "": Spend(epsilon, DELTA, "gaussian"),
            "paper": Spend(epsilon, DELTA, "advanced"),
        }
        yield from tasks_for(series, spends, {"": game}, runs, size, bench, wanted)


def package_tasks(
    epsilons: Sequence[float],
    game: Game,
    runs: int | None,
    size: BenchSize,
    bench: Callable[[], Bench],
    wanted: tuple[str, ...] | None = None,
) -> Iterator[Task]:
    """The runs of the package as it is today, at ε = 1 alone, if the user chose that series.

    Args:
        epsilons: the budgets of the experiment.
        game: the parameters of the paper's game, which these runs do not use.
        runs: how many the user asked for; None for `PACKAGE_RUNS`.
        size: the table and the workload.
        bench: makes them.
        wanted: the series that the user chose; None for the paper's.
    """
    chosen = [epsilon for epsilon in epsilons if epsilon == 1.0]
    if wanted is not None and PACKAGE in wanted:
        times = runs or PACKAGE_RUNS
        yield from tasks_by_epsilon(chosen, (PACKAGE,), game, times, size, bench, wanted)


@dataclass(frozen=True)
class Panel:
    """One diagram: a measured column over another, with one line per series.

    Attributes:
        title: what it shows, in words.
        x: the column along the horizontal axis.
        y: the column along the vertical axis.
        select: the cells of the runs that are shown.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is logarithmic.
        line: the column with one line per value.
    """

    title: str
    x: str
    y: str
    select: Mapping[str, object]
    log_x: bool = False
    log_y: bool = True
    line: str = "series"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper beside what was measured; `agrees` None means not comparable.

    `measured` says whether runs were looked at, whose size then matters; a theorem's figure is the
    same at every size.
    """

    statement: str
    paper: str
    ours: str
    agrees: bool | None
    remark: str = ""
    measured: bool = True

    @property
    def at_quick_size(self) -> Claim:
        """The same statement where runs were small, about which they say nothing."""
        if not self.measured:
            return self
        return replace(self, agrees=None, remark="at this size")

    @property
    def verdict(self) -> str:
        if self.agrees is None:
            return "not comparable"
        return "agrees" if self.agrees else "differs"


@dataclass(frozen=True)
class Experiment:
    """One figure of the paper.

    Attributes:
        name: what the command line calls it.
        title: the heading of its section.
        about: its setting, in a sentence or two.
        tasks: the runs that it consists of.
        panels: the diagrams made from the runs.
        claims: the paper's statements about it, beside the runs.
        series: the series that options may choose from.
        datasets: the data sets that options may choose from; none if it makes its own tables.
    """

    name: str
    title: str
    about: str
    tasks: Callable[[Options], Iterator[Task]]
    panels: Callable[[Sequence[FinishedRun]], list[Panel]]
    claims: Callable[[Sequence[FinishedRun]], list[Claim]]
    series: tuple[str, ...] = tuple(LABELS)
    datasets: tuple[str, ...] = ()

    def verdicts(self, runs: Sequence[FinishedRun], quick: bool) -> list[Claim]:
        """The claims; quick runs decide none that is about measured figures."""
        made = self.claims(runs)
        return [claim.at_quick_size for claim in made] if quick else made

    def check(self, options: Options) -> None:
        """Refuse options that this experiment would have to ignore."""
        for name in options.series or ():
            if name not in self.series:
                raise ParameterError(
                    f"experiment {self.name!r} has no series {name!r}; expected one of "
                    f"{', '.join(self.series)}"
                )
        if not self.datasets and (options.dataset or options.data):
            raise ParameterError(
                f"experiment {self.name!r} makes its own tables: leave out "
                f"{'dataset' if options.dataset else 'data'}"
            )
        if options.dataset:
            one_of(f"dataset of experiment {self.name!r}", options.dataset, self.datasets)
        if options.dataset in GENERATED and options.data:
            raise ParameterError(f"the data set {options.dataset!r} is generated: leave out data")


def file_stem(name: str, quick: bool, oracle: str | None = None) -> str:
    """What the files of an experiment are called; runs with an oracle of their own stand apart."""
    return f"{name}{'-quick' if quick else ''}{f'-{oracle}' if oracle else ''}"


def perform(
    experiment: Experiment, options: Options, out: Path, progress: Progress
) -> list[FinishedRun]:
    """Make all runs that are not in the file yet, and return all of them.

    Args:
        experiment: what to run.
        options: what the user changed about it.
        out: the folder of the results.
        progress: told the stage, how many runs are done, and how many there are.
    """
    experiment.check(options)
    require_folder(out)
    version = state_of_code()  # before the first run: sources may be edited while it is made
    stem = file_stem(experiment.name, options.quick, options.oracle)
    store = Store(out / f"{stem}.csv", SOLVED if options.oracle else PAPER)
    tasks = list(experiment.tasks(options))
    oracle = options.solver()
    if oracle is not None:
        asking = [name for name in experiment.series if name in RECORDS]
        require_records(experiment.name, asking, options.series)
        tasks = [
            replace(task, game=replace(task.game, oracle=oracle))
            for task in tasks
            if task.series in asking
        ]
    if not tasks:
        raise ParameterError(f"experiment {experiment.name!r} has nothing to do with these options")
    with store.writing():
        missing = [task for task in tasks if task.key not in store]
        done = len(tasks) - len(missing)
        for task in missing:
            named = f"{task.key['dataset']} ε={task.spend.epsilon:g} {task.series}"
            progress(f"run {done + 1}/{len(tasks)}: {named}", done, len(tasks))
            store.append({**task.cells(progress), "version": version})
            done += 1
    progress("all runs are there", done, len(tasks))
    return store.runs


def require_folder(out: Path) -> None:
    """Make the folder of the results before the first run, which could not be kept without it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"out={str(out)!r} cannot be a folder: {error.strerror}") from None


def load(name: str) -> Experiment:
    """The experiment of that name."""
    from importlib import import_module

    from dualquery.paper.experiments import NAMES

    one_of("experiment", name, NAMES)
    found: Experiment = import_module(f"dualquery.paper.experiments.{name}").EXPERIMENT
    return found
