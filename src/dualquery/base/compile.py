"""The compiler of kernels, with a cache that is never stale.

numba takes its cached machine code for up to date if the one file that a kernel stands in is
unchanged. But a kernel takes constants, and other kernels, from other files. So the cache of this
package is a directory named after a digest of all sources that kernels are made from: whichever
of them changes, everything is compiled anew.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba

_PACKAGE = Path(__file__).parents[1]
_config: Any = numba.config  # its settings are made when it is imported; mypy sees none
_COMPILES = re.compile(r"^(?:from|import) (?:numba|dualquery\.base\.compile)\b", re.M)

KEPT = 3
"""How many caches stay: the newest, and those of versions somebody may go back to."""


if TYPE_CHECKING:
    from numba import njit as njit  # what is said of numba's own decorator holds of this one
else:

    def njit(*signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
        """`numba.njit` with options, caching where no stale code is found."""

        def decorate(function: Callable[..., Any]) -> Any:
            with _caching_in(cache_directory()):
                return numba.njit(*signature, **options)(function)

        return decorate


@contextmanager
def _caching_in(directory: Path | None) -> Iterator[None]:
    """numba decides where to cache when it decorates; kernels of others stay where they are."""
    before = _config.CACHE_DIR
    if directory is not None:
        _config.CACHE_DIR = str(directory)
    try:
        yield
    finally:
        _config.CACHE_DIR = before


@cache
def cache_directory() -> Path | None:
    """Where compiled kernels are kept; None where nothing can be written, and numba decides.

    It is in `NUMBA_CACHE_DIR` if that is set, else beside the package's own compiled files, else
    in the user's cache.
    """
    name = f"kernels-{digest()}"
    set_by_user = _config.CACHE_DIR
    homes = [Path(set_by_user)] if set_by_user else [_PACKAGE / "__pycache__", _user_cache()]
    for home in homes:
        folder = home / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            os.utime(folder)  # what is used is new
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            _clean(home, folder)
            return folder
    return None


def _user_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "dualquery"


def _clean(home: Path, current: Path) -> None:
    """Delete the oldest caches; one that cannot be deleted does no harm."""
    try:
        found = [(folder.stat().st_mtime, folder) for folder in home.glob("kernels-*")]
    except OSError:
        return
    for _, folder in sorted(found, reverse=True)[KEPT:]:
        if folder != current:
            shutil.rmtree(folder, ignore_errors=True)


def digest() -> str:
    """A digest of every source that compiled code may depend on."""
    found = hashlib.sha256()
    for path in sources():
        found.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0")
        found.update(path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def sources() -> list[Path]:
    """The modules with kernels, and all modules of the package that these import in turn."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(_PACKAGE.rglob("*.py"))}
    waiting = [path for path, text in texts.items() if _COMPILES.search(text)]
    reached: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += [found for found in _imported(texts[path]) if found in texts]
    return sorted(reached)


def _imported(text: str) -> Iterator[Path]:
    """Files that the imports of a module may mean: a module, a package, a module of a package."""
    for node in ast.walk(ast.parse(text)):
        named: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            named = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        for name in named:
            package, *rest = name.split(".")
            if package == "dualquery" and rest:
                yield _PACKAGE.joinpath(*rest).with_suffix(".py")
                yield _PACKAGE.joinpath(*rest, "__init__.py")
