"""Runs inside the environment of dpmm: codes in, synthetic codes out."""

import json
import sys

import numpy as np
import pandas as pd
from measuring import Measured


def main() -> None:
    asked = json.loads(sys.argv[1])
    given = np.load(asked["table"])
    codes, sizes = given["codes"], given["sizes"]
    names = [f"a{i}" for i in range(codes.shape[1])]
    frame = pd.DataFrame(codes, columns=names)
    with Measured():
        model = made(asked, dict(zip(names, map(int, sizes), strict=True)))
        model.fit(frame)
        rows = model.generate(len(codes))
    np.save(asked["out"], rows[names].to_numpy().astype(np.int32))


def made(asked: dict, domain: dict) -> object:
    """Its defaults, except for the promise; AIM is also asked for all triples."""
    from dpmm.models.aim import AIMGM
    from dpmm.models.mst import MSTGM
    from dpmm.models.priv_bayes import PrivBayesGM

    method, epsilon = asked["method"], asked["epsilon"]
    common = {"domain": domain, "n_jobs": 1}
    if method == "mst":
        return MSTGM(epsilon=epsilon, delta=asked["delta"], **common)
    if method == "privbayes":
        return PrivBayesGM(epsilon=epsilon, delta=asked["delta"], **common)
    degree = 3 if method == "aim-3" else 2
    return AIMGM(epsilon=epsilon, delta=asked["delta"], degree=degree, **common)


if __name__ == "__main__":
    main()
