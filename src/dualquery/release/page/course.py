"""The course of the game: what each round achieved, computed from the draws alone."""

from __future__ import annotations

from collections.abc import Sequence

from dualquery.game.moves import ModelMove, RecordMove
from dualquery.game.transcript import Transcript
from dualquery.release.page.charts import Axes, legend


def course(transcript: Transcript) -> str:
    """A chart for each quantity that the moves tell."""
    parts = [_satisfaction(transcript), _likelihood(transcript), _temperatures(transcript)]
    charts = "".join(part for part in parts if part)
    if charts:
        return f'<div class="grid-of wide">{charts}</div>'
    return (
        "<p>No query was drawn in this run, so no round can be shown: it counted whole tables, "
        "each once and with noise.</p>"
    )


def _satisfaction(transcript: Transcript) -> str:
    """Per round, the share of the draws that the record satisfies, and what is possible."""
    kept: list[tuple[float, float]] = []
    bounds: list[tuple[float, float]] = []
    optimal = 0
    for number, one in enumerate(transcript, start=1):
        if not isinstance(one.move, RecordMove) or not len(one.draws):
            continue
        kept.append((float(number), one.move.value / len(one.draws)))
        optimal += one.move.proved_optimal
        if one.move.bound is not None:
            bounds.append((float(number), one.move.bound / len(one.draws)))
    if not kept:
        return ""
    shares = [share for _, share in kept]
    known = dict(bounds)
    gaps = [known[r] - share for r, share in kept if r in known]
    axes = Axes((1.0, float(len(transcript))), (min([0.4, *shares]), 1.0))
    entries = [("first", "satisfied by the round's record")]
    if bounds:
        axes.line([r for r, _ in bounds], [b for _, b in bounds], "second")
        entries.append(("second", "no record can satisfy more"))
    axes.line([r for r, _ in kept], shares, "first")
    mean = sum(shares) / len(shares)
    words = f"On average {100 * mean:.1f} % of a round's drawn queries were satisfied"
    if gaps:
        words += (
            f"; the proved gap to the best possible record is {100 * sum(gaps) / len(gaps):.1f} % "
            "of the draws on average"
        )
    words += f". {optimal} of {len(transcript)} rounds were proved optimal."
    return _figure(
        "Drawn queries satisfied",
        words,
        axes.svg("Share of the drawn queries satisfied, by round", "round", "share"),
        legend(entries),
    )


def _likelihood(transcript: Transcript) -> str:
    """After each round, the mean log-likelihood of all draws so far."""
    rounds: list[float] = []
    means: list[float] = []
    drawn = 0
    for number, one in enumerate(transcript, start=1):
        drawn += len(one.draws)
        if isinstance(one.move, ModelMove) and drawn:
            rounds.append(float(number))
            means.append(one.move.log_likelihood / max(drawn, 1))
    if len(means) < 2:
        return ""
    axes = _line(rounds, means)
    return _figure(
        "Fit of the model",
        "The mean log-likelihood of all draws so far under the model, after each round. The "
        "higher it is, the better the model explains what was drawn.",
        axes.svg("Mean log-likelihood of a draw, by round", "round", "log-likelihood"),
    )


def _temperatures(transcript: Transcript) -> str:
    values = [float(value) for value in transcript.temperatures]
    if len(values) < 2 or not any(values):
        return ""
    rounds = [float(number) for number in range(1, len(values) + 1)]
    axes = _line(rounds, values, from_zero=True)
    return _figure(
        "How sharply queries were drawn",
        "The temperature of each round. The higher it is, the more the draws go to queries that "
        "the synthetic data still answers badly, and the more privacy the round costs.",
        axes.svg("Temperature by round", "round", "temperature"),
    )


def _line(xs: Sequence[float], ys: Sequence[float], from_zero: bool = False) -> Axes:
    low = 0.0 if from_zero else min(ys)
    axes = Axes((xs[0], xs[-1]), (low, max([*ys, low])))
    axes.line(xs, ys, "first")
    return axes


def _figure(title: str, words: str, *parts: str) -> str:
    return f"<figure><h3>{title}</h3><p>{words}</p>{''.join(parts)}</figure>"
