"""What the accuracy theorem proves about a game of records."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from dualquery.base.checks import as_float, probability
from dualquery.base.stored import Document, Json
from dualquery.game.moves import RecordMove, expect
from dualquery.game.transcript import Transcript
from dualquery.oracles.certificates import (
    CONFIDENCE,
    Guarantee,
    accuracy_guarantee,
    log_universe_size,
)
from dualquery.workloads.workload import Workload


@dataclass(frozen=True)
class Certificate:
    """Which conditions of the accuracy theorem a game met.

    Attributes:
        asked_alpha: the accuracy α that was asked for.
        beta_used: the β that was used.
        guarantee: the conditions, and what follows from them.
    """

    asked_alpha: float
    beta_used: float
    guarantee: Guarantee

    def to_dict(self) -> Json:
        """The certificate as plain data. JSON has no infinity: an unknown gap is null."""
        figures = {
            name: value if not isinstance(value, float) or math.isfinite(value) else None
            for name, value in asdict(self.guarantee).items()
        }
        return {"asked_alpha": self.asked_alpha, "beta_used": self.beta_used, **figures}


def check_alpha(alpha: float) -> None:
    """Refuse an accuracy that cannot be certified, before any work is done."""
    probability("certify", alpha)


def certify(
    transcript: Transcript,
    workload: Workload,
    eta: float,
    alpha: float,
    beta: float = CONFIDENCE,
) -> Certificate:
    """Which conditions of the theorem for accuracy α the game met.

    The gaps are computed from draws and records alone, so a certificate may be published.

    Args:
        transcript: a game of records.
        workload: its queries.
        eta: its learning rate.
        alpha: the accuracy to certify.
        beta: the probability with which it may fail.
    """
    gaps = []
    for one in transcript:
        gaps.append(expect(RecordMove, one.move).gap(len(one.draws)))
    found = accuracy_guarantee(
        alpha=alpha,
        beta=beta,
        rounds=len(transcript),
        samples=int(transcript.draw_counts.min()),
        eta=eta,
        queries=len(workload),
        log_universe=log_universe_size(workload.schema),
        gaps=gaps,
    )
    return Certificate(alpha, beta, found)


def certified_again(
    content: Document | None, transcript: Transcript, workload: Workload, eta: float
) -> Certificate | None:
    """The certificate of a release that is read, if it has one.

    What was asked for is taken from the file. What follows from it is computed again, so that a
    file cannot claim more.

    Args:
        content: what the file says.
        transcript: the draws and records of the release.
        workload: the queries that were asked.
        eta: the learning rate.
    """
    if content is None:
        return None
    alpha, beta = (as_float(name, content[name]) for name in ("asked_alpha", "beta_used"))
    return certify(transcript, workload, eta, alpha, beta)


def describe_certificate(certificate: Certificate, source: str = "records") -> str:
    """A certificate in a sentence or two.

    Args:
        certificate: what was proved about the records of a game.
        source: what the release answers from, `records` or `model`.
    """
    alpha, found = certificate.asked_alpha, certificate.guarantee
    condition = "held" if found.within_every_round else "did not hold"
    text = f"the oracle's condition for α = {alpha:g} (within α/4) {condition} in every round"
    if math.isfinite(found.largest_gap):
        text += f" (largest gap {found.largest_gap:.4g})"
    if found.alpha is not None and found.beta is not None:
        chance = 1 - found.beta
        about = (
            "`answer` and `sample` give these records"
            if source == "records"
            else "`answer` and `sample` give a fitted model, of which this says nothing"
        )
        return (
            f"{text}; all answers of the records are within {alpha:g}, probability {chance:g}; "
            f"{about}"
        )
    if not found.parameters_met:
        text += (
            f"; the theorem would need {found.rounds_needed:,} rounds of "
            f"{found.samples_needed:,} draws at eta {found.eta_needed:g}"
        )
    return text
