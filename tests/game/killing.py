"""Runs a release once per step that touches the disk, is killed there, and resumes.

    python killing.py FOLDER PLAN

A step is a file opened, written (half of it, when killed), synced, renamed, deleted, or a ledger
opened. Every run is a fork of one process that is warm. Prints how many steps there were.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pyarrow as pa

from dualquery import estimator
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator import stages
from dualquery.game.record_player import RecordPlayer
from dualquery.privacy.ledger import Ledger, Mark
from dualquery.privacy.sources import SeededSource

EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "sqlite3.connect"}
KILLED = 9
SCHEMA = Schema((Attribute.binary("a"), Attribute.binary("b"), Attribute.binary("c")))
ROWS = pa.table({name: [i >> k & 1 for i in range(64)] for k, name in enumerate("abc")})
JOB = estimator.DualQuery(
    epsilon=3.0, delta=1e-3, rounds=2, samples=8, eta=3.0, queries=12, player="record", refit=False
)


class SeededButCharged(SeededSource):
    """For comparing whole releases, with a ledger that takes no seeded runs."""

    private = True


class Killer:
    """Ends the process before its step number `at`."""

    def __init__(self) -> None:
        self.at = self.steps = 0
        self.armed = False
        self.folder = ""
        sys.addaudithook(self.hook)
        for name in ("fsync", "write", "ftruncate"):
            setattr(os, name, self.wrapped(getattr(os, name)))

    def hook(self, event: str, arguments: tuple) -> None:
        if self.armed and event in EVENTS and str(arguments[0]).startswith(self.folder):
            self.step()

    def wrapped(self, function):
        def call(handle: int, *rest):
            if self.armed:
                half = function.__name__ == "write" and self.steps + 1 == self.at
                if half:
                    function(handle, bytes(rest[0])[: len(rest[0]) // 2])
                self.step()
            return function(handle, *rest)

        return call

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            os._exit(KILLED)


KILLER = Killer()


def in_a_fork(folder: Path, at: int, **options) -> bool:
    """Run or resume the release, killed before step `at`; whether it got to its end."""
    child = os.fork()
    if not child:
        KILLER.folder, KILLER.at, KILLER.armed = str(folder), at, True
        try:
            JOB.release(ROWS, folder / "out", schema=SCHEMA, **options)
        except BaseException as error:
            KILLER.armed = False
            sys.stderr.write(f"step {at}: {type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, KILLED), f"killed at step {at}, it ended with {code}"
    return code == 0


def files(folder: Path) -> dict[str, bytes]:
    """All files of a release, without what it has seen of its ledger and what follows from that."""
    found = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
    description = json.loads(found["release.json"])
    mark = Mark.from_dict(description.pop("ledger"))
    description.pop("digest")
    description["files"].pop("report.html")  # it names the ledger, and the entry
    page = found["report.html"].replace(mark.fingerprint.encode(), b"LEDGER")
    page = re.sub(rb"[\d,]+ entries came before it|, entry [\d,]+\.", b"", page)
    return {**found, "report.html": page, "release.json": json.dumps(description).encode()}


def unfinished(folder: Path) -> bool:
    """Whether anything is left that a resume must finish."""
    return bool({file.name for file in folder.iterdir()} - {"out", "ledger.db"})


def seeded() -> None:
    stages.source_for = lambda seed: SeededButCharged(3)


def noting(log: Path) -> None:
    """Write down which draws are used, round by round."""
    respond = RecordPlayer.respond

    def noted(self, state, temperature, draws):
        digest = hashlib.sha256(draws.queries.tobytes() + draws.negated.tobytes()).hexdigest()
        with log.open("a") as stream:
            stream.write(f"{len(state.records)} {digest}\n")
        return respond(self, state, temperature, draws)

    RecordPlayer.respond = noted


def main(base: Path, plan: str) -> None:
    JOB.release(ROWS, base / "warm", schema=SCHEMA)
    whole = None
    if plan != "unseeded":
        seeded()
        Ledger.create(base / "whole.db", epsilon=10.0, delta=1e-3)  # the page says so
        JOB.release(ROWS, base / "whole", schema=SCHEMA, ledger=base / "whole.db")
        whole = files(base / "whole")
    if plan == "overwrite":
        JOB.release(ROWS.slice(32), base / "older", schema=SCHEMA, ledger=base / "whole.db")
    gc.freeze()  # a fork then copies less
    at = 0
    while True:
        at += 1
        folder = base / str(at)
        folder.mkdir()
        options: dict = {"ledger": folder / "ledger.db"}
        Ledger.create(folder / "ledger.db", epsilon=10.0, delta=1e-3)
        if plan == "overwrite":
            shutil.copytree(base / "older", folder / "out")
            options["overwrite"] = True
        if plan == "unseeded":
            RecordPlayer.respond = RESPOND
            noting(base / f"{at}.log")
        over = in_a_fork(folder, at, **options)
        if not over:
            if plan == "seeded":  # and killed once more while it resumes
                again = unfinished(folder)
                if again or not (folder / "out").exists():
                    in_a_fork(folder, at * 7 % 40 + 1, resume=again, **options)
            if unfinished(folder):
                assert in_a_fork(folder, 0, resume=True, **options)
            elif not (folder / "out").exists():
                assert in_a_fork(folder, 0, **options)
            elif plan == "overwrite" and files(folder / "out") != whole:
                assert in_a_fork(folder, 0, **options)  # killed before it began
        left = {file.name for file in folder.iterdir()}
        assert left == {"out", "ledger.db"}, f"step {at} left {left}"
        book = Ledger(folder / "ledger.db")
        entries = book.account().entries
        carried = json.loads((folder / "out" / "release.json").read_text())["ledger"]
        book.check(Mark.from_dict(carried), "out")
        assert [entry.state for entry in entries] == ["spent"], f"step {at}: {entries}"
        if whole is not None:
            assert files(folder / "out") == whole, f"step {at} ended in another release"
        else:
            used = {tuple(line.split()) for line in (base / f"{at}.log").read_text().splitlines()}
            rounds = [number for number, _ in used]
            assert len(set(rounds)) == len(rounds) == JOB.rounds, f"step {at} drew a round twice"
        if over:
            sys.stdout.write(f"{at - 1}\n")
            return


RESPOND = RecordPlayer.respond

if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
