"""A rehearsal: the whole game once more, with the fitted model in the place of the private table.

How far will released answers be from the truth? The draws alone cannot say: most answers
were never drawn, and the fit is held in by its start and its length as much as by the draws. But
the fitted model is public, so the game can be played again with *its* answers as the truth, by
the same plan and the same training; what the second fit misses is then seen exactly. All of it is
post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dualquery.game.data_player import DataPlayer
from dualquery.game.fitting import fit_transcript
from dualquery.game.held_out import missed_dependence
from dualquery.game.loop import play
from dualquery.game.model_player import ModelPlayer
from dualquery.game.query_player import QueryPlayer
from dualquery.game.record_player import RecordPlayer
from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.game.tables_steps import Kind, TablesPlan
from dualquery.game.transcript import Transcript
from dualquery.game.wide_player import WidePlayer, player_of
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.matched import Matching
from dualquery.model.mixture import Mixture
from dualquery.model.pair_kinds import PAIR_KINDS, PairKinds
from dualquery.model.prior import informed, like_the_start
from dualquery.model.redrawn import redrawn, share_noise
from dualquery.model.schedule import Schedule
from dualquery.model.standard_errors import MOST_LITERALS, ErrorTable
from dualquery.model.unasked import Unasked
from dualquery.oracles.registry import oracle
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.rare import Rare
from dualquery.privacy.sources import SeededSource
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.matching import shares_holding
from dualquery.workloads.probes import with_probes
from dualquery.workloads.workload import Literals, Workload

State = TypeVar("State")

MOST_QUERIES = 40_000
"""A rehearsal asks a random part of the queries; what a draw tells hardly depends on it."""

FEWEST_STEPS = 400
"""Of a fit that begins from nothing."""

FITS = 2
"""Fits of one rehearsal of tables: with two, what depends on the start can be told."""

LOOSER = 3.0
"""What shrinkage is divided by in a fit that has lost less of the dependences."""

MOST_RECORDS = 300_000
"""Of a rehearsed start: more would be nearer to the truth than any start is taken to be."""

MOST_ROWS = 20_000
"""Of a rehearsed table; fewer rows than the table has are scaled."""

NARROW = 4_000
"""Queries on one attribute, and on two, that are judged beside the asked ones."""


def modelled(model: Mixture, actions: Actions, rows: int) -> QueryPlayer:
    """A query player whose truth is a model."""
    counts = np.rint(rows * model.answers(actions.queries)).astype(np.int64)
    return QueryPlayer(Counted(counts, rows), log_prior=actions.log_prior)


def rehearse(
    model: Mixture,
    actions: Actions,
    transcript: Transcript,
    rows: int,
    schedule: Schedule,
    observer: Callable[[int, int], None] = lambda done, total: None,
    seed: int = 0,
) -> ErrorTable:
    """The errors of a game like the one of the transcript, if the model were the truth.

    Args:
        model: stands in for the private table.
        actions: the queries that could be drawn.
        transcript: the game that is played again.
        rows: the public number of rows, or the public reference size.
        schedule: how models are trained.
        observer: told how many rounds are done, and of how many.
        seed: of the rehearsal's own, public randomness.
    """
    generator = np.random.default_rng(seed)
    asked = actions.workload
    if len(asked) > MOST_QUERIES:
        asked = asked.take(np.sort(generator.choice(len(asked), MOST_QUERIES, replace=False)))
    probed = len(actions) > actions.asked
    stage = with_probes(asked, seed=seed + 1) if probed else Actions.plain(asked)

    def played_by(player: DataPlayer[State]) -> Transcript:
        _, rehearsed = play(
            modelled(model, stage, rows),
            player,
            transcript.temperatures,
            transcript.draw_counts,
            SeededSource(seed),
            observer=observer,
        )
        return rehearsed

    if transcript.records is None:
        rehearsed = played_by(ModelPlayer(stage, schedule, len(transcript)))
    else:
        rehearsed = played_by(RecordPlayer(asked, oracle("annealing"), seed=seed + 1))
    second = fit_transcript(stage, rehearsed, schedule, schedule)
    judged = asked
    for k in (1, 2):
        if k <= len(asked.schema):
            judged = judged + random_marginals(asked.schema, k, 4000, seed=seed)
    table = ErrorTable.of(judged, second.answers(judged), model.answers(judged))
    unasked = Unasked(asked, np.random.default_rng([seed, 16]))
    found = second.answers(unasked.queries)
    missed = (found - model.answers(unasked.queries)) ** 2
    return replace(table, unasked=unasked.factors(table, [found], [missed]))


def rehearse_tables(player: TablesPlayer, known: Known, seed: int = 0) -> ErrorTable:
    """The errors of runs that measured the same tables, if something like the model were the truth.

    In the first rehearsal the model is the truth, with dependences as strong as the measured tables
    say (`model.matched`). In the second, the shares of codes are drawn anew around the model's, as
    far as their noise reaches. A table is harder to find than either: it has rare codes that a fit
    has smoothed away. So of narrow tables every class of answers takes the larger error of the two.

    What second fits miss, whatever their start, is one part of an error. The other is what the
    first fits disagree about: where tables say nothing, each fit makes up something of its own. Of
    narrow tables all of that counts, though an average keeps only a part: it stands for what a
    mixture cannot express.

    Of kinds of queries that were not asked, an average keeps what it keeps of a disagreement, and
    chance counts beside it (`model.unasked`).

    Mixtures of wide tables have few components, so that their rehearsals miss as much of a mixture
    as the fits miss of the table. They take the mean of both rehearsals, and of a disagreement
    only what an average keeps.

    A model has no rows, so it does not show by how much rows depart from it by chance. Where
    columns are independent and many rows make all other errors small, that is most of the error.
    So there the truth of a rehearsal is a table of rows that are drawn from the model.

    Args:
        player: who fitted the model.
        known: what was measured, and the fits.
        seed: of the rehearsal's own, public randomness.
    """
    generator = np.random.default_rng([seed, 15])
    asked = player.workload
    if len(asked) > MOST_QUERIES:
        asked = asked.take(np.sort(generator.choice(len(asked), MOST_QUERIES, replace=False)))
    if isinstance(player, WidePlayer):
        judged = _with_parts(asked, generator)
        if player.is_product(known):
            return _product_errors(player, known, judged)
    else:
        judged = _with_narrow(asked, seed) + _of_edges(player, known, generator)
    wide = isinstance(player, WidePlayer)
    steps = max(player.plan.last_steps, FEWEST_STEPS)
    if wide:
        steps = player.plan.first_steps + player.plan.last_steps
    model = player.model(known)
    kinds = PairKinds() if wide else _kinds(model, known)
    spread = _spread(player, known)
    people = player.total(known) / player.plan.budget.unit.chance
    scattered = not wide and _is_chance(player, known, judged)
    every = _Judged(judged, player, known, kept=wide)
    if not (wide or scattered):
        every.allowed += _chance_of_three(model, judged, len(asked), people)
    unasked = Unasked(asked, np.random.default_rng([seed, 16]))
    others = _Judged(unasked.queries, player, known, kept=True)
    others.allowed += unasked.chance(
        model, np.inf if scattered else people, _columns_of_tables(player.plan)
    )
    if not wide:
        model = _as_dependent(model, player, known, steps, scattered, seed)
    for number, truth in enumerate((model, redrawn(model, spread, generator))):
        second = player_of(
            player.workload,
            replace(player.plan, members=FITS),
            seed=seed + 1000 * (number + 1),
        )
        rows = _Rows.drawn(truth, people if scattered else np.inf, generator)
        again = Known(
            _measured_again(rows, player, known, generator),
            rare=_rare_again(truth, player, known, generator),
        )
        again = second.fitted_anew(again, steps)
        fits = second.fits(again)
        for one in (every, others):
            one.judge(fits, rows)
    missed = np.zeros(PAIR_KINDS)
    if not wide:
        other = player_of(player.workload, replace(player.plan, members=FITS), seed=seed + 3000)
        missed[:] = missed_dependence(other, known, steps, generator)
    if wide:
        table = ErrorTable.of_rehearsals(judged, every.answers, every.squares)
    else:
        each = zip(every.answers, every.squares, strict=True)
        apart = [ErrorTable.of_rehearsals(judged, [one], [square], kinds) for one, square in each]
        table = ErrorTable.larger(apart)
    return replace(
        table,
        missed=missed,
        unasked=unasked.factors(table, others.answers, others.squares, kinds),
    )


class _Judged:
    """Queries whose errors are seen in rehearsals.

    Attributes:
        answers: of the fits, in each rehearsal.
        squares: their squared errors in each.
        allowed: what is added to these: what the first fits disagree about, and chance.
    """

    def __init__(
        self, queries: Workload, player: TablesPlayer, known: Known, *, kept: bool
    ) -> None:
        """Ask the first fits.

        Args:
            queries: what is judged.
            player: who fitted them.
            known: what was measured, and the fits.
            kept: whether only that part of a disagreement counts which an average keeps.
        """
        self._queries = queries
        self._compiled = CompiledWorkload.of(queries)
        fits = np.stack(player.member_answers(known, self._compiled))
        self.allowed = _variance(fits) / (len(fits) if kept else 1)
        self.answers: list[npt.NDArray[np.float64]] = []
        self.squares: list[npt.NDArray[np.float64]] = []

    def judge(self, fits: Sequence[Mixture], rows: _Rows) -> None:
        """One more rehearsal: its fits, and its truth."""
        found = np.stack([one.answers_to(self._compiled) for one in fits])
        # What depends on the start is taken off: the first fits say how much of it there is.
        missed = (found.mean(axis=0) - rows.answers(self._queries)) ** 2
        missed -= _variance(found) / FITS
        self.answers.append(found.mean(axis=0))
        self.squares.append(missed + self.allowed)


def _columns_of_tables(plan: TablesPlan) -> int:
    """How many columns are measured together throughout."""
    kinds = {step.kind for step in plan.steps}
    return 3 if Kind.TRIPLES in kinds else 2 if Kind.PAIRS in kinds else 1


def _variance(fits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Between fits; none where there is one."""
    return np.zeros(fits.shape[1]) if len(fits) < 2 else np.var(fits, axis=0, ddof=1)


def _as_dependent(
    model: Mixture, player: TablesPlayer, known: Known, steps: int, scattered: bool, seed: int
) -> Mixture:
    """The model, made as dependent as the measured tables say if it has lost some of that.

    Where rows are drawn from it, these bring chance with them, so only what is beyond it counts.
    """
    chance = player.plan.budget.unit.chance if scattered else 0.0
    matching = Matching(known.heard or known.measurements, model, player.total(known), chance)
    if not matching.lost:
        return model
    other = player_of(player.workload, replace(player.plan, members=FITS), seed=seed + 500)
    return matching.with_part_of(other.model(other.fitted_anew(known, steps, looser=LOOSER)))


@dataclass(frozen=True, eq=False)
class _Rows:
    """A truth: a model, or as many rows as a table has, drawn from the model.

    Attributes:
        model: where they come from.
        records: some rows; none if the model itself is the truth.
        part: answers of the rows are off from the model's by chance. Fewer rows than the table has
            are off by more, so only this part of it counts.
    """

    model: Mixture
    records: npt.NDArray[np.int32] | None = None
    part: float = 1.0

    @classmethod
    def drawn(cls, model: Mixture, people: float, generator: np.random.Generator) -> _Rows:
        """So many rows; with infinitely many, the model."""
        if not np.isfinite(people):
            return cls(model)
        few = max(1, min(round(people), MOST_ROWS))
        return cls(model, model.sample(few, generator), float(np.sqrt(min(1.0, few / people))))

    def answers(self, workload: Workload) -> npt.NDArray[np.float64]:
        expected = self.model.answers(workload)
        if self.records is None:
            return expected
        found = shares_holding(workload, self.records)
        return expected + self.part * (found - expected)


def _measured_again(
    rows: _Rows, player: TablesPlayer, known: Known, generator: np.random.Generator
) -> tuple[Measurement, ...]:
    """The same tables, measured on a public truth with noise of the same size.

    A public start that is off is part of what is rehearsed: another one, as far off, takes its
    place.
    """
    measurements: list[Measurement] = []
    total, chance = player.total(known), player.plan.budget.unit.chance
    records = np.empty((0, 0), dtype=np.int32)
    for one in known.heard or known.measurements:
        queries = one.marginals.queries(player.workload.schema)
        counts = total * rows.answers(queries)
        noise = np.sqrt(one.variances) * generator.standard_normal(len(counts))
        again = replace(one, counts=np.rint(counts + noise).astype(np.int64))
        if one.expected is not None:
            if not len(records):
                records = rows.model.sample(min(round(total / chance), MOST_RECORDS), generator)
            again = replace(again, expected=like_the_start(one, records, total, chance))
        measurements.extend(informed(again, total, chance))
    return tuple(measurements)


def _rare_again(
    truth: Mixture, player: TablesPlayer, known: Known, generator: np.random.Generator
) -> tuple[Rare, ...]:
    """The same rare cells, measured on a public truth with noise of the same size."""
    found = []
    for one in known.rare:
        counts = player.total(known) * truth.answers(one.cells.queries(player.workload.schema))
        noise = np.sqrt(one.variances) * generator.standard_normal(len(counts))
        found.append(replace(one, counts=np.rint(counts + noise).astype(np.int64)))
    return tuple(found)


def _spread(player: TablesPlayer, known: Known) -> npt.NDArray[np.float64]:
    """The standard deviation of each code's share."""
    schema = player.workload.schema
    if not known.rare or not isinstance(player, WidePlayer):
        return share_noise(schema, known.measurements, player.total(known))
    found = np.zeros(int(schema.code_start[-1]))
    both = schema.code_start[player.used][:, None] + np.arange(2)
    found[both] = np.sqrt(player.alone(known).variance)[:, None]
    return found


def _with_narrow(asked: Workload, seed: int) -> Workload:
    """The asked queries, and some on one and two attributes; on three, if none is asked.

    What is asked of a release later may name three columns, whatever the workload was.
    """
    named = asked.used
    judged = asked
    asks_three = bool((np.diff(asked.start) >= MOST_LITERALS).any())
    for k in (1, 2) if asks_three else (1, 2, 3):
        if k <= len(named):
            judged = judged + random_marginals(asked.schema, k, 4000, seed=seed)
    return judged


def _of_edges(player: TablesPlayer, known: Known, generator: np.random.Generator) -> Workload:
    """Queries on attributes that edges join, alone and with another attribute.

    Random queries name few of them.
    """
    edges, schema = player.model(known).edges, player.workload.schema
    if edges is None or not len(edges.trees.children):
        return player.workload.take(np.arange(0))
    joined = np.stack([edges.trees.children, edges.trees.parents], axis=1)
    found = player.workload.take(np.arange(0))
    for k in (2, 3):
        sets = joined[generator.integers(0, len(joined), NARROW // 2)]
        if k == 3:
            other = generator.choice(player.used, len(sets))
            sets = np.column_stack([sets, other])[~(sets == other[:, None]).any(axis=1)]
        codes = generator.integers(0, schema.sizes[sets])
        literals = Literals.single(sets.reshape(-1), codes.reshape(-1))
        terms = 2 * np.arange(sets.size).reshape(sets.shape)
        found = found + Workload.conjunctions(schema, literals, terms)
    return found


def _kinds(model: Mixture, known: Known) -> PairKinds:
    """How two attributes are known together."""
    measured = [one.marginals for one in known.measurements]
    trees = None if model.edges is None else model.edges.trees
    return PairKinds.of(len(model.schema), measured, trees)


def _product_errors(player: WidePlayer, known: Known, judged: Workload) -> ErrorTable:
    """The errors of independent 0/1 attributes: no fit, so they follow from the noise.

    An answer is a product of shares. Its error has three parts: the noise of the shares; what the
    rows of a finite table depart from independence by chance, which is the variance of a count
    beyond what the counts of its literals explain; and dependence that is too weak to be seen in
    single pairs. The measured pairs say how large its square is on average.
    """
    share, variance = player.literal_estimates(known, judged)
    term = judged.terms >> 1
    held = np.where(judged.terms & 1, 1.0 - share[term], share[term])
    begin = judged.start[:-1]
    answers = np.multiply.reduceat(held, begin)
    noise = answers**2 * np.add.reduceat(variance[term] / held**2, begin)
    chance = _chance(player, known, judged, held)
    odds = (1.0 - held) / held
    pairs = 0.5 * (np.add.reduceat(odds, begin) ** 2 - np.add.reduceat(odds**2, begin))
    weak = answers**2 * pairs * player.dependence(known).square
    return ErrorTable.of_squares(judged, answers, noise + chance + weak)


def _chance(
    player: TablesPlayer, known: Known, judged: Workload, held: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """By how much the rows of a finite table depart from independence by chance, squared.

    It is the variance of a count beyond what the counts of its literals explain.

    Args:
        player: who fitted the model.
        known: what was measured.
        judged: conjunctions.
        held: the share of every term's literal.
    """
    begin = judged.start[:-1]
    answers = np.multiply.reduceat(held, begin)
    explained = answers**2 * (1.0 + np.add.reduceat((1.0 - held) / held, begin))
    # Where persons weigh the same, the total is in parts of a person. Where records have weights,
    # as few of them as can be stand behind the total: the rest of their spread is not known.
    people = player.total(known) / player.plan.budget.unit.chance
    found: npt.NDArray[np.float64] = np.maximum(answers - explained, 0.0) / people
    return found


def _is_chance(player: TablesPlayer, known: Known, judged: Workload) -> bool:
    """Whether chance is all that the measured pairs show of a dependence.

    Where columns depend on one another, the disagreement of fits stands for chance.
    """
    return not (player.dependence(known).found or judged.is_parity.any())


def _chance_of_three(
    model: Mixture, judged: Workload, asked: int, people: float
) -> npt.NDArray[np.float64]:
    """What rows depart by chance from all that pairs can say, squared, for unasked triples.

    Pairs are measured, and triples were not asked for, so nothing but pairs speaks for them. Of
    n rows in which three literals hold with the shares p, q and r, the part of a triple's share
    that no pair explains has the variance p(1−p)·q(1−q)·r(1−r)/n.
    """
    unasked = (np.diff(judged.start) == MOST_LITERALS) & (np.arange(len(judged)) >= asked)
    if not unasked.any():
        return np.zeros(len(judged))
    literals = judged.literals
    terms = 2 * np.arange(len(literals.attribute))[:, None]
    share = model.answers(Workload.conjunctions(judged.schema, literals, terms))
    scatter = np.maximum(share * (1.0 - share), 0.0)[judged.terms >> 1]
    return np.where(unasked, np.multiply.reduceat(scatter, judged.start[:-1]) / people, 0.0)


def _with_parts(asked: Workload, generator: np.random.Generator) -> Workload:
    """The asked queries, and some that have only one or two of their terms."""
    lengths = np.diff(asked.start)
    starts, terms = [asked.start], [asked.terms]
    for k in (1, 2):
        able = np.flatnonzero((lengths >= k) & ~asked.is_parity)
        if not len(able):
            continue
        chosen = able[generator.integers(0, len(able), NARROW)]
        place = generator.integers(0, lengths[chosen])[:, None]
        if k == 2:
            other = place[:, 0] + generator.integers(1, lengths[chosen])
            place = np.column_stack([place, other % lengths[chosen]])
        starts.append(starts[-1][-1] + k * np.arange(1, NARROW + 1))
        terms.append(asked.terms[asked.start[chosen][:, None] + place].reshape(-1))
    start = np.concatenate(starts)
    is_parity = np.zeros(len(start) - 1, dtype=bool)
    is_parity[: len(asked)] = asked.is_parity
    return Workload(asked.schema, asked.literals, start, np.concatenate(terms), is_parity)
