"""The errors a user can act on."""

from __future__ import annotations


class DualQueryError(Exception):
    """Base of every error this package raises on purpose.

    The message is one line. It names the column, value or option and says what would be right.
    The command line prints it and exits with code 2. Where the way out is an argument in Python and
    an option on the command line, each reader is told its own.

    Args:
        args: the message.
        python: the way out for a caller in Python.
        command: the way out on the command line.
    """

    def __init__(self, *args: object, python: str = "", command: str = "") -> None:
        super().__init__(*args)
        self.python, self.command = python, command

    def __str__(self) -> str:
        return _joined(super().__str__(), self.python)

    @property
    def on_the_command_line(self) -> str:
        """The message with the way out for a reader of the command line."""
        return _joined(super().__str__(), self.command)


class Note(str):
    """A note on an error that says one thing in Python and another on the command line."""

    command: str

    def __new__(cls, python: str, command: str) -> Note:
        made = super().__new__(cls, python)
        made.command = command
        return made


def _joined(message: str, way_out: str) -> str:
    return f"{message}; {way_out}" if way_out else message


class ParameterError(DualQueryError, ValueError):
    """A parameter is outside its range, or parameters contradict one another."""


class SchemaError(DualQueryError, ValueError):
    """A schema is malformed or does not fit the table."""


class TableError(DualQueryError, ValueError):
    """A table cannot be read, or a cell lies outside its declared domain."""


class NoRowsError(TableError):
    """A table has no rows. If their number is private, a release must not depend on that."""

    def __init__(self) -> None:
        super().__init__("the table has no rows")


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
