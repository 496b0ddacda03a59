"""How large the named tables are, known without reading them: a resumed run need not."""

from __future__ import annotations

from dualquery.base.errors import ParameterError
from dualquery.paper.datasets import adult, kdd99, netflix

_SIZES = {
    "adult": (adult.ROWS, 235),
    "kdd99": (kdd99.ROWS, 396),
    "ratings": (netflix.ROWS, netflix.MOVIES),
    "netflix": (netflix.ROWS, netflix.MOVIES),
}
DATA_SETS = tuple(_SIZES)
GENERATED = ("ratings",)
_QUICK = {"ratings": (50_000, 2_000)}


def size_of(name: str, quick: bool = False) -> tuple[int, int]:
    """Rows and bits of a named table; what is invented is smaller in a quick run."""
    sizes = {**_SIZES, **(_QUICK if quick else {})}
    if name not in sizes:
        raise ParameterError(f"unknown data set {name!r}; expected one of {', '.join(sizes)}")
    return sizes[name]


def shape_of(name: str, quick: bool = False) -> dict[str, object]:
    """The cells of a row that the table decides."""
    rows, bits = size_of(name, quick)
    return {"dataset": name, "table_rows": rows, "bits": bits}
