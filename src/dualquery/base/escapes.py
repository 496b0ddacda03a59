"""Text from outside, made harmless where it goes: a terminal, a comment, a spreadsheet."""

from __future__ import annotations

import re

# Control characters, line separators, and marks that turn the order of what is shown.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_LINE_ENDS = re.compile(r"[\n\t]")
_FORMULA = re.compile(r"[=+\-@\t\r].", re.DOTALL)  # a lone sign does nothing
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\Z", re.ASCII)


def for_terminal(text: str) -> str:
    """The text with control characters spelled out, except line ends and tabs."""
    return _CONTROL.sub(_spelled, text)


def printable(text: str) -> str:
    """The text in one line: all control characters spelled out."""
    return _LINE_ENDS.sub(_spelled, for_terminal(text))


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would take a text for a formula; a number is none."""
    return bool(_FORMULA.match(text)) and not _NUMBER.match(text)


def for_spreadsheet(text: str) -> str:
    """The text as a cell of a CSV file: an apostrophe before what would run as a formula."""
    return f"'{text}" if is_formula(text) else text


def _spelled(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
