"""What a reader of a release checks before it believes it.

A release may come from anywhere. So the sizes of its arrays are checked before they are unpacked,
and its privacy statement is computed again from the draws.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dualquery.base.errors import ReleaseError
from dualquery.base.files import read_text
from dualquery.base.gate import memory
from dualquery.base.stored import Document
from dualquery.domain.schema import Schema
from dualquery.game.transcript import Round, Transcript
from dualquery.privacy.choosing import Choice
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.rare import Charges, Rare
from dualquery.workloads.marginals import Groups, Marginals

if TYPE_CHECKING:  # whoever only asks for figures does not wait for these
    from dualquery.privacy.statement import PrivacyStatement
    from dualquery.release.parameters import RunParameters

FOOTER, FOOTER_OF_COLUMN = 1 << 20, 1 << 14
"""The most bytes in which a Parquet file describes itself, and each of its columns."""

SAME = 1e-9
"""The relative difference that is allowed, as another machine may round logarithms differently."""


def content_digest(content: Document) -> str:
    """The digest of what `release.json` says, except the digest itself."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def read_json(path: Path) -> Document:
    """The JSON object that a file holds."""
    content = json.loads(read_text(path, "description", ReleaseError))
    if not isinstance(content, dict):
        raise ReleaseError(f"{str(path)!r} does not hold an object")
    return content


def check_measurements(transcript: Transcript, schema: Schema) -> None:
    """Refuse measured tables that are not marginals of the schema.

    That their groups are partitions is known: `game.declared.check_measured` looked at them.
    """
    first = next(iter(transcript), None)
    for number, one in enumerate(transcript):
        if one.measurement is None:
            continue
        if isinstance(one.measurement, Choice):
            # Its sets are different ones of the schema's attributes: the gate looked at them.
            if len(one.draws) or one.temperature:
                raise ReleaseError(f"round {number + 1} chose tables, and drew queries as well")
            continue
        if isinstance(one.measurement, Charges | Rare):
            if not _are_rare_cells(one.measurement, schema) or len(one.draws):
                raise ReleaseError(
                    f"what round {number + 1} measured are no rare cells of its schema"
                )
            continue
        measured, groups = one.measurement.marginals.attributes, one.measurement.marginals.groups
        fits = (
            (np.array_equal(groups.code_start, schema.code_start) or _fine(one, first, schema))
            and measured.size > 0
            and (not len(one.draws) or (number == 0 and one.temperature == 0.0))
        )
        if not fits:
            raise ReleaseError(f"the tables of round {number + 1} are no marginals of its schema")


def _are_rare_cells(rare: Charges | Rare, schema: Schema) -> bool:
    """Whether they are about 0/1 attributes of the schema, and their charges begin at 0."""
    if rare.cells.codes.shape != (len(schema),) or np.any(schema.sizes[rare.cells.used] != 2):
        return False
    if isinstance(rare, Rare):
        return True
    edges = rare.edges
    return bool(edges[0] == 0 and edges[-1] > rare.cells.heaviest and np.all(np.diff(edges) > 0))


def _fine(one: Round, first: Round | None, schema: Schema) -> bool:
    """Whether these are one-way tables of the schema's sub-bins.

    In the tables of the first round every sub-bin stands for itself. Later ones put some together,
    and are about columns that the first round was about.
    """
    if not isinstance(one.measurement, Measurement) or first is None:
        return False
    if not isinstance(first.measurement, Measurement):
        return False
    every, begun = Groups.single(schema.fine), first.measurement.marginals
    if one.measurement.marginals.arity > 1 or begun.arity > 1:
        return False
    groups = one.measurement.marginals.groups
    return (
        np.array_equal(groups.code_start, every.code_start)
        and np.array_equal(begun.groups.code_start, every.code_start)
        and np.array_equal(begun.groups.of_code, every.of_code)
        and bool(np.isin(one.measurement.marginals.attributes, begun.attributes).all())
    )


def check_plan(parameters: RunParameters, transcript: Transcript, schema: Schema) -> None:
    """Refuse a plan of tables that is not the one by which the transcript was made."""
    from dualquery.domain.free import Free

    plan, measured = parameters.tables, [one.measurement is not None for one in transcript]
    if (parameters.free is Free.MEASURED) != (parameters.free_share is not None):
        raise ReleaseError("its parameters do not say what the tables of free attributes cost")
    if plan is None:
        first = parameters.free is Free.MEASURED
        if not first and any(measured):
            raise ReleaseError("it holds measured tables, but its parameters no plan of them")
        if first and (
            not measured[0]
            or any(measured[1:])
            or transcript.records is None
            or not _single_codes(transcript.measurements[0].marginals, schema)
        ):
            raise ReleaseError("it does not hold the tables that its free attributes follow")
        return
    if parameters.free is Free.MEASURED:
        raise ReleaseError("its free attributes follow tables, but a model played")
    from dualquery.game.tables_steps import RARE_KINDS, Kind

    counted = {Kind.CHARGES: Charges, Kind.CHARGES_OF_PAIRS: Charges}
    tables_instead = [Charges if step.kind is Kind.CHARGES else None for step in plan.steps]
    every = [
        counted.get(step.kind, Rare if step.kind in RARE_KINDS else None) for step in plan.steps
    ]
    rare = [
        type(one.measurement) if isinstance(one.measurement, Charges | Rare) else None
        for one in transcript
    ]
    if rare not in (tables_instead, every):
        raise ReleaseError("its rounds are not those of the plan in its parameters")
    chosen = [isinstance(one.measurement, Choice) for one in transcript]
    if chosen != [step.kind is Kind.CHOICE for step in plan.steps]:
        raise ReleaseError("it chose tables, but its plan has no step that does, or the reverse")
    drawn = [step.kind is Kind.DRAWS for step in plan.steps]
    if drawn != [not one for one in measured] or any(
        len(one.draws) for one in transcript if one.measurement is not None
    ):
        raise ReleaseError("its rounds are not those of the plan in its parameters")


def _single_codes(marginals: Marginals, schema: Schema) -> bool:
    """Whether these are one-way tables of the schema's codes, every one for itself."""
    groups, expected = marginals.groups, Groups.single(schema)
    return (
        marginals.arity == 1
        and np.array_equal(groups.code_start, expected.code_start)
        and np.array_equal(groups.of_code, expected.of_code)
    )


def check_records(path: Path, rows: int, schema: Schema) -> None:
    """Refuse a `records.parquet` that declares other columns, or more, than a release has.

    Only its description is read, and never more of that than its columns need: a small file can
    declare more rows than any memory holds.

    Args:
        path: the file.
        rows: the most rows it may have.
        schema: whose attributes are its columns.
    """
    import pyarrow as pa
    from pyarrow import parquet

    from dualquery.release.frames import WIDEST

    names = ["codes"] if len(schema) > WIDEST else list(schema.columns)
    with path.open("rb") as stream:
        stream.seek(-min(8, path.stat().st_size), os.SEEK_END)
        length = int.from_bytes(stream.read(4), "little")
    if length > FOOTER + FOOTER_OF_COLUMN * len(names):
        raise ReleaseError(f"{str(path)!r} has a description of {length:,} bytes")
    try:
        described = parquet.read_metadata(path)
        found = described.schema.to_arrow_schema().names
    except (pa.ArrowException, MemoryError) as error:
        said = " ".join(str(error).split())
        raise ReleaseError(f"cannot read {str(path)!r}: {said}") from None
    if found != names:
        raise ReleaseError(f"{str(path)!r} has other columns than its schema")
    groups = [described.row_group(number) for number in range(described.num_row_groups)]
    declared = (described.num_rows, *(group.num_rows for group in groups))
    if min(declared) < 0 or max(declared) > rows or sum(declared[1:]) != described.num_rows:
        raise ReleaseError(
            f"{str(path)!r} declares {described.num_rows:,} records; expected at most {rows:,}"
        )
    size = sum(group.total_byte_size for group in groups)
    if size > memory():
        raise ReleaseError(f"{str(path)!r} declares {size:,} bytes, more than the memory here")


def check_parameters(
    stated: PrivacyStatement, stamp: object, parameters: RunParameters, transcript: Transcript
) -> None:
    """Refuse parameters that the statement contradicts.

    Args:
        stated: the statement in `release.json`.
        stamp: the stamp beside it.
        parameters: the parameters in `release.json`, which must agree with the statement.
        transcript: the draws.
    """
    for name, said, value in (
        ("delta", parameters.delta, stated.delta),
        ("accountant", parameters.accountant, stated.accountant),
        ("neighbours", str(parameters.neighbours), str(stated.neighbours)),
        ("table_size", parameters.table_size, stated.rows),
        ("unit", parameters.budget.persons, stated.persons),
        ("weight", parameters.budget.weight, stated.weight),
        ("rounds", parameters.rounds, len(transcript)),
    ):
        if said != value:
            raise ReleaseError(f"its parameters say {name} = {said!r}, its statement {value!r}")
    if stated.private != (parameters.seed is None) or stamp != stated.stamp:
        raise ReleaseError("its stamp does not fit its seed")


def check_statement(stated: PrivacyStatement, transcript: Transcript) -> None:
    """Refuse a statement that does not follow from the draws of the transcript."""
    from dualquery.privacy.statement import PrivacyStatement

    again = PrivacyStatement.of(
        transcript.events(stated.rows * stated.unit.parts, stated.unit),
        delta=stated.delta,
        rows=stated.rows,
        neighbours=stated.neighbours,
        persons=stated.persons,
        weight=stated.weight,
        accountant=stated.accountant,
        private=stated.private,
    )
    pairs = [
        ("ε", stated.epsilon, again.epsilon),
        ("μ", stated.mu, again.mu),
        ("ρ", stated.rho, again.rho),
    ]
    for ours, theirs, words in (
        (again.by_accountant, stated.by_accountant, "ε by the {} accountant"),
        (again.replacement, stated.replacement, "ε for replacement by the {} accountant"),
    ):
        # Another accountant, newer than the release, has nothing to be compared with.
        if stated.accountant in ours and stated.accountant not in theirs:
            raise ReleaseError("its statement does not say what it costs by its own accountant")
        pairs += [(words.format(name), theirs[name], ours[name]) for name in ours if name in theirs]
    for name, stated_value, found in pairs:
        if not (stated_value == found or math.isclose(stated_value, found, rel_tol=SAME)):
            raise ReleaseError(
                f"its statement says {name} = {stated_value:.6g}, its draws cost {found:.6g}"
            )
