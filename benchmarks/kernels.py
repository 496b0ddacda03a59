"""Compiled loops one by one: against NumPy, and against what the machine can do at most.

    python -m benchmarks kernels

`of_numpy` is the time of the same work in NumPy (or Arrow, for text) divided by ours.
`share_of_peak` compares with a loop that does nothing else, measured in the same run; `peak`
says which of them bounds the kernel: "reading" adds up whole numbers in the cache (bytes read per
second), "products" is NumPy's matrix product, "system bits" fetches the random bits of the
operating system that exact noise uses up, "random steps" makes one random number from the other, as
each slot that an annealing sweep looks at has to wait for one. All times are processor seconds of
one thread, the shortest of several, so other work on the machine takes no part in them.
`benchmarks.guard` fails when one of the ratios to NumPy is lost.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from benchmarks import fits, noise, sampler
from benchmarks.fits import _best_of as best_of
from dualquery.base._kernels import next_random
from dualquery.privacy.sources import SystemSource

Rows = list[dict[str, Any]]


def popcounts() -> dict[str, Any]:
    """Conjunctions of three literals over packed rows."""
    from dualquery.rows._counting_kernels import count_conjunctions

    random = np.random.default_rng(0)
    bits = random.integers(0, 2**63, (200, 512)).astype(np.uint64)
    terms = np.sort(random.integers(0, 400, (2000, 3)).astype(np.int32), axis=1)
    counts = np.zeros(2000, dtype=np.int64)
    flip = (terms & 1).astype(np.uint64) * np.uint64(2**64 - 1)

    def plain() -> None:
        for (a, b, c), (f, g, h) in zip(terms[:100] >> 1, flip[:100], strict=True):
            int(np.bitwise_count((bits[a] ^ f) & (bits[b] ^ g) & (bits[c] ^ h)).sum())

    count_conjunctions(bits, terms, counts, 0, 2000)
    ours = best_of(lambda: count_conjunctions(bits, terms, counts, 0, 2000), 15)
    read = 3 * 8 * 512 * 2000
    return row("count conjunctions", ours, 20 * best_of(plain, 15), read / ours / reading())


def packing() -> dict[str, Any]:
    """The bits of an attribute's codes."""
    from dualquery.rows._kernels import pack_codes

    size, rows = 12, 1 << 16
    codes = np.random.default_rng(0).integers(0, size, rows, dtype=np.int32)
    bits = np.zeros((size, rows // 64), dtype=np.uint64)
    start, literals = np.arange(size + 1), np.arange(size)

    def plain() -> None:
        for code in range(size):
            np.packbits(codes == code, bitorder="little")

    pack_codes(codes, start, literals, bits, 0)
    ours = best_of(lambda: pack_codes(codes, start, literals, bits, 0), 15)
    # Every code is compared with all rows.
    return row("pack codes", ours, best_of(plain, 9), size * codes.nbytes / ours / reading())


def text() -> dict[str, Any]:
    """The distinct cells of a column of text."""
    from dualquery.rows.encoding import distinct_text

    codes = np.random.default_rng(0).integers(0, 50, 1 << 16)
    column = pa.array([f"value {code}" for code in codes])
    size = column.get_total_buffer_size()
    distinct_text(column)
    ours = best_of(lambda: distinct_text(column), 15)
    arrow = best_of(column.dictionary_encode, 9)
    return row("distinct text (against Arrow)", ours, arrow, size / ours / reading())


def bins() -> dict[str, Any]:
    """The bins of numbers, ten of them."""
    from dualquery.rows._text_kernels import bins_of

    numbers = np.random.default_rng(0).random(1 << 16) * 1000
    edges, codes = np.arange(0.0, 1100.0, 100.0), np.empty(1 << 16, dtype=np.int32)
    bins_of(numbers, edges, 9, -1, -2, -2, codes)
    ours = best_of(lambda: bins_of(numbers, edges, 9, -1, -2, -2, codes), 25)
    plain = best_of(lambda: np.searchsorted(edges, numbers, side="right"), 9)
    return row("bins of numbers", ours, plain, numbers.nbytes / ours / reading())


def tables() -> dict[str, Any]:
    """All cells of pairs of columns, from codes."""
    from dualquery.rows.encoded import EncodedRows
    from dualquery.rows.tabulation import tabulate
    from dualquery.workloads.marginals import Groups, Marginals

    schema = fits_schema((12, 9))
    random = np.random.default_rng(0)
    columns = {a: random.integers(0, s, 1 << 18, dtype=np.uint8) for a, s in ((0, 12), (1, 9))}
    rows = EncodedRows(1 << 18, columns)
    pairs = Marginals(Groups.single(schema), np.array([[0, 1]], dtype=np.int32))

    def plain() -> None:
        np.bincount(columns[0].astype(np.int64) * 9 + columns[1], minlength=108)

    tabulate(rows, pairs)
    ours = best_of(lambda: tabulate(rows, pairs), 15)
    return row("count a table", ours, best_of(plain, 9), 2 * (1 << 18) / ours / reading())


def distance() -> dict[str, Any]:
    """The largest distance of two arrays, in every step of a game of draws."""
    from dualquery.model._kernels import largest_distance

    random = np.random.default_rng(0)
    one, other = (random.random(1 << 16, dtype=np.float32) for _ in range(2))
    largest_distance(one, other)
    ours = best_of(lambda: largest_distance(one, other), 40)
    plain = best_of(lambda: np.abs(one - other).max(), 20)
    return row("largest distance", ours, plain, 2 * one.nbytes / ours / reading())


def exponentials() -> dict[str, Any]:
    """Probabilities from logits."""
    from dualquery.model._kernels import softmax

    sizes = np.array([16, 8, 8, 16, 7, 14, 6, 5, 2, 20, 41])
    start = np.concatenate([[0], np.cumsum(sizes)])
    logits = np.random.default_rng(0).normal(size=(start[-1], 64)).astype(np.float32)
    found = np.empty_like(logits)

    def plain() -> None:
        shares = np.exp(logits - np.repeat(np.maximum.reduceat(logits, start[:-1]), sizes, axis=0))
        shares /= np.repeat(np.add.reduceat(shares, start[:-1]), sizes, axis=0)

    softmax(logits, start, found)
    ours = best_of(lambda: softmax(logits, start, found), 40)
    return row("softmax", ours, best_of(plain, 20), 2 * logits.nbytes / ours / reading())


def draws() -> dict[str, Any]:
    """A round of a thousand exact draws from 100,000 queries, against exp, cumsum and search."""
    queries = 100_000
    found = sampler.measure(queries, 1000, 150.0, time.thread_time)
    ours = (found["score_ms"] + found["draw_ms"]) / 1e3
    # Four passes over the queries: counts and answers, then exponents and log priors three times.
    read = 4 * 16 * queries
    return row("exact draws", ours, ours / found["all_over_numpy"], read / ours / reading())


def exact_noise() -> dict[str, Any]:
    """Exact rounded Gaussians, against NumPy's, which are not private."""
    from dualquery.privacy.noise import rounded_gaussian

    values = 200_000
    found = noise.run(values)[1]
    ours = values / found["values_per_second"]
    source = CountingSource()
    rounded_gaussian(41.3, values, source)
    fetching = best_of(lambda: SystemSource().words(source.used), 9)
    plain = ours / found["times_numpy"]
    return row("exact noise", ours, plain, fetching / ours, peak="system bits")


class CountingSource(SystemSource):
    """The operating system's random words, counted."""

    used = 0

    def words(self, count: int) -> Any:
        self.used += count
        return super().words(count)


def slopes() -> dict[str, Any]:
    """A step of a fit to sixty tables of three columns."""
    found = fits.run()[0]
    ours = found["milliseconds"] / 1e3
    share = found["share_of_peak"]
    return row("slopes of tables", ours, ours * found["of_numpy"], share, peak="products")


def annealing() -> dict[str, Any]:
    """A best response to a thousand draws, against NumPy's greedy search over single changes."""
    from dualquery.oracles.problem import Problem
    from dualquery.oracles.registry import oracle
    from dualquery.workloads.generators import random_marginals

    schema = fits_schema((16, 8, 8, 16, 7, 14, 6, 5, 2, 20, 41))
    workload = random_marginals(schema, 3, 1000)
    random = np.random.default_rng(0)
    chosen = np.arange(1000)
    problem = Problem.of(workload, chosen, np.where(random.random(1000) < 0.5, 1, -1))
    solve = oracle("annealing")
    solve(problem, generator=np.random.default_rng(0))
    ours = best_of(lambda: solve(problem, generator=np.random.default_rng(0)), 5)

    def plain() -> None:
        record = np.array(problem.defaults, dtype=np.int32)
        for attribute in range(len(schema)):
            tried = np.repeat(record[None], schema.sizes[attribute], axis=0)
            tried[:, attribute] = np.arange(schema.sizes[attribute])
            record = tried[int(np.argmax([problem.value(one) for one in tried]))]

    share = share_of_a_sweep(problem)
    name = "annealing (against one greedy pass; share of one sweep)"
    return row(name, ours, best_of(plain, 3), share, peak="random steps")


def share_of_a_sweep(problem: Any) -> float:
    """The time that the random numbers of a sweep take at least, divided by its time."""
    from dualquery.oracles._anneal_kernels import sweep
    from dualquery.oracles._kernels import load
    from dualquery.oracles.annealing import Annealing
    from dualquery.oracles.core import Search

    settings = Annealing(fix=False, enumerate_up_to=0)
    reduction = settings.reduce(problem)
    rest, part = reduction.rest, max(reduction.parts, key=lambda one: len(one.variables))
    search = Search.over(rest, reduction.slots.copy())
    load(rest, part, search)
    widths = np.diff(rest.first)[part.variables]
    # A choice between two slots takes one random number; one between more takes one for each.
    steps = int(np.where(widths == 2, 1, widths).sum())
    seed = np.uint64(12345)
    times = 200

    def sweeps() -> None:
        for _ in range(times):
            sweep(rest, part.variables, settings.hot, search, seed)

    sweeps()
    random_steps(seed, 1)
    alone = best_of(lambda: random_steps(seed, times * steps), 15)
    return alone / best_of(sweeps, 15)


def row(
    name: str, ours: float, plain: float, share: float, peak: str = "reading"
) -> dict[str, Any]:
    return {
        "kernel": name,
        "milliseconds": 1e3 * ours,
        "of_numpy": plain / ours,
        "share_of_peak": share,
        "peak": peak,
    }


@numba.njit(cache=True)
def random_steps(state, steps):
    """Random numbers one from the other, as many as steps."""
    for _ in range(steps):
        state = next_random(state)
    return state


@numba.njit(cache=True)
def added(numbers, repeats):
    """Sums of numbers that stay in the nearest cache."""
    total = np.int32(0)
    for repeat in range(repeats):
        here = np.int32(repeat)
        for i in range(len(numbers)):
            here += numbers[i]
        total ^= here
    return total


@cache
def reading() -> float:
    """Bytes per second that a loop reads which only adds up, from the nearest cache."""
    numbers = np.arange(1 << 12, dtype=np.int32)
    added(numbers, 1)
    return numbers.nbytes * 2000 / best_of(lambda: added(numbers, 2000), 15)


def fits_schema(sizes: tuple[int, ...]) -> Any:
    from dualquery.domain.attributes import Attribute
    from dualquery.domain.schema import Schema

    return Schema(
        tuple(Attribute.categorical(f"a{i}", list(range(s))) for i, s in enumerate(sizes))
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """Time on one thread: processor seconds of the thread that asks are then all there are."""
    before = os.environ.get("DUALQUERY_THREADS")
    os.environ["DUALQUERY_THREADS"] = "1"
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        if before is None:
            del os.environ["DUALQUERY_THREADS"]
        else:
            os.environ["DUALQUERY_THREADS"] = before


KERNELS: tuple[Callable[[], dict[str, Any]], ...] = (
    popcounts, packing, text, bins, tables, distance, exponentials, draws, exact_noise, slopes,
    annealing,
)  # fmt: skip


def run() -> Rows:
    with one_thread():
        return [kernel() for kernel in KERNELS]
