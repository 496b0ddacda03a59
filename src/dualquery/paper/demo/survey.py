"""The invented survey: respondents with a latent health, drawn from a fixed seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dualquery.domain.schema import Schema

ROWS = 20_000
SCHEMA_FILE = Path(__file__).with_name("schema.toml")

_REGIONS = ("north", "east", "south", "west", "capital")
_EDUCATION = ("none", "school", "college", "university")
_WORK = ("employed", "self-employed", "unemployed", "student", "retired")
_CONDITIONS = (
    "diabetes",
    "hypertension",
    "asthma",
    "arthritis",
    "migraine",
    "back_pain",
    "depression",
    "anxiety",
    "allergy",
    "heart_disease",
    "stroke",
    "cancer",
    "copd",
    "anaemia",
    "insomnia",
    "obesity",
)


def example(rows: int = ROWS) -> tuple[pa.Table, Schema]:
    """An invented health survey and its schema, to try things on: a table about nobody real.

    The table is the same in every run, so figures made with it can be repeated.
    """
    return make_survey(rows), Schema.load(SCHEMA_FILE)


def make_survey(rows: int = ROWS, seed: int = 7) -> pa.Table:
    """A table of `rows` invented respondents."""
    random = np.random.default_rng(seed)
    age = np.clip(random.gamma(6.0, 8.0, rows), 18, 99).astype(np.int64)
    sex = random.choice(["female", "male"], rows, p=[0.52, 0.48])
    schooling = np.clip(random.normal(1.9 - 0.012 * (age - 45), 0.8), 0, 3).round().astype(int)
    frailty = random.normal(0.0, 1.0, rows) + 0.035 * (age - 50) - 0.25 * (schooling - 1.5)
    smoker = random.random(rows) < _logistic(-1.0 + 0.35 * frailty - 0.01 * (age - 40))
    exercise = np.clip(random.poisson(np.exp(1.0 - 0.25 * frailty)), 0, 7)
    columns: dict[str, npt.ArrayLike] = {
        "age": age,
        "sex": sex,
        "region": random.choice(_REGIONS, rows, p=[0.24, 0.18, 0.22, 0.16, 0.20]),
        "education": np.array(_EDUCATION)[schooling],
        "work": _work(random, age),
        "income": np.clip(
            random.lognormal(10.0 + 0.25 * schooling - 0.1 * frailty, 0.6), 0, 200_000
        ).astype(np.int64),
        "height_cm": np.clip(
            random.normal(np.where(sex == "male", 178.0, 165.0), 7.0), 120, 220
        ).round(1),
        "exercise_days": exercise,
        "smoker": smoker.astype(np.int64),
    }
    for position, name in enumerate(_CONDITIONS):
        level = -3.2 + 0.12 * position + (0.5 + 0.05 * position) * frailty
        if name in ("copd", "heart_disease", "stroke"):
            level = level + 1.2 * smoker
        columns[name] = (random.random(rows) < _logistic(level)).astype(np.int64)
    table = pa.table(columns)
    unsaid = pa.array(random.random(rows) < 0.05)
    income = pc.if_else(unsaid, pa.scalar(None, pa.int64()), table.column("income"))
    return table.set_column(table.schema.get_field_index("income"), "income", income)


def _work(random: np.random.Generator, age: npt.NDArray[np.int64]) -> npt.NDArray[np.str_]:
    work = random.choice(_WORK[:3], len(age), p=[0.78, 0.13, 0.09])
    work = np.where((age < 25) & (random.random(len(age)) < 0.6), "student", work)
    return np.where((age >= 65) & (random.random(len(age)) < 0.9), "retired", work)


def _logistic(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    result: npt.NDArray[np.float64] = 1.0 / (1.0 + np.exp(-x))
    return result
