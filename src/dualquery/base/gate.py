"""The gate: every array that is read back from a file passes it before anything uses it.

A file may come from anywhere, and compiled code believes every index that it is given. So each
array is *declared*: its name, its type, its shape and the range of its values. The gate reads the
headers of all declared arrays first. It takes memory only if their types and shapes fit the
declaration and one another. Then it unpacks them and checks their values. An array that nobody
declared is never unpacked.

What is declared for which file stands in `game.declared`.
"""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO

import numpy as np

from dualquery.base.errors import ReleaseError
from dualquery.base.stored import Array, Document

ROOM, FOLD = 1 << 26, 128
"""Arrays of more than `ROOM` bytes together may be `FOLD` times as large as their file. Offsets
pack to a quarter, and all other sizes are bounded by theirs. A bomb packs a thousandfold."""

HEADER = 12 + 10_000
"""The most bytes in which an array describes itself: NumPy reads no longer descriptions, but only
after it has unpacked them."""

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How arrays are packed: other ways unpack as much as they please at a time."""

MOST_TEXT = 1024
"""The most characters of a text."""

EXACT = 2.0**53
"""Whole numbers up to here are exact as floating-point numbers, too."""

_PIECE = 1 << 18

Size = int | str
"""A length of an array: a number; the name of a size; or `NAME+1`, one more than that."""


@dataclass(frozen=True)
class Declared:
    """What an array must be.

    Attributes:
        types: its type, or several, as NumPy writes them without the order of bytes: `i4 i8`.
            `U` is text of any length up to `MOST_TEXT`.
        shape: its lengths. A name that has no size yet gets it from the first array that has it.
        least: no value is below it.
        most: no value is above it.
        below: the name of a size that all values are below, or `2*NAME`; it stands for `most`.
        rises_to: the name of a size. The values begin at 0, rise, and end there, as offsets do.
        unknown: whether values may be missing (NaN).
        optional: whether a file may do without the array.
    """

    types: str
    shape: tuple[Size, ...] = ()
    least: float = -EXACT
    most: float = EXACT
    below: str | None = None
    rises_to: str | None = None
    unknown: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Number:
    """What a number in a description must be.

    Attributes:
        least: it is not below.
        most: it is not above.
        whole: whether it has no fraction.
        optional: whether it may be null, or not there.
    """

    least: float
    most: float
    whole: bool = False
    optional: bool = False


Declaring = Callable[[Collection[str]], Mapping[str, Declared]]
"""What is declared for a file that has arrays of these names."""


@dataclass(frozen=True)
class _Header:
    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    fortran: bool
    begins: int

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_arrays(
    source: Path | IO[bytes], name: str, declaring: Declaring, sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The declared arrays of an `.npz` file, checked; everything else in it is left packed.

    Args:
        source: the file.
        name: what messages call it.
        declaring: what is declared, given the names in the file.
        sizes: what is known of sizes beforehand.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            members = {i.filename.removesuffix(".npy"): i for i in archive.infolist()}
            if len(members) < len(archive.infolist()):
                raise ReleaseError(f"{name!r} has two arrays of one name")
            declared = declaring(members)
            headers = {
                one: _header(archive, members[one], f"{name!r}: {one}")
                for one in declared
                if one in members
            }
            found = dict(sizes)
            for one, what in declared.items():
                if one not in headers and not what.optional:
                    raise ReleaseError(f"{name!r} has no array {one!r}")
                if one in headers:
                    _check_header(headers[one], what, found, f"{name!r}: {one}")
            _check_total(archive, sum(header.bytes for header in headers.values()), name)
            arrays = {}
            for one, header in headers.items():
                arrays[one] = _unpacked(archive, header)
                _check_values(arrays[one], declared[one], found, f"{name!r}: {one}")
            return arrays
    except (
        zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, struct.error,
        MemoryError,
    ) as error:  # fmt: skip
        raise ReleaseError(f"cannot read {name!r}: {error}") from None


def check_numbers(content: Document, declared: Mapping[str, Number], name: str) -> None:
    """Refuse a description whose numbers are not what they are declared to be."""
    for key, what in declared.items():
        value = content.get(key)
        if value is None and what.optional:
            continue
        kinds = int if what.whole else (int, float)
        if (
            not isinstance(value, kinds)
            or isinstance(value, bool)
            or not what.least <= value <= what.most
        ):
            noun = "a whole number" if what.whole else "a number"
            raise ReleaseError(
                f"{name}: expected {noun} from {what.least:g} to {what.most:g} as {key}"
            )


def memory() -> int:
    """Bytes of memory of this machine; sixteen gigabytes if the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 34


def _check_total(archive: zipfile.ZipFile, total: int, name: str) -> None:
    """Refuse a file that unpacks to more than there is memory, or than its own size can hold.

    What the archive says of packed sizes is not believed: several arrays may share their bytes.
    """
    size = 0 if archive.fp is None else archive.fp.seek(0, os.SEEK_END)
    if total > memory():
        raise ReleaseError(f"{name!r} declares {total:,} bytes, more than the memory here")
    if total > ROOM and total > FOLD * size:
        raise ReleaseError(
            f"{name!r} declares {total:,} bytes in {size:,}: more than {FOLD} times as many"
        )


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> _Header:
    """What an array says of itself, if that is what the archive says of it."""
    if info.compress_type not in PACKED:
        raise ReleaseError(f"{name} is packed in a way that no release is")
    with archive.open(info) as packed:
        member = io.BytesIO(packed.read(HEADER))
        try:
            version = np.lib.format.read_magic(member)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, fortran, dtype = read(member)
        except (ValueError, KeyError, TypeError, SyntaxError, TokenError):
            raise ReleaseError(f"{name} is no array that this version reads") from None
        header = _Header(info, shape, dtype, fortran, member.tell())
    if (
        dtype.hasobject
        or min(shape, default=0) < 0
        or header.begins + header.bytes != info.file_size
    ):
        raise ReleaseError(f"{name} declares {shape} of {dtype}, which is not what it unpacks to")
    return header


def _check_header(header: _Header, what: Declared, sizes: dict[str, int], name: str) -> None:
    """Refuse a type or a shape that is not the declared one; learn the sizes that it tells."""
    text = header.dtype.kind == "U" and header.dtype.itemsize <= 4 * MOST_TEXT
    kind = "U" if text else header.dtype.str[1:]
    if kind not in what.types.split() or not header.dtype.isnative:
        raise ReleaseError(f"{name} is of type {header.dtype}; expected {what.types}")
    if len(header.shape) != len(what.shape):
        raise ReleaseError(f"{name} has shape {header.shape}; expected {len(what.shape)} lengths")
    for length, size in zip(header.shape, what.shape, strict=True):
        wanted: Size = size
        if isinstance(size, str):
            more = int(size.endswith("+1"))
            wanted = sizes.setdefault(size.removesuffix("+1"), max(0, length - more)) + more
        if length != wanted:
            raise ReleaseError(f"{name} has shape {header.shape}; expected {wanted} as its {size}")


def _unpacked(archive: zipfile.ZipFile, header: _Header) -> Array:
    """The array itself. The archive's own check of its bytes comes with the last of them."""
    array = np.empty(math.prod(header.shape), header.dtype)
    rest = array.view(np.uint8).data if array.size else memoryview(b"")
    with archive.open(header.info) as member:
        member.read(header.begins)
        while rest:
            piece = member.read(min(len(rest), _PIECE))
            if not piece:
                raise EOFError("an array ends early")
            rest[: len(piece)] = piece
            rest = rest[len(piece) :]
    return array.reshape(header.shape, order="F" if header.fortran else "C")


def _check_values(array: Array, what: Declared, sizes: Mapping[str, int], name: str) -> None:
    """Refuse a value outside of the declared range."""
    if array.dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
        raise ReleaseError(f"{name} holds something other than yes and no")
    if not array.size or array.dtype.kind in "bU":
        return
    if what.rises_to is not None:
        end = sizes[what.rises_to]
        # Differences may wrap around, so neighbours are compared.
        if array[0] != 0 or array[-1] != end or not (array[1:] > array[:-1]).all():
            raise ReleaseError(f"{name} does not rise from 0 to {end:,}")
        return
    most = what.most
    if what.below is not None:
        twice = what.below.startswith("2*")
        most = sizes[what.below.removeprefix("2*")] * (1 + twice) - 1
    lowest, highest = array.min(), array.max()
    if what.unknown and lowest != lowest:
        known = array[~np.isnan(array)]
        lowest, highest = known.min(initial=most), known.max(initial=what.least)
    if not (lowest >= what.least and highest <= most):  # NaN compares as neither
        raise ReleaseError(
            f"{name} holds values from {lowest:g} to {highest:g}; expected {what.least:g} to "
            f"{most:g}"
        )
