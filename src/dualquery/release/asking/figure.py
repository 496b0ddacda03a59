"""A released number with what is known about its error."""

from __future__ import annotations

WITHIN = 1.959963984540054
"""95 of 100 true values lie within this many standard errors."""


class Figure(float):
    """A number that also says how far it may be off.

    It is a float in every calculation. A release that does not know the error of a figure says so:
    `standard_error`, `low` and `high` are then None.

    Attributes:
        standard_error: how far the true figure typically is; None if unknown.
        low: the lower end of the interval that covers about 95 of 100 true figures.
        high: its upper end.
    """

    __slots__ = ("high", "low", "standard_error")

    standard_error: float | None
    low: float | None
    high: float | None

    def __new__(
        cls,
        value: float,
        standard_error: float | None = None,
        low: float | None = None,
        high: float | None = None,
    ) -> Figure:
        made = super().__new__(cls, value)
        made.standard_error, made.low, made.high = standard_error, low, high
        return made

    @classmethod
    def within(
        cls, value: float, standard_error: float | None, least: float, most: float
    ) -> Figure:
        """A figure with the interval ± 1.96 standard errors, cut to the possible values.

        Args:
            value: the figure.
            standard_error: of it; None or NaN if it is not known.
            least: the smallest value that is possible.
            most: the largest.
        """
        if standard_error is None or standard_error != standard_error:
            return cls(value)
        reach = WITHIN * standard_error
        return cls(
            value, float(standard_error), max(value - reach, least), min(value + reach, most)
        )

    def __repr__(self) -> str:
        value = f"{float(self):.6g}"
        if self.low is None or self.high is None:
            return f"{value} (error unknown)"
        return f"{value} [{self.low:.6g}, {self.high:.6g}]"

    def __str__(self) -> str:
        return float.__repr__(self)

    def __reduce__(self) -> tuple[object, ...]:
        return Figure, (float(self), self.standard_error, self.low, self.high)

    def to_dict(self) -> dict[str, float | None]:
        """Plain values, ready for JSON."""
        return {
            "value": float(self),
            "standard_error": self.standard_error,
            "low": self.low,
            "high": self.high,
        }
