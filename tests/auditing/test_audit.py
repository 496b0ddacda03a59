"""The audit finds nothing where nothing is wrong, and finds every old fault that is put back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from scipy import sparse

import dualquery as dq
from dualquery.auditing import hostile, pieces, scales, transcripts, unrelated
from dualquery.auditing.playing import Setting
from dualquery.auditing.report import NOT_PRIVATE
from dualquery.auditing.run import narrowed, smallest
from dualquery.auditing.worlds import Counter, Worlds
from dualquery.base.errors import ParameterError, TableError
from dualquery.estimator import job
from dualquery.estimator.settings import Mechanism
from dualquery.game import query_player
from dualquery.model import inside
from dualquery.privacy import measuring
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.noise import rounded_gaussian
from dualquery.privacy.shards import Shard
from dualquery.privacy.sources import SeededSource
from dualquery.privacy.unit import Persons
from dualquery.rows import csv_file, encoding, ids
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.marginals import Groups, Marginals
from tests.auditing.tables import SCHEMA, rows

MECHANISM = Mechanism(1.0, 1e-2, rows=3_000)


def fine(schema: dq.Schema = SCHEMA) -> np.ndarray:
    read = EncodedRows.read(open_table(rows()), schema.fine, range(len(schema)))
    return np.stack([read.columns[a].astype(np.int32) for a in range(len(schema))], axis=1)


def setting(mechanism: Mechanism = MECHANISM, apart: int = 1) -> Setting:
    return Setting(Worlds.of(SCHEMA, fine(), apart, mechanism.relation), mechanism)


def test_a_sound_release_passes(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    arrow_csv.write_csv(rows(), path)
    told: list[str] = []
    found = dq.audit(
        path, SCHEMA, unit="who", most_records=2, releases=100,
        progress=lambda stage, done, total: told.append(stage),
    )  # fmt: skip
    assert found.ok, found.text()
    assert all(one.holds for one in found.findings)
    assert "small releases" in told
    assert found["a"].figures["codes_changed"] == found["a"].figures["kept_records_changed"] == 0
    assert found["b"].figures["other_codes_changed"] == 0
    assert found["c"].figures["bytes_that_differ"] == 0
    assert found["e"].figures["mu_lower"] > 0
    assert str(found).startswith(NOT_PRIVATE)
    assert len(str(found).splitlines()) == 6
    listed = json.dumps(found.to_dict())
    assert json.loads(listed)["not_private"] == NOT_PRIVATE
    for cell in ("farmer", "north", "99.0"):
        assert cell not in str(found) + listed
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


def test_bad_requests_are_refused() -> None:
    with pytest.raises(ParameterError, match="releases = 5; expected at least 100"):
        dq.audit(rows(), SCHEMA, releases=5)
    with pytest.raises(TableError, match="a row per record"):
        dq.audit(sparse.csr_matrix(np.eye(4)), SCHEMA)
    with pytest.raises(TableError, match="fewer than 64 rows"):
        dq.audit(rows(30), SCHEMA)


# Readers


def planted(tmp_path: Path) -> dict[str, object]:
    return dict(hostile.look(open_table(rows()), SCHEMA, None, tmp_path).figures)


def test_a_block_that_falls_back_is_found(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cell that is no number makes words of all numbers in its block."""
    usual = encoding._judge_written_numbers

    def fallen(column, reader):
        found = usual(column, reader)
        odd = [cell is not None and not cell.replace(".", "").isdigit()
               for cell in column.to_pylist()]  # fmt: skip
        return encoding.Judged(np.full_like(found.codes, -1), found.cell) if any(odd) else found

    monkeypatch.setattr(encoding, "_judge_written_numbers", fallen)
    assert planted(tmp_path)["other_codes_changed"] > 0


def test_line_ends_that_cut_rows_are_found(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        csv_file.CsvTable,
        "_whole",
        lambda self, piece, lines, is_last=False: (piece.rfind(b"\n") + 1, piece.count(b"\n")),
    )
    assert planted(tmp_path)["other_codes_changed"] > 0


def test_ids_as_they_were_inferred_are_found(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of an id depends on the type that its column got from one other id."""
    usual = ids.coded_ids

    def inferred(cells, column, missing, **more):
        texts = [str(cell) for cell in cells.to_pylist()]
        odd = any(not text.isdigit() for text in texts)
        return usual(pa.chunked_array([[f"{t}.0" if odd else t for t in texts]]), column, missing)

    monkeypatch.setattr(ids, "id_text", repr)
    monkeypatch.setattr("dualquery.rows.persons.coded_ids", inferred)
    assert planted(tmp_path)["other_kept_records_changed"] > 0


def test_rows_that_depend_on_the_cut_are_found(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.csv"
    table = rows(200).append_column("note", pa.array(["two\nlines"] * 200))
    arrow_csv.write_csv(table, path)
    good = pieces.look(open_table(path), SCHEMA, OutOfDomain.REFUSE, Persons("who", 1))
    assert good.holds
    usual = csv_file.CsvTable.batches

    def short(self, names):
        for number, batch in enumerate(usual(self, names)):
            yield batch.slice(1) if number == 1 else batch

    monkeypatch.setattr(csv_file.CsvTable, "batches", short)
    found = pieces.look(open_table(path), SCHEMA, OutOfDomain.REFUSE, Persons("who", 1))
    assert found.holds is False
    assert found.figures["rows"] != found.figures["rows_in_pieces"]
    assert found.figures["kept_records_changed"] > 0


# What leaves the table


def test_a_file_with_a_true_count_is_found(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, few = rows(200), narrowed(SCHEMA, 3)
    mechanism = Mechanism(1.0, 1e-2, rows=200)
    monkeypatch.setattr(unrelated, "PLAYS", {"records": unrelated.PLAYS["records"]})
    (tmp_path / "good").mkdir()
    assert unrelated.look(table, few, mechanism, "refuse", tmp_path / "good").holds
    seen: list[int] = []
    begin, write = query_player.QueryPlayer.__init__, job.write_release

    def spying(self, answers, *rest, **more):
        seen.append(int(answers.counts.sum()))
        begin(self, answers, *rest, **more)

    def leaking(made, path, **more):
        write(made, path, **more)
        (path / "note.txt").write_text(str(seen[-1]))

    monkeypatch.setattr(query_player.QueryPlayer, "__init__", spying)
    monkeypatch.setattr(job, "write_release", leaking)
    (tmp_path / "bad").mkdir()
    found = unrelated.look(table, few, mechanism, "refuse", tmp_path / "bad")
    assert found.holds is False
    assert "note.txt of records" in found.told


# Noise


@pytest.mark.parametrize(
    "mechanism",
    [
        MECHANISM,
        Mechanism(1.0, 1e-2, "add-remove", rows=3_000),
        Mechanism(1.0, 1e-2, accountant="zcdp", rows=3_000),
        Mechanism(3.0, 1e-2, accountant="pure", rows=3_000),
        Mechanism(1.0, 1e-2, unit="who", most_records=2, rows=3_000),
        Mechanism(0.2, 1e-6, rows=3_000, accountant="per-round"),
    ],
    ids=["replace", "add", "zcdp", "pure", "persons", "draws alone"],
)
def test_right_noise_passes_and_its_bound_is_below_the_statement(mechanism: Mechanism) -> None:
    found = scales.look(setting(mechanism, mechanism.protected.influence), SeededSource(3))
    assert found.holds, found.told
    bound = transcripts.look(SCHEMA, fine(), mechanism, 100)
    assert bound.holds, bound.told
    if mechanism.accountant in ("gaussian", "zcdp"):
        assert bound.figures["mu_estimate"] > 0.6 * bound.figures["mu_stated"]


def smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        measuring,
        "rounded_gaussian",
        lambda sigma, size, source: rounded_gaussian(0.7 * sigma, size, source),
    )


def test_small_releases_fit_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smoothed sub-bins would take a second per release, and nothing of them is published."""
    few = smallest(SCHEMA, 4)
    assert few.names == SCHEMA.names
    np.testing.assert_array_equal(few.fine.sizes, few.sizes)
    monkeypatch.setattr(inside, "_smoothed", lambda *_: pytest.fail("it is smoothed"))
    found = transcripts.look(few, fine(few), MECHANISM, 100)
    assert found.figures["mu_lower"] > 0


def test_noise_that_is_smaller_than_stated_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    smaller(monkeypatch)
    found = scales.look(setting(), SeededSource(3))
    assert found.holds is False
    assert found.figures["noise_of_stated"] == pytest.approx(0.7, abs=0.03)
    bound = transcripts.look(SCHEMA, fine(), MECHANISM, 400)
    assert bound.holds is False, bound.told
    assert bound.figures["mu_lower"] > bound.figures["mu_stated"]


def test_draws_that_are_sharper_than_stated_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    score = Shard.score

    def sharper(self, counts, answers, temperature, **more):
        score(self, counts, answers, 1.2 * temperature, **more)

    monkeypatch.setattr(Shard, "score", sharper)
    assert scales.look(setting(), SeededSource(3)).holds is False


def test_noise_with_a_mean_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        measuring,
        "rounded_gaussian",
        lambda sigma, size, source: rounded_gaussian(sigma, size, source) + int(sigma),
    )
    assert scales.look(setting(), SeededSource(3)).holds is False


# Likelihoods


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("world", [0, 1])
def test_both_tables_are_counted_by_counting_one(neighbours: Neighbours, world: int) -> None:
    worlds = Worlds.of(SCHEMA, fine(), 5, neighbours)
    counter = Counter(worlds, world)
    for schema in (SCHEMA, SCHEMA.fine):
        marginals = Marginals(Groups.single(schema), np.array([[0, 1], [1, 2]], dtype=np.int32))
        counted = counter.tabulate(marginals)
        expected = [tabulate(one.encoded(schema), marginals) for one in worlds.tables]
        np.testing.assert_array_equal(counted, expected[world])
        for found, exact in zip(counter.both[-1], expected, strict=True):
            np.testing.assert_array_equal(found, exact)
    lost, gained = (one.codes[0] for one in worlds.lone if one is not None) if (
        neighbours is Neighbours.REPLACE_ONE
    ) else (worlds.lone[0].codes[0], None)  # fmt: skip
    assert gained is None or np.all(lost != gained)


def test_the_ratio_is_a_ratio_of_likelihoods() -> None:
    """Its inverse has the mean 1 on the first table, whatever the plan; and so on the second."""
    played = setting(apart=1)
    for world, sign in ((0, -1.0), (1, 1.0)):
        ratios = np.array([played.take(world, SeededSource(n)).ratio for n in range(250)])
        assert np.mean(np.exp(sign * ratios)) == pytest.approx(1.0, abs=0.15)
        # Of a Gaussian mechanism of size μ, the logarithm has the variance μ².
        assert np.std(ratios) == pytest.approx(played.stated, rel=0.15)
