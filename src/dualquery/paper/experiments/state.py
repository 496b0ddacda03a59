"""The state of the code that made a run, without which its seed does not repeat it."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from dualquery import version


@cache
def state_of_code() -> str:
    """The version, and the first digits of a hash over the package's sources."""
    root = Path(version.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{version.__version__}+{digest.hexdigest()[:8]}"
