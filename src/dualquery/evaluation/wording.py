"""The figures of `relations` as cells of text, for the terminal and for the page. NOT PRIVATE."""

from __future__ import annotations

from dualquery.evaluation.coverage import ALL, EMPTY, SIZES, STRENGTHS, Coverage, Held
from dualquery.evaluation.relations import NOTABLE, Closeness, Kept, Relations

NONE = "–"
"""A figure that does not exist, such as a correlation in a table without numbers."""

CLOSENESS_HEADS = ("relations", "answers", "rows")

NOTE = (
    "Total variation (TV), L1 and errors are 0 at best, the K-marginal score is 1000. What is kept "
    f"of a correlation is released / true, where the true one is above {NOTABLE:g}."
)

COVERAGE_NOTE = (
    "Percentages of true figures that lie in their 95 % intervals: all; by dependence in truth "
    "(the weakest half of the pairs, the next 40 %, the strongest tenth; cells that hold records, "
    "then empty ones); by records in the true cell or group."
)


def closeness_rows(found: Relations) -> list[list[str]]:
    """One line per figure: its name, that of the answers, that of the rows."""
    names = {
        "pairs": f"TV of {found.pairs:,} pairs, mean",
        "strongest": "TV of the tenth that depends most",
        "correlations": "error of correlations",
        "association": "error of Cramér's V",
        "triples_l1": f"L1 of {found.triples:,} triples, mean",
        "k_marginal": "K-marginal score",
    }
    kept = {
        "median": "kept of correlations, median",
        "lowest_tenth": "… lowest tenth",
        "lowest": "… lowest",
    }
    both = (found.answers, found.rows)
    lines = []
    for key, name in names.items():
        lines.append([name, *(_figure(one, key) for one in both)])
        if key == "correlations" and found.answers.kept is not None:
            lines += [
                [name, *(_figure(None if one is None else one.kept, part) for one in both)]
                for part, name in kept.items()
            ]
    return [line for line in lines if line[1] != NONE]


def _figure(one: Closeness | Kept | None, key: str) -> str:
    value: float | None = None if one is None else getattr(one, key)
    if value is None:
        return NONE
    return f"{value:.0f}" if key == "k_marginal" else f"{value:.4f}"


def coverage_heads(short: bool = False) -> tuple[str, ...]:
    """The heads of `coverage_rows`."""
    strengths = ("weak", "middle", "strong") if short else STRENGTHS
    return ("inside, %", ALL, *strengths, *SIZES)


def coverage_rows(coverage: Coverage) -> list[list[str]]:
    """One line per kind of figure: the percentage inside, overall, by strength and by size."""
    classes = (ALL, *STRENGTHS, *(f"size {size}" for size in SIZES))
    lines = []
    for kind, found in coverage.items():
        lines.append([kind, *(_percent(found, one) for one in classes)])
        empty = tuple(f"{one}, {EMPTY}" for one in STRENGTHS)
        if any(one in found for one in empty):
            sizes = [NONE] * len(SIZES)
            lines.append([f"… {EMPTY}", NONE, *(_percent(found, one) for one in empty), *sizes])
    return lines


def _percent(found: dict[str, Held], name: str) -> str:
    held = found.get(name)
    return NONE if held is None else f"{100 * held.share:.1f}"
