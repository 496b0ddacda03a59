"""The release directory: written under a temporary name and renamed, read back and verified."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from glob import escape
from pathlib import Path

import numpy as np

from dualquery.base.errors import ParameterError, ReleaseError
from dualquery.base.failures import reason
from dualquery.base.files import final_name, is_ours, lock, sync_directory
from dualquery.base.stored import Document, Json
from dualquery.domain.about import About
from dualquery.domain.schema import Schema
from dualquery.game import declared
from dualquery.game.moves import RecordMove
from dualquery.game.transcript import Transcript
from dualquery.privacy.statement import PrivacyStatement
from dualquery.release import stamps
from dualquery.release.arrays import write_arrays
from dualquery.release.certificate import certified_again
from dualquery.release.frames import records_table, write_table
from dualquery.release.parameters import RunParameters
from dualquery.release.published import Published
from dualquery.release.reading import (
    FILES,
    FORMAT,
    check_stamps,
    digest_of_file,
    is_release,
    opened,
    read_actions,
    read_mark,
    read_model,
    read_transcript,
    refusing,
)
from dualquery.release.verifying import (
    check_parameters,
    check_plan,
    check_records,
    check_statement,
    content_digest,
)
from dualquery.version import __version__

_SCRATCH, _REPLACED = "scratch-", "replaced-"

SHOWN_RECORDS = 1000
"""Rows of `records.parquet` if a model played, so that the game has no records of its own."""

SHOWN_CELLS = 1 << 25
"""Cells that those rows have at most: of half a million columns, 65 rows are shown."""


def check_free(path: Path, *, overwrite: bool = False) -> None:
    """Refuse an output directory that exists, before any work is done."""
    if os.path.lexists(path) and not (overwrite and is_release(path) and is_ours(path)):
        if overwrite and is_release(path):
            raise ReleaseError(
                f"output directory {str(path)!r} is a link, or of another user; it is not "
                "replaced: choose another name"
            )
        if overwrite:
            raise ReleaseError(f"output directory {str(path)!r} exists; it is not a release")
        raise ReleaseError(
            f"output directory {str(path)!r} exists",
            python="choose another name or say overwrite=True",
            command="choose another name or pass --overwrite",
        )


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
        raise ReleaseError(f"cannot write {str(path)!r}: {reason(error)}") from None
    aside = scratch.with_name(scratch.name.replace(_SCRATCH, _REPLACED))
    held = _hold(scratch)
    try:
        _write_files(release, scratch)
        _sync(scratch)
        ready(digest_of_file(scratch / "release.json"))
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
    old release gets its name back. A directory that a process is still writing is left alone, and
    so is what other users put there, or what holds other files: it was not made by a writer.
    """
    if os.name != "posix" or not path.parent.is_dir():
        return  # on other systems we cannot tell whether the writer is still alive
    for kind in (_REPLACED, _SCRATCH):
        for left in sorted(path.parent.glob(f".{escape(path.name)}.{kind}*")):
            held = _hold(left) if _is_left_over(left) else None
            if held is None:
                continue
            try:
                if kind == _REPLACED and not path.exists() and is_release(left):
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
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    with suppress(OSError):  # without locks nobody can tell whether its writer is alive
        if lock(handle):
            return handle
    os.close(handle)
    return None


def _is_left_over(folder: Path) -> bool:
    """Whether a writer of this user made the folder: its owner, and nothing else in it."""
    return (
        is_ours(folder)
        and folder.is_dir()
        and {final_name(file.name) for file in folder.iterdir()} <= {*FILES, "release.json", "mode"}
    )


def digest_of(path: Path) -> str | None:
    """The digest of a release: that of `release.json`, which lists the digests of all files."""
    return digest_of_file(path / "release.json") if is_release(path) else None


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
        errors = release.errors
        write_arrays(
            folder / "model.npz",
            {
                "weights": release.model.weights,
                "tables": release.model.own,
                **({} if release.model.edges is None else release.model.edges.to_arrays()),
                "error_scale": np.empty((0, 0))
                if errors is None
                else errors.scale.reshape(-1, errors.scale.shape[-1]),
                **(
                    {}
                    if errors is None
                    else {"missed_dependence": errors.missed, "unasked_factors": errors.unasked}
                ),
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
    from dualquery.release.page.download import Beside  # readers do not wait for the page
    from dualquery.release.page.render import render_page

    files = [Beside.of(file) for file in sorted(folder.iterdir())]
    (folder / "report.html").write_text(render_page(release, files), encoding="utf-8")
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
        **({"about": release.about.to_dict()} if release.about.to_dict() else {}),
        **({} if release.ledger is None else {"ledger": release.ledger.to_dict()}),
        "files": {file.name: digest_of_file(file) for file in sorted(folder.iterdir())},
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


def read_published(path: str | Path) -> Published:
    """Read a release directory, check its files, and compute its ε again from what it released."""
    folder = Path(path)
    with refusing(folder):
        content = opened(folder)
        made = _assemble(folder, content)
        check_stamps(folder, content, content["files"], made.privacy.stamp)
        return made


def _assemble(folder: Path, content: Document) -> Published:
    schema = Schema.from_dict(content["schema"])
    declared.check_known(content, schema)
    actions = read_actions(folder, schema)
    privacy = PrivacyStatement.from_dict(content["privacy"])
    try:
        transcript = read_transcript(folder, content, actions)
        parameters = RunParameters.from_dict(content["parameters"])
        check_plan(parameters, transcript, schema)
        if parameters.tables is not None and actions.asked < len(actions):
            raise ReleaseError("it measured tables, but could draw queries that nobody asked")
        check_parameters(privacy, content["privacy"]["stamp"], parameters, transcript)
        check_statement(privacy, transcript)
        about = About.of(content.get("about"))
        certificate = certified_again(
            content["certificate"], transcript, actions.workload, parameters.eta
        )
    except ParameterError as error:  # it speaks of a value in the file, not of the reader's
        raise ReleaseError(str(error)) from None
    if "records.parquet" in content["files"]:
        records = transcript.records
        most = SHOWN_RECORDS if records is None else len(records)
        check_records(folder / "records.parquet", most, schema)
    model, errors = read_model(folder, content, schema)
    return Published(
        schema,
        actions,
        transcript,
        privacy,
        parameters,
        model,
        errors,
        certificate,
        about=about,
        ledger=read_mark(content),
    )


def _sync(folder: Path) -> None:
    for file in sorted(folder.iterdir()):
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
    sync_directory(folder)
