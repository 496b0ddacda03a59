"""The rounds of one run: under which key each is drawn, and that it was."""

from __future__ import annotations

import secrets

from dualquery.base.sealing import digest_of_key
from dualquery.privacy.ledger.chain import Mark
from dualquery.privacy.ledger.ledger import Ledger


class Turns:
    """The rounds of one run in a ledger: under which key one is drawn, and that it was.

    Attributes:
        key: of the round that is about to be drawn. The ledger knows its digest.
    """

    def __init__(self, ledger: Ledger, release: str) -> None:
        self.ledger, self.release = ledger, release
        self.key = secrets.token_bytes(32)

    @property
    def begins(self) -> str:
        """What the ledger is told before the round begins."""
        return digest_of_key(self.key)

    def drawn(self, rounds: int, digest: str) -> Mark:
        """Tell the ledger that the round is on disk, and begin the next one."""
        following = secrets.token_bytes(32)
        mark = self.ledger.advance(self.release, rounds, digest, self.key, digest_of_key(following))
        self.key = following
        return mark
