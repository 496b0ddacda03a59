"""Runs inside the environment of smartnoise-synth: codes in, synthetic codes out."""

import json
import sys

import numpy as np
import pandas as pd
from measuring import Measured


def main() -> None:
    from snsynth.mwem import MWEMSynthesizer

    asked = json.loads(sys.argv[1])
    codes = np.load(asked["table"])["codes"]
    names = [f"a{i}" for i in range(codes.shape[1])]
    frame = pd.DataFrame(codes, columns=names)
    # By default it holds one number per possible record; split, it models columns by threes.
    split = 3 if asked["method"] == "mwem-split" else None
    with Measured():
        model = MWEMSynthesizer(epsilon=asked["epsilon"], split_factor=split)
        model.fit(frame, categorical_columns=names, preprocessor_eps=0.0)
        rows = model.sample(len(codes))
    np.save(asked["out"], np.asarray(rows)[:, : codes.shape[1]].astype(np.int32))


if __name__ == "__main__":
    main()
