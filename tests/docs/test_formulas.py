"""Formulas are typeset: no raw one is left in a page, none is eaten by Markdown, all are drawn."""

from __future__ import annotations

import re

import markdown
import pytest
from tools.documents.formulas import CODE, mathml, typeset

from tests.browser.conftest import browser, open_page  # noqa: F401 - fixtures
from tests.docs.test_documents import DOCS

LISTS = ("mutants.md",)
"""One line per mutant, which quotes its code."""

PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if path.parent.name != "results" and path.name not in LISTS
)
RAW = re.compile(r"\$|[√Σ∫]|\w\^|(?<!\w)\w_[\w{]|\)_\w|\w[₀-₉]|\\[a-z]")
"""What only a formula has: dollars, roots, sums, indices, powers with a hat, names of LaTeX."""

ADDRESS = re.compile(r"\]\([^)]*\)|<a [^>]*>|<iframe[^>]*>|\{[^}]*\}")


def raw_formulas(page: str) -> list[str]:
    """The lines of a typeset page that have something of a formula outside code and MathML."""
    text = re.sub(r"<math .*?</math>", "", typeset(page), flags=re.S)
    text = ADDRESS.sub("", CODE.sub("", text))
    return [line for line in text.splitlines() if RAW.search(line)]


@pytest.mark.parametrize("page", PAGES)
def test_no_raw_formula_is_left(page: str) -> None:
    assert raw_formulas((DOCS / page).read_text(encoding="utf-8")) == []


def test_a_raw_formula_would_be_noticed() -> None:
    assert raw_formulas("Let $z^*$ be, and `z_1` is code.\n\n```sh\necho $PATH\n```\n") == []
    for raw in ("costs z^* twice", "of $z", "s_t draws", "is √(s+1)", "Σ over all", "is Q₁"):
        assert raw_formulas(f"fine\n{raw}\nfine") == [raw]


def test_pages_with_theorems_have_formulas() -> None:
    for page in PAGES:
        if page.startswith("proofs/"):
            assert typeset((DOCS / page).read_text(encoding="utf-8")).count("<math ") >= 8, page


def test_markdown_leaves_formulas_alone() -> None:
    """Stars, indices and bars mean something to Markdown, and so does a line that begins with <."""
    text = "Both $z^*$ and $w^*$, or $a_1$ and $b_1$\n$x$ or *$y$*."
    page = text + "\n\n| $|a|$ | $b_c$ |\n|--|--|\n| 1 | 2 |"
    html = markdown.markdown(typeset(page), extensions=["tables", "md_in_html", "attr_list"])
    assert html.count("<p>") == 1
    assert html.count("<math ") == html.count("</math>") == 8
    assert re.findall(r"<em>(.)", html) == ["<"]
    assert html.count("<th>") == 2


def test_signs_stand_where_they_belong() -> None:
    assert '<mo form="prefix">−</mo>' in mathml("Φ(−x)")
    assert "<mo>−</mo>" in mathml("a − x")
    assert "<mo>≤</mo>" in mathml("a ≤ b")
    assert "<mo>&#92;</mo>" in mathml(r"S \setminus A")
    assert "<mi>Bin</mi>" in mathml(r"\operatorname{Bin}(s, p)")
    first, second = re.findall(r'form="(\w+)"', mathml(r"\lvert a \rvert"))
    assert (first, second) == ("prefix", "postfix")


def test_what_is_not_understood_is_an_error() -> None:
    with pytest.raises(ValueError, match="not understood"):
        mathml(r"\nosuchname x")


def test_chromium_draws_them(open_page) -> None:  # noqa: F811 - the fixture
    """A root has a roof, a fraction two storeys, and an index stands lower and is smaller."""
    shown = {
        "letter": "x",
        "root": r"\sqrt{x}",
        "fraction": r"\frac{x}{x}",
        "index": "x_x",
        "sum": r"\sum_{i}^{n} x",
    }
    parts = "".join(f'<p id="{name}">{mathml(text, True)}' for name, text in shown.items())
    page = open_page(f"<!doctype html><meta charset=utf-8><style>p {{ margin: 0 }}</style>{parts}")
    height = {
        name: page.execute_script(
            "return document.querySelector(arguments[0]).getBoundingClientRect().height",
            f"#{name} math",
        )
        for name in shown
    }
    assert height["root"] > height["letter"] + 1
    assert height["fraction"] > 1.5 * height["letter"]
    assert height["sum"] > 2 * height["letter"]
    assert height["letter"] < height["index"] < height["fraction"]
