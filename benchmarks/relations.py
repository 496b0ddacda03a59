"""Relations between columns: how much of them a release keeps, and whether its intervals hold.

    python -m benchmarks relations                      all parts, RUNS seeded runs each
    python -m benchmarks relations mixed35              one of them (or relations.mixed35)
    DUALQUERY_RUNS=1 DUALQUERY_ROWS=5000 python -m benchmarks relations mixed35 --json FILE

Asked and judged are 100,000 random 3-way conjunctions, δ = 10⁻⁶, replace-one. The plan's rule
chooses everything else. `DUALQUERY_RUNS` says how many runs are averaged, `DUALQUERY_ROWS` cuts
generated tables to so many rows, `DUALQUERY_QUERIES` asks fewer queries. All figures are those of
`dualquery.evaluation.relations`: `answers_…` of the released answers, `rows_…` of synthetic rows.
`seconds` are the processor's for the release alone. A row per kind of figure says which share of
the true figures lies in the 95 % intervals, by class; a class that does not occur is None.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from benchmarks.relation_tables import KNOWN, Made, fresh_a, fresh_b, mixed35, strong86, wide_code
from benchmarks.tables import data_folder, missing, public_table, true_answers
from dualquery.base.errors import QueryError
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.evaluation.coverage import CLASSES, Held
from dualquery.evaluation.fidelity import cramers_v
from dualquery.evaluation.joint import correlation, numbers_of, shares_of
from dualquery.evaluation.relations import Closeness, Relations, relations
from dualquery.paper.datasets.catalogue import DATA_SETS
from dualquery.paper.datasets.encoded import EncodedTable
from dualquery.paper.demo.survey import example
from dualquery.release.page.distributions import MOST_PAIRS
from dualquery.release.page.first import strongest
from dualquery.release.release import Release
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.workloads.generators import random_marginals

Rows = list[dict[str, Any]]
Figures = dict[str, float]
Codes = npt.NDArray[np.int32]

RUNS = int(os.environ.get("DUALQUERY_RUNS", "5"))
MOST_ROWS = int(os.environ.get("DUALQUERY_ROWS", "0"))
QUERIES = int(os.environ.get("DUALQUERY_QUERIES", "100000"))
DELTA = 1e-6


class Judge:
    """One table, its codes and its true answers, which are counted once."""

    def __init__(self, source: Any, schema: Schema) -> None:
        self.table = source if isinstance(source, EncodedTable) else _kept(source, schema)
        self.schema = self.table.schema
        every = list(range(len(self.schema)))
        self.rows = EncodedRows.read(self.table, self.schema, every, OutOfDomain.CLAMP)
        self.workload = random_marginals(self.schema, 3, QUERIES)
        self.truth = true_answers(self.table, self.workload)

    def release(self, seed: int, epsilon: float, settings: dict[str, Any]) -> Release:
        job = DualQuery(
            **{"epsilon": epsilon, "delta": DELTA, "out_of_domain": "clamp", "seed": seed}
            | settings
        )
        asked = None if "queries" in settings else self.workload
        return job.fit(self.table, schema=self.schema, workload=asked)

    def errors(self, release: Release, sample: Codes) -> Figures:
        """Of the answers, and of shares in synthetic rows, over all conjunctions."""
        away = np.abs(release.answers(self.workload, unknown="default") - self.truth)
        drawn = DrawnRows(self.schema, sample)
        apart = np.abs(true_answers(drawn, self.workload) - self.truth)
        return {
            "answers_max_error": float(away.max()),
            "answers_average_error": float(away.mean()),
            "rows_max_error": float(apart.max()),
            "rows_average_error": float(apart.mean()),
        }


class DrawnRows:
    """Synthetic codes as a table, so that queries can be counted on them."""

    def __init__(self, schema: Schema, codes: Codes) -> None:
        self.schema, self.codes = schema, codes

    def bind(self, schema: Schema) -> Schema:
        return schema

    def blocks(self, schema: Schema, attributes: Any, out_of_domain: OutOfDomain) -> Any:
        from dualquery.rows.table import blocks_of_codes

        return blocks_of_codes(self.codes, attributes)


def _kept(source: Any, schema: Schema) -> EncodedTable:
    if MOST_ROWS and hasattr(source, "slice"):
        source = source.slice(0, MOST_ROWS)
    return EncodedTable(source, schema, OutOfDomain.CLAMP)


More = Callable[[Judge, Release, Codes], Figures]


def measured(
    name: str,
    judge: Judge,
    *,
    epsilon: float = 1.0,
    settings: dict[str, Any] | None = None,
    more: More | None = None,
) -> Rows:
    """Means over seeded runs: a row of figures, then a row per kind of interval."""
    found: dict[str, list[float]] = {}
    held: dict[str, dict[str, Held]] = {}
    for seed in range(RUNS):
        begun = time.process_time()
        made = judge.release(seed, epsilon, settings or {})
        figures: Figures = {"seconds": time.process_time() - begun}
        begun = time.process_time()
        sample = made.sample_codes(judge.rows.rows, np.random.default_rng(seed))
        figures["seconds_of_rows"] = time.process_time() - begun
        figures |= judge.errors(made, sample)
        result = relations(made, judge.rows, sample=sample)
        assert result is not None  # all tables have two columns
        figures |= dict(_flat(result))
        if more is not None:
            figures |= more(judge, made, sample)
        for key, value in figures.items():
            found.setdefault(key, []).append(value)
        for kind, classes in (result.coverage or {}).items():
            for one, own in classes.items():
                before = held.setdefault(kind, {}).get(one, Held(0, 0))
                held[kind][one] = Held(before.figures + own.figures, before.inside + own.inside)
    of = {"name": name, "epsilon": epsilon, "runs": RUNS}
    shape = {"table_rows": judge.rows.rows, "columns": len(judge.schema)}
    means = {key: float(np.mean(values)) for key, values in found.items()}
    return [of | shape | means, *(of | _covered(kind, own) for kind, own in held.items())]


def _flat(result: Relations) -> Iterator[tuple[str, float]]:
    for whose, found in (("answers", result.answers), ("rows", result.rows)):
        if found is not None:
            yield from ((f"{whose}_{key}", value) for key, value in _figures(found))


def _figures(found: Closeness) -> Iterator[tuple[str, float]]:
    for key, value in asdict(found).items():
        if isinstance(value, dict):
            yield from ((f"{key}_{part}", float(own)) for part, own in value.items())
        elif value is not None:
            yield key, float(value)


def _covered(kind: str, found: dict[str, Held]) -> dict[str, Any]:
    """The share inside by class, and how many figures there were in all runs."""
    shares = {one: found[one].share if one in found else None for one in CLASSES}
    counts = {f"figures, {one}": found[one].figures if one in found else 0 for one in CLASSES}
    return {"intervals": kind} | shares | counts


def generated(name: str, make: Callable[[], Made], more: More | None = None) -> Rows:
    table, schema = make()
    return measured(name, Judge(table, schema), more=more)


def known_relations(judge: Judge, release: Release, sample: Codes) -> Figures:
    """What is left of each known relation: a correlation, or else Cramér's V."""
    drawn = EncodedRows(len(sample), {a: sample[:, a].astype(np.uint8) for a in range(35)})
    found: Figures = {}
    for names in KNOWN:
        first, second = (judge.schema.position(name) for name in names)
        tables = [
            next(shares_of(rows, judge.schema, [(first, second)])) for rows in (judge.rows, drawn)
        ]
        tables.insert(1, release.cross_table(*names).share)
        x, y = (numbers_of(release, a) for a in (first, second))
        if x is not None and y is not None:
            true, ours, rows = (correlation(one, x, y) or 0.0 for one in tables)
        else:
            true, ours, rows = (cramers_v(one) for one in tables)
        label = "-".join(names)
        found |= {f"true {label}": true, f"kept {label}, answers": ours / true}
        found[f"kept {label}, rows"] = rows / true
    return found


def shown_cells(judge: Judge, release: Release, sample: Codes) -> Figures:
    """Cells of the pairs that the page shows, in the intervals that it shows.

    The page gives the distribution of one column within each value of the other. A value that the
    release holds for impossible has no line there; a value that no private record has is left out.
    """
    schema, rows = judge.schema, judge.rows
    named = [a for a in range(len(schema)) if release.actions.named[a]]
    cells, inside, worst = 0, 0, 1.0
    for pair in strongest(release, release.components, named, MOST_PAIRS):
        down, across = sorted(pair, key=lambda a: -int(schema.sizes[a]))
        if schema.sizes[pair[0]] == schema.sizes[pair[1]]:
            down, across = pair
        joint = next(shares_of(rows, schema, [(down, across)]))
        own, held = 0, 0
        for code in np.flatnonzero(joint.sum(axis=1) > 0.0).tolist():
            where = Query("conjunction", (Literal(down, (code,)),))
            try:
                found = release.cross_table(schema.names[across], where=where)
            except QueryError:
                continue
            true = joint[code] / joint[code].sum()
            own += len(true)
            held += int(((true >= found.low - 1e-12) & (true <= found.high + 1e-12)).sum())
        cells, inside, worst = cells + own, inside + held, min(worst, held / own)
    return {"cells_shown": cells, "shown_inside": inside / cells, "shown_inside_lowest": worst}


def demo() -> Rows:
    """The shipped demo, with its own number of queries."""
    from dualquery.cli.demo import QUERIES as ASKED

    table, schema = example()
    judge = Judge(table, schema)
    return measured("demo", judge, settings={"queries": ASKED}, more=shown_cells)


def census() -> Rows:
    folder = data_folder()
    if not (folder / "acs35.csv.gz").is_file():
        return missing("acs35")
    schema = Schema.load(folder / "acs35-domain.json")
    return measured("acs35", Judge(str(folder / "acs35.csv.gz"), schema))


def adult(epsilon: float) -> Rows:
    found = public_table("adult")
    if found is None:
        return missing("adult")
    table, schema = found
    name = f"adult-{epsilon:g}"
    return measured(name, Judge(table, schema), epsilon=epsilon, more=boosted_trees)


def boosted_trees(judge: Judge, release: Release, sample: Codes) -> Figures:
    """How well trees guess the income of a third of the private rows: the area under the curve.

    They are trained on as many synthetic rows as there are private ones, with the values that
    `sample` writes, and on the other two thirds. The release has seen the rows that are guessed; at
    the ε of interest that is of no help.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.metrics import roc_auc_score
    except ImportError:
        return {}
    schema, place = judge.schema, judge.schema.position("income")
    file = DATA_SETS["adult"].find() or data_folder() / DATA_SETS["adult"].file
    real = _values(csv.read_csv(file), schema)
    real = real[np.random.default_rng(0).permutation(len(real))]
    test, train = real[: len(real) // 3], real[len(real) // 3 :]
    made = _values(release.sample(len(real), seed=0, kind="pyarrow"), schema)
    words = [not one.is_numeric for a, one in enumerate(schema.attributes) if a != place]

    def area(rows: npt.NDArray[np.float64]) -> float:
        trees = HistGradientBoostingClassifier(categorical_features=words, random_state=0)
        trees.fit(np.delete(rows, place, axis=1), rows[:, place])
        chance = trees.predict_proba(np.delete(test, place, axis=1))[:, 1]
        return float(roc_auc_score(test[:, place], chance))

    return {"trees_after_rows": area(made), "trees_after_private_rows": area(train)}


def _values(table: pa.Table, schema: Schema) -> npt.NDArray[np.float64]:
    """Numbers as they are, words as their place in the domain."""
    columns = []
    for one in schema.attributes:
        cells = table.column(one.name).to_pylist()
        if not one.is_numeric:
            cells = [one.code_of_value(cell) for cell in cells]
        columns.append(np.array(cells, dtype=np.float64))
    return np.column_stack(columns)


PARTS: dict[str, Callable[[], Rows]] = {
    "mixed35": partial(generated, "mixed35", mixed35, known_relations),
    "demo": demo,
    "acs35": census,
    "adult": partial(adult, 1.0),
    "adult-10": partial(adult, 10.0),
    "adult-1000": partial(adult, 1000.0),
    "strong86": partial(generated, "strong86", strong86),
    "wide-code": partial(generated, "wide-code", wide_code),
    "fresh-a": partial(generated, "fresh-a", fresh_a),
    "fresh-b": partial(generated, "fresh-b", fresh_b),
}


def run() -> Rows:
    return [row for part in PARTS.values() for row in part()]
