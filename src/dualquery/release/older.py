"""Releases of older formats: what they lack, and how they are read today.

An old release stays readable. Whoever raises `directory.FORMAT` says here what the format before
it lacks, and keeps a small release of it in `tests/release/data`.
"""

from __future__ import annotations

from dualquery.base.stored import Document

FIRST_WITH_DIGEST = 2
"""Format 1 has no digest in `release.json`."""

FIRST_WITH_STAMPS = 2
"""In format 1 only the statement and the words of the page say that a run was seeded."""


def completed(content: Document) -> Document:
    """What `release.json` of any readable format says, with the fields that the current one has."""
    made = dict(content)
    if made["format"] == 1:
        # Names of columns were not yet read off a header, so there is no pattern to report.
        made["privacy"] = {"public_header": [], **made["privacy"]}
    return made
