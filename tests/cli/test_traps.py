"""From messy files to releases: draft, at most five edited lines, check, release."""

from __future__ import annotations

import numpy as np
import pytest

import dualquery as dq
from tests.traps import DRAFTED, ROWS, TRAPS


@pytest.mark.parametrize("name", TRAPS)
def test_a_messy_table_is_released_after_five_edits(name: str, run, tmp_path) -> None:
    trap = TRAPS[name]
    table, file = trap.write(tmp_path, np.random.default_rng(5)), tmp_path / "schema.toml"
    done = run("schema", table, "-o", file, *trap.reads)
    assert done.code == 0, done.err
    text = file.read_text()
    trap.looks(dq.Schema.load(file), text)
    edits = [(DRAFTED, ""), *trap.edits]
    assert len(edits) <= 5
    for before, after in edits:
        assert before in text
        text = text.replace(before, after)
    file.write_text(text)
    clamp = [str(one) for one in trap.options if one in ("--out-of-domain", "clamp")]
    checked = run("check", table, "--schema", file, *trap.reads, *clamp)
    assert checked.code == 0, checked.out
    assert f"{ROWS} rows" in checked.out
    done = run(
        "release", table, "--schema", file, "--epsilon", 30, "--delta", 1e-5, "--marginals", 1,
        "--no-errors", "--quiet", "--out", tmp_path / "out", *trap.reads, *trap.options,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert dq.load(tmp_path / "out").sample(10).num_rows == 10


def test_who_has_several_rows_is_asked_about(run, tmp_path) -> None:
    trap = TRAPS["visits of patients"]
    table, file = trap.write(tmp_path, np.random.default_rng(5)), tmp_path / "schema.toml"
    assert run("schema", table, "-o", file).code == 0
    file.write_text(file.read_text().replace(DRAFTED, ""))
    assert 'persons = "patient"' in file.read_text()
    done = run(
        "release", table, "--schema", file, "--epsilon", 30, "--delta", 1e-5, "--marginals", 1,
        "--no-errors", "--quiet", "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.code == 0
    assert "warning: the schema says that 'patient' tells persons apart" in done.err
    assert "patient" not in (tmp_path / "out" / "release.json").read_text()
