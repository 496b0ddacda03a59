"""The Netflix prize, from a user's own copy in its published text format.

The data were withdrawn, so nothing is downloaded. A copy is a folder of `mv_*.txt` files, or any
text files of the same form: a line `MOVIE:`, then a line `USER,RATING,DATE` per rating. As in the
paper, attribute `movie_N` is 1 where a person has rated film N.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import TableError
from dualquery.base.ragged import offsets
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

MOVIES = 17_770
ROWS = 480_189


def schema(movies: int = MOVIES) -> Schema:
    """One 0/1 attribute per film."""
    return Schema(tuple(Attribute.binary(f"movie_{number}") for number in range(1, movies + 1)))


def read_ratings(source: Path, movies: int = MOVIES) -> csc_matrix:
    """The ratings as a SciPy sparse 0/1 matrix, people in the order of their numbers."""
    from scipy import sparse

    files = sorted(source.glob("*.txt")) if source.is_dir() else [source]
    if not files:
        raise TableError(f"no .txt file with ratings in {str(source)!r}")
    columns: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)] * movies
    for file in files:
        for movie, users in _movies(file):
            if not 1 <= movie <= movies:
                raise TableError(f"{file.name!r}: film {movie}; expected 1 to {movies}")
            columns[movie - 1] = np.unique(np.concatenate([columns[movie - 1], users]))
    start = offsets([len(users) for users in columns])
    identifiers, rows = np.unique(np.concatenate(columns), return_inverse=True)
    if not len(identifiers):
        raise TableError(f"no rating in {str(source)!r}")
    return sparse.csc_matrix(
        (np.ones(len(rows), dtype=np.int8), rows.astype(np.int32), start),
        shape=(len(identifiers), movies),
    )


def _movies(file: Path) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """(film, people) for each film of one file."""
    movie: int | None = None
    users: list[int] = []
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text:
                continue
            try:
                if text.endswith(b":"):
                    if movie is not None:
                        yield movie, np.array(users, dtype=np.int64)
                    movie, users = int(text[:-1]), []
                    continue
                users.append(int(text.split(b",", 1)[0]))
            except ValueError:
                raise TableError(
                    f"{file.name!r}, line {number}: {text[:40].decode(errors='replace')!r}; "
                    "expected `MOVIE:` or `USER,RATING,DATE`"
                ) from None
            if movie is None:
                raise TableError(f"{file.name!r}, line {number}: a rating before any `MOVIE:` line")
    if movie is not None:
        yield movie, np.array(users, dtype=np.int64)
