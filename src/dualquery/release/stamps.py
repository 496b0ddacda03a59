"""The stamp of a seeded run in each of its files, and the check that all files agree.

A file that is copied out of a release must still say that its draws can be repeated. A Parquet file
carries the stamp in its key-value metadata, an `.npz` in an array `stamp`, the page in its head and
in its text, and `release.json` in the privacy statement. A file of a private run carries no stamp.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from html import unescape
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ReleaseError
from dualquery.base.gate import Declared, read_arrays

STAMP = "stamp"
"""The name of the note or array that holds the stamp."""

HEAD_BYTES = 4096
"""Bytes of a page that are searched: its head begins with the stamp, before the style and before
everything that a user wrote."""

_META = re.compile(r'<meta name="dualquery-stamp" content="([^"]*)">')


def arrays(stamp: str) -> dict[str, npt.NDArray[np.str_]]:
    """The arrays that a stamped `.npz` holds besides its own."""
    return {STAMP: np.array(stamp)} if stamp else {}


def notes(stamp: str) -> dict[str, str]:
    """The notes in the metadata of a stamped Parquet file."""
    return {STAMP: stamp} if stamp else {}


def _stamped(names: Collection[str]) -> Mapping[str, Declared]:
    return {STAMP: Declared("U", optional=True)}


def stamp_of(file: Path) -> str:
    """The stamp that a file carries; empty if it carries none."""
    if file.suffix == ".parquet":
        from pyarrow import parquet

        from dualquery.release.frames import note_key  # figures need no frames

        kept = parquet.read_schema(file).metadata or {}
        return str(kept.get(note_key(STAMP), b""), "utf-8")
    if file.suffix == ".npz":
        return str(read_arrays(file, str(file), _stamped, {}).get(STAMP, ""))
    with file.open("rb") as stream:
        found = _META.search(stream.read(HEAD_BYTES).decode("utf-8", errors="replace"))
    return unescape(found[1]) if found else ""


def check_stamps(
    folder: Path, names: Iterable[str], stamp: str, *, every_file: bool = True
) -> None:
    """Refuse a release in which a file is stamped and the statement is not, or the reverse.

    Args:
        folder: the release directory.
        names: its files, except `release.json`.
        stamp: what the statement in `release.json` says.
        every_file: False for an old format, whose files carry no stamp of their own. A file that
            carries one must still agree with the statement.
    """
    allowed = {stamp} if every_file else {stamp, ""}
    for name in names:
        found = stamp_of(folder / name)
        if found not in allowed:
            raise ReleaseError(
                f"{str(folder / name)!r} is stamped {found!r}, but release.json says {stamp!r}; "
                "they are not of one release"
            )
