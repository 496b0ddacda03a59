"""A run that dies goes on with the draws it had, and a finished one is whole."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from dualquery.base.errors import ReleaseError
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.game.journal import Journal, _sealed, begun
from dualquery.game.moves import Momentum
from dualquery.game.transcript import Released
from dualquery.privacy.sampler import Draws

JOB = DualQuery(epsilon=2.0, delta=1e-3, rounds=6, samples=20, eta=3.0, queries=300, seed=4)


class Killed(Exception):
    pass


def killed_after(calls: int):
    """A progress observer that stops the run after so many calls."""
    seen = []

    def observer(stage: str, done: int, total: int) -> None:
        seen.append(stage)
        if len(seen) > calls:
            raise Killed

    return observer


def release_files(folder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.mark.parametrize("player", ["record", "model"])
@pytest.mark.parametrize("calls", range(8))
def test_a_killed_run_resumes_to_the_same_release(
    tmp_path, schema: Schema, rows: pa.Table, calls: int, player: str
) -> None:
    job = replace(JOB, player=player)
    whole = tmp_path / "whole"
    job.release(rows, whole, schema=schema)
    out = tmp_path / "out"
    with pytest.raises(Killed):
        job.release(rows, out, schema=schema, progress=killed_after(calls))
    assert not out.exists()
    begun = (tmp_path / "out.partial").exists()
    job.release(rows, out, schema=schema, resume=begun)
    assert release_files(out) == release_files(whole)
    assert not (tmp_path / "out.partial").exists()


def test_resumed_draws_are_not_drawn_again(tmp_path, schema: Schema, rows: pa.Table) -> None:
    """Without a seed, drawing again would give other draws. Those on disk must be released."""
    job = DualQuery(epsilon=2.0, delta=1e-3, rounds=6, samples=20, eta=3.0, queries=300)
    out = tmp_path / "out"
    with pytest.raises(Killed):
        job.release(rows, out, schema=schema, progress=killed_after(5))
    with pytest.raises(Killed):  # once more, in between
        job.release(rows, out, schema=schema, progress=killed_after(6), resume=True)
    journal = Journal.resume(tmp_path / "out.partial", begun(tmp_path / "out.partial"))
    kept = [journal.draws(number) for number in range(journal.rounds_drawn)]
    journal.close()
    assert len(kept) >= 3
    made = job.release(rows, out, schema=schema, resume=True)
    for drawn, played in zip(kept, made.transcript, strict=False):
        np.testing.assert_array_equal(drawn.queries, played.draws.queries)
        np.testing.assert_array_equal(drawn.negated, played.draws.negated)


def test_a_second_creator_leaves_the_first_ones_draws(tmp_path) -> None:
    first = Journal.create(tmp_path / "j", {})
    first.write_draws(0, Draws(np.array([3]), np.array([True])))
    size = (tmp_path / "j" / "rounds.bin").stat().st_size
    (tmp_path / "j" / "run.json").rename(tmp_path / "j" / "hidden")  # as if not yet written
    with pytest.raises(ReleaseError, match="another process"):
        Journal.create(tmp_path / "j", {})
    assert (tmp_path / "j" / "rounds.bin").stat().st_size == size
    first.close()


def test_resuming_with_other_temperatures_is_refused(
    tmp_path, schema: Schema, rows: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement is made from the plan's temperatures: they must be those of the draws."""
    from dualquery.game import plan

    out = tmp_path / "out"
    with pytest.raises(Killed):
        JOB.release(rows, out, schema=schema, progress=killed_after(4))
    monkeypatch.setattr(plan, "_entry", lambda rounds: np.full(rounds, 0.5))
    with pytest.raises(ReleaseError, match="with other temperatures: "):
        JOB.release(rows, out, schema=schema, resume=True)


def test_two_processes_cannot_share_a_journal(tmp_path) -> None:
    journal = Journal.create(tmp_path / "j", {})
    with pytest.raises(ReleaseError, match="another process"):
        Journal.resume(tmp_path / "j", {})
    journal.close()
    Journal.resume(tmp_path / "j", {}).close()


def test_resuming_something_else_is_refused(tmp_path, schema: Schema, rows: pa.Table) -> None:
    out = tmp_path / "out"
    with pytest.raises(Killed):
        JOB.release(rows, out, schema=schema, progress=killed_after(4))
    with pytest.raises(ReleaseError, match="unfinished run; continue it with resume=True"):
        JOB.release(rows, out, schema=schema)
    for changed, table, reason in (
        (JOB, rows.slice(1), "another table size: the run began with 1000, now it is 999"),
        (replace(JOB, rounds=5), rows, "another number of rounds: "),
        (replace(JOB, queries=301), rows, "another number of queries: "),
        (replace(JOB, seed=5), rows, "another seed"),
        (replace(JOB, k=2), rows, "(other weights of queries|another workload): "),
    ):
        with pytest.raises(ReleaseError, match=reason):
            changed.release(table, out, schema=schema, resume=True)
    fewer = Schema(schema.attributes[:-1])
    with pytest.raises(ReleaseError, match="another schema"):
        JOB.release(rows, out, schema=fewer, resume=True)
    JOB.release(rows, out, schema=schema, resume=True)


def test_nothing_to_resume(tmp_path, schema: Schema, rows: pa.Table) -> None:
    with pytest.raises(ReleaseError, match="run it again without resume"):
        JOB.release(rows, tmp_path / "out", schema=schema, resume=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("calls", [3, 5])
def test_a_killed_run_with_known_shares_resumes(
    tmp_path, schema: Schema, rows: pa.Table, calls: int
) -> None:
    # Its codes were a tuple, which the list of the journal never equals: every resume was refused.
    job = replace(JOB, player="model", known=("smoker = 0.3",))
    whole = job.release(rows, tmp_path / "whole", schema=schema)
    with pytest.raises(Killed):
        job.release(rows, tmp_path / "out", schema=schema, progress=killed_after(calls))
    assert (tmp_path / "out.partial").exists()
    with pytest.raises(ReleaseError, match="other known shares"):
        replace(job, known=("smoker = 0.4",)).release(
            rows, tmp_path / "out", schema=schema, resume=True
        )
    made = job.release(rows, tmp_path / "out", schema=schema, resume=True)
    assert made.answer("smoker") == whole.answer("smoker")
    assert release_files(tmp_path / "out") == release_files(tmp_path / "whole")


FORGERIES = {
    "a record of other codes": ("record", lambda move: replace(move, record=move.record + 2)),
    "codes that only other columns have": (
        "record",
        lambda move: replace(move, record=np.full_like(move.record, 2)),
    ),
    "a record from the end": ("record", lambda move: replace(move, record=move.record - 9)),
    "a model of another size": (
        "model",
        lambda move: replace(
            move,
            logits=move.logits[:-1],
            momentum=Momentum(move.momentum.mean[:-1], move.momentum.square[:-1]),
        ),
    ),
    "a momentum that has no root": (
        "model",
        lambda move: replace(
            move, momentum=replace(move.momentum, square=move.momentum.square - 1.0)
        ),
    ),
    "a momentum that leads beyond all numbers": (
        "model",
        lambda move: replace(move, momentum=replace(move.momentum, mean=move.momentum.mean + 1e30)),
    ),
    "a model without numbers": ("model", lambda move: replace(move, logits=move.logits * np.nan)),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_journal_with_forged_moves_is_refused(
    tmp_path, schema: Schema, rows: pa.Table, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digests are right, because it was forged before they were made."""
    player, forge = FORGERIES[name]
    write = Journal.write_move
    monkeypatch.setattr(
        Journal, "write_move", lambda self, number, move: write(self, number, forge(move))
    )
    job = replace(JOB, player=player)
    with pytest.raises(Killed):
        job.release(rows, tmp_path / "out", schema=schema, progress=killed_after(3))
    monkeypatch.undo()
    with pytest.raises(ReleaseError) as refused:
        job.release(rows, tmp_path / "out", schema=schema, resume=True)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("player", ["record", "model"])
@pytest.mark.parametrize("shift", [10**6, -(10**6), 2**62])
def test_a_journal_with_forged_draws_is_refused(
    tmp_path, schema: Schema, rows: pa.Table, player: str, shift: int, monkeypatch
) -> None:
    """Of queries that there are not: compiled code would follow them beyond its arrays."""
    write = Journal.write_released

    def forging(self: Journal, number: int, released: Released) -> None:
        draws = released.draws
        forged = Draws(np.append(draws.queries[:-1], shift), draws.negated)
        write(self, number, replace(released, draws=forged))

    monkeypatch.setattr(Journal, "write_released", forging)
    job = replace(JOB, player=player)
    with pytest.raises(Killed):
        job.release(rows, tmp_path / "out", schema=schema, progress=killed_after(3))
    monkeypatch.undo()
    with pytest.raises(ReleaseError, match="queries holds values"):
        job.release(rows, tmp_path / "out", schema=schema, resume=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("run", 3), ("run", None), ("id", 7), ("id", "../../x"), ("counts", "key"),
     ("counts", {"key": 3, "digest": "ab"}), ("counts", {"key": "ab"})],
)  # fmt: skip
def test_a_description_of_a_run_with_other_contents_is_refused(
    tmp_path, schema: Schema, rows: pa.Table, name: str, value: object
) -> None:
    """Its digest is right, because whoever forges a run can compute it."""
    with pytest.raises(Killed):
        JOB.release(rows, tmp_path / "out", schema=schema, progress=killed_after(2))
    file = tmp_path / "out.partial" / "run.json"
    content = json.loads(file.read_text())["content"]
    content[name] = value
    file.write_text(json.dumps(_sealed(content)))
    with pytest.raises(ReleaseError, match=r"run.json' was forged"):
        JOB.release(rows, tmp_path / "out", schema=schema, resume=True)
