"""What users of scikit-learn and of notebooks expect, and what mistakes are told."""

from __future__ import annotations

import pickle
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.base.errors import DualQueryError
from dualquery.domain.schema import Schema
from dualquery.estimator import watching
from tests.release.page.releases import HOSTILE, hostile_schema, made_release


def job(**more) -> dq.DualQuery:
    settings = {"rounds": 2, "samples": 5, "errors": False, "queries": 50, "measure": False}
    return dq.DualQuery(epsilon=1.0, delta=1e-3, **{**settings, **more})


@pytest.fixture(scope="module")
def fitted(schema: Schema, rows: pa.Table, tmp_path_factory) -> dq.DualQuery:
    file = tmp_path_factory.mktemp("schema") / "schema.toml"
    schema.save(file)
    made = job(player="record", refit=False)
    made.fit(rows, schema=str(file))
    return made


def test_what_fit_made_stays_with_the_estimator(fitted: dq.DualQuery) -> None:
    assert isinstance(fitted.release_, dq.Release)
    assert fitted.sample(7, seed=1).num_rows == 7
    with pytest.raises(DualQueryError, match="nothing was fitted yet; call fit first"):
        job().sample(3)


def test_parameters_by_name() -> None:
    made = job(seed=3)
    assert made.get_params()["seed"] == 3
    assert set(made.get_params()) >= {"epsilon", "delta", "neighbours", "rounds"}
    assert made.set_params(epsilon=2.0, seed=None) is made
    assert (made.epsilon, made.seed) == (2.0, None)
    with pytest.raises(dq.ParameterError, match="no setting 'epsilom'; did you mean 'epsilon'"):
        made.set_params(epsilom=1.0)
    assert made.epsilon == 2.0


def test_scikit_learn_clones_it(fitted: dq.DualQuery) -> None:
    base = pytest.importorskip("sklearn.base")
    again = base.clone(fitted)
    assert again == fitted
    assert again is not fitted
    with pytest.raises(DualQueryError, match="call fit first"):
        again.sample(3)  # a clone has the settings, not the result


def test_everything_can_be_pickled(fitted: dq.DualQuery) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    assert again == fitted
    assert again.release_.answer("smoker") == fitted.release_.answer("smoker")
    assert pickle.loads(pickle.dumps(fitted.release_.schema)) == fitted.release_.schema


class Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)

    def handle_data(self, data) -> None:
        self.texts.append(data)


def test_notebooks_show_tables_in_which_every_text_is_text() -> None:
    release = made_release(hostile_schema(), 5, private=False)
    for shown, words in (
        (release.schema, HOSTILE[0]),
        (release, "answers come from"),
        (release.privacy, "NOT PRIVATE"),
    ):
        read = Cells()
        read.feed(shown._repr_html_())
        assert set(read.tags) <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
        assert words in " ".join(read.texts)


def test_progress(monkeypatch, schema: Schema, rows: pa.Table, capsys) -> None:
    told: list[str] = []
    job(player="record", refit=False).fit(
        rows, schema=schema, progress=lambda stage, done, total: told.append(stage)
    )
    assert told
    with watching.watched(True) as show:
        show("playing", 1, 2)
    assert "playing" in capsys.readouterr().err
    for silent in (False, None):
        with watching.watched(silent) as show:
            show("playing", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_notebook_shows_progress_by_itself(monkeypatch) -> None:
    shown: list[str] = []

    class Cell:
        def update(self, what) -> None:
            shown.append(what._repr_html_())

    monkeypatch.setattr(watching, "in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda what, display_id: Cell())
    for asked in (None, True):
        with watching.watched(asked) as show:
            for done in range(3):
                show("<playing>", done, 3)  # the same stage soon after is not worth telling
        first, last = shown
        assert first == (
            '<small><progress value="0" max="3"></progress> &lt;playing&gt; 0/3</small>'
        )
        assert "released in" in last
        shown.clear()


def test_bad_progress(schema: Schema, rows: pa.Table) -> None:
    with pytest.raises(dq.ParameterError, match="progress = 3; expected True, False"):
        job().fit(rows, schema=schema, progress=3)


# Mistakes, each told in one sentence before any work is done


def refused(ask) -> str:
    with pytest.raises(DualQueryError) as caught:
        ask()
    text = str(caught.value)
    assert "\n" not in text
    assert "--" not in text  # an option that a caller in Python does not have
    return text


def test_a_schema_that_is_none(schema: Schema, rows: pa.Table, tmp_path: Path) -> None:
    told = refused(lambda: job().fit(rows, schema={"sex": 2}))
    assert told == "schema is a dict; expected a Schema, or the path of a schema file"
    assert "nowhere.toml" in refused(lambda: job().fit(rows, schema=tmp_path / "nowhere.toml"))


def test_a_private_number_of_rows(schema: Schema, rows: pa.Table) -> None:
    """Python names an argument, the command line an option."""
    for more in ({"neighbours": "add-remove"}, {"unit": "age", "most_records": 2}):
        with pytest.raises(dq.ParameterError, match=r"a public reference size with rows=$") as told:
            job(**more).fit(rows, schema=schema)
        assert told.value.on_the_command_line.endswith("a public reference size with --rows")


def test_marginals_as_a_text(schema: Schema) -> None:
    """As `focus` may be one; a text used to be read letter by letter."""
    assert job(queries=None, marginals="1,2").tuning.interest.marginals == (1, 2)
    assert "such as 1,2" in refused(lambda: job(queries=None, marginals="one").plan(9, schema))


def test_results_are_short_when_shown(fitted: dq.DualQuery, rows: pa.Table) -> None:
    found = dq.evaluate(fitted.release_, rows)
    assert repr(found).startswith("<Evaluation of 50 queries, NOT PRIVATE: maximum error 0.")
    assert str(fitted.release_.privacy) == fitted.release_.privacy.text()


def test_an_existing_directory(schema: Schema, rows: pa.Table, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    told = refused(lambda: job().release(rows, tmp_path / "out", schema=schema))
    assert told.endswith("exists; choose another name or say overwrite=True")
    unread = object()  # nothing looks at the table before that
    refused(lambda: job().release(unread, tmp_path / "out", schema=schema))


def test_an_unfinished_run(schema: Schema, rows: pa.Table, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    told = refused(lambda: job().fit(object(), schema=schema, directory=tmp_path / "run"))
    assert "holds an unfinished run; continue it with resume=True" in told


def test_a_missing_ledger(schema: Schema, tmp_path: Path) -> None:
    """Python names a function, the command line a command, and neither the other's."""
    with pytest.raises(DualQueryError, match="no ledger at") as caught:
        job().fit(object(), schema=schema, ledger=tmp_path / "ledger")
    assert "dualquery.Ledger.create(" in str(caught.value)
    assert "--" not in str(caught.value)
    assert "dualquery ledger" in caught.value.on_the_command_line
    dq.Ledger.create(tmp_path / "ledger", epsilon=1.0, delta=1e-6)


def test_rows_that_are_no_number(fitted: dq.DualQuery) -> None:
    assert refused(lambda: fitted.sample("10")) == "rows = '10'; expected a whole number"
    assert "expected a whole number" in refused(lambda: fitted.sample(2.5))


def test_a_header_that_must_be_public(rows: pa.Table) -> None:
    pattern = Schema((), patterns=("smok*",))
    assert "public_header=True" in refused(lambda: job().fit(rows, schema=pattern))


def test_columns_of_the_same_name(schema: Schema, rows: pa.Table) -> None:
    frame = rows.to_pandas()
    doubled = pd.concat([frame, frame[["sex"]]], axis=1)
    assert "'sex'" in refused(lambda: job().fit(doubled, schema=schema))


def test_a_workload_that_is_a_list_of_texts(fitted: dq.DualQuery) -> None:
    told = refused(lambda: fitted.release_.answers(["smoker"]))
    assert told.startswith("workload is a list; expected a Workload")


def test_fit_reads_a_file_of_queries_as_release_does(
    schema: Schema, rows: pa.Table, tmp_path: Path
) -> None:
    file = tmp_path / "asked.txt"
    file.write_text("smoker\nsex=Female & smoker\n")
    for named in (file, str(file)):
        made = job(queries=None, k=None).fit(rows, schema=schema, workload=named)
        assert len(made.workload) == 2


def test_what_is_no_workload_is_refused_in_one_line(
    fitted: dq.DualQuery, schema: Schema, rows: pa.Table
) -> None:
    told = "workload is a list; expected a Workload"
    made = job(queries=None, k=None)
    assert refused(lambda: made.fit(rows, schema=schema, workload=["smoker"])).startswith(told)
    assert refused(lambda: made.plan(100, schema, ["smoker"])).startswith(told)
    assert refused(lambda: dq.evaluate(fitted.release_, rows, ["smoker"])).startswith(told)
