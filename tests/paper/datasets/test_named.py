"""Public data sets by name: where they are found, how they are checked, what their bits are."""

from __future__ import annotations

import gzip
import hashlib
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dualquery.base.errors import ParameterError, TableError
from dualquery.domain.schema import Schema
from dualquery.paper.datasets import adult, catalogue, kdd99, netflix
from dualquery.paper.datasets.catalogue import DATA_SETS, DataSet
from dualquery.rows.counting import count_packed
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.rows.packed import PackedRows
from dualquery.workloads.generators import random_marginals

RAW = b"""39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, \
Male, 2174, 0, 40, United-States, <=50K
54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male, 0, 0, \
60, South, >50K

"""
PREPARED = (
    ",".join(adult.COLUMNS) + "\n"
    "39,State-gov,77516,Bachelors,13,Never-married,Adm-clerical,Not-in-family,White,Male,2174,0,"
    "40,United-States,<=50K\n"
).encode()


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """Adult with the checksum of two lines, published as a local file."""
    monkeypatch.delenv(catalogue.DATA_FOLDER, raising=False)
    monkeypatch.setenv(catalogue.CACHE_FOLDER, str(tmp_path / "cache"))
    (tmp_path / "adult.data").write_bytes(RAW)
    return replace(
        DATA_SETS["adult"],
        sha256=hashlib.sha256(PREPARED).hexdigest(),
        url=(tmp_path / "adult.data").as_uri(),
    )


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content))
    return path


def test_the_named_file_comes_before_the_folder_and_the_folder_before_the_cache(
    small: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = write(tmp_path / "given.csv.gz", PREPARED)
    folder = write(tmp_path / "folder" / "adult.csv.gz", PREPARED)
    cached = write(tmp_path / "cache" / "adult.csv.gz", PREPARED)
    assert small.locate() == cached
    monkeypatch.setenv(catalogue.DATA_FOLDER, str(tmp_path / "folder"))
    assert small.locate() == folder
    assert small.locate(given) == given
    assert small.locate(tmp_path / "folder") == folder
    with pytest.raises(TableError, match=r"no such file: .*nowhere"):
        small.locate(tmp_path / "nowhere.csv")


def test_nothing_is_fetched_unasked(small: DataSet) -> None:
    def refuse(url: str) -> io.BytesIO:
        raise AssertionError("fetched without being asked")

    with pytest.raises(TableError, match=r"to a folder with adult\.csv\.gz; or give"):
        small.locate(opener=refuse)


def test_a_download_is_prepared_checked_and_kept(small: DataSet, tmp_path: Path) -> None:
    path = small.locate(download=True)
    assert path == tmp_path / "cache" / "adult.csv.gz"
    assert gzip.decompress(path.read_bytes()) == PREPARED
    assert small.locate() == path
    assert [p.name for p in path.parent.iterdir()] == ["adult.csv.gz"]


def test_a_wrong_or_failed_download_leaves_nothing(small: DataSet, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="is not the published adult"):
        small.fetch(opener=lambda url: io.BytesIO(RAW.replace(b"39", b"40")))
    with pytest.raises(TableError, match="cannot download"):
        replace(small, url=(tmp_path / "gone").as_uri()).fetch()
    assert not list((tmp_path / "cache").iterdir())


def test_other_content_is_refused(small: DataSet, tmp_path: Path) -> None:
    other = write(tmp_path / "other.csv.gz", PREPARED + b"\n")
    with pytest.raises(TableError, match="not the published adult: its content has SHA-256"):
        small.locate(other)
    broken = tmp_path / "broken.csv.gz"
    broken.write_bytes(b"no gzip")
    with pytest.raises(TableError, match="cannot read"):
        small.locate(broken)


def test_kdd99_is_prepared_from_its_archive() -> None:
    line = b"0,tcp,http,SF" + b",0" * 37 + b",normal.\n"
    raw = io.BytesIO(gzip.compress(line + b"\n"))
    header, first = kdd99.prepare(raw)
    assert header.count(b",") == 41
    assert first == line.replace(b"normal.", b"normal")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ParameterError, match="expected one of adult, kdd99"):
        catalogue.get("iris")


def test_bits_are_those_of_the_paper() -> None:
    assert adult.schema().bit_counts.sum() == 235
    assert kdd99.schema().bit_counts.sum() == 396
    assert len(kdd99.schema()) == 41
    assert netflix.schema().bit_counts.sum() == 17_770
    assert [adult.schema()[name].size for name in ("workclass", "relationship")] == [8, 60]
    for name, value in adult.SEVENTEEN:
        assert adult.schema()[name].code_of(value) is not None
    assert len(set(adult.SEVENTEEN)) == 17


def test_bins_are_equal_and_the_last_is_closed() -> None:
    rate = kdd99.schema()["serror_rate"]
    assert [rate.code_of(v) for v in (0.0, 0.29, 0.3, 0.99, 1.0)] == [0, 2, 3, 9, 9]
    count_ = kdd99.schema()["dst_host_count"]
    assert [count_.code_of(v) for v in (0, 25, 26, 255)] == [0, 0, 1, 9]
    assert kdd99.schema()["service"].size == 65


def test_clamped_cells_go_where_the_paper_puts_them() -> None:
    import pyarrow as pa

    schema = Schema(tuple(kdd99.schema()[name] for name in ("service", "hot")))
    table = pa.table({"service": ["whois", "vmnet", "IRC"], "hot": [31, 30, 0]})
    (block,) = open_table(table).blocks(schema, [0, 1], OutOfDomain.CLAMP)
    assert block.codes(0).tolist() == [64, 64, 0]
    assert block.codes(1).tolist() == [9, 9, 0]


def test_real_adult_has_the_stated_rows(adult_file: Path) -> None:
    table, schema = catalogue.load("adult", adult_file)
    assert table.rows == adult.ROWS
    workload = random_marginals(schema, 3, 50)
    direct = PackedRows.pack(open_table(adult_file), schema, workload.literals)
    kept = PackedRows.pack(table, schema, workload.literals)
    assert np.array_equal(
        count_packed(direct, workload).counts, count_packed(kept, workload).counts
    )


# Netflix


def test_netflix_text_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalogue.CACHE_FOLDER, str(tmp_path / "cache"))
    folder = tmp_path / "training_set"
    folder.mkdir()
    (folder / "mv_0000001.txt").write_text("1:\n7,3,2005-09-06\n2649429,5,2005-05-13\n")
    (folder / "mv_0000003.txt").write_text("3:\n7,1,2004-01-01\n30,2,2004-01-02\n")
    matrix, schema = catalogue.load_netflix(folder)
    assert matrix.shape == (3, netflix.MOVIES)
    assert schema.names[2] == "movie_3"
    assert matrix[:, [0, 1, 2]].toarray().tolist() == [[1, 0, 1], [0, 0, 1], [1, 0, 0]]
    again, _ = catalogue.load_netflix(folder)
    assert (again != matrix).nnz == 0
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert PackedRows.pack(open_table(matrix), schema, random_marginals(schema, 3, 5).literals).rows


def test_netflix_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "combined.txt"
    file.write_text("2:\n5,1,2004-01-01\n\n1:\n5,4,2004-01-01\n6,4,2004-01-01\n")
    assert netflix.read_ratings(file, 2).toarray().tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("5,1,2004-01-01\n", "a rating before any"),
        ("1:\nx,1\n", "line 2: 'x,1'; expected"),
        ("9:\n5,1,2004-01-01\n", "film 9; expected 1 to 2"),
        ("", "no rating in"),
    ],
)
def test_netflix_errors_name_the_line(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mv.txt"
    file.write_text(content)
    with pytest.raises(TableError, match=message):
        netflix.read_ratings(file, 2)


def test_netflix_is_never_downloaded(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="cannot be downloaded"):
        catalogue.load_netflix(tmp_path / "nowhere")
    with pytest.raises(TableError, match=r"no \.txt file"):
        netflix.read_ratings(tmp_path)
