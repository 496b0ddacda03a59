"""A table as people have it: identifiers, free text, dates, codes, money, holes, odd strings."""

from __future__ import annotations

import numpy as np
import pandas as pd

WORDS = ("seen", "again", "after", "surgery", "no", "complaints", "mild", "pain", "left", "knee")


def messy_table(rows: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Rows of a clinic, as pandas holds them."""
    random = np.random.default_rng(seed)
    admitted = np.datetime64("2021-01-01") + random.integers(0, 1000, rows)
    stay = random.geometric(0.2, rows) - 1
    cost = np.round(random.lognormal(6.5, 1.6, rows), 2)
    codes = [f"{letter}{number:02}" for letter in "IEJ" for number in range(10, 40)]
    frequent = 1.0 / np.arange(1, len(codes) + 1)
    age = random.integers(0, 100, rows).astype(float)
    age[random.random(rows) < 0.05] = np.nan
    height = np.round(random.normal(170, 10, rows), 1).astype(str).astype(object)
    height[random.random(rows) < 0.03] = "NA"
    visits = pd.array(random.integers(0, 9, rows), dtype="Int64")
    visits[random.random(rows) < 0.1] = pd.NA
    grade = random.choice(["low", "mid", "high"], rows)
    return pd.DataFrame(
        {
            "patient_id": [f"P{n:06}" for n in random.permutation(rows)],
            "row": np.arange(rows),
            "note": [" ".join(random.choice(WORDS, 6)) + f" {n}" for n in range(rows)],
            "site": ["Main clinic"] * rows,
            "fax": [None] * rows,
            "admitted": admitted.astype("datetime64[s]"),
            "discharged": (admitted + stay).astype("datetime64[s]"),
            "seen": admitted.astype("datetime64[s]") + random.integers(0, 86_400, rows),
            "wakes": [f"{h:02}:{m:02}" for h, m in zip(
                random.integers(4, 11, rows), random.integers(0, 60, rows), strict=True)],
            "icd": random.choice(codes, rows, p=frequent / frequent.sum()),
            "zip": random.choice(["04847", "04103", "53111", "00501"], rows),
            "cost": cost,
            "age": age,
            "height": height,
            "visits": visits,
            "smoker": random.choice(["yes", "no"], rows, p=[0.2, 0.8]),
            "insured": random.random(rows) < 0.9,
            "grade": pd.Categorical(grade, ["low", "mid", "high"], ordered=True),
            "city": random.choice(["Bonn", ' "Köln"; Süd', "São Paulo, SP", "="], rows),
            "alive": random.integers(0, 2, rows),
        }
    )  # fmt: skip
