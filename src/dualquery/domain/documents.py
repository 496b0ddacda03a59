"""Schema files as plain data: TOML both ways, mbi domain JSON in."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from dualquery.base.errors import SchemaError
from dualquery.base.escapes import printable
from dualquery.base.files import read_text, write_whole
from dualquery.base.stored import Document, Json
from dualquery.domain.declared import Value
from dualquery.domain.meaning import KEYS as WORDS_OF_COLUMNS
from dualquery.domain.types import Type

_CONTROL = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d(T[\d:]+)?|(?!24)[\d:]{8})\Z", re.ASCII)
NOT_PRIVATE = "NOT PRIVATE: this draft was read off the private table; do not publish it"
"""The first line of a draft."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")

MOST_DECLARED = 2_000_000
"""The most columns, or values of a column, that one number may declare. A million 0/1 columns take
a gigabyte; a number of ten digits would take all memory before anything is said."""


def read_document(path: Path) -> Document:
    """The content of a schema file; the file name's ending tells the format."""
    text = read_text(path, "schema file", SchemaError)
    try:
        if path.suffix.lower() == ".json":
            return domain_document(json.loads(text))
        return tomllib.loads(text)
    except ValueError as error:  # also a number of more digits than Python reads
        raise SchemaError(f"schema file {str(path)!r}: {error}") from None
    except RecursionError:
        raise SchemaError(f"schema file {str(path)!r}: brackets are nested too deeply") from None


def domain_document(domain: object) -> Document:
    """An mbi domain, which has one size per attribute, as the content of a schema file.

    The values of each attribute are the integer codes 0, 1, ….
    """
    if not isinstance(domain, Mapping):
        raise SchemaError('an mbi domain is a JSON object such as {"sex": 2, "age": 85}')
    attributes: Json = {}
    left = MOST_DECLARED
    for name, size in domain.items():
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= left:
            raise SchemaError(
                f"attribute {name!r}: size {size!r}; expected a whole number from 1 to "
                f"{MOST_DECLARED:,}, for all attributes together"
            )
        left -= size
        attributes[name] = {"binary": True} if size == 2 else {"values": list(range(size))}
    return {"attributes": attributes}


def write_document(
    content: Document, path: Path, header: Iterable[str] = (), *, private: bool = False
) -> None:
    """Write the content of a schema file as TOML, with `header` as comment lines at the top.

    A draft shows what was seen in a private table, so only its owner can read it, and its first
    line says so.

    Args:
        content: of the file.
        path: where to.
        header: comment lines; line ends within them cannot end the comment.
        private: whether the content was read off a private table; a draft always is.
    """
    private = private or bool(content.get("draft"))
    lines = [f"# {NOT_PRIVATE}"] if private else []
    lines += [f"# {printable(line)}".rstrip() for line in header]
    if content.get("draft"):
        lines.append("draft = true  # remove this line when you have reviewed the schema")
    if content.get("persons"):
        lines.append(f"persons = {_literal(content['persons'])}  # who may have several rows")
    if content.get("about"):
        lines.extend(["", "[about]"])
        lines.extend(f"{key} = {_literal(text)}" for key, text in content["about"].items())
    for name, entry in content.get("attributes", {}).items():
        lines.append("")
        lines.append(f"[attributes.{_key(name)}]")
        if content.get("draft"):  # to be filled in
            blank = WORDS_OF_COLUMNS[: 3 if "edges" in entry else 2]
            entry = {**entry, **{key: entry.get(key, "") for key in blank}}
        moments = entry.get("type") in (Type.DATE, Type.TIMESTAMP, Type.TIME)
        for key, value in entry.items():
            bare = moments and key not in WORDS_OF_COLUMNS
            lines.append(f"{key} = {_literal(value, bare)}")
    if "binary_columns" in content:
        lines.append("")
        lines.append("[binary_columns]")
        lines.extend(f"{key} = {_literal(v)}" for key, v in content["binary_columns"].items())
    for rule in content.get("constraints", ()):
        lines.extend(["", "[[constraints]]"])
        lines.extend(f"{key} = {_literal(text)}" for key, text in rule.items())
    write_whole(path, "\n".join(lines).lstrip("\n") + "\n", private=private)


def _key(name: str) -> str:
    return name if _BARE_KEY.match(name) else _literal(name)


def _literal(value: Value | list[Value] | dict[str, list[Value]], bare: bool = False) -> str:
    """A value as TOML writes it; `bare` writes dates and times without quotes."""
    if isinstance(value, dict):
        entries = (f"{_key(name)} = {_literal(one, bare)}" for name, one in value.items())
        return "{ " + ", ".join(entries) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item, bare) for item in value) + "]"
    if bare and isinstance(value, str) and _MOMENT.match(value):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise SchemaError(f"{value!r} cannot stand in a schema file")
    # JSON and TOML write strings, numbers and booleans alike, except DEL, which TOML escapes. A
    # terminal that shows the file would obey what lies between DEL and the letters, too.
    text = json.dumps(value, ensure_ascii=False)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
