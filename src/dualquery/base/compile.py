"""The compiler of kernels, with a cache that is never stale.

numba reuses cached machine code if the one file that holds the kernel is unchanged. But a kernel
takes constants, and other kernels, from other files. So this package keeps its cache in a
directory that is named after a digest of all sources that kernels are made from. If any of them
changes, everything is compiled again.
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
"""The number of caches to keep: the newest, and two of versions that somebody may go back to."""


if TYPE_CHECKING:
    from numba import njit as njit  # type checkers see numba's own decorator
else:

    def njit(*signature: object, **options: object) -> Callable[[Callable], Callable]:
        """`numba.njit` with options, cached where no stale code is found."""

        def decorate(function: Callable) -> Callable:
            with _caching_in(cache_directory()):
                return numba.njit(*signature, **options)(function)

        return decorate


@contextmanager
def _caching_in(directory: Path | None) -> Iterator[None]:
    """Set numba's cache directory while one kernel is decorated; other packages keep theirs."""
    before = _config.CACHE_DIR
    if directory is not None:
        _config.CACHE_DIR = str(directory)
    try:
        yield
    finally:
        _config.CACHE_DIR = before


@cache
def cache_directory() -> Path | None:
    """Where compiled kernels are kept; None if nothing can be written there, and numba decides.

    The directory lies in `NUMBA_CACHE_DIR` if that is set. Otherwise it lies beside the package's
    own compiled files or, if nothing can be written there, in the user's cache.
    """
    # Kernels that check their indexes (NUMBA_BOUNDSCHECK=1) are other code from the same sources.
    name = f"kernels-{digest()}{'-checked' if _config.BOUNDSCHECK else ''}"
    set_by_user = _config.CACHE_DIR
    homes = [Path(set_by_user)] if set_by_user else [_PACKAGE / "__pycache__", _user_cache()]
    for home in homes:
        folder = home / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            os.utime(folder)  # a cache in use counts as new when old ones are deleted
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
    """Delete the oldest caches. One that cannot be deleted does no harm."""
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
    """The modules with kernels, and what they import of this package, directly or not."""
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
    """The files that a module's imports may refer to: modules, packages, modules of packages."""
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
