"""The validator of parameters: what a user may get wrong is refused here, in one style.

Every message reads ``NAME = VALUE; expected WHAT WOULD BE RIGHT``. Checks return the value in its
proper type, so that a caller checks and converts in one step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import SupportsFloat, TypeVar

from dualquery.base.errors import ParameterError

Choice = TypeVar("Choice", bound=StrEnum)

LONGEST = 80
"""The most characters of a value that a message shows."""


def refusal(name: str, value: object, expected: str) -> ParameterError:
    """The error of a parameter that has a wrong value."""
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, str):
        shown = repr(value)
    shown = " ".join(shown.split())
    if len(shown) > LONGEST:  # a whole frame, say
        shown = f"{shown[: LONGEST - 1]}…"
    return ParameterError(f"{name} = {shown}; expected {expected}")


def as_float(name: str, value: SupportsFloat) -> float:
    """A finite float."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise refusal(name, value, "a finite number") from None
    if not math.isfinite(number):
        raise refusal(name, number, "a finite number")
    return number


def is_number(name: str, value: object) -> None:
    """Refuse what is no number, such as the text '1', which would be compared and printed as one.

    Its range is checked where it matters.
    """
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        raise refusal(name, value, "a number")


def positive(name: str, value: SupportsFloat) -> float:
    """A finite float above zero."""
    number = as_float(name, value)
    if number <= 0.0:
        raise refusal(name, number, "a number above 0")
    return number


def not_negative(name: str, value: SupportsFloat) -> float:
    """A finite float of at least zero."""
    number = as_float(name, value)
    if number < 0.0:
        raise refusal(name, number, "0 or more")
    return number


def whole(name: str, value: SupportsFloat, least: int = 1) -> int:
    """An integer of at least `least`; 3.0 counts as 3, 3.5 does not."""
    number = as_float(name, value)
    if number != math.floor(number):
        raise refusal(name, number, "a whole number")
    exact = value if isinstance(value, int) else int(number)
    if exact < least:
        raise refusal(name, int(exact), f"{least} or more")
    return int(exact)


def probability(name: str, value: SupportsFloat) -> float:
    """A float strictly between 0 and 1."""
    number = as_float(name, value)
    if not 0.0 < number < 1.0:
        raise refusal(name, number, "a number between 0 and 1")
    return number


def one_of(name: str, value: str, known: Iterable[str]) -> str:
    """A name out of a list of names."""
    names = list(known)
    if value not in names:
        raise refusal(name, value, f"one of {', '.join(names)}")
    return value


def choice(name: str, value: str, kind: type[Choice]) -> Choice:
    """The member of an enumeration that has this value."""
    return kind(one_of(name, value, [member.value for member in kind]))
