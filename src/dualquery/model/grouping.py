"""Groups of rare codes, from the noisy one-way tables alone.

A column with 2,000 codes makes pair tables of millions of cells that hold noise alone. Codes that
are frequent enough to be seen through the noise of the larger tables stand for themselves; the
others are put together, in their declared order. Within a group the one-way table says how its
codes share the records. All of it is a function of what was measured, so it is public.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Groups

Floats = npt.NDArray[np.float64]

SURE = 4.0
"""Codes whose noisy count is above so many standard deviations keep it."""

LEAST = 1e-7
"""No code is estimated below this share of the records: a model must be able to reach all."""

MOST_CELLS = 1 << 24
"""The most cells that are measured in one step: what can be counted and fitted in a sitting."""


def estimated_total(one_way: Measurement) -> float:
    """The number of records, from the totals of one-way tables.

    The total of a table is as noisy as it has counts, so each weighs by the inverse of that.
    """
    sizes = np.add.reduceat(one_way.variances, one_way.marginals.start[:-1]) / one_way.variance
    totals = np.add.reduceat(one_way.counts, one_way.marginals.start[:-1])
    return float(max(1.0, (totals / sizes).sum() / (1.0 / sizes).sum()))


def estimated_shares(one_way: Measurement, total: float, schema: Schema) -> Floats:
    """The share of every code, all attributes' codes laid end to end; NaN where none was measured.

    Args:
        one_way: one-way tables with every code for itself.
        total: the number of records.
        schema: whose codes they are.
    """
    shares = np.full(int(schema.code_start[-1]), np.nan)
    start, noise = one_way.marginals.start, np.sqrt(one_way.variances)
    attributes = one_way.marginals.attributes[:, 0]
    sizes = np.diff(start)
    two = np.flatnonzero(sizes == 2)  # most columns of a wide table: all of them at once
    ones = one_way.counts[start[two] + 1].astype(float) - one_way.counts[start[two]]
    share = np.clip(0.5 + 0.5 * ones / total, LEAST, 1.0 - LEAST)
    place = schema.code_start[attributes[two]]
    shares[place], shares[place + 1] = 1.0 - share, share
    for t in np.flatnonzero(sizes != 2):
        first = int(schema.code_start[attributes[t]])
        counts = one_way.counts[start[t] : start[t + 1]].astype(float)
        shares[first : first + sizes[t]] = (
            _estimated(counts, noise[start[t] : start[t + 1]], total) / total
        )
    return shares


def _estimated(counts: Floats, noise: Floats, total: float) -> Floats:
    """Counts of one attribute's codes: none negative, `total` in all.

    Codes far above the noise keep their count. The others share what is left, each drawn towards
    their mean as far as their spread is no larger than the noise.
    """
    counts = counts - (counts.sum() - total) * noise**2 / (noise**2).sum()
    sure = counts > SURE * noise
    if not sure.all():
        rest = counts[~sure]
        left = max(total - counts[sure].sum(), 0.0)
        spread = float(np.mean((rest - rest.mean()) ** 2))
        blurred = float(np.mean(noise[~sure] ** 2))
        kept = max(0.0, 1.0 - blurred / spread) if spread > 0.0 else 0.0
        shared = np.maximum(left / len(rest) + kept * (rest - rest.mean()), 0.0)
        if shared.sum() <= 0.0:
            shared = np.ones(len(rest))
        counts[~sure] = shared * (left / shared.sum())
    counts = np.maximum(counts, LEAST * total)
    scaled: Floats = counts * (total / counts.sum())
    return scaled


def grouped(
    schema: Schema,
    attributes: npt.NDArray[np.integer],
    shares: Floats,
    least: float,
    most: int | None = None,
) -> Groups:
    """Groups of codes with at least this share of the records each.

    Args:
        schema: whose codes are grouped.
        attributes: the attributes to group; others keep every code for itself.
        shares: estimated shares of all codes.
        least: a code with this share stands alone; others form runs that have it.
        most: the most groups of one attribute, at least 2; where `least` gives more, it is raised.
    """
    groups = Groups.single(schema)
    of_code, sizes = groups.of_code.copy(), groups.sizes.copy()
    for attribute in attributes.tolist():
        part = slice(schema.code_start[attribute], schema.code_start[attribute + 1])
        if part.stop - part.start > 2:
            declared = schema.attributes[attribute].group
            parents = None if declared is None else declared.numbers(part.stop - part.start)
            one = schema.attributes[attribute]
            ordered = parents is None and (one.is_numeric or one.ordered)
            runs = (
                partial(_neighbours, shares[part], missing=one.missing)
                if ordered
                else partial(_runs, shares[part], parents=parents)
            )
            found = runs(least)
            raised = 0.0 if most is None else max(least, 0.5 / most)
            while most is not None and found.max() >= most:
                found, raised = runs(raised), 1.2 * raised
            of_code[part] = found
            sizes[attribute] = found.max() + 1
    return Groups(schema.code_start, of_code, sizes)


def most_groups(
    sizes: npt.NDArray[np.integer],
    cells_of: Callable[[npt.NDArray[np.integer]], int],
    named: int,
    arity: int,
) -> int | None:
    """How many groups an attribute may have at most; None where there are few enough already.

    Columns of thousands of frequent codes would make tables of billions of cells. Those cannot be
    counted, and that would show only after the draws that name them were paid for.

    Args:
        sizes: the groups of each attribute.
        cells_of: the cells of all tables that are measured in any case, given such sizes.
        named: the most tables that one round of draws names.
        arity: how many attributes each of those has.
    """
    most = int(sizes.max(initial=2))

    def fits(most: int) -> bool:
        cut = np.minimum(sizes, most)
        largest = float(np.sort(cut)[-arity:].astype(float).prod())
        return named * largest <= MOST_CELLS and cells_of(cut) <= MOST_CELLS

    if fits(most):
        return None
    while most > 2 and not fits(most):
        most = max(2, most * 9 // 10)
    return most


def shares_within(groups: Groups, shares: Floats) -> Floats:
    """The share of its group that every code has; NaN where nothing was measured."""
    sizes = np.diff(groups.code_start)
    row = np.repeat(groups.start[:-1], sizes) + groups.of_code
    within: Floats = shares / np.bincount(row, shares, int(groups.start[-1]))[row]
    return within


def _neighbours(shares: Floats, least: float, *, missing: bool) -> npt.NDArray[np.int32]:
    """The group of every code of an ordered attribute: runs of neighbours with this share each.

    A rare code never stands with codes that are far away: what it depends on would be lost.
    """
    of_code = np.empty(len(shares), dtype=np.int32)
    last = len(shares) - missing
    number, held, begun = 0, 0.0, 0
    for code in range(last):
        of_code[code] = number
        held += shares[code]
        if held >= least:
            number, held, begun = number + 1, 0.0, code + 1
    if begun < last and number:  # what is left over at the end
        of_code[begun:last] = number - 1
    number = max(number, 1)
    if missing:
        of_code[last] = number
    elif number == 1:  # never a constant column
        of_code[int(np.argmax(shares[::-1].cumsum()[::-1] <= 0.5)) or 1 :] = 1
    return of_code


def _runs(
    shares: Floats, least: float, parents: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.int32]:
    """The group of every code: alone, or in a run of rare codes in their declared order.

    With a declared hierarchy the rare codes of one parent stand together. Parents whose rare codes
    are rare even together form runs in their turn.
    """
    runs: list[list[int]] = [[code] for code in np.flatnonzero(shares >= least).tolist()]
    rare = np.flatnonzero(shares < least)
    steps = [[code] for code in rare.tolist()]
    if parents is not None:
        steps = [rare[parents[rare] == one].tolist() for one in np.unique(parents[rare])]
    waiting: list[int] = []
    for step in steps:
        waiting.extend(step)
        if shares[waiting].sum() >= least:
            runs.append(waiting)
            waiting = []
    if waiting:
        shared = [run for run in runs if len(run) > 1]
        if shared and shares[waiting].sum() < 0.5 * least:
            shared[-1].extend(waiting)
        else:
            runs.append(waiting)
    if len(runs) == 1 and len(shares) > 1:  # never a constant column
        top = int(np.argmax(shares))
        runs = [[top], [code for code in range(len(shares)) if code != top]]
    of_code = np.empty(len(shares), dtype=np.int32)
    for number, run in enumerate(sorted(runs, key=min)):
        of_code[run] = number
    return of_code
