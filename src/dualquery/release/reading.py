"""The files of a release directory, opened, checked and turned into what they hold.

`read_asked` reads what figures come from and no more, so that a question is answered quickly.
`directory.read_published` reads everything, with the same functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dualquery.base.errors import DualQueryError, ParameterError, ReleaseError
from dualquery.base.gate import Declaring, read_arrays
from dualquery.base.stored import Arrays, Document
from dualquery.domain.schema import Schema
from dualquery.game import declared
from dualquery.game.transcript import Transcript
from dualquery.model.forest.edges import Edges
from dualquery.model.mixture import Mixture
from dualquery.model.standard_errors import LEVELS, MOST_LITERALS, ErrorTable
from dualquery.release import older, stamps
from dualquery.release.answering import Asked
from dualquery.release.verifying import (
    check_measurements,
    content_digest,
    read_json,
)
from dualquery.workloads.actions import Actions
from dualquery.workloads.workload import Literals, Workload

if TYPE_CHECKING:  # whoever only asks for figures does not wait for ledgers
    from dualquery.privacy.ledger import Mark

FORMAT = 2
READABLE = (1, 2)
"""The formats that `older` knows how to read, and the current one."""

FILES = ("workload.npz", "transcript.npz", "model.npz", "records.parquet", "report.html")

_ASKED = ("workload.npz", "transcript.npz", "model.npz")
"""The files that figures come from."""


def is_release(path: Path) -> bool:
    """Whether a path looks like a release directory."""
    return (path / "release.json").is_file()


def digest_of_file(file: Path) -> str:
    """The digest of a file, as `release.json` lists it."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_asked(path: str | Path) -> Asked:
    """Read what figures come from.

    Files that no figure comes from are not compared with their digests. ε is not computed again,
    which would take longer than the answer. So what is returned has no privacy statement.
    """
    folder = Path(path)
    with refusing(folder):
        content = opened(folder, _ASKED)
        schema = Schema.from_dict(content["schema"])
        stated = content["privacy"]
        private = content["parameters"]["seed"] is None
        if stated["private"] != private or bool(stated["stamp"]) == private:
            raise ReleaseError("its stamp does not fit its seed")
        check_stamps(folder, content, _ASKED, stated["stamp"])
        try:
            actions = read_actions(folder, schema)
            transcript = read_transcript(folder, content, actions)
        except ParameterError as error:  # it speaks of a value in the file, not of the reader's
            raise ReleaseError(str(error)) from None
        model, errors = read_model(folder, content, schema)
        return Asked(schema, actions, transcript, stated["stamp"], model, errors)


@contextmanager
def refusing(folder: Path) -> Iterator[None]:
    """Turn whatever a broken release causes into one line that names the directory."""
    try:
        yield
    except ReleaseError as error:
        if repr(str(folder))[1:-1] in str(error):  # as messages spell it
            raise
        raise ReleaseError(f"{str(folder)!r} contradicts itself: {error}") from None
    except DualQueryError:
        raise
    except (
        OSError, KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError,
        ArithmeticError, NotImplementedError, MemoryError,
    ) as error:  # fmt: skip
        said = " ".join(str(error).split())
        raise ReleaseError(f"cannot read release {str(folder)!r}: {said}") from None


def opened(folder: Path, wanted: Collection[str] = FILES) -> Document:
    """What `release.json` says, once it and the wanted files are found unchanged."""
    if not is_release(folder):
        raise ReleaseError(f"{str(folder)!r} is not a release directory (it has no release.json)")
    content = read_json(folder / "release.json")
    if content["format"] not in READABLE:
        raise ReleaseError(
            f"{str(folder)!r} has format {content['format']}; "
            f"this version of dualquery reads formats up to {FORMAT}"
        )
    has_digest = content["format"] >= older.FIRST_WITH_DIGEST
    if has_digest and content["digest"] != content_digest(content):
        raise ReleaseError(f"{str(folder / 'release.json')!r} was changed")
    for name, digest in content["files"].items():
        if name not in FILES:
            raise ReleaseError(f"{str(folder)!r} lists {name!r}, which no release has")
        if name not in wanted:
            check_present(folder / name)
            continue
        if not (folder / name).is_file() or digest_of_file(folder / name) != digest:
            raise ReleaseError(f"{str(folder / name)!r} is missing or was changed")
    complete = older.completed(content)
    declared.check_description(complete)
    return complete


def check_present(file: Path) -> None:
    """Refuse a release that lacks a file that no figure comes from.

    Its digest is not compared, because that would take as long as the file is large.
    """
    if not file.is_file():
        raise ReleaseError(f"{str(file)!r} is missing")


def check_stamps(folder: Path, content: Document, names: Collection[str], stamp: str) -> None:
    """Refuse files of a release that do not carry its stamp, or carry another one."""
    stamps.check_stamps(
        folder,
        [name for name in content["files"] if name in names],
        stamp,
        every_file=content["format"] >= older.FIRST_WITH_STAMPS,
    )


def _read(file: Path, declaring: Declaring, schema: Schema, **known: int) -> Arrays:
    return read_arrays(file, str(file), declaring, {**declared.sizes_of(schema), **known})


def read_actions(folder: Path, schema: Schema) -> Actions:
    """The queries that could be drawn."""
    stored = _read(folder / "workload.npz", declared.workload, schema)
    declared.check_workload(stored, schema)
    literals = Literals(stored["attribute"], stored["literal_start"], stored["codes"])
    queries = Workload(schema, literals, stored["start"], stored["terms"], stored["is_parity"])
    return Actions(queries, int(stored["asked"]), stored["offsets"])


def read_transcript(folder: Path, content: Document, actions: Actions) -> Transcript:
    """What was drawn and measured."""
    schema, rounds = actions.queries.schema, len(content["rounds"])
    file = folder / "transcript.npz"
    declaring = declared.transcript(rounds)
    arrays = _read(file, declaring, schema, rounds=rounds, queries=len(actions))
    declared.check_rounds(arrays, schema)
    transcript = Transcript.from_arrays(arrays, content["rounds"])
    check_measurements(transcript, schema)
    return transcript


def read_mark(content: Document) -> Mark | None:
    """The moment of the ledger that the release was charged to, if there was one."""
    from dualquery.privacy.ledger import Mark

    return Mark.from_dict(content["ledger"]) if "ledger" in content else None


def read_model(
    folder: Path, content: Document, schema: Schema
) -> tuple[Mixture | None, ErrorTable | None]:
    """The fitted model and the standard errors of its answers, if the release has them."""
    if "model.npz" not in content["files"]:
        return None, None
    stored = _read(folder / "model.npz", declared.model, schema)
    declared.check_model(stored, schema)
    edges = Edges.from_arrays(stored, schema.code_start) if "parent" in stored else None
    model = Mixture(schema, stored["weights"], stored["tables"], edges)
    if not stored["error_scale"].size:
        return model, None
    errors = ErrorTable(
        stored["error_scale"].reshape(-1, MOST_LITERALS, len(LEVELS) - 1)
    )  # earlier releases know no more
    if "missed_dependence" in stored:
        errors = replace(errors, missed=stored["missed_dependence"])
    if "unasked_factors" in stored:
        errors = replace(errors, unasked=stored["unasked_factors"])
    return model, errors
