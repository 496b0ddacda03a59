"""A ledger inside of one transaction: its links are read, computed again and added to."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path

from dualquery.base.stored import Json
from dualquery.privacy.ledger import file
from dualquery.privacy.ledger.account import Account, Entry, Reader
from dualquery.privacy.ledger.chain import LedgerError, Link, Mark, check_links
from dualquery.privacy.ledger.refusals import lacks


@dataclass(frozen=True)
class Seen:
    """What one process has computed of a ledger.

    Attributes:
        position: of the last link.
        digest: of that link.
        reader: what the links add up to.
    """

    position: int
    digest: bytes
    reader: Reader


@dataclass
class Page:
    """A ledger inside of a transaction.

    Attributes:
        path: its file.
        connection: the transaction.
        reader: what its links add up to.
        mark: the last link.
    """

    path: Path
    connection: sqlite3.Connection
    reader: Reader
    mark: Mark

    @property
    def account(self) -> Account:
        return self.reader.account(self.mark)

    def append(self, said: Json) -> None:
        """Add a link."""
        link = Link.following(bytes.fromhex(self.mark.head), said)
        position = self.mark.position + 1
        file.append(self.connection, position, link)
        self.mark = replace(self.mark, position=position, head=link.digest.hex())
        # A copy, because what this process has seen is what is on disk, and this is not yet.
        self.reader = Reader(self.reader.declared, dict(self.reader.entries))
        self.reader.add([link.read()])

    def entry(self, release: str) -> Entry:
        """The entry of a release, which must be there."""
        entry = self.account.entry(release)
        if entry is None:
            raise LedgerError(f"ledger {self.path} has no release {release}")
        return entry

    def check_seen(self, seen: Mark, who: str) -> None:
        """Refuse if somebody has seen what this ledger does not hold."""
        if seen.fingerprint != self.mark.fingerprint:
            raise LedgerError(f"{who} was charged to another ledger than {self.path}")
        found = self.connection.execute(
            "SELECT digest FROM chain WHERE position = ?", (seen.position,)
        ).fetchone()
        if found is None or found[0].hex() != seen.head:
            raise lacks(self.path, seen, who)


def read_page(
    connection: sqlite3.Connection, path: Path, seen: Seen | None = None
) -> tuple[Page, Seen]:
    """Read all links, or those after what was seen, and compute their digests again.

    Args:
        connection: the transaction.
        path: the file, for messages.
        seen: what this process has computed of it before.
    """
    start = 0 if seen is None else seen.position
    links = file.links_from(connection, start, path)
    if seen is not None and links[0].digest != seen.digest:  # the file is another one now
        return read_page(connection, path)
    new, before = (links, b"") if seen is None else (links[1:], seen.digest)
    wrong = check_links(new, before)
    if wrong is not None:
        raise file.damaged(path, f" at link {start + wrong + len(links) - len(new)}")
    reader = Reader() if seen is None else seen.reader
    reader.add(link.read() for link in new)
    position = start + len(links) - 1
    fingerprint = reader.declared.get("fingerprint") or _fingerprint(connection)
    mark = Mark(fingerprint, position, links[-1].digest.hex())
    return Page(path, connection, reader, mark), Seen(position, links[-1].digest, reader)


def _fingerprint(connection: sqlite3.Connection) -> str:
    first = connection.execute("SELECT digest FROM chain WHERE position = 0").fetchone()[0]
    return str(first.hex()[:16])
