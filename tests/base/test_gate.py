"""The gate: what is declared is read, what does not fit its declaration is refused."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dualquery.base import gate
from dualquery.base.errors import ReleaseError
from dualquery.base.gate import Declared, Number, check_numbers, read_arrays

SIZES = {"people": 5}


def archive(**arrays: np.ndarray | bytes) -> io.BytesIO:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in arrays.items():
            content = io.BytesIO()
            if isinstance(array, bytes):
                content.write(array)
            else:
                np.lib.format.write_array(content, array)
            file.writestr(f"{name}.npy", content.getvalue())
    stream.seek(0)
    return stream


def read(stream: io.BytesIO, **declared: Declared) -> dict[str, np.ndarray]:
    return read_arrays(stream, "file", lambda names: declared, SIZES)


def test_what_is_declared_is_read_as_it_was_written() -> None:
    arrays = {
        "start": np.array([0, 2, 5]),
        "flags": np.array([True, False]),
        "matrix": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "one": np.array(3, np.int32),
        "text": np.array("seeded"),
        "none": np.zeros((0, 2)),
    }
    found = read(
        archive(**arrays),
        start=Declared("i8", ("rows+1",), rises_to="people"),
        flags=Declared("b1", ("rows",)),
        matrix=Declared("f8", ("rows", "columns"), least=0.0, most=5.0),
        one=Declared("i4 i8", least=1, below="people"),
        text=Declared("U"),
        none=Declared("f8", ("nobody", 2)),
        missing=Declared("f8", optional=True),
    )
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].flags.writeable


@pytest.mark.parametrize(
    ("array", "declared", "said"),
    [
        (np.array([0, 5]), Declared("i8", ("n",), least=0, below="people"), "0 to 5; expected 0"),
        (np.array([0, -1]), Declared("i8", ("n",), least=0, below="people"), "-1 to 0"),
        (np.array([0, 10]), Declared("i8", ("n",), least=0, below="2*people"), "expected 0 to 9"),
        (np.array([1.0, np.nan]), Declared("f8", ("n",)), "nan"),
        (np.array([1.0, np.inf]), Declared("f8", ("n",)), "inf"),
        (np.array([np.nan, 2.0]), Declared("f8", ("n",), most=1.0, unknown=True), "to 2; expected"),
        (np.array([0, 2, 1, 5]), Declared("i8", ("n",), rises_to="people"), "does not rise"),
        (np.array([0, 2, 2, 5]), Declared("i8", ("n",), rises_to="people"), "does not rise"),
        (np.array([0, 2, 4]), Declared("i8", ("n",), rises_to="people"), "does not rise"),
        (np.array([1, 2, 5]), Declared("i8", ("n",), rises_to="people"), "does not rise"),
        (np.array([0, 2**63 - 1, -(2**63), 5]), Declared("i8", ("n",), rises_to="people"), "rise"),
        (np.array([1, 2], np.int32), Declared("i8", ("n",)), "type int32; expected i8"),
        (np.array([1, 2], ">i8"), Declared("i8", ("n",)), "type >i8"),
        (np.array(["x" * 1025]), Declared("U", ("n",)), "type <U1025"),
        (np.array([2, 1], np.uint8).view(bool), Declared("b1", ("n",)), "other than yes and no"),
        (np.zeros((2, 2)), Declared("f8", ("n",)), "expected 1 lengths"),
        (np.zeros(4), Declared("f8", ("people",)), "expected 5 as its people"),
        (np.zeros(5), Declared("f8", ("people+1",)), "expected 6 as its people"),
        (np.zeros(4), Declared("f8", (3,)), "expected 3"),
        (np.zeros(0), Declared("f8", ("n+1",)), "shape"),
    ],
)
def test_what_does_not_fit_is_refused(array: np.ndarray, declared: Declared, said: str) -> None:
    with pytest.raises(ReleaseError, match=said) as refused:
        read(archive(array=array), array=declared)
    assert "\n" not in str(refused.value)


def test_arrays_must_fit_one_another() -> None:
    declared = {"one": Declared("f8", ("n",)), "other": Declared("f8", ("n",))}
    with pytest.raises(ReleaseError, match="expected 3 as its n"):
        read(archive(one=np.zeros(3), other=np.zeros(4)), **declared)
    with pytest.raises(ReleaseError, match="has no array 'other'"):
        read(archive(one=np.zeros(3)), **declared)


def test_what_nobody_declared_is_never_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    true_open = zipfile.ZipFile.open

    def watched(self, name, *more, **options):
        opened.append(getattr(name, "filename", name))
        return true_open(self, name, *more, **options)

    stream = archive(wanted=np.zeros(3), bomb=np.zeros(1 << 20), nonsense=b"no array")
    monkeypatch.setattr(zipfile.ZipFile, "open", watched)
    assert set(read(stream, wanted=Declared("f8", ("n",)))) == {"wanted"}
    assert set(opened) == {"wanted.npy"}


def test_no_memory_is_taken_before_all_headers_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second array is wrong, so not even the first is unpacked."""
    monkeypatch.setattr(gate, "_unpacked", lambda *_: pytest.fail("it was unpacked"))
    declared = {"one": Declared("f8", ("n",)), "other": Declared("f8", ("n",))}
    with pytest.raises(ReleaseError):
        read(archive(one=np.zeros(3), other=np.zeros(4)), **declared)
    monkeypatch.setattr(gate, "memory", lambda: 47)
    with pytest.raises(ReleaseError, match="declares 48 bytes, more than the memory"):
        read(archive(one=np.zeros(3), other=np.zeros(3)), **declared)


def test_a_bomb_is_refused_by_how_much_it_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "ROOM", 1 << 16)
    declared = Declared("f8", ("n",))
    with pytest.raises(ReleaseError, match="more than 128 times as many"):
        read(archive(array=np.zeros(1 << 16)), array=declared)
    assert read(archive(array=np.zeros(1 << 13)), array=declared)
    # Each has room, all together have not.
    few = {f"a{i}": np.zeros(1 << 12) for i in range(8)}
    with pytest.raises(ReleaseError, match="more than 128 times as many"):
        read(archive(**few), **dict.fromkeys(few, declared))
    noise = np.random.default_rng(1).random(1 << 16)
    assert len(read(archive(array=noise), array=declared)["array"]) == 1 << 16


def test_a_bomb_is_refused_whatever_the_archive_says_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size in which it is packed stands in the archive, where a stranger can raise it."""
    monkeypatch.setattr(gate, "ROOM", 1 << 16)
    stream = archive(array=np.zeros(1 << 16))
    content = bytearray(stream.getvalue())
    at = content.index(b"PK\x01\x02") + 20
    content[at : at + 4] = struct.pack("<I", 1 << 19)
    with pytest.raises(ReleaseError, match="more than 128 times as many"):
        read(io.BytesIO(content), array=Declared("f8", ("n",)))


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_arrays_that_would_be_unpacked_in_one_go(how: int) -> None:
    """`zipfile` asks these for a piece and takes whatever comes."""
    stream, content = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array(content, np.zeros(10))
    with zipfile.ZipFile(stream, "w", how) as file:
        file.writestr("array.npy", content.getvalue())
    with pytest.raises(ReleaseError, match="packed in a way that no release is"):
        read(stream, array=Declared("f8", ("n",)))


def test_a_description_is_not_unpacked_whatever_its_length() -> None:
    """NumPy reads as many bytes as a description claims to have, and looks at them afterwards."""
    length = 20_000_000
    claimed = b"\x93NUMPY\x02\x00" + struct.pack("<I", length) + b" " * length
    stream = archive(array=claimed)
    tracemalloc.start()
    try:
        with pytest.raises(ReleaseError, match="no array that this version reads"):
            read(stream, array=Declared("f8", ("n",)))
        assert tracemalloc.get_traced_memory()[1] < length / 20
    finally:
        tracemalloc.stop()


def test_memory_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise MemoryError("Unable to allocate")

    monkeypatch.setattr(gate, "_unpacked", none)
    with pytest.raises(ReleaseError, match="cannot read 'file': Unable to allocate"):
        read(archive(array=np.zeros(3)), array=Declared("f8", ("n",)))


def test_offsets_of_many_queries_are_no_bomb() -> None:
    """All other arrays of a workload are bounded by its offsets; those pack by far less."""
    stream = archive(start=np.arange(0, 3_000_003, 3))
    with zipfile.ZipFile(stream) as file:
        info = file.getinfo("start.npy")
    assert info.file_size < gate.FOLD / 8 * info.compress_size


def test_two_arrays_of_one_name(tmp_path: Path) -> None:
    stream = archive(array=np.zeros(3))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(stream, "a") as file:
        file.writestr("array.npy", b"")
    with pytest.raises(ReleaseError, match="two arrays of one name"):
        read(stream, array=Declared("f8", ("n",)))


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("length", [1000, 8192, 32_768, 40_000])
def test_changed_bytes_are_noticed(how: int, length: int) -> None:
    """By the archive's own sum, which is compared when the last byte is read."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how) as file:
        content = io.BytesIO()
        np.lib.format.write_array(content, np.arange(length, dtype=np.float64))
        file.writestr("array.npy", content.getvalue())
        crc = file.getinfo("array.npy").CRC
    # The sum itself is changed, in both of its places: then all else is as it was.
    forged = stream.getvalue().replace(struct.pack("<I", crc), struct.pack("<I", crc ^ 1))
    read(io.BytesIO(stream.getvalue()), array=Declared("f8", ("n",)))
    with pytest.raises(ReleaseError, match="CRC"):
        read(io.BytesIO(forged), array=Declared("f8", ("n",)))


@pytest.mark.parametrize("more", [b"\0", b"\0" * 8, b"\0" * 100_000])
def test_an_array_is_all_that_its_member_holds(more: bytes) -> None:
    """What nobody reads, nobody sums up: bytes before it could have been changed."""
    stream, content = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array(content, np.arange(1000.0))
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("array.npy", content.getvalue() + more)
    with pytest.raises(ReleaseError, match="array"):
        read(stream, array=Declared("f8", ("n",)))


@pytest.mark.parametrize("value", [None, True, "3", [], -1, 11, 2.5, float("nan"), 10**400])
def test_numbers_that_are_none(value: object) -> None:
    declared = {"steps": Number(0, 10, whole=True)}
    check_numbers({"steps": 10}, declared, "its plan")
    with pytest.raises(ReleaseError, match="its plan: expected a whole number from 0 to 10"):
        check_numbers({"steps": value}, declared, "its plan")
    if value is None:
        check_numbers({}, {"steps": Number(0, 10, optional=True)}, "its plan")
