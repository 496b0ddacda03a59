"""Runs pieces of Python, each in a fork of one process that has loaded the package.

    python -W error warm.py

Reads a line of JSON per piece, `{"code": …, "folder": …}`, and answers with one: the exit code and
what was printed. Loading the package and its kernels takes longer than most pieces do.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import traceback

SECONDS = 600
"""A piece that takes longer is ended."""


def load() -> None:
    """Import what most pieces need, and have the kernels of a small release in memory."""
    os.environ["DUALQUERY_THREADS"] = "1"  # threads would not survive a fork
    import pandas  # noqa: F401

    import dualquery as dq

    frame, schema = dq.example(rows=200)
    dq.DualQuery(epsilon=1.0, delta=1e-6, queries=100).fit(frame, schema=schema).sample(10)
    del os.environ["DUALQUERY_THREADS"]


def piece(code: str, folder: str) -> tuple[int, str]:
    """Run a piece in a fork; its exit code and its output."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            signal.alarm(SECONDS)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            os.chdir(folder)
            left = 0
            try:
                exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
            except BaseException:
                traceback.print_exc()
                left = 1
            sys.stdout.flush()
            os._exit(left)
        left = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        return left, output.read().decode(errors="replace")


def main() -> None:
    load()
    for line in sys.stdin:
        asked = json.loads(line)
        sys.stdout.write(json.dumps(piece(asked["code"], asked["folder"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
