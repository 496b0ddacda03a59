"""Which runs need not be tried, and why: their row says so in a line.

A method that died, or refused a table, is not asked for a wider table of the same kind. Nor is one
whose own growth leads over the limit: the processor seconds of its two widest stored runs on tables
of the same kind, continued as a power of the number of columns. On narrow tables, what a method
does once counts most, so this growth tends to be too slow. Even so, a run is left out only if the
prediction is well over the limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dualquery.paper.experiments.store import FinishedRun, as_text, where
from dualquery.paper.field.alone import Limits
from dualquery.paper.field.methods import OUR_ROWS, OURS

DIED, REFUSED, NOT_RUN = "died", "refused", "not run"
"""How a run may end without answers: over a limit, by the method's own word, or untried."""

PREDICTED = f"{NOT_RUN}: predicted"
CLEARLY = 1.25
"""How many times the limit a prediction must be before a run is left out."""


def untried(key: Mapping[str, object], stored: Sequence[FinishedRun]) -> str:
    """Why a run need not be tried; empty if it may run.

    Args:
        key: the cells that tell the run from others.
        stored: all runs so far.
    """
    return ended_before(key, stored) or over_the_limit(key, stored)


def ended_before(key: Mapping[str, object], stored: Sequence[FinishedRun]) -> str:
    """That the method of a run has ended on an easier table; empty if it has not.

    Args:
        key: the cells that tell the run from others.
        stored: all runs so far.
    """
    wanted, epsilon = int(str(key["columns"])), as_text(key["epsilon"])
    for past in _same_kind(key, stored):
        how, columns = past["end"].partition(":")[0], int(past["columns"])
        # Whether a method refuses may depend on ε, and to ask again costs nothing.
        again = how == DIED or (how == REFUSED and past["epsilon"] == epsilon)
        if columns < wanted and again:
            return f"{NOT_RUN}: {how} at {columns} columns"
        if columns == wanted and how == DIED:
            return f"{NOT_RUN}: {how} at ε = {past['epsilon']}"
    return ""


def over_the_limit(
    key: Mapping[str, object], stored: Sequence[FinishedRun], limits: Limits | None = None
) -> str:
    """That the growth of a run's method leads far over the limit; empty if it does not.

    Args:
        key: the cells that tell the run from others.
        stored: all runs so far.
        limits: of the run; None for the usual ones.
    """
    if key["method"] in (OURS, OUR_ROWS):
        return ""  # its plan changes with the width, so its time follows no power
    most = (limits or Limits()).seconds
    seconds = predicted(key, stored)
    if seconds is None or seconds < CLEARLY * most:
        return ""
    return f"{PREDICTED} {seconds:.0f} processor seconds; over the limit of {most}"


def predicted(key: Mapping[str, object], stored: Sequence[FinishedRun]) -> float | None:
    """Processor seconds of a run, from its method's growth; None without two narrower widths.

    Runs at ε = 1 count, which every table has, and of several at one width the fastest. Times that
    fall with the width are taken as constant.

    Args:
        key: the cells that tell the run from others.
        stored: all runs so far.
    """
    wanted = int(str(key["columns"]))
    times: dict[int, float] = {}
    for past in where(_same_kind(key, stored), epsilon=1.0):
        columns = int(past["columns"])
        if not past["end"] and columns < wanted:
            seconds = past.number("processor_seconds")
            times[columns] = min(seconds, times.get(columns, math.inf))
    if len(times) < 2:
        return None
    (narrow, before), (wide, after) = sorted(times.items())[-2:]
    power = max(0.0, math.log(after / before) / math.log(wide / narrow))
    return float(after * (wanted / wide) ** power)


def _same_kind(key: Mapping[str, object], stored: Sequence[FinishedRun]) -> list[FinishedRun]:
    return where(stored, **{name: key[name] for name in ("method", "dataset", "kind")})
