"""Files that one process writes and others may read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any


def lock(stream: IO[Any]) -> bool:
    """Take an open file for this process alone, until it is closed; False if another has it.

    Always True where the system has no such locks.
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
    """Write a file by rename: whoever reads it sees the old text or the new one."""
    waiting = path.with_name(f".{path.name}.{os.getpid()}")
    waiting.write_text(text, encoding="utf-8")
    waiting.replace(path)
