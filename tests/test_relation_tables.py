"""The tables of `python -m benchmarks relations`, and how its parts are named and kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.__main__ import chosen, keep
from benchmarks.relation_tables import KNOWN, fresh_a, fresh_b, mixed35, strong86, wide_code
from benchmarks.relations import PARTS

from dualquery.evaluation.fidelity import cramers_v
from dualquery.evaluation.joint import shares_of
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.opening import open_table


@pytest.mark.parametrize(
    ("make", "width", "widest"),
    [(mixed35, 35, 40), (strong86, 86, 10), (wide_code, 9, 2000), (fresh_a, 24, 14),
     (fresh_b, 24, 14)],
)  # fmt: skip
def test_every_cell_is_in_its_declared_domain(make, width: int, widest: int) -> None:
    """Nothing is clamped: reading refuses what is outside."""
    table, schema = make(2_000)
    assert (table.num_rows, len(schema), int(schema.sizes.max())) == (2_000, width, widest)
    found = EncodedRows.read(open_table(table), schema, range(width))
    assert found.rows == 2_000
    assert table.equals(make(2_000)[0])  # the seed is fixed


def test_the_known_relations_are_there() -> None:
    table, schema = mixed35(20_000)
    rows = EncodedRows.read(open_table(table), schema, range(len(schema)))
    numbers = []
    for one, other in KNOWN[:7]:
        cells = (table.column(name).to_numpy().astype(float) for name in (one, other))
        numbers.append(abs(float(np.corrcoef(*cells)[0, 1])))
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] > 0.98
    assert 0.2 < numbers[-1] < 0.25
    for one, other in KNOWN[7:10]:  # one determines the other
        (joint,) = shares_of(rows, schema, [(schema.position(one), schema.position(other))])
        assert cramers_v(joint) == pytest.approx(1.0)
    (joint,) = shares_of(rows, schema, [tuple(schema.position(name) for name in KNOWN[10])])
    assert (joint[:, 1] > 0).sum() == 1


def test_strong_pairs_are_strong() -> None:
    table, schema = strong86()
    rows = EncodedRows.read(open_table(table), schema, range(40))
    for pair in range(20):
        (joint,) = shares_of(rows, schema, [(2 * pair, 2 * pair + 1)])
        assert joint.max(axis=1).sum() > 0.95  # how often the second is guessed right


def test_parts_follow_the_name_of_their_module() -> None:
    assert list(chosen(["relations", "demo", "fresh-a"])) == ["relations.demo", "relations.fresh-a"]
    assert list(chosen(["relations.demo", "sampler"])) == ["relations.demo", "sampler"]
    assert list(chosen(["relations"])) == ["relations"]
    assert chosen(["relations", "demo"])["relations.demo"] is PARTS["demo"]
    with pytest.raises(SystemExit, match="no benchmark 'demo'"):
        chosen(["demo"])


def test_figures_are_kept_beside_earlier_ones(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    keep(file, {"a": [{"x": 1}]})
    keep(file, {"b": [{"x": 2}], "a": [{"x": 3}]})
    assert json.loads(file.read_text()) == {"a": [{"x": 3}], "b": [{"x": 2}]}


def test_a_benchmark_without_its_packages_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others run all the same: `accuracy` needs none of them."""
    from benchmarks import __main__ as command

    whole = command.import_module

    def without_polars(name: str) -> object:
        if name == "benchmarks.reading":
            raise ModuleNotFoundError("No module named 'polars'", name="polars")
        return whole(name)

    monkeypatch.setattr(command, "import_module", without_polars)
    assert "accuracy" in command.chosen(["accuracy"])
    with pytest.raises(SystemExit, match="'reading' needs polars: pip install --group dev"):
        command.chosen(["reading"])["reading"]()
