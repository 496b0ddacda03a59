"""Arrays of a release: every kind is read back, and noise is not compressed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from dualquery.base.gate import Declared, read_arrays
from dualquery.release.arrays import LARGE, write_arrays


def test_arrays_are_read_back_and_only_noise_is_stored_as_it_is(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    arrays = {
        "fitted": random.standard_normal(LARGE // 8),
        "few": random.standard_normal(3),
        "counts": np.arange(LARGE),
        "flag": np.array(True),
        "text": np.array("seeded"),
        "matrix": np.asfortranarray(random.standard_normal((4, 5))),
    }
    for name in ("one.npz", "other.npz"):
        write_arrays(tmp_path / name, arrays)
    declared = {
        name: Declared("f8 i8 b1 U", tuple(f"{name} {n}" for n in range(array.ndim)))
        for name, array in arrays.items()
    }
    found = read_arrays(tmp_path / "one.npz", "one.npz", lambda names: declared, {})
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.npz") as archive:
        plain = [e.filename for e in archive.infolist() if e.compress_type == zipfile.ZIP_STORED]
    assert plain == ["fitted.npy"]
