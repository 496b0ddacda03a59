"""Types of what files hold. A file may come from anywhere, so whoever reads it checks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
"""An array of a file, or one that goes into a file. The file says its type, so no checker can."""

Arrays = Mapping[str, Array]
"""The arrays of a file, by name."""

Document = Mapping[str, Any]
"""An object as JSON and TOML files hold it: what its values are is known when they are read."""

Json = dict[str, object]
"""An object that is to be written as JSON."""
