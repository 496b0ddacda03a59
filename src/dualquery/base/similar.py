"""Words for messages: cut short, and compared with what may have been meant."""

from __future__ import annotations

from collections.abc import Sequence

MOST_COMPARED = 5_000
"""With more known words than this, no similar one is looked for."""


def brief(text: str) -> str:
    """A text of at most 80 characters."""
    return text if len(text) <= 80 else f"{text[:79]}…"


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """`; did you mean …?` if one of the known words is much like this one, else nothing."""
    if len(known) > MOST_COMPARED or len(word) > 200:
        return ""
    from difflib import get_close_matches

    plain = " ".join(word.split()).casefold()
    same = [one for one in known if " ".join(one.split()).casefold() == plain]
    close = same or get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {brief(repr(close[0]))}?" if close else ""
