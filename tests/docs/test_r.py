"""The functions for R read a release."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import dualquery as dq

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "r.md"
SCRIPT = """
answer <- dq_answer("out", "sex=f & age>=40")
stopifnot(nrow(answer) == 1, answer$low <= answer$answer, answer$answer <= answer$high)
stopifnot(dq_answer("out", "sex=f", given = "age>=40")$answer <= 1)
table <- dq_table("out", "sex", "age", where = "sex in {f, \\"it's\\"}")
stopifnot(abs(sum(table$share) - 1) < 1e-9, all(table$low <= table$high))
rows <- dq_rows("out", 50)
stopifnot(nrow(rows) == 50, identical(names(rows), c("sex", "age")), is.numeric(rows$age))
stopifnot(fromJSON("out/release.json")$privacy$delta == 1e-3)
failed <- tryCatch(dq_answer("out", "nonsense=1"), error = function(e) "refused")
stopifnot(identical(failed, "refused"))
cat("all of it holds")
"""


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_r_reads_a_release(tmp_path: Path) -> None:
    has_json = subprocess.run(["Rscript", "-e", "library(jsonlite)"], capture_output=True)
    if has_json.returncode:
        pytest.skip("R has no jsonlite")
    schema = dq.Schema(
        (
            dq.Attribute.categorical("sex", ["f", "m", "it's"]),
            dq.Attribute.numeric("age", [0, 40, 90]),
        )
    )
    rows = pa.table({"sex": ["f", "m", "it's", "f"] * 50, "age": [20, 50, 60, 80] * 50})
    dq.DualQuery(epsilon=9.0, delta=1e-3, marginals=(1, 2)).fit(rows, schema=schema).save(
        tmp_path / "out"
    )
    functions = re.findall(r"```r\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    (tmp_path / "ask.R").write_text(functions + SCRIPT)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["Rscript", "ask.R"], cwd=tmp_path, env={**os.environ, "PATH": path},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all of it holds")
