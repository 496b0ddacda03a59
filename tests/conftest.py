"""Shared fixtures: a small schema with every kind of attribute, and a table that fits it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema

MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory. There a sync takes no time, and a release has dozens."""

if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

settings.register_profile("default", deadline=None, print_blob=True)
settings.load_profile("default")

DATA = Path(os.environ.get("DUALQUERY_DATA", "data"))
"""Where files of public tables are; tests that need one are skipped without it."""


@pytest.fixture(scope="session")
def schema() -> Schema:
    return Schema(
        (
            Attribute.categorical("sex", ["Female", "Male"]),
            Attribute.numeric("age", [0, 25, 35, 50, 65, 120]),
            Attribute.binary("smoker"),
            Attribute.categorical("work class", ["Private", "State-gov", ">50K"], missing=True),
            Attribute.numeric("rate", [0.0, 0.25, 1.0], missing=True),
            Attribute.categorical("grade", ["low", "mid", "high"], ordered=True, default="mid"),
        )
    )


@pytest.fixture(scope="session")
def rows(schema: Schema) -> pa.Table:
    """A thousand rows with structure, and missing cells where they are allowed."""
    random = np.random.default_rng(5)
    n = 1000
    age = random.integers(0, 121, n)
    smoker = (random.random(n) < np.where(age > 50, 0.6, 0.2)).astype(np.int64)
    work = random.choice(["Private", "State-gov", ">50K", None], n)
    rate = random.random(n).round(3)
    return pa.table(
        {
            "sex": random.choice(["Female", "Male"], n),
            "age": age,
            "smoker": smoker,
            "work class": pa.array(work.tolist(), pa.string()),
            "rate": pa.array(rate, mask=random.random(n) < 0.1),
            "grade": random.choice(["low", "mid", "high"], n),
        }
    )


@pytest.fixture(scope="session")
def adult_file() -> Path:
    path = DATA / "adult.csv.gz"
    if not path.is_file():
        pytest.skip(f"needs {path.name} (set DUALQUERY_DATA to its folder)")
    return path
