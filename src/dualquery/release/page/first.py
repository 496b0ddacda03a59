"""The question with which the page opens: one whose answer tells something."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.base.stored import Json
from dualquery.release.components import Components, joint, shares
from dualquery.release.published import Published

Floats = npt.NDArray[np.float64]

MOST_CODES = 12
"""The most codes of an attribute that is compared with others."""

LOOKED_AT = 30
"""Attributes that are compared with one another: those that draws named most often."""

FAIR = 0.05
"""A first condition holds for at least this share of the records, and of the others."""


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
    """What the explorer opens with: a condition, and the distribution that it changes most.

    Returns:
        Positions among the covered attributes: `conditions` as pairs of an attribute and codes,
        `show`, and `by`, which is nothing.
    """
    drawn = release.times_drawn
    place = {attribute: position for position, attribute in enumerate(covered)}
    order = sorted(covered, key=lambda a: -int(drawn[a]))
    among = sorted(a for a in order[:LOOKED_AT] if drawn[a])
    for one, other in strongest(release, components, among, 8):
        # The attribute with more values is shown, the other one says which records.
        asked, seen = sorted((one, other), key=lambda a: int(release.schema.sizes[a]))
        code = _telling_code(joint(components, asked, seen))
        if code is not None:
            return {"conditions": [[place[asked], [code]]], "show": place[seen], "by": None}
    return _plain(release, components, covered, order, place)


def _telling_code(table: Floats) -> int | None:
    """The row whose own distribution is farthest from that of all, among those that are fair."""
    rows = table.sum(axis=1)
    fair = np.flatnonzero((rows >= FAIR) & (rows <= 1.0 - FAIR))
    if not len(fair):
        return None
    if len(rows) == 2:
        return 1  # both tell as much, and people ask for those who do rather than those who do not
    apart = np.abs(table[fair] / rows[fair, None] - table.sum(axis=0)).sum(axis=1)
    return int(fair[int(np.argmax(apart))])


def _plain(
    release: Published,
    components: Components,
    covered: list[int],
    order: list[int],
    place: dict[int, int],
) -> Json:
    """The first attributes, as people expect, unless no draw named them."""
    drawn = release.times_drawn
    first = covered[0] if drawn[covered[0]] else order[0]
    sizes = release.schema.sizes
    telling = [a for a in covered if sizes[a] > 2 and a != first and drawn[a]]
    others = telling or [a for a in order if a != first] or [first]
    code = int(np.argmax(shares(components, first)))
    return {"conditions": [[place[first], [code]]], "show": place[others[0]], "by": None}
