"""What a user calls: settings in, a release out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from dualquery.base.errors import ReleaseError
from dualquery.domain.about import About
from dualquery.domain.schema import Schema
from dualquery.engines.engine import open_engine
from dualquery.estimator import stages
from dualquery.estimator.conventions import Estimator, as_schema
from dualquery.estimator.run import Run
from dualquery.estimator.settings import Asked, Mechanism, Tuning
from dualquery.estimator.stages import Notice, Progress
from dualquery.estimator.watching import Watch, watched
from dualquery.game.plan import Plan
from dualquery.oracles.certificates import CONFIDENCE
from dualquery.oracles.oracle import Oracle
from dualquery.release.directory import check_free, write_release
from dualquery.release.frames import FrameStyle
from dualquery.release.release import Release
from dualquery.release.resuming import finish, telling
from dualquery.workloads.generators import read_workload

LIKE_INPUT = (
    "like_input: samples will carry the column types of the private table, which the privacy "
    "statement does not cover; do not publish them"
)


PAPER = {
    "neighbours": "add-remove",
    "player": "record",
    "refit": False,
    "errors": False,
    "free": "zero",
    "bits": True,
}
"""What `DualQuery.paper` sets, besides the accountant."""


def listed(workload: str | Path | Asked) -> Asked:
    """A workload, or how to make it; a file is read when the schema is known."""
    if isinstance(workload, str | Path):
        file = workload
        return lambda schema: read_workload(file, schema)
    return workload


@dataclass(frozen=True)
class DualQuery(Estimator):
    """Release answers to many queries, and a synthetic table, under differential privacy.

    Guarantee: the release is (ε, δ)-differentially private for the stated neighbours, whatever
    the table, the workload and the oracle, provided the schema was declared without the table.
    A schema with a `[binary_columns] pattern` takes column names from the table's header: it is
    refused unless `public_header` says that the header is public, and the statement says so.

    Attributes:
        epsilon: ε, the budget of the release; None with alpha, for whatever its run costs.
        delta: δ, the budget's second figure; far below one over the number of rows.
        neighbours: "replace-one" (the number of rows is public) or "add-remove".
        accountant: the theorem that states ε: gaussian, zcdp, per-round, advanced or pure.
        rows: the public reference size that add-remove neighbours need; with weights, about
            what they add up to.
        seed: makes a run repeatable, for experiments, and therefore NOT PRIVATE.
        unit: the column that names the person of a row: all rows of a person are then protected
            together. Left out, each row is protected for itself.
        most_records: the most rows of one person that are counted; others are left out.
        weigh: what counts once where there is a unit: "record", every row that is kept, or
            "person", every person, shared by their rows.
        weight: the column that holds the weight of a row, as surveys have it: answers are then
            weighted shares. Left out, all rows weigh the same.
        weight_bound: the most that one row may weigh; larger weights are cut, and noise grows
            with it.
        player: "model" or "record" (the paper's); left out, planned from public quantities.
        refit: whether a model is fitted to the draws of a record player at the end; left out, it
            is, unless alpha or beta is given, which speak of the records.
        errors: whether standard errors are worked out.
        rounds: of a game of draws; left out, planned.
        samples: draws per round; left out, planned.
        eta: learning rate of the query player; left out, planned.
        alpha: the accuracy that the paper's Algorithm 2 is asked for; it sets rounds, samples and
            eta by the accuracy theorem and needs player = "record". Left out while beta is
            given, it is the smallest that the budget is promised.
        beta: the probability with which that accuracy may fail; left out, 0.05.
        queries: how many random marginals are asked where `fit` gets no workload.
        k: how many attributes each of them names.
        positive: whether they hold positive literals only, as the paper defines marginals.
        parities: ask for random parities of so many bits.
        parity_share: the share of the random queries that are parities; left out, all of them.
        marginals: ask for whole marginals of so many attributes instead, such as (1, 2).
        focus: names of attributes whose queries count ten times as much as others.
        oracle: how the record player finds records: a name, or an oracle of your own.
        time_limit: the seconds that one call of a solver may take; left out, the solver's own.
        bits: whether every value is a 0/1 column of its own, as in the paper, so that records
            are free bits; a release has these columns then.
        certify: the accuracy that the record player's records are certified for.
        free: what attributes take in records that no draw names: default, zero or random; or
            measured, by one-way tables that are measured with the first draws.
        free_share: the share of the budget that these tables take; left out, 0.05.
        out_of_domain: what happens to cells outside their domain: refuse, clamp or missing.
        engine: "local", or "dask"; it changes no result.
        scheduler: the address of a Dask scheduler.
        public_header: that the header of the table is public.
        measure: whether whole marginals are measured, with exact noise, where they are
            affordable. Draws then only say which. Without it the draws say everything.
        start: an earlier release, or a public table with all or some of the columns. The fit
            leans on it as far as the measured tables agree with it.
        known: publicly known shares, as a file or as lines such as `sex=Female = 0.512`; the
            model obeys them.
    """

    epsilon: float | None
    delta: float
    neighbours: str = "replace-one"
    accountant: str = "gaussian"
    rows: int | None = None
    seed: int | None = None
    unit: str | None = None
    most_records: int | None = None
    weigh: str = "record"
    weight: str | None = None
    weight_bound: float | None = None
    player: str | None = None
    refit: bool | None = None
    errors: bool = True
    rounds: int | None = None
    samples: int | None = None
    eta: float | None = None
    alpha: float | None = None
    beta: float | None = None
    queries: int | None = None
    k: int | None = None
    positive: bool = False
    parities: int | None = None
    parity_share: float | None = None
    marginals: Sequence[int] | str | None = None
    focus: str | Sequence[str] = ()
    oracle: str | Oracle = "annealing"
    time_limit: float | None = None
    bits: bool = False
    certify: float | None = None
    free: str = "default"
    free_share: float | None = None
    out_of_domain: str = "refuse"
    engine: str = "local"
    scheduler: str | None = None
    public_header: bool = False
    measure: bool = True
    start: object = None
    known: str | Path | tuple[str, ...] | None = None

    @classmethod
    def paper(
        cls,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        alpha: float | None = None,
        beta: float | None = None,
        **settings: Any,
    ) -> Self:
        """The algorithm as the paper prints it: its records are the answer, with nothing added.

        With `alpha` (and `beta`) alone it is Algorithm 2, and the release says which ε that costs.
        With `epsilon` and `delta` the accuracy theorem says which α the budget is promised. With
        `eta` and `samples`, or `rounds`, it is the algorithm as the paper's experiments run it,
        which promise no accuracy. The paper's two privacy theorems count: the second one where
        there is a δ, else the first.

        Args:
            epsilon: the budget; left out, whatever `alpha` costs.
            delta: the budget's δ.
            alpha: the accuracy; left out, the smallest that the budget is promised.
            beta: the probability with which it may fail; left out, 0.05.
            settings: any other of this class. `rows`, the public reference size, is needed: the
                paper's neighbours add or remove a record. `bits=False` plays valid records.
        """
        given = {name: settings.get(name) for name in ("rounds", "samples", "eta")}
        if alpha is None and beta is None and all(value is None for value in given.values()):
            beta = CONFIDENCE
        preset = {**PAPER, "accountant": "advanced" if delta else "pure", **settings}
        return cls(epsilon, delta, alpha=alpha, beta=beta, **preset)

    @property
    def mechanism(self) -> Mechanism:
        """What decides the promise."""
        return Mechanism(**{one.name: getattr(self, one.name) for one in fields(Mechanism)})

    @property
    def tuning(self) -> Tuning:
        """What sets accuracy and speed."""
        return Tuning(**{one.name: getattr(self, one.name) for one in fields(Tuning)})

    def fit(
        self,
        table: object,
        *,
        schema: Schema | str | Path,
        workload: str | Path | Asked = None,
        directory: str | Path | None = None,
        resume: bool = False,
        ledger: str | Path | None = None,
        note: str | None = None,
        about: About | Mapping[str, str] | None = None,
        like_input: bool = False,
        progress: Watch = None,
        notice: Notice = lambda line: None,
    ) -> Release:
        """Run the job on a table.

        Args:
            table: a pandas, polars (also lazy) or pyarrow frame, anything with an Arrow stream such
                as a DuckDB relation, a data set of `datasets`, a dictionary of columns, a SciPy
                sparse 0/1 matrix, or the path of a file or folder.
            schema: the declared domain of every column to be used, or the path of a schema file.
            workload: the queries, a file of queries, one per line, or a function of the schema as
                resolved against the table.
            directory: where the draws are kept while the run lasts, so that it can be resumed.
            resume: continue the run found there.
            ledger: a budget ledger that the release is charged to before its first draw.
            note: what the ledger says of the release; left out, the path of the directory.
            about: title, description, publisher, date, contact, licence, citation and url, as
                far as they are known; the schema's `[about]` says the rest.
            like_input: NOT PRIVATE: samples carry the column types of the table, not those that
                follow from the schema. No draw pays for that, and a type can depend on one cell.
            progress: True for a bar, False for none; left out, there is a bar in a notebook. Or a
                function that is called with a stage, what is done of it, and its total.
            notice: called with a line for each thing that the curator should know before the
                first draw, such as a budget that promises little. The statement's `warnings`
                repeats those about the budget. A line that begins with NOT PRIVATE is for the
                curator alone.
        """
        if like_input:
            warnings.warn(LIKE_INPUT, stacklevel=2)
        declared = as_schema(schema)
        said = declared.about.under(About.of(about))
        folder = None if directory is None else Path(directory)
        run = Run(folder, resume=resume, ledger=ledger, note=note)
        with telling(folder), ExitStack() as held, watched(progress) as told:
            made = self._made(table, declared, listed(workload), run, told, notice, held)
            run.settle(notice)
        style = FrameStyle.of(table, like_input=like_input)
        return self._keep(replace(made, style=style, about=said))

    def release(
        self,
        table: object,
        out: str | Path,
        *,
        schema: Schema | str | Path,
        workload: str | Path | Asked = None,
        resume: bool = False,
        ledger: str | Path | None = None,
        note: str | None = None,
        about: About | Mapping[str, str] | None = None,
        overwrite: bool = False,
        progress: Watch = None,
        notice: Notice = lambda line: None,
    ) -> Release:
        """Fit and write the release directory; a run that is killed can be resumed.

        While it lasts, the draws are kept in `OUT.partial`. Whatever stops it, `resume` ends in the
        same release, for the same charge.

        Args:
            table: as in `fit`.
            out: the directory to write.
            schema: as in `fit`.
            workload: as in `fit`.
            resume: continue the run found in `OUT.partial`.
            ledger: as in `fit`.
            note: as in `fit`.
            about: as in `fit`.
            overwrite: replace an earlier release.
            progress: as in `fit`.
            notice: as in `fit`.
        """
        declared = as_schema(schema)
        said = declared.about.under(About.of(about))
        path = Path(out)
        partial = Path(f"{path}.partial")
        workload = listed(workload)
        run = Run(partial, resume=resume, ledger=ledger, note=note)
        with telling(partial), ExitStack() as held, watched(progress) as told:
            if resume:
                finished = finish(path, partial, run.promised(self.mechanism), ledger)
                if finished is not None:
                    return self._keep(replace(finished, style=FrameStyle.of(table)))
                if path.exists() and not partial.exists() and not overwrite:
                    raise ReleaseError(
                        f"there is no unfinished run at {str(partial)!r}; {str(path)!r} exists and "
                        "may be what it ended in"
                    )
            check_free(path, overwrite=overwrite)
            made = self._made(table, declared, workload, run, told, notice, held)
            made = replace(made, about=said)
            told("writing the release", 0, 0)
            write_release(made, path, overwrite=overwrite, ready=run.journal.publish)
            run.settle(notice)
        return self._keep(replace(made, style=FrameStyle.of(table)))

    def plan(self, rows: int, schema: Schema, workload: str | Path | Asked = None) -> Plan:
        """What a run on a table of `rows` rows would do; reads no data.

        Args:
            rows: of the table, or the reference of add-remove neighbours.
            schema: the declared domain.
            workload: as in `fit`.
        """
        outline = self.tuning.outline(schema, listed(workload))
        budget = self.mechanism.budget(rows * self.mechanism.protected.parts)
        return self.tuning.plan(budget, schema, outline.queries, outline.shape, outline.named)

    def _made(
        self,
        table: object,
        schema: Schema,
        workload: Asked,
        run: Run,
        progress: Progress,
        notice: Notice,
        held: ExitStack,
    ) -> Release:
        """The four stages. The journal stays open: until it is settled nobody else may go on."""
        mechanism, tuning = self.mechanism, self.tuning
        job = stages.prepare(table, schema, workload, mechanism, tuning, notice)
        for line in run.warnings:
            notice(line)
        with open_engine(self.engine, self.scheduler) as engine:
            if run.resume and not mechanism.protected.size_is_public:
                progress(
                    f"resuming ({mechanism.neighbours}, private size: that the table is the same "
                    "cannot be checked)",
                    0,
                    0,
                )
            progress("counting queries", 0, 0)
            ready = stages.count(job, engine, mechanism, tuning, notice)
            transcript = stages.play(job, ready, engine, run, mechanism, tuning, progress, held)
        made = stages.finish(job, ready, transcript, mechanism, tuning, progress)
        return replace(made, ledger=run.mark)
