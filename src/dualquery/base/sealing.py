"""Sealed bytes: whoever has the key can read them, and nobody else.

A key is random, of the operating system, and seals one content only. So it can be used as it is:
the content is added, bit by bit, to a stream that SHAKE-256 makes of the key. That nobody changes
what is sealed is not this module's business; the journal has digests for that.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Opening:
    """What opens one round of a journal: its key, and the digest of what was drawn."""

    key: bytes
    digest: str


def sealed(key: bytes, content: bytes) -> bytes:
    """The content, sealed; or opened, if it was sealed with the same key."""
    stream = hashlib.shake_256(b"dualquery sealed\n" + key).digest(len(content))
    mixed = np.frombuffer(content, np.uint8) ^ np.frombuffer(stream, np.uint8)
    return mixed.tobytes()


def digest_of_key(key: bytes) -> str:
    """What a ledger knows of a key before the draws that it opens are on disk."""
    return hashlib.sha256(key).hexdigest()
