"""How well can neighbours be told apart from what is released? Private side.

Every draw and every noisy count has an exactly known likelihood given the table, so the best test
is known too: the likelihood ratio of the whole transcript, with its threshold at 1, fixed before
anything is played. A thousand runs of neighbours say little: at μ = 0.5, two in five guesses are
wrong, and the interval around that is wide. So the tables differ in a group of k records. A
mechanism that is μ-private for one record is kμ-private for k, hence a lower bound for the group,
divided by k, is one for μ, and its interval is about k times as narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dualquery.auditing.bound import CONFIDENCE, Rates
from dualquery.auditing.playing import Setting
from dualquery.auditing.report import Finding
from dualquery.auditing.worlds import Worlds
from dualquery.domain.schema import Schema
from dualquery.estimator.settings import Mechanism
from dualquery.privacy.accountants.gaussian import epsilon_of_mu
from dualquery.privacy.sources import SeededSource
from dualquery.rows.encoding import Codes

BEST = 3.0
"""The μ of a group at which so many runs tell most: one guess in fifteen is then wrong."""

NAME = "lower bound on mu"

SEED = 1_000_003
"""Runs are seeded, so that an audit can be repeated: nothing of them is published."""


def not_asked() -> Finding:
    """What stands in the place of the bound if no releases were asked for."""
    told = "--releases 2000 makes so many small releases, and takes a minute"
    return Finding("e", NAME, None, told)


def look(
    schema: Schema,
    fine: Codes,
    mechanism: Mechanism,
    releases: int,
    observer: Callable[[int, int], None] = lambda done, total: None,
) -> Finding:
    """Make many small releases of two tables, and bound μ from below.

    Args:
        schema: a few attributes.
        fine: the records, as codes of sub-bins.
        mechanism: what is promised.
        releases: how many, half of them of each table.
        observer: told how many are done, and of how many.
    """
    unit, rows = mechanism.protected, len(fine)
    neighbours = unit.neighbours
    stated = Setting(Worlds.of(schema, fine, unit.influence, neighbours), mechanism).stated
    group = max(1, min(round(BEST / stated), rows // (4 * unit.influence)))
    setting = Setting(Worlds.of(schema, fine, group * unit.influence, neighbours), mechanism)
    wrong = [0, 0]
    half = (releases + 1) // 2
    for number in range(2 * half):
        world = number % 2
        ratio = setting.take(world, SeededSource(SEED + number)).ratio
        wrong[world] += (ratio < 0.0) if world == 0 else (ratio >= 0.0)
        observer(number + 1, 2 * half)
    low, found, high = (one / group for one in Rates(wrong[1], half, wrong[0], half).mu())
    epsilon = epsilon_of_mu(low, mechanism.delta)
    records = "record" if mechanism.unit is None else "person"
    told = (
        f"mu >= {low:.3f} with {CONFIDENCE:.0%} confidence (estimate {found:.3f}, up to "
        f"{high:.3f}), stated {stated:.3f}; epsilon >= {epsilon:.3f} at delta = "
        f"{mechanism.delta:g}, stated {mechanism.epsilon:g}; {2 * half:,} releases of tables "
        f"{group} {records}s apart"
    )
    figures = {
        "releases": 2 * half, "apart": group, "confidence": CONFIDENCE, "mu_lower": low,
        "mu_estimate": found, "mu_upper": _finite(high), "mu_stated": stated,
        "epsilon_lower": epsilon, "epsilon_stated": mechanism.epsilon,
        "false_alarms": wrong[1], "misses": wrong[0],
    }  # fmt: skip
    return Finding("e", NAME, low <= stated, told, figures)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
