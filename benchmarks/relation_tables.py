"""Tables with known relations between their columns, and with declared schemas.

All of them are made by a program from a fixed seed and are about nobody. `fresh_a` and `fresh_b`
only show what a rule is worth: no rule may be made or mended while looking at them.
"""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Made = tuple[pa.Table, Schema]

KNOWN = (
    ("weight", "weight_at_discharge"),
    ("creatinine", "urea"),
    ("bmi", "systolic"),
    ("stay", "cost"),
    ("age", "stay"),
    ("pain", "painkillers"),
    ("age", "haemoglobin"),
    ("diagnosis", "chapter"),
    ("age", "age_group"),
    ("admitted", "month"),
    ("ward", "pregnant"),
)
"""The relations of `mixed35`: correlations of .99, .9, .8, about .7, .5, .35 and .22; a code and
its category, a number and its bin, a date and its month; and a condition that only one ward has."""

_WARDS = ("medicine", "surgery", "cardiology", "maternity", "paediatrics", "oncology")
_CHAPTERS = "ABCDEFGH"


def mixed35(rows: int = 50_000) -> Made:
    """Hospital stays: eleven known relations, and background columns that hardly depend."""
    random = np.random.default_rng(3501)
    columns: dict[str, npt.ArrayLike] = {}
    declared: list[Attribute] = []

    def number(
        name: str, values: npt.ArrayLike, edges: list[int] | list[float], decimals: int
    ) -> None:
        cells = np.clip(np.asarray(values, dtype=float), edges[0], edges[-1])
        columns[name] = cells.astype(np.int64) if decimals == 0 else np.round(cells, decimals)
        declared.append(Attribute.numeric(name, edges))

    def words(name: str, values: npt.ArrayLike, domain: list[str] | list[int]) -> None:
        columns[name] = np.asarray(values)
        declared.append(Attribute.categorical(name, domain))

    def flag(name: str, chance: npt.ArrayLike) -> None:
        columns[name] = (random.random(rows) < np.asarray(chance)).astype(np.int64)
        declared.append(Attribute.binary(name))

    def related(to: Floats, correlation: float) -> Floats:
        """A standard normal number with this correlation with another one."""
        own: Floats = random.normal(size=rows)
        return correlation * to + np.sqrt(1.0 - correlation**2) * own

    z_age = random.normal(size=rows)
    age = np.clip(50.0 + 18.0 * z_age, 0, 99).astype(np.int64)
    number("age", age, list(range(0, 101, 5)), 0)
    groups = ["child", "young", "middle", "older", "old"]
    group = np.searchsorted([15, 35, 55, 75], age, side="right")
    words("age_group", np.array(groups)[group], groups)
    z_stay = related(z_age, 0.52)
    stay = np.exp(1.3 + 0.45 * z_stay)
    number("stay", np.ceil(stay), [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 60], 0)
    cost = 400.0 * stay * np.exp(0.45 * random.normal(size=rows))
    number("cost", cost, [0, 300, 600, 900, 1200, 1600, 2000, 2500, 3000, 4000, 5000, 7000, 10_000,
                          20_000, 100_000], 0)  # fmt: skip
    z_weight = random.normal(size=rows)
    weight = 76.0 + 15.0 * z_weight
    halves = [0.0, *np.arange(46.0, 111.0, 5.0).tolist(), 200.0]
    number("weight", weight, halves, 1)
    number("weight_at_discharge", 75.0 + 15.0 * related(z_weight, 0.992), halves, 1)
    z_kidney = random.normal(size=rows)
    number("creatinine", 90.0 + 20.0 * z_kidney, [0, *range(50, 140, 8), 400], 0)
    number("urea", 6.0 + 1.5 * related(z_kidney, 0.91), [0.0, *np.arange(2.5, 10.0, 0.7).round(1),
                                                          40.0], 1)  # fmt: skip
    z_bmi = random.normal(size=rows)
    number("bmi", 27.0 + 4.5 * z_bmi, [10.0, *np.arange(19.0, 37.0, 1.5), 70.0], 1)
    number("systolic", 130.0 + 17.0 * related(z_bmi, 0.82), [60, *range(96, 170, 6), 260], 0)
    z_pain = random.normal(size=rows)
    words("pain", np.clip(np.rint(4.0 + 2.2 * z_pain), 0, 10).astype(int), list(range(11)))
    number("painkillers", np.exp(0.8 + 0.5 * related(z_pain, 0.38)), [0, 1, 2, 3, 4, 5, 6, 8, 30],
           0)  # fmt: skip
    number("haemoglobin", 138.0 - 14.0 * related(z_age, 0.22), [60, *range(110, 170, 5), 220], 0)

    falling = (np.arange(40) + 1.0) ** -0.7
    code = random.permutation(40)[random.choice(40, rows, p=falling / falling.sum())]
    codes = [f"{_CHAPTERS[i % 8]}{i:02d}" for i in range(40)]
    words("diagnosis", np.array(codes)[code], codes)
    words("chapter", np.array(list(_CHAPTERS))[code % 8], list(_CHAPTERS))
    day = random.integers(0, 365, rows)
    first = date(2025, 1, 1)
    dates = np.array([first + timedelta(days=i) for i in range(366)], dtype=object)
    columns["admitted"] = dates[day]
    starts = [date(2025, month, begin) for month in range(1, 13) for begin in (1, 16)]
    declared.append(Attribute.numeric("admitted", [*starts, date(2026, 1, 1)]))
    months = np.array([one.month for one in dates])[day]
    words("month", months, list(range(1, 13)))
    ward = random.choice(6, rows, p=[0.3, 0.24, 0.16, 0.12, 0.08, 0.1])
    words("ward", np.array(_WARDS)[ward], list(_WARDS))
    flag("pregnant", np.where(ward == 3, 0.9, 0.0))

    # Background: nearly independent columns, as most pairs of a real table are.
    words("region", random.choice(9, rows, p=np.arange(9, 0, -1) / 45.0), list(range(9)))
    words("insurance", random.choice(["public", "private", "none"], rows, p=[0.7, 0.22, 0.08]),
          ["public", "private", "none"])  # fmt: skip
    words("weekday", random.integers(1, 8, rows), list(range(1, 8)))
    words("blood", random.choice(["0", "A", "B", "AB"], rows, p=[0.44, 0.42, 0.1, 0.04]),
          ["0", "A", "B", "AB"])  # fmt: skip
    words("arrival", random.choice(["ambulance", "own", "transfer"], rows, p=[0.3, 0.6, 0.1]),
          ["ambulance", "own", "transfer"])  # fmt: skip
    number("distance", random.gamma(1.3, 12.0, rows), [0, 2, 5, 10, 15, 20, 30, 50, 200], 0)
    number("pulse", 78.0 + 12.0 * random.normal(size=rows), [30, *range(58, 106, 6), 220], 0)
    number("temperature", 37.0 + 0.6 * random.normal(size=rows),
           [34.0, 36.0, 36.4, 36.8, 37.2, 37.6, 38.0, 38.5, 42.0], 1)  # fmt: skip
    flag("female", np.full(rows, 0.52))
    flag("smoker", np.full(rows, 0.21))
    flag("diabetic", 0.06 + 0.05 * (z_bmi > 1.0))
    flag("emergency", 0.25 + 0.1 * (z_stay > 1.0))
    flag("surgery", np.where(ward == 1, 0.6, 0.12))
    flag("readmitted", 0.08 + 0.05 * (z_age > 1.0))
    flag("interpreter", np.full(rows, 0.07))
    flag("lives_alone", np.full(rows, 0.3))
    return pa.table(columns), Schema(tuple(declared))


def strong86(rows: int = 5_000, strong: int = 20) -> Made:
    """86 columns of codes, of which 20 pairs nearly determine one another, far fewer rows each."""
    random = np.random.default_rng(8601)
    sizes = random.integers(2, 11, 86)
    kind = random.choice(4, rows, p=[0.5, 0.25, 0.15, 0.1])
    found = np.empty((rows, 86), dtype=np.int64)
    for place, size in enumerate(sizes.tolist()):
        common = random.dirichlet(np.full(size, 0.5))
        table = 0.8 * common + 0.2 * random.dirichlet(np.full(size, 0.5), 4)
        found[:, place] = _drawn(table[kind], random)
    for pair in range(strong):
        one, other = 2 * pair, 2 * pair + 1
        image = random.permutation(np.arange(sizes[one]) % sizes[other])
        faithful = random.random(rows) < 0.97
        found[:, other] = np.where(faithful, image[found[:, one]], found[:, other])
    return _coded(found, sizes)


def wide_code(rows: int = 135_000, codes: int = 2_000) -> Made:
    """Nine columns, one of them with 2,000 codes that say most about two others."""
    random = np.random.default_rng(9001)
    falling = (np.arange(codes) + 1.0) ** -0.9
    code = random.choice(codes, rows, p=falling / falling.sum())
    branch = np.where(random.random(rows) < 0.97, code % 21, random.integers(0, 21, rows))
    level = np.where(random.random(rows) < 0.6, code // 400, random.integers(0, 5, rows))
    amount = np.clip(4.0 + 1.5 * level + random.normal(0.0, 2.0, rows), 0, 15).astype(np.int64)
    found = np.column_stack(
        [
            code,
            branch,
            level,
            amount,
            np.clip(amount + random.integers(-1, 2, rows), 0, 15),
            random.choice(12, rows, p=np.arange(12, 0, -1) / 78.0),
            random.integers(0, 7, rows),
            random.random(rows) < 0.1 + 0.1 * level,
            random.random(rows) < 0.4,
        ]
    ).astype(np.int64)
    return _coded(found, np.array([codes, 21, 5, 16, 16, 12, 7, 2, 2]))


def fresh_a(rows: int = 30_000) -> Made:
    """A random network of 24 columns. No rule may be made or mended while looking at it."""
    return _network(rows, 24, 41_001)


def fresh_b(rows: int = 8_000) -> Made:
    """Another one, with fewer rows. No rule may be made or mended while looking at it."""
    return _network(rows, 24, 41_002)


def _network(rows: int, width: int, seed: int) -> Made:
    """Numbers and categories; each column has up to two earlier ones as parents."""
    random = np.random.default_rng(seed)
    scores: list[Floats] = []
    columns: dict[str, npt.ArrayLike] = {}
    declared: list[Attribute] = []
    for place in range(width):
        parents = random.permutation(place)[: random.integers(0, 3)].tolist()
        state = np.zeros(rows, dtype=np.int64)
        for parent in parents:
            state = 3 * state + np.searchsorted([-0.5, 0.5], scores[parent])
        states = 3 ** len(parents)
        name = f"x{place}"
        if random.random() < 0.5:
            pull = random.uniform(0.2, 1.6)
            value = random.normal(0.0, 0.4, states)[state] + random.normal(size=rows)
            for parent in parents:
                value = value + pull * scores[parent]
            value = (value - value.mean()) / value.std()
            cells = np.clip(100.0 + 15.0 * value, 0, 200).astype(np.int64)
            columns[name] = cells
            declared.append(Attribute.numeric(name, [0, *range(70, 131, 5), 200]))
            scores.append(value)
        else:
            size = int(random.integers(2, 9))
            shares = random.dirichlet(np.full(size, 0.7), states)
            codes = _drawn(shares[state], random)
            columns[name] = codes
            worth = random.normal(size=size)
            spread = max(float(worth[codes].std()), 1e-9)
            scores.append((worth[codes] - worth[codes].mean()) / spread)
            declared.append(
                Attribute.binary(name) if size == 2 else Attribute.categorical(name, range(size))
            )
    return pa.table(columns), Schema(tuple(declared))


def _drawn(shares: Floats, random: np.random.Generator) -> Ints:
    """A code per row, with the probabilities of that row."""
    found: Ints = (random.random((len(shares), 1)) > np.cumsum(shares, axis=1)).sum(axis=1)
    return np.minimum(found, shares.shape[1] - 1)


def _coded(codes: Ints, sizes: Ints) -> Made:
    names = [f"x{place}" for place in range(len(sizes))]
    schema = Schema(
        tuple(
            Attribute.binary(name) if size == 2 else Attribute.categorical(name, range(size))
            for name, size in zip(names, sizes.tolist(), strict=True)
        )
    )
    return pa.table(dict(zip(names, codes.T, strict=True))), schema
