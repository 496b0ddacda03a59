"""Files that one process writes and others may read, and that survive a loss of power."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dualquery.base.errors import DualQueryError, ReleaseError
from dualquery.base.failures import reason

NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Refuses to open a symbolic link, where the system can."""

_WAITING = re.compile(r"\A\.[0-9a-f]{16}\.")

MOST_TEXT = 1 << 28
"""The most characters of a text that is read whole; a schema of a million codes has a tenth."""


def lock(stream: IO[Any] | int) -> bool:
    """Lock an open file for this process until it is closed; False if another process has it.

    Raises:
        OSError: the file system, or the operating system, has no such locks. To go on without
            them would let two processes draw the same round.
    """
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOTSUP, "this operating system has no POSIX locks") from None
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_ours(path: Path) -> bool:
    """Whether a path is a file or folder of this user, and no symbolic link."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return not stat.S_ISLNK(found.st_mode) and (os.name != "posix" or found.st_uid == os.geteuid())


def check_target(path: Path) -> None:
    """Refuse a name that cannot be written to, before work is done.

    A plain file or a link is replaced, not written to. Pipes and devices are written to, if they
    are of this user: a pipe that somebody planted would hang, or hand the content to them.
    """
    try:
        found = path.stat()
    except OSError:
        return  # nothing is there, or a link to nothing, which is replaced
    if stat.S_ISREG(found.st_mode) or stat.S_ISCHR(found.st_mode):
        return
    if not stat.S_ISFIFO(found.st_mode):
        raise ReleaseError(f"{str(path)!r} is no file; choose another name")
    if found.st_uid != os.geteuid():
        raise ReleaseError(f"{str(path)!r} is a pipe of another user; choose another name")
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        raise ReleaseError(f"cannot write to {str(path)!r}: {reason(error)}") from None


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """A name to write a file under, with the same ending; it takes its own name when it is whole.

    The file is new, in the folder of `path`, under a name that nobody can guess, so nobody can
    have put a link there. A link at `path` itself is replaced and not followed. Something other
    than a plain file, such as a pipe, is written to directly.

    Args:
        path: the name in the end.
        private: whether nobody except its owner may read it, at any moment.
    """
    if path.exists() and not path.is_file():
        if path.is_fifo():
            # Held open, because a reader takes the first writer that leaves for the end.
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            try:
                yield path
            finally:
                os.close(handle)
            return
        yield path
        return
    waiting = path.with_name(f".{secrets.token_hex(8)}.{path.name}")
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK
    os.close(os.open(waiting, new, 0o600 if private else 0o666))
    try:
        yield waiting
        os.replace(waiting, path)
    except BaseException:
        waiting.unlink(missing_ok=True)
        raise


def final_name(name: str) -> str:
    """The name that a file written with `replacing` would have got, had its writer not died."""
    return _WAITING.sub("", name)


def write_whole(path: Path, text: str, *, private: bool = False) -> None:
    """Write a file by rename, so that a reader sees either the old text or the new one."""
    with replacing(path, private=private) as waiting:
        waiting.write_text(text, encoding="utf-8")


def write_private(path: Path, text: str) -> None:
    """Write a file that nobody except its owner can read at any moment.

    An existing file would keep its mode, and whoever has it open could go on reading. So a new
    file is written and takes its name.
    """
    write_whole(path, text, private=True)


def write_durable(path: Path, text: str) -> None:
    """Write a file that only its owner can read, by rename; it is on disk when this returns.

    Until the rename the text is in `NAME.new`, a name that whoever cleans up can know.
    """
    waiting = path.with_name(f"{path.name}.new")
    handle = os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_LINK, 0o600)
    try:
        write_all(handle, text.encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    os.rename(waiting, path)
    sync_directory(path.parent)


def write_all(handle: int, content: bytes) -> None:
    """Write all of the content, because the system may take only a part of it at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


def sync_directory(directory: Path) -> None:
    """Make a directory's entries durable: a rename or deletion is on disk when this returns."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_text(path: Path, what: str, refusal: type[DualQueryError]) -> str:
    """The text of a file that a user names.

    Args:
        path: the file.
        what: what it is, in words, such as "schema file".
        refusal: the error to raise if it cannot be read.
    """
    try:
        # What the system says of its size is not asked: a device has none, and never ends.
        with path.open(encoding="utf-8") as stream:
            text = stream.read(MOST_TEXT + 1)
    except OSError as error:
        raise refusal(f"cannot read {what} {str(path)!r}: {reason(error)}") from None
    except UnicodeDecodeError:
        raise refusal(f"{what} {str(path)!r} is not UTF-8 text") from None
    if len(text) > MOST_TEXT:
        raise refusal(f"{what} {str(path)!r} has more than {MOST_TEXT:,} characters")
    return text
