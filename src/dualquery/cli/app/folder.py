"""The folder of the app: what a page asks for by name lies in it, or is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from dualquery.base.errors import ParameterError
from dualquery.base.stored import Json

ENDINGS = (
    ".csv", ".tsv", ".gz", ".bz2", ".zst", ".parquet", ".pq", ".feather", ".arrow", ".ipc",
    ".arrows", ".orc", ".sav", ".zsav", ".dta", ".sas7bdat", ".xpt", ".xlsx", ".xlsm", ".xlsb",
    ".xls", ".ods", ".jsonl", ".ndjson", ".db", ".sqlite", ".duckdb", ".npy",
)  # fmt: skip
"""What files are called that are offered as tables; any other can be named."""

MOST_OFFERED = 500

_DATABASE = re.compile(r"\A(sqlite|duckdb):(?P<file>[^#]*)(?P<table>#\w+)?\Z")
"""A table of a database. A query is no table: it could read files elsewhere."""


class Folder:
    """The files that the page may name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def inside(self, name: object, what: str) -> Path:
        """The path of what the page named; links are followed before it is judged.

        Args:
            name: as the page gave it, from the folder or from the root.
            what: what it should be, in words.
        """
        if not isinstance(name, str) or not name.strip() or "\0" in name:
            raise ParameterError(f"name {what}")
        found = (self.path / name.strip()).resolve()
        if not found.is_relative_to(self.path) or found == self.path:
            raise ParameterError(
                f"{what} has to lie in {str(self.path)!r}; to use another folder, close this page "
                "and start it with `dualquery app FOLDER`"
            )
        return found

    def table(self, name: object) -> str:
        """A table as the commands take it: a path, or a part of a database."""
        found = _DATABASE.match(name) if isinstance(name, str) else None
        if found is None:
            return str(self._there(name))
        return f"{found[1]}:{self._there(found['file'])}{found['table'] or ''}"

    def _there(self, name: object) -> Path:
        found = self.inside(name, "the table")
        if not found.exists():
            raise ParameterError(f"there is no {self.shown(found)!r} in the folder")
        return found

    def shown(self, path: Path) -> str:
        """A path as the page names it."""
        return path.relative_to(self.path).as_posix()

    def listed(self) -> Json:
        """What lies in the folder, by what it may be used for."""
        files = [one for one in self.path.iterdir() if not one.name.startswith(".")]
        plain = sorted(one for one in files if one.is_file() and not one.is_symlink())
        folders = sorted(one for one in files if one.is_dir() and not one.is_symlink())
        return {
            "folder": str(self.path),
            "tables": self._names(one for one in plain if one.suffix.lower() in ENDINGS),
            "schemas": self._names(one for one in plain if one.suffix == ".toml"),
            "ledgers": self._names(one for one in plain if one.name.endswith("ledger.json")),
            "releases": self._names(one for one in folders if (one / "release.json").is_file()),
        }

    def _names(self, found: Iterable[Path]) -> list[str]:
        return [self.shown(one) for one in found][:MOST_OFFERED]
