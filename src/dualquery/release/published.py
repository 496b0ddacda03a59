"""What a run publishes, and what can be asked of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self, overload

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import refusal, whole
from dualquery.base.errors import ParameterError, QueryError
from dualquery.base.html import html_table
from dualquery.base.stored import Json
from dualquery.domain.about import NOTHING, About
from dualquery.domain.diagrams import Diagram
from dualquery.domain.query import Query
from dualquery.domain.schema import Schema
from dualquery.game.transcript import Transcript
from dualquery.model.arranging import targets_of
from dualquery.model.corrections import Ratios, corrections
from dualquery.model.mixture import Mixture
from dualquery.model.standard_errors import ErrorTable
from dualquery.privacy.rounding import rounded_up
from dualquery.privacy.statement import PrivacyStatement, four_digits
from dualquery.release import stamps
from dualquery.release.answering import Answering
from dualquery.release.asking.askable import Question
from dualquery.release.asking.labels import answer_table
from dualquery.release.asking.questions import named
from dualquery.release.certificate import Certificate
from dualquery.release.frames import Frame, FrameStyle, decode
from dualquery.release.parameters import RunParameters
from dualquery.release.settling import settled_model, settled_records
from dualquery.release.synthetic import rows_of_model, rows_of_records
from dualquery.release.unknown import Unknown, listed
from dualquery.workloads.actions import Actions
from dualquery.workloads.matching import mean_answers
from dualquery.workloads.workload import Workload

if TYPE_CHECKING:  # whoever only asks for figures does not wait for ledgers
    from dualquery.privacy.ledger import Mark


@dataclass(frozen=True, eq=False)
class Published(Answering):
    """The published outcome of a run.

    Everything here was computed from the draws alone, so everything may be published. Answers and
    samples come from the fitted model if there is one, else from the game's records.

    Attributes:
        schema: the attributes.
        actions: the queries that could be drawn.
        transcript: what was drawn, and how the data player answered.
        privacy: what is promised.
        parameters: how the run was set up.
        model: the fitted model, if there is one.
        errors: the standard errors of its answers, if they were estimated.
        certificate: what the accuracy theorem proves about the records of the game, if asked for.
        style: the kind of frame that `sample` returns.
        about: who publishes it, and under which name and terms.
        ledger: the moment of the ledger that it was charged to, if there was one.
    """

    schema: Schema
    actions: Actions
    transcript: Transcript
    privacy: PrivacyStatement
    parameters: RunParameters
    model: Mixture | None = None
    errors: ErrorTable | None = None
    certificate: Certificate | None = None
    style: FrameStyle = field(default_factory=FrameStyle)
    about: About = NOTHING
    ledger: Mark | None = None

    @cached_property
    def workload(self) -> Workload:
        """The queries that were asked."""
        return self.actions.workload

    @property
    def file_notes(self) -> dict[str, str]:
        """The notes of a file made from this release, if its format has a place for them."""
        return {
            **stamps.notes(self.privacy.stamp),
            **({"unknown": json.dumps(self.unknown)} if self.unknown else {}),
        }

    def standard_errors(self, workload: Workload) -> npt.NDArray[np.float64] | None:
        """The standard error of each answer to a workload; None if the release knows none.

        It is NaN for a query on an attribute that no drawn query names, because there the model
        only repeats what it was started with. A query that joins several codes, such as a range,
        has the error of their sum, if that is larger.
        """
        if self.errors is None:
            return None
        errors = self.errors.of_answers(
            workload, self.answers(workload, unknown="default"), self.pair_kinds
        )
        for number in workload.joining.tolist():
            errors[number] = max(errors[number], self.questions.joined(workload.query(number)))
        undrawn = self.times_drawn[workload.literals.attribute] == 0
        blind = np.logical_or.reduceat(undrawn[workload.terms >> 1], workload.start[:-1])
        return np.where(blind, np.nan, errors)

    @overload
    def answers(
        self,
        workload: Workload | None = None,
        *,
        unknown: str = "refuse",
        frame: Literal[False] = False,
    ) -> npt.NDArray[np.float64]: ...

    @overload
    def answers(
        self,
        workload: Workload | None = None,
        *,
        unknown: str = "refuse",
        frame: Literal[True],
    ) -> Frame: ...

    def answers(
        self,
        workload: Workload | None = None,
        *,
        unknown: str = "refuse",
        frame: bool = False,
    ) -> Frame:
        """The released answers to a workload; without one, to that of the release.

        Args:
            workload: the queries.
            unknown: for attributes that no query of the release names, as in `answer`.
            frame: whether to return a frame with the text of each query, its share, its standard
                error and its interval, rather than an array of shares.
        """
        asked = self.workload if workload is None else workload
        if not isinstance(asked, Workload):
            raise ParameterError(
                f"workload is a {type(asked).__name__}; expected a Workload; see read_workload"
            )
        if Unknown.parse(unknown) is Unknown.REFUSE and workload is not None:
            self.refuse_unknown(_attributes(workload))
        if self.model is not None:
            found = self.model.answers(asked)
        else:
            found = mean_answers(asked, self.records)
        if not frame:
            return found
        return self.style.plain(answer_table(asked, found, self.standard_errors(asked)))

    def sample(
        self,
        rows: int,
        *,
        where: Question | None = None,
        seed: int | None = None,
        kind: str | None = None,
        independent: bool = False,
    ) -> Frame:
        """Synthetic rows, in the kind of frame that the release was fitted on.

        The types of the columns follow from the schema: text, whole numbers (int64), decimal
        numbers (float64), booleans, dates, timestamps and times of day, and for a column that may
        have missing cells a type that can hold them.

        Rows are arranged: together they answer the asked queries nearly as the model does (or the
        game's records, if the release has no model), much nearer than independent draws would.
        A numeric cell lies in its bin as `within` says. Columns in `unknown` hold their declared
        default.

        Args:
            rows: how many.
            where: a query that all of them satisfy.
            seed: fixes this sampling only, which needs no privacy.
            kind: "pandas", "polars" or "pyarrow": another kind of frame, such as for a release
                that was read from its directory, which gives pyarrow tables.
            independent: draw every row independently of the others, as a survey would.
        """
        style = self.style if kind is None else FrameStyle.named(kind)
        generator = np.random.default_rng(seed)
        codes = self.sample_codes(rows, generator, where, independent=independent)
        table = decode(codes, self.schema, generator, self.within, independent=independent)
        return style.frame(table, self.schema)

    def sample_codes(
        self,
        rows: int,
        generator: np.random.Generator,
        where: Question | None = None,
        *,
        independent: bool = False,
    ) -> npt.NDArray[np.int32]:
        """Synthetic rows as codes; see `sample`.

        Args:
            rows: how many.
            generator: of this sampling, which needs no privacy.
            where: a question that all of them answer with yes.
            independent: whether each is drawn for itself, not arranged with the others.
        """
        asked: object = rows
        if isinstance(asked, str):  # `whole` would read '10', and sample('10') is a slip
            raise refusal("rows", asked, "a whole number")
        rows = whole("rows", rows)
        parts = [] if where is None else self._disjoint_parts(where)
        if self._row_model is not None:
            if independent:
                return rows_of_model(self._row_model, rows, generator, None, parts)
            return rows_of_model(
                self._row_model, rows, generator, self._targets, parts, self._corrected
            )
        return rows_of_records(
            self._row_records, rows, generator, self.schema, parts, independent=independent
        )

    def _disjoint_parts(self, where: Question) -> list[Query]:
        """Conjunctions, one of which holds where the condition does; none if it always does."""
        condition = self._formula("where", where)
        self.refuse_unknown(named(condition))
        parts = Diagram.of(condition, self.schema).parts()
        if not parts:
            raise QueryError("no record can satisfy the condition")
        return [] if parts == [()] else [Query("conjunction", part) for part in parts]

    @cached_property
    def _targets(self) -> list[tuple[int, ...]]:
        """The sets of attributes whose marginals arranged rows keep near the model's."""
        return targets_of(self.workload)

    @cached_property
    def _row_model(self) -> Mixture | None:
        """The model that rows are drawn from: one that settled what determines what."""
        return None if self.model is None else settled_model(self.model)

    @cached_property
    def _row_records(self) -> npt.NDArray[np.int32]:
        """The records that rows are drawn from: they obey what determines what."""
        return settled_records(self.records, self.schema)

    @cached_property
    def _corrected(self) -> Ratios:
        """Measured pairs that the model does not express; arranged rows follow the tables."""
        model = self._row_model
        return {} if model is None else corrections(model, self.transcript.measurements)

    def with_model(self, model: Mixture, errors: ErrorTable | None) -> Self:
        """The same release with another model. This is post-processing, and costs no privacy."""
        return replace(self, model=model, errors=errors)

    def with_about(self, about: About | Mapping[str, str]) -> Self:
        """The same release with another title, publisher and so on, or with some of them."""
        return replace(self, about=self.about.under(About.of(about)))

    @property
    def promise(self) -> str:
        """What the release promises, in a few words."""
        privacy = self.privacy
        told = f"differentially private with ε = {four_digits(privacy.epsilon)}"
        if privacy.delta and privacy.accountant != "pure":
            told += f" and δ = {rounded_up(privacy.delta)}"
        return privacy.stamp or told

    @property
    def citation(self) -> str:
        """How to cite the release."""
        return self.about.cited(self.promise)

    def summary(self) -> Json:
        """The figures of the release, as plain data."""
        return {
            "privacy": self.privacy.to_dict(),
            "parameters": self.parameters.to_dict(),
            "source": self.source,
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "unknown": list(self.unknown),
        }

    def _repr_html_(self) -> str:
        """The release as notebooks show it."""
        unknown = f"{len(self.unknown):,}: {listed(self.unknown)}" if self.unknown else "none"
        return html_table(
            "Release",
            ["", ""],
            [
                ["privacy", f"ε = {four_digits(self.privacy.epsilon)}, δ = "
                f"{rounded_up(self.privacy.delta)} {self.privacy.stamp}"],
                ["neighbours", self.privacy.neighbours],
                ["attributes", f"{len(self.schema):,}"],
                ["queries", f"{len(self.workload):,}"],
                ["answers come from", f"the {self.source}"],
                ["standard errors", "unknown" if self.errors is None else "known"],
                ["attributes that it knows nothing about", unknown],
                ["ask it", "answer, table, mean, quantile, describe, correlation, sample, save"],
            ],
        )  # fmt: skip

    def __repr__(self) -> str:
        stamp = f", {self.privacy.stamp}" if self.privacy.stamp else ""
        return (
            f"<Release of {len(self.workload):,} queries on {len(self.schema):,} attributes, "
            f"ε = {four_digits(self.privacy.epsilon)}, δ = {rounded_up(self.privacy.delta)}{stamp}>"
        )


def _attributes(workload: Workload) -> list[int]:
    """The attributes that a workload names."""
    return [int(a) for a in np.unique(workload.literals.attribute[workload.terms >> 1])]
