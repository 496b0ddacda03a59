"""What a method may take before it says that it cannot serve a table."""

from __future__ import annotations

from dualquery.base.errors import ParameterError

CODES = 4 * 2**30
"""Bytes that the codes of all rows may take."""


def require_codes(method: str, columns: int, rows: int) -> None:
    """Refuse a table whose codes would not fit, at one byte per cell.

    Args:
        method: what holds them.
        columns: how many columns it reads.
        rows: the public number of rows.
    """
    if columns * rows > CODES:
        raise ParameterError(
            f"{method} holds {columns} columns of {rows} rows, {columns * rows} bytes or more, "
            f"over its limit of {CODES} bytes; ask for fewer columns"
        )
