"""Wide sparse data: who rated what, as a SciPy matrix with thousands of columns.

Run it with `python examples/ratings.py [FOLDER]`. A table like this, 2,000 columns and more,
is where methods that list possible records, or fit a graphical model, cannot go.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

import dualquery as dq


def invent(people: int, films: int, seed: int = 0) -> sparse.csr_matrix:
    """Ratings with popular films, and two tastes that people lean to."""
    random = np.random.default_rng(seed)
    popularity = 0.6 * (np.arange(films) / 20 + 1.0) ** -1.0
    favoured = random.random(films) < 0.5
    lean = random.random(people) < 0.5
    blocks = []
    for start in range(0, people, 2_000):
        taste = lean[start : start + 2_000, None] == favoured[None, :]
        chance = popularity[None, :] * np.where(taste, 1.4, 0.5)
        blocks.append(sparse.csr_matrix(random.random(chance.shape) < chance, dtype=np.int8))
    return sparse.vstack(blocks, format="csr")


def popular_pairs(schema: dq.Schema, popular: int, count: int, seed: int = 1) -> dq.Workload:
    """ "Rated both": pairs of films that are known, publicly, to be popular; and each film alone.

    Which films are popular must be public knowledge. Here it is their order in the catalogue.
    """
    random = np.random.default_rng(seed)
    pairs = {tuple(sorted(random.choice(popular, 2, replace=False))) for _ in range(count)}
    both = [
        dq.Query("conjunction", tuple(dq.Literal(int(f), (1,)) for f in pair))
        for pair in sorted(pairs)
    ]
    alone = [dq.Query("conjunction", (dq.Literal(film, (1,)),)) for film in range(popular)]
    return dq.Workload.of(both + alone, schema)


def main(folder: Path, people: int = 10_000, films: int = 2_000) -> None:
    ratings = invent(people, films)
    print(f"{ratings.shape[0]:,} people, {ratings.shape[1]:,} films, {ratings.nnz:,} ratings")

    # A sparse matrix has no header: its columns are x0, x1, …
    schema = dq.Schema(tuple(dq.Attribute.binary(f"x{i}") for i in range(films)))
    job = dq.DualQuery(epsilon=1.0, delta=1e-6)
    release = job.release(
        ratings,
        folder / "ratings",
        schema=schema,
        workload=lambda resolved: popular_pairs(resolved, 200, 5_000),
        overwrite=True,
    )
    print(release.privacy.text())
    for query in ("x0=1", "x0=1 & x1=1", "x0=1 & x150=0"):
        print(f"{release.answer(query):.4f}  {query}")
    page = folder / "ratings" / "report.html"
    print(f"page: {page} ({page.stat().st_size / 1e6:.2f} MB)")

    # Films that no query names were never measured: use only the columns that were asked about.
    synthetic = release.sample(100)[:, :200]
    print(f"100 synthetic people as a sparse matrix: {synthetic.shape}, {synthetic.nnz} ratings")

    result = dq.evaluate(release, ratings)  # NOT PRIVATE: for the curator alone
    print(f"max error {result.distance.max_error:.4f}, average {result.distance.average_error:.5f}")
    assert result.distance.average_error < result.baselines["zeros"].average_error


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch))
