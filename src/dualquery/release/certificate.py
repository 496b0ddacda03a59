"""What the accuracy theorem proves about a game of records."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from dualquery.base.checks import probability
from dualquery.game.transcript import Transcript
from dualquery.oracles.certificates import accuracy_guarantee, log_universe_size
from dualquery.workloads.workload import Workload

CONFIDENCE = 0.05
"""The β of a certificate: the probability that the draws were unlucky and it does not hold."""


def check_alpha(alpha: float) -> None:
    """Refuse an accuracy that cannot be certified, before any work is done."""
    probability("certify", alpha)


def certify(transcript: Transcript, workload: Workload, eta: float, alpha: float) -> dict[str, Any]:
    """Which conditions of the theorem for accuracy α the game met.

    The gaps are computed from draws and records alone, so a certificate may be published.

    Args:
        transcript: a game of records.
        workload: its queries.
        eta: its learning rate.
        alpha: the accuracy to certify.
    """
    gaps = []
    for one in transcript:
        bound, value = one.move.notes["bound"], one.move.notes["value"]
        gaps.append(None if bound is None else max(0.0, bound - value) / max(1, len(one.draws)))
    found = accuracy_guarantee(
        alpha=alpha,
        beta=CONFIDENCE,
        rounds=len(transcript),
        samples=int(transcript.draw_counts.min()),
        eta=eta,
        queries=len(workload),
        log_universe=log_universe_size(workload.schema),
        gaps=gaps,
    )
    figures = {
        name: value if not isinstance(value, float) or math.isfinite(value) else None
        for name, value in asdict(found).items()
    }
    return {"asked_alpha": alpha, "beta_used": CONFIDENCE, **figures}


def describe_certificate(certificate: dict[str, Any]) -> str:
    """A certificate in a sentence or two."""
    alpha = certificate["asked_alpha"]
    condition = "held" if certificate["within_every_round"] else "did not hold"
    text = f"the oracle's condition for α = {alpha:g} (within α/4) {condition} in every round"
    if certificate["largest_gap"] is not None:
        text += f" (largest gap {certificate['largest_gap']:.4g})"
    if certificate["alpha"] is not None:
        beta = certificate["beta"]
        return f"{text}; all answers of the records are within {alpha:g}, probability {1 - beta:g}"
    if not certificate["parameters_met"]:
        text += (
            f"; the theorem would need {certificate['rounds_needed']:,} rounds of "
            f"{certificate['samples_needed']:,} draws at eta {certificate['eta_needed']:g}"
        )
    return text
