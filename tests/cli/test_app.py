"""`dualquery app` without a browser: who is answered, which files are reached, what is kept."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dualquery.base.errors import ParameterError, SchemaError
from dualquery.cli.app.commands import CommandError, arguments_of, call
from dualquery.cli.app.desk import Desk
from dualquery.cli.app.folder import Folder
from dualquery.cli.app.forms import form_of, schema_of, written
from dualquery.cli.app.guard import Guard
from dualquery.cli.app.server import PAGES, Server
from dualquery.domain.schema import Schema
from dualquery.rows.drafting import draft


class Client:
    """A client that sends exactly what it is told."""

    def __init__(self, server: Server) -> None:
        self.guard = server.guard
        self.port = server.server_address[1]
        self.own = f"http://{self.guard.host}"
        self.token = ""

    def send(
        self, method: str, path: str, body: object = None, **changed: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        """A request of our page, except for the headers that are changed; None leaves one out."""
        headers: dict[str, str | None] = {"Host": self.guard.host}
        if method == "POST":
            headers |= {
                "Origin": self.own,
                "Content-Type": "application/json",
                "Authorization": f"Bearer {self.token}",
            }
        headers |= {name.replace("_", "-"): value for name, value in changed.items()}
        data = json.dumps({} if body is None else body).encode() if method == "POST" else b""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            for one in [] if value is None else value.split("\n"):
                connection.putheader(name, one)
        connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        found = answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        connection.close()
        return found

    def ask(self, path: str, body: object = None) -> tuple[int, dict[str, object]]:
        code, _, content = self.send("POST", path, body)
        return code, json.loads(content)

    def enter(self) -> None:
        code, said = self.ask("/enter", {"key": self.guard.link.partition("#")[2]})
        assert code == 200
        self.token = str(said["token"])


@pytest.fixture
def folder(tmp_path: Path, schema: Schema) -> Path:
    found = tmp_path / "tables"
    found.mkdir()
    schema.save(found / "schema.toml")
    (tmp_path / "secret.toml").write_text("hidden words")
    return found


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    said: list[str] = []
    with Server(Desk(folder), 0, said.append) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture
def client(server: Server) -> Client:
    made = Client(server)
    made.enter()
    return made


def test_a_link_opens_the_page_once(server: Server) -> None:
    client = Client(server)
    key = server.guard.link.partition("#")[2]
    assert client.ask("/do/folder")[0] == 403
    assert client.ask("/enter", {"key": key[:-1] + "x"})[0] == 403
    client.enter()
    assert client.ask("/do/folder")[0] == 200
    assert client.ask("/enter", {"key": key})[0] == 403
    assert server.guard.link.partition("#")[2] != key
    assert "Set-Cookie" not in client.send("POST", "/do/folder")[1]


@pytest.mark.parametrize("token", ["", "Bearer ", "Bearer x", "Basic x", "Bearer é", None])
def test_nothing_is_done_without_the_token(client: Client, token: str | None) -> None:
    code, _, content = client.send("POST", "/do/folder", Authorization=token)
    assert code == 403
    assert b"tables" not in content


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "localhost:{port}", "127.0.0.1.evil.example:{port}", None]
)
def test_another_name_for_this_address_is_not_answered(client: Client, host: str | None) -> None:
    """DNS rebinding: a page whose name was made to lead here is of the same origin as itself."""
    told = None if host is None else host.format(port=client.port)
    origin = f"http://{told}"
    for method, path in (("POST", "/do/folder"), ("GET", "/"), ("GET", "/app.js")):
        code, _, content = client.send(method, path, Host=told, Origin=origin)
        assert (code, b"schema" in content) == (403, False)
        more = {"Origin": client.own} if method == "POST" else {}
        assert client.send(method, path, Host=told, **more)[0] == 403
    twice = f"{client.guard.host}\nevil.example"
    assert client.send("POST", "/do/folder", Host=twice)[0] in (400, 403)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", None])
def test_another_page_cannot_ask(client: Client, folder: Path, origin: str | None) -> None:
    """CSRF: even with the token, which no other page has."""
    told = {"schema": "schema.toml", "form": form_of(folder / "schema.toml")}
    before = (folder / "schema.toml").read_bytes()
    told["form"]["columns"].pop()
    assert client.send("POST", "/do/save", told, Origin=origin)[0] == 403
    if origin is not None:
        assert client.send("GET", "/", Origin=origin)[0] == 403
    assert client.send("GET", "/", Sec_Fetch_Site="cross-site")[0] == 403
    assert client.send("POST", "/do/save", told, Sec_Fetch_Site="same-site")[0] == 403
    assert (folder / "schema.toml").read_bytes() == before


def test_a_form_of_another_page_is_no_question(client: Client) -> None:
    """What a browser sends without asking first: plain text and forms."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None):
        assert client.send("POST", "/do/folder", Content_Type=kind)[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.toml", "/..%2fsecret.toml", "/app.js/../../../secret.toml", "//etc/passwd",
        "/assets/app.js", "/shown/", "/shown/x", "/shown/../secret.toml", "/app.html", "/?x",
        "http://127.0.0.1/app.js",
    ],
)  # fmt: skip
def test_only_the_page_itself_has_addresses(client: Client, path: str) -> None:
    code, _, content = client.send("GET", path)
    assert code == 404
    assert content == b'{"error": "there is nothing here"}'
    assert client.send("POST", path)[0] == 404


@pytest.mark.parametrize(
    "name", ["..", ".", "../secret.toml", "/etc/passwd", "link.toml", "", "a\0b", 7]
)
def test_nothing_outside_the_folder_is_reached(client: Client, folder: Path, name: object) -> None:
    (folder / "link.toml").symlink_to(folder.parent / "secret.toml")
    for step, told in (
        ("schema", {"schema": name}),
        ("draft", {"table": name, "schema": "new.toml"}),
        ("draft", {"table": f"sqlite:{name}", "schema": "new.toml"}),
        ("draft", {"table": "schema.toml", "schema": name}),
        ("check", {"table": name, "schema": "schema.toml"}),
        ("ledger", {"ledger": name}),
        ("release", {"table": "schema.toml", "schema": "schema.toml", "out": name}),
        ("evaluate", {"out": name, "table": "schema.toml"}),
        ("show", {"out": name}),
        ("open", {"out": name}),
    ):
        code, said = client.ask(f"/do/{step}", told)
        assert code == 422, step
        assert "hidden words" not in str(said)
    assert (folder.parent / "secret.toml").read_text() == "hidden words"
    assert sorted(one.name for one in folder.iterdir()) == ["link.toml", "schema.toml"]


def test_a_link_in_the_place_of_a_page_is_not_followed(client: Client, folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "report.html").symlink_to(folder.parent / "secret.toml")
    (folder / "out.private.html").symlink_to(folder.parent / "secret.toml")
    for private in (False, True):
        assert client.ask("/do/show", {"out": "out", "private": private})[0] == 422


def test_a_value_is_no_option(client: Client) -> None:
    told = {"schema": "schema.toml", "rows": "100", "epsilon": "--help", "delta": "1e-6"}
    code, said = client.ask("/do/plan", told)
    assert (code, said) == (422, {"error": "epsilon: '--help' cannot begin with a hyphen"})
    assert arguments_of({"a": "x y", "b": "", "c": True, "d": None, "e": False}) == [
        "--a", "x y", "--c"
    ]  # fmt: skip


def test_every_option_of_the_page_is_one_of_its_command() -> None:
    """A name that the command does not know would be refused only when somebody uses it."""
    import typer

    from dualquery.cli import application
    from dualquery.cli.app import desk

    asked = {
        "schema": ("out", "overwrite", *desk.READING),
        "check": ("schema", "show", *desk.READING, "out-of-domain"),
        "plan": ("schema", "rows", *desk.PLANNED),
        "release": ("schema", "out", "ledger", "resume", *desk.RELEASED),
        "evaluate": ("report", *desk.READING, "out-of-domain"),
        "ledger": ("create", "epsilon", "delta", "label", "unit"),
    }
    group = typer.main.get_command(application())
    for name, options in asked.items():
        known = {option for one in group.commands[name].params for option in one.opts}  # type: ignore[attr-defined]
        assert {f"--{option}" for option in (*options, "json")} <= known


def test_what_a_frame_shows_is_there_once_and_apart(client: Client, folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "report.html").write_text("<p>hello</p>")
    code, said = client.ask("/do/show", {"out": "out"})
    assert code == 200
    address = str(said["address"])
    assert "out" not in address
    code, headers, content = client.send("GET", address)
    assert (code, content) == (200, b"<p>hello</p>")
    assert "sandbox allow-scripts allow-downloads" in headers["content-security-policy"]
    assert "same-origin" not in headers["content-security-policy"]
    assert client.send("GET", address)[0] == 404


def test_nothing_is_stored_and_nothing_else_runs(client: Client) -> None:
    for method, path in [("GET", page) for page in PAGES] + [("POST", "/do/folder")]:
        code, headers, _ = client.send(method, path)
        assert code == 200
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'"
        )
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in headers
    assert client.send("DELETE", "/")[0] == 501
    assert client.send("POST", "/do/folder", [1])[0] == 400


def test_it_logs_nothing_and_closes_when_told(folder: Path) -> None:
    (folder / "patients-of-dr-smith.csv").write_text("a,b\n1,x\n2,y\n")
    app = subprocess.Popen(
        [sys.executable, "-m", "dualquery", "app", str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert app.stderr is not None
    line = app.stderr.readline()
    address, _, key = line.rpartition(" ")[2].strip().partition("#")
    port = int(address.rstrip("/").rpartition(":")[2])

    class Same:
        guard = type("Known", (), {"host": f"127.0.0.1:{port}", "link": f"#{key}"})
        server_address = ("", port)

    client = Client(Same)  # type: ignore[arg-type]
    client.enter()
    told = {"table": "patients-of-dr-smith.csv", "schema": "draft.toml"}
    assert client.ask("/do/draft", told)[0] == 200
    assert client.ask("/do/close")[0] == 200
    out, err = app.communicate(timeout=20)
    assert (app.returncode, out) == (0, "")
    assert "smith" not in line + err
    assert "POST" not in err
    assert err.endswith("closed\n")
    assert client.token not in line + err


def test_a_folder_is_needed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dualquery", "app", str(tmp_path / "none")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_the_folder_lists_what_may_be_used(tmp_path: Path) -> None:
    for name in ("a.csv", "b.SAV", "c.txt", ".hidden.csv", "s.toml", "x.ledger.json"):
        (tmp_path / name).write_text("")
    os.symlink("/etc/passwd", tmp_path / "d.csv")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "release.json").write_text("{}")
    (tmp_path / "other").mkdir()
    assert Folder(tmp_path).listed() == {
        "folder": str(tmp_path),
        "tables": ["a.csv", "b.SAV"],
        "schemas": ["s.toml"],
        "ledgers": ["x.ledger.json"],
        "releases": ["out"],
    }
    with pytest.raises(ParameterError, match="has to lie in"):
        Folder(tmp_path).table("d.csv")
    assert Folder(tmp_path).table("sqlite:a.csv#t").endswith("a.csv#t")
    with pytest.raises(ParameterError):
        Folder(tmp_path).table("duckdb:a.csv#select * from read_text('/etc/passwd')")


def test_a_command_that_fails_says_why(folder: Path) -> None:
    with pytest.raises(CommandError, match="cannot read schema file") as refused:
        call(
            "plan",
            "--schema",
            str(folder / "none.toml"),
            "--epsilon",
            "1",
            "--delta",
            "0.1",
            "--rows",
            "9",
        )
    assert "error:" not in str(refused.value)


EVERYTHING = """
draft = true
persons = "pid"
[about]
title = "T"
[attributes.sex]
values = [1, 2, 3]
missing = ["9", "-1"]
ordered = false
labels = { 1 = "male", 2 = "female", 9 = "refused" }
[attributes.age]
edges = [0.0, 5.0, 10.5]
decimals = 1
reached = true
unit = "years"
[attributes.score]
values = [0.5, 1.0, 2.0]
[attributes.born]
edges = [1900-01-01, 1950-01-01, 2000-01-01]
label = "Born"
[attributes.town]
values = ["Bonn", "Köln", "12"]
default = "Köln"
missing = true
[attributes.drugs]
values = ["a", "b"]
separator = ";"
missing = ["none"]
labels = { a = "Aspirin" }
[attributes.smoker]
binary = true
type = "yes/no"
yes = ["oui"]
no = ["non"]
labels = { 1 = "smokes" }
[binary_columns]
prefix = "x"
count = 40
[[constraints]]
forbid = "sex=1 & smoker=1"
[[constraints]]
if = "town=Bonn"
then = "sex=1"
[[constraints]]
determines = { town = "sex" }
"""


def test_a_form_says_all_that_a_schema_says(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(EVERYTHING)
    form = json.loads(json.dumps(form_of(file)))
    assert schema_of(form) == Schema.load(file)
    written(form, schema_of(form), file)
    assert json.loads(json.dumps(form_of(file))) == form
    signed = schema_of({**form, "draft": False})
    assert signed == Schema.load(file).reviewed()


def test_what_was_seen_is_marked_and_what_is_documented_is_not(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(EVERYTHING)
    marks = {
        str(column["name"]): [item["seen"] for item in column["items"]]
        for column in form_of(file)["columns"]
    }
    assert marks["sex"] == [False, False, True]
    assert marks["age"] == [True, True, True]
    assert marks["drugs"] == [False, True]
    assert not any(marks["smoker"])
    file.write_text(EVERYTHING.replace("draft = true", ""))
    assert not any(item["seen"] for column in form_of(file)["columns"] for item in column["items"])


def test_what_a_draft_says_goes_with_the_draft(tmp_path: Path) -> None:
    """Its comments quote the table: they stay while it is one, and leave when it is signed."""
    (tmp_path / "t.csv").write_text(
        "id,town,income\n"
        + "\n".join(f"{i},{['Bonn', 'Köln', 'bonn'][i % 3]},{i * i % 37}" for i in range(90))
    )
    file = tmp_path / "s.toml"
    draft(tmp_path / "t.csv").save(file)
    form = json.loads(json.dumps(form_of(file)))
    assert [one["name"] for one in form["left_out"]] == ["id"]
    remarks = {column["name"]: column["remark"] for column in form["columns"]}
    assert "'Bonn', 'bonn'" in remarks["town"]
    written(form, schema_of(form), file)
    assert json.loads(json.dumps(form_of(file))) == form
    assert file.stat().st_mode & 0o077 == 0
    signed = {**form, "draft": False}
    written(signed, schema_of(signed), file)
    assert "#" not in file.read_text()


@pytest.mark.parametrize(
    "broken", [{}, {"columns": 3}, {"columns": [{"name": "a"}]}, {"rules": [{}]}]
)
def test_a_broken_form_is_refused(tmp_path: Path, broken: dict[str, object]) -> None:
    file = tmp_path / "s.toml"
    file.write_text(EVERYTHING)
    form = form_of(file)
    with pytest.raises(SchemaError):
        schema_of({**form, **broken} if broken else {})
    form["columns"][1]["items"][0]["text"] = "five"  # type: ignore[index]
    with pytest.raises(SchemaError, match="column 'age': 'five'; expected a number"):
        schema_of(form)


def test_keys_and_tickets_are_never_the_same() -> None:
    first, second = Guard(1), Guard(1)
    assert first.link != second.link
    assert first.show(Path("a")) != first.show(Path("a"))
