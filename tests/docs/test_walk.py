"""The walk through the package is walked: what its tables name is called by a small run."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from functools import cached_property
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.base.threads import _pool
from dualquery.cli import main
from dualquery.release.frames import write_table
from tests.docs.test_names import backticked, resolve, text_of

WALK = "docs/develop/walk.md"
STEPS = re.findall(r"^\| `(dualquery\.[\w.]+)` \|", text_of(WALK), re.M)
_HEADS = r"^## \d+\. (?:One draw|What they become|One answer|With draws alone)$"
MEASURED, NAMED, BECOME, ASKED, DRAWN = (
    re.findall(r"^\| `(dualquery\.[\w.]+)` \|", part, re.M)
    for part in re.split(_HEADS, text_of(WALK), flags=re.M)
)


def code_of(name: str) -> CodeType:
    """The code of a function or method, however it is wrapped."""
    found: Any = resolve(name)
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, cached_property):
        found = found.func
    return getattr(found, "__func__", found).__code__


class Called:
    """The code of every Python function that was called while it was watching."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self.codes.add(frame.f_code)


@pytest.fixture
def called() -> Iterator[Called]:
    watcher, before = Called(), sys.getprofile()
    _pool.cache_clear()  # threads that run already would not be watched
    threading.setprofile(watcher)
    sys.setprofile(watcher)
    yield watcher
    sys.setprofile(before)
    threading.setprofile(None)


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["dualquery", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("walk")
    random = np.random.default_rng(0)
    schema = dq.Schema(
        (
            dq.Attribute.categorical("sex", ["Female", "Male"]),
            dq.Attribute.numeric("age", [0, 25, 35, 50, 65, 80, 120]),
            dq.Attribute.binary("smoker"),
        )
    )
    table = pa.table(
        {
            "sex": random.choice(["Female", "Male"], 4000),
            "age": random.integers(0, 120, 4000),
            "smoker": random.integers(0, 2, 4000),
        }
    )
    schema.save(folder / "schema.toml")
    write_table(table, folder / "patients.csv")
    return folder


@pytest.mark.parametrize(
    ("out", "options", "walked"),
    [
        ("out", ("--delta", 1e-6), MEASURED + BECOME),
        ("pure", ("--accountant", "pure", "--delta", 0), NAMED),
        ("drawn", ("--delta", 1e-6, "--rounds", 4), DRAWN),
    ],
    ids=["default", "pure", "draws alone"],
)
def test_the_release_walks_this_way(
    files, monkeypatch, called: Called, out: str, options: tuple[object, ...], walked: list[str]
) -> None:
    """Each section is walked by the run that it speaks of."""
    command(
        monkeypatch, "release", files / "patients.csv", "--schema", files / "schema.toml",
        "--epsilon", 1, "--queries", 50, *options, "--out", files / out,
        "--quiet",
    )  # fmt: skip
    assert [name for name in walked if code_of(name) not in called.codes] == []


def test_the_answer_walks_this_way(files, monkeypatch, called: Called) -> None:
    if not (files / "out").exists():
        pytest.skip("another worker walked the release; this one has none to ask")
    command(monkeypatch, "answer", files / "out", "sex=Female & age>=50")
    assert [name for name in ASKED if code_of(name) not in called.codes] == []
    # Nothing of the private side is called: the table is not needed.
    private = [name for name in MEASURED + BECOME if name.split(".")[1] in ("rows", "engines")]
    assert len(private) > 5
    assert not [name for name in private if code_of(name) in called.codes]


def test_the_walk_is_long_enough_to_be_one() -> None:
    rooms = {name.split(".")[1] for name in STEPS}
    assert rooms >= {
        "cli", "domain", "engines", "estimator", "game", "model", "privacy", "release", "rows",
        "workloads",
    }  # fmt: skip
    assert len(STEPS) == len(set(STEPS)) > 50


def test_functions_stand_with_their_full_path() -> None:
    """A short name could not be followed, and no test would notice that it is gone."""
    short = [
        name
        for name in backticked(WALK)
        if re.fullmatch(r"\w+(\.\w+)*\(\)|[A-Z]\w+\.\w+|\w+\.\w+\.\w+", name)
        and not name.startswith("dualquery.")
    ]
    assert short == []
