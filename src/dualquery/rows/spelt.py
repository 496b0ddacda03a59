"""How the cells of a column of text may be written, for a draft. Private side: it reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dualquery.domain.spelling import PLAIN, Spelling
from dualquery.domain.types import Type

_SIGNS = ("€", "$", "£", "¥", "₹", "%", "EUR", "USD", "CHF", "GBP", "kr", "zł", "Kč", "R$", "A$")
_SEPARATORS = ((".", ","), (",", ""), (",", "."), (",", " "), (".", "'"), (".", " "))
"""What may stand before decimals and between thousands. Thousands with commas are tried first: they
fit only if each comma has three digits after it."""

_DAYS = (
    "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d/%m/%y",
    "%m/%d/%y", "%d.%m.%y", "%d-%b-%Y", "%d %b %Y", "%d%b%Y", "%b %d, %Y", "%d-%b-%y",
)  # fmt: skip
_CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
_TIMES = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M%p", "%Hh%M")
_WORDS = (
    (("ja", "j"), ("nein", "n")), (("oui", "o"), ("non", "n")), (("sí", "si", "s"), ("no", "n")),
    (("sim", "s"), ("não", "nao", "n")), (("sì", "si", "s"), ("no", "n")),
    (("ja", "j"), ("nee", "n")),
    (("ja", "j"), ("nej", "n")), (("ja", "j"), ("nei", "n")), (("tak", "t"), ("nie", "n")),
    (("ano", "a"), ("ne", "n")), (("kyllä", "k"), ("ei", "e")), (("igen", "i"), ("nem", "n")),
    (("da", "d"), ("ne", "nu", "n")), (("evet", "e"), ("hayır", "h")), (("да", "д"), ("нет", "н")),
    (("vrai",), ("faux",)), (("wahr",), ("falsch",)), (("是",), ("否",)), (("はい",), ("いいえ",)),
)  # fmt: skip
_TIME_NAME = re.compile(r"time|hour|hhmm|uhr|heure|hora|clock|zeit", re.IGNORECASE)

Way = tuple[Type, Spelling]


def ways_to_read(name: str, texts: Sequence[str]) -> Iterator[Way]:
    """Ways in which all cells of a column may be meant, the surest first.

    Args:
        name: the column's name.
        texts: its different cells, or some of them, without spaces around them.
    """
    yield from run_together(name, texts)
    for kind in (Type.DECIMAL, Type.DATE, Type.TIMESTAMP, Type.TIME):
        yield kind, PLAIN
    few = {text.casefold() for text in texts}
    if len(few) == 2:
        for yes, no in _WORDS:
            if few & set(yes) and few & set(no) and few <= {*yes, *no}:
                yield Type.YES_NO, Spelling(yes=yes, no=no)
    signs = tuple(sign for sign in _SIGNS if any(sign in text for text in texts))
    for decimal, thousands in ((".", ""), *_SEPARATORS) if signs else _SEPARATORS:
        yield Type.DECIMAL, Spelling(decimal, thousands, signs)
    for day in _DAYS:
        yield Type.DATE, Spelling(format=day)
        for clock in _CLOCKS:
            yield Type.TIMESTAMP, Spelling(format=f"{day} {clock}")
    for clock in _TIMES:
        yield Type.TIME, Spelling(format=clock)


def run_together(name: str, texts: Sequence[str]) -> Iterator[Way]:
    """The ways to read whole numbers that may be days, such as 20251231, or times, such as 0830."""
    if all(len(text) == 8 and text.isdecimal() and "1900" <= text[:4] <= "2100" for text in texts):
        yield Type.DATE, Spelling(format="%Y%m%d")
    if all(text.isdecimal() and len(text) <= 4 for text in texts) and _TIME_NAME.search(name):
        yield Type.TIME, Spelling(format="%H%M")


def month_first(way: Spelling) -> Spelling | None:
    """The same format with month and day exchanged; None if nobody would mistake them."""
    if "%d" not in way.format or "%m" not in way.format or way.format.startswith("%Y"):
        return None
    swapped = {"%d": "%m", "%m": "%d"}
    return Spelling(format=re.sub("%[dm]", lambda found: swapped[found[0]], way.format))
