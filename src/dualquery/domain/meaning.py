"""What a column and its values are called: words of the curator for readers, never of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dualquery.base.errors import SchemaError
from dualquery.base.stored import Document, Json

KEYS = ("label", "description", "unit", "labels")
"""What a schema file may say of it, beside the column's domain."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What is said of a column; whatever is empty is left out.

    Attributes:
        label: what the column is called, in words.
        description: what it holds, in a sentence or two.
        unit: what its numbers count, such as "years".
        labels: what values are called, as pairs of the value's text and its words. A word that
            stands for a missing cell may have one too.
    """

    label: str = ""
    description: str = ""
    unit: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, name: str, entry: Document) -> Meaning:
        """What one `[attributes.NAME]` table of a schema file says."""
        said: dict[str, Any] = {key: entry[key] for key in KEYS if key in entry}
        for key, text in said.items():
            if key != "labels" and not isinstance(text, str):
                raise SchemaError(f"attribute {name!r}: {key} = {text!r}; expected text")
        labels = said.pop("labels", {})
        if not isinstance(labels, Mapping) or not all(isinstance(t, str) for t in labels.values()):
            raise SchemaError(
                f"attribute {name!r}: labels = {labels!r}; expected a table of texts, such as "
                '{ 1 = "married", 2 = "single" }'
            )
        pairs = tuple((str(value), text) for value, text in labels.items() if text)
        return cls(**said, labels=pairs) if said or pairs else UNSAID

    def to_dict(self) -> Json:
        """The same, as it stands in a schema file."""
        said: Json = {key: text for key in KEYS[:3] if (text := getattr(self, key))}
        return {**said, "labels": dict(self.labels)} if self.labels else said


UNSAID = Meaning()
"""What is said of a column whose curator said nothing."""
