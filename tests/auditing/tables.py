"""A small table for audits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema

SCHEMA = Schema(
    (
        Attribute.numeric("age", [0, 20, 40, 60, 120]).missing_as("99"),
        Attribute.categorical("job", ["farmer", "baker", "smith", "clerk", "teacher"]),
        Attribute.categorical("town", ["north", "south", "east", "west"]),
        Attribute.binary("ill"),
    )
)


def rows(count: int = 3_000, seed: int = 0) -> pa.Table:
    """Rows of that schema as text, and a column of persons with whole numbers."""
    random = np.random.default_rng(seed)
    jobs = np.array(["farmer", "baker", "smith", "clerk", "teacher"])
    towns = np.array(["north", "south", "east", "west"])
    ages = [str(n) for n in random.integers(0, 80, count)]
    ages[::7] = ["99.0"] * len(ages[::7])
    return pa.table(
        {
            "age": ages,
            "job": jobs[random.integers(0, 5, count)],
            "town": towns[random.integers(0, 4, count)],
            "ill": [str(n) for n in random.integers(0, 2, count)],
            "who": random.integers(0, count // 3, count),
        }
    )
