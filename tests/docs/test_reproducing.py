"""How long the experiments take is what their stored runs say."""

from __future__ import annotations

import csv
import re

import pytest

from tests.docs.test_documents import DOCS

ROW = re.compile(
    r"^\| `(\w+)( --series paper --oracle (\w+) [^`]*)?` \| (\d+) \| (\d+) minutes? \|$", re.M
)
TOLD = {
    experiment + (f"-{oracle}" if oracle else ""): (int(runs), int(minutes))
    for experiment, _, oracle, runs, minutes in ROW.findall(
        (DOCS / "reproducing.md").read_text(encoding="utf-8")
    )
}


@pytest.mark.parametrize("name", sorted(TOLD))
def test_an_experiment_takes_what_its_stored_runs_took(name: str) -> None:
    with (DOCS / "results" / f"{name}.csv").open(encoding="utf-8") as file:
        runs = list(csv.DictReader(file))
    spent = "processor_seconds" if "processor_seconds" in runs[0] else "seconds"
    minutes = round(sum(float(run[spent] or 0) for run in runs) / 60)
    assert TOLD[name] == (len(runs), minutes)


def test_every_experiment_that_is_stored_has_its_time() -> None:
    stored = {file.stem for file in (DOCS / "results").glob("*.csv")}
    assert set(TOLD) == stored - {"peers"}
