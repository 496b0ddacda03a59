"""The command line: one file per command, each thin."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer

from dualquery.errors import DualQueryError

# Typer may carry its own copy of click: the base of its errors is reached by a public one.
_CLICK_ERROR: Any = typer.BadParameter.__mro__[2]


def application() -> typer.Typer:
    """All commands. Their modules import the package's heavy parts only when they run."""
    from dualquery.cli.answer import answer
    from dualquery.cli.compare import compare
    from dualquery.cli.demo import demo
    from dualquery.cli.evaluate import evaluate
    from dualquery.cli.experiment import experiment
    from dualquery.cli.ledger import ledger
    from dualquery.cli.plan import plan
    from dualquery.cli.privacy import privacy
    from dualquery.cli.refit import refit
    from dualquery.cli.release import release
    from dualquery.cli.sample import sample
    from dualquery.cli.schema import schema

    app = typer.Typer(
        name="dualquery",
        help="Private answers to millions of queries, and a synthetic table, from wide tables.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for command in (
        demo,
        schema,
        plan,
        release,
        refit,
        answer,
        sample,
        evaluate,
        compare,
        privacy,
        ledger,
        experiment,
    ):
        app.command()(command)

    @app.callback(invoke_without_command=True)
    def options(version: bool = typer.Option(False, "--version", help="Show the version.")) -> None:
        if version:
            from dualquery.version import __version__

            typer.echo(f"dualquery {__version__}")
            raise typer.Exit

    return app


def main() -> None:
    """Run a command: exit code 0 for done, 1 for failed, 2 for bad usage; one-line errors."""
    try:
        code = application()(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except DualQueryError as error:
        _fail(str(error), 2)
    except _CLICK_ERROR as error:
        _fail(error.format_message() or "no command given; see dualquery --help", 2)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        if os.environ.get("DUALQUERY_DEBUG"):
            raise
        _fail(f"{type(error).__name__}: {error} (DUALQUERY_DEBUG=1 shows where)", 1)


def _fail(message: str, code: int) -> None:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(code)
