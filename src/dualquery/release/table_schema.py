"""The columns of sampled rows as a Table Schema, for data portals and for the page."""

from __future__ import annotations

from dualquery.base.stored import Json
from dualquery.domain.attributes import Attribute
from dualquery.domain.types import Type
from dualquery.release.published import Published

MOST_VALUES = 1000
"""Longer lists of values are not repeated in a description."""

TYPES = {
    Type.TEXT: "string",
    Type.WHOLE: "integer",
    Type.DECIMAL: "number",
    Type.YES_NO: "boolean",
    Type.DATE: "date",
    Type.TIMESTAMP: "datetime",
    Type.TIME: "time",
}


def table_schema(release: Published) -> Json:
    """The columns of sampled rows as a Table Schema: names, types, domains, missing cells."""
    return {
        "fields": [_table_field(attribute) for attribute in columns(release)],
        "missingValues": [""],
    }


def columns(release: Published) -> list[Attribute]:
    """One attribute per column of the sampled rows: the first, of several answers in a cell."""
    found: dict[str, Attribute] = {}
    for attribute in release.schema.attributes:
        found.setdefault(attribute.column, attribute)
    return list(found.values())


def _table_field(attribute: Attribute) -> Json:
    if attribute.answer is not None:
        return {
            "name": attribute.column,
            "type": "string",
            "description": column_words(attribute),
        }
    kind = attribute.type
    made: Json = {"name": attribute.name, "type": TYPES[kind]}
    if kind is Type.TIMESTAMP:
        made["format"] = "%Y-%m-%d %H:%M:%S"  # as the csv has them
    made["description"] = column_words(attribute)
    if attribute.decimals is not None:
        # Table Schema has no word for it, and allows others.
        made["decimals"] = attribute.decimals
    constraints: Json = {} if attribute.missing else {"required": True}
    if attribute.is_numeric:
        if kind is not Type.TIME:  # a day ends at 24:00, which no clock shows
            for name, edge in (("minimum", 0), ("maximum", -1)):
                number = attribute.edges[edge]
                constraints[name] = (
                    attribute.spell(number).replace("T", " ") if kind.is_temporal else number
                )
    elif kind is not Type.YES_NO and len(attribute.values) <= MOST_VALUES:
        constraints["enum"] = list(attribute.values)
    if constraints:
        made["constraints"] = constraints
    return made


def column_words(attribute: Attribute) -> str:
    """What a column holds, in a line."""
    if attribute.answer is not None:
        given = ", ".join(str(value) for value in attribute.answer.values)
        return f"any of {given}; several are separated by {attribute.answer.separator!r}"
    words = attribute.describe()
    return words if len(words) <= 2000 else f"{words[:1999]}…"
