"""What the machine refuses, in words: one table for locks, journals and the command line."""

from __future__ import annotations

import errno

_ROOM = "no room left on the disk"
_RIGHTS = "permission denied"
_LOCKS = "its file system cannot lock files"

SENTENCES = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _ROOM,
    errno.EIO: "the disk, or the network behind it, failed to read or write",
    errno.ESTALE: "the network file system lost the file",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.ENOLCK: _LOCKS,
    errno.EOPNOTSUPP: _LOCKS,
    errno.ENOTSUP: _LOCKS,
    errno.ELOOP: "it is a symbolic link, which is not followed here",
    errno.ENXIO: "nobody reads this pipe",
}
"""Why a file operation failed, by its number. What is not listed has a bug as a likelier reason."""

LOCKING = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EIO, errno.ENOSYS})
"""What a file system answers that cannot lock, as opposed to a lock that another process has."""


def reason(error: OSError) -> str:
    """Why a file operation failed, in words."""
    return SENTENCES.get(error.errno or 0) or error.strerror or str(error)
