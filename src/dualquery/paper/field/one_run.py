"""The program of one run: a request as JSON in, one line of JSON out. See `alone`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from dualquery.base.errors import DualQueryError
from dualquery.base.stored import Json
from dualquery.evaluation.figures import Distance
from dualquery.paper.field.alone import measured, one_cell
from dualquery.paper.field.methods import Promise, answered
from dualquery.paper.field.settings import Counts, Setting
from dualquery.privacy.neighbours import Neighbours


def performed(request: Json) -> Json:
    """What a request asks for: the counts of a setting, or a run of a method on them.

    Args:
        request: `setting`, `counts` (the file of the counts) and `data`; for a run also `method`,
            `epsilon`, `delta`, `neighbours` and `seed`.
    """
    given = request["setting"]
    if not isinstance(given, dict):
        raise TypeError("setting must be an object")
    setting = Setting(**given)
    path = Path(str(request["counts"]))
    data = Path(str(request["data"])) if request.get("data") else None
    if "method" not in request:
        counts = Counts.of(setting, data)
        counts.save(path)
        return {"queries": len(counts.workload), "counting_seconds": counts.seconds}
    counts = Counts.load(path)
    before, begun = measured(), time.perf_counter()
    promise = Promise(
        float(str(request["epsilon"])),
        float(str(request["delta"])),
        Neighbours(str(request["neighbours"])),
    )
    seed = int(str(request["seed"]))
    try:
        found = answered(str(request["method"]), setting, counts, promise, seed, data)
    except DualQueryError as error:
        return {"end": f"refused: {one_cell(str(error))}"}
    after = measured()
    truth = counts.answers.counts / counts.answers.rows
    distance = Distance.of(found.answers, truth)
    apart = counts.l1(found.answers)
    return {
        "kept_delta": found.delta,
        "kept_neighbours": found.neighbours,
        "max_error": distance.max_error,
        "average_error": distance.average_error,
        **({} if apart is None else {"l1": apart}),
        "seconds": time.perf_counter() - begun,
        "processor_seconds": float(str(after["processor"])) - float(str(before["processor"])),
        "peak_bytes": after["peak_bytes"],
        "counting_seconds": counts.seconds,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(performed(json.loads(sys.argv[1]))) + "\n")
