"""A release: what may be published, and what can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dualquery.errors import ParameterError, ReleaseError
from dualquery.frames import FrameStyle, decode
from dualquery.privacy.statement import PrivacyStatement
from dualquery.queries.evaluation import mean_answers
from dualquery.queries.language import parse
from dualquery.queries.query import Query
from dualquery.queries.workload import Workload
from dualquery.schema import Schema
from dualquery.transcript import Transcript


@dataclass(frozen=True, eq=False)
class Release:
    """The published outcome of a run.

    Everything here was computed from the draws alone, so everything may be published.
    `answer` and `sample` use the game's records.
    """

    schema: Schema
    workload: Workload
    transcript: Transcript
    privacy: PrivacyStatement
    parameters: dict[str, Any]
    style: FrameStyle = field(default_factory=FrameStyle)

    @property
    def source(self) -> str:
        """What answers and samples come from."""
        return "records"

    @property
    def records(self) -> npt.NDArray[np.int32]:
        """The game's records, one row of codes a round."""
        records = self.transcript.records
        if records is None:
            raise ReleaseError("this release holds no records")
        return records

    def answer(self, query: str | Query) -> float:
        """The released answer to one query: the share of records that satisfy it."""
        parsed = parse(query, self.schema) if isinstance(query, str) else query
        return float(self.answers(Workload.of([parsed], self.schema))[0])

    def answers(self, workload: Workload | None = None) -> npt.NDArray[np.float64]:
        """The released answers to a workload; without one, to the release's own."""
        return mean_answers(self.workload if workload is None else workload, self.records)

    def sample(self, rows: int, *, seed: int | None = None) -> Any:
        """Synthetic rows, as the kind of frame the release was fitted on.

        They are drawn with replacement from the game's records; a numeric cell is uniform
        in its bin. The seed fixes this sampling only, which needs no privacy.
        """
        if rows < 1:
            raise ParameterError(f"rows = {rows}; expected at least 1")
        generator = np.random.default_rng(seed)
        records = self.records
        codes = records[generator.integers(0, len(records), size=rows)]
        return self.style.frame(decode(codes, self.schema, generator))

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the release directory; it appears whole or not at all."""
        from dualquery.release.directory import write_release

        return write_release(self, Path(path), overwrite=overwrite)

    def summary(self) -> dict[str, Any]:
        """The figures of the release, as plain data."""
        return {
            "privacy": self.privacy.to_dict(),
            "parameters": self.parameters,
            "source": self.source,
        }

    def __repr__(self) -> str:
        return (
            f"<Release of {len(self.workload):,} queries on {len(self.schema):,} attributes, "
            f"ε = {self.privacy.epsilon:.4g}, δ = {self.privacy.delta:g}>"
        )
