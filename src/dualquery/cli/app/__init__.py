"""`dualquery app`: the whole job in a page for curators, on this machine alone.

The page asks this process, and this process runs the commands of the package, each in a process of
its own. So it holds no rows itself, and a release that is stopped here can be resumed anywhere.
Start reading at `server`: it says who is answered. `desk` says what.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def app(
    folder: Annotated[
        Path, typer.Argument(help="The folder of your tables; the page reaches nothing outside it.")
    ] = Path("."),
    port: Annotated[int, typer.Option(help="Of this machine. (default: a free one)")] = 0,
) -> None:
    """Draft, check, plan, release and look, in a local page. FOR THE CURATOR'S EYES."""
    from dualquery.base.errors import ParameterError
    from dualquery.cli.app.desk import Desk
    from dualquery.cli.app.server import serve

    if not folder.is_dir():
        raise ParameterError(f"no folder {str(folder)!r}; expected the one with your tables")
    if not 0 <= port < 65_536:
        raise ParameterError(f"--port {port}; expected a number from 1 to 65535")
    serve(Desk(folder.resolve()), port, say=lambda line: typer.echo(line, err=True))
