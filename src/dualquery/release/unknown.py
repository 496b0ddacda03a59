"""Attributes of which a release knows nothing, because no query that could be drawn names them.

What a model or a record says about them is what it was started with: the declared default. It must
not be published as a fact.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from dualquery.base.checks import choice

MOST_NAMES = 10
"""Attributes that a message names one by one."""


class Unknown(StrEnum):
    """What an answer on such an attribute is: an error, or whatever the declared default gives."""

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
    """One line that says of which attributes a release will know nothing."""
    return (
        f"no query of the workload names {len(names):,} of {total:,} attributes: {listed(names)}; "
        "the release will know nothing about them"
    )


def about_sample(names: Sequence[str]) -> str:
    """One line about the columns of synthetic rows that hold no knowledge."""
    return (
        f"unknown: {len(names):,} columns hold what was declared as default, because no query of "
        f"the release names them: {listed(names)}"
    )
