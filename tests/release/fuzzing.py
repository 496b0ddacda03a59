"""Releases changed at random, with their digests made right, put to everything that reads one.

`campaign` tries cases in a forked process. So a signal, a hang or a leak ends that process and not
the campaign, and the case it happened in is known. A case follows from its seed and number alone.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import io
import json
import os
import resource
import select
import shutil
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import dualquery as dq
from dualquery.base.errors import DualQueryError
from dualquery.cli.compare import Compared, _print
from dualquery.domain.query import Literal, Query
from dualquery.privacy.ledger import Mark
from dualquery.release.page.render import render_page
from dualquery.release.reading import read_asked
from dualquery.release.refitting import refitted
from dualquery.release.verifying import content_digest

DATA = Path(__file__).with_name("data")
KEPT = ("format-2-record", "format-2-model", "format-2-tables", "format-1-record")
PATIENCE = 120.0
"""Processor seconds after which a case counts as hanging; an honest refit takes about three."""

NASTY = (
    -1, 0, 1, 2, 7, 255, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), 10**12,
    0.5, -0.5, 1e-300, 1e30, 1e308, -1e308, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
WORDS = (None, True, False, "", "x", [], {}, [1], "=cmd", 10**12, 10**400, "\x1b[31m")


@dataclass
class Found:
    """What a campaign found.

    Attributes:
        refused: cases that were refused in one line.
        accepted: cases that everything was done with.
        wrong: per wrong case, its number and what happened.
        peak: the most memory that a process had, in kilobytes, and that of honest releases.
    """

    refused: int = 0
    accepted: int = 0
    wrong: list[tuple[int, str]] = field(default_factory=list)
    peak: int = 0
    honest: int = 0


def unpacked(name: str, to: Path) -> Path:
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        archive.extractall(to / name)
    return next((to / name).rglob("release.json")).parent


def private(schema: dq.Schema) -> pa.Table:
    """A table of random cells of a schema: what the curator's machine would hold.

    Two rows each are of one person, and every row has a weight.
    """
    rows, random = 80, np.random.default_rng(5)
    codes = np.column_stack([random.integers(0, size, rows) for size in schema.sizes])
    from dualquery.release.frames import records_table

    table = records_table(codes.astype(np.int32), schema)
    table = table.append_column("who", pa.array([f"p{i // 2}" for i in range(rows)]))
    return table.append_column("heavy", pa.array([i % 4 / 2 for i in range(rows)]))


def made(scratch: Path) -> Iterator[Path]:
    """Releases of today: each has arrays or descriptions that the others do not have."""
    from tests.game.test_wide import Sparse, biased, job
    from tests.release.page.releases import hostile_schema, made_release, with_forest

    with_forest(made_release(hostile_schema(), 30), 3).save(scratch / "forest")
    yield scratch / "forest"
    schema = dq.load(unpacked(KEPT[0], scratch / "of")).schema
    table = private(schema)
    run = dq.DualQuery(
        3.0,
        1e-3,
        queries=40,
        player="record",
        rounds=4,
        free="measured",
        unit="who",
        most_records=2,
        weight="heavy",
        weight_bound=1.5,
        neighbours="add-remove",
        rows=100,
        seed=1,
    )
    mark = Mark("0123456789abcdef", 7, "ab" * 32)
    yield replace(run.fit(table, schema=schema), ledger=mark).save(scratch / "persons")
    run = dq.DualQuery(
        1.0,
        1e-3,
        queries=40,
        player="record",
        rounds=6,
        known=("smoker = 0.3",),
        certify=0.9,
        seed=1,
    )
    yield run.fit(table, schema=schema).save(scratch / "known")
    table = biased(kind=Sparse)
    yield job(queries=100).fit(table, schema=table.schema).save(scratch / "rare")


def use(folder: Path, table: pa.Table, scratch: Path, case: int) -> None:
    """Everything that reads a release: answer, table, sample, refit, evaluate, compare, page."""
    asked = read_asked(folder)
    names = asked.schema.names
    asked.answer(Query("conjunction", (Literal(0, (0,), False),)))
    asked.table(names[0], names[-1])
    release = dq.load(folder)
    release.sample(50, seed=1)
    dq.evaluate(release, table)
    with contextlib.redirect_stdout(io.StringIO()):
        _print([Compared("one", release, None), Compared("other", release, None)])
    render_page(release)
    # A rehearsal takes seconds, and reads no more than the fit does; some cases have it.
    refitted(release, steps=3, errors=case % 8 == 0)


def resealed(folder: Path) -> None:
    """Make every digest right."""
    path = folder / "release.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    for name in content["files"]:
        if (folder / name).exists():
            content["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    if "digest" in content:
        content["digest"] = content_digest(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def flipped(folder: Path, random: np.random.Generator) -> None:
    """Change up to four bytes of a file."""
    file = random.choice(sorted(folder.iterdir()))
    content = bytearray(file.read_bytes())
    for _ in range(random.integers(1, 5)):
        content[random.integers(len(content))] ^= 1 << random.integers(8)
    file.write_bytes(content)


def flipped_and_sealed(folder: Path, random: np.random.Generator) -> None:
    flipped(folder, random)
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        resealed(folder)


def revalued(folder: Path, random: np.random.Generator) -> None:
    """Change values, the shape or the type of an array, and every digest with it."""
    file = random.choice(sorted(folder.glob("*.npz")))
    with np.load(file) as stored:
        arrays = dict(stored)
    name = random.choice(sorted(arrays))
    array = arrays[name].copy()
    how = random.integers(10)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if how < 5 and array.size and array.dtype.kind in "iufb":
            flat = array.reshape(-1)
            places = random.integers(flat.size, size=random.integers(1, 4))
            value = NASTY[random.integers(len(NASTY))]
            near = flat[places] + np.asarray(random.integers(-2, 3), flat.dtype)
            flat[places] = near if random.random() < 0.3 else np.array(value).astype(flat.dtype)
            arrays[name] = flat.reshape(array.shape)
        elif how == 5 and array.ndim:
            arrays[name] = array[:-1]
        elif how == 6 and array.ndim:
            arrays[name] = np.concatenate([array, array[:1]])
        elif how == 7:
            kind = ["i1", "i4", "i8", "u8", "f4", "f8", "b1", "U5", "c16", ">i4"]
            arrays[name] = np.zeros(array.shape, kind[random.integers(len(kind))])
        elif how == 8:
            arrays[f"{name}_2" if random.random() < 0.5 else name] = np.zeros(1 << 25)
        else:
            del arrays[name]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for one, content in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.asanyarray(content))
            archive.writestr(f"{one}.npy", stream.getvalue())
    resealed(folder)


def redescribed(folder: Path, random: np.random.Generator) -> None:
    """Change a value anywhere in `release.json`, and its digest with it.

    A kind of place is chosen before a place: else most changes would be in lists that are long.
    """
    path = folder / "release.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    kinds: dict[str, list[tuple[object, object]]] = {}
    for kind, inside, key in _places(content):
        kinds.setdefault(kind, []).append((inside, key))
    kinds.pop(".digest", None)
    alike = kinds[sorted(kinds)[random.integers(len(kinds))]]
    inside, key = alike[random.integers(len(alike))]
    values = (*NASTY, *WORDS)
    if random.random() < 0.1 and isinstance(inside, dict):
        del inside[key]
    else:
        inside[key] = values[random.integers(len(values))]
    path.write_text(json.dumps(content), encoding="utf-8")
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        resealed(folder)


def _places(content: object, above: str = "") -> Iterator[tuple[str, object, object]]:
    """Every value: its kind, which all entries of a list share, what it is in, and its key."""
    entries = (
        content.items() if isinstance(content, dict)
        else enumerate(content) if isinstance(content, list) else ()
    )  # fmt: skip
    for key, value in entries:
        kind = f"{above}.{key if isinstance(content, dict) else '#'}"
        yield kind, content, key
        yield from _places(value, kind)


CHANGES: Sequence[Callable[[Path, np.random.Generator], None]] = (
    flipped, flipped_and_sealed, flipped_and_sealed, revalued, revalued, revalued, revalued,
    redescribed, redescribed,
)  # fmt: skip


def tried(seed: int, case: int, honest: Sequence[Path], tables, scratch: Path) -> str:
    """`refused`, `accepted`, or what went wrong."""
    random = np.random.default_rng([seed, case])
    which = int(random.integers(len(honest)))
    folder = Path(shutil.copytree(honest[which], scratch / "case"))
    try:
        CHANGES[random.integers(len(CHANGES))](folder, random)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(folder, tables[which], scratch, case)
    except DualQueryError as error:
        return "refused" if "\n" not in str(error) else f"two lines: {error!r}"
    except BaseException as error:
        import traceback

        where = traceback.extract_tb(error.__traceback__)
        told = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in where[:-6:-1])
        return f"{type(error).__name__}: {str(error)[:200]} at {told}".replace("\n", " ")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return "accepted"


def campaign(seed: int, cases: Sequence[int], scratch: Path) -> Found:
    """Try the cases of these numbers."""
    honest = [*(unpacked(name, scratch) for name in KEPT), *made(scratch)]
    schemas = [dq.load(folder).schema for folder in honest]
    tables = [private(schema) for schema in schemas]
    for number, (folder, table) in enumerate(zip(honest, tables, strict=True)):
        use(folder, table, scratch, number)  # compiles what is compiled; the first has a rehearsal
    found = Found(honest=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    todo = list(cases)
    while todo:
        todo = todo[_batch(seed, todo, honest, tables, scratch, found) :]
    return found


def _batch(seed: int, cases, honest, tables, scratch: Path, found: Found) -> int:
    """Try cases in a process of their own; returns how many are done with."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:  # whatever happens, nothing of the process that forked it goes on in it
            os.close(reads)
            faulthandler.enable(2)
            with tempfile.TemporaryDirectory(dir=scratch) as own:
                for case in cases:
                    told = tried(seed, case, honest, tables, Path(own))
                    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                    os.write(writes, f"{peak} {told}\n".encode())
        finally:
            os._exit(0)
    os.close(writes)
    done, rest, spent = 0, b"", 0.0
    with os.fdopen(reads, "rb", buffering=0) as stream:
        while True:
            ready, _, _ = select.select([stream], [], [], PATIENCE)
            if not ready and _spent(child) < spent + PATIENCE:
                continue  # other processes have the machine
            if not ready:
                os.kill(child, 9)
                os.waitpid(child, 0)
                found.wrong.append((cases[done], f"hangs for {PATIENCE:g} seconds"))
                return done + 1
            spent = _spent(child)
            piece = stream.read(1 << 16)
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                peak, _, told = line.decode().partition(" ")
                if int(peak) >= 4 * found.honest > 4 * found.peak:
                    found.wrong.append((cases[done], f"takes {int(peak):,} kB"))
                found.peak = max(found.peak, int(peak))
                found.refused += told == "refused"
                found.accepted += told == "accepted"
                if told not in ("refused", "accepted"):
                    found.wrong.append((cases[done], told))
                done += 1
    _, status = os.waitpid(child, 0)
    if done < len(cases):
        found.wrong.append((cases[done], f"ends the process with status {status}"))
        done += 1
    return done


def _spent(process: int) -> float:
    """Processor seconds of a process so far; endless where the system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def told(found: Found, seed: int, seconds: float) -> str:
    """A line for whoever runs a campaign."""
    cases = found.refused + found.accepted + len(found.wrong)
    return (
        f"seed {seed}: {cases:,} cases in {seconds:,.0f} s, {found.refused:,} refused, "
        f"{found.accepted:,} harmless, {len(found.wrong)} wrong; memory {found.peak:,} kB, "
        f"honest releases {found.honest:,} kB\n"
    )


if __name__ == "__main__":  # python -m tests.release.fuzzing SEED FIRST LAST
    import sys

    seed, first, last = (int(one) for one in sys.argv[1:4])
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = campaign(seed, range(first, last), Path(folder))
    for number, what in result.wrong:
        sys.stdout.write(f"{number}: {what}\n")
    sys.stdout.write(told(result, seed, time.perf_counter() - begun))
