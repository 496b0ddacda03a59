"""What can be taken away: rows, codebook, description, and the release itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

WORDS = {
    "records.parquet": "a glimpse of synthetic rows",
    "release.json": "what was run, what is promised, and the digests of all files",
    "transcript.npz": "everything that was drawn and measured",
    "model.npz": "the model that answers",
    "workload.npz": "the queries that were asked",
}
"""What the files of a release directory are; `release.json` is written after the page."""

LOADING = (
    ("Python", 'import dualquery as dq\nrelease = dq.load("DIR")\nrelease.answer("…")\n'
     "rows = release.sample(10_000)"),
    ("R", 'install.packages("arrow")\nrows <- arrow::read_parquet("DIR/records.parquet")\n'
     '# or after `dualquery sample`\nrows <- read.csv("rows.csv")'),
    ("Command line", 'pip install dualquery\ndualquery answer DIR "…"\n'
     "dualquery sample DIR --rows 10000 --out rows.csv --describe"),
)  # fmt: skip


@dataclass(frozen=True)
class Beside:
    """A file that lies beside the page."""

    name: str
    size: int
    digest: str

    @classmethod
    def of(cls, path: Path) -> Beside:
        """The file at a path."""
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return cls(path.name, path.stat().st_size, digest)


def download(files: Sequence[Beside]) -> str:
    """Links to the files beside the page, two that the page makes itself, and how to load them."""
    rows = [
        '<tr><th scope="row">Codebook</th><td>each column and value, with their meaning</td>'
        '<td class="number" id="codebook-size"></td>'
        '<td><button type="button" id="codebook">codebook.csv</button></td></tr>',
        '<tr><th scope="row">Description</th><td>names, types and domains, as a Table Schema'
        '</td><td class="number" id="description-size"></td>'
        '<td><button type="button" id="description">tableschema.json</button></td></tr>',
    ]
    for one in files:
        rows.append(
            _row("Rows" if one.name == "records.parquet" else "Release", one.name, one.size)
        )
    if files:
        rows.append(_row("Release", "release.json", None))
    beside = (
        "<p>Links to files work where this page lies in the directory of its release, which is DIR "
        "below. Rows in any number come from <code>dualquery sample</code>; with "
        "<code>--describe</code> it also writes descriptions for data portals.</p>"
    )
    loading = "".join(
        f"<div><h3>{name}</h3><pre><code>{escape(code)}</code></pre></div>"
        for name, code in LOADING
    )
    return (
        '<table class="plain stacked"><thead><tr><th scope="col">what</th><th scope="col">it holds'
        '</th><th scope="col" class="number">size</th><th scope="col">file</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>{beside}"
        f'<div class="grid-of loading">{loading}</div>'
    )


def _row(what: str, name: str, size: int | None) -> str:
    shown = "" if size is None else size_words(size)
    return (
        f'<tr><th scope="row">{what}</th><td>{WORDS.get(name, "")}</td>'
        f'<td class="number">{shown}</td>'
        f'<td><a href="{escape(name)}" download>{escape(name)}</a></td></tr>'
    )


def size_words(size: int) -> str:
    """A size in bytes for people."""
    if size < 1000:
        return f"{size} bytes"
    if size < 1_000_000:
        return f"{size / 1000:.0f} kB"
    return f"{size / 1e6:.1f} MB"
