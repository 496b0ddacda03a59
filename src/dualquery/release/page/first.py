"""The question with which the page opens: one whose answer tells something."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.base.stored import Json
from dualquery.domain.attributes import Attribute
from dualquery.domain.query import Literal, Query
from dualquery.release.components import Components, joint, shares
from dualquery.release.published import Published

Floats = npt.NDArray[np.float64]

MOST_CODES = 12
"""The most codes of an attribute that is compared with others."""

LOOKED_AT = 30
"""Attributes that are compared with one another: those that draws named most often."""

FAIR = 0.05
"""A first condition holds for at least this share of the records, and of the others."""

PAIRS = 24
"""Pairs of attributes that may give the first question."""

TRIED = 24
"""Candidates whose intervals are looked at."""

EASY = 4.0
"""How much better a share of a yes/no column reads than that of another one."""


def strongest(
    release: Published, components: Components, among: list[int], most: int
) -> list[tuple[int, int]]:
    """Pairs of attributes that tell most about each other in the synthetic data."""
    sizes = release.schema.sizes
    few = [a for a in among if 2 <= sizes[a] <= MOST_CODES]
    # Attributes of few records look dependent by chance, the more so the larger their table. This
    # is the expected information per degree of freedom if they are independent.
    chance = 1.0 / (2.0 * len(components.weights)) if components.kind == "records" else 0.0
    scored = [
        (
            _information(joint(components, a, b)) - chance * float((sizes[a] - 1) * (sizes[b] - 1)),
            a,
            b,
        )
        for a, b in combinations(few, 2)
    ]
    scored.sort(key=lambda entry: (-round(entry[0], 9), entry[1], entry[2]))
    return [(a, b) for information, a, b in scored[:most] if information > 1e-6]


def _information(table: Floats) -> float:
    """The mutual information of a two-way table, in nats."""
    independent = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    held = table > 1e-15
    return float(np.sum(table[held] * np.log(table[held] / independent[held])))


def first_question(release: Published, components: Components, covered: list[int]) -> Json:
    """What the page opens with: a share in a group that differs most from the share of all.

    It is chosen from released figures alone. A difference counts as far as it goes beyond its
    interval, so that noise is not taken for news.

    Returns:
        Positions among the covered attributes: `of` with its `codes`, and `where` as a list of
        conditions.
    """
    drawn = release.times_drawn
    place = {attribute: position for position, attribute in enumerate(covered)}
    order = sorted(covered, key=lambda a: -int(drawn[a]))
    among = sorted(a for a in order[:LOOKED_AT] if drawn[a])
    found = [
        one
        for pair in strongest(release, components, among, PAIRS)
        for asked, seen in (pair, pair[::-1])
        for one in _candidates(release, components, asked, seen)
    ]
    found.sort(key=lambda one: (-round(one.weight * one.apart, 12), one.asked, one.seen))
    best = max(found[:TRIED], key=lambda one: _beyond(release, one), default=None)
    if best is not None and _beyond(release, best) > 0.0:
        where = {"attribute": place[best.asked], "codes": list(best.group), "negated": False}
        return {"of": place[best.seen], "codes": [best.code], "where": [where]}
    first = covered[0] if drawn[covered[0]] else order[0]
    code = 1 if release.schema.attributes[first].is_binary else int(
        np.argmax(shares(components, first))
    )  # fmt: skip
    return {"of": place[first], "codes": [code], "where": []}


@dataclass(frozen=True)
class _Candidate:
    """The share of a code in a group, beside its share of all.

    Attributes:
        asked: the attribute that makes the group.
        group: its codes.
        seen: the attribute of the share.
        code: its code.
        apart: how far the two shares are apart.
        weight: what makes a difference comparable with others: with it, it is a correlation.
    """

    asked: int
    group: tuple[int, ...]
    seen: int
    code: int
    apart: float
    weight: float


def _candidates(
    release: Published, components: Components, asked: int, seen: int
) -> list[_Candidate]:
    """Groups that are neither rare nor nearly all, and values that are not bins."""
    attribute, other = release.schema.attributes[asked], release.schema.attributes[seen]
    if other.is_numeric or (other.ordered and not other.is_binary):
        return []
    table = joint(components, asked, seen)
    every = table.sum(axis=0)
    codes = [1] if other.values == (0, 1) else list(range(other.proper_size))
    found = []
    for group in _groups(attribute):
        rows = table[list(group)].sum(axis=0)
        size = float(rows.sum())
        if not FAIR <= size <= 1.0 - FAIR:
            continue
        for code in codes:
            share, apart = float(every[code]), float(rows[code] / size - every[code])
            if not 0.0 < share < 1.0:
                continue
            weight = float(np.sqrt(size / (1.0 - size) / (share * (1.0 - share))))
            easy = EASY if other.values == (0, 1) else 1.0
            found.append(_Candidate(asked, group, seen, code, abs(apart), easy * weight))
    return found


def _groups(attribute: Attribute) -> list[tuple[int, ...]]:
    """Sets of codes that people name: one value, or all from a value on, or all below it."""
    count = attribute.proper_size
    if attribute.values == (0, 1):
        return [(1,)]
    if attribute.is_numeric or attribute.ordered:
        upper = [tuple(range(cut, count)) for cut in range(1, count)]
        return upper + [tuple(range(cut)) for cut in range(1, count)]
    return [(code,) for code in range(count)]


def _beyond(release: Published, one: _Candidate) -> float:
    """How far a difference goes beyond the intervals of its two shares, made comparable."""
    target = Query("conjunction", (Literal(one.seen, (one.code,)),))
    group = Query("conjunction", (Literal(one.asked, one.group),))
    figures = [release.questions.share(target, group), release.questions.share(target)]
    reach = sum(
        (figure.high - figure.low) / 2.0
        for figure in figures
        if figure.low is not None and figure.high is not None
    )
    return one.weight * (abs(float(figures[0]) - float(figures[1])) - reach)
