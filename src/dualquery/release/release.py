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

    def write_description(self, rows: str | Path, *, overwrite: bool = False) -> dict[str, Path]:
        """Describe a file of sampled rows for data portals and readers.

        Beside `rows.csv` stand then `rows.datapackage.json` (Frictionless: a Data Package with a
        Table Schema), `rows.croissant.json` (Croissant 1.0) and `rows.codebook.html`.

        Args:
            rows: the file of rows: .csv, .csv.gz or .parquet.
            overwrite: whether to replace earlier descriptions.

        Returns:
            The files, by `datapackage`, `croissant` and `codebook`.
        """
        from dualquery.release.metadata import write_descriptions

        return write_descriptions(self, Path(rows), overwrite=overwrite)


def load(path: str | Path) -> Release:
    """Read a release directory, and check that nobody changed it since it was written."""
    found = read_published(path)
    return Release(**{field.name: getattr(found, field.name) for field in fields(found)})
