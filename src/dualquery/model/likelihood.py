"""The likelihood of a transcript, as a function of the unknown answers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.base.threads import over_ranges, thread_count
from dualquery.model.compiled import CompiledWorkload
from dualquery.privacy.sampler import Draws

Singles = npt.NDArray[np.float32]


class Likelihood:
    """How probable the draws of all rounds so far are, if the answers were a.

    Round t drew s_t signed queries with weights w_q·exp(±β_t(a_q − a_q^t)), a^t being the answers
    it was drawn against and w the prior weights, so the log-likelihood is, up to a constant,

        Σ_t [ Σ_{draws (q,±)} ±β_t(a_q − a_q^t) − s_t·log Σ_q w_q·2cosh(β_t(a_q − a_q^t)) ],

    concave in a. All arrays are in the arrangement of a compiled workload.
    """

    def __init__(
        self, compiled: CompiledWorkload, log_prior: npt.NDArray[np.float64], capacity: int
    ) -> None:
        queries = len(compiled.order)
        self._prior = np.exp(log_prior[compiled.order]).astype(np.float32)
        self._place = np.empty(queries, dtype=np.int64)
        self._place[compiled.order] = np.arange(queries)
        self._against = np.empty((capacity, queries), dtype=np.float32)
        self._temperatures = np.zeros(capacity, dtype=np.float32)
        self._samples = np.zeros(capacity, dtype=np.float64)
        self._pull = np.zeros(queries, dtype=np.float32)
        self._drawn = np.zeros(queries, dtype=bool)
        self._constant = 0.0
        self.rounds = 0

    def add(self, temperature: float, draws: Draws, against: Singles) -> None:
        """One more round: its draws, and the answers it was drawn against."""
        t = self.rounds
        self._against[t] = against
        self._temperatures[t] = temperature
        self._samples[t] = len(draws)
        signs = temperature * np.where(draws.negated, -1.0, 1.0)
        place = self._place[draws.queries]
        self._pull += np.bincount(place, signs, len(self._pull)).astype(np.float32)
        self._drawn[place] = True
        self._constant -= float(signs @ against[place].astype(np.float64))
        self.rounds += 1

    @property
    def drawn(self) -> npt.NDArray[np.bool_]:
        """Which queries were drawn in any round."""
        return self._drawn

    def part(self, positions: npt.NDArray[np.int64], scale: Singles) -> Likelihood:
        """The likelihood seen through some of the queries.

        Every drawn query must be among them. The others stand for all that were left out: their
        prior weights are multiplied by `scale`, so that normalisers keep their expected values.
        """
        part = Likelihood.__new__(Likelihood)
        part._prior = self._prior[positions] * scale
        part._place = self._place
        # Not by indexing: that would lay the rounds out side by side, and loops go along queries.
        part._against = np.take(self._against[: self.rounds], positions, axis=1)
        part._temperatures = self._temperatures
        part._samples = self._samples
        part._pull = self._pull[positions]
        part._drawn = self._drawn[positions]
        part._constant = self._constant
        part.rounds = self.rounds
        return part

    def slopes(self, answers: Singles) -> tuple[float, Singles]:
        """The log-likelihood at these answers, and its gradient by each of them."""
        from dualquery.model._kernels import inner, round_slopes

        workers = min(thread_count(), max(1, self.rounds))
        parts = [np.zeros_like(self._pull) for _ in range(workers)]
        totals = np.zeros(workers)

        def task(first: int, stop: int) -> None:
            for worker in range(first, stop):
                chosen = np.arange(worker, self.rounds, workers)
                scratch = np.empty_like(self._pull)
                totals[worker] = round_slopes(
                    answers, self._against, self._prior, self._temperatures, self._samples,
                    chosen, parts[worker], scratch,
                )  # fmt: skip

        # An exponential takes as long as several products.
        over_ranges(task, workers, grain=1, work=4 * self.rounds * len(self._pull))
        slope = self._pull.copy()
        for part in parts:
            slope += part
        linear = inner(self._pull, answers)
        return linear + self._constant - float(totals.sum()), slope
