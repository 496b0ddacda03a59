"""An old release stays readable: releases that earlier code wrote, kept in `data`.

The expected figures are those that the code which wrote the release printed at that time.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import dualquery as dq
from dualquery.base.errors import ReleaseError
from dualquery.privacy.statement import NOT_PRIVATE
from dualquery.release import directory, reading
from dualquery.release.refitting import refitted

DATA = Path(__file__).with_name("data")
QUERIES = ("smoker=1", "sex=female & age<30", "age>=60 & smoker=0")


@dataclass(frozen=True)
class Kept:
    """A stored release, and what was known about it when it was written."""

    name: str
    seeded: bool
    epsilon: float
    answers: tuple[float, float, float]
    first_error: float
    statement: tuple[str, ...]

    @property
    def format(self) -> int:
        return int(self.name.split("-")[1])


RECORD_STATEMENT = (
    "ε = 1 at δ = 0.0001, replace-one neighbours, gaussian accountant",
    "the same run by the other accountants: pure 5.262, advanced 4.01, per-round 3.062, "
    "zcdp 1.099 (pure holds at δ = 0)",
    "neighbours: tables of 2000 records, a public number, that differ in the content of one record",
)
MODEL_STATEMENT = (
    f"{NOT_PRIVATE} (the figures below do not hold)",
    "ε = 0.1027 at δ = 0.0001, replace-one neighbours, gaussian accountant",
    "the same run by the other accountants: pure 0.8721, advanced 0.4724, per-round 0.3608, "
    "zcdp 0.1165 (pure holds at δ = 0)",
)
TABLES_STATEMENT = (
    "ε = 1 at δ = 0.0001, replace-one neighbours, gaussian accountant",
    "the same run by the other accountants: zcdp 1.108; pure, advanced and per-round do not cover "
    "Gaussian noise",
)
MODEL_ANSWERS = (0.2237527289533337, 0.1526524603163512, 0.1842332149300865)

KEPT = (
    Kept(
        "format-1-record", False, 0.9999999995526909,
        (0.22304161905125297, 0.07535608550012483, 0.20357531125519346),
        0.3201900343509432, RECORD_STATEMENT,
    ),
    Kept(
        "format-1-model", True, 0.10264731629974082,
        MODEL_ANSWERS, 0.019441590701200058, MODEL_STATEMENT,
    ),
    Kept(
        "format-2-record", False, 0.9999999995526909,
        (0.24026544874393843, 0.13719152765089135, 0.30296979417251624),
        0.2687430911541685, RECORD_STATEMENT,
    ),
    Kept(
        "format-2-model", True, 0.10264731629974082,
        MODEL_ANSWERS, 0.019441590701200058, MODEL_STATEMENT,
    ),
    Kept(
        "format-2-tables", False, 0.9999999987546745,
        (0.23339316371311733, 0.14783300025180202, 0.24236665773787353),
        0.00182204159255286, TABLES_STATEMENT,
    ),
)  # fmt: skip


@pytest.fixture(params=KEPT, ids=lambda kept: kept.name)
def kept(request: pytest.FixtureRequest) -> Kept:
    return request.param


def unpacked(name: str, folder: Path) -> Path:
    out = folder / name
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        archive.extractall(out)
    return out


@pytest.fixture
def out(kept: Kept, tmp_path: Path) -> Path:
    return unpacked(kept.name, tmp_path)


def test_a_release_of_every_earlier_format_is_kept() -> None:
    formats = {one.format for one in KEPT}
    assert formats | {reading.FORMAT} == set(reading.READABLE)
    assert {one.name for one in KEPT} == {file.stem for file in DATA.glob("*.zip")}
    for one in KEPT:
        with zipfile.ZipFile(DATA / f"{one.name}.zip") as archive:
            assert json.loads(archive.read("release.json"))["format"] == one.format


def test_it_answers_as_when_it_was_written(kept: Kept, out: Path) -> None:
    release = dq.load(out)
    assert [release.answer(query) for query in QUERIES] == pytest.approx(kept.answers, rel=1e-9)
    assert release.answer_with_error(QUERIES[0])[1] == pytest.approx(kept.first_error, rel=1e-9)
    assert len(release.answers()) == 12
    rows = release.sample(50, seed=1)
    assert rows.column_names == ["sex", "age", "smoker"]
    assert rows.num_rows == 50


def test_it_still_says_what_it_promised(kept: Kept, out: Path) -> None:
    privacy = dq.load(out).privacy
    assert privacy.epsilon == pytest.approx(kept.epsilon, rel=1e-9)
    assert privacy.private is not kept.seeded
    lines = privacy.text().splitlines()
    assert lines[: len(kept.statement)] == list(kept.statement)


def test_its_draws_are_enough_for_another_model(kept: Kept, out: Path) -> None:
    release = refitted(dq.load(out), steps=5, errors=False)
    assert release.answers() == pytest.approx(dq.load(out).answers(), abs=0.3)
    assert release.errors is None


def test_it_can_be_written_again_in_the_current_format(kept: Kept, out: Path, tmp_path) -> None:
    release = dq.load(out)
    written = release.save(tmp_path / "again")
    content = json.loads((written / "release.json").read_text(encoding="utf-8"))
    assert content["format"] == reading.FORMAT
    again = dq.load(written)
    assert again.privacy == release.privacy
    np.testing.assert_array_equal(again.answers(), release.answers())


def test_its_statement_is_still_worked_out_again_from_its_draws(kept: Kept, out: Path) -> None:
    path = out / "release.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["privacy"]["epsilon"] /= 2
    if "digest" in content:
        content["digest"] = directory.content_digest(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ReleaseError, match="its draws cost"):
        dq.load(out)


def test_a_stamped_file_in_an_old_private_release_is_refused(tmp_path: Path) -> None:
    """Files of format 1 carry no stamps. One that does is from another release."""
    out, seeded = (unpacked(f"format-{name}", tmp_path) for name in ("1-record", "2-model"))
    (out / "model.npz").write_bytes((seeded / "model.npz").read_bytes())
    path = out / "release.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["files"]["model.npz"] = directory.digest_of_file(out / "model.npz")
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ReleaseError, match="not of one release"):
        dq.load(out)


def test_fields_that_a_reader_does_not_know_are_left_aside(kept: Kept, out: Path) -> None:
    path = out / "release.json"
    before = dq.load(out)
    content = json.loads(path.read_text(encoding="utf-8"))
    for part in (content, content["privacy"], content["parameters"]):
        part["later"] = {"more": 1}
    if "digest" in content:
        content["digest"] = directory.content_digest(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    assert dq.load(out).privacy == before.privacy


def test_a_release_is_shown_in_one_line(out: Path) -> None:
    assert repr(dq.load(out)).startswith("<Release of 12 queries on 3 attributes, ε = ")
