"""Attributes that a release knows nothing about, because no query that could be drawn names them.

A model or a record gives them the declared default that it was started with. This must not be
published as a fact.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from dualquery.base.checks import choice

MOST_NAMES = 10
"""The most attributes that a message names one by one."""


class Unknown(StrEnum):
    """How to answer a query on such an attribute: with an error, or by the declared default."""

    REFUSE = "refuse"
    DEFAULT = "default"

    @classmethod
    def parse(cls, name: str) -> Unknown:
        """The member of that name, or an error that lists the names."""
        return choice("unknown", name, cls)


def listed(names: Sequence[str]) -> str:
    """Names for a message: the first ten, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:MOST_NAMES])
    rest = len(names) - MOST_NAMES
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def about_untouched(names: Sequence[str], total: int) -> str:
    """One line that says which attributes a release will know nothing about."""
    return (
        f"no query of the workload names {len(names):,} of {total:,} attributes: {listed(names)}; "
        "the release will know nothing about them"
    )


def about_sample(names: Sequence[str]) -> str:
    """One line about the columns of synthetic rows that only hold their declared default."""
    return (
        f"unknown: {len(names):,} columns hold what was declared as default, because no query of "
        f"the release names them: {listed(names)}"
    )
