"""How far one record can move the counts of a workload. Public: it reads the queries alone.

A record cannot satisfy everything that is asked. Of the cells of one marginal it satisfies one. So
noise on all counts may be smaller than if every count could move. It is a bound: the farthest
record is not searched for.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from dualquery.baselines.baseline import Floats
from dualquery.baselines.universe import Group, groups_of
from dualquery.privacy.neighbours import Neighbours
from dualquery.workloads.workload import Workload


def reach(different: Workload, neighbours: Neighbours) -> int:
    """A number of counts, of which no neighbour moves more, each by at most one.

    Guarantee: the counts of neighbours are at most `reach` apart in L1, and √`reach` in L2.

    Two queries exclude each other if they want different codes of one attribute. So the queries on
    some attributes are sorted by the attributes of which they want a single code. Within such a
    class a record satisfies at most the queries that want one combination of these codes.

    Args:
        different: the queries that are counted, each of them once.
        neighbours: whether a record is replaced, or one is added or removed.
    """
    records = 1 if neighbours is Neighbours.ADD_REMOVE else 2
    return sum(_in_group(group, records) for group in groups_of(different))


def _in_group(group: Group, records: int) -> int:
    """How many queries on the same attributes so many records satisfy at most."""
    if len(group.positions) == 1:
        return 1
    codes = [np.where(_single(group, one), one.argmax(axis=1), -1) for one in group.factors]
    asked = Counter(zip(*(column.tolist() for column in codes), strict=True))
    classes: dict[tuple[bool, ...], list[int]] = {}
    for combination, number in asked.items():
        classes.setdefault(tuple(code >= 0 for code in combination), []).append(number)
    return sum(sum(sorted(numbers)[-records:]) for numbers in classes.values())


def _single(group: Group, factor: Floats) -> npt.NDArray[np.bool_]:
    """Per query, whether one code alone satisfies its literal, and no other code the query.

    A parity compares its literals, so a code of one attribute never excludes it.
    """
    found: npt.NDArray[np.bool_] = ((factor != 0.0).sum(axis=1) == 1) & ~group.parity
    return found
