"""A schema file as a form that a curator fills in, and back.

Everything in a form is text, because a browser knows one kind of number only. What was seen in the
private table is marked: all of a draft, except values that the table's own documentation names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from dualquery.base.errors import SchemaError
from dualquery.base.files import read_text
from dualquery.base.stored import Document, Json
from dualquery.domain.schema import Schema
from dualquery.domain.types import Type

_ITEMS = ("values", "edges")
_EDITED = (
    "values", "edges", "binary", "type", "missing", "label", "description", "unit", "labels",
    "decimals", "reached", "ordered",
)  # fmt: skip
_REMARK = re.compile(r"#   (?P<name>.+?): (?P<text>.+)\Z")


def form_of(file: Path) -> Json:
    """A schema file as a form."""
    schema = Schema.load(file)
    remarks = _comments(file)
    content = schema.to_dict()
    entries: Any = content.pop("attributes", {})
    types = {one.column: one.type if one.answer is None else Type.TEXT for one in schema.attributes}
    columns = [
        _column(name, entry, types[name], schema.draft, _about(name, remarks))
        for name, entry in entries.items()
    ]
    return {
        "draft": schema.draft,
        "about": schema.about.to_dict(),
        "persons": schema.persons,
        "columns": columns,
        "left_out": _left_out(remarks),
        "rules": _rules(content.pop("constraints", [])),
        "binary_columns": content.get("binary_columns"),
        "more": len(schema.attributes) - sum(_width(one) for one in entries.values()),
        "header": remarks if schema.draft else [],
    }


def schema_of(form: Document) -> Schema:
    """The schema that a form describes."""
    try:
        content: Json = {
            "draft": bool(form["draft"]),
            "attributes": {str(one["name"]): _entry(one) for one in form["columns"]},
            "constraints": _entries(form["rules"]),
            "persons": str(form["persons"]),
        }
        about = {str(key): str(text) for key, text in form["about"].items() if text}
        binaries = form["binary_columns"]
    except (KeyError, TypeError, AttributeError):
        raise SchemaError("the form is not complete; load the page again") from None
    if about:
        content["about"] = about
    if binaries:
        content["binary_columns"] = binaries
    return Schema.from_dict(content)


def _column(name: str, entry: Document, kind: Type, draft: bool, remarks: Sequence[str]) -> Json:
    holds = next((key for key in _ITEMS if key in entry), "binary")
    labels = entry.get("labels", {})
    items = [str(value) for value in entry.get(holds, ())] if holds != "binary" else ["0", "1"]
    missing = entry.get("missing", False)
    return {
        "name": name,
        "holds": holds,
        "type": str(kind.value),
        "items": [
            {
                "text": text,
                "label": labels.get(text, ""),
                "seen": draft and holds != "binary" and text not in labels,
            }
            for text in items
        ],
        "missing": bool(missing),
        "missing_words": "; ".join(missing) if isinstance(missing, list) else "",
        "missing_labels": {
            word: labels[word] for word in (missing if isinstance(missing, list) else ())
            if word in labels
        },
        **{key: entry.get(key, "") for key in ("label", "description", "unit")},
        "decimals": str(entry.get("decimals", "")),
        "reached": bool(entry.get("reached")),
        "ordered": entry.get("ordered"),
        "kept": {key: value for key, value in entry.items() if key not in _EDITED},
        "remark": "; ".join(remarks),
    }  # fmt: skip


def _entry(one: Document) -> Json:
    """A column of a form as a schema file says it."""
    name, holds, kind = str(one["name"]), one["holds"], Type(one["type"])
    entry: Json = dict(one["kept"])
    if holds == "binary":
        entry["binary"] = True
    else:
        entry[holds] = [_cell(name, kind, str(item["text"])) for item in one["items"]]
    if "separator" not in entry:  # several answers of a cell are always words
        entry["type"] = kind.value
    words = [word.strip() for word in str(one["missing_words"]).split(";") if word.strip()]
    if one["missing"] or words:
        entry["missing"] = words or True
    for key in ("label", "description", "unit"):
        if one[key]:
            entry[key] = str(one[key])
    labels = {str(item["text"]): str(item["label"]) for item in one["items"] if item["label"]}
    labels |= {word: text for word, text in one["missing_labels"].items() if word in words}
    if labels and holds != "edges":
        entry["labels"] = labels
    if one["decimals"]:
        entry["decimals"] = _cell(name, Type.WHOLE, str(one["decimals"]))
    if one["reached"]:
        entry["reached"] = True
    if one["ordered"] is not None:
        entry["ordered"] = bool(one["ordered"])
    return entry


def _cell(name: str, kind: Type, text: str) -> object:
    read = {Type.WHOLE: int, Type.DECIMAL: float}.get(kind)
    if read is None:
        return text.strip() if kind.is_temporal else text
    try:
        return read(text)
    except ValueError:
        raise SchemaError(f"column {name!r}: {text!r}; expected {kind.noun}") from None


def _width(entry: Document) -> int:
    """How many attributes a table of a schema file makes."""
    return len(entry["values"]) if "separator" in entry else 1


def _rules(entries: object) -> list[Json]:
    """Rules as rows of a kind and two texts; a chain of an order is a row per link."""
    found: list[Json] = []
    for entry in entries if isinstance(entries, list) else ():
        if "forbid" in entry:
            found.append(_rule("forbid", entry["forbid"]))
        elif "if" in entry:
            found.append(_rule("if", entry["if"], entry["then"]))
        elif "order" in entry:
            chain = entry["order"]
            found += [_rule("order", a, b) for a, b in pairwise(chain)]
        else:
            found += [_rule("determines", a, b) for a, b in entry["determines"].items()]
    return found


def _rule(kind: str, first: str, second: str = "") -> Json:
    return {"kind": kind, "first": first, "second": second}


def _entries(rules: Sequence[Mapping[str, str]]) -> list[Json]:
    """The inverse of `_rules`; a row without texts is none."""
    found: list[Json] = []
    for rule in rules:
        kind, first, second = rule["kind"], rule["first"].strip(), rule["second"].strip()
        if first or second:
            possible: dict[str, Json] = {
                "forbid": {"forbid": first},
                "if": {"if": first, "then": second},
                "order": {"order": [first, second]},
                "determines": {"determines": {first: second}},
            }
            found.append(possible[kind])
    return found


def _comments(file: Path) -> list[str]:
    """The comments at the top of a schema file, without the first one, which every draft has."""
    found = []
    for line in read_text(file, "schema file", SchemaError).splitlines():
        if not line.startswith("#"):
            break
        found.append(line)
    return found[1:]


def _about(name: str, comments: Sequence[str]) -> list[str]:
    """What the comments of a draft say about a column."""
    start = f"#   {name}: "
    return [line.removeprefix(start) for line in comments if line.startswith(start)]


def _left_out(comments: Sequence[str]) -> list[Json]:
    """The columns that a draft left out, each with its reason."""
    found: list[Json] = []
    begun = False
    for line in comments:
        begun = begun or line.startswith("# Left out")
        remark = _REMARK.match(line)
        if begun and remark:
            found.append({"name": remark["name"], "reason": remark["text"]})
    return found


def written(form: Document, schema: Schema, file: Path) -> None:
    """Write the schema of a form; what a draft's comments say stays private, and goes with it."""
    header = [str(line).removeprefix("#")[1:] for line in form.get("header", ())]
    schema.save(file, header if schema.draft else ())
