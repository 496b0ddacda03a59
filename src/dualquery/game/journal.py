"""The journal of an unfinished game: every draw on disk before it is used.

A draw that was made is paid for. Were it lost in a crash and drawn again, the run would
cost more than its statement says, because something may already have been done with the
first draw. So round by round

1. the draws are appended to `rounds.bin` and synced,
2. a byte is appended to `used.bin` and synced: from now on the draws count as used,
3. and only then the draws are answered; the answer is appended to `rounds.bin` too.

A resumed run reads what is there and goes on.

**With a ledger** the draws are sealed with a key whose digest the ledger has known since before
the round began (`privacy.ledger`). After step 1 the ledger is given the key. If it takes it, the
mark of step 2 is the head of the ledger, by which an older copy of the ledger is noticed. A resumed
run gets the keys from the ledger. Draws whose key it does not know were never read by anybody: they
are cut off, and the round is drawn. Draws that the ledger knows and the journal lacks were lost
with an older copy of the journal: the run is refused.

`rounds.bin` is a sequence of frames after a line that names the format: kind, round, length,
digest, content. A digest covers all of its frame and the digest before it, so no bit can be
changed, and no frame left out, repeated or moved, without being noticed. What follows the last
intact frame is either the rest of a write that never ended, or damage. The two look alike, but
the length of `used.bin` tells them apart: if all rounds that were used are intact, the rest was
never used and is cut off. Otherwise the run is refused, and nothing is changed.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import re
import secrets
import struct
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dualquery.base.errors import ReleaseError
from dualquery.base.failures import LOCKING, reason
from dualquery.base.files import NO_LINK, is_ours, lock, sync_directory, write_all, write_durable
from dualquery.base.gate import read_arrays
from dualquery.base.interrupts import held
from dualquery.base.sealing import Opening, sealed
from dualquery.base.stored import Arrays, Document, Json
from dualquery.game import declared
from dualquery.game.moves import Move, read_move
from dualquery.game.transcript import Released
from dualquery.privacy.ledger import LedgerError, Mark, Turns
from dualquery.privacy.ledger.chain import MARK_SIZE
from dualquery.privacy.rare import Measured, read_measured
from dualquery.privacy.sampler import Draws
from dualquery.workloads.actions import Actions

_FORMAT = 3
_HEAD = b"dualquery journal 3\n"
_FIELDS = struct.Struct("<4sIQ")
_DIGEST = 16
_ROUND = struct.Struct("<Q")
_DRAWS, _SEALED, _MOVE = b"draw", b"seal", b"move"
_RUN, _ROUNDS, _USED = "run.json", "rounds.bin", "used.bin"
_PUBLISHED, _DONE = "published.json", "done.json"
_COUNTED = ("key", "digest")


class NoJournal:
    """For runs in memory: nothing is kept, nothing can be resumed."""

    digests: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.identity = uuid.uuid4().hex
        self.mark: Mark | None = None

    @property
    def rounds_drawn(self) -> int:
        return 0

    def charge(self, turns: Turns, mark: Mark) -> None:
        self.mark = mark  # draws that are never on disk need no key

    def draws(self, number: int) -> Draws | None:
        return None

    def move(self, number: int) -> Move | None:
        return None

    def released(self, number: int) -> Released | None:
        return None

    def write_draws(self, number: int, draws: Draws) -> None: ...

    def write_released(self, number: int, released: Released) -> None: ...

    def write_move(self, number: int, move: Move) -> None: ...

    def publish(self, digest: str) -> None: ...

    def close(self) -> None: ...

    def remove(self) -> None: ...


def refuse_unfinished(directory: Path) -> None:
    """Refuse to begin a run where another one was left unfinished."""
    if (directory / _RUN).exists():
        raise ReleaseError(
            f"{str(directory)!r} holds an unfinished run",
            python="continue it with resume=True, or remove it if it may be lost",
            command="continue it with --resume, or remove it if it may be lost",
        )


_OTHERS = {
    "weights": "other weights of queries",
    "temperatures": "other temperatures",
    "rounds": "another number of rounds",
    "samples": "another number of draws per round",
    "queries": "another number of queries",
    "tables": "another plan of tables",
    "known": "other known shares",
    "version": "another version of dualquery",
}


def other(key: str) -> str:
    """What a run must not be resumed with, in words: another schema, other weights."""
    return _OTHERS.get(key, f"another {key.replace('_', ' ')}")


class Journal:
    """Draws and moves of one run in a directory of its own.

    Attributes:
        identity: the id under which the run enters a ledger.
        mark: what the run has seen last of its ledger; None without one.
    """

    def __init__(self, directory: Path, identity: str, handle: int) -> None:
        self.directory = directory
        self.identity = identity
        self.mark: Mark | None = None
        self._turns: Turns | None = None
        self._handle = handle
        self._chain = hashlib.blake2b(_HEAD + identity.encode(), digest_size=_DIGEST).digest()
        self._draws: list[Draws] = []
        self._measurements: dict[int, Measured] = {}
        self._moves: list[Move] = []
        self._digests: list[str] = []

    @classmethod
    def create(cls, directory: Path, run: Document, counts: bytes | None = None) -> Journal:
        """Begin a journal for the run that `run` describes in full.

        `counts` are what the run counted. A keyed digest of them is kept with its key, to notice
        a resume with another table; it is as private as the table, and goes with the journal.
        """
        guard(directory)
        refuse_unfinished(directory)
        settle(directory)
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(directory)
            sync_directory(directory.parent)
        except OSError as error:
            raise ReleaseError(f"cannot create {str(directory)!r}: {reason(error)}") from None
        handle = _open_locked(directory / _ROUNDS, os.O_CREAT)
        try:
            if (directory / _RUN).exists():  # another process was quicker
                raise ReleaseError(f"another process began a run in {str(directory)!r}")
            _refuse_orphans(directory, handle)
            journal = cls(directory, uuid.uuid4().hex, handle)
            os.ftruncate(handle, 0)
            write_all(handle, _HEAD)
            os.fsync(handle)
            _append(directory / _USED, b"", os.O_CREAT | os.O_TRUNC)
            content: Json = {"id": journal.identity, "run": run}
            if counts is not None:
                key = secrets.token_bytes(32)
                content["counts"] = {"key": key.hex(), "digest": _keyed(key, counts)}
            # Last, because a directory with run.json is one that can be resumed.
            write_durable(directory / _RUN, json.dumps(_sealed(content), indent=1, sort_keys=True))
        except BaseException:
            os.close(handle)
            raise
        return journal

    @classmethod
    def resume(
        cls,
        directory: Path,
        run: Document,
        counts: bytes | None = None,
        actions: Actions | None = None,
        openings: Sequence[Opening] | None = None,
    ) -> Journal:
        """Continue a journal, if it is of the same run and, where `counts` are given, table.

        `actions` are the queries that the run draws. What the journal holds must be about them.
        `openings` are what the ledger knows of the rounds; None if the run has no ledger.
        """
        guard(directory)
        content = _read_run(directory)
        begun = content["run"]
        for key in sorted(set(begun) | set(run)):
            if begun.get(key) != run.get(key):
                raise ReleaseError(
                    f"cannot resume with {other(key)}: the run began with "
                    f"{_brief(begun.get(key))}, now it is {_brief(run.get(key))}"
                )
        kept = content.get("counts")
        if (
            counts is not None
            and kept is not None
            and not hmac.compare_digest(_keyed(bytes.fromhex(kept["key"]), counts), kept["digest"])
        ):
            raise ReleaseError(
                "cannot resume with another table: it has as many rows as the one the run began "
                "with, but its counts differ"
            )
        journal = cls(directory, content["id"], _open_locked(directory / _ROUNDS))
        try:
            journal._read(actions, openings)
        except BaseException:
            journal.close()
            raise
        return journal

    @property
    def rounds_drawn(self) -> int:
        return len(self._draws)

    @property
    def digests(self) -> tuple[str, ...]:
        """Per round drawn, the digest of the journal up to its draws: what a ledger remembers."""
        return tuple(self._digests)

    def charge(self, turns: Turns, mark: Mark) -> None:
        """Go on with a ledger, which has reserved the run and knows that the next round begins."""
        self._turns = turns
        self._note(mark)

    def draws(self, number: int) -> Draws | None:
        return self._draws[number] if number < len(self._draws) else None

    def move(self, number: int) -> Move | None:
        return self._moves[number] if number < len(self._moves) else None

    def released(self, number: int) -> Released | None:
        """What a round released: draws, or measured tables."""
        draws = self.draws(number)
        return None if draws is None else Released(draws, self._measurements.get(number))

    def write_draws(self, number: int, draws: Draws) -> None:
        """Keep the draws of the next round; when this returns they may be used."""
        self.write_released(number, Released(draws))

    def write_released(self, number: int, released: Released) -> None:
        """Keep what the next round released; when this returns it may be used."""
        draws, measurement = released.draws, released.measurement
        more = {} if measurement is None else measurement.to_arrays()
        arrays = {"queries": draws.queries, "negated": draws.negated, **more}
        self._expect(_DRAWS, number)
        if self._turns is None:
            self._write(_DRAWS, number, arrays)
            mark = None
        else:
            self._write(_SEALED, number, arrays, self._turns.key)
            mark = self._turns.drawn(number + 1, self._chain.hex())
        self._draws.append(draws)
        if measurement is not None:
            self._measurements[number] = measurement
        self._digests.append(self._chain.hex())
        if mark is None:
            _append(self.directory / _USED, b".")
        else:
            self._note(mark)

    def write_move(self, number: int, move: Move) -> None:
        """Keep the answer to the draws of a round."""
        self._expect(_MOVE, number)
        notes = np.frombuffer(json.dumps(move.notes()).encode(), dtype=np.uint8)
        self._write(_MOVE, number, {"notes": notes, **move.arrays()})
        self._moves.append(move)

    def publish(self, digest: str) -> None:
        """Note the digest of the release that is about to be put in its place."""
        write_durable(self.directory / _PUBLISHED, json.dumps(_sealed({"release": digest})))

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def remove(self) -> None:
        """Delete the journal, once the release it led to is in place, and close it.

        A kill in between leaves `done.json`, which says that all of it may go.
        """
        os.rename(self.directory / _RUN, self.directory / _DONE)
        sync_directory(self.directory)
        _delete(self.directory)
        self.close()

    def _expect(self, kind: bytes, number: int) -> None:
        """Frames alternate: the draws of a round, then the move, then the next round."""
        due = (_MOVE, len(self._moves))
        if len(self._draws) == len(self._moves):
            due = (_DRAWS, len(self._draws))
        if (kind, number) != due:
            raise self._damaged()

    def _note(self, mark: Mark) -> None:
        """Keep what the ledger says of the rounds drawn: they count as used."""
        file, one = self.directory / _USED, _ROUND.pack(self.rounds_drawn) + mark.packed()
        if torn := file.stat().st_size % len(one):  # a write that never ended
            os.truncate(file, file.stat().st_size - torn)
        _append(file, one)
        self.mark = mark

    def _write(self, kind: bytes, number: int, arrays: Arrays, key: bytes | None = None) -> None:
        content = io.BytesIO()
        with held():
            np.savez(content, allow_pickle=False, **arrays)
            body = content.getvalue()
            if key is not None:
                body = sealed(key, body)
            fields = _FIELDS.pack(kind, number, len(body))
            chain = self._next(fields, body)
            write_all(self._handle, fields + chain + body)
            os.fsync(self._handle)
            self._chain = chain

    def _next(self, fields: bytes, body: bytes) -> bytes:
        digest = hashlib.blake2b(self._chain, digest_size=_DIGEST)
        digest.update(fields)
        digest.update(body)
        return digest.digest()

    def _read(self, actions: Actions | None, openings: Sequence[Opening] | None) -> None:
        sizes = declared.sizes_of_run(actions)
        try:
            if openings is None:
                used = (self.directory / _USED).stat().st_size
            else:
                used, self.mark = _last_mark(self.directory)
            size = os.fstat(self._handle).st_size
            if _read_exactly(self._handle, len(_HEAD)) != _HEAD:
                raise self._damaged()
            end = len(_HEAD)
            while (frame := self._frame(size - end)) is not None:
                kind, number, body, chain = frame
                if openings is not None and kind == _DRAWS:  # in a journal with a ledger: forged
                    raise self._damaged()
                self._expect(_DRAWS if kind == _SEALED else kind, number)
                if kind == _SEALED:
                    if openings is None:
                        raise LedgerError(
                            f"the draws in {str(self.directory)!r} are sealed; resume the run with "
                            "its ledger"
                        )
                    if number >= len(openings):
                        break  # nobody has the key, so nobody has read them
                    body = self._opened(openings[number], number, body, chain)
                declaring = declared.moved if kind == _MOVE else declared.drawn
                arrays = read_arrays(io.BytesIO(body), self._name(number), declaring, sizes)
                self._chain = chain
                end += _FIELDS.size + _DIGEST + len(body)
                if kind != _MOVE:
                    if "attributes" in arrays:
                        declared.check_measured(arrays)
                        self._measurements[number] = read_measured(arrays)
                    self._draws.append(Draws(arrays["queries"], arrays["negated"]))
                    self._digests.append(chain.hex())
                else:
                    if actions is not None:
                        declared.check_records(arrays.get("record"), actions.queries.schema)
                    notes = json.loads(arrays.pop("notes").tobytes())
                    self._moves.append(read_move(arrays, notes))
        except FileNotFoundError:
            raise self._damaged() from None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ReleaseError(
                f"cannot read the journal in {str(self.directory)!r}: {error}"
            ) from None
        if self.rounds_drawn < used:
            raise self._damaged()
        if end < size:
            os.ftruncate(self._handle, end)
            os.fsync(self._handle)
        os.lseek(self._handle, end, os.SEEK_SET)
        if (
            openings is None and used < self.rounds_drawn
        ):  # killed before they were used; they will be now
            _append(self.directory / _USED, b"." * (self.rounds_drawn - used))

    def _opened(self, opening: Opening, number: int, body: bytes, chain: bytes) -> bytes:
        """What a sealed frame holds, if it is the one that the ledger saw drawn."""
        if chain.hex() != opening.digest:
            raise LedgerError(
                f"round {number + 1} in {str(self.directory)!r} is not the one the ledger saw "
                "drawn; a copy of this run went on elsewhere"
            )
        return sealed(opening.key, body)

    def _frame(self, left: int) -> tuple[bytes, int, bytes, bytes] | None:
        """The next frame; None where there is none that is intact."""
        if left < _FIELDS.size + _DIGEST:
            return None
        fields = _read_exactly(self._handle, _FIELDS.size)
        chain = _read_exactly(self._handle, _DIGEST)
        kind, number, length = _FIELDS.unpack(fields)
        if length > left - _FIELDS.size - _DIGEST:  # never ask for memory that is not there
            return None
        body = _read_exactly(self._handle, length)
        return (kind, number, body, chain) if self._next(fields, body) == chain else None

    def _name(self, number: int) -> str:
        return f"{self.directory / _ROUNDS}, round {number + 1}"

    def _damaged(self) -> ReleaseError:
        return ReleaseError(
            f"the journal in {str(self.directory)!r} is damaged: draws that were used cannot be "
            "read, so the run cannot be resumed; nothing was changed"
        )


def exists(directory: Path) -> bool:
    """Whether there is a run to resume."""
    return (directory / _RUN).exists()


def ended(directory: Path) -> bool:
    """Whether the run has ended there: what it made is in place, and its journal half deleted."""
    return (directory / _DONE).exists() or _doomed(directory).exists()


def begun(directory: Path) -> Document | None:
    """What the unfinished run in a directory was begun with; None where there is none."""
    if not (directory / _RUN).exists():
        return None
    found: Document = _read_run(directory)["run"]
    return found


def charged(directory: Path) -> tuple[str, Mark | None] | None:
    """The id of the unfinished run in a directory, and what it has seen last of its ledger."""
    if not (directory / _RUN).exists():
        return None
    return str(_read_run(directory)["id"]), _last_mark(directory)[1]


def _last_mark(directory: Path) -> tuple[int, Mark | None]:
    """How many rounds were used, and what was seen of the ledger then.

    What follows the last whole mark is the rest of a write that never ended.
    """
    size = _ROUND.size + MARK_SIZE
    try:
        content = (directory / _USED).read_bytes()
    except OSError:
        raise ReleaseError(
            f"{str(directory / _USED)!r} cannot be read; the run cannot be resumed"
        ) from None
    marks = [content[at : at + size] for at in range(0, len(content) - size + 1, size)]
    marks = [one for one in marks if any(one)]
    if not marks:
        return 0, None
    return _ROUND.unpack(marks[-1][: _ROUND.size])[0], Mark.unpacked(marks[-1][_ROUND.size :])


def published(directory: Path) -> tuple[str, str] | None:
    """The id of a run and the digest of the release it was about to publish, if it was."""
    if not ((directory / _PUBLISHED).exists() and (directory / _RUN).exists()):
        return None
    identity = str(_read_run(directory)["id"])
    return identity, str(_read_sealed(directory / _PUBLISHED).get("release"))


def may_begin(directory: Path) -> bool:
    """Whether a run was killed there before it was written down: nothing was drawn yet."""
    return directory.is_dir() and not any(
        (directory / name).exists() for name in (_RUN, _DONE, _PUBLISHED)
    )


def settle(directory: Path) -> bool:
    """Delete what is left of a run that has ended; False where there is nothing of that kind."""
    if _clear(directory):
        return True
    if (directory / _RUN).exists() or not (directory / _DONE).exists():
        return False
    handle = _open_locked(directory / _ROUNDS, os.O_CREAT)
    try:
        _delete(directory)
    finally:
        os.close(handle)
    return True


def discard(directory: Path) -> None:
    """Delete the journal of a run whose release is in place."""
    journal = Journal(directory, "", _open_locked(directory / _ROUNDS, os.O_CREAT))
    try:
        journal.remove()
    finally:
        journal.close()


def _delete(directory: Path) -> None:
    """Delete the files of a journal that is done, and its directory if nothing else is in it."""
    for name in (f"{_RUN}.new", f"{_PUBLISHED}.new", _PUBLISHED, _USED, _ROUNDS):
        (directory / name).unlink(missing_ok=True)
    sync_directory(directory)
    if [file.name for file in directory.iterdir()] != [_DONE]:
        (directory / _DONE).unlink()  # the directory holds other things: it is somebody's own
        sync_directory(directory)
        return
    # An empty directory is one in which a run is about to begin, so this one loses its name first.
    os.rename(directory, _doomed(directory))
    sync_directory(directory.parent)
    _clear(directory)


def _doomed(directory: Path) -> Path:
    return directory.with_name(f".{directory.name}.done")


def _clear(directory: Path) -> bool:
    """Delete a directory that has lost its name, if there is one."""
    doomed = _doomed(directory)
    if not doomed.is_dir():
        return False
    (doomed / _DONE).unlink(missing_ok=True)
    doomed.rmdir()
    sync_directory(doomed.parent)
    return True


def guard(directory: Path) -> None:
    """Refuse to work in a directory that others could have put there, or could write to.

    Whoever can write there could put back an older journal, and rounds would be drawn again. An
    empty directory is closed to others when a run begins in it.
    """
    if not os.path.lexists(directory) or os.name != "posix":
        return
    name = repr(str(directory))
    if directory.is_symlink() or not directory.is_dir():
        raise ReleaseError(
            f"{name} is not a directory but a link or a file, and a run keeps its draws in a "
            "directory of that name; remove it, or choose another name"
        )
    if not is_ours(directory):
        raise ReleaseError(f"{name} belongs to another user; choose another name")
    if directory.stat().st_mode & 0o022 and any(directory.iterdir()):
        raise ReleaseError(
            f"others may write to {name}, and so to its journal; choose another directory, or "
            "close it with chmod go-w if nobody changed what is in it"
        )


def _make_private(directory: Path) -> None:
    """Keep others out of an empty directory that was there before; refuse one that is theirs."""
    guard(directory)
    if os.name == "posix" and directory.stat().st_mode & 0o077 and not any(directory.iterdir()):
        directory.chmod(0o700)


def _refuse_orphans(directory: Path, handle: int) -> None:
    """Draws without `run.json`: somebody deleted it. They may have been used."""
    used = directory / _USED
    if os.fstat(handle).st_size > len(_HEAD) or (used.exists() and used.stat().st_size):
        raise ReleaseError(
            f"{str(directory)!r} holds draws but no {_RUN}; they may have been used: remove the "
            "directory if that run may be lost"
        )


def _open_locked(path: Path, more: int = 0) -> int:
    try:
        handle = os.open(path, os.O_RDWR | NO_LINK | more, 0o600)
    except FileNotFoundError:
        raise ReleaseError(f"{str(path)!r} is missing; the run cannot be resumed") from None
    except OSError as error:
        raise ReleaseError(f"cannot open {str(path)!r}: {reason(error)}") from None
    # Two processes on one journal would both draw the next round.
    try:
        free = lock(handle)
    except OSError as error:
        os.close(handle)
        way_out = "; choose a folder on a local disk" if error.errno in LOCKING else ""
        raise ReleaseError(f"cannot lock {str(path)!r}: {reason(error)}{way_out}") from None
    if not free:
        os.close(handle)
        raise ReleaseError(f"another process is working on {str(path.parent)!r}")
    return handle


def _append(path: Path, content: bytes, more: int = 0) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | NO_LINK | more, 0o600)
    try:
        write_all(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_exactly(handle: int, length: int) -> bytes:
    parts = []
    while length > 0 and (part := os.read(handle, min(length, 1 << 24))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _sealed(content: Json) -> Json:
    return {"format": _FORMAT, "digest": _digest_of(content), "content": content}


def _digest_of(content: Document) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read_run(directory: Path) -> Document:
    if not (directory / _RUN).exists():
        raise ReleaseError(
            f"there is no unfinished run at {str(directory)!r}; if it was killed before its first "
            "draw, nothing was charged: run it again without resume"
        )
    content = _read_sealed(directory / _RUN)
    identity, counts = content.get("id"), content.get("counts")
    if (
        not isinstance(content.get("run"), dict)
        or not _is_hexadecimal(identity)
        or not (
            counts is None
            or (isinstance(counts, dict) and all(_is_hexadecimal(counts.get(n)) for n in _COUNTED))
        )
    ):
        raise ReleaseError(f"{str(directory / _RUN)!r} was forged; the run cannot be resumed")
    return content


def _is_hexadecimal(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"([0-9a-f]{2})+", text) is not None


def _read_sealed(path: Path) -> Document:
    try:
        stored = json.loads(path.read_bytes())
        whole = isinstance(stored, dict) and isinstance(stored.get("content"), dict)
        if whole and stored.get("format") != _FORMAT:
            raise ReleaseError(
                f"{str(path)!r} has format {_brief(stored.get('format'))}; this version of "
                f"dualquery resumes format {_FORMAT}"
            )
        if whole and stored.get("digest") == _digest_of(stored["content"]):
            content: Document = stored["content"]
            return content
    except OSError as error:
        raise ReleaseError(f"cannot read {str(path)!r}: {reason(error)}") from None
    except (ValueError, RecursionError):
        pass
    raise ReleaseError(
        f"{str(path)!r} is damaged, or of an earlier version; the run cannot be resumed, and "
        "nothing was changed"
    )


def _keyed(key: bytes, counts: bytes) -> str:
    return hmac.new(key, counts, "sha256").hexdigest()


def _brief(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
