"""Schemas as files: TOML both ways, mbi domain JSON in, plain dictionaries for release.json."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dualquery.errors import SchemaError
from dualquery.schema import Attribute, Schema, Value

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


def load_schema(path: str | Path) -> Schema:
    """Read a schema file, its kind told by its ending."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SchemaError(
            f"cannot read schema file {str(path)!r}: {error.strerror or error}"
        ) from None
    except UnicodeDecodeError:
        raise SchemaError(f"schema file {str(path)!r} is not UTF-8 text") from None
    try:
        if path.suffix.lower() == ".json":
            return schema_from_domain(json.loads(text))
        return schema_from_dict(tomllib.loads(text))
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise SchemaError(f"schema file {str(path)!r}: {error}") from None


def schema_from_domain(domain: Any) -> Schema:
    """Read an mbi domain: a size per attribute; cells are integer codes."""
    if not isinstance(domain, Mapping):
        raise SchemaError('an mbi domain is a JSON object such as {"sex": 2, "age": 85}')
    attributes = []
    for name, size in domain.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise SchemaError(f"attribute {name!r}: size {size!r}; expected a whole number ≥ 1")
        binary = size == 2
        attributes.append(
            Attribute.binary(name) if binary else Attribute.categorical(name, range(size))
        )
    return Schema(tuple(attributes))


def schema_from_dict(content: Mapping[str, Any]) -> Schema:
    """Read the content of a schema file."""
    unknown = set(content) - {"draft", "attributes", "binary_columns", "constraints"}
    if unknown:
        raise SchemaError(
            f"unknown table [{min(unknown)}] in the schema; expected attributes, binary_columns "
            "or constraints"
        )
    draft = content.get("draft", False)
    if not isinstance(draft, bool):
        raise SchemaError(f"draft = {draft!r}; expected true or false")
    attributes = []
    for name, entry in content.get("attributes", {}).items():
        if not isinstance(entry, Mapping):
            raise SchemaError(f"attribute {name!r}: expected a table, found {entry!r}")
        attributes.append(Attribute.from_dict(name, entry))
    names, patterns = _binary_columns(content.get("binary_columns", {}))
    attributes.extend(Attribute.binary(name) for name in names)
    rules = content.get("constraints", [])
    if not isinstance(rules, list) or not all(isinstance(rule, Mapping) for rule in rules):
        raise SchemaError("constraints: expected [[constraints]] tables")
    schema = Schema(tuple(attributes), patterns, tuple(dict(rule) for rule in rules), draft)
    if not patterns:  # a rule about a column that is not known yet is checked with the table
        schema.constraints  # noqa: B018 - rules that contradict one another are refused here
    return schema


def _binary_columns(entry: Any) -> tuple[list[str], tuple[str, ...]]:
    if not isinstance(entry, Mapping):
        raise SchemaError("binary_columns: expected a table")
    unknown = set(entry) - {"pattern", "names", "prefix", "count"}
    if unknown:
        raise SchemaError(
            f"binary_columns: unknown key {min(unknown)!r}; expected pattern, names, "
            "or prefix and count"
        )
    names = list(entry.get("names", []))
    if "prefix" in entry or "count" in entry:
        prefix, count = entry.get("prefix"), entry.get("count")
        if not isinstance(prefix, str) or not isinstance(count, int) or count < 1:
            raise SchemaError(
                f"binary_columns: prefix = {prefix!r}, count = {count!r}; "
                "expected text and a whole number ≥ 1"
            )
        names.extend(f"{prefix}{position}" for position in range(count))
    pattern = entry.get("pattern", [])
    patterns = (pattern,) if isinstance(pattern, str) else tuple(pattern)
    return names, patterns


def schema_to_dict(schema: Schema) -> dict[str, Any]:
    """The schema as plain data, the inverse of `schema_from_dict`.

    Plain 0/1 columns at the end of a wide table are listed by name alone.
    """
    named, binaries = _split_trailing_binaries(schema)
    content: dict[str, Any] = {"draft": True} if schema.draft else {}
    if named:
        content["attributes"] = {a.name: a.to_dict() for a in named}
    columns: dict[str, Any] = {}
    if binaries:
        columns["names"] = binaries
    if schema.patterns:
        columns["pattern"] = list(schema.patterns)
    if columns:
        content["binary_columns"] = columns
    if schema.rules:
        content["constraints"] = [dict(rule) for rule in schema.rules]
    return content


def _split_trailing_binaries(schema: Schema) -> tuple[list[Attribute], list[str]]:
    end = len(schema.attributes)
    while end and schema.attributes[end - 1].is_binary and not schema.attributes[end - 1].default:
        end -= 1
    if len(schema.attributes) - end < 50:  # few enough to be read one by one
        end = len(schema.attributes)
    return list(schema.attributes[:end]), [a.name for a in schema.attributes[end:]]


def save_schema(schema: Schema, path: str | Path, header: Iterable[str] = ()) -> None:
    """Write a schema as TOML, with comment lines at its head."""
    lines = [f"# {line}".rstrip() for line in header]
    content = schema_to_dict(schema)
    if schema.draft:
        lines.append("draft = true  # remove this line when you have reviewed the schema")
    for name, entry in content.get("attributes", {}).items():
        lines.append("")
        lines.append(f"[attributes.{_key(name)}]")
        lines.extend(f"{key} = {_literal(value)}" for key, value in entry.items())
    if "binary_columns" in content:
        lines.append("")
        lines.append("[binary_columns]")
        lines.extend(f"{key} = {_literal(v)}" for key, v in content["binary_columns"].items())
    for rule in content.get("constraints", ()):
        lines.extend(["", "[[constraints]]"])
        lines.extend(f"{key} = {_literal(text)}" for key, text in rule.items())
    Path(path).write_text("\n".join(lines).lstrip("\n") + "\n", encoding="utf-8")


def _key(name: str) -> str:
    return name if _BARE_KEY.match(name) else _literal(name)


def _literal(value: Value | list[Value]) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        raise SchemaError(f"{value!r} cannot stand in a schema file")
    # JSON and TOML agree on strings, numbers and booleans, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
