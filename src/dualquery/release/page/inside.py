"""Where numbers lie inside the bins of a column, as `assets/inside.js` reads it."""

from __future__ import annotations

import base64

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.base.stored import Json
from dualquery.domain.attributes import Attribute
from dualquery.release.asking.inside import Numbers
from dualquery.release.published import Published

Floats = npt.NDArray[np.float64]

MOST_NUMBERS = 40_000
"""The most numbers that a page keeps for means and quantiles of one column."""


def numbers_of(release: Published, attribute: Attribute) -> Json | bool:
    """What the page needs for means and quantiles of a column; False if it has none of them.

    True stands for a column whose values are the numbers.
    """
    if attribute.answer is not None or attribute.values == (0, 1):
        return False
    within = release.within(attribute.name) if attribute.is_numeric else None
    try:
        numbers = Numbers.of(attribute, within, "a mean")
    except QueryError:
        return False
    if within is None:
        return True
    parts = within.sub_bins
    sizes = np.diff(parts.start)
    if int((sizes * (sizes + 1) // 2).sum()) + len(sizes) ** 2 > MOST_NUMBERS:
        return False
    low, high = parts.ends
    narrow = np.add.reduceat(within.shares * within.variances, parts.start[:-1])
    made: Json = {
        "mean": packed(numbers.mean),
        "variance": packed(numbers.variance),
        "narrow": packed(narrow),
        "start": parts.start.tolist(),
        "low": packed(low),
        "high": packed(high),
        "shares": packed(within.shares),
        "means": packed(within.means),
        "tilt": None if within.tilt is None else packed(within.tilt),
        "logarithmic": np.flatnonzero(parts.logarithmic).tolist(),
        "whole": parts.whole,
        "least": numbers.least,
        "most": numbers.most,
        "rows": None,
    }
    if within.surety is None:
        return made
    # A mean moves with the shares of bins: what that says of sub-bins is the same for every group.
    surety, bin_of, count = within.surety, within.bin_of, len(sizes)
    apart = (within.means - numbers.mean[bin_of]) / numbers.in_bins[bin_of]
    moves = np.where(bin_of == np.arange(count)[:, None], apart, 0.0)
    blocks = []
    for first, last in zip(parts.start[:-1], parts.start[1:], strict=True):
        own = surety.covariance(np.eye(len(bin_of))[first:last])
        blocks.append(packed(own[np.tril_indices(int(last - first))]))
    return {
        **made,
        "rows": surety.rows,
        "whole_of": packed(numbers.in_bins),
        "of_mean": packed(surety.covariance(moves)),
        "blocks": blocks,
    }


def packed(numbers: Floats) -> str:
    """Numbers in base64, without any loss."""
    return base64.b64encode(np.ascontiguousarray(numbers, dtype="<f8").tobytes()).decode("ascii")
