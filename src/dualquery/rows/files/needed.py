"""Packages that only some files need."""

from __future__ import annotations

import importlib
from typing import Any

from dualquery.base.errors import UnavailableError


def needed(module: str, extra: str, what: str) -> Any:
    """A module that may be absent, or an error that says how to install it.

    Args:
        module: its name.
        extra: the extra of this package that installs it.
        what: what is read with it.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UnavailableError(
            f"{what} is read by the package {module.replace('_', '-')}, which is not installed: "
            f"pip install 'dualquery[{extra}]'"
        ) from None
