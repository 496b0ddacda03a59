"""A stranger's release is refused before compiled code sees it, each array for what it holds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dualquery as dq
from dualquery.base.errors import ParameterError, ReleaseError, SchemaError
from dualquery.game.declared import check_measured
from dualquery.model.totals import read_totals
from dualquery.release.arrays import write_arrays
from dualquery.release.reading import read_asked
from tests.release.fuzzing import KEPT, resealed, unpacked
from tests.release.page.releases import hostile_schema, made_release, with_forest

RECORD, MODEL, TABLES = KEPT[:3]
FOREST = "forest"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("kept")
    forest = with_forest(made_release(hostile_schema(), 30), 3).save(folder / FOREST)
    return {FOREST: forest, **{name: unpacked(name, folder) for name in KEPT}}


def changed(folder: Path, out: Path, file: str, **arrays) -> Path:
    """A copy with other arrays, and digests that fit them; a function is given the old array."""
    shutil.copytree(folder, out)
    with np.load(out / file) as stored:
        found = dict(stored)
    for name, array in arrays.items():
        found[name] = array(found[name].copy()) if callable(array) else array
    write_arrays(out / file, found)
    resealed(out)
    return out


def last(value):
    """The array with another last value."""

    def change(array):
        array.reshape(-1)[-1] = value
        return array

    return change


FORGED = {
    "attributes": (RECORD, "workload.npz", {"attribute": last(10**6)}, "attribute holds"),
    "attributes from the end": (RECORD, "workload.npz", {"attribute": last(-1)}, "attribute holds"),
    "codes": (RECORD, "workload.npz", {"codes": last(10**6)}, "codes holds"),
    "codes of the next": (RECORD, "workload.npz", {"codes": last(2)}, "codes that their"),
    "codes twice": (RECORD, "workload.npz", {
        "codes": lambda a: np.append(a, a[-1]),
        "literal_start": lambda a: np.append(a[:-1], a[-1] + 1)}, "do not rise"),
    "terms": (RECORD, "workload.npz", {"terms": last(10**6)}, "terms holds"),
    "offsets": (RECORD, "workload.npz", {"start": last(10**9)}, "start does not rise"),
    "offsets of literals": (RECORD, "workload.npz", {"literal_start": last(10**9)}, "not rise"),
    "asked": (RECORD, "workload.npz", {"asked": last(10**6)}, "more queries than"),
    "prior": (RECORD, "workload.npz", {"offsets": last(np.nan)}, "offsets holds"),
    "draws": (RECORD, "transcript.npz", {"queries": last(10**9)}, "queries holds"),
    "draws of others": (RECORD, "transcript.npz", {"draw_counts": last(10**9)}, "of its round"),
    "records": (RECORD, "transcript.npz", {"move_record": last(10**6)}, "move_record holds"),
    "records of others": (RECORD, "transcript.npz", {"move_record": last(2)}, "its records have"),
    "logits": (MODEL, "transcript.npz", {"move_logits": last(np.inf)}, "move_logits holds"),
    "weights": (MODEL, "model.npz", {"weights": last(-1e308)}, "weights holds"),
    "weights above one": (MODEL, "model.npz", {"weights": lambda a: 0 * a + 0.9}, "not add up"),
    "tables": (MODEL, "model.npz", {"tables": last(np.nan)}, "tables holds"),
    "tables above one": (MODEL, "model.npz", {"tables": last(0.999)}, "not add up"),
    "errors": (MODEL, "model.npz", {"error_scale": lambda a: a[:, :-1]}, "error_scale has shape"),
    "parents": (FOREST, "model.npz", {"parent": last(7)}, "parent holds"),
    "parents from the end": (FOREST, "model.npz", {"parent": last(-2)}, "parent holds"),
    "parents of themselves": (FOREST, "model.npz", {"parent": lambda a: np.arange(7)}, "circle"),
    "groups of edges": (FOREST, "model.npz", {"group_of_code": last(10**6)}, "group_of_code holds"),
    "groups without codes": (FOREST, "model.npz", {"group_sizes": last(3)}, "none of their codes"),
    "ties": (FOREST, "model.npz", {"ties": last(np.nan)}, "ties holds"),
    "ties that overflow": (FOREST, "model.npz", {"ties": last(1e308)}, "ties holds"),
    "ties of other edges": (FOREST, "model.npz", {"ties": lambda a: a[:, :-1]}, "ties, expected"),
    "fits": (FOREST, "model.npz", {"fit": last(2)}, "fit holds"),
    "fits from the end": (FOREST, "model.npz", {"fit": last(-1)}, "fit holds"),
    "groups": (TABLES, "transcript.npz", {"measured_1_of_code": last(10**6)}, "groups of its"),
    "cells": (TABLES, "transcript.npz", {"measured_1_counts": lambda a: a[:-1]}, "cells, but"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_values_that_no_release_has(name: str, kept: dict[str, Path], tmp_path: Path) -> None:
    which, file, arrays, said = FORGED[name]
    out = changed(kept[which], tmp_path / "out", file, **arrays)
    for reader in (dq.load, read_asked):
        with pytest.raises(ReleaseError, match=said) as refused:
            reader(out)
        assert str(out) in str(refused.value)
        assert "\n" not in str(refused.value)


def test_cells_that_wrap_around_are_not_believed() -> None:
    """Four attributes of 2¹⁶ groups have 2⁶⁴ cells: as whole numbers, none."""
    size, attributes = 1 << 16, 4
    arrays = {
        "attributes": np.arange(attributes, dtype=np.int32)[None],
        "code_start": np.arange(attributes + 1) * size,
        "of_code": np.tile(np.arange(size, dtype=np.int32), attributes),
        "sizes": np.full(attributes, size, np.int32),
        "counts": np.zeros(0, np.int64),
    }
    with pytest.raises(ReleaseError, match=r"1\.84467e\+19 cells"):
        check_measured(arrays)


@pytest.mark.parametrize(
    "of_code",
    [[0, 1, 2, 0, 1], [0, 0, 0, 0, 1], [0, 1, 1, 1, 2]],
    ids=["a group of the next attribute", "a group without codes", "both"],
)
def test_groups_that_are_no_partition(of_code: list[int]) -> None:
    """A cell would be counted twice, or belong to two attributes: then its price is another."""
    arrays = {
        "attributes": np.array([[0, 1]], dtype=np.int32),
        "code_start": np.array([0, 3, 5]),
        "of_code": np.array([0, 1, 1, 0, 1], dtype=np.int32),
        "sizes": np.array([2, 2], dtype=np.int32),
        "counts": np.zeros(4, np.int64),
    }
    check_measured(arrays)
    with pytest.raises(ReleaseError, match="groups of its tables are none of their codes"):
        check_measured(arrays | {"of_code": np.array(of_code, dtype=np.int32)})


@pytest.mark.parametrize(
    "known",
    [{"attribute": 10**6}, {"attribute": -1}, {"codes": [2]}, {"codes": [-1]}, {"codes": [True]},
     {"codes": [0.5]}, {"share": 1.5}, {"share": float("nan")}, {"share": None}],
)  # fmt: skip
def test_known_shares_of_codes_that_there_are_not(
    known: dict[str, object], kept: dict[str, Path], tmp_path: Path
) -> None:
    out = Path(shutil.copytree(kept[MODEL], tmp_path / "out"))
    content = json.loads((out / "release.json").read_text("utf-8"))
    right = {"attribute": 0, "codes": [0], "share": 0.5, "text": "a = 0.5"}
    for total, refused in ((right, False), ({**right, **known}, True)):
        content["parameters"]["known"] = [total]
        (out / "release.json").write_text(json.dumps(content), "utf-8")
        resealed(out)
        if refused:
            with pytest.raises(ReleaseError, match="a known share: expected"):
                dq.load(out)
        else:
            dq.load(out)


def test_a_large_array_that_nobody_asked_for_takes_no_memory(
    kept: dict[str, Path], tmp_path: Path
) -> None:
    out = changed(kept[MODEL], tmp_path / "out", "model.npz", bomb=np.zeros(1 << 27, np.uint8))
    code = (
        "import resource, sys, dualquery as dq\n"
        "dq.load(sys.argv[1]).answer('smoker=1')\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    taken = [
        int(subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True,
                           check=True).stdout)
        for folder in (kept[MODEL], out)
    ]  # fmt: skip
    assert taken[1] < taken[0] + (1 << 15), taken


@pytest.mark.parametrize(
    "value", [float("inf"), float("-inf"), float("nan"), 1e308, -1e308, 10**400, "x", True, [], {}]
)
@pytest.mark.parametrize(
    ("which", "name"), [(RECORD, "value"), (RECORD, "bound"), (MODEL, "log_likelihood")]
)
def test_figures_of_a_round_that_no_game_has(
    which: str, name: str, value: object, kept: dict[str, Path], tmp_path: Path
) -> None:
    """The page draws them."""
    out = Path(shutil.copytree(kept[which], tmp_path / "out"))
    content = json.loads((out / "release.json").read_text("utf-8"))
    content["rounds"][0][name] = value
    (out / "release.json").write_text(json.dumps(content), "utf-8")
    resealed(out)
    with pytest.raises(ReleaseError, match=rf"{name} of a round is") as refused:
        dq.load(out)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [("components", 10**9), ("final_steps", 10**12), ("rate", "x"), ("seed", None)],
)
def test_training_that_would_never_end(key, value, kept: dict[str, Path], tmp_path: Path) -> None:
    out = Path(shutil.copytree(kept[MODEL], tmp_path / "out"))
    content = json.loads((out / "release.json").read_text("utf-8"))
    content["parameters"]["training"][key] = value
    (out / "release.json").write_text(json.dumps(content), "utf-8")
    resealed(out)
    with pytest.raises(ReleaseError, match=f"its training: expected .* as {key}"):
        dq.load(out)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("s.toml", '[binary_columns]\nprefix = "x"\ncount = 1000000000000\n', "1 to 2,000,000"),
        ("s.toml", "a = " + "[" * 50_000, "nested too deeply"),
        ("s.toml", f"a = {'9' * 5000}", "s.toml"),
        ("s.json", "[" * 200_000, "nested too deeply"),
        ("s.json", '{"a": 1000000000000}', "1 to 2,000,000"),
        ("s.json", '{"a": 2000000, "b": 2000000}', "'b': size 2000000; .* for all attributes"),
        ("s.toml", f"[attributes.a]\nedges = [0, 1, 1{'0' * 400}]\n", "an edge is not finite"),
        ("s.toml", "attributes = 3\n", r"expected a table \[attributes.NAME\]"),
        ("s.toml", "[binary_columns]\npattern = 3\n", "pattern = 3; expected text"),
    ],
)
def test_schemas_that_would_take_all_memory(name, text, said, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(SchemaError, match=said) as refused:
        dq.Schema.load(tmp_path / name)
    assert "\n" not in str(refused.value)
    done = subprocess.run(
        [sys.executable, "-m", "dualquery", "plan", "--schema", str(tmp_path / name),
         "--rows", "100", "--epsilon", "1", "--delta", "1e-6"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def test_rules_that_would_take_all_memory() -> None:
    columns = {f"a{i}": {"edges": list(range(1500))} for i in range(5)}
    rule = {"order": list(columns)}
    with pytest.raises(SchemaError, match="the order rules compare"):
        dq.Schema.from_dict({"attributes": columns, "constraints": [rule]})
    two = {"attributes": columns, "constraints": [{"order": ["a0", "a1"]}]}
    assert len(dq.Schema.from_dict(two)) == 5


def test_a_schema_declares_no_more_columns_than_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualquery.domain.schema.MOST_DECLARED", 100)
    declared = {"binary_columns": {"prefix": "x", "count": 100}}
    assert len(dq.Schema.from_dict(declared)) == 100
    declared["binary_columns"]["count"] = 101
    with pytest.raises(SchemaError, match="1 to 100"):
        dq.Schema.from_dict(declared)


def test_known_shares_that_are_no_text(kept: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "known.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ParameterError, match="is not UTF-8 text"):
        read_totals(tmp_path / "known.txt", dq.load(kept[RECORD]).schema)
