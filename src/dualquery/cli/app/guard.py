"""Who is answered: the page that was opened with the link, and nobody else.

The link holds a key that works once. The page gives it back for a token, keeps the token to itself
and sends it in a header, so there is no cookie that a browser would add for another page, and none
that another server on this machine would be sent. `Host` keeps out pages whose name was made to
lead here, `Origin` those of other servers.
"""

from __future__ import annotations

import secrets
import threading
from email.message import Message
from pathlib import Path

ADDRESS = "127.0.0.1"


class Guard:
    """The secrets of one start.

    Attributes:
        host: the only `Host` that is answered.
    """

    def __init__(self, port: int) -> None:
        self.host = f"{ADDRESS}:{port}"
        self._token = secrets.token_urlsafe(32)
        self._key = secrets.token_urlsafe(32)
        self._shown: dict[str, Path] = {}
        self._lock = threading.Lock()

    @property
    def link(self) -> str:
        """What opens the page once. A browser sends nothing of what follows `#`."""
        return f"http://{self.host}/#{self._key}"

    def stranger(self, headers: Message) -> str:
        """Why a request is not from our page, whatever it wants; empty if it may be."""
        if headers.get_all("Host") != [self.host]:
            return "this address is answered under its own name alone"
        if any(origin != f"http://{self.host}" for origin in headers.get_all("Origin", [])):
            return "another page asked"
        if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return "another page asked"
        return ""

    def foreign(self, headers: Message) -> str:
        """Why a request that does something is refused; empty if our page sent it."""
        if not headers.get_all("Origin"):
            return "another page asked"
        if headers.get_content_type() != "application/json":
            return "expected JSON"
        return ""

    def knows(self, headers: Message) -> bool:
        """Whether a request holds the token."""
        given = headers.get("Authorization", "").encode("utf-8", "replace")
        return secrets.compare_digest(given, f"Bearer {self._token}".encode())

    def enter(self, key: object) -> str | None:
        """The token, for the key of the link; a new link is needed afterwards."""
        with self._lock:
            right = secrets.compare_digest(str(key).encode("utf-8", "replace"), self._key.encode())
            if not right:
                return None
            self._key = secrets.token_urlsafe(32)
            return self._token

    def show(self, file: Path) -> str:
        """An address under which a frame can load a file, once."""
        ticket = secrets.token_urlsafe(32)
        with self._lock:
            self._shown[ticket] = file
        return f"/shown/{ticket}"

    def shown(self, address: str) -> Path | None:
        """The file under an address that `show` gave; it is not there again."""
        with self._lock:
            return self._shown.pop(address.removeprefix("/shown/"), None)
