"""The example of README runs where nothing else has loaded a module for it."""

from __future__ import annotations

from pathlib import Path

import dualquery as dq

SOURCE = Path(dq.__file__).parent


def test_the_example() -> None:
    table, schema = dq.example(200)
    assert table.num_rows == 200
    assert set(schema.names) <= set(table.column_names)


def test_arrows_functions_are_imported_where_they_are_used() -> None:
    """`pa.compute` exists only when somebody has imported `pyarrow.compute` before."""
    used = [path.name for path in SOURCE.rglob("*.py") if "pa.compute." in path.read_text("utf-8")]
    assert used == []
