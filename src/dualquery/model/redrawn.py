"""A model whose shares of codes are drawn anew, as far as the noise of what was measured reaches.

A fitted model is smoother than the table it was fitted to. Codes that drown in the noise have
shares that were drawn towards each other, or towards zero. Taken as the truth of a rehearsal, such
a model is easier to find again than the table was. So a rehearsal also takes a model whose shares
are spread as those of the table may be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema
from dualquery.model.mixture import Mixture
from dualquery.privacy.measuring import Measurement

Floats = npt.NDArray[np.float64]


def share_noise(schema: Schema, measurements: Sequence[Measurement], total: float) -> Floats:
    """The standard deviation of each code's share, from all tables that hold the code by itself.

    A table of M cells, m of them along the attribute, has M/m cells for a code, and the variance
    of so many. Attributes that were not measured have the deviation 0.

    Args:
        schema: whose codes they are.
        measurements: what was measured.
        total: the number of records.
    """
    start = schema.code_start
    precision = np.zeros(len(schema))
    for one in measurements:
        shapes = one.marginals.shapes
        cells = shapes.prod(axis=1)
        variance = np.add.reduceat(one.variances, one.marginals.start[:-1]) / cells
        for place in range(one.marginals.arity):
            attribute, size = one.marginals.attributes[:, place], shapes[:, place]
            alone = size == schema.sizes[attribute]
            np.add.at(precision, attribute, alone * size / (cells * variance))
    found = np.where(precision > 0.0, 1.0 / np.sqrt(np.maximum(precision, 1e-300)), 0.0) / total
    return np.repeat(found, np.diff(start))


def redrawn(model: Mixture, spread: Floats, generator: np.random.Generator) -> Mixture:
    """The model with shares of codes drawn from gamma distributions around its own.

    A share that is larger than its spread has that spread. A smaller one has an exponential
    distribution, so that the mean stays where it is and nothing becomes negative.

    Args:
        model: the fitted model.
        spread: of each code's share.
        generator: public randomness.
    """
    shares = np.maximum(model.tables @ model.weights, 1e-12)
    shape = np.maximum(1.0, (shares / np.maximum(spread, 1e-12)) ** 2)
    drawn = np.where(spread > 0.0, generator.gamma(shape) / shape, 1.0)
    start = model.schema.code_start
    own = np.maximum(model.own * drawn[:, None], 1e-12)
    own /= np.repeat(np.add.reduceat(own, start[:-1]), np.diff(start), axis=0)
    return Mixture(model.schema, model.weights, own, model.edges)
