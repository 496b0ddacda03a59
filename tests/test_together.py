"""Settings that were made one by one, used together: a priced schema, units, starts, one ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dualquery as dq
from dualquery.baselines.mwem import Mwem
from dualquery.privacy.ledger import BudgetExceededError, Ledger, LedgerError
from dualquery.privacy.sources import source_for
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import random_marginals

DECLARED: dict[str, Any] = {
    "age": {"bounds": [0, 120]},
    "icd": {"open": True},
    "smoker": {"binary": True},
}
SMALL: dict[str, Any] = {"queries": 60, "errors": False, "out_of_domain": "missing"}


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    random, rows = np.random.default_rng(0), 6000
    made = pd.DataFrame(
        {
            "who": random.integers(0, 2500, rows),
            "age": random.integers(18, 95, rows),
            "icd": random.choice(["A", "B", "C"], rows, p=[0.5, 0.3, 0.2]),
            "smoker": random.integers(0, 2, rows),
            "weight": random.choice([0.5, 1.0, 2.0], rows),
        }
    )
    made.loc[0, "icd"] = "Q"  # one person alone
    return made


def priced(table: pd.DataFrame, **settings: Any) -> dq.Schema:
    return dq.draft_schema(table, declared=DECLARED, epsilon=1.0, delta=1e-6, **settings)


@pytest.mark.slow
def test_one_ledger_counts_a_schema_releases_and_a_baseline(
    visits: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "ledger"
    book = Ledger.create(path, epsilon=3.0, delta=1e-5)
    schema = priced(visits, ledger=path)
    assert set(schema["icd"].values) == {"A", "B", "C"}
    weighted = dq.DualQuery(1.0, 1e-6, weight="weight", weight_bound=2.0, rows=7000, **SMALL)
    made = weighted.fit(visits, schema=schema, ledger=path, note="weighted")
    true = visits.weight[visits.icd == "A"].sum() / visits.weight.sum()
    assert made.answer("icd=A") == pytest.approx(true, abs=0.03)
    workload = random_marginals(schema, 2, 20)
    counted = count_rows(open_table(visits), workload, OutOfDomain.MISSING)
    Mwem.fit(counted, workload, epsilon=0.5, source=source_for(None), ledger=path, note="mwem")
    account = book.account()
    notes = [entry.note.partition(" (")[0] for entry in account.entries]
    assert notes == ["schema", "weighted", "mwem"]  # the second also says which weights
    assert {entry.state for entry in account.entries} == {"spent"}
    alone = [entry.charge.mu_squared for entry in account.entries]
    assert account.charge.mu_squared == pytest.approx(sum(alone))
    assert account.charge.slack == pytest.approx(account.entries[0].charge.slack)
    again = dq.DualQuery(3.0, 1e-6, **SMALL)
    with pytest.raises(BudgetExceededError, match="together"):
        again.fit(visits, schema=schema, ledger=path)


@pytest.mark.slow
@pytest.mark.parametrize("weigh", ["record", "person"])
def test_persons_a_start_and_known_shares_go_together(
    visits: pd.DataFrame, tmp_path: Path, weigh: str
) -> None:
    path, known = tmp_path / "ledger", tmp_path / "known.txt"
    book = Ledger.create(path, epsilon=3.0, delta=1e-5, unit="who")
    unit: dict[str, Any] = {"unit": "who", "most_records": 4, "weigh": weigh}
    schema = priced(visits, ledger=path, **unit)
    known.write_text("smoker=1 = 0.5\nicd=A = 0.51\n", encoding="utf-8")
    public = visits.sample(1500, random_state=1)[list(DECLARED)]
    job = dq.DualQuery(1.0, 1e-6, rows=6000, known=known, start=public, **unit, **SMALL)
    made = job.fit(visits, schema=schema, ledger=path, note="first month")
    assert made.answer("icd=A") == pytest.approx(0.51, abs=1e-6)
    assert made.answer("smoker=1") == pytest.approx(0.5, abs=1e-6)
    monthly = dq.DualQuery(1.0, 1e-6, rows=6000, start=made, **unit, **SMALL)
    later = monthly.fit(visits, schema=schema, ledger=path, note="second month")
    assert later.answer("icd=A") == pytest.approx(0.5, abs=0.05)
    assert [e.note for e in book.account().entries] == ["schema", "first month", "second month"]


def test_a_ledger_names_what_it_refuses(visits: pd.DataFrame, tmp_path: Path) -> None:
    Ledger.create(tmp_path / "ledger", epsilon=1.0, delta=1e-5, unit="who")
    with pytest.raises(LedgerError, match="release schema protects single records"):
        priced(visits, ledger=tmp_path / "ledger")
    with pytest.raises(LedgerError, match="release a try is for add-remove neighbours"):
        priced(visits, ledger=tmp_path / "ledger", note="a try", neighbours="add-remove")


def test_a_start_beside_parities_says_that_parities_are_in_the_way(visits: pd.DataFrame) -> None:
    # Parities are only drawn. The line blamed the number of rows instead.
    age = dq.Attribute.numeric("age", [0, 50, 120])
    schema = dq.Schema((dq.Attribute.binary("smoker"), age))
    workload = dq.parities(schema, k=2, count=4)
    job = dq.DualQuery(epsilon=20.0, delta=1e-6, errors=False, start=visits.head(300))
    with pytest.raises(dq.ParameterError, match="its workload holds parities"):
        job.fit(visits, schema=schema, workload=workload)
