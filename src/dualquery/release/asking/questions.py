"""The questions themselves: a share, a cross table, a mean, a quantile, a correlation.

Each is computed exactly from the components that the release answers from. Each standard error
follows from those of the shares of the cells involved, by the rule of `spread`. It covers the noise
of the release and what the model misses. Where numbers lie inside a bin is covered only if the
release measured it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.domain.diagrams import Diagram, classes
from dualquery.domain.formulas import AllOf, Formula, Not, literals_of
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema
from dualquery.model.bends import bends
from dualquery.model.pair_kinds import PairKinds
from dualquery.model.spread import free_variances, standard_errors
from dualquery.model.standard_errors import MOST_LITERALS, ErrorTable
from dualquery.release.asking.figure import WITHIN, Figure
from dualquery.release.asking.probabilities import cells, share
from dualquery.release.components import Components, shares

if TYPE_CHECKING:  # shares of records need no numbers inside bins
    from dualquery.release.asking.inside import Numbers
    from dualquery.release.within import Within

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MOST_ATOMS = 20_000
"""With more atoms, only what is known about whole shares counts."""


@dataclass(frozen=True, eq=False)
class CrossTable:
    """Shares of the cells of some columns among the records that satisfy a condition.

    Attributes:
        columns: the attributes.
        share: one axis per column.
        low: the lower end of each share's interval; NaN where the error is unknown.
        high: the upper end.
    """

    columns: tuple[int, ...]
    share: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of some columns within a condition, and the rest of all records as one more cell.

    Attributes:
        joint: the share of each cell among all records.
        errors: the standard error of each, and at the end that of the rest; NaN where unknown.
        total: the share of all cells together.
    """

    joint: Floats
    errors: Floats
    total: float


@dataclass(frozen=True, eq=False)
class _Atoms:
    """All cells of some attributes: the finest that a question tells apart.

    A condition such as `age>=55` joins several of them. What the release knows about shares of
    that size is too sure of a sum of cells with independent noise, so the larger error counts. A
    dependence that is off moves many atoms together; see `model.bends`.

    Attributes:
        attributes: those of the axes.
        errors: the standard error of each atom.
        inside: which atoms satisfy the condition.
        leading: how many axes belong to the columns of the question.
        bends: how the atoms move if a dependence is off by its standard error, a row of all atoms
            per direction.
    """

    attributes: tuple[int, ...]
    errors: Floats
    inside: Bools
    leading: int
    bends: Floats

    @cached_property
    def free(self) -> Floats:
        """The variances of the atoms before they are made to add up to zero."""
        return free_variances(self.errors.reshape(-1)).reshape(self.errors.shape)

    def error(self, moves: Floats, elsewhere: float = 0.0) -> float:
        """The standard error of a figure that moves so with the atoms inside the condition."""
        shape = moves.shape + (1,) * (self.errors.ndim - moves.ndim)
        every = np.where(self.inside, moves.reshape(shape), elsewhere).reshape(-1)
        alone = standard_errors(every, self.errors.reshape(-1))
        return float(np.hypot(alone, np.linalg.norm(self.bends @ every)))

    def of_share(self, inside: Bools) -> float:
        """The standard error of the share of these atoms together."""
        own = float(self.free[inside].sum())
        square = max(own - own**2 / max(float(self.free.sum()), 1e-300), 0.0)
        together = self.bends @ inside.reshape(-1)
        return float(np.hypot(np.sqrt(square), np.linalg.norm(together)))

    def of_cells(self, ratio: Floats, total: float) -> Floats:
        """The standard error of each cell of the leading axes as a share of the condition."""
        free = self.free
        kept = np.where(self.inside, free, 0.0)
        own = kept.sum(axis=tuple(range(self.leading, kept.ndim)))
        rest = kept.sum() - own
        square = own * (1.0 - ratio) ** 2 + rest * ratio**2
        common = (own * (1.0 - ratio) - rest * ratio) ** 2 / max(float(free.sum()), 1e-300)
        held = (self.bends * self.inside.reshape(-1)).reshape(-1, *self.inside.shape)
        cells = held.sum(axis=tuple(range(1 + self.leading, held.ndim)))
        every = tuple(range(1, cells.ndim))
        whole = cells.sum(axis=every, keepdims=True)
        together = ((cells - ratio * whole) ** 2).sum(axis=0)
        found: Floats = np.sqrt(np.maximum(square - common, 0.0) + together) / total
        return found


@dataclass(frozen=True, eq=False)
class Questions:
    """What can be asked of a release.

    Attributes:
        schema: the attributes.
        components: what the release answers from.
        errors: the standard errors of shares, if the release knows them.
        drawn: per attribute, whether anything that was released names it.
        within: how the numbers of a column with bins lie inside them.
        kinds: how two attributes are known together.
        kept: cells that were asked about before.
    """

    schema: Schema
    components: Components
    errors: ErrorTable | None
    drawn: Bools
    within: Callable[[str], Within]
    kinds: PairKinds
    kept: dict[tuple[int, ...], _Atoms | None] = field(default_factory=dict)

    def share(self, formula: Formula, given: Formula | None = None) -> Figure:
        """The share of the records that satisfy a formula, among all or those of a condition."""
        if given is not None:
            return self._conditional(formula, given)
        diagram = Diagram.of(formula, self.schema)
        value = share(self.components, diagram)
        if isinstance(formula, Query):  # as the page and the answers to a workload have it
            named = [one.attribute for one in formula.literals]
            found = self._errors(named, np.array([value]), formula.kind == "parity")[0]
            return Figure.within(value, float(np.maximum(found, self.joined(formula))), 0.0, 1.0)
        if diagram.never:
            raise QueryError("no record can satisfy the query")
        if diagram.always:
            return Figure(1.0, 0.0, 1.0, 1.0)
        error = float(self._errors(diagram.decisive, np.array([value]))[0])
        atoms = self._atoms([], formula)
        if atoms is not None:
            error = max(error, atoms.of_share(atoms.inside))
        return Figure.within(value, error, 0.0, 1.0)

    def joined(self, query: Query) -> float:
        """What its finest cells say about the error of a conjunction that joins several codes.

        Shares of single cells are what the release knows the errors of. `age>=55` is a sum of them,
        and noise adds up: see `_Atoms`. It is 0 where nothing is joined, or the cells are too many.
        A literal that all codes except one satisfy joins nothing.
        """
        if query.kind != "conjunction" or self.errors is None:
            return 0.0
        sizes = {one.attribute: int(self.schema.sizes[one.attribute]) for one in query.literals}
        allowed = {one.attribute: one.allowed(sizes[one.attribute]) for one in query.literals}
        decisive = sorted(a for a, codes in allowed.items() if len(codes) < sizes[a])
        single = all(len(allowed[a]) in (1, sizes[a] - 1) for a in decisive)
        if not all(allowed.values()) or single:
            return 0.0
        atoms = self._whole(tuple(decisive))
        if atoms is None:
            return 0.0
        inside = np.zeros(atoms.errors.shape, dtype=bool)
        inside[np.ix_(*(sorted(allowed[a]) for a in decisive))] = True
        return atoms.of_share(inside)

    def _whole(self, attributes: tuple[int, ...]) -> _Atoms | None:
        """All cells of some attributes, kept for further questions."""
        if attributes not in self.kept:
            self.kept[attributes] = self._atoms(attributes, None)
        return self.kept[attributes]

    def _conditional(self, formula: Formula, given: Formula) -> Figure:
        condition = Diagram.of(given, self.schema)
        both = Diagram.of(AllOf((formula, given)), self.schema)
        neither = Diagram.of(AllOf((Not(formula), given)), self.schema)
        total = self._total(share(self.components, condition))
        value = share(self.components, both)
        if both.never or neither.never:
            certain = float(neither.never)
            return Figure(certain, 0.0, certain, certain)
        ratio = min(value / total, 1.0)
        moves = np.array([(1.0 - ratio) / total, -ratio / total, 0.0])
        errors = np.concatenate(
            [
                self._errors(both.decisive, np.array([value])),
                self._errors(neither.decisive, np.array([max(total - value, 0.0)])),
                self._rest(condition, total),
            ]
        )
        error = float(standard_errors(moves, errors))
        atoms = self._atoms([], given, more=both.decisive)
        if atoms is not None:
            inside = self._holding(AllOf((formula, given)), atoms.attributes)
            moves = (np.where(inside, 1.0, 0.0) - ratio) / total
            error = max(error, atoms.error(moves))
        return Figure.within(ratio, error, 0.0, 1.0)

    def table(self, columns: Sequence[int], where: Formula | None) -> CrossTable:
        """The distribution of some columns among the records that satisfy a condition."""
        found = self._cells(columns, where)
        ratio = found.joint / found.total
        own, rest = found.errors[:-1].reshape(ratio.shape), found.errors[-1]
        if where is None:
            errors = own
        else:
            others = self._errors(
                self._decisive(columns, where), np.maximum(found.total - found.joint, 0.0)
            )
            # A cell that cannot be, or that is the only one that can, has no error at all.
            possible = self._possible(columns, where)
            others = np.where(possible & (possible.sum() > 1), others, 0.0)
            moves = np.stack([(1.0 - ratio), -ratio, np.zeros_like(ratio)], axis=-1) / found.total
            three = np.stack([own, others, np.full(ratio.shape, rest)], axis=-1)
            certain = ~possible | (possible.sum() == 1)
            found_errors = standard_errors(moves, three)
            atoms = self._atoms(columns, where)
            if atoms is not None:
                found_errors = np.maximum(found_errors, atoms.of_cells(ratio, found.total))
            errors = np.where(certain, 0.0, found_errors)
        reach = WITHIN * errors
        return CrossTable(
            tuple(columns), ratio, np.maximum(ratio - reach, 0.0), np.minimum(ratio + reach, 1.0)
        )

    def mean(self, column: int, where: Formula | None) -> Figure:
        """The mean of the numbers in a column; missing cells do not count."""
        numbers = self._numbers(column, "a mean")
        found = self._cells([column], self._present([column], where))
        joint = found.joint[: len(numbers.mean)]
        value = float(joint @ numbers.mean) / found.total
        moves = np.append((numbers.mean - value) / found.total, 0.0)
        errors = np.append(found.errors[: len(numbers.mean)], found.errors[-1])
        inner = numbers.variance_of_mean(joint, self._all_shares(column, numbers))
        outer = float(standard_errors(moves, errors))
        atoms = self._atoms([column], self._present([column], where))
        if atoms is not None:
            outer = max(outer, atoms.error(self._padded(moves[:-1], column)))
        spread = float(np.hypot(outer, np.sqrt(inner)))
        return Figure.within(value, spread, numbers.least, numbers.most)

    def quantiles(
        self, column: int, wanted_shares: Sequence[float], where: Formula | None
    ) -> list[Figure]:
        """For each share, the number that this share of the column's numbers does not exceed.

        The interval is Woodruff's: a quantile is off by as much as the share below it is, so its
        ends are the quantiles at the share ± 1.96 standard errors of that share.
        """
        numbers = self._numbers(column, "a quantile")
        present = self._present([column], where)
        found = self._cells([column], present)
        joint = found.joint[: len(numbers.mean)]
        attributes = self._decisive([column], present)
        atoms = self._atoms([column], present)
        every = self._all_shares(column, numbers)
        figures = []
        for wanted in wanted_shares:
            value = numbers.quantile(joint, wanted)
            parts = found.total * np.array([wanted, 1.0 - wanted])
            errors = np.append(self._errors(attributes, parts), found.errors[-1])
            moves = np.array([1.0 - wanted, -wanted, 0.0]) / found.total
            inner = numbers.variance_of_share(joint, every, wanted)
            outer = float(standard_errors(moves, errors))
            if atoms is not None:
                below = (numbers.parts_below(joint, wanted) - wanted) / found.total
                outer = max(outer, atoms.error(self._padded(below, column)))
            reach = WITHIN * float(np.hypot(outer, np.sqrt(inner)))
            if np.isnan(reach):
                figures.append(Figure(value))
                continue
            low, high = (numbers.quantile(joint, wanted + sign * reach) for sign in (-1.0, 1.0))
            figures.append(Figure(value, None, low, high))
        return figures

    def correlation(self, first: int, second: int, where: Formula | None) -> Figure:
        """Pearson's correlation of two columns of numbers; both cells must be present."""
        names = [self.schema.attributes[a].name for a in (first, second)]
        if first == second:
            raise QueryError(f"the correlation of {names[0]!r} with itself; expected two columns")
        x, y = (self._numbers(a, "a correlation") for a in (first, second))
        found = self._cells([first, second], self._present([first, second], where))
        inner = found.joint[: len(x.mean), : len(y.mean)]
        joint = inner / found.total
        scaled = []
        for numbers, own, name in ((x, joint.sum(1), names[0]), (y, joint.sum(0), names[1])):
            middle = float(own @ numbers.mean)
            variance = float(own @ ((numbers.mean - middle) ** 2 + numbers.variance))
            if variance <= 0.0:
                raise QueryError(f"{name!r} has one value only, so it has no correlation")
            mean = (numbers.mean - middle) / np.sqrt(variance)
            scaled.append((mean, mean**2 + numbers.variance / variance))
        (mean_x, square_x), (mean_y, square_y) = scaled
        value = float(mean_x @ joint @ mean_y)
        moves = np.outer(mean_x, mean_y) - value * (square_x[:, None] + square_y[None, :]) / 2.0
        own = found.errors[:-1].reshape(found.joint.shape)[: len(x.mean), : len(y.mean)]
        # How two columns hang together within a group is in no pair, and rehearsals on a model do
        # not show it. So the cells of a triple are taken to be as unsure here as those of a pair.
        own = np.where(own > 0.0, np.maximum(own, self._errors([first, second], inner)), own)
        spread = standard_errors(
            np.append(moves.reshape(-1) / found.total, 0.0),
            np.append(own.reshape(-1), found.errors[-1]),
        )
        atoms = self._atoms([first, second], self._present([first, second], where))
        if atoms is not None:
            every = np.zeros(found.joint.shape)
            every[: len(x.mean), : len(y.mean)] = moves / found.total
            spread = np.maximum(spread, atoms.error(every))
        return Figure.within(value, float(spread), -1.0, 1.0)

    # Atoms and their errors

    def _atoms(
        self, columns: Sequence[int], where: Formula | None, more: Sequence[int] = ()
    ) -> _Atoms | None:
        """The finest cells that a question tells apart; None if it names too many columns.

        Args:
            columns: attributes of the question; their axes come first.
            where: the condition.
            more: further attributes.
        """
        others = self._decisive(columns, where) | set(more)
        attributes = [*columns, *sorted(others - set(columns))]
        count = np.prod(self.schema.sizes[attributes].astype(float))
        if len(attributes) > MOST_LITERALS or count > MOST_ATOMS:
            return None
        joint = cells(self.components, attributes, self.schema)
        errors = self._errors(attributes, joint)
        inside = np.ones(joint.shape, dtype=bool)
        if where is not None:
            inside = self._holding(where, attributes)
        moved = bends(
            joint,
            [self.schema.attributes[a].ordered for a in attributes],
            lambda i, j: self._missed(attributes[i], attributes[j]),
        )
        return _Atoms(tuple(attributes), errors, inside, len(columns), moved)

    def _missed(self, first: int, second: int) -> float:
        """The standard error of the dependence of two attributes, in units of a correlation."""
        if self.errors is None:
            return 0.0
        return float(self.errors.missed[self.kinds.of_set((first, second))])

    def _holding(self, formula: Formula, attributes: Sequence[int]) -> Bools:
        """In which atoms a formula holds; the attributes are all that it names."""
        found = np.zeros([int(self.schema.sizes[a]) for a in attributes], dtype=bool)
        for codes, rest in classes(formula, attributes, self.schema):
            # A literal of a parity that holds for every value, or for none, may be left over.
            found[np.ix_(*[list(own) for own in codes])] = Diagram.of(rest, self.schema).always
        return found

    def _padded(self, moves: Floats, column: int) -> Floats:
        """Moves of a column's codes; a missing cell moves nothing."""
        missing = int(self.schema.sizes[column]) - len(moves)
        return np.append(moves, np.zeros(missing))

    # Cells and their errors

    def _cells(self, columns: Sequence[int], where: Formula | None) -> _Cells:
        joint = cells(self.components, columns, self.schema, where)
        total = self._total(float(joint.sum()))
        own = self._errors(self._decisive(columns, where), joint)
        rest = np.zeros(1)
        if where is not None:
            own = np.where(self._possible(columns, where), own, 0.0)
            rest = self._rest(Diagram.of(where, self.schema), total)
        return _Cells(joint, np.append(own.reshape(-1), rest), total)

    def refuse_impossible(self, where: Formula | None) -> None:
        """Refuse a condition that nothing satisfies: figures of no records say nothing."""
        if where is None:
            return
        condition = Diagram.of(where, self.schema)
        if condition.never:
            raise QueryError("no record can satisfy the condition")
        self._total(share(self.components, condition))

    def has_numbers(self, column: int, where: Formula | None) -> bool:
        """Whether some records that satisfy a condition have a number in a column."""
        present = self._present([column], where)
        return float(cells(self.components, [column], self.schema, present).sum()) > 0.0

    def _total(self, total: float) -> float:
        if total <= 0.0:
            raise QueryError("the release holds the condition for impossible")
        return total

    def _rest(self, condition: Diagram, total: float) -> Floats:
        """The standard error of the share that does not satisfy a condition."""
        if condition.always:
            return np.zeros(1)
        return self._errors(condition.decisive, np.array([max(1.0 - total, 0.0)]))

    def _possible(self, columns: Sequence[int], where: Formula) -> Bools:
        """Which cells can hold records that satisfy the condition."""
        found = np.zeros([int(self.schema.sizes[column]) for column in columns], dtype=bool)
        for codes, rest in classes(where, columns, self.schema):
            if not Diagram.of(rest, self.schema).never:
                found[np.ix_(*[list(own) for own in codes])] = True
        return found

    def _decisive(self, columns: Sequence[int], where: Formula | None) -> set[int]:
        more = () if where is None else Diagram.of(where, self.schema).decisive
        return {*columns, *more}

    def _errors(
        self, attributes: Sequence[int] | set[int], answers: Floats, parity: bool = False
    ) -> Floats:
        """The standard errors of shares of conjunctions of these attributes; NaN if unknown.

        Args:
            attributes: those of the literals.
            answers: the shares.
            parity: whether it is parities instead.
        """
        if self.errors is None or not all(self.drawn[a] for a in attributes):
            return np.full(answers.shape, np.nan)
        flat = self.errors.at(
            np.full(answers.size, len(attributes)),
            answers.reshape(-1),
            parity,
            self.kinds.of_set(attributes),
        )
        return flat.reshape(answers.shape)

    def _numbers(self, column: int, use: str) -> Numbers:
        from dualquery.release.asking.inside import Numbers

        attribute = self.schema.attributes[column]
        within = self.within(attribute.name) if attribute.is_numeric else None
        return Numbers.of(attribute, within, use)

    def _all_shares(self, column: int, numbers: Numbers) -> Floats:
        """The distribution of a column among all records, without the missing cells."""
        every = shares(self.components, column)
        return every[: len(numbers.mean)]

    def _present(self, columns: Sequence[int], where: Formula | None) -> Formula | None:
        """The condition, and that no cell of these columns is missing."""
        present = [
            Literal(column, (code,), negated=True)
            for column in columns
            if (code := self.schema.attributes[column].missing_code) is not None
        ]
        if not present:
            return where
        own = Query("conjunction", tuple(present))
        return own if where is None else AllOf((where, own))


def named(formula: Formula | None, columns: Sequence[int] = ()) -> set[int]:
    """The attributes that a question names."""
    return {*columns, *(() if formula is None else (one.attribute for one in literals_of(formula)))}
