"""Files that one process writes and others may read, and that survive a loss of power."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dualquery.base.errors import DualQueryError


def lock(stream: IO[Any] | int) -> bool:
    """Lock an open file for this process until it is closed; False if another process has it.

    The answer is always True where the system has no such locks.
    """
    if os.name != "posix":
        return True
    import fcntl

    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def write_whole(path: Path, text: str) -> None:
    """Write a file by rename, so that a reader sees either the old text or the new one."""
    waiting = path.with_name(f".{path.name}.{os.getpid()}")
    waiting.write_text(text, encoding="utf-8")
    waiting.replace(path)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name to write a file under, with the same ending; it takes its own name when it is whole.

    Something other than a plain file, such as a pipe, is written to directly.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    waiting = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield waiting
        waiting.replace(path)
    except BaseException:
        waiting.unlink(missing_ok=True)
        raise


def write_private(path: Path, text: str) -> None:
    """Write a file that nobody except its owner can read at any moment.

    An existing file would keep its mode, and whoever has it open could go on reading. So a new
    file is written and takes its name. Something other than a plain file, such as a pipe, is
    written to directly.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    path = path.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write_durable(path: Path, text: str) -> None:
    """Write a file that only its owner can read, by rename; it is on disk when this returns.

    Until the rename the text is in `NAME.new`, a name that whoever cleans up can know.
    """
    waiting = path.with_name(f"{path.name}.new")
    handle = os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
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
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise refusal(f"cannot read {what} {str(path)!r}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise refusal(f"{what} {str(path)!r} is not UTF-8 text") from None
