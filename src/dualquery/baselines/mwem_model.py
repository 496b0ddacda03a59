"""MWEM on the model: the choices and measurements of MWEM, a mixture in place of the universe.

Private side: it reads counts. MWEM holds one number per possible record, so it ends at about 20
binary columns. Its choices and measurements do not need that. What they are played against may be
any distribution that answers queries. Here it is the package's mixture of products, fitted to the
measurements so far. So this runs at any width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dualquery.base.checks import positive, probability, whole
from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import Cost, Floats
from dualquery.baselines.charging import charged
from dualquery.baselines.mwem import PrivatePart, Rates
from dualquery.baselines.spending import choice_range, noise_for, planned, stated, with_noise
from dualquery.domain.free import Free
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.drawn import Buffers, slopes_through
from dualquery.model.mixture import Mixture
from dualquery.model.stack import Stack
from dualquery.model.terms import Singles, Slopes
from dualquery.model.training import Ascent, Parameters
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.events import Events, MeasurementEvent, Noise
from dualquery.privacy.neighbours import rounding_charge
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Workload

NOISE, MOST_ROUNDS = 0.005, 1_000
"""The noise of a measured share, and the most rounds, if the number of rounds is not given."""


@dataclass(frozen=True)
class Settings:
    """How MWEM on the model runs; nothing here costs privacy.

    Attributes:
        rounds: queries that are chosen and measured.
        share: the part of a round's budget that the choice of the query takes.
        components: of the mixture.
        steps: of the fit after each measurement.
        final_steps: of the last fit.
        rate: of a step; within a fit it falls to a tenth.
        noise: standard deviation of the first logits, which tells components apart.
    """

    rounds: int = 50
    share: float = 0.5
    components: int = 16
    steps: int = 30
    final_steps: int = 300
    rate: float = 0.1
    noise: float = 0.1

    def __post_init__(self) -> None:
        for name in ("rounds", "components", "steps", "final_steps"):
            whole(name, getattr(self, name))
        probability("share", self.share)
        positive("rate", self.rate)

    @classmethod
    def of(cls, epsilon: float, delta: float, rows: int) -> Settings:
        """As many rounds as keep the noise of a measured share at `NOISE`, 50 to 1,000.

        Found on Adult and on 32 biased columns, ε = 1: with 50 rounds, which are few for so many
        rows, the average error was three and seven times as large as with 1,000.

        Args:
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            rows: the public number of rows.
        """
        epsilon, left = planned(epsilon), 1.0 - cls.share
        if delta == 0.0:
            affordable = NOISE * rows * left * epsilon
        else:
            affordable = (NOISE * rows * mu_of(epsilon, delta)) ** 2 * left
        rounds = int(min(max(affordable, cls.rounds), MOST_ROUNDS))
        # Each fit begins where the last one ended, so many fits need few steps each.
        return cls(rounds=rounds, steps=max(10, cls.rounds * cls.steps // rounds))


@dataclass(frozen=True)
class Prices:
    """What a round spends on its choice and on its measurement, by the package's accountants.

    Guarantee: replacing a record moves every score |c − n·a| by at most one. So a choice with
    weights exp(`choice`·score) is one draw of bounded range 2·`choice` plus the rounding charge,
    and the chosen count is a measurement with Δ₁ = Δ₂ = 1.

    Attributes:
        choice: the factor of a score in the exponent.
        noise: Gaussian if δ > 0, else Laplace.
        scale: of the noise on a count.
        events: the whole run, as accountants read it.
    """

    choice: float
    noise: Noise
    scale: float
    events: Events

    @classmethod
    def of(cls, epsilon: float, delta: float, rows: int, settings: Settings) -> Prices:
        """Spend (ε, δ) evenly over the rounds.

        Args:
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            rows: the public number of rows.
            settings: the number of rounds, and the share of a choice.
        """
        rounds, share = settings.rounds, settings.share
        epsilon = planned(epsilon)
        wide = choice_range(epsilon, delta, choices=rounds, share=share)
        # Each round has one count, which a record moves by one.
        noise, scale = noise_for(
            epsilon, delta, l1=float(rounds), l2=math.sqrt(rounds), share=1.0 - share
        )
        charge = float(rounding_charge(wide / 2.0 * rows))
        choice = (wide - charge) / 2.0
        if choice <= 0.0:
            raise ParameterError(f"epsilon={epsilon:g} is too small for {rounds} rounds")
        once = Events(np.array([1]), np.array([wide])).then(
            Events.of_measurements(MeasurementEvent(noise, scale, 1.0, 1.0))
        )
        events = once
        for _ in range(rounds - 1):
            events = events.then(once)
        return cls(choice, noise, scale, events)

    def cost(self, delta: float, private: bool) -> Cost:
        """The statement of a run at these prices."""
        mechanism = f"exponential mechanism and exact {self.noise} noise"
        return stated(self.events, delta, mechanism, private=private)


def measured_share(table: Counted, query: int, prices: Prices, source: RandomSource) -> float:
    """The noisy count of one query, as a share of the table."""
    one = table.counts[query : query + 1]
    return int(with_noise(one, prices.noise, prices.scale, source)[0]) / table.rows


@dataclass(frozen=True, eq=False)
class Squares:
    """−Σ (y − a)²/(2v) over some measured queries: y the noisy share, v its variance."""

    compiled: CompiledWorkload
    shares: Singles
    precision: np.float32
    buffers: Buffers

    @classmethod
    def of(
        cls, asked: Workload, shares: Floats, variance: float, stack: Stack, components: int
    ) -> Squares:
        """Arrange measured queries for the kernels.

        Args:
            asked: the measured queries, repeats included.
            shares: their noisy shares.
            variance: of each share.
            stack: the attributes that are modelled.
            components: of the mixture.
        """
        compiled = CompiledWorkload.of(asked, stack)
        arranged = shares[compiled.order].astype(np.float32)
        return cls(compiled, arranged, np.float32(1.0 / variance), Buffers(compiled, components))

    def judge(self, answers: Singles) -> tuple[float, Singles]:
        """The value at these answers, and its gradient."""
        away = self.shares - answers
        return -0.5 * float(self.precision * (away @ away)), self.precision * away

    def slopes(self, tables: Singles, weights: Singles) -> Slopes:
        return slopes_through(self.compiled, self.buffers, tables, weights, self.judge)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The mixture, and the measurements it was fitted to."""

    workload: Workload
    stack: Stack
    settings: Settings
    parameters: Parameters
    measured: tuple[tuple[int, float], ...] = ()

    @classmethod
    def start(cls, workload: Workload, settings: Settings) -> Fitted:
        """Near-uniform tables, as MWEM starts from the uniform distribution."""
        stack = Stack.of(workload.schema, workload.literals.attribute)
        start = Parameters.start(stack, settings.components, settings.noise, seed=0)
        return cls(workload, stack, settings, start)

    @property
    def mixture(self) -> Mixture:
        # An attribute that no query names stays uniform, as in MWEM.
        return Ascent(self.stack, self.settings.components).mixture(self.parameters, Free.RANDOM)

    def learn(self, query: int, share: float, variance: float, steps: int) -> Fitted:
        """The state after one more measurement: a few steps uphill on the squares of all.

        Args:
            query: the query that was measured.
            share: its noisy share.
            variance: of a measured share.
            steps: of the fit.
        """
        measured = (*self.measured, (query, share))
        asked = self.workload.take(np.array([one for one, _ in measured]))
        shares = np.array([found for _, found in measured])
        components = self.settings.components
        term = Squares.of(asked, shares, variance, self.stack, components)
        rates = [self.settings.rate * (1.0 - 0.9 * step / steps) for step in range(steps)]
        climbed, _ = Ascent(self.stack, components).climb(
            Parameters.at(self.parameters.flat, components), [term], rates
        )
        return Fitted(self.workload, self.stack, self.settings, climbed, measured)


@dataclass(frozen=True, eq=False)
class ModelMwem:
    """The mixture that MWEM on the model ends with; it answers any query over its schema."""

    mixture: Mixture
    privacy: Cost
    measured: tuple[tuple[int, float], ...] = field(default=())
    name: str = "mwem on the model"

    @classmethod
    def fit(
        cls,
        answers: Counted,
        workload: Workload,
        *,
        epsilon: float,
        delta: float,
        source: RandomSource,
        settings: Settings | None = None,
        observer: Callable[[int, int], None] = lambda done, total: None,
        ledger: str | Path | None = None,
    ) -> ModelMwem:
        """Run on the counts of a workload. The number of rows is public.

        Args:
            answers: the true counts.
            workload: the queries that were counted.
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            source: the random source of draws and noise.
            settings: how to run; None for as many rounds as the budget is good for.
            observer: told how many rounds are done, and of how many.
            ledger: a budget ledger that the run is charged to before its first draw.
        """
        settings = settings or Settings.of(epsilon, delta, answers.rows)
        prices = Prices.of(epsilon, delta, answers.rows, settings)
        private = PrivatePart(answers, Rates(prices.choice, prices.scale, epsilon))
        compiled = CompiledWorkload.of(workload)
        state = Fitted.start(workload, settings)
        every = np.arange(len(workload))
        variance = share_variance(prices, answers.rows)
        with charged(ledger, prices.events, private=source.private, note=cls.name):
            for number in range(settings.rounds):
                here = source.for_round(number)
                played = state.mixture.answers_to(compiled)
                query = private.choose(played, every, here)
                share = measured_share(answers, query, prices, here)
                last = number + 1 == settings.rounds
                steps = settings.final_steps if last else settings.steps
                state = state.learn(query, share, variance, steps)
                observer(number + 1, settings.rounds)
        return cls(state.mixture, prices.cost(delta, source.private), state.measured)

    def answers(self, workload: Workload) -> Floats:
        if workload.schema != self.mixture.schema:
            raise ParameterError("the workload has another schema than the one MWEM was fitted on")
        return np.clip(self.mixture.answers(workload), 0.0, 1.0)

    def sample(self, rows: int, generator: np.random.Generator) -> np.ndarray:
        """Synthetic records, one row of codes each."""
        return self.mixture.sample(rows, generator)


def share_variance(prices: Prices, rows: int) -> float:
    """The variance of a measured share."""
    if prices.noise is Noise.GAUSSIAN:
        return (prices.scale**2 + 1.0 / 12.0) / rows**2
    return 0.5 / math.sinh(0.5 / prices.scale) ** 2 / rows**2
