"""How large the named tables are, known without reading them: a resumed run need not read them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from dualquery.base.checks import one_of
from dualquery.paper.datasets import adult, kdd99, netflix

_SIZES = {
    "adult": (adult.ROWS, 235),
    "kdd99": (kdd99.ROWS, 396),
    "ratings": (netflix.ROWS, netflix.MOVIES),
    "netflix": (netflix.ROWS, netflix.MOVIES),
}
MARGINALS = "marginals"
"""The kind of workload that most experiments have: random 3-way marginals."""

DATA_SETS = tuple(_SIZES)
GENERATED = ("ratings",)
_QUICK = {"ratings": (50_000, 2_000)}


def size_of(name: str, quick: bool = False) -> tuple[int, int]:
    """Rows and bits of a named table; an invented one is smaller in a quick run."""
    sizes = {**_SIZES, **(_QUICK if quick else {})}
    return sizes[one_of("dataset", name, sizes)]


@dataclass(frozen=True)
class BenchSize:
    """The table and the workload of a run, by name and size: what a bench decides about a run."""

    dataset: str
    table_rows: int
    bits: int
    queries: int
    kind: str = MARGINALS

    def cells(self) -> dict[str, object]:
        """The cells of a stored run."""
        return asdict(self)


def bench_size(name: str, queries: int, quick: bool = False) -> BenchSize:
    """So many random marginals on a named table."""
    return BenchSize(name, *size_of(name, quick), queries)
