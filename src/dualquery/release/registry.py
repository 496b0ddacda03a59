"""The entry of a release in a registry of deployments: what was promised, by what, in which form.

Everything in it stands in the release already. Registries want it in one file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dualquery.base.stored import Json
from dualquery.version import __version__

if TYPE_CHECKING:
    from dualquery.release.published import Published

_ACCOUNTING = {
    "pure": "pure differential privacy, by adding up the ε of all draws",
    "advanced": "advanced composition of all draws",
    "per-round": "composition of rounds, each with its own ε",
    "zcdp": "zero-concentrated differential privacy: ρ adds up over rounds, then it becomes (ε, δ)",
    "gaussian": "Gaussian differential privacy: μ² adds up over rounds, then it becomes (ε, δ)",
}


def registry_entry(release: Published) -> Json:
    """The entry of a release, as plain data.

    Args:
        release: the release, as it is published.
    """
    stated, parameters = release.privacy, release.parameters
    return {
        "deployment": release.about.to_dict(),
        "data_product": {
            "kind": "answers with intervals, and synthetic rows",
            "attributes": len(release.schema),
            "queries": parameters.queries,
        },
        "private": stated.private,
        "trust_model": "central: a trusted curator holds the table and publishes one release",
        "privacy_unit": {
            "neighbours": str(stated.neighbours),
            "protected": "record" if stated.persons is None else "person",
            "most_records": None if stated.persons is None else stated.persons.most,
            "size": stated.rows,
            "size_is_public": stated.unit.size_is_public,
            "meaning": stated.about_neighbours,
        },
        "privacy_parameters": {
            "definition": "(ε, δ)-differential privacy",
            "epsilon": stated.epsilon,
            "delta": stated.delta,
            "mu": stated.mu,
            "rho": stated.rho,
            "epsilon_of_groups": {str(size): value for size, value in stated.groups.items()},
            "warnings": list(stated.warnings),
        },
        "mechanisms": list(_mechanisms(release)),
        "accounting": {
            "accountant": stated.accountant,
            "rule": _ACCOUNTING.get(stated.accountant, stated.accountant),
            "same_run_by_others": {
                name: value
                for name, value in stated.by_accountant.items()
                if name not in stated.not_covering and value < float("inf")
            },
            "rounds": len(release.transcript),
            "charged_to_a_ledger": release.ledger is not None,
        },
        "post_processing": list(_post_processing(release)),
        "implementation": {
            "name": "dualquery",
            "version": __version__,
            "noise": "exact discrete sampling, of random bits of the operating system"
            if stated.private
            else "seeded: NOT PRIVATE",
        },
    }


def _mechanisms(release: Published) -> Iterator[Json]:
    """What met the private table."""
    measured = [one for one in release.transcript.measurements if one.marginals]
    if measured:
        yield {
            "name": "discrete Gaussian mechanism on whole tables of counts",
            "tables": sum(len(one.marginals) for one in measured),
        }
    cells = sum(len(one.cells) for one in release.transcript.rare)
    if cells:
        yield {"name": "discrete Gaussian mechanism on single cells", "cells": cells}
    draws = int(release.transcript.draw_counts.sum())
    if draws:
        yield {"name": "exponential mechanism: draws of queries", "draws": draws}


def _post_processing(release: Published) -> Iterator[str]:
    """What was made of what the mechanisms gave out; it costs nothing."""
    if release.source == "model":
        yield "a model was fitted to everything that was released; answers and rows come from it"
    else:
        yield "answers come from the records that the game found"
    if release.schema.rules:
        yield f"{len(release.schema.rules)} public rules hold in all synthetic rows"
    if release.parameters.known:
        yield f"{len(release.parameters.known)} publicly known shares hold in the model"
    if release.parameters.start is not None:
        yield f"the model leans on a public start: {release.parameters.start}"
