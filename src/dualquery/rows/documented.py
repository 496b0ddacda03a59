"""What a statistical file says about its columns, beside the rows. Private side, like the file."""

from __future__ import annotations

from dataclasses import dataclass

from dualquery.domain.types import Type, number_of


@dataclass(frozen=True)
class Documented:
    """The documentation of one column; whatever is empty is not said.

    Attributes:
        label: what the column is called.
        labels: what values are called, as pairs of the value's text and its words.
        missing: the values that stand for a missing one, as text.
        ranges: ranges of numbers that stand for a missing one, ends included.
        level: "nominal", "ordinal" or "scale".
    """

    label: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()
    level: str = ""

    def is_missing(self, text: str) -> bool:
        """Whether a cell stands for a missing one."""
        number = number_of(Type.DECIMAL, text)
        return text in self.missing or (
            number is not None and any(low <= number <= high for low, high in self.ranges)
        )
