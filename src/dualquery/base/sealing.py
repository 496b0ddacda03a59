"""Sealed bytes: whoever has the key can read them, and nobody else.

A key is random, of the operating system, and seals one content only. So it can be used as it is:
the content is added, bit by bit, to a stream that SHAKE-256 makes of the key. That nobody changes
what is sealed is not this module's business; the journal has digests for that.
"""

from __future__ import annotations

import hashlib

import numpy as np


def sealed(key: bytes, content: bytes) -> bytes:
    """The content, sealed; or opened, if it was sealed with the same key."""
    stream = hashlib.shake_256(b"dualquery sealed\n" + key).digest(len(content))
    mixed = np.frombuffer(content, np.uint8) ^ np.frombuffer(stream, np.uint8)
    return mixed.tobytes()
