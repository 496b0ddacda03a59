"""Tables in Markdown: the paper's claims, and the mean of the runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from dualquery.paper.experiments.experiment import Claim
from dualquery.paper.experiments.series import LABELS
from dualquery.paper.experiments.store import FinishedRun, fastest, mean, where

GROUP = ("dataset", "bits", "queries", "epsilon", "delta", "series", "accountant")

BAR = "\\|"
"""How a cell of a Markdown table writes a bar."""

LADDER = {
    "paper": "paper",
    "paper-gaussian": "tighter proof",
    "valid": "valid records",
    "refit": "refit",
    "model": "model player",
    "package": "this package",
}
"""What the package adds to the paper's algorithm step by step, up to the package of today."""

STEPS = ("package", "model")
"""The step that is compared with the paper's: the last one that was run."""


def claims_table(claims: Sequence[Claim]) -> str:
    """The paper's statements beside ours."""
    lines = ["| claim | paper | here | verdict |", "| --- | --- | --- | --- |"]
    for claim in claims:
        verdict = f"{claim.verdict}: {claim.remark}" if claim.remark else claim.verdict
        cells = (claim.statement, claim.paper, claim.ours, verdict)
        lines.append(f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |")
    return "\n".join(lines)


def gains_table(stored: Mapping[str, Sequence[FinishedRun]], epsilon: float = 1.0) -> str:
    """Max and average error at one ε, from the paper's algorithm to the package of today.

    `stored` has the runs of each experiment by its name.
    """
    settings: dict[tuple[str, ...], dict[str, list[FinishedRun]]] = {}
    for experiment, runs in stored.items():
        for run in where(runs, epsilon=epsilon):
            setting = (experiment, *(run[name] for name in ("dataset", "bits", "queries")))
            settings.setdefault(setting, {}).setdefault(run["series"], []).append(run)
    lines = [
        f"| data | bits | queries | {' | '.join(LADDER.values())} | times less | runs |",
        f"| --- | ---: | ---: | {'---: | ' * len(LADDER)}---: | ---: |",
    ]
    for (_, data, bits, queries), found in settings.items():
        errors = {
            name: [mean(found[name], column) for column in ("max_error", "average_error")]
            for name in LADDER
            if name in found
        }
        last = next((name for name in STEPS if name in errors), None)
        if "paper" not in errors or last is None:
            continue
        cells = [" / ".join(f"{error:.2g}" for error in errors.get(name, ())) for name in LADDER]
        ratios = [a / b for a, b in zip(errors["paper"], errors[last], strict=True)]
        lines.append(
            f"| {data} | {int(bits):,} | {int(queries):,} | {' | '.join(cells)} | "
            f"{' / '.join(f'{ratio:.1f}' for ratio in ratios)} | {len(found[last])} |"
        )
    return "\n".join(lines)


def as_json(runs: Sequence[FinishedRun], claims: Sequence[Claim]) -> str:
    """Rows and claims, for programs."""
    said = [
        {
            "claim": claim.statement,
            "paper": claim.paper,
            "here": claim.ours,
            "agrees": claim.agrees,
            "remark": claim.remark,
        }
        for claim in claims
    ]
    return json.dumps({"rows": [dict(run.cells) for run in runs], "claims": said})


def means_table(runs: Sequence[FinishedRun]) -> str:
    """The mean of the runs of each setting; of the times, the least."""
    groups: dict[tuple[str, ...], list[FinishedRun]] = {}
    for run in runs:
        groups.setdefault(tuple(run[name] for name in GROUP), []).append(run)
    order = list(LABELS)
    lines = [
        "| data | bits | queries | ε | δ | series | accountant | T | runs | max error | "
        "average error | seconds |",
        "| --- | ---: | ---: | ---: | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    ranked = sorted(
        groups.items(),
        key=lambda item: (
            item[0][0],
            int(item[0][1]),
            int(item[0][2]),
            float(item[0][3]),
            order.index(item[0][5]) if item[0][5] in order else len(order),
            item[0][6],
        ),
    )
    for (data, bits, queries, epsilon, delta, series, accountant), found in ranked:
        rounds = mean(found, "rounds")
        lines.append(
            f"| {data} | {int(bits):,} | {int(queries):,} | {epsilon} | {delta} | "
            f"{LABELS.get(series, series)} | {accountant if rounds == rounds else ''} | "
            f"{round(rounds) if rounds == rounds else ''} | {len(found)} | "
            f"{mean(found, 'max_error'):.4f} | {mean(found, 'average_error'):.5f} | "
            f"{fastest(found):.1f} |"
        )
    return "\n".join(lines)
