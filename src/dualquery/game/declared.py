"""Every array that is read back, declared: of releases, their workloads and models, and journals.

`base.gate` reads arrays as they are declared here, and refuses the others. Then `check_workload`,
`check_model` and `check_measured` refuse what no single array shows: a code that its attribute does
not have, groups that are no partition, a distribution that does not add up to one. After that no
array holds an index that compiled code could not follow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from dualquery.base.errors import ReleaseError
from dualquery.base.gate import Declared, Declaring, Number, Size, check_numbers
from dualquery.base.stored import Array, Arrays, Document
from dualquery.domain.schema import Schema
from dualquery.model.pair_kinds import PAIR_KINDS
from dualquery.model.standard_errors import KINDS, LEVELS, MOST_COUNTED, MOST_LITERALS
from dualquery.workloads.actions import Actions

DEEPEST = 12
"""Of at most 2¹² edges in a row: a stranger's chain of a million would never be walked."""

SAME = 1e-4
"""Probabilities add up to one to this distance: they are fitted in single precision."""

HOTTEST = 1e15
"""Temperatures and scales of noise are at most this large."""

_LARGE = 1e15
"""Parameters of models are at most this large: whatever step is made of them, and divided by the
smallest divisor, stays finite in single precision."""

_SHARED = ("attributes", "codes", "largest", "queries", "rounds")
"""Sizes that all rounds have in common."""

WORKLOAD = {
    "attribute": Declared("i4", ("literals",), least=0, below="attributes"),
    "literal_start": Declared("i8", ("literals+1",), rises_to="codes of literals"),
    "codes": Declared("i4", ("codes of literals",), least=0, below="largest"),
    "start": Declared("i8", ("queries+1",), rises_to="terms"),
    "terms": Declared("i4", ("terms",), least=0, below="2*literals"),
    "is_parity": Declared("b1", ("queries",)),
    "asked": Declared("i8", least=1),
    "offsets": Declared("f8", ("queries",), least=-1e6, most=1e6),
}
"""`workload.npz`: the queries that could be drawn."""

MODEL = {
    "weights": Declared("f8", ("components",), least=0.0, most=1.0 + SAME),
    "tables": Declared("f8", ("codes", "components"), least=0.0, most=1.0 + SAME),
    "error_scale": Declared("f8", ("rows", "levels"), least=1e-9, most=1e3),
    "missed_dependence": Declared("f8", (PAIR_KINDS,), least=0.0, most=1e3, optional=True),
    "lost_parts": Declared("f8", (MOST_LITERALS,), least=-1e3, most=1e3, optional=True),  # of 0.2
    "unasked_factors": Declared("f8", (KINDS, MOST_COUNTED), least=0.0, most=1e6, optional=True),
}
"""`model.npz`: the fitted model, and the errors of its answers."""

EDGES = {
    "parent": Declared("i8", ("attributes",), least=-1, below="attributes"),
    "group_of_code": Declared("i4", ("codes",), least=0, below="largest"),
    "group_sizes": Declared("i4", ("attributes",), least=1),
    "ties": Declared("f8", ("fits", "ties"), least=-1e4, most=1e4),
    "fit": Declared("i8", ("components",), least=0, below="fits"),
}
"""The same of a model with edges."""

_DRAWN = {
    "queries": Declared("i8", ("draws",), least=0, below="queries"),
    "negated": Declared("b1", ("draws",)),
}

_ROUNDS = {
    "temperatures": Declared("f8", ("rounds",), least=0.0, most=HOTTEST),
    "draw_counts": Declared("i8", ("rounds",), least=0),
    **_DRAWN,
}

_MOVES = {
    "record": Declared("i4", ("attributes",), least=0, below="largest"),
    "logits": Declared("f4", ("parameters",), least=-_LARGE, most=_LARGE),
    "_mean": Declared("f4", ("parameters",), least=-_LARGE, most=_LARGE),
    "_square": Declared("f4", ("parameters",), least=0.0, most=_LARGE**2),
    "members": Declared("f4", ("members", "parameters"), least=-_LARGE, most=_LARGE),
}

_MEASURED = {
    "attributes": Declared("i4", ("tables", "arity"), least=0, below="attributes"),
    "code_start": Declared("i8", ("attributes+1",), rises_to="grouped codes"),
    "of_code": Declared("i4", ("grouped codes",), least=0),
    "sizes": Declared("i4", ("attributes",), least=1),
    "counts": Declared("i8", ("cells",)),
    "scale": Declared("f8", least=1e-9, most=HOTTEST),
    "laplace": Declared("b1"),
    "expected": Declared(
        "f8", ("cells",), least=-SAME, most=1.0 + SAME, unknown=True, optional=True
    ),
}

_RARE_CELLS = {
    "attributes": Declared("i4 i8", ("cells", "arity"), least=0, below="attributes"),
    "rare_codes": Declared("u1 i4 i8", ("attributes",), least=0, most=1),
    "weights": Declared("i4 i8", ("cells",), least=1, most=2**31),
    "scale": Declared("f8", least=1e-9, most=HOTTEST),
}

_CHARGES = {
    **_RARE_CELLS,
    "edges": Declared("i4 i8", ("bins+1",), least=0),
    "counts": Declared("i4 i8", ("bins",)),
}

_RARE = {
    **_RARE_CELLS,
    "most": Declared("i4 i8", least=1, most=2**31),
    "counts": Declared("i4 i8", ("cells",)),
}

_CHOICE = {
    "attributes": Declared("i4", ("chosen", "widest"), least=-1, below="attributes"),
    "temperature": Declared("f8", least=0.0, most=HOTTEST),
    "candidates": Declared("i8", least=1, most=2**31),
    "digest": Declared("u1", (16,), least=0, most=255),
}

_COUNT = Number(0, 1e12, whole=True)
_STEPS, _FITS = Number(0, 20_000, whole=True), Number(1, 4096, whole=True)
"""Steps and sizes of fits: tens of times as many as any plan has."""

TRAINING = {
    "components": _FITS,
    "round_steps": Number(1, 20_000, whole=True),
    "most_passes": Number(1, 1000, whole=True),
    "final_steps": _STEPS,
    "rate": Number(0.0, 100.0),
    "noise": Number(0.0, 100.0),
    "shrinkage": Number(0.0, 1e6),
    "seed": Number(0, 2.0**63, whole=True),
}
"""How the model of a release was trained."""

PLAN = {
    "resolution": Number(0.0, 1e30),
    "components": _FITS,
    "members": _FITS,
    "round_members": Number(1, 4096, whole=True, optional=True),
    "first_steps": _STEPS,
    "round_steps": _STEPS,
    "last_steps": _STEPS,
    "largest_tree": Number(1, 2**20, whole=True, optional=True),
    "shrinkage": Number(0.0, 1e30, optional=True),
}
STEP = {
    "share": Number(0.0, 1.0),
    "tables": _COUNT,
    "draws": _COUNT,
    "level": Number(-1000, 1000, whole=True, optional=True),
}
"""The plan of measured tables, and each of its steps."""

STATEMENT = {
    "delta": Number(0.0, 1.0),
    "rows": Number(1, 1e15, whole=True),
    "mu": Number(0.0, 1e300),
    "rho": Number(0.0, 1e300),
    "exceeds": Number(0.0, 1.0, optional=True),
}
"""The figures of a privacy statement that are not computed again, or only from one another."""


def check_description(content: Document) -> None:
    """Refuse numbers in `release.json` that no run has. What they mean is checked later."""
    parameters = content["parameters"]
    check_numbers(content["privacy"], STATEMENT, "its privacy statement")
    check_numbers(parameters["training"], TRAINING, "its training")
    plan = parameters.get("tables")
    if plan is not None:
        check_numbers(plan, PLAN, "its plan")
        for step in plan["steps"]:
            check_numbers(step, STEP, "a step of its plan")


def check_known(content: Document, schema: Schema) -> None:
    """Refuse known shares of codes that the schema does not have."""
    for total in content["parameters"].get("known", ()):
        largest = {"attribute": Number(0, len(schema) - 1, whole=True), "share": Number(0.0, 1.0)}
        check_numbers(total, largest, "a known share")
        size = int(schema.sizes[total["attribute"]])
        if not all(type(code) is int and 0 <= code < size for code in total["codes"]):
            raise ReleaseError("a known share: expected codes that its attribute has")


def sizes_of(schema: Schema) -> dict[str, int]:
    """The sizes that a schema tells."""
    return {
        "attributes": len(schema),
        "codes": int(schema.code_start[-1]),
        "largest": int(schema.sizes.max()),
    }


def sizes_of_run(actions: Actions | None) -> dict[str, int]:
    """The sizes that bound a journal: those of the queries that its run draws."""
    if actions is None:
        return {"queries": 1 << 31, "largest": 1 << 31}
    return {**sizes_of(actions.queries.schema), "queries": len(actions)}


def workload(names: Collection[str]) -> Mapping[str, Declared]:
    """What `workload.npz` holds."""
    return WORKLOAD


def model(names: Collection[str]) -> Mapping[str, Declared]:
    """What `model.npz` holds."""
    return {**MODEL, **EDGES} if "parent" in names else MODEL


def transcript(rounds: int) -> Declaring:
    """What `transcript.npz` holds of so many rounds."""

    def declared(names: Collection[str]) -> Mapping[str, Declared]:
        found = dict(_ROUNDS)
        parts: dict[str, list[str]] = {}
        for name in names:
            kind, _, rest = name.partition("_")
            if kind == "move" and rest in _MOVES:
                found[name] = replace(_MOVES[rest], shape=("rounds", *_MOVES[rest].shape))
            elif kind in ("measured", "played"):
                number, _, array = rest.partition("_")
                if not number.isdecimal() or int(number) >= rounds:
                    raise ReleaseError(f"{name} belongs to none of its {rounds} rounds")
                parts.setdefault(f"{kind}_{number}_", []).append(array)
        for prefix, inside in parts.items():
            every = measured(inside) if prefix.startswith("measured") else moves(inside)
            found |= {f"{prefix}{name}": _own(what, prefix) for name, what in every.items()}
        return found

    return declared


def drawn(names: Collection[str]) -> Mapping[str, Declared]:
    """What a journal holds of the draws and measurements of a round."""
    return {**_DRAWN, **(measured(names) if "attributes" in names else {})}


def moved(names: Collection[str]) -> Mapping[str, Declared]:
    """What a journal holds of the answer to a round."""
    return {"notes": Declared("u1", ("bytes of notes",), least=0, most=255), **moves(names)}


def moves(names: Collection[str]) -> Mapping[str, Declared]:
    """The arrays of a move."""
    return {name: what for name, what in _MOVES.items() if name in names}


def measured(names: Collection[str]) -> Mapping[str, Declared]:
    """The arrays of a measurement or a choice, of whichever kind has arrays of these names."""
    if "candidates" in names:
        return _CHOICE
    if "rare_codes" not in names:
        return _MEASURED
    return _CHARGES if "edges" in names else _RARE


def _own(what: Declared, prefix: str) -> Declared:
    """The same for one round of several: what the others do not share, it has for itself."""

    def named(size: Size) -> Size:
        return (
            size if isinstance(size, int) or size.removesuffix("+1") in _SHARED else prefix + size
        )

    to = None if what.rises_to is None else prefix + what.rises_to
    return replace(what, shape=tuple(map(named, what.shape)), rises_to=to)


def check_workload(arrays: Arrays, schema: Schema) -> None:
    """Refuse literals whose codes their attribute does not have, or that name one twice."""
    start, codes = arrays["literal_start"], arrays["codes"]
    lengths = np.diff(start)
    if (codes >= np.repeat(schema.sizes[arrays["attribute"]], lengths)).any():
        raise ReleaseError("its queries ask for codes that their attributes do not have")
    rises = np.ones(len(codes), dtype=bool)
    rises[1:] = codes[1:] > codes[:-1]
    rises[start[:-1]] = True
    if not rises.all():
        raise ReleaseError("the codes of a literal in its queries do not rise")
    if int(arrays["asked"]) > len(arrays["is_parity"]):
        raise ReleaseError("it asks more queries than it has")


def check_model(arrays: Arrays, schema: Schema) -> None:
    """Refuse a model that is no distribution."""
    weights, tables, errors = arrays["weights"], arrays["tables"], arrays["error_scale"]
    sums = np.add.reduceat(tables, schema.code_start[:-1], axis=0)
    if abs(float(weights.sum()) - 1.0) > SAME or (np.abs(sums - 1.0) > SAME).any():
        raise ReleaseError("the probabilities of its model do not add up to one")
    kinds = len(errors) / MOST_LITERALS
    if errors.size and (kinds not in (1, PAIR_KINDS) or errors.shape[1] != len(LEVELS) - 1):
        raise ReleaseError(f"error_scale has shape {errors.shape}")
    if "parent" in arrays:
        _check_edges(arrays, schema)


def _check_edges(arrays: Arrays, schema: Schema) -> None:
    """Refuse edges that form a circle, groups that are no partition, and ties of other edges."""
    parent, of_code, sizes = arrays["parent"], arrays["group_of_code"], arrays["group_sizes"]
    above = parent
    for _ in range(DEEPEST):  # each time the ancestor twice as far up
        above = np.where(above < 0, above, above[above])
    if (above >= 0).any():
        raise ReleaseError("the edges of its model form a circle, or are too many in a row")
    _check_partition(schema.code_start, of_code, sizes)
    child = parent >= 0
    cells = (sizes[child].astype(np.float64) * sizes[parent[child]]).sum()
    if not child.any() or cells != arrays["ties"].shape[1]:
        raise ReleaseError(f"its model has {arrays['ties'].shape[1]} ties, expected {cells:g}")


def _check_partition(start: Array, of_code: Array, sizes: Array) -> None:
    """Refuse groups that are no partition of the codes of every attribute."""
    lengths = np.diff(start)
    if (sizes > lengths).any() or (of_code >= np.repeat(sizes, lengths)).any():
        raise ReleaseError("the groups of its tables are none of their codes")
    begins = np.cumsum(sizes, dtype=np.int64) - sizes
    if not np.bincount(np.repeat(begins, lengths) + of_code, minlength=int(sizes.sum())).all():
        raise ReleaseError("the groups of its tables are none of their codes")


def check_rounds(arrays: Arrays, schema: Schema) -> None:
    """Refuse draws that do not fit the rounds, and records that the schema does not have."""
    if int(arrays["draw_counts"].sum()) != len(arrays["queries"]):
        raise ReleaseError("its draws are not those of its rounds")
    check_records(arrays.get("move_record"), schema)


def check_records(records: Array | None, schema: Schema) -> None:
    """Refuse records with codes that their attributes do not have."""
    if records is not None and (records >= schema.sizes).any():
        raise ReleaseError("its records have codes that their attributes do not have")


def check_measured(arrays: Arrays) -> None:
    """Refuse tables whose groups are no partition, and counts that are not those of their cells.

    The price of a table rests on its cells being disjoint. A choice looks at its own sets.
    """
    if "candidates" in arrays:
        return
    if "rare_codes" in arrays:
        edges = arrays.get("edges")
        if edges is not None and (edges[0] != 0 or not (edges[1:] > edges[:-1]).all()):
            raise ReleaseError("its bins of charges do not rise from 0")
        return
    sizes = arrays["sizes"]
    _check_partition(arrays["code_start"], arrays["of_code"], sizes)
    # As floating-point numbers: whole ones would wrap around, and fit.
    cells = sizes.astype(np.float64)[arrays["attributes"]].prod(axis=1).sum()
    if cells != len(arrays["counts"]):
        raise ReleaseError(f"its tables have {cells:g} cells, but {len(arrays['counts']):,} counts")
