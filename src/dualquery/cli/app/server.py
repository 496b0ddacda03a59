"""A small HTTP server for one page on this machine. It writes no log and keeps nothing.

Nothing private is in an address: all that the page says and is told goes in the bodies of POST
requests, which hold the token. What lies under an address without one are the files of the page
itself, which everybody has.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from threading import Thread
from typing import Any

from dualquery.base.errors import DualQueryError
from dualquery.base.failures import SENTENCES, reason
from dualquery.base.stored import Json
from dualquery.cli.app.desk import Desk
from dualquery.cli.app.guard import ADDRESS, Guard
from dualquery.release.page import files

MOST_BYTES = 1 << 26
"""The longest request: the form of a schema with a million values is a third of it."""

SECONDS = 60
"""A connection that is silent for so long is closed."""

PAGES = {
    "/": ("app.html", "text/html; charset=utf-8"),
    "/app.css": ("app.css", "text/css; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/asking.js": ("asking.js", "text/javascript; charset=utf-8"),
    "/form.js": ("form.js", "text/javascript; charset=utf-8"),
    "/app.js": ("app.js", "text/javascript; charset=utf-8"),
}
"""The files of the page itself, by address."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

IN_A_FRAME = HEADERS | {
    # A release may be anybody's, so its page has no access to ours, not even by its address.
    "Content-Security-Policy": "sandbox allow-scripts allow-downloads; frame-ancestors 'self'",
}


@cache
def asset(name: str) -> bytes:
    """A file of the page itself."""
    if name == "page.css":
        return files.joined("page.css", "explorer.css").encode()
    return (resources.files("dualquery.cli.app") / "assets" / name).read_bytes()


class Server(ThreadingHTTPServer):
    """The server, with what its requests need."""

    daemon_threads = True

    def __init__(self, desk: Desk, port: int, say: Callable[[str], object]) -> None:
        super().__init__((ADDRESS, port), Handler)
        self.desk, self.say = desk, say
        self.guard = Guard(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away is no news."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    server_version, sys_version = "dualquery", ""
    timeout = SECONDS

    def log_message(self, *said: object) -> None:
        """Nothing is written down."""

    def do_GET(self) -> None:
        """The page itself, or what a frame of it shows, once."""
        if refusal := self.server.guard.stranger(self.headers):
            self._answer(403, {"error": refusal})
        elif self.path in PAGES:
            name, kind = PAGES[self.path]
            self._send(200, asset(name), kind, HEADERS)
        else:
            file = self.server.guard.shown(self.path)
            content = b"" if file is None or not file.is_file() else file.read_bytes()
            if content:
                self._send(200, content, "text/html; charset=utf-8", IN_A_FRAME)
            else:
                self._answer(404, {"error": "there is nothing here"})

    def do_POST(self) -> None:
        """What the page asks for."""
        guard = self.server.guard
        if refusal := guard.stranger(self.headers) or guard.foreign(self.headers):
            self._answer(403, {"error": refusal})
            return
        asked = self._body()
        if asked is None:
            self._answer(400, {"error": "expected an object as JSON"})
        elif self.path == "/enter":
            token = guard.enter(asked.get("key"))
            if token is None:
                self._answer(403, {"error": "this link was used already"})
            else:
                self._answer(200, {"token": token})
                self.server.say(f"for another window: {guard.link}")
        elif not guard.knows(self.headers):
            self._answer(403, {"error": "open the page with the link that the command printed"})
        else:
            self._do(self.path.removeprefix("/do/"), asked)

    def _do(self, name: str, asked: dict[str, Any]) -> None:
        desk = self.server.desk
        try:
            if name in desk.steps:
                self._answer(200, desk.steps[name](asked))
            elif name == "show":
                wanted = desk.report if asked.get("private") else desk.page
                self._answer(200, {"address": self.server.guard.show(wanted(asked))})
            elif name == "close":
                self._answer(200, {})
                Thread(target=self.server.shutdown, daemon=True).start()
            else:
                self._answer(404, {"error": "there is nothing here"})
        except DualQueryError as error:
            self._answer(422, {"error": error.on_the_command_line})
        except OSError as error:
            said = reason(error) if error.errno in SENTENCES else type(error).__name__
            self._answer(422, {"error": said})

    def _body(self) -> dict[str, Any] | None:
        """What the request holds; None if it is no object."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            self.close_connection = True
            return None
        try:
            found = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def _answer(self, code: int, said: Json) -> None:
        content = json.dumps(said, ensure_ascii=False, allow_nan=False).encode()
        self._send(code, content, "application/json", HEADERS)

    def _send(self, code: int, content: bytes, kind: str, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in (headers | {"Content-Type": kind}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def serve(desk: Desk, port: int, say: Callable[[str], object]) -> None:
    """Answer the page until it says that it is closed, or an interrupt does.

    Args:
        desk: does what the page asks for.
        port: of this machine; 0 for a free one.
        say: prints a line.
    """
    with Server(desk, port, say) as server:
        say(f"open this in a browser on this machine: {server.guard.link}")
        say("it shows private data, to whoever has this link first; Ctrl-C closes it")
        try:
            server.serve_forever()
        finally:
            desk.close()
    say("closed")
