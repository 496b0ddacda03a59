"""The journal under attack: no bit, no cut and no tail makes a round be drawn again."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dualquery.base.errors import ReleaseError
from dualquery.game import journal as journals
from dualquery.game.journal import Journal
from dualquery.game.moves import RecordMove
from dualquery.privacy.sampler import Draws

RUN = {"rounds": 3}
DRAWS = [Draws(np.array([3 + t, 1]), np.array([True, False])) for t in range(3)]
MOVES = [
    RecordMove(np.array([t, 2], dtype=np.int32), t, bound=None, status="feasible") for t in range(3)
]


def written(folder: Path, draws: int, moves: int) -> dict[str, bytes]:
    """The files of a journal with so many rounds drawn and answered."""
    journal = Journal.create(folder, RUN, b"counts")
    for number in range(draws):
        journal.write_draws(number, DRAWS[number])
        if number < moves:
            journal.write_move(number, MOVES[number])
    journal.close()
    return {name: (folder / name).read_bytes() for name in ("run.json", "rounds.bin", "used.bin")}


def put(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


def outcome(folder: Path, files: dict[str, bytes], used: int, whole: bytes) -> str:
    """What a resume does with these files: it must refuse, or go on as if nothing had been."""
    put(folder, files)
    try:
        journal = Journal.resume(folder, RUN, b"counts")
    except ReleaseError as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert "\n" not in said
        for name, content in files.items():  # nothing was changed
            assert (folder / name).read_bytes() == content
        return "refused"
    assert journal.rounds_drawn >= used, "a round that was used would be drawn again"
    for number in range(journal.rounds_drawn):
        np.testing.assert_array_equal(journal.draws(number).queries, DRAWS[number].queries)
        np.testing.assert_array_equal(journal.draws(number).negated, DRAWS[number].negated)
    for number in range(3):
        if journal.draws(number) is None:
            journal.write_draws(number, DRAWS[number])
        if journal.move(number) is None:
            journal.write_move(number, MOVES[number])
        assert journal.move(number).notes() == MOVES[number].notes()
    journal.close()
    assert (folder / "rounds.bin").read_bytes() == whole
    assert (folder / "used.bin").stat().st_size == 3  # only its length tells anything
    return "continued"


class Bench:
    """One run, as it is on disk after every frame; its identity makes the bytes comparable."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        class Fixed:
            hex = "f" * 32

        monkeypatch.setattr(journals.uuid, "uuid4", Fixed)
        monkeypatch.setattr(journals.secrets, "token_bytes", lambda length: b"k" * length)
        # What is tested here is what is read; that it is synced is tested elsewhere.
        monkeypatch.setattr(os, "fsync", lambda handle: None)
        self.folder = folder / "j"
        self.states = {}
        for draws, moves in ((0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (3, 3)):
            self.states[draws, moves] = written(folder / f"{draws}{moves}", draws, moves)
        self.whole = self.states[3, 3]["rounds.bin"]
        self.folder.mkdir()

    def outcome(self, state: tuple[int, int], **changed: bytes) -> str:
        files = dict(self.states[state])
        for name, content in changed.items():
            files[name.replace("_", ".")] = content
        return outcome(self.folder, files, state[0], self.whole)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_intact_journals_go_on(bench: Bench) -> None:
    for state in bench.states:
        assert bench.outcome(state) == "continued"


@pytest.mark.parametrize("state", [(1, 0), (1, 1), (2, 1)])
def test_no_flipped_bit_is_taken_for_the_end(bench: Bench, state: tuple[int, int]) -> None:
    """All bits of the draws are covered: of a round that was used, none may be believed."""
    content = bench.states[state]["rounds.bin"]
    draws_end = len(bench.states[state[0], max(0, state[0] - 1)]["rounds.bin"])
    # Every bit of the last frame's head, and one of every seventh byte elsewhere; the slow test
    # flips them all.
    bits = {8 * byte + byte % 8 for byte in range(0, len(content), 7)}
    last = len(bench.states[state[0] - 1, state[0] - 1]["rounds.bin"])
    bits |= set(range(8 * last, 8 * (last + 36)))
    for bit in sorted(bits):
        expected = "refused" if bit // 8 < draws_end else "continued"  # a move can be made again
        assert bench.outcome(state, rounds_bin=flipped(content, bit)) == expected, bit


@pytest.mark.slow
@pytest.mark.parametrize("state", [(1, 0), (2, 2)])
def test_every_single_bit_and_every_cut(bench: Bench, state: tuple[int, int]) -> None:
    for name in ("rounds.bin", "run.json", "used.bin"):
        content = bench.states[state][name]
        for bit in range(8 * len(content)):
            bench.outcome(state, **{name.replace(".", "_"): flipped(content, bit)})
    for length in range(len(bench.states[state]["rounds.bin"])):
        bench.outcome(state, rounds_bin=bench.states[state]["rounds.bin"][:length])


@pytest.mark.parametrize("state", [(1, 0), (2, 2)])
def test_cut_anywhere(bench: Bench, state: tuple[int, int]) -> None:
    content = bench.states[state]["rounds.bin"]
    draws_end = len(bench.states[state[0], state[0] - 1]["rounds.bin"])
    near = range(draws_end - 40, draws_end + 40)
    for length in sorted({*range(0, len(content), 5), *near} - {len(content)}):
        if length > len(content):
            continue
        expected = "refused" if length < draws_end else "continued"
        assert bench.outcome(state, rounds_bin=content[:length]) == expected, length
    # Fewer marks than rounds: killed between the draws and their mark.
    assert bench.outcome(state, used_bin=b"." * (state[0] - 1)) == "continued"
    assert bench.outcome(state, used_bin=b"") == "continued"


@pytest.mark.parametrize("state", [(0, 0), (2, 2)])
def test_a_write_that_never_ended_is_cut_off(bench: Bench, state: tuple[int, int]) -> None:
    """The next round's draws, as far as they got; they were never used."""
    drawn = state[0]
    content = bench.states[state]["rounds.bin"]
    more = bench.states[drawn + 1, drawn]["rounds.bin"]
    for length in (*range(len(content), len(more), 5), len(more)):
        assert bench.outcome(state, rounds_bin=more[:length]) == "continued"
        torn = more[:length] + bytes(
            len(more) - length
        )  # the file has grown, but the content was never written
        assert bench.outcome(state, rounds_bin=torn) == "continued"
    for bit in range(
        8 * len(content), 8 * (len(content) + 16)
    ):  # the head of the frame was never written
        assert bench.outcome(state, rounds_bin=flipped(more, bit)) == "continued", bit


@pytest.mark.parametrize("state", [(1, 0), (1, 1), (2, 2)])
def test_tails_of_zeros_and_noise(bench: Bench, state: tuple[int, int]) -> None:
    content = bench.states[state]["rounds.bin"]
    noise = np.random.default_rng(1).bytes(4096)
    for length in (1, 15, 16, 31, 32, 33, 100, 4096):
        for tail in (bytes(length), b"\xff" * length, noise[:length]):
            assert bench.outcome(state, rounds_bin=content + tail) == "continued"
            assert bench.outcome(state, used_bin=b"." * state[0] + tail) == "refused"


def test_frames_that_are_repeated_left_out_or_moved(bench: Bench) -> None:
    ends = [len(bench.states[key]["rounds.bin"]) for key in bench.states]
    frames = [bench.whole[a:b] for a, b in pairwise(ends)]
    head = bench.whole[: ends[0]]
    for order in ([0, 0], [0, 1, 0, 1], [0, 1, 2, 2], [2, 3], [0, 2], [1, 0, 2, 3], [0, 1, 4]):
        marks = b"." * sum(index % 2 == 0 for index in order)
        joined = head + b"".join(frames[index] for index in order)
        assert bench.outcome((0, 0), rounds_bin=joined, used_bin=marks) == "refused", order


def test_a_frame_out_of_turn_is_refused_even_if_its_digest_is_right(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "j", RUN)
    journal.write_draws(0, DRAWS[0])
    with pytest.raises(ReleaseError):
        journal.write_draws(1, DRAWS[1])
    for kind, number in ((b"draw", 0), (b"draw", 1), (b"move", 1), (b"what", 0)):
        size = os.fstat(journal._handle).st_size
        chain = journal._chain
        journal._write(kind, number, {"queries": np.array([1]), "negated": np.array([True])})
        journal._chain = chain
        journal.close()
        with pytest.raises(ReleaseError, match="damaged"):
            Journal.resume(tmp_path / "j", RUN)
        os.truncate(tmp_path / "j" / "rounds.bin", size)
        journal = Journal.resume(tmp_path / "j", RUN)
    journal.close()


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"7", b"null", b'"x"', b"{}", b'{"id": 1, "run": {}}', b"{", b"\xff\xfe",
     b"[" * 99999, b'{"format": 2, "digest": "", "content": {}}',
     b'{"format": 2, "digest": 3, "content": []}', b'{"format": 3, "digest": "", "content": {}}'],
)  # fmt: skip
def test_a_run_file_that_is_something_else(bench: Bench, text: bytes) -> None:
    assert bench.outcome((2, 1), run_json=text) == "refused"
    with pytest.raises(ReleaseError):
        journals.begun(bench.folder)


def test_every_bit_of_the_run_file_counts(bench: Bench) -> None:
    content = bench.states[1, 0]["run.json"]
    for bit in range(0, 8 * len(content), 3):
        # A bit of white space, or of the case of a hexadecimal digit, changes nothing.
        changed = flipped(content, bit)
        try:
            same = json.loads(changed) == json.loads(content)
        except ValueError:
            same = False
        assert bench.outcome((1, 0), run_json=changed) == ("continued" if same else "refused")


def test_files_that_are_gone(bench: Bench) -> None:
    for name in ("rounds.bin", "used.bin"):
        put(bench.folder, bench.states[2, 1])
        (bench.folder / name).unlink()
        with pytest.raises(ReleaseError):
            Journal.resume(bench.folder, RUN)
    # Draws without run.json: a new run there would draw again what may have been used.
    put(bench.folder, bench.states[2, 1])
    (bench.folder / "run.json").unlink()
    with pytest.raises(ReleaseError, match=r"holds draws but no run\.json"):
        Journal.create(bench.folder, RUN)
    assert (bench.folder / "rounds.bin").read_bytes() == bench.states[2, 1]["rounds.bin"]


def test_another_table_is_noticed_and_only_a_keyed_digest_of_it_is_kept(tmp_path: Path) -> None:
    for name in "ab":
        Journal.create(tmp_path / name, RUN, b"counts").close()
    kept = [json.loads((tmp_path / name / "run.json").read_text())["content"] for name in "ab"]
    assert kept[0]["counts"]["digest"] != kept[1]["counts"]["digest"]  # the key is random
    with pytest.raises(ReleaseError, match="another table"):
        Journal.resume(tmp_path / "a", RUN, b"others")
    Journal.resume(tmp_path / "a", RUN, b"counts").close()
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    for file in (tmp_path / "a").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
