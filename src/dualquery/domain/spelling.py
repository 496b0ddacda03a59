"""How the cells of a column are written, where that is not the package's own way.

`decimal = ","` reads 3,5. `format = "%d/%m/%Y"` reads 31/12/2025. What is declared decides about
each cell by itself, so a cell means the same whatever the rest of the table holds. Schemas, queries
and samples write numbers and dates in the package's own way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from dualquery.base.errors import SchemaError
from dualquery.base.stored import Document, Json
from dualquery.domain.types import Number, Type, number_of, text_of

KEYS = ("decimal", "thousands", "signs", "format", "yes", "no")
"""What a schema file may say of it."""

_BLANKS = str.maketrans(dict.fromkeys("\u00a0\u202f\u2009", " ") | {"−": "-", "’": "'"})
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_FIELDS = {
    "%Y": r"(?P<Y>\d{4})", "%y": r"(?P<y>\d{2})", "%m": r"(?P<m>\d{1,2})", "%d": r"(?P<d>\d{1,2})",
    "%b": r"(?P<b>[A-Za-z]{3,9})\.?", "%H": r"(?P<H>\d{1,2})", "%I": r"(?P<I>\d{1,2})",
    "%M": r"(?P<M>\d{2})", "%S": r"(?P<S>\d{2})", "%p": r"(?P<p>[AaPp])\.?[Mm]\.?",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spelling:
    """How cells that are text are written.

    Attributes:
        decimal: what stands before the decimals.
        thousands: what stands between groups of three digits; they may also be left out.
        signs: what may stand before or after a number, such as "€" or "%".
        format: of dates and times: %d, %m, %b (Jan), %Y, %y, %H, %I with %p, %M, %S.
        yes: words for yes, beside the usual ones.
        no: words for no.
    """

    decimal: str = "."
    thousands: str = ""
    signs: tuple[str, ...] = ()
    format: str = ""
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()

    @classmethod
    def read(cls, name: str, kind: Type, entry: Document) -> Spelling:
        """What one `[attributes.NAME]` table of a schema file says.

        Args:
            name: of the attribute.
            kind: what its cells are read as.
            entry: the table.
        """
        said: dict[str, Any] = {key: entry[key] for key in KEYS if key in entry}
        if not said:
            return PLAIN
        for key, found in said.items():
            fit = _FITS[key]
            listed = [found] if isinstance(found, str) else found
            if not isinstance(listed, list | tuple) or not all(isinstance(t, str) for t in listed):
                raise SchemaError(f"attribute {name!r}: {key} = {found!r}; expected text")
            if kind not in fit:
                raise SchemaError(
                    f"attribute {name!r}: {key} is for columns of {fit[0].plural}, and this one "
                    f"holds {kind.plural}"
                )
            if key in ("signs", "yes", "no"):
                said[key] = tuple(text.strip() for text in listed)
        made = cls(**said)
        made._refuse(name, kind)
        return made

    def _refuse(self, name: str, kind: Type) -> None:
        """Refuse what contradicts itself or cannot be read."""
        for key, allowed in (("decimal", (".", ",")), ("thousands", ("", ",", ".", " ", "'"))):
            if getattr(self, key) not in allowed:
                shown = ", ".join(repr(one) for one in allowed if one)
                raise SchemaError(
                    f"attribute {name!r}: {key} = {getattr(self, key)!r}; expected one of {shown}"
                )
        if self.decimal == self.thousands:
            raise SchemaError(
                f"attribute {name!r}: decimal and thousands are both {self.decimal!r}; expected "
                "two different signs"
            )
        if any(not sign or any(c.isdigit() for c in sign) for sign in self.signs):
            raise SchemaError(f"attribute {name!r}: signs hold a digit or nothing; expected '€'")
        both = set(_lower(self.yes)) & set(_lower(self.no))
        if both:
            raise SchemaError(f"attribute {name!r}: {min(both)!r} is both yes and no")
        if not self.format:
            return
        held = set(re.findall("%.", self.format))
        day, clock = ({"%d"}, {"%m", "%b"}, {"%Y", "%y"}), ({"%H", "%I"}, {"%M"})
        wanted = {Type.DATE: day, Type.TIME: clock}.get(kind, (*day, *clock))
        if not held <= set(_FIELDS) or len(held) < len(re.findall("%.", self.format)):
            raise SchemaError(
                f"attribute {name!r}: format = {self.format!r}; expected each of "
                f"{', '.join(_FIELDS)} at most once, and other signs between them"
            )
        if any(not held & one for one in wanted) or ("%I" in held) != ("%p" in held):
            needs = {Type.DATE: "%d/%m/%Y", Type.TIME: "%H:%M"}.get(kind, "%d/%m/%Y %H:%M")
            raise SchemaError(
                f"attribute {name!r}: format = {self.format!r} does not say everything about "
                f"{kind.noun}; expected one such as {needs!r}"
            )

    def to_dict(self) -> Json:
        """The same, as it stands in a schema file."""
        said = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, (value, usual) in said.items()
            if value != usual
        }

    def number(self, kind: Type, cell: object) -> Number | None:
        """The number that stands for a cell (`types.number_of`); None if it is no such cell."""
        read = self.plain(kind, cell)
        return None if read is None else number_of(kind, read)

    def plain(self, kind: Type, cell: object) -> object:
        """A cell as the package writes it; None if it is not written as declared.

        What is no text says itself what it is, except numbers such as 20251231 and 830 in a
        column of dates or times.
        """
        if self is PLAIN or self == PLAIN:
            return cell
        if self.format and isinstance(cell, int | float) and not isinstance(cell, bool):
            cell = text_of(cell)
        if not isinstance(cell, str):
            return cell
        text = cell.strip().translate(_BLANKS)
        if kind is Type.YES_NO:
            word = text.casefold()
            return "1" if word in _lower(self.yes) else "0" if word in _lower(self.no) else text
        if self.format:
            found = _moment(self.format, text, kind)
            # A cell in the package's own form is no other date, unless the format begins alike.
            return text if found is None and not self.format.startswith("%Y-") else found
        found = self._plain_number(text)
        return text if found is None and self.thousands != "." else found

    def _plain_number(self, text: str) -> str | None:
        minus, rest = "", text
        for _ in range(2):  # -€5 and €-5
            if rest[:1] in ("-", "+") and not minus:
                minus, rest = rest[0], rest[1:].lstrip()
            sign = next((sign for sign in self.signs if rest.startswith(sign)), "")
            rest = rest.removeprefix(sign).lstrip()
        sign = next((sign for sign in self.signs if rest.endswith(sign)), "")
        found = _number_form(self.decimal, self.thousands).fullmatch(
            rest.removesuffix(sign).rstrip()
        )
        if found is None:
            return None
        whole, decimals, power = found.groups("")
        whole = whole.replace(self.thousands, "") if self.thousands else whole
        return f"{minus}{whole}{'.' if decimals else ''}{decimals}{power}"


PLAIN = Spelling()
"""Cells as the package writes them."""

_NUMBERS = (Type.DECIMAL, Type.WHOLE)
_MOMENTS = (Type.DATE, Type.TIMESTAMP, Type.TIME)
_FITS: dict[str, tuple[Type, ...]] = {
    "decimal": _NUMBERS, "thousands": _NUMBERS, "signs": _NUMBERS, "format": _MOMENTS,
    "yes": (Type.YES_NO,), "no": (Type.YES_NO,),
}  # fmt: skip


@cache
def _lower(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word.casefold() for word in words)


@cache
def _number_form(decimal: str, thousands: str) -> re.Pattern[str]:
    groups = rf"\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+|" if thousands else ""
    return re.compile(rf"({groups}\d+)(?:{re.escape(decimal)}(\d*))?([eE][+-]?\d+)?", re.ASCII)


@cache
def _date_form(form: str) -> tuple[re.Pattern[str], int]:
    """The pattern of a format; and how many digits it has, if it has nothing else."""
    parts = re.split("(%.)", form)
    run = all(not part or part in _FIELDS for part in parts) and "%b" not in form
    width = sum(4 if part == "%Y" else 2 for part in parts if part in _FIELDS) if run else 0
    found = "".join(_FIELDS.get(part, re.escape(part)) for part in parts)
    return re.compile(found.replace("{1,2}", "{2}") if run else found, re.ASCII), width


def _moment(form: str, text: str, kind: Type) -> str | None:
    """A date or time of a declared format, as the package writes it."""
    pattern, width = _date_form(form)
    found = pattern.fullmatch(text.zfill(width) if width and text.isdecimal() else text)
    if found is None:
        return None
    held = {key: value for key, value in found.groupdict().items() if value is not None}
    date, clock = "", ""
    if kind is not Type.TIME:
        year = held.get("Y") or f"{'19' if held['y'] >= '69' else '20'}{held['y']}"
        month = held.get("m", "")
        if "b" in held:
            name = held["b"][:3].lower()
            if name not in _MONTHS:
                return None
            month = str(_MONTHS.index(name) + 1)
        date = f"{year}-{month:0>2}-{held['d']:0>2}"
    if kind is not Type.DATE:
        hour = int(held.get("H") or held["I"])
        if "p" in held:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + 12 * (held["p"].lower() == "p")
        clock = f"{hour:02}:{held['M']}:{held.get('S', '00')}"
    return f"{date}T{clock}" if date and clock else date or clock
