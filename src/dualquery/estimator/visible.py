"""Which relations a plan will make visible: known beforehand, from public quantities alone."""

from __future__ import annotations

import math

import numpy as np

from dualquery.domain.schema import Schema
from dualquery.game.tables_steps import Kind, TablesPlan

SURE = 0.95
"""Of relations that are called visible, so many are."""

SCORE = 0.75
"""By how many records, per record and unit of correlation, a table departs from independence: the
product of two mean absolute deviations. It is .75 of even numbers, .64 of normal ones, 1 of halves.
"""


def visible_relation(plan: TablesPlan | None, schema: Schema) -> float | None:
    """The correlation of two typical columns that a measured table tells from none.

    It does so in 95 of 100 cases. In a table whose cells have the noise σ, a correlation by rank of
    columns with a and b equally frequent codes has the noise σ·√(ab)/n. Where draws choose the
    pairs, a pair must be chosen first. To draw T of m tables is to take the T largest of their
    scores, times β, plus Gumbel noise. So its score must make up for the distance between the
    quantile 1 − T/m of that noise and its lowest twentieth.

    Returns:
        The correlation; it may be above 1, if no relation is visible. None without measured pairs.
    """
    if plan is None or len(schema) < 2:
        return None
    purse, rows = plan.purse, plan.budget.rows
    larger = [step for step in plan.steps if step.kind in (Kind.PAIRS, Kind.NAMED) and step.tables]
    if not larger:
        return None
    noise = min(purse.deviation(step.share, step.tables) for step in larger)
    roots = np.sqrt(schema.sizes.astype(float))
    first, second = np.triu_indices(len(roots), 1)
    measured = 1.96 * noise * float(np.median(roots[first] * roots[second])) / rows
    choices = [step for step in plan.steps if step.kind is Kind.CHOICE]
    if not choices or any(step.kind is Kind.PAIRS for step in larger):
        return measured
    chosen = sum(step.tables for step in choices) / len(first)
    if chosen >= 1.0:
        return measured
    temperature = max(purse.choice_temperature(step.share, step.tables) for step in choices)
    above = _gumbel(1.0 - chosen) - _gumbel(1.0 - SURE)
    return max(measured, above / (temperature * SCORE * rows))


def _gumbel(share: float) -> float:
    """The quantile of the Gumbel distribution."""
    return -math.log(-math.log(share))
