"""The list of mutants fits the tree, its page is the list, and the command tells them apart.

Whether every mutant is noticed takes minutes: `make mutants`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.mutants.__main__ import choose
from tools.mutants.catalogue import MUTANTS
from tools.mutants.mutant import Mutant, MutantError, problems
from tools.mutants.page import PAGE, listed, rendered
from tools.mutants.trial import compiled_from, run_all

ROOT = Path(__file__).parents[1]


def test_every_mutant_can_be_applied_and_its_tests_exist() -> None:
    assert list(problems(MUTANTS, ROOT)) == []


def test_the_page_lists_exactly_the_mutants() -> None:
    """Rows are written for mutants that were killed: run `python -m tools.mutants --only NAME`."""
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert listed(page) == {mutant.name for mutant in MUTANTS}
    assert page == rendered(MUTANTS)


def test_constants_that_kernels_import_count_as_kernels() -> None:
    """numba would go on using what it compiled before they changed."""
    compiled = compiled_from(ROOT / "src")
    assert "src/dualquery/privacy/_kernels.py" in compiled
    assert "src/dualquery/privacy/_weights.py" in compiled
    assert "src/dualquery/privacy/sampler.py" not in compiled


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package of one function, with one test that notices something and one that does not."""
    for name in ("src", "tests", "tools"):
        (tmp_path / name).mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers=['slow']\n")
    (tmp_path / "src" / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    (tmp_path / "tests" / "test_sums.py").write_text(
        "import pytest\nfrom sums import add\n\n\n"
        "@pytest.mark.parametrize('a', [0, 1])\n"
        "def test_sharp(a):\n    assert add(a, 3) == 3 + a\n\n\n"
        "def test_blunt():\n    assert add(0, 0) == 0\n"
    )
    return tmp_path


def mutant(name: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(
        name, "src/sums.py", old, new, tuple(f"tests/test_sums.py::{t}" for t in tests), ""
    )


def test_a_mutant_is_killed_if_every_named_test_fails(tree: Path) -> None:
    mutants = [
        mutant("killed", "a + b", "a - b", "test_sharp"),
        mutant("half", "a + b", "a - b", "test_sharp", "test_blunt"),
        mutant("broken", "a + b", "a + c(b", "test_sharp"),
    ]
    outcomes = {outcome.mutant.name: outcome for outcome in run_all(mutants, tree)}
    assert outcomes["killed"].killed
    assert outcomes["half"].missed == ("tests/test_sums.py::test_blunt",)
    # What cannot even be imported was not noticed by a test.
    assert not outcomes["broken"].killed
    assert (tree / "src" / "sums.py").read_text() == "def add(a, b):\n    return a + b\n"


def test_tests_that_fail_without_a_mutant_show_nothing(tree: Path) -> None:
    (tree / "src" / "sums.py").write_text("def add(a, b):\n    return a * b\n")
    with pytest.raises(MutantError, match="fail without a mutant"):
        run_all([mutant("any", "a * b", "a - b", "test_sharp")], tree)


def test_a_list_that_has_rotted_is_told(tree: Path) -> None:
    wrong = [
        mutant("gone", "a % b", "a - b", "test_sharp"),
        mutant("twice", "a", "b", "test_sharp"),
        mutant("idle", "a + b", "a + b", "test_sharp"),
        mutant("untested", "a + b", "a - b"),
        mutant("misnamed", "a + b", "a - b", "test_dull"),
        mutant("broken", "a + b", "a +", "test_sharp"),
        mutant("broken", "a + b", "b + a", "test_blunt"),
    ]
    told = list(problems(wrong, tree))
    for part in (
        "gone: its old text occurs 0 times",
        "twice: its old text occurs 3 times",
        "idle: it changes nothing",
        "untested: it names no test",
        "misnamed: there is no test tests/test_sums.py::test_dull",
        "broken: src/sums.py is no longer Python",
        "broken: two have this name",
    ):
        assert any(part in line for line in told), part
    assert len(told) == 7


def test_mutants_are_chosen_by_name() -> None:
    assert choose(None) == list(MUTANTS)
    assert [one.name for one in choose(["rho-halved"])] == ["rho-halved"]
    assert all(one.name.startswith("ledger-") for one in choose(["ledger-*"]))
    with pytest.raises(MutantError, match="no mutant nonsense"):
        choose(["nonsense"])
