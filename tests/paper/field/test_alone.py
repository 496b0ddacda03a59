"""Runs in processes of their own: what they tell, and how they end at their limits."""

from __future__ import annotations

import sys

import pytest

from dualquery.paper.field.alone import Limits, one_cell, run_alone

SMALL = Limits(seconds=1, bytes=1 << 29)


def program(body: str) -> list[str]:
    return [
        sys.executable,
        "-S",
        "-c",
        f"import json, sys\nasked = json.loads(sys.argv[1])\n{body}",
    ]


def test_what_a_run_tells_comes_back() -> None:
    body = 'print("noise")\nprint(json.dumps({"twice": 2 * asked["n"], "end": "refused: odd"}))'
    ended = run_alone(program(body), {"n": 4}, SMALL)
    assert ended.told == {"twice": 8}
    assert ended.end == "refused: odd"


@pytest.mark.parametrize(
    ("body", "end"),
    [
        ("held = bytearray(1 << 30)", "died: over 0.5 GiB"),
        ("while True: pass", "died: over 1 processor seconds"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "died: SIGSEGV"),
        ('raise ValueError("a, b\\nand c")', "died: and c"),
        ("sys.exit(3)", "died: without a word"),
    ],
)
def test_a_run_that_fails_says_how(body: str, end: str) -> None:
    ended = run_alone(program(body), {}, SMALL)
    assert ended.end == end
    assert ended.told == {}


def test_a_message_fits_into_a_cell() -> None:
    assert one_cell('one, "two"\n three') == "one; 'two' three"
    assert len(one_cell("x" * 500)) == 240
