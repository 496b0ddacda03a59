"""Pairs that a mixture cannot express: what was measured of them corrects the arranged rows.

Columns that determine one another need a component for each of their values. Several such pairs
need the product of these numbers, which no mixture has. Its table of such a pair is then blurred,
although the pair was measured. Where a measured pair departs from the model by far more than its
noise, rows are arranged towards what was measured instead. All of it is a function of what was
released. The reasons are in docs/decisions/determined.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from dualquery.model.grouping import estimated_total
from dualquery.model.mixture import Mixture
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Groups

Floats = npt.NDArray[np.float64]
Ratios = Mapping[tuple[int, int], Floats]
"""Per pair of attributes, what each cell of the model's table has to be multiplied by."""

NOTHING: Ratios = MappingProxyType({})

CLEAR = 5.0
"""A pair is corrected if it departs from the model by more standard deviations than this."""

SHARPER = 4.0
"""Or if it is sharper than the model by more standard deviations than this; see `_sharpness`."""

DETERMINED = 0.25
"""And if one of its attributes nearly determines the other: it leaves at most this share of the
other's entropy. Other pairs would bring in more noise than they correct."""

SWEEPS = 20
"""How often rows and columns of a corrected table are scaled to their margins in turn."""

SURE = 3.0
"""Cells whose noisy count is above so many standard deviations are taken as measured."""


def corrections(model: Mixture, measurements: Sequence[Measurement]) -> Ratios:
    """The measured pairs that the model does not express, as ratios to the model's cells.

    Those that depart most from the model stand first.

    Args:
        model: the fitted model.
        measurements: what it was fitted to; the first are one-way tables.
    """
    pairs = [one for one in measurements if one.marginals.arity == 2]
    if not pairs or measurements[0].marginals.arity != 1 or model.edges is not None:
        return {}  # edges express them
    total = estimated_total(measurements[0])
    found: list[tuple[float, tuple[int, int], Floats]] = []
    for one in pairs:
        groups = one.marginals.groups
        named = np.unique(one.marginals.attributes).tolist()
        shares = {a: _in_groups(model, groups, a) for a in named}
        noise = float(np.sqrt(one.variance)) / total
        for t, (a, b) in enumerate(one.marginals.attributes.tolist()):
            expected = (shares[a] * model.weights) @ shares[b].T
            counts = one.counts[one.marginals.start[t] : one.marginals.start[t + 1]]
            measured = counts.reshape(expected.shape) / total
            squares = float(((measured - expected) ** 2).sum()) / noise**2
            departure = (squares - expected.size) / np.sqrt(2.0 * expected.size)
            sharpness = max(
                _sharpness(expected, measured, noise), _sharpness(expected.T, measured.T, noise)
            )
            if departure <= CLEAR and sharpness <= SHARPER:
                continue
            table = _corrected(expected, measured, noise)
            if min(_undecided(table), _undecided(table.T)) <= DETERMINED:
                ratio = table / np.maximum(expected, 1e-12)
                ratio = ratio[groups.of_attribute(a)][:, groups.of_attribute(b)]
                found.append((float(departure), (a, b), ratio))
    # A pair may have been measured twice; the clearer finding stands.
    ratios: dict[tuple[int, int], Floats] = {}
    for _, pair, ratio in sorted(found, key=lambda one: -one[0]):
        ratios.setdefault(pair, ratio)
    return ratios


def _corrected(expected: Floats, measured: Floats, noise: float) -> Floats:
    """The best guess at a table: clear cells as measured, the others share what is left.

    Its margins are then made those of the model, which all tables of an attribute have a say in.
    """
    clear = measured > SURE * noise
    kept = np.where(clear, measured, 0.0)
    rest = np.where(clear, 0.0, expected)
    left = max(0.0, 1.0 - float(kept.sum()))
    if rest.sum() > 0.0:
        rest *= left / rest.sum()
    table: Floats = kept + rest
    for _ in range(SWEEPS):
        for axis in (0, 1):
            own = table.sum(axis=axis, keepdims=True)
            table = table * (expected.sum(axis=axis, keepdims=True) / np.maximum(own, 1e-12))
    normal: Floats = table / table.sum()
    return normal


def _sharpness(expected: Floats, measured: Floats, noise: float) -> float:
    """How much more a measured table has in each row's likeliest cell, in standard deviations.

    A blurred table and the table whose rows have one cell each are the ends of a line. Where the
    measured table lies on that line is one number. It is far less noisy than the sum of squares of
    all cells, so it shows blur that the sum does not show. The likeliest cells are the model's, not
    those of the measured table, whose noise would choose itself.
    """
    sharp = np.zeros_like(expected)
    sharp[np.arange(len(expected)), expected.argmax(axis=1)] = expected.sum(axis=1)
    line = sharp - expected
    length = float(np.sqrt((line**2).sum()))
    if length == 0.0:
        return 0.0
    return float(((measured - expected) * line).sum()) / (length * noise)


def _in_groups(model: Mixture, groups: Groups, attribute: int) -> Floats:
    """The probabilities of an attribute's groups, a row per group."""
    start = model.schema.code_start
    rows = np.zeros((int(groups.sizes[attribute]), len(model.weights)))
    part = model.tables[start[attribute] : start[attribute + 1]]
    np.add.at(rows, groups.of_attribute(attribute), part)
    return rows


def dealt_again(
    model: Mixture, codes: npt.NDArray[np.int32], corrected: Ratios, generator: np.random.Generator
) -> list[int]:
    """Give one attribute of each corrected pair new codes in some rows; returns what must stay.

    Of two attributes the one that the other says more about is dealt again: for each code of the
    other its codes get their corrected shares. Rows keep the code they have as far as that share
    allows, so no more rows change than the two tables differ by. No attribute is dealt again twice,
    nor after another was dealt by it.

    Args:
        model: the distribution of the rows.
        codes: the rows, changed in place.
        corrected: the pairs, those that depart most from the model first.
        generator: public randomness.
    """
    start = model.schema.code_start
    settled: set[int] = set()
    for (a, b), ratio in corrected.items():
        rows, columns = (model.tables[start[x] : start[x + 1]] for x in (a, b))
        table = ratio * ((rows * model.weights) @ columns.T)
        table /= table.sum()
        by, dealt = (a, b) if _undecided(table) <= _undecided(table.T) else (b, a)
        if dealt in settled:
            continue
        settled |= {a, b}
        _deal_by(codes, by, dealt, table if by == a else table.T, generator)
    return sorted(settled)


def _undecided(table: Floats) -> float:
    """The share of the column's entropy that is left once the row is known."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    own, joint = _entropy(columns), _entropy(table)
    return (joint - _entropy(rows)) / own if own > 0.0 else 1.0


def _entropy(shares: Floats) -> float:
    positive = shares[shares > 0.0]
    return float(-(positive * np.log(positive)).sum())


def _deal_by(
    codes: npt.NDArray[np.int32],
    by: int,
    dealt: int,
    table: Floats,
    generator: np.random.Generator,
) -> None:
    """Deal one attribute by the codes of another; `table` has a row per code of that other."""
    for code in np.unique(codes[:, by]).tolist():
        share = table[code]
        if share.sum() <= 0.0:
            continue
        rows = generator.permutation(np.flatnonzero(codes[:, by] == code))
        ends = np.floor(len(rows) * np.cumsum(share) / share.sum() + generator.random())
        ends[-1] = len(rows)
        wanted = np.diff(np.minimum(ends, len(rows)), prepend=0.0).astype(np.int64)
        found = codes[rows, dealt]
        # The first rows of a code keep it, as many as are wanted; the others are dealt anew.
        order = np.argsort(found, kind="stable")
        have = np.bincount(found, minlength=len(share))
        place = np.empty(len(rows), dtype=np.int64)
        place[order] = np.arange(len(rows)) - np.repeat(np.cumsum(have) - have, have)
        surplus = place >= wanted[found]
        lacking = np.maximum(wanted - np.minimum(have, wanted), 0)
        codes[rows[surplus], dealt] = np.repeat(np.arange(len(share)), lacking)
