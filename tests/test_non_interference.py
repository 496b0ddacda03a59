"""With the draws fixed, nothing that is published depends on the private table.

Measured tables, whose noise would have to be fixed too, have a test like it in
tests/game/test_tables.py.
"""

from __future__ import annotations

import uuid

import narwhals as nw
import numpy as np
import pyarrow as pa
import pytest

from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.game import journal, query_player
from dualquery.privacy.sampler import Draws
from dualquery.release.frames import decode

QUERIES = 400


def scripted(actions, samples, source) -> Draws:
    """A fixed sequence in place of the sampler; `source` tells the round apart."""
    random = np.random.default_rng(source.words(1))
    return Draws(random.integers(0, QUERIES, samples), random.random(samples) < 0.5)


def tables(schema: Schema, rows: int) -> list[pa.Table]:
    """Tables of one size that have nothing else in common."""
    random = np.random.default_rng(9)
    anything = random.integers(0, schema.sizes, (rows, len(schema)), np.int32)
    nothing = np.zeros((rows, len(schema)), np.int32)
    last = np.broadcast_to(schema.sizes - 1, (rows, len(schema))).astype(np.int32)
    return [decode(codes, schema) for codes in (anything, nothing, last)]


@pytest.mark.parametrize(
    "neighbours", [{}, {"neighbours": "add-remove", "rows": 500}], ids=["replace", "add-remove"]
)
@pytest.mark.parametrize(
    "play",
    [{"player": "record", "refit": False}, {"player": "record"}, {"measure": False}],
    ids=["records", "refit", "model"],
)
def test_releases_are_equal_byte_for_byte(
    tmp_path, schema: Schema, monkeypatch: pytest.MonkeyPatch, neighbours, play
) -> None:
    monkeypatch.setattr(query_player, "draw", scripted)
    job = DualQuery(epsilon=1.0, delta=1e-3, queries=QUERIES, seed=3, **neighbours, **play)
    contents, told = [], []
    for number, table in enumerate(tables(schema, 300)):
        out = tmp_path / f"release-{number}"
        seen: list[tuple[str, int, int]] = []
        job.release(
            table,
            out,
            schema=schema,
            progress=lambda *message, seen=seen: seen.append(message),
        )
        contents.append({file.name: file.read_bytes() for file in sorted(out.iterdir())})
        told.append(seen)
    assert contents[0] == contents[1] == contents[2]
    assert told[0] == told[1] == told[2]


def test_the_journal_too(tmp_path, schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies on disk while a run lasts is the draws and what follows from them."""
    monkeypatch.setattr(query_player, "draw", scripted)
    # Frames are sealed with the random name of their run, which no table has a part in.
    monkeypatch.setattr(journal.uuid, "uuid4", lambda: uuid.UUID(int=7))

    class Stop(Exception):
        pass

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "playing" and done == 3:
            raise Stop

    job = DualQuery(epsilon=1.0, delta=1e-3, queries=QUERIES, seed=1, measure=False)
    journals = []
    for number, table in enumerate(tables(schema, 300)):
        out = tmp_path / f"release-{number}"
        with pytest.raises(Stop):
            job.release(table, out, schema=schema, progress=stop)
        journals.append((tmp_path / f"release-{number}.partial" / "rounds.bin").read_bytes())
    assert journals[0] == journals[1] == journals[2]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_samples_too_down_to_their_types(schema: Schema, monkeypatch, kind: str) -> None:
    """What a reader infers from private cells, such as a missing one, is not in a sample."""
    monkeypatch.setattr(query_player, "draw", scripted)
    job = DualQuery(epsilon=1.0, delta=1e-3, queries=QUERIES, seed=3, measure=False)
    samples = []
    for table in tables(schema, 300):
        frame = table if kind == "pyarrow" else getattr(nw.from_native(table), f"to_{kind}")()
        if kind == "pandas" and not samples:  # and one with categories in an order of its own
            frame = frame.astype({"grade": "category"})
        sample = job.fit(frame, schema=schema).sample(50, seed=1)
        assert type(sample) is type(frame)
        samples.append(sample)
    for other in samples[1:]:
        if kind == "pandas":
            assert samples[0].dtypes.equals(other.dtypes)
        else:
            assert samples[0].schema == other.schema
        assert samples[0].equals(other)


def test_add_remove_hides_the_number_of_rows(
    tmp_path, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_player, "draw", scripted)
    job = DualQuery(
        epsilon=1.0, delta=1e-3, queries=QUERIES, seed=2, neighbours="add-remove", rows=500,
        measure=False,
    )  # fmt: skip
    contents = []
    for size in (300, 301):
        out = tmp_path / f"release-{size}"
        job.release(tables(schema, size)[0], out, schema=schema)
        contents.append({file.name: file.read_bytes() for file in sorted(out.iterdir())})
    assert contents[0] == contents[1]
