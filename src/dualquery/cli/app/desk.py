"""What the page can ask for: one function per step, each of which calls a command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from dualquery.base.errors import ParameterError
from dualquery.base.files import write_private
from dualquery.base.stored import Document, Json
from dualquery.cli.app.commands import Run, arguments_of, call
from dualquery.cli.app.folder import Folder
from dualquery.cli.app.forms import form_of, schema_of, written

READING = ("encoding", "sheet")
PLANNED = ("epsilon", "delta", "unit", "most-records", "weigh", "queries", "marginals")
RELEASED = (*PLANNED, *READING, "out-of-domain", "note")

Step = Callable[[Document], Json]


class Desk:
    """The steps from a table to a release. What a page names is looked for in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = Folder(folder)
        self.run: Run | None = None
        self.out = folder
        self.steps: dict[str, Step] = {
            "folder": self.listed,
            "draft": self.draft,
            "schema": self.schema,
            "save": self.save,
            "check": self.check,
            "plan": self.plan,
            "ledger": self.ledger,
            "release": self.release,
            "progress": self.progress,
            "cancel": self.cancel,
            "evaluate": self.evaluate,
            "open": self.open,
        }

    def close(self) -> None:
        """End what is under way, in a state from which it can be resumed."""
        if self.run is not None:
            self.run.stop()
            self.run.wait()

    def listed(self, asked: Document) -> Json:
        """The files of the folder, and runs that were begun and have not ended."""
        unfinished = []
        for note in sorted(self.folder.path.glob(".*.run.json")):
            try:
                asked_for = json.loads(note.read_text(encoding="utf-8"))
                if self._partial(self.folder.inside(asked_for["out"], "the release")).exists():
                    unfinished.append(asked_for)
            except (OSError, ValueError, TypeError, KeyError):
                continue
        return {**self.folder.listed(), "unfinished": unfinished}

    def draft(self, asked: Document) -> Json:
        """A draft of the table's schema. NOT PRIVATE."""
        table = self.folder.table(asked.get("table"))
        file = self._schema(asked)
        options = {"out": file, "overwrite": bool(asked.get("anew")), **_taken(asked, READING)}
        call("schema", table, *arguments_of(options))
        return form_of(file)

    def schema(self, asked: Document) -> Json:
        """A schema file as a form. A draft is NOT PRIVATE."""
        return form_of(self._schema(asked))

    def save(self, asked: Document) -> Json:
        """Write what the form says; a form that is signed is no draft any more."""
        form = asked.get("form")
        if not isinstance(form, dict):
            raise ParameterError("there is no form to save")
        file = self._schema(asked)
        written(form, schema_of(form), file)
        return form_of(file)

    def check(self, asked: Document) -> Json:
        """Everything that a release would refuse, with cells. NOT PRIVATE."""
        options = {"schema": self._schema(asked), **_taken(asked, (*READING, "out-of-domain"))}
        table = self.folder.table(asked.get("table"))
        return call("check", table, "--show", *arguments_of(options), fine=(0, 1))

    def plan(self, asked: Document) -> Json:
        """What a release would do and cost, from public quantities."""
        options = {"schema": self._schema(asked), **_taken(asked, ("rows", *PLANNED))}
        return call("plan", *arguments_of(options))

    def ledger(self, asked: Document) -> Json:
        """The account of a ledger; with `create`, of a new one."""
        file = self.folder.inside(asked.get("ledger"), "the ledger")
        options = {"create": True, **_taken(asked, ("epsilon", "delta", "label", "unit"))}
        return call("ledger", str(file), *(arguments_of(options) if asked.get("create") else ()))

    def release(self, asked: Document) -> Json:
        """Begin a release, or go on with one that was stopped."""
        if self.run is not None and self.run.state["state"] == "running":
            raise ParameterError("a release is under way; cancel it, or wait for it")
        out = self.folder.inside(asked.get("out"), "the release")
        options: Json = {"schema": self._schema(asked), "out": out, **_taken(asked, RELEASED)}
        if asked.get("ledger"):
            options["ledger"] = self.folder.inside(asked["ledger"], "the ledger")
        table = self.folder.table(asked.get("table"))
        again = {key: value for key, value in asked.items() if key != "resume"}
        if not asked.get("resume") and out.exists():
            raise ParameterError(f"{self.folder.shown(out)!r} exists; choose another name")
        write_private(self._note(out), json.dumps(again))
        resume = ("--resume",) if asked.get("resume") else ()
        self.run = Run(table, *arguments_of(options), *resume)
        self.out = out
        return self.progress(asked)

    def progress(self, asked: Document) -> Json:
        """How far the release is; an empty state if none was begun."""
        if self.run is None:
            return {"state": ""}
        state = self.run.state
        ended = state["state"] != "running"
        resumable = ended and self._partial(self.out).exists()
        if ended and not resumable:
            self._note(self.out).unlink(missing_ok=True)
        return {**state, "out": self.folder.shown(self.out), "resumable": resumable}

    def cancel(self, asked: Document) -> Json:
        """Stop the release; what it has paid for stays, and it can be resumed."""
        if self.run is not None:
            self.run.stop()
        return self.progress(asked)

    def evaluate(self, asked: Document) -> Json:
        """Compare a release with its table. NOT PRIVATE."""
        out = self.folder.inside(asked.get("out"), "the release")
        report = self.report(asked)
        options = {"report": report, **_taken(asked, (*READING, "out-of-domain"))}
        table = self.folder.table(asked.get("table"))
        found = call("evaluate", str(out), table, *arguments_of(options))
        return {**found, "report": self.folder.shown(report)}

    def page(self, asked: Document) -> Path:
        """The page of a release."""
        out = self.folder.inside(asked.get("out"), "the release")
        return self.folder.inside(str(out / "report.html"), "the page")

    def report(self, asked: Document) -> Path:
        """The curator's page about a release. NOT PRIVATE."""
        out = self.folder.inside(asked.get("out"), "the release")
        return self.folder.inside(str(out.with_name(f"{out.name}.private.html")), "the page")

    def open(self, asked: Document) -> Json:
        """Show the folder of a release in the system's own window."""
        out = self.folder.inside(asked.get("out"), "the release")
        opener = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
        shown = opener is not None and ("DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ)
        if opener is not None and (shown or sys.platform == "darwin"):
            subprocess.Popen([opener, str(out)], start_new_session=True)
        return {"path": str(out), "shown": shown or sys.platform == "darwin"}

    def _schema(self, asked: Document) -> Path:
        file = self.folder.inside(asked.get("schema"), "the schema file")
        if file.suffix != ".toml":
            raise ParameterError("the schema file has to end in .toml")
        return file

    @staticmethod
    def _partial(out: Path) -> Path:
        return out.with_name(f"{out.name}.partial")

    @staticmethod
    def _note(out: Path) -> Path:
        """Where the settings of a run are kept until it has ended, so that it can be resumed."""
        return out.with_name(f".{out.name}.run.json")


def _taken(asked: Document, names: tuple[str, ...]) -> Json:
    """Options that the page gave, as texts: none may look like another option."""
    found: Json = {}
    for name in names:
        text = str(asked.get(name) or "").strip()
        if text.startswith("-") or "\0" in text:
            raise ParameterError(f"{name}: {text!r} cannot begin with a hyphen")
        found[name] = text
    return found
