"""The questions of `questions`, with names and texts in place of positions and formulas."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from dualquery.base.checks import as_float, refusal
from dualquery.base.errors import QueryError, SchemaError
from dualquery.base.stored import Json
from dualquery.domain.formulas import AllOf, AnyOf, Formula, Not, parse_formula
from dualquery.domain.query import Query
from dualquery.domain.schema import Schema
from dualquery.release.asking.figure import Figure
from dualquery.release.asking.questions import CrossTable, Questions, named
from dualquery.release.unknown import Unknown

if TYPE_CHECKING:  # an answer is a number: it does not wait for frames
    from dualquery.release.asking.partly import Partly
    from dualquery.release.frames import Frame, FrameStyle

Question = str | Query | Not | AllOf | AnyOf
"""A question as text, or as `parse` and `parse_formula` read it."""


class Askable:
    """What a statistician asks of a release: every figure says how far it may be off."""

    schema: Schema
    style: FrameStyle

    @cached_property
    @abstractmethod
    def questions(self) -> Questions:
        """What the figures are computed from."""

    @abstractmethod
    def refuse_unknown(self, attributes: Collection[int]) -> None:
        """Refuse a question on attributes that no query of the release names."""

    def answer(
        self, query: Question, *, given: Question | None = None, unknown: str = "refuse"
    ) -> Figure:
        """The share of the population that satisfies a query: a float that knows its error.

        Args:
            query: such as `sex=Female & (age>=50 | smoker)`. One limit of a plain conjunction
                may lie inside a bin, here or in `given`; the interval is then wider.
            given: a condition; the share is then that among the records that satisfy it.
            unknown: a query on an attribute that no query of the release names is refused. With
                "default" the answer supposes that this attribute has its declared default, which
                tells nothing about the private table.
        """
        from dualquery.release.asking.cutting import InsideBin, read_question, share_inside

        found = read_question(query, self.schema) if isinstance(query, str) else query
        questions, condition, names = self._among("given", given)
        if isinstance(found, InsideBin):
            self._check(unknown, named(found.query) | names)
            if questions is not self.questions:
                raise QueryError(
                    "the query and the condition both have a limit inside a bin; one of them has "
                    "to keep to edges"
                )
            return share_inside(self.questions, found, condition)
        asked = self._formula("query", found)
        self._check(unknown, named(asked) | names)
        return questions.share(asked, condition)

    def answer_with_error(
        self, query: Question, *, given: Question | None = None, unknown: str = "refuse"
    ) -> tuple[float, float | None]:
        """An answer, and its standard error if the release knows it.

        About 95 of 100 true answers lie within 1.96 standard errors; see `game.rehearsal`. A query
        on an attribute that no drawn query names has no standard error.
        """
        found = self.answer(query, given=given, unknown=unknown)
        return float(found), found.standard_error

    def table(self, *columns: str, where: Question | None = None, unknown: str = "refuse") -> Frame:
        """A cross table: one row per cell with its share and an interval for it.

        Args:
            columns: the columns; a bin is written as the query language writes it.
            where: a condition; shares are then those among the records that satisfy it.
            unknown: as in `answer`.

        Returns:
            A frame of the columns, and of `share`, `low` and `high`. About 95 of 100 true shares
            lie between `low` and `high`; both are missing where the error is unknown.
        """
        from dualquery.release.asking.labels import labelled

        found = self.cross_table(*columns, where=where, unknown=unknown)
        return self.style.plain(labelled(found, self.schema))

    def cross_table(
        self, *columns: str, where: Question | None = None, unknown: str = "refuse"
    ) -> CrossTable:
        """The same as arrays, one axis per column."""
        places = self._columns(columns)
        questions, condition, names = self._among("where", where)
        self._check(unknown, names | set(places))
        return questions.table(places, condition)

    def mean(
        self, column: str, *, where: Question | None = None, unknown: str = "refuse"
    ) -> Figure:
        """The mean of a column of numbers; missing cells do not count.

        A bin counts with the mean of the numbers that `sample` writes into it.

        Args:
            column: the column.
            where: a condition on the records.
            unknown: as in `answer`.
        """
        (place,) = self._columns([column])
        questions, condition, names = self._among("where", where)
        self._check(unknown, names | {place})
        return questions.mean(place, condition)

    def quantile(
        self,
        column: str,
        shares: float | Iterable[float] = 0.5,
        *,
        where: Question | None = None,
        unknown: str = "refuse",
    ) -> Frame:
        """Quantiles of a column of numbers, the median by default; missing cells do not count.

        Args:
            column: the column.
            shares: one share or several, each between 0 and 1.
            where: a condition on the records.
            unknown: as in `answer`.

        Returns:
            A figure for one share, a list of figures for several.
        """
        (place,) = self._columns([column])
        alone = isinstance(shares, int | float)
        wanted = _shares([shares] if isinstance(shares, int | float) else shares)
        questions, condition, names = self._among("where", where)
        self._check(unknown, names | {place})
        found = questions.quantiles(place, wanted, condition)
        return found[0] if alone else found

    def correlation(
        self, first: str, second: str, *, where: Question | None = None, unknown: str = "refuse"
    ) -> Figure:
        """Pearson's correlation of two columns of numbers; rows with a missing cell do not count.

        Args:
            first: a column.
            second: another column.
            where: a condition on the records.
            unknown: as in `answer`.
        """
        places = self._columns([first, second], repeats=True)
        condition = None if where is None else self._formula("where", where)
        self._check(unknown, named(condition, places))
        return self.questions.correlation(places[0], places[1], condition)

    def describe(
        self,
        *columns: str,
        where: Question | None = None,
        by: str | None = None,
        unknown: str = "refuse",
    ) -> Frame:
        """Mean and quartiles of columns of numbers, with intervals.

        Args:
            columns: the columns.
            where: a condition on the records.
            by: a column; there are then rows for each of its values.
            unknown: as in `answer`.

        Returns:
            A frame with one row per figure: `column`, the column of `by` if there is one,
            `figure` (mean, q25, median, q75), `value`, `low` and `high`.
        """
        import pyarrow as pa

        rows = self.description(*columns, where=where, by=by, unknown=unknown)
        return self.style.plain(pa.Table.from_pylist(rows))

    def description(
        self,
        *columns: str,
        where: Question | None = None,
        by: str | None = None,
        unknown: str = "refuse",
    ) -> list[Json]:
        """The same as plain rows."""
        from dualquery.release.asking.summaries import described, groups_of

        places = self._columns(columns)
        questions, condition, names = self._among("where", where)
        groups: list[tuple[Json, Formula | None]] = [({}, condition)]
        if by is not None:
            (place,) = self._columns([by])
            groups = groups_of(self.schema, place, condition)
            self._check(unknown, [place])
        self._check(unknown, names | set(places))
        if where is not None:
            questions.refuse_impossible(condition)
            for column, place in zip(columns, places, strict=True):
                if not questions.has_numbers(place, condition):
                    raise QueryError(
                        f"no record that satisfies the condition has a number in {column!r}"
                    )
        return [
            {"column": column, **label, **row}
            for column, place in zip(columns, places, strict=True)
            for label, group in groups
            for row in described(questions, place, group)
        ]

    # What the caller wrote

    def _among(
        self, name: str, question: Question | None
    ) -> tuple[Questions | Partly, Formula | None, set[int]]:
        """Whom to ask about the records of a condition, with what condition, and what it names."""
        from dualquery.release.asking.cutting import InsideBin, read_question

        if question is None:
            return self.questions, None, set()
        found = read_question(question, self.schema) if isinstance(question, str) else question
        if isinstance(found, InsideBin):
            from dualquery.release.asking.partly import Partly

            return Partly(self.questions, found), None, set(named(found.query))
        condition = self._formula(name, found)
        return self.questions, condition, set(named(condition))

    def _formula(self, name: str, question: object) -> Formula:
        if isinstance(question, str):
            return parse_formula(question, self.schema)
        if isinstance(question, Query | Not | AllOf | AnyOf):
            return question
        hint = "; for many at once see answers(workload)" if name == "query" else ""
        raise refusal(name, question, f"the text of one query{hint}")

    def _columns(self, columns: Sequence[str], *, repeats: bool = False) -> list[int]:
        if not columns:
            raise QueryError("no column; expected the name of at least one")
        for position, column in enumerate(columns):
            if not isinstance(column, str):
                raise refusal("column", column, "the name of a column")
            if not repeats and column in columns[:position]:
                raise QueryError(f"column {column!r} is named twice")
        try:
            return [self.schema.position(column) for column in columns]
        except SchemaError as error:
            raise QueryError(str(error)) from None

    def _check(self, unknown: str, attributes: Collection[int]) -> None:
        if Unknown.parse(unknown) is Unknown.REFUSE:
            self.refuse_unknown(attributes)


def _shares(wanted: object) -> list[float]:
    """Shares that quantiles are asked for."""
    if not isinstance(wanted, Iterable) or isinstance(wanted, str):
        raise refusal("shares", wanted, "numbers from 0 to 1")
    found = [as_float("shares", share) for share in wanted]
    for share in found:
        if not 0.0 <= share <= 1.0:
            raise refusal("shares", share, "numbers from 0 to 1")
    return found
