"""A schema with a price, on the generated mixed table: what is found at ε = 0.2.

The 13 columns of numbers are declared with bounds twice as wide as their range, the two columns of
2,000 codes are open, and all others are declared. Numbers are spread inside their bins, so that no
two records share a value by construction. A column is good if all its seven edges lie within one
percentile of the true quantiles. Values that more than 0.5 % of the records hold should be found.

    python -m benchmarks schema            the table of the claim
    python -m benchmarks schema.other      tables on which nothing was chosen: another seed, Adult

Adult has 30,162 records, six columns of numbers, two of them almost all zero, and three open ones.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import data_folder
from dualquery.domain.schema import Schema
from dualquery.paper.datasets.mixed import MISSING, mixed_table
from dualquery.rows.priced import draft_with_price

RUNS = int(os.environ.get("DUALQUERY_RUNS", "5"))
EPSILON, DELTA, BINS, FREQUENT = 0.2, 1e-6, 8, 0.005


Declared = dict[str, dict[str, object]]

ADULT = {"age": 120, "fnlwgt": 3_000_000, "education_num": 40, "capital_gain": 200_000}
ADULT |= {"capital_loss": 10_000, "hours_per_week": 168}
ADULT_OPEN = ("education", "occupation", "native_country")


def table(seed: int = 0) -> tuple[pd.DataFrame, Declared]:
    """The table, and what is declared of it."""
    codes, random = mixed_table(seed=seed), np.random.default_rng(5)
    cells: dict[str, Any] = {}
    declared: Declared = {}
    for name, size, numeric in zip(codes.names, codes.sizes.tolist(), codes.numeric, strict=True):
        column = codes.column(name)
        gone = column == size - 1 if name in MISSING else np.zeros(len(column), dtype=bool)
        if numeric:
            spread = np.round(column + random.random(len(column)), 3)
            cells[name] = np.where(gone, np.nan, spread)
            declared[name] = {"bounds": [0.0, 2.0 * size]}
        elif size == 2:
            cells[name] = column
            declared[name] = {"binary": True}
        else:
            cells[name] = np.where(gone, None, np.char.add(name[0], column.astype(str)))
            known = [f"{name[0]}{code}" for code in range(size - (name in MISSING))]
            declared[name] = {"open": True} if size > 100 else {"values": known, "missing": True}
    return pd.DataFrame(cells), declared


def percentiles_off(frame: pd.DataFrame, schema: Schema, name: str) -> float:
    """How far the worst edge of a column is from its quantile, as a share of the records."""
    cells = np.sort(frame[name].dropna().to_numpy())
    edges = np.array(schema[name].edges)
    wanted = np.arange(1, BINS) / BINS
    below = np.searchsorted(cells, edges, "left") / len(cells)
    upto = np.searchsorted(cells, edges, "right") / len(cells)
    off = np.maximum(below - wanted[:, None], wanted[:, None] - upto)
    # A value that many share is several quantiles, and may be a bound: the nearest edge counts.
    return float(np.maximum(off, 0.0).min(axis=1).max())


def run() -> list[dict[str, Any]]:
    return figures_of(*table(), "mixed")


def other() -> list[dict[str, Any]]:
    """Tables on which no constant was chosen."""
    found = figures_of(*table(seed=1), "mixed, another seed")
    adult = data_folder() / "adult.csv.gz"
    if adult.is_file():
        frame = pd.read_csv(adult)
        declared: Declared = {name: {"bounds": [0, high]} for name, high in ADULT.items()}
        declared |= {name: {"open": True} for name in ADULT_OPEN}
        found += figures_of(frame, declared, "adult")
    return found


def figures_of(frame: pd.DataFrame, declared: Declared, name_of_table: str) -> list[dict[str, Any]]:
    """What is found under both kinds of neighbours, over several seeds."""
    cut = [name for name, entry in declared.items() if "bounds" in entry]
    unknown = [name for name, entry in declared.items() if "open" in entry]
    figures = []
    for neighbours in ("add-remove", "replace-one"):
        good, worst, found, rare = [], [], [], []
        start = time.perf_counter()
        for seed in range(RUNS):
            made = draft_with_price(
                frame, declared, epsilon=EPSILON, delta=DELTA, neighbours=neighbours, seed=seed
            )
            off = [percentiles_off(frame, made.schema, name) for name in cut]
            good.append(np.mean(np.array(off) <= 0.01))
            worst.append(np.mean(off))
            for name in unknown:
                shares = frame[name].value_counts(normalize=True)
                listed = set(made.schema[name].values) if name in made.schema.names else set()
                found += [value in listed for value in shares.index[shares > FREQUENT]]
                rare += [shares[value] < 0.001 for value in listed]
        figures.append(
            {
                "table": name_of_table,
                "neighbours": neighbours,
                "epsilon": made.plan.epsilon,
                "delta": DELTA,
                "slack": made.plan.slack,
                "columns_within_a_percentile": float(np.mean(good)),
                "worst_edge_of_a_column_percentiles": 100 * float(np.mean(worst)),
                "values_above_half_a_percent_found": float(np.mean(found)),
                "values_below_a_tenth_of_a_percent_found": int(np.sum(rare)),
                "threshold": made.plan.threshold,
                "seconds": (time.perf_counter() - start) / RUNS,
            }
        )
    return figures


PARTS = {"other": other}
