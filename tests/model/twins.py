"""The model and its likelihood, written plainly."""

from __future__ import annotations

import numpy as np

from dualquery.privacy.sampler import Draws
from dualquery.workloads.workload import Workload


def answers_twin(workload: Workload, weights: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """Component by component, literal by literal."""
    start = workload.schema.code_start
    found = []
    for query in workload:
        total = 0.0
        for k, weight in enumerate(weights):
            chances = []
            for literal in query.literals:
                chance = sum(tables[start[literal.attribute] + c, k] for c in literal.codes)
                chances.append(1.0 - chance if literal.negated else chance)
            if query.kind == "parity":
                total += weight * (1.0 + np.prod([1.0 - 2.0 * c for c in chances])) / 2.0
            else:
                total += weight * np.prod(chances)
        found.append(total)
    return np.array(found)


def likelihood_twin(
    answers: np.ndarray,
    rounds: list[tuple[float, Draws, np.ndarray]],
    log_prior: np.ndarray,
) -> float:
    """The log-probability of the draws from all 2m weights, without the log prior's own part."""
    total = 0.0
    for temperature, draws, against in rounds:
        exponent = temperature * (answers - against)
        log_weights = np.concatenate([log_prior + exponent, log_prior - exponent])
        normaliser = np.logaddexp.reduce(log_weights)
        for query, negated in zip(draws.queries, draws.negated, strict=True):
            signed = -exponent[query] if negated else exponent[query]
            total += signed - normaliser
    return float(total)


def random_tables(schema, components: int, generator: np.random.Generator) -> np.ndarray:
    tables = generator.gamma(0.7, size=(schema.code_start[-1], components)) + 1e-3
    for a in range(len(schema)):
        part = slice(schema.code_start[a], schema.code_start[a + 1])
        tables[part] /= tables[part].sum(axis=0)
    return tables


class Pull:
    """In the place of a likelihood: a fixed pull on every answer."""

    def __init__(self, slope: np.ndarray) -> None:
        self.slope = slope

    def slopes(self, answers: np.ndarray) -> tuple[float, np.ndarray]:
        return float(self.slope @ answers), self.slope
