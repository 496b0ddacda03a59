"""Groups of rare codes: runs, declared hierarchies, and that long columns do not drown the rest."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model.grouping import grouped


def groups_of(shares: list[float], least: float, codes: list[str], declared=None) -> list[set[str]]:
    schema = Schema((Attribute.categorical("icd", codes, group=declared),))
    found = grouped(schema, np.array([0]), np.array(shares), least).of_attribute(0)
    return [{codes[c] for c in np.flatnonzero(found == g)} for g in range(found.max() + 1)]


def test_rare_codes_of_one_parent_stand_together() -> None:
    codes = ["A1", "B1", "A2", "B2", "A3", "C1", "D1"]
    shares = [0.5, 0.02, 0.03, 0.04, 0.03, 0.2, 0.18]
    assert groups_of(shares, 0.05, codes) == [
        {"A1"}, {"B1", "A2"}, {"B2", "A3"}, {"C1"}, {"D1"},
    ]  # fmt: skip
    assert groups_of(shares, 0.05, codes, "prefix:1") == [
        {"A1"}, {"B1", "B2"}, {"A2", "A3"}, {"C1"}, {"D1"},
    ]  # fmt: skip
    # Parents that are rare even with all their codes form runs in their turn.
    assert groups_of(shares, 0.1, codes, "prefix:1") == [
        {"A1"}, {"A2", "A3", "B1", "B2"}, {"C1"}, {"D1"},
    ]  # fmt: skip


def stays(rows: int = 20_000) -> tuple[pa.Table, list[str]]:
    """Codes whose first letter decides a flag; in their order the letters alternate."""
    random = np.random.default_rng(2)
    codes = [f"{letter}{i:03d}" for i in range(150) for letter in "ABCD"]
    code = random.integers(0, len(codes), rows)
    chance = np.array([0.05, 0.35, 0.65, 0.95])[code % 4]
    flag = (random.random(rows) < chance).astype(int)
    other = random.integers(0, 3, rows)
    return pa.table({"code": np.array(codes)[code], "flag": flag, "other": other}), codes


def test_a_declared_group_keeps_what_depends_on_it() -> None:
    private, codes = stays()
    schema = Schema(
        (
            Attribute.categorical("code", codes, group="prefix:1"),
            Attribute.binary("flag"),
            Attribute.categorical("other", [0, 1, 2]),
        )
    )
    # A code has 33 rows, far below the noise. Runs of codes in their order are a mix of letters:
    # without the group the largest answer is off by more than 0.06.
    job = dq.DualQuery(epsilon=0.1, delta=1e-5, queries=300, seed=1, errors=False)
    made = job.fit(private, schema=schema)
    for letter in "ABCD":
        named = np.char.startswith(private["code"].to_numpy().astype(str), letter)
        truth = float(np.mean(named & (private["flag"].to_numpy() == 1)))
        among = ", ".join(code for code in codes if code.startswith(letter))
        assert abs(made.answer(f"code in {{{among}}} & flag") - truth) < 0.03


@pytest.mark.slow
def test_long_columns_do_not_drown_the_rest() -> None:
    """A number of 1,000 bins and a column of 2,000 codes beside eight small ones."""
    rows, random = 40_000, np.random.default_rng(5)
    small = {"a": random.integers(0, 4, rows)}
    for name in "bcdefgh":
        copied = random.random(rows) < 0.5
        small[name] = np.where(copied, small["a"], random.integers(0, 4, rows))
    long = {
        "number": np.clip(random.normal(300 + 100 * small["a"], 120.0), 0, 999).astype(int),
        "codes": (random.zipf(1.3, rows) - 1 + 500 * small["b"]) % 2000,
    }
    declared = [Attribute.categorical(name, range(4)) for name in small]
    wide = [
        Attribute.numeric("number", range(1001)),
        Attribute.categorical("codes", range(2000)),
    ]
    judged = dq.all_marginals(Schema(tuple(declared)), 2)
    errors = []
    for columns, attributes in ((small, declared), (small | long, [*declared, *wide])):
        schema = Schema(tuple(attributes))
        private = pa.table(columns)
        job = dq.DualQuery(epsilon=1.0, delta=1e-6, marginals=(1, 2), seed=1, errors=False)
        made = job.fit(private, schema=schema)
        asked = dq.Workload(schema, judged.literals, judged.start, judged.terms, judged.is_parity)
        figures = dq.evaluate(made, private, asked)
        errors.append(figures.distance.average_error)
    # 45 pairs instead of 28 raise the noise by a factor of 1.27.
    assert errors[1] < 1.8 * errors[0], errors


@pytest.mark.parametrize("missing", [False, True])
def test_rare_codes_of_an_ordered_column_stand_with_their_neighbours(missing: bool) -> None:
    """The two ends of a column are rare: they must not become one group."""
    schema = Schema((Attribute.numeric("stay", [0, 1, 2, 3, 4, 5, 6], missing=missing),))
    shares = np.array([0.01, 0.3, 0.3, 0.3, 0.05, 0.01, *([0.03] if missing else [])])
    found = grouped(schema, np.array([0]), shares, 0.04).of_attribute(0).tolist()
    assert found == [0, 0, 1, 2, 3, 3, *([4] if missing else [])]


def test_an_ordered_column_is_never_constant() -> None:
    schema = Schema((Attribute.numeric("x", [0, 1, 2, 3]),))
    for shares in ([0.98, 0.01, 0.01], [0.01, 0.01, 0.98], [0.3, 0.4, 0.3]):
        found = grouped(schema, np.array([0]), np.array(shares), 0.99).of_attribute(0)
        assert found.max() == 1
        assert np.all(np.diff(found) >= 0)
