"""A release is believed only if its figures follow from its draws, and unpacked only if it fits."""

from __future__ import annotations

import io
import json
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import dualquery as dq
from dualquery.base import gate
from dualquery.base.errors import ReleaseError
from dualquery.domain.schema import Schema
from dualquery.release import directory, stamps, verifying


@pytest.fixture(scope="module", params=["replace-one", "add-remove", "seeded"])
def kept(request, tmp_path_factory, schema: Schema, rows: pa.Table) -> Path:
    more = {"neighbours": "add-remove", "rows": 900} if request.param == "add-remove" else {}
    job = dq.DualQuery(
        epsilon=1.0, delta=1e-3, queries=60, player="record", refit=False,
        seed=1 if request.param == "seeded" else None, **more,
    )  # fmt: skip
    return job.fit(rows, schema=schema).save(tmp_path_factory.mktemp("kept") / "out")


@pytest.fixture
def out(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "out"))


def edit(out: Path, change, *, sealed: bool = True) -> None:
    """Change `release.json`, and its digest with it."""
    content = json.loads((out / "release.json").read_text())
    change(content)
    if sealed and "digest" in content:
        content["digest"] = verifying.content_digest(content)
    (out / "release.json").write_text(json.dumps(content))


def test_it_is_believed_as_it_is(out: Path) -> None:
    dq.load(out)
    edit(out, lambda content: None)  # other white space says the same
    dq.load(out)


def test_every_change_of_the_description_is_noticed(out: Path) -> None:
    for change in (
        lambda content: content["privacy"].update(epsilon=0.001),
        lambda content: content["parameters"].update(epsilon=0.001),
        lambda content: content.update(source="model"),
        lambda content: content["schema"].clear(),
        lambda content: content.update(digest=""),
    ):
        before = (out / "release.json").read_bytes()
        edit(out, change, sealed=False)
        with pytest.raises(ReleaseError, match=r"release\.json' was changed"):
            dq.load(out)
        (out / "release.json").write_bytes(before)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("epsilon", 0.001, "its statement says ε = 0.001, its draws cost"),
        ("epsilon", None, "its statement says ε = inf"),
        ("mu", 0.01, "says μ"),
        ("rho", 0.01, "says ρ"),
        ("delta", 1e-9, "delta"),
        ("rows", 100_000, "table_size"),
        ("accountant", "zcdp", "accountant"),
        ("private", "turned", "stamp"),
        ("stamp", "all is well", "stamp"),
    ],
)
def test_a_statement_that_the_draws_do_not_bear_out(out: Path, name: str, value, said: str) -> None:
    def change(content) -> None:
        stated = content["privacy"]
        stated[name] = not stated[name] if value == "turned" else value

    edit(out, change)
    with pytest.raises(ReleaseError, match=said) as error:
        dq.load(out)
    assert str(out) in str(error.value)
    assert "\n" not in str(error.value)


def test_figures_beside_the_main_one_are_checked_too(out: Path) -> None:
    edit(out, lambda content: content["privacy"]["by_accountant"].update(pure=0.1))
    with pytest.raises(ReleaseError, match=r"ε by the pure accountant = 0\.1, its draws cost"):
        dq.load(out)


@pytest.mark.parametrize("figures", ["by_accountant", "replacement"])
def test_a_statement_that_leaves_out_its_own_accountant(
    tmp_path: Path, schema: Schema, rows: pa.Table, figures: str
) -> None:
    job = dq.DualQuery(2.0, 1e-3, neighbours="add-remove", rows=1000, queries=20, rounds=2,
                       samples=5, eta=3.0, player="record", refit=False)  # fmt: skip
    out = job.fit(rows, schema=schema).save(tmp_path / "out")
    edit(out, lambda content: content["privacy"][figures].pop("pure"))
    dq.load(out)  # of another accountant, which may be newer than the release
    edit(out, lambda content: content["privacy"][figures].pop("gaussian"))
    with pytest.raises(ReleaseError, match="what it costs by its own accountant"):
        dq.load(out)


def test_fewer_rounds_than_were_drawn(out: Path) -> None:
    edit(out, lambda content: content["rounds"].pop())
    with pytest.raises(ReleaseError, match=r"temperatures has shape .* as its rounds"):
        dq.load(out)


def replace_array(out: Path, file: str, content: bytes) -> None:
    (out / file).write_bytes(content)
    digest = directory.digest_of_file(out / file)
    edit(out, lambda described: described["files"].update({file: digest}))


def test_the_first_format_has_no_digest_and_is_still_read(out: Path) -> None:
    def older(content) -> None:
        content["format"] = 1
        del content["digest"]

    edit(out, older)
    dq.load(out)
    edit(out, lambda content: content["privacy"].update(epsilon=0.001))
    with pytest.raises(ReleaseError, match="its draws cost"):
        dq.load(out)


def npy(shape: tuple[int, ...], data: bytes, dtype: str = "<i8") -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return stream.getvalue() + data


def archive(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return stream.getvalue()


@pytest.mark.parametrize(
    "member",
    [
        npy((10**15,), b""),  # a head that asks for a petabyte
        npy((4,), bytes(64)),  # more than its shape
        npy((2**62, 2**62), b""),
        npy((-1,), bytes(8)),
        npy((1,), bytes(8), "|O"),
        b"",
        b"not an array",
        b"\x93NUMPY\x09\x00" + struct.pack("<H", 2) + b"{}",
    ],
)
@pytest.mark.parametrize("file", ["transcript.npz", "workload.npz"])
def test_bombs_and_nonsense_are_refused_before_they_are_unpacked(
    out: Path, monkeypatch: pytest.MonkeyPatch, member: bytes, file: str
) -> None:
    unpacked = gate._unpacked

    def of_another(archive, header):
        assert Path(archive.filename).name != file, "it was unpacked"
        return unpacked(archive, header)

    with np.load(out / file) as stored:
        first = next(name for name in stored if name != "stamp")
    replace_array(out, file, archive(**{first: member}))
    monkeypatch.setattr(gate, "_unpacked", of_another)
    monkeypatch.setattr(stamps, "check_stamps", lambda *_, **__: None)
    with pytest.raises(ReleaseError):
        dq.load(out)


def test_more_than_the_memory(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "memory", lambda: 100)
    with pytest.raises(ReleaseError, match=r"declares .* bytes, more than the memory"):
        dq.load(out)


@pytest.mark.parametrize("text", ["[]", "7", "null", "{}", "[" * 99999, '{"format": []}'])
def test_a_description_that_is_something_else(out: Path, text: str) -> None:
    (out / "release.json").write_text(text)
    with pytest.raises(ReleaseError):
        dq.load(out)


def test_files_outside_of_the_directory_are_not_looked_at(out: Path) -> None:
    edit(out, lambda content: content["files"].update({"../secret": "0"}))
    with pytest.raises(ReleaseError, match="which no release has"):
        dq.load(out)


@pytest.mark.parametrize(
    "kind", [pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowCapacityError, MemoryError]
)
def test_records_that_arrow_cannot_describe(
    out: Path, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flipped bit makes integers of a hundred bits, which are an error of another kind."""

    def refused(path: Path) -> None:
        raise kind("Integers with more than 64 bits\nnot implemented")

    monkeypatch.setattr(parquet, "read_metadata", refused)
    with pytest.raises(ReleaseError, match=r"records\.parquet': Integers with .* not impl") as said:
        dq.load(out)
    assert "\n" not in str(said.value)


def test_records_are_bounded_before_anyone_unpacks_them(out: Path) -> None:
    """A column of one value packs to nothing: few bytes can declare very many records."""
    honest = parquet.read_table(out / "records.parquet")
    many = {name: pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**6, np.int8)), [0])
            for name in honest.column_names}  # fmt: skip
    for forged, said in (
        (pa.table(many), "declares 1,000,000 records; expected at most"),
        (honest.append_column("more", honest.column(0)), "other columns"),
        (honest.replace_schema_metadata({"long": "x" * (1 << 22)}), "a description of"),
    ):
        stamp = honest.schema.metadata or {}
        kept = {**stamp, **(forged.schema.metadata or {})}
        stream = io.BytesIO()
        parquet.write_table(forged.replace_schema_metadata(kept), stream)
        assert len(stream.getvalue()) < 1 << 24
        replace_array(out, "records.parquet", stream.getvalue())
        with pytest.raises(ReleaseError, match=said) as refused:
            dq.load(out)
        assert "\n" not in str(refused.value)
    for nonsense in (b"", b"PAR1", b"PAR1" + bytes(4) + b"PAR1", b"PAR1\xff\xff\xff\x7fPAR1"):
        replace_array(out, "records.parquet", nonsense)
        with pytest.raises(ReleaseError):
            dq.load(out)
