"""Schema files as plain data: TOML both ways, mbi domain JSON in."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from dualquery.base.errors import SchemaError
from dualquery.base.files import read_text
from dualquery.base.stored import Document, Json
from dualquery.domain.declared import Value
from dualquery.domain.types import Type

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d(T[\d:]+)?|(?!24)[\d:]{8})\Z", re.ASCII)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


def read_document(path: Path) -> Document:
    """The content of a schema file; the file name's ending tells the format."""
    text = read_text(path, "schema file", SchemaError)
    try:
        if path.suffix.lower() == ".json":
            return domain_document(json.loads(text))
        return tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise SchemaError(f"schema file {str(path)!r}: {error}") from None


def domain_document(domain: object) -> Document:
    """An mbi domain, which has one size per attribute, as the content of a schema file.

    The values of each attribute are the integer codes 0, 1, ….
    """
    if not isinstance(domain, Mapping):
        raise SchemaError('an mbi domain is a JSON object such as {"sex": 2, "age": 85}')
    attributes: Json = {}
    for name, size in domain.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise SchemaError(f"attribute {name!r}: size {size!r}; expected a whole number ≥ 1")
        attributes[name] = {"binary": True} if size == 2 else {"values": list(range(size))}
    return {"attributes": attributes}


def write_document(content: Document, path: Path, header: Iterable[str] = ()) -> None:
    """Write the content of a schema file as TOML, with `header` as comment lines at the top."""
    lines = [f"# {line}".rstrip() for line in header]
    if content.get("draft"):
        lines.append("draft = true  # remove this line when you have reviewed the schema")
    if content.get("about"):
        lines.extend(["", "[about]"])
        lines.extend(f"{key} = {_literal(text)}" for key, text in content["about"].items())
    for name, entry in content.get("attributes", {}).items():
        lines.append("")
        lines.append(f"[attributes.{_key(name)}]")
        bare = entry.get("type") in (Type.DATE, Type.TIMESTAMP, Type.TIME)
        lines.extend(f"{key} = {_literal(value, bare)}" for key, value in entry.items())
    if "binary_columns" in content:
        lines.append("")
        lines.append("[binary_columns]")
        lines.extend(f"{key} = {_literal(v)}" for key, v in content["binary_columns"].items())
    for rule in content.get("constraints", ()):
        lines.extend(["", "[[constraints]]"])
        lines.extend(f"{key} = {_literal(text)}" for key, text in rule.items())
    path.write_text("\n".join(lines).lstrip("\n") + "\n", encoding="utf-8")


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
    # JSON and TOML write strings, numbers and booleans alike, except DEL, which TOML escapes.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
