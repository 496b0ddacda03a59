"""What README says about the comparison is what the stored runs say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dualquery.paper.experiments.store import FinishedRun, mean, where
from dualquery.paper.field import page, verdicts
from dualquery.paper.field.methods import titles
from dualquery.paper.field.verdicts import AVERAGE, MAXIMUM

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BESIDE = README.partition("**Beside today's methods.**")[2].partition("\n## ")[0]
SENTENCES = " ".join(BESIDE.split())
ROW = re.compile(r"^\| ([^|]*) \| ([^|]*) \| ([^|]*) ?\|$", re.M)


@pytest.fixture(scope="module")
def runs() -> list[FinishedRun]:
    return page.stored_runs(ROOT / "docs" / "results", quick=False)[0]


def two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def test_the_table_of_adult_has_the_stored_errors(runs: list[FinishedRun]) -> None:
    here = where(runs, dataset="adult", epsilon=1.0)
    named = {title: where(here, method=name) for name, title in titles().items()}
    named["the paper's algorithm"] = where(here, method="paper")
    rows = [row for row in ROW.findall(BESIDE) if row[0] not in ("method", "---")]
    assert len(rows) > 8
    for said, most, average in rows:
        found = named[said if said in named else re.sub(r" \((answers only|ours)\)", "", said)]
        if not average:
            assert most in found[0]["end"]
            continue
        assert float(most) == two_digits(mean(found, MAXIMUM)), said
        assert float(average) == two_digits(mean(found, AVERAGE)), said


def test_the_settings_that_are_won_are_counted(runs: list[FinishedRun]) -> None:
    races = verdicts.races(runs)
    average, most = ([one for one in races if one.error == error] for error in (AVERAGE, MAXIMUM))
    said = re.search(
        r"Over (\d+) such settings, .* smallest average error in (\d+) and shares it in (\d+)\. "
        r"It has the smallest maximum error in (\d+) and shares it in (\d+)\.",
        SENTENCES,
    )
    assert said is not None
    assert [int(number) for number in said.groups()] == [
        len(most),
        sum(one.ahead for one in average),
        sum(one.even for one in average),
        sum(one.ahead for one in most),
        sum(one.even for one in most),
    ]


def test_sparse_tables_gain_as_much_as_is_said(runs: list[FinishedRun]) -> None:
    assert "the best other maximum is five times as large" in SENTENCES
    wide = [
        one.theirs / one.ours
        for one in verdicts.races(runs)
        if one.error == MAXIMUM and one.place == verdicts.Place("ratings", 1_000, 1.0)
    ]
    assert [round(times) for times in wide] == [5]
