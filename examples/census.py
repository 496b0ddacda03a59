"""A census-like table end to end: schema, workload, plan, release, questions, rows, error.

Run it with `python examples/census.py [FOLDER]`. The table is invented, so the error at the end
may be shown; with a private table it may not.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import dualquery as dq

# 1. What the columns can hold, from public knowledge: never read off the table.
SCHEMA = dq.Schema(
    (
        dq.Attribute.numeric("age", [17, 25, 35, 45, 55, 65, 75, 90]),
        dq.Attribute.categorical("sex", ["Female", "Male"]),
        dq.Attribute.categorical(
            "education", ["school", "some college", "bachelor", "master", "doctor"], ordered=True
        ),
        dq.Attribute.categorical("work", ["private", "public", "self-employed"], missing=True),
        dq.Attribute.numeric("hours", [1, 20, 35, 41, 60, 99]),
        dq.Attribute.categorical("married", ["yes", "no", "formerly"]),
        dq.Attribute.categorical("income", ["<=50K", ">50K"]),
    )
)

QUESTIONS = (
    "sex=Female & education>=bachelor",
    'income=">50K" & hours>=41',
    "age>=65 & work is missing",
)


def invent(rows: int, seed: int = 0) -> pd.DataFrame:
    """People with some of the dependencies a census has."""
    random = np.random.default_rng(seed)
    age = np.clip(random.gamma(6.0, 6.5, rows) + 8, 17, 90).astype(int)
    sex = random.choice(["Female", "Male"], rows)
    learning = random.normal(size=rows) + 0.2 * (age < 50)
    levels = ["school", "some college", "bachelor", "master", "doctor"]
    education = np.array(levels)[np.digitize(learning, [0.1, 0.8, 1.6, 2.4])]
    work = random.choice(["private", "public", "self-employed"], rows, p=[0.72, 0.16, 0.12])
    hours = np.clip(random.normal(np.where(age > 65, 20, 40), 9), 1, 99).astype(int)
    married = np.where(
        age < 26, "no", random.choice(["yes", "no", "formerly"], rows, p=[0.6, 0.2, 0.2])
    )
    drive = 0.9 * learning + 0.03 * (hours - 40) + 0.6 * (married == "yes") - 1.6
    income = np.where(random.random(rows) < 1 / (1 + np.exp(-2 * drive)), ">50K", "<=50K")
    return pd.DataFrame(
        {
            "age": age,
            "sex": sex,
            "education": education,
            "work": pd.Series(work).mask(age > 65 + random.integers(-5, 6, rows)),
            "hours": hours,
            "married": married,
            "income": income,
        }
    )


def main(folder: Path, rows: int = 20_000, queries: int = 20_000) -> None:
    table = invent(rows)

    # 2. What to be accurate about: random 3-way marginals, and every cell of every pair.
    def workload(schema: dq.Schema) -> dq.Workload:
        return dq.random_marginals(schema, 3, queries) + dq.all_marginals(schema, 2)

    # 3. What it would do; no row has been read yet.
    job = dq.DualQuery(epsilon=1.0, delta=1e-6)
    plan = job.plan(rows, SCHEMA)
    print(f"plan: {plan.rounds} rounds of {plan.samples} draws, {plan.player} player")

    # 4. The release: a directory that may be published.
    release = job.release(
        table, folder / "census", schema=SCHEMA, workload=workload, overwrite=True
    )
    print(release.privacy.text())

    # 5. Questions and rows, from the directory alone.
    public = dq.load(folder / "census")
    for question in QUESTIONS:
        print(f"{public.answer(question):.4f}  {question}")
    synthetic = public.sample(rows).to_pandas()
    print(synthetic.head(3).to_string(index=False))
    print(f"page: {folder / 'census' / 'report.html'}")

    # 6. The error. NOT PRIVATE: for the curator alone, were the table a real one.
    result = dq.evaluate(release, table)
    print(f"max error {result.distance.max_error:.4f}, average {result.distance.average_error:.5f}")
    for name, errors in result.baselines.items():
        print(f"  {name}: {errors.max_error:.4f}, {errors.average_error:.5f}")
    assert result.distance.average_error < result.baselines["uniform"].average_error


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch))
