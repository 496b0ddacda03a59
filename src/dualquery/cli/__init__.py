"""The command line: one file per command, each thin.

A command reads its options, calls the package, and prints. Nothing imports this room except
`__main__`. Start reading at `application`, then at `release`.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from dualquery.base.errors import DualQueryError
from dualquery.base.escapes import for_terminal
from dualquery.base.failures import SENTENCES, reason
from dualquery.base.interrupts import orderly
from dualquery.cli.quick import QUICK, arguments_of

# Typer may bring its own copy of click, so the base of its errors is reached by a public one.
_CLICK_ERROR: Any = typer.BadParameter.__mro__[2]


COMMANDS = (
    "demo",
    "schema",
    "check",
    "plan",
    "release",
    "app",
    "refit",
    "answer",
    "table",
    "summary",
    "sample",
    "evaluate",
    "audit",
    "compare",
    "privacy",
    "ledger",
    "experiment",
)
"""Every command, in the order of `--help`. Its function is that of the same name in its module."""


class _WithoutBool:
    """A command whose help shows no type beside a flag: `<bool>` looks like a value to give."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, in the order of the help."""
        found = super().get_params(ctx)  # type: ignore[misc]
        for one in found:
            if getattr(one, "is_flag", False):
                one.metavar = ""
        return found


class _Command(_WithoutBool, TyperCommand):
    pass


class _Group(_WithoutBool, TyperGroup):
    pass


def application(only: str = "") -> typer.Typer:
    """The commands. Their modules import the package's heavy parts only when they run.

    Args:
        only: the command that will be called, if that is known. Typer works out the types of every
            option that it is shown, and for all commands that takes longer than an answer.
    """
    app = typer.Typer(
        name="dualquery",
        cls=_Group,
        help="Private answers to millions of queries, and a synthetic table, from wide tables.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    for name in (only,) if only in COMMANDS else COMMANDS:
        app.command(cls=_Command)(getattr(import_module(f"dualquery.cli.{name}"), name))

    @app.callback(invoke_without_command=True)
    def options(version: bool = typer.Option(False, "--version", help="Show the version.")) -> None:
        if version:
            from dualquery.version import __version__

            typer.echo(f"dualquery {__version__}")
            raise typer.Exit

    return app


class Stopped(BaseException):
    """A signal asked the process to end."""

    def __init__(self, number: int) -> None:
        name = signal.Signals(number).name
        super().__init__("interrupted" if name == "SIGINT" else f"stopped by {name}")
        self.code = 128 + number


def main() -> None:
    """Run a command. The exit code is 0 for done, 1 for failed, 2 for bad usage.

    Errors are one line. A signal ends the process with 128 plus its number: 130 for an interrupt,
    143 for a termination.
    """
    # Interrupts too, because Typer would turn a KeyboardInterrupt into a silent exit.
    with orderly(Stopped):
        _run()


def _run() -> None:
    try:
        code = _call(*sys.argv[1:])
        sys.exit(code if isinstance(code, int) else 0)
    except DualQueryError as error:
        # An error with a note stopped a run that was under way: the request was not wrong.
        _fail(error.on_the_command_line, 1 if _notes(error) else 2, error)
    except _CLICK_ERROR as error:
        _fail(error.format_message() or "no command given; see dualquery --help", 2)
    except Stopped as error:
        _fail(str(error), error.code, error)
    except (KeyboardInterrupt, typer.Abort) as error:
        _fail("interrupted", 130, error)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except MemoryError as error:
        _fail(f"not enough memory ({error})" if str(error) else "not enough memory", 1, error)
    except Exception as error:
        if os.environ.get("DUALQUERY_DEBUG"):
            raise
        if isinstance(error, OSError) and error.errno in SENTENCES:
            where = "" if error.filename is None else f": {str(error.filename)!r}"
            _fail(f"{reason(error)}{where}", 1, error)
        _fail(f"{type(error).__name__}: {error} (DUALQUERY_DEBUG=1 shows where)", 1, error)


def _call(command: str = "", *line: str) -> object:
    """Call a command: at once if its line is plain, otherwise by way of Typer."""
    if command in QUICK:
        function = getattr(import_module(f"dualquery.cli.{command}"), command)
        arguments = arguments_of(function, line, tuple(os.environ))
        if arguments is not None:
            return function(**arguments)
    return application(command)(standalone_mode=False)


def _notes(error: BaseException | None) -> list[str]:
    return [getattr(note, "command", note) for note in getattr(error, "__notes__", [])]


def _fail(message: str, code: int, error: BaseException | None = None) -> None:
    said = "; ".join([message, *_notes(error)])
    typer.echo(f"error: {for_terminal(' '.join(said.split()))}", err=True)
    sys.exit(code)
