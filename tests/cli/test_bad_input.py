"""Bad input: one line that names the culprit, exit code 2, nothing left behind."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualquery.release.frames import write_table


def refused(done, files, *words: str) -> None:
    assert done.code == 2, done.err
    line = done.err.strip().splitlines()[-1]
    assert line.startswith("error: ")
    assert "Traceback" not in done.err
    for word in words:
        assert word in line, line
    assert not (files / "out").exists()
    assert not (files / "out.partial").exists()
    assert not [f for f in files.iterdir() if f.name.startswith(".out")]


def changed(files, rows: pa.Table, column: str, cells: list) -> str:
    """The table with the first cells of one column replaced."""
    whole = [*cells, *rows.column(column).to_pylist()[len(cells) :]]
    if not all(isinstance(c, int | float | None) for c in whole):
        whole = [None if c is None else str(c) for c in whole]
    table = rows.set_column(rows.column_names.index(column), column, pa.array(whole))
    write_table(table, files / "changed.csv")
    return files / "changed.csv"


def test_an_unknown_column(files, release, rows) -> None:
    write_table(rows.drop_columns(["age"]), files / "narrow.csv")
    refused(release(table=files / "narrow.csv"), files, "'age'", "no column")


def test_a_value_outside_the_domain(files, release, rows) -> None:
    table = changed(files, rows, "sex", ["Martian"])
    refused(release(table=table), files, "'sex'", "a cell is outside", "Female, Male", "--show")
    table = changed(files, rows, "age", [999])
    refused(release(table=table), files, "'age'", "a cell is outside", "0 to 120")
    assert release("--out-of-domain", "clamp", table=table).code == 0


def test_out_of_domain_missing(files, release, rows) -> None:
    table = changed(files, rows, "work class", ["Other"])
    assert release("--out-of-domain", "missing", table=table).code == 0


def test_out_of_domain_missing_without_a_bucket(files, release, rows) -> None:
    table = changed(files, rows, "sex", ["Martian"])
    # Whether anything is released must not depend on one cell: it counts as the default.
    assert release("--out-of-domain", "missing", table=table).code == 0


def test_an_unknown_treatment(files, release) -> None:
    refused(release("--out-of-domain", "drop"), files, "out_of_domain", "'drop'", "clamp")


def test_a_word_in_a_numeric_column(files, release, rows) -> None:
    table = changed(files, rows, "age", ["old"])
    refused(release(table=table), files, "'age'", "a cell is not a number")


def test_a_pattern_needs_a_public_header(files, release, run) -> None:
    """With one-hot columns one person's new diagnosis adds a column to the header."""
    (files / "wide.csv").write_text("icd_I10,icd_E11,age\n" + "0,1,33\n1,0,44\n" * 200)
    (files / "wide.toml").write_text(
        '[attributes.age]\nedges = [0, 50, 120]\n[binary_columns]\npattern = "icd_*"\n'
    )
    wide = {"table": files / "wide.csv", "schema": files / "wide.toml"}
    words = ("'icd_*'", "prefix and count", "--public-header")
    refused(release("--k", 1, **wide), files, *words)
    done = release("--k", 1, "--public-header", **wide)
    assert done.code == 0, done.err
    assert "'icd_*' were read off the table's header" in done.out
    stated = json.loads((files / "out" / "release.json").read_text())
    assert stated["privacy"]["public_header"] == ["icd_*"]
    assert list(stated["schema"]["attributes"]) == ["age", "icd_I10", "icd_E11"]
    page = (files / "out" / "report.html").read_text()
    assert "<code>icd_*</code> were read off the table" in page
    assert "this statement does not cover them" in page
    assert run("evaluate", files / "out", files / "wide.csv").code == 0


def test_names_that_are_declared_need_no_public_header(files, release) -> None:
    (files / "wide.csv").write_text("m_1,m_0\n" + "0,1\n1,0\n" * 200)
    (files / "wide.toml").write_text('[binary_columns]\nprefix = "m_"\ncount = 2\n')
    done = release("--k", 1, table=files / "wide.csv", schema=files / "wide.toml")
    assert done.code == 0, done.err
    assert "header" not in done.out
    page = (files / "out" / "report.html").read_text()
    assert "What each column can hold was declared before the table was read." in page
    stated = json.loads((files / "out" / "release.json").read_text())
    assert list(stated["schema"]["attributes"]) == ["m_0", "m_1"]


def test_an_empty_table(files, release, rows) -> None:
    write_table(rows.slice(0, 0), files / "empty.csv")
    refused(release(table=files / "empty.csv"), files, "no rows")


@pytest.mark.parametrize(
    ("edges", "word"), [("[0, 50, 50, 120]", "zero width"), ("[0, 90, 50]", "rising order")]
)
def test_bad_edges(files, release, edges: str, word: str) -> None:
    schema = files / "bad.toml"
    schema.write_text(f"[attributes.age]\nedges = {edges}\n")
    refused(release(schema=schema), files, "'age'", word)


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--epsilon", "0", "epsilon"),
        ("--epsilon", "-1", "epsilon"),
        ("--epsilon", "nan", "epsilon"),
        ("--delta", "0", "delta"),
        ("--delta", "1", "delta"),
        ("--delta", "1.5", "delta"),
        ("--epsilon", "1e-5", "would be enough"),
        ("--rounds", "1", "rounds"),
        ("--samples", "0", "samples"),
        ("--eta", "-2", "eta"),
        ("--queries", "0", "queries"),
        ("--k", "9", "k = 9"),
        ("--oracle", "delphi", "delphi"),
        ("--neighbours", "friends", "friends"),
        ("--neighbours", "add-remove", "rows"),
        ("--accountant", "kpmg", "kpmg"),
        ("--free", "lunch", "lunch"),
        ("--rounds", "many", "--rounds"),
        ("--colour", "red", "--colour"),
        ("--workload", "nowhere.txt", "nowhere.txt"),
        ("--marginals", "one", "expected numbers of attributes, such as 1,2"),
        ("--marginals", "1,9", "marginals = 9; expected 1 to 6"),
        ("--focus", "smokr", "did you mean 'smoker'"),
        ("--focus", "sex,sex", "each once"),
        ("--ledger", "nowhere.sqlite", "nowhere.sqlite"),
        ("--schema", "nowhere.toml", "nowhere.toml"),
    ],
)
def test_bad_options(files, release, option: str, value: str, word: str) -> None:
    refused(release(option, value), files, word)


def test_options_that_ask_for_two_things(files, release) -> None:
    (files / "mine.txt").write_text("smoker=1\n")
    both = ("--marginals", "1,2", "--workload", files / "mine.txt")
    refused(release(*both), files, "a workload lists the queries itself; leave marginals out")
    refused(release("--marginals", "1", "--k", 2), files, "whole marginals and k random")
    more = ("--workload", files / "mine.txt", "--queries", 5)
    refused(release(*more), files, "leave queries out")
    refused(release("--workload", files / "mine.txt", "--focus", "age"), files, "'age', which no")
    refused(release("--player", "record", "--focus", "age"), files, "it needs player = model")


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--queries", "0", "queries"),
        ("--queries", "-3", "queries"),
        ("--k", "0", "k = 0"),
        ("--k", "9", "k = 9"),
        ("--rows", "0", "rows"),
    ],
)
def test_a_plan_of_nothing(files, run, option: str, value: str, word: str) -> None:
    done = run(
        "plan", "--schema", files / "schema.toml", "--rows", 1000, "--epsilon", 1,
        "--delta", 1e-3, option, value,
    )  # fmt: skip
    refused(done, files, word)


def test_an_evaluation_with_an_unknown_treatment(files, release, run) -> None:
    assert release().code == 0
    done = run("evaluate", files / "out", files / "table.csv", "--out-of-domain", "bogus")
    assert done.code == 2
    assert done.err == ("error: out_of_domain = 'bogus'; expected one of refuse, clamp, missing\n")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (pa.array([{"x": 1}] * 1000), ("holds struct in a cell",)),
        (pa.array([[1]] * 1000), ("holds list in a cell",)),
        (pa.array([2**62] * 1000), ("a cell is outside", "0 to 120")),
        (pa.array([b"x"] * 1000), ("a cell is not a number",)),
        (pa.array([3600] * 1000, pa.duration("s")), ("a cell is outside", "0 to 120")),
    ],
    ids=["struct", "list", "2^62", "bytes", "duration"],
)
def test_odd_columns_of_a_parquet_file(files, release, rows, cells, words) -> None:
    table = rows.set_column(rows.column_names.index("age"), "age", cells)
    pq.write_table(table, files / "odd.parquet")
    refused(release(table=files / "odd.parquet"), files, "column 'age'", *words)


def test_padding_and_add_remove_do_not_go_together(run, files) -> None:
    """A padded table has a fixed size, so adding a person replaces an empty record."""
    (files / "pairs.csv").write_text("person,item\na,x\nb,y\nb,x\n")
    (files / "wide.toml").write_text('[binary_columns]\nnames = ["x", "y"]\n')
    common = (
        "release", files / "pairs.csv", "--schema", files / "wide.toml", "--epsilon", 50,
        "--delta", 1e-3, "--out", files / "out", "--queries", 9, "--long", "person,item",
        "--neighbours", "add-remove", "--rows", 3, "--k", 1,
    )  # fmt: skip
    refused(run(*common, "--records", 4), files, "records", "add-remove")
    assert run(*common).code == 0
    done = run("evaluate", files / "out", files / "pairs.csv", "--long", "person,item", "--json")
    assert done.code == 0


def test_a_query_on_an_unknown_attribute(files, release) -> None:
    (files / "mine.txt").write_text("smoker\nheight>=2\n")
    refused(release("--workload", files / "mine.txt"), files, "line 2", "'height'")


def test_literals_that_contradict(files, release) -> None:
    (files / "mine.txt").write_text("sex=Male & sex=Female\n")
    refused(release("--workload", files / "mine.txt"), files, "'sex'", "contradict")


def test_a_truncated_parquet_file(files, release, rows) -> None:
    pq.write_table(rows, files / "whole.parquet")
    whole = (files / "whole.parquet").read_bytes()
    (files / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    refused(release(table=files / "cut.parquet"), files, "cut.parquet")


def test_a_damaged_parquet_page(files, release, rows) -> None:
    """The footer is whole, so the damage shows only when rows are read."""
    pq.write_table(rows, files / "whole.parquet")
    damaged = bytearray((files / "whole.parquet").read_bytes())
    damaged[4:400] = bytes(396)
    (files / "bad.parquet").write_bytes(damaged)
    refused(release(table=files / "bad.parquet"), files, "bad.parquet")


def test_an_output_directory_that_exists(files, release) -> None:
    (files / "out").mkdir()
    (files / "out" / "keep").write_text("x")
    done = release()
    assert done.code == 2
    assert "exists" in done.err
    assert (files / "out" / "keep").read_text() == "x"
    assert release("--overwrite").code == 2
    assert (files / "out" / "keep").read_text() == "x"


def test_an_unwritable_place(files, release) -> None:
    done = release("--out", files / "table.csv" / "out")
    assert done.code == 2
    assert "error: " in done.err


def test_bad_questions(run, files, release) -> None:
    release("--quiet")
    for query, word in (("heigt=1", "'heigt'"), ("sex=", "value")):
        done = run("answer", files / "out", query)
        assert done.code == 2
        assert word in done.err
    done = run("answer", files, "smoker")
    assert done.code == 2
    assert "not a release" in done.err
    for rows, name, word in ((0, "a.csv", "rows = 0"), (5, "a.xls", "a.xls")):
        done = run("sample", files / "out", "--rows", rows, "--out", files / name)
        assert done.code == 2
        assert word in done.err
        assert not (files / name).exists()
    done = run("evaluate", files / "out", files / "nowhere.csv")
    assert done.code == 2
