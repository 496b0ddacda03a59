"""The errors a user can act on."""

from __future__ import annotations


class DualQueryError(Exception):
    """Base of every error this package raises on purpose.

    The message is one line. It names the column, value or option and says what would be right.
    The command line prints it as it is and exits with code 2.
    """


class ParameterError(DualQueryError, ValueError):
    """A parameter is outside its range, or parameters contradict one another."""


class SchemaError(DualQueryError, ValueError):
    """A schema is malformed or does not fit the table."""


class TableError(DualQueryError, ValueError):
    """A table cannot be read, or a cell lies outside its declared domain."""


class QueryError(DualQueryError, ValueError):
    """A query cannot be parsed or does not fit the schema."""


class ReleaseError(DualQueryError):
    """A release directory cannot be written, read or resumed."""


class UnavailableError(DualQueryError):
    """An optional part (a solver, an engine) is not installed."""


class EngineError(DualQueryError):
    """The workers that should count cannot be reached, or were lost."""


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its type's name if it has no text."""
    return (str(error).splitlines() or [type(error).__name__])[0]
