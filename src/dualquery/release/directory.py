"""The release directory: written under a temporary name and renamed, read back and verified."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from glob import escape
from pathlib import Path

import numpy as np

from dualquery.base.errors import DualQueryError, ParameterError, ReleaseError
from dualquery.base.files import lock, sync_directory
from dualquery.base.stored import Document, Json
from dualquery.domain.schema import Schema
from dualquery.game.moves import RecordMove
from dualquery.game.transcript import Transcript
from dualquery.model.mixture import Mixture
from dualquery.model.standard_errors import ErrorTable
from dualquery.privacy.statement import PrivacyStatement
from dualquery.release import older, stamps
from dualquery.release.arrays import write_arrays
from dualquery.release.certificate import Certificate
from dualquery.release.frames import records_table, write_table
from dualquery.release.parameters import RunParameters
from dualquery.release.published import Published
from dualquery.release.verifying import (
    check_measurements,
    check_parameters,
    check_plan,
    check_records,
    check_shapes,
    check_statement,
    content_digest,
    read_arrays,
    read_json,
)
from dualquery.version import __version__
from dualquery.workloads.actions import Actions
from dualquery.workloads.workload import Literals, Workload

FORMAT = 2
READABLE = (1, 2)
"""The formats that `older` knows how to read, and the current one."""

_FILES = ("workload.npz", "transcript.npz", "model.npz", "records.parquet", "report.html")

_ASKED = ("workload.npz", "transcript.npz", "model.npz")
"""The files that figures come from."""

_SCRATCH, _REPLACED = "scratch-", "replaced-"

SHOWN_RECORDS = 1000
"""Rows of `records.parquet` if a model played, so that the game has no records of its own."""

SHOWN_CELLS = 1 << 25
"""Cells that those rows have at most: of half a million columns, 65 rows are shown."""


def check_free(path: Path, *, overwrite: bool = False) -> None:
    """Refuse an output directory that exists, before any work is done."""
    if path.exists() and not (overwrite and _is_release(path)):
        if overwrite:
            raise ReleaseError(f"output directory {str(path)!r} exists; it is not a release")
        raise ReleaseError(
            f"output directory {str(path)!r} exists",
            python="choose another name or say overwrite=True",
            command="choose another name or pass --overwrite",
        )


def _is_release(path: Path) -> bool:
    return (path / "release.json").is_file()


def write_release(
    release: Published,
    path: Path,
    *,
    overwrite: bool = False,
    ready: Callable[[str], None] = lambda digest: None,
) -> Path:
    """Write all files of a release, sync them, and only then give the directory its name.

    Args:
        release: what to write.
        path: the name of the directory.
        overwrite: whether to replace a release of that name.
        ready: told the digest of `release.json` when everything is on disk, before the directory
            gets its name.
    """
    sweep(path)
    check_free(path, overwrite=overwrite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.{_SCRATCH}", dir=path.parent))
    except OSError as error:
        raise ReleaseError(f"cannot write {str(path)!r}: {error.strerror}") from None
    aside = scratch.with_name(scratch.name.replace(_SCRATCH, _REPLACED))
    held = _hold(scratch)
    try:
        _write_files(release, scratch)
        _sync(scratch)
        ready(_digest(scratch / "release.json"))
        scratch.chmod(_usual_mode(scratch))
        if path.exists():  # the old release is deleted only after the new one is in its place
            path.rename(aside)
            scratch.rename(path)
            sync_directory(path.parent)
            shutil.rmtree(aside, ignore_errors=True)
        else:
            scratch.rename(path)
            sync_directory(path.parent)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        if aside.exists() and not path.exists():
            aside.rename(path)
        raise
    finally:
        if held is not None:
            os.close(held)
    return path


def _usual_mode(scratch: Path) -> int:
    """The mode of a new directory under the user's umask.

    A process can read its umask only by changing it, which other threads would notice.
    """
    probe = scratch / "mode"
    probe.mkdir()
    mode = probe.stat().st_mode & 0o777
    probe.rmdir()
    return mode


def sweep(path: Path) -> None:
    """Remove what writers of a release left behind when they were killed.

    If a writer was killed after it moved an old release aside and before it named the new one, the
    old release gets its name back. A directory that a process is still writing is left alone.
    """
    if os.name != "posix" or not path.parent.is_dir():
        return  # on other systems we cannot tell whether the writer is still alive
    for kind in (_REPLACED, _SCRATCH):
        for left in sorted(path.parent.glob(f".{escape(path.name)}.{kind}*")):
            held = _hold(left)
            if held is None:
                continue
            try:
                if kind == _REPLACED and not path.exists() and _is_release(left):
                    left.rename(path)
                else:
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(held)
    sync_directory(path.parent)


def _hold(folder: Path) -> int | None:
    """Lock a directory for this process until the handle is closed; None if another holds it."""
    if os.name != "posix":
        return None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    if lock(handle):
        return handle
    os.close(handle)
    return None


def digest_of(path: Path) -> str | None:
    """The digest of a release: that of `release.json`, which lists the digests of all files."""
    return _digest(path / "release.json") if _is_release(path) else None


def _write_files(release: Published, folder: Path) -> None:
    actions, queries = release.actions, release.actions.queries
    stamp = stamps.arrays(release.privacy.stamp)
    write_arrays(
        folder / "workload.npz",
        {
            "attribute": queries.literals.attribute,
            "literal_start": queries.literals.start,
            "codes": queries.literals.codes,
            "start": queries.start,
            "terms": queries.terms,
            "is_parity": queries.is_parity,
            "asked": np.array(actions.asked),
            "offsets": actions.log_prior,
            **stamp,
        },
    )
    write_arrays(folder / "transcript.npz", {**release.transcript.to_arrays(), **stamp})
    if release.model is not None:
        scale = np.empty((0, 0)) if release.errors is None else release.errors.scale
        write_arrays(
            folder / "model.npz",
            {
                "weights": release.model.weights,
                "tables": release.model.tables,
                "error_scale": scale,
                **stamp,
            },
        )
    records = release.transcript.records
    if records is None:
        shown = min(SHOWN_RECORDS, max(1, SHOWN_CELLS // len(release.schema)))
        generator = np.random.default_rng(0)
        # A glimpse of the model. To arrange so few rows would take longer than it is worth.
        records = release.sample_codes(shown, generator, independent=True)
    write_table(
        records_table(records, release.schema),
        folder / "records.parquet",
        release.file_notes,
    )
    from dualquery.release.page.render import render_page  # readers do not wait for the page

    (folder / "report.html").write_text(render_page(release), encoding="utf-8")
    content = _description(release, folder)
    content["digest"] = content_digest(content)
    (folder / "release.json").write_text(
        json.dumps(content, indent=1, ensure_ascii=False) + "\n",
        encoding="utf-8",
    )


def _description(release: Published, folder: Path) -> Json:
    notes = [one.move.notes() for one in release.transcript]
    return {
        "format": FORMAT,
        "package": {"name": "dualquery", "version": __version__},
        "privacy": release.privacy.to_dict(),
        "parameters": release.parameters.to_dict(),
        "source": release.source,
        "oracle": oracle_summary(release.transcript),
        "certificate": None if release.certificate is None else release.certificate.to_dict(),
        "rounds": notes,
        "schema": release.schema.to_dict(),
        "files": {file.name: _digest(file) for file in sorted(folder.iterdir())},
    }


def oracle_summary(transcript: Transcript) -> Json:
    """What the oracle achieved over all rounds, computed from the draws alone."""
    played = [(one.move, len(one.draws)) for one in transcript if isinstance(one.move, RecordMove)]
    if not played:
        return {}
    gaps = [
        (move.bound - move.value) / draws
        for move, draws in played
        if move.bound is not None and draws
    ]
    return {
        "rounds": len(played),
        "proved_optimal": sum(move.proved_optimal for move, _ in played),
        "mean_gap": float(np.mean(gaps)) if gaps else None,
    }


def read_published(path: str | Path, *, to_ask: bool = False) -> Published:
    """Read a release directory and check that its files are the ones that were written.

    Args:
        path: the directory.
        to_ask: whether figures are all that is wanted. Then only the files that figures come from
            are compared with their digests, and ε is not computed again: nobody sees it, and it
            would take longer than the answer. Whoever reads the whole release checks the rest.
    """
    folder = Path(path)
    if not _is_release(folder):
        raise ReleaseError(f"{str(folder)!r} is not a release directory (it has no release.json)")
    try:
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
            if name not in _FILES:
                raise ReleaseError(f"{str(folder)!r} lists {name!r}, which no release has")
            if to_ask and name not in _ASKED:
                continue
            if not (folder / name).is_file() or _digest(folder / name) != digest:
                raise ReleaseError(f"{str(folder / name)!r} is missing or was changed")
        made = _assemble(folder, older.completed(content), to_ask=to_ask)
        stamps.check_stamps(
            folder,
            [name for name in content["files"] if name in _ASKED or not to_ask],
            made.privacy.stamp,
            every_file=content["format"] >= older.FIRST_WITH_STAMPS,
        )
        return made
    except ReleaseError as error:
        if str(folder) in str(error):
            raise
        raise ReleaseError(f"{str(folder)!r} contradicts itself: {error}") from None
    except DualQueryError:
        raise
    except (
        OSError, KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError
    ) as error:  # fmt: skip
        raise ReleaseError(f"cannot read release {str(folder)!r}: {error}") from None


def _assemble(folder: Path, content: Document, *, to_ask: bool) -> Published:
    schema = Schema.from_dict(content["schema"])
    stored = read_arrays(folder / "workload.npz")
    literals = Literals(stored["attribute"], stored["literal_start"], stored["codes"])
    queries = Workload(schema, literals, stored["start"], stored["terms"], stored["is_parity"])
    actions = Actions(queries, int(stored["asked"]), stored["offsets"])
    arrays = read_arrays(folder / "transcript.npz")
    check_shapes(arrays, len(content["rounds"]), folder / "transcript.npz")
    privacy = PrivacyStatement.from_dict(content["privacy"])
    try:
        transcript = Transcript.from_arrays(arrays, content["rounds"])
        check_measurements(transcript, schema)
        parameters = RunParameters.from_dict(content["parameters"])
        check_plan(parameters.tables, transcript)
        check_parameters(privacy, content["privacy"]["stamp"], parameters, transcript)
        if not to_ask:
            check_statement(privacy, transcript)
    except ParameterError as error:  # it speaks of a value in the file, not of the reader's
        raise ReleaseError(str(error)) from None
    if "records.parquet" in content["files"] and not to_ask:
        records = transcript.records
        most = SHOWN_RECORDS if records is None else len(records)
        check_records(folder / "records.parquet", most, schema)
    model = errors = None
    if "model.npz" in content["files"]:
        stored = read_arrays(folder / "model.npz")
        model = Mixture(schema, stored["weights"], stored["tables"])
        errors = ErrorTable(stored["error_scale"]) if stored["error_scale"].size else None
    certificate = content["certificate"]
    return Published(
        schema,
        actions,
        transcript,
        privacy,
        parameters,
        model,
        errors,
        None if certificate is None else Certificate.from_dict(certificate),
    )


def _sync(folder: Path) -> None:
    for file in sorted(folder.iterdir()):
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
    sync_directory(folder)


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
