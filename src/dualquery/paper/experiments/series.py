"""The series of the experiments: ways to answer a workload, each at a stated cost.

Every run is seeded, so that a figure can be made again. Seeded runs are NOT PRIVATE, which is right
for public data only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dualquery.baselines.baseline import Baseline, Floats
from dualquery.baselines.independent import Independent
from dualquery.baselines.mwem import IMPROVED, Mwem, Settings
from dualquery.baselines.perturbation import Gaussian, Laplace
from dualquery.baselines.product import Uniform, Zeros
from dualquery.domain.free import Free
from dualquery.estimator import DualQuery
from dualquery.evaluation.figures import Distance
from dualquery.game.loop import play
from dualquery.game.query_player import QueryPlayer
from dualquery.game.record_player import RecordPlayer
from dualquery.oracles.oracle import Oracle
from dualquery.oracles.registry import oracle as make_oracle
from dualquery.paper.experiments.bench import Bench
from dualquery.paper.experiments.solving import Heard
from dualquery.privacy.calibration import Budget, largest_rounds
from dualquery.privacy.events import record_player_temperatures
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import SeededSource
from dualquery.rows.opening import open_table
from dualquery.workloads.workload import Workload

Progress = Callable[[str, int, int], None]

LABELS = {
    "game": "paper's algorithm",
    "paper": "paper's algorithm, paper's theorem",
    "paper-gaussian": "paper's algorithm, Gaussian accountant",
    "valid": "valid records, Gaussian accountant",
    "refit": "valid records and refit",
    "model": "model player",
    "package": "this package",
    "zeros": "zeros",
    "uniform": "uniform",
    "independent": "independent marginals",
    "laplace": "Laplace noise per query",
    "gaussian": "Gaussian noise per query",
    "mwem": "MWEM as published",
    "mwem-improved": "MWEM with improvements",
}

BASELINES = ("zeros", "uniform", "independent", "laplace", "gaussian")
DATA_FREE = ("zeros", "uniform")
RECORDS = ("game", "paper", "paper-gaussian", "valid")
"""The series that play records, which any oracle can find."""


@dataclass(frozen=True)
class Game:
    """Parameters of the paper's game; with `rounds` None it has as many as the budget allows.

    Attributes:
        eta: the learning rate.
        samples: draws per round.
        rounds: of the game.
        oracle: the oracle whose answers are counted; None for annealing, of which nothing is.
    """

    eta: float
    samples: int
    rounds: int | None = None
    oracle: Oracle | None = None


@dataclass(frozen=True)
class Spend:
    """The privacy a run may use, and the theorem that counts it."""

    epsilon: float
    delta: float
    accountant: str


@dataclass(frozen=True)
class Result:
    """The answers of one run, how long they took, and the parameters of its game if it had one."""

    answers: Floats
    seconds: float
    eta: float | str = ""
    samples: int | str = ""
    rounds: int | str = ""
    heard: Heard | None = None

    def cells(self, truth: Floats) -> dict[str, object]:
        """The cells of the stored run that this decides."""
        return {
            **asdict(Distance.of(self.answers, truth)),
            **({} if self.heard is None else self.heard.cells()),
            "seconds": self.seconds,
            "eta": self.eta,
            "samples": self.samples,
            "rounds": self.rounds,
        }


def budget_of(spend: Spend, rows: int) -> Budget:
    return Budget(spend.epsilon, spend.delta, rows, Neighbours.REPLACE_ONE, spend.accountant)


def allowed_rounds(spend: Spend, rows: int, game: Game) -> int:
    """The rounds of a game: its own, or the most that the budget allows."""
    if game.rounds is not None:
        return game.rounds
    return largest_rounds(budget_of(spend, rows), samples=game.samples, eta=game.eta)


def run(name: str, bench: Bench, spend: Spend, game: Game, seed: int, progress: Progress) -> Result:
    """One run of a series.

    Args:
        name: the series.
        bench: the table, the workload and its counts.
        spend: the privacy that the run may use.
        game: the parameters of the paper's game.
        seed: of all its randomness.
        progress: told the stage, and how much of it is done.
    """
    if name in ("game", "paper", "paper-gaussian"):
        return play_records(bench, bench.binary_workload, spend, game, seed, progress)
    if name == "valid":
        return play_records(bench, bench.workload, spend, game, seed, progress)
    if name == "refit":
        rounds = allowed_rounds(spend, bench.rows, game)
        return fit_estimator(
            bench,
            spend,
            seed,
            progress,
            player="record",
            refit=True,
            rounds=rounds,
            samples=game.samples,
            eta=game.eta,
            free=bench.data.free,
        )
    if name == "model":
        # The game of draws alone: with measured tables it would be the series `package`.
        return fit_estimator(
            bench, spend, seed, progress, player="model", refit=True, measure=False
        )
    if name == "package":
        return fit_package(bench, spend, seed)
    begun = time.perf_counter()
    found = baseline(name, bench, spend, seed, progress)
    return Result(found.answers(bench.workload), time.perf_counter() - begun)


def play_records(
    bench: Bench, workload: Workload, spend: Spend, game: Game, seed: int, progress: Progress
) -> Result:
    """The paper's game against the counts of the bench.

    The time leaves out counting, as the paper does, and compilation: two rounds are played first.

    Args:
        bench: the counts.
        workload: the queries, over the table itself or over the paper's view of it.
        spend: the privacy that the run may use.
        game: its parameters.
        seed: of all its randomness.
        progress: told the stage, and how much of it is done.
    """
    rounds = allowed_rounds(spend, bench.rows, game)
    annealing = make_oracle("annealing")
    heard = None if game.oracle is None else Heard(game.oracle)

    def of(rounds: int, samples: int, oracle: Oracle) -> Floats:
        player = RecordPlayer(workload, oracle, free=Free(bench.data.free), seed=seed)
        state, _ = play(
            QueryPlayer(bench.answers),
            player,
            record_player_temperatures(game.eta, rounds),
            np.full(rounds, samples, dtype=np.int64),
            SeededSource(seed),
            observer=lambda done, total: progress("playing", done, total),
        )
        return player.answers(state)

    of(min(2, rounds), game.samples, annealing)
    begun = time.perf_counter()
    answers = of(rounds, game.samples, heard or annealing)
    seconds = time.perf_counter() - begun
    return Result(answers, seconds, game.eta, game.samples, rounds, heard)


def fit_estimator(
    bench: Bench, spend: Spend, seed: int, progress: Progress, **settings: Any
) -> Result:
    """A run of `DualQuery.fit`, which plans whatever the settings leave open.

    Args:
        bench: the table and the workload.
        spend: the privacy that the run may use.
        seed: of all its randomness.
        progress: told the stage, and how much of it is done.
        settings: further arguments of `DualQuery`.
    """
    clock = _Clock(progress)
    job = DualQuery(
        epsilon=spend.epsilon,
        delta=spend.delta,
        accountant=spend.accountant,
        seed=seed,
        errors=False,  # a rehearsal would be timed, and changes no answer
        **settings,
    )
    made = job.fit(
        bench.data.table,
        schema=bench.workload.schema,
        workload=bench.workload,
        progress=clock,
    )
    parameters = made.parameters
    return Result(
        np.clip(made.answers(), 0.0, 1.0),
        clock.seconds,
        parameters.eta or "",
        parameters.samples or "",
        parameters.rounds or "",
    )


def fit_package(bench: Bench, spend: Spend, seed: int) -> Result:
    """The package with all its defaults. Its time is that of the whole job, counting included.

    Args:
        bench: the table and the workload.
        spend: the privacy that the run may use.
        seed: of all its randomness.
    """
    begun = time.perf_counter()
    job = DualQuery(spend.epsilon, spend.delta, accountant=spend.accountant, seed=seed)
    made = job.fit(bench.data.table, schema=bench.workload.schema, workload=bench.workload)
    answers = np.clip(made.answers(bench.workload), 0.0, 1.0)
    return Result(answers, time.perf_counter() - begun)


class _Clock:
    """Times the game and what follows it, by the reports after each round.

    Reading and counting come before the first report, so they are left out. No report marks the
    beginning of the first round, so that round is taken to last as long as the others.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._rounds: list[tuple[int, float]] = []

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage == "playing":
            self._rounds.append((done, time.perf_counter()))
        self._progress(stage, done, total)

    @property
    def seconds(self) -> float:
        if not self._rounds:
            return float("nan")
        (first, begun), (last, ended) = self._rounds[0], self._rounds[-1]
        one = (ended - begun) / (last - first) if last > first else 0.0
        return time.perf_counter() - begun + first * one


def baseline(name: str, bench: Bench, spend: Spend, seed: int, progress: Progress) -> Baseline:
    """A baseline, fitted.

    Args:
        name: which one.
        bench: the table, the workload and its counts.
        spend: the privacy that it may use.
        seed: of its noise.
        progress: told the stage, and how much of it is done.
    """
    generator = np.random.default_rng([seed, 7])
    if name == "zeros":
        return Zeros()
    if name == "uniform":
        return Uniform()
    if name == "independent":
        return Independent.fit(
            open_table(bench.data.table),
            bench.workload.schema,
            epsilon=spend.epsilon,
            delta=spend.delta,
            neighbours=Neighbours.REPLACE_ONE,
            generator=generator,
        )
    per_query = {"laplace": Laplace, "gaussian": Gaussian}
    if name in per_query:
        # The paper compares with noise that grows with the number of queries.
        return per_query[name].fit(
            bench.answers,
            bench.workload,
            epsilon=spend.epsilon,
            delta=spend.delta,
            generator=generator,
            exclusive=False,
        )
    settings = {"mwem": Settings(), "mwem-improved": IMPROVED}[name]
    return Mwem.fit(
        bench.answers,
        bench.workload,
        epsilon=spend.epsilon,
        source=SeededSource(seed),
        settings=settings,
        name=name,
        observer=lambda done, total: progress("mwem", done, total),
    )
