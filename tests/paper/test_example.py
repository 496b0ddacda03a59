"""The example of README in a process of its own, where nothing else has loaded a module for it."""

from __future__ import annotations

import subprocess
import sys


def test_the_example_needs_nothing_that_others_load() -> None:
    code = (
        "import dualquery as dq\n"
        "table, schema = dq.example(200)\n"
        "assert table.num_rows == 200 and set(schema.names) <= set(table.column_names)\n"
        "assert len(dq.draft_schema(table)) > 10\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
