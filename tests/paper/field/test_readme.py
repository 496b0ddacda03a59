"""What README says about the comparison is what the stored runs say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dualquery.paper.experiments.store import FinishedRun, mean, where
from dualquery.paper.field import page, verdicts
from dualquery.paper.field.methods import OURS, titles
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
        found = named[said if said in named else re.sub(r" \(answers only\)|; ours[^)]*", "", said)]
        if not average:
            assert most in found[0]["end"]
            continue
        assert float(most) == two_digits(mean(found, MAXIMUM)), said
        assert float(average) == two_digits(mean(found, AVERAGE)), said
        if ours := re.search(r"ours: ([\d.]+), ([\d.]+)", said):
            own = named["PrivBayes"]
            pair = [two_digits(mean(own, error)) for error in (MAXIMUM, AVERAGE)]
            assert [float(value) for value in ours.groups()] == pair


def test_the_settings_that_are_won_are_counted(runs: list[FinishedRun]) -> None:
    races = verdicts.races(runs)
    average, most = ([one for one in races if one.error == error] for error in (AVERAGE, MAXIMUM))
    said = re.search(
        r"Over (\d+) such settings, .* ahead of all others in average error in (\d+) and even with "
        r"the best in (\d+), in maximum error ahead in (\d+) and even in (\d+)\.",
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


def test_errors_that_are_named_in_sentences_are_stored(runs: list[FinishedRun]) -> None:
    def of(method: str, dataset: str, columns: int, *columns_of: str) -> list[float]:
        found = where(runs, method=method, dataset=dataset, columns=columns, epsilon=1.0)
        return [two_digits(mean(found, name)) for name in columns_of]

    def said(pattern: str) -> list[float]:
        found = re.search(pattern, SENTENCES)
        assert found is not None, pattern
        return [float(number) for number in found.groups()]

    narrow, both = ("biased", 15), (MAXIMUM, AVERAGE)
    assert said(r"matrix mechanism has the smaller maximum \((\S+) against (\S+)\)") == [
        *of("matrix mechanism", *narrow, MAXIMUM),
        *of(OURS, *narrow, MAXIMUM),
    ]
    races = verdicts.races(runs)
    wide = next(
        one
        for one in races
        if one.error == MAXIMUM and one.place == verdicts.Place("ratings", 1_000, 1.0)
    )
    assert said(r"\((\S+) against (\S+) at 1,000 columns\)") == [
        two_digits(wide.theirs),
        two_digits(wide.ours),
    ]
    mst, aim = (of(name, *narrow, *both) for name in ("peer mst", "peer aim"))
    pattern = r"MST and AIM of dpmm have (\S+) and (\S+) at most, (\S+) and (\S+) on average"
    assert said(pattern) == [mst[0], aim[0], mst[1], aim[1]]
    assert said(r"this package has (\S+) and (\S+) after") == of(OURS, *narrow, *both)
