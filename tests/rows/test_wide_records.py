"""Records of very wide tables lie in one column of codes."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.domain.schema import Schema
from dualquery.release import frames
from dualquery.release.frames import decode, records_table


def test_the_layout_follows_the_width(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.random.default_rng(0).integers(0, schema.sizes, size=(9, len(schema)))
    assert records_table(codes, schema).equals(decode(codes, schema))
    monkeypatch.setattr(frames, "WIDEST", 3)
    wide = records_table(codes, schema)
    assert wide.column_names == ["codes"]
    np.testing.assert_array_equal(np.array(wide.column("codes").to_pylist()), codes)
