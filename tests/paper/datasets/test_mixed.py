"""The mixed table: repeatable, of the declared sizes, with the dependence it promises."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.paper.datasets.mixed import CODES, DETERMINED, MISSING, mixed_table
from dualquery.rows.encoding import OutOfDomain


def test_the_table_is_what_it_says() -> None:
    table = mixed_table(rows=3000, seed=1)
    assert len(table.names) == 34
    assert table.codes.shape == (3000, 34)
    assert (table.codes >= 0).all()
    assert (table.codes < table.sizes).all()
    assert (table.sizes == CODES).sum() == 2
    one, other = (table.column(name) for name in DETERMINED)
    assert np.corrcoef(one, other)[0, 1] == pytest.approx(-1.0)
    for name, share in MISSING.items():
        last = table.sizes[table.names.index(name)] - 1
        assert np.mean(table.column(name) == last) == pytest.approx(share, abs=0.03)
    again = mixed_table(rows=3000, seed=1)
    np.testing.assert_array_equal(again.codes, table.codes)
    assert not np.array_equal(mixed_table(rows=3000, seed=2).codes, table.codes)


def test_a_job_reads_it_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualquery.rows.table.BLOCK_ROWS", 128)
    table = mixed_table(rows=300)
    schema = table.bind(table.schema)
    blocks = list(table.blocks(schema, [0, 33], OutOfDomain.REFUSE))
    assert [block.rows for block in blocks] == [128, 128, 44]
    joined = np.concatenate([block.codes(33) for block in blocks])
    np.testing.assert_array_equal(joined, table.codes[:, 33])
    with pytest.raises(SchemaError, match="schema of its own"):
        table.bind(Schema((Attribute.binary("a"),)))
