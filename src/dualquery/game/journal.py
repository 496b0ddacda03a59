"""The journal of an unfinished game: every draw on disk before it is used.

A draw that was made is paid for. Were it lost in a crash and drawn again, the run would
cost more than its statement says, because something may already have been done with the
first draw. So round by round the draws are written and synced, then answered, then the
answer is written; a resumed run reads what is there and goes on.

The file is a sequence of frames: kind, round, length, checksum, content. A torn last frame
was never used and is cut off; damage anywhere else is refused, because draws would be lost.
"""

from __future__ import annotations

import io
import json
import os
import struct
import uuid
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from dualquery.errors import ReleaseError
from dualquery.files import lock
from dualquery.privacy.sampler import Draws
from dualquery.transcript import Move

_FRAME = struct.Struct("<4sIQI")
_DRAWS, _MOVE = b"draw", b"move"


class NoJournal:
    """For runs in memory: nothing is kept, nothing can be resumed."""

    def draws(self, number: int) -> Draws | None:
        return None

    def move(self, number: int) -> Move | None:
        return None

    def write_draws(self, number: int, draws: Draws) -> None: ...

    def write_move(self, number: int, move: Move) -> None: ...

    def close(self) -> None: ...


class Journal:
    """Draws and moves of one run in a directory of its own."""

    def __init__(self, directory: Path, identity: str, stream: BinaryIO) -> None:
        self.directory = directory
        self.identity = identity
        self._stream = stream
        self._draws: dict[int, Draws] = {}
        self._moves: dict[int, Move] = {}

    @classmethod
    def create(cls, directory: Path, run: dict[str, Any]) -> Journal:
        """Begin a journal for the run that `run` describes in full."""
        if (directory / "run.json").exists():
            raise ReleaseError(
                f"{str(directory)!r} holds an unfinished run; continue it with --resume, "
                "or remove it if it may be lost"
            )
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ReleaseError(f"cannot create {str(directory)!r}: {error.strerror}") from None
        stream = _open_locked(directory / "rounds.bin", "a+b")
        if (directory / "run.json").exists():  # another process was quicker
            stream.close()
            raise ReleaseError(f"another process began a run in {str(directory)!r}")
        stream.truncate(0)  # without run.json nothing was drawn yet
        identity = uuid.uuid4().hex
        content = {"id": identity, "run": run}
        _write_synced(directory / "run.json", json.dumps(content, indent=1, sort_keys=True))
        return cls(directory, identity, stream)

    @staticmethod
    def identity_of(directory: Path) -> str:
        """The id under which a run entered a ledger."""
        content = json.loads((directory / "run.json").read_text(encoding="utf-8"))
        return str(content["id"])

    @classmethod
    def resume(cls, directory: Path, run: dict[str, Any]) -> Journal:
        """Continue a journal, if it is of the same run."""
        try:
            content = json.loads((directory / "run.json").read_text(encoding="utf-8"))
            identity, begun = content["id"], content["run"]
        except FileNotFoundError:
            raise ReleaseError(f"there is no unfinished run at {str(directory)!r}") from None
        except (OSError, KeyError, json.JSONDecodeError) as error:
            raise ReleaseError(f"cannot read the unfinished run: {error}") from None
        for key in sorted(set(begun) | set(run)):
            if begun.get(key) != run.get(key):
                raise ReleaseError(
                    f"cannot resume with another {key.replace('_', ' ')}: the run began with "
                    f"{_brief(begun.get(key))}, now it is {_brief(run.get(key))}"
                )
        journal = cls(directory, identity, _open_locked(directory / "rounds.bin", "r+b"))
        try:
            journal._read()
        except ReleaseError:
            journal.close()
            raise
        return journal

    @property
    def rounds_drawn(self) -> int:
        return len(self._draws)

    def draws(self, number: int) -> Draws | None:
        return self._draws.get(number)

    def move(self, number: int) -> Move | None:
        return self._moves.get(number)

    def write_draws(self, number: int, draws: Draws) -> None:
        self._append(_DRAWS, number, {"queries": draws.queries, "negated": draws.negated})

    def write_move(self, number: int, move: Move) -> None:
        notes = np.frombuffer(json.dumps(move.notes).encode(), dtype=np.uint8)
        self._append(_MOVE, number, {"notes": notes, **move.arrays})

    def close(self) -> None:
        self._stream.close()

    def remove(self) -> None:
        """Close and delete the journal."""
        self.close()
        self.discard(self.directory)

    @staticmethod
    def discard(directory: Path) -> None:
        """Delete a journal, once the release it led to is in place."""
        for name in ("rounds.bin", "run.json"):
            (directory / name).unlink(missing_ok=True)
        directory.rmdir()

    def _append(self, kind: bytes, number: int, arrays: dict[str, npt.NDArray[Any]]) -> None:
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, **arrays)
        body = content.getvalue()
        self._stream.write(_FRAME.pack(kind, number, len(body), zlib.crc32(body)) + body)
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def _read(self) -> None:
        end = 0
        while len(head := self._stream.read(_FRAME.size)) == _FRAME.size:
            kind, number, length, checksum = _FRAME.unpack(head)
            body = self._stream.read(length)
            if len(body) < length or zlib.crc32(body) != checksum:
                if self._stream.read(1):
                    raise ReleaseError(
                        f"the journal in {str(self.directory)!r} is damaged before its end; draws "
                        "that were made cannot be told, so the run cannot be resumed"
                    )
                break
            with np.load(io.BytesIO(body), allow_pickle=False) as content:
                arrays = dict(content)
            if kind == _DRAWS:
                self._draws[number] = Draws(arrays["queries"], arrays["negated"])
            else:
                notes = json.loads(arrays.pop("notes").tobytes())
                self._moves[number] = Move(arrays, notes)
            end = self._stream.tell()
        self._stream.seek(end)
        self._stream.truncate()


def _open_locked(path: Path, mode: str) -> BinaryIO:
    try:
        stream: BinaryIO = path.open(mode)  # type: ignore[assignment]
    except OSError as error:
        raise ReleaseError(f"cannot open {str(path)!r}: {error.strerror}") from None
    # Two processes on one journal would both draw the next round.
    if not lock(stream):
        stream.close()
        raise ReleaseError(f"another process is working on {str(path.parent)!r}")
    return stream


def _write_synced(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
