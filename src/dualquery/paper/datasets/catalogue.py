"""Public data sets by name: where their files are searched for, and how they are checked.

A file that the caller gives comes first, then the folder in `DUALQUERY_DATA`, then the cache.
Nothing is downloaded unless the caller asks for it. The checksum is that of the prepared table
before compression, so that it is the same for every copy.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO
from urllib.request import urlopen

from dualquery.base.checks import one_of
from dualquery.base.errors import TableError
from dualquery.domain.schema import Schema
from dualquery.paper.datasets import adult, kdd99, netflix
from dualquery.paper.datasets.encoded import EncodedTable
from dualquery.rows.encoding import OutOfDomain

DATA_FOLDER = "DUALQUERY_DATA"
CACHE_FOLDER = "DUALQUERY_CACHE"

Opener = Callable[[str], BinaryIO]

DAMAGED = (OSError, EOFError, zlib.error, HTTPException)
"""What is raised when a file cannot be read, is cut short, or is no gzip file."""


@dataclass(frozen=True)
class DataSet:
    """A public table.

    Attributes:
        name: what the command line calls it.
        schema: makes its schema.
        rows: how many there are.
        sha256: the checksum of the prepared table.
        url: where the published file is.
        prepare: turns the published file into the table, in parts.
    """

    name: str
    schema: Callable[[], Schema]
    rows: int
    sha256: str
    url: str
    prepare: Callable[[BinaryIO], Iterator[bytes]]

    @property
    def file(self) -> str:
        return f"{self.name}.csv.gz"

    def check(self, path: Path) -> Path:
        """The path; an error if its content is not the published one."""
        found = content_hash(path)
        if found != self.sha256:
            raise TableError(
                f"{str(path)!r} is not the published {self.name}: its content has SHA-256 "
                f"{found[:12]}…, expected {self.sha256[:12]}…"
            )
        return path

    def find(self, data: str | Path | None = None) -> Path | None:
        """The file, from the first place that has it; None if no place has it."""
        if data is not None:
            path = Path(data)
            if path.is_dir():
                path = path / self.file
            if not path.is_file():
                raise TableError(f"no such file: {str(path)!r}")
            return path
        folders = [os.environ.get(DATA_FOLDER), cache_folder()]
        places = [Path(folder) / self.file for folder in folders if folder]
        return next((place for place in places if place.is_file()), None)

    def locate(
        self,
        data: str | Path | None = None,
        *,
        download: bool = False,
        opener: Opener = urlopen,
    ) -> Path:
        """The checked file; it is fetched into the cache only if `download` says so.

        Args:
            data: the file, or a folder that holds it; None searches the usual places.
            download: whether to fetch it if no place has it.
            opener: how to open the address.
        """
        path = self.find(data)
        if path is None:
            if not download:
                raise TableError(
                    f"the data set {self.name!r} is not here: set {DATA_FOLDER} to a folder with "
                    f"{self.file}",
                    python=f"or give its file with data=, or download=True (from {self.url})",
                    command=f"or give its file with --data FILE, or --download (from {self.url})",
                )
            return self.fetch(opener)
        return self.check(path)

    def fetch(self, opener: Opener = urlopen) -> Path:
        """Download the published file, prepare it, and keep it if its checksum is right."""
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{self.name}-", suffix=".csv.gz", dir=folder)
        waiting = Path(name)
        try:
            try:
                with (
                    os.fdopen(handle, "wb") as stream,
                    opener(self.url) as raw,
                    gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as out,
                ):
                    for part in self.prepare(raw):
                        out.write(part)
            except DAMAGED as error:
                raise TableError(f"cannot download {self.url}: {error}") from None
            self.check(waiting)
            return waiting.replace(folder / self.file)
        finally:
            waiting.unlink(missing_ok=True)


def content_hash(path: Path) -> str:
    """SHA-256 of a file; of a gzipped one, after decompression."""
    digest = hashlib.sha256()
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as stream:
            while part := stream.read(1 << 20):
                digest.update(part)
    except DAMAGED as error:
        raise TableError(f"cannot read {str(path)!r}: {error}") from None
    return digest.hexdigest()


def cache_folder() -> Path:
    """Where downloads are kept: `DUALQUERY_CACHE`, or the user's cache folder."""
    named = os.environ.get(CACHE_FOLDER)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dualquery"


DATA_SETS = {
    module.__name__.rsplit(".", 1)[-1]: DataSet(
        module.__name__.rsplit(".", 1)[-1],
        module.schema,
        module.ROWS,
        module.SHA256,
        module.URL,
        module.prepare,
    )
    for module in (adult, kdd99)
}


def get(name: str) -> DataSet:
    """The data set of that name, or an error that lists the names."""
    return DATA_SETS[one_of("dataset", name, DATA_SETS)]


def load(
    name: str,
    data: str | Path | None = None,
    *,
    download: bool = False,
    opener: Opener = urlopen,
) -> tuple[EncodedTable, Schema]:
    """A named data set as codes in memory, with its schema; cells above a range are clamped.

    Args:
        name: the data set.
        data: its file, or a folder that holds it; None searches the usual places.
        download: whether to fetch it if no place has it.
        opener: how to open its address.
    """
    wanted = get(name)
    table = EncodedTable(
        wanted.locate(data, download=download, opener=opener), wanted.schema(), OutOfDomain.CLAMP
    )
    return table, table.schema


def load_netflix(data: str | Path | None) -> tuple[Any, Schema]:
    """The Netflix prize from a user's own copy, read once and cached as a sparse matrix."""
    from scipy import sparse

    folder = os.environ.get(DATA_FOLDER)
    source = Path(data) if data is not None else Path(folder) / "netflix" if folder else None
    if source is None or not source.exists():
        raise TableError(
            "the Netflix prize cannot be downloaded: put its mv_*.txt files as netflix into the "
            f"folder in {DATA_FOLDER}",
            python="or give their folder with data=",
            command="or give their folder with --data FOLDER",
        )
    if source.suffix == ".npz":
        return sparse.load_npz(source), netflix.schema()
    kept = cache_folder() / f"netflix-{_listing(source)}.npz"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        waiting = kept.with_name(f".{os.getpid()}-{kept.name}")
        sparse.save_npz(waiting, netflix.read_ratings(source))
        waiting.replace(kept)
    return sparse.load_npz(kept), netflix.schema()


def _listing(source: Path) -> str:
    """A short hash of names, sizes and times, so that another copy gets another cache entry."""
    files = sorted(source.glob("*.txt")) if source.is_dir() else [source]
    digest = hashlib.sha256()
    for file in files:
        found = file.stat()
        digest.update(f"{file.name} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
