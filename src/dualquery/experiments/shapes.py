"""How large the named tables are, known without reading them: a resumed run need not."""

from __future__ import annotations

from dualquery.datasets import adult, kdd99, netflix

_SHAPES = {
    "adult": (adult.ROWS, 235),
    "kdd99": (kdd99.ROWS, 396),
    "ratings": (480_189, 17_770),
    "netflix": (netflix.ROWS, netflix.MOVIES),
}
_QUICK = {"ratings": (50_000, 2_000)}


def shape_of(name: str, quick: bool = False) -> dict[str, object]:
    """The cells of a row that the table decides."""
    from dualquery.errors import ParameterError

    shapes = {**_SHAPES, **(_QUICK if quick else {})}
    if name not in shapes:
        raise ParameterError(f"unknown data set {name!r}; expected one of {', '.join(shapes)}")
    rows, bits = shapes[name]
    return {"dataset": name, "table_rows": rows, "bits": bits}
