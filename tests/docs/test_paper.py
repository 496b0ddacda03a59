"""The page for readers of the paper: its session on Adult, its figures, and what it links."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dualquery.cli import application
from dualquery.oracles.registry import ORACLES
from tests.conftest import DATA
from tests.docs.test_documents import DOCS, ROOT, blocks

PAGE = "guide/paper.md"
TEXT = (DOCS / PAGE).read_text(encoding="utf-8")
TRANSCRIPT = next(text for text in re.findall(r"^```text\n(.*?)^```$", TEXT, re.M | re.S))


@pytest.mark.slow
def test_the_two_minutes_on_adult(monkeypatch: pytest.MonkeyPatch) -> None:
    """Line by line what the page shows. The file is at hand here, so nothing is downloaded."""
    if not (DATA / "adult.csv.gz").is_file():
        pytest.skip("needs adult.csv.gz (set DUALQUERY_DATA to its folder)")
    monkeypatch.setenv("DUALQUERY_DATA", str(DATA))
    session = TRANSCRIPT.partition("$ python\n")[2]
    test = doctest.DocTestParser().get_doctest(session, {}, PAGE, PAGE, 0)
    assert len(test.examples) == 11
    told: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=told.append, clear_globs=False)
    assert not told, "".join(told)


def test_the_figures_belong_to_the_schema_that_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ((_, name, schema),) = [block for block in blocks(PAGE) if block[1]]
    Path(name).write_text(schema, encoding="utf-8")
    (line,) = re.findall(r"^dualquery (plan .*)$", TEXT, re.M)
    done = CliRunner().invoke(application(), [*line.split(), "--json"])
    told = json.loads(done.stdout)
    theorem = told["theorem"]
    for words in (
        f"{told['rounds']} rounds of {told['samples']:,} draws",
        f"promises α = {theorem['promised_alpha']} by the Gaussian accountant",
        f"would need {theorem['smallest_rows']['gaussian']:,} rows",
        f"and {theorem['smallest_rows']['pure']:,} by the paper's pure theorem",
    ):
        assert words in " ".join(TEXT.split()), words


def test_every_oracle_is_explained() -> None:
    listed = TEXT.split("## Solvers")[1].split("\n## ")[0]
    named = re.findall(r"^\| (`.*?) \|", listed, re.M)
    assert sorted(re.findall(r"`([\w-]+)`", " ".join(named))) == sorted(one.name for one in ORACLES)


def test_readers_of_the_paper_find_the_door() -> None:
    for page in (ROOT / "README.md", DOCS / "index.md", DOCS / PAGE):
        text = page.read_text(encoding="utf-8")
        assert "https://arxiv.org/abs/1402.1526" in text, page
        assert re.search("f you come from the\\s+paper", text), page
