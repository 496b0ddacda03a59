"""A release: what was published, with a directory to keep it in."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from dualquery.release.directory import read_published, write_release
from dualquery.release.published import Published


@dataclass(frozen=True, eq=False, repr=False)  # a release is shown as `Published` shows it
class Release(Published):
    """The published outcome of a run, which can be saved.

    Everything here was computed from the draws alone, so everything may be published. Answers and
    samples come from the fitted model if there is one, else from the game's records. A
    `certificate` says what the accuracy theorem proves about the records of the game.
    """

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the release directory. It appears as a whole, or not at all."""
        return write_release(self, Path(path), overwrite=overwrite)


def load(path: str | Path) -> Release:
    """Read a release directory, and check that nobody changed it since it was written."""
    found = read_published(path)
    return Release(**{field.name: getattr(found, field.name) for field in fields(found)})
