"""Train on synthetic rows, test on real ones. NOT PRIVATE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError, UnavailableError
from dualquery.domain.schema import Schema
from dualquery.release.release import Release
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import Table

Codes = npt.NDArray[np.int32]

MOST_ROWS = 20_000
"""Rows that a classifier is trained on, and rows it is tested on."""

MOST_FEATURES = 50
FEWEST_ROWS = 50


@dataclass(frozen=True)
class Usefulness:
    """How often a classifier guesses a column right on rows of the private table it has not seen.

    Attributes:
        target: the column that is guessed from the others; bins are guessed as bins.
        synthetic: after training on synthetic rows.
        real: after training on as many private rows.
        frequent: for one that always says the most frequent value.
        tested: how many private rows were guessed.
    """

    target: str
    synthetic: float
    real: float
    frequent: float
    tested: int


def usefulness(
    release: Release,
    table: Table,
    schema: Schema,
    target: str,
    treatment: OutOfDomain,
    seed: int = 0,
) -> Usefulness:
    """Guess one column from the others.

    Args:
        release: what was published.
        table: the private table.
        schema: the schema as bound to it.
        target: the column to guess.
        treatment: of cells outside their domain.
        seed: of the split and of the synthetic rows.
    """
    place = schema.position(target)
    if not release.actions.named[place]:
        raise ParameterError(f"target = {target!r}; expected a column that the release knows about")
    known = [int(a) for a in release.most_drawn if release.actions.named[a] and int(a) != place]
    features = sorted(known[:MOST_FEATURES])
    if not features:
        raise ParameterError(f"target = {target!r} has no other column to be guessed from")
    generator = np.random.default_rng(seed)
    real = _rows(EncodedRows.read(table, schema, [*features, place], treatment), generator)
    half = len(real) // 2
    if half < FEWEST_ROWS:
        raise ParameterError(
            f"target = {target!r}: the table has {len(real):,} rows; guessing needs at least "
            f"{2 * FEWEST_ROWS}"
        )
    train, test = real[:half], real[half:]
    synthetic = release.sample_codes(half, generator)[:, [*features, place]]
    values, counts = np.unique(train[:, -1], return_counts=True)
    return Usefulness(
        target,
        _accuracy(synthetic, test, seed),
        _accuracy(train, test, seed),
        float((test[:, -1] == values[counts.argmax()]).mean()),
        len(test),
    )


def _rows(rows: EncodedRows, generator: np.random.Generator) -> Codes:
    """Some private rows in random order, a column per attribute in the order they were read."""
    order = generator.permutation(rows.rows)[: 2 * MOST_ROWS]
    return np.column_stack([column[order].astype(np.int32) for column in rows.columns.values()])


def _accuracy(train: Codes, test: Codes, seed: int) -> float:
    classifier = _classifier(seed)
    if len(np.unique(train[:, -1])) < 2:  # nothing to learn: one value only
        return float((test[:, -1] == train[0, -1]).mean())
    classifier.fit(train[:, :-1], train[:, -1])
    return float((classifier.predict(test[:, :-1]) == test[:, -1]).mean())


def _classifier(seed: int) -> Any:
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        raise UnavailableError(
            "guessing a target needs scikit-learn, which is not installed; pip install scikit-learn"
        ) from None
    return RandomForestClassifier(50, min_samples_leaf=5, random_state=seed)
