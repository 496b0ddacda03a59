"""What a release answers from, without what it promises: enough to ask it, and quick to load."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError, ReleaseError
from dualquery.domain.schema import Schema
from dualquery.release.asking.askable import Askable
from dualquery.release.asking.questions import Questions
from dualquery.release.components import Components, MixtureComponents, RecordComponents, shares
from dualquery.release.unknown import listed

if TYPE_CHECKING:  # a question that needs them imports them
    from collections.abc import Collection

    from dualquery.game.transcript import Transcript
    from dualquery.model.mixture import Mixture
    from dualquery.model.pair_kinds import PairKinds
    from dualquery.model.smoothing import Bins
    from dualquery.model.standard_errors import ErrorTable
    from dualquery.release.frames import FrameStyle
    from dualquery.release.within import Within
    from dualquery.workloads.actions import Actions


class Answering(Askable):
    """What figures come from, whoever holds it."""

    actions: Actions
    transcript: Transcript
    model: Mixture | None
    errors: ErrorTable | None

    @property
    def source(self) -> str:
        """What answers and samples come from: `model` or `records`."""
        return "records" if self.model is None else "model"

    @property
    def records(self) -> npt.NDArray[np.int32]:
        """The records played, one row of codes per round."""
        records = self.transcript.records
        if records is None:
            raise ReleaseError("this game was played by a model; it has no records")
        return records

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """The attributes that no query of the release names, so it knows nothing about them."""
        return self.actions.untouched

    @cached_property
    def components(self) -> Components:
        """The weighted components that answers come from."""
        if self.model is not None:
            return MixtureComponents(self.model)
        return RecordComponents(self.schema, self.records)

    @cached_property
    def questions(self) -> Questions:
        """What a statistician's figures are computed from."""
        return Questions(
            self.schema,
            self.components,
            self.errors,
            self.times_drawn > 0,
            self.within,
            self.pair_kinds,
        )

    @cached_property
    def pair_kinds(self) -> PairKinds:
        """How two attributes are known together."""
        from dualquery.model.pair_kinds import PairKinds

        edges = None if self.model is None else self.model.edges
        measured = [one.marginals for one in self.transcript.measurements]
        return PairKinds.of(len(self.schema), measured, None if edges is None else edges.trees)

    @cached_property
    def times_drawn(self) -> npt.NDArray[np.int64]:
        """Per attribute, how often a drawn query or a measured table named it."""
        drawn = np.concatenate([one.draws.queries for one in self.transcript])
        workload = self.actions.queries.take(np.asarray(drawn, dtype=np.int64))
        named = [workload.literals.attribute[workload.terms >> 1]]
        named += [one.marginals.attributes.reshape(-1) for one in self.transcript.measurements]
        return np.bincount(np.concatenate(named), minlength=len(self.schema))

    @property
    def most_drawn(self) -> npt.NDArray[np.int64]:
        """Attributes, those that drawn queries named most often first; ties as declared."""
        return np.argsort(-self.times_drawn, kind="stable")

    def refuse_unknown(self, attributes: Collection[int]) -> None:
        """Refuse a question on attributes that no query of the release names."""
        names = [self.schema.names[a] for a in sorted(attributes) if not self.actions.named[a]]
        if names:
            raise QueryError(
                f"unknown: no query of this release names {listed(names)}, so it knows nothing "
                "about that",
                python='to insist on what the declared default gives, say unknown="default"',
                command="to insist on what the declared default gives, say --unknown default",
            )

    def within(self, name: str) -> Within:
        """How the values of a numeric attribute are spread inside its bins."""
        attribute = self.schema[name]
        if not attribute.is_numeric:
            raise QueryError(f"column {name!r} has no bins; expected a column with edges")
        from dualquery.release.within import Within

        if name not in self._within:
            self._within[name] = self._measured_within(name) or Within.unmeasured(attribute)
        return self._within[name]

    @cached_property
    def _within(self) -> dict[str, Within]:
        """What `within` has worked out so far."""
        return {}

    def _measured_within(self, name: str) -> Within | None:
        """Shares of sub-bins from their noisy counts, if they were measured."""
        from dualquery.domain.sub_bins import SubBins
        from dualquery.model.again import own_tables
        from dualquery.model.grouping import estimated_total
        from dualquery.release.within import Within

        schema, position = self.schema, self.schema.position(name)
        tables = own_tables(position, schema, self.transcript.measurements)
        if not tables:
            return None
        first, *again = tables
        parts = SubBins.of(schema.attributes[position])
        total = estimated_total(self.transcript.measurements[0])
        # A second table is part of what the model knows about the bins: it must not count twice.
        bins = None if again else self._known_bins(position, len(parts.start) - 1, total)
        return Within.measured_as(
            parts, first.counts[: len(parts)], first.noise, total, again, bins
        )

    def _known_bins(self, position: int, count: int, total: float) -> Bins | None:
        """What the model knows about the bins of a column; nothing if it states no errors.

        Tables of several columns say far more about a bin than the noisy counts of all of its
        sub-bins together.
        """
        from dualquery.model.smoothing import Bins

        if self.model is None or self.errors is None:
            return None
        own = shares(self.components, position)[:count]
        noise = self.errors.at(np.ones(count, dtype=np.int64), own)
        if not np.isfinite(noise).all():
            return None
        return Bins(total * own, total * noise)


@dataclass(frozen=True, eq=False)
class Asked(Answering):
    """A release that was opened to be asked.

    It has no privacy statement: nobody can read an ε here that was not computed again from what
    was released. Whoever wants the statement reads the whole release.

    Attributes:
        schema: the attributes.
        actions: the queries that could be drawn.
        transcript: what was drawn, and how the data player answered.
        stamp: empty for a private run, else the words that everything from it must carry.
        model: the fitted model, if there is one.
        errors: the standard errors of its answers, if they were estimated.
    """

    schema: Schema
    actions: Actions
    transcript: Transcript
    stamp: str
    model: Mixture | None = None
    errors: ErrorTable | None = None

    @cached_property
    def style(self) -> FrameStyle:  # type: ignore[override]  # read-only here
        """Tables come as Arrow tables."""
        from dualquery.release.frames import FrameStyle

        return FrameStyle()
