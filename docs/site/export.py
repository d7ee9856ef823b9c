"""Train the explorer's machines and write what its page needs, as a script that sets one variable.

For words of up to `DEGREE` letters, the longest that the kernel compares, all importances are in a
table; those of any longer motif follow from two tables (see `firmlib.strings.search`),

    Q'(z, j) = Q'(z[:d], j) + sum_{i=1..k-d} (Q'(z[i:i+d], j+i) - Q'(z[i:i+d-1], j+i)).

The background is uniform. The weights w of all words are beside them. Numbers are 16 bit integers
times a factor, in base64.
"""

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from firmlib import datasets
from firmlib.compendium.output import ROOT, write_atomic
from firmlib.strings import WDSClassifier, poim

DEGREE = 6  # all words of six letters at all positions still are half a megabyte


def machines() -> Iterator[tuple[str, str, WDSClassifier]]:
    """Yield the name, the motif to start with and the machine of each data set that is here."""
    for name, unseen in (("GATTACA", False), ("GATTACA, in no training example", True)):
        X, y = datasets.gattaca(4000, length=70, unseen=unseen, random_state=0)
        yield name, "GATTACA", WDSClassifier(degree=DEGREE, shift=10).fit(X, y)
    for site, motif in (("acceptor", "TTTGCAG"), ("donor", "GTAAGT")):
        if (ROOT / "data" / f"splice_{site}.tsv.gz").exists():
            X, y, _ = datasets.splice(site)
            X = X[:, 20:120]  # the junction, after 70 of 140 letters, is at 50 then
            machine = WDSClassifier(degree=DEGREE, shift=5).fit(X, y)
            yield f"splice {site}, junction at 50", motif, machine


def packed(table: np.ndarray) -> dict[str, float | str]:
    """Return a table as little-endian int16 in base64, with the factor that restores it."""
    factor = float(f"{np.abs(table).max() / 32767:.6g}")
    integers = np.round(table / factor).astype("<i2")
    return {"factor": factor, "data": base64.b64encode(integers.tobytes()).decode()}


def main() -> None:
    """Write the script to the path given."""
    exported = [
        {
            "name": name,
            "motif": motif,
            "length": machine.weights_.length,
            "degree": DEGREE,
            "tables": [packed(poim(machine.weights_, k)) for k in range(1, DEGREE + 1)],
            "weights": [packed(machine.weights_.dense(k)) for k in range(1, DEGREE + 1)],
        }
        for name, motif, machine in machines()
    ]
    write_atomic(Path(sys.argv[1]), f"window.FIRM_MACHINES = {json.dumps(exported)};\n")


if __name__ == "__main__":
    main()
