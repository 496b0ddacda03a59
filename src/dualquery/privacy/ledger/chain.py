"""The chain of a ledger: every link holds the digest of all links before it.

A link is one thing that happened, as JSON. Its digest covers its bytes and the digest of the link
before, so no byte can be changed, and no link left out, added or moved, without changing all later
digests. The last digest is the *head*. Whoever has seen a head (a journal, a release) knows by it
everything that the ledger held then.

The digests have no key. They notice accidents, edits and older copies. Somebody who makes all
digests again is noticed by the heads that journals and releases carry, and by nothing else.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from dualquery.base.errors import DualQueryError
from dualquery.base.stored import Document, Json

_DIGEST = 32
_BEGINNING = b"dualquery ledger\n"
_FIELDS = struct.Struct(f"<16sQ{_DIGEST}s")


class LedgerError(DualQueryError):
    """A ledger cannot be created, read or written as asked."""


@dataclass(frozen=True)
class Mark:
    """One moment of a ledger, as journals and releases carry it.

    Attributes:
        fingerprint: tells this ledger from others.
        position: of the link that was the last one, from 0.
        head: its digest.
    """

    fingerprint: str
    position: int
    head: str

    def to_dict(self) -> Json:
        return {"fingerprint": self.fingerprint, "position": self.position, "head": self.head}

    @classmethod
    def from_dict(cls, content: Document) -> Mark:
        """The inverse of `to_dict`.

        Raises:
            ValueError: it is no mark.
        """
        found = cls(content["fingerprint"], content["position"], content["head"])
        if type(found.position) is not int or found.position < 0:
            raise ValueError("the position of a ledger's link is a number from 0")
        for text, length in ((found.fingerprint, 16), (found.head, 2 * _DIGEST)):
            if not isinstance(text, str) or len(text) != length or not text.isascii():
                raise ValueError("a ledger's mark holds digests")
        return found

    def packed(self) -> bytes:
        """The mark as bytes of a fixed length."""
        return _FIELDS.pack(self.fingerprint.encode(), self.position, bytes.fromhex(self.head))

    @classmethod
    def unpacked(cls, content: bytes) -> Mark:
        """The inverse of `packed`."""
        fingerprint, position, head = _FIELDS.unpack(content)
        return cls(fingerprint.decode("ascii", "replace"), position, head.hex())


MARK_SIZE = _FIELDS.size


@dataclass(frozen=True)
class Link:
    """One link as it is stored.

    Attributes:
        content: what happened, as JSON.
        digest: of it and of all links before.
    """

    content: bytes
    digest: bytes

    @classmethod
    def following(cls, previous: bytes, content: Json) -> Link:
        """The link that says `content`, after one with the digest `previous`."""
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return cls(text.encode(), _digest(previous, text.encode()))

    def read(self) -> Document:
        """What it says."""
        found = json.loads(self.content)
        if not isinstance(found, dict):
            raise ValueError("a link is an object")
        return found


def check_links(links: Sequence[Link], previous: bytes = b"") -> int | None:
    """Compute all digests again. Which link does not follow from those before it; None if all do.

    Args:
        links: one after the other.
        previous: the digest before the first of them; nothing before the first of all.
    """
    for number, link in enumerate(links):
        if _digest(previous, link.content) != link.digest:
            return number
        previous = link.digest
    return None


def _digest(previous: bytes, content: bytes) -> bytes:
    return hashlib.sha256((previous or _BEGINNING) + content).digest()
