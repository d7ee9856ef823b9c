"""All pairs of binary features at once: three matrix products instead of a loop over pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from firmlib._bins import Bins
from firmlib._moments import ROUNDING, Estimate, Scores, Tally, spread

_NOTHING = 1e-9  # a share of the weight below which a difference of equal numbers is 0


class PairTallies(Sequence[Tally]):
    """The sums of many features of two levels, one by one when asked for."""

    def __init__(self, levels: tuple[float, float], sums: np.ndarray) -> None:
        self._bins, self._sums = Bins(np.array(levels), "discrete"), sums

    def __getitem__(self, i):  # type: ignore[override]
        """Return the sums of a feature; those of its values are not needed of levels."""
        sums = self._sums[:, :, i]
        return Tally(self._bins, np.vstack([sums, sums[0] * self._bins.first]))

    def __len__(self) -> int:
        return self._sums.shape[2]


def estimate_pairs(
    scores: Scores, table: np.ndarray, names: list[str], kind: str, rows: str
) -> tuple[list[str], Estimate, PairTallies] | None:
    """Estimate products, conjunctions or xors of all pairs of columns of a table of two values.

    With B = 1 where it has the larger value and 0 elsewhere, B'diag(a)B sums `a` over the rows
    where both columns have it; with the sums over each column that gives the sums over the rows
    where both, one or none of them have it. For `a` take w, w r and w r^2, as `tally` does.
    None if the table has other values.
    """
    low, high = table.min(), table.max()
    if np.any((table != low) & (table != high)):
        return None
    if kind == "product" and (low, high) not in ((0, 1), (-1, 1)):
        return None
    B = (table == high).astype(float)
    j, k = np.triu_indices(B.shape[1], 1)
    summed = (scores.w, scores.wr, scores.wrr)
    both = np.array([(B.T @ (a[:, None] * B))[j, k] for a in summed])
    each = np.array([a @ B for a in summed])
    total = scores.total[:, None]
    levels = (0.0, 1.0)
    if kind == "conjunction":
        none = total - each[:, j] - each[:, k] + both
        where_true = np.stack([none, each[:, k] - both, each[:, j] - both, both], axis=-1)
        labels = [(f"={a:g} ∧ ", f"={b:g}") for a, b in product((low, high), repeat=2)]
    elif kind == "xor" or low == -1:
        where_true = (each[:, j] + each[:, k] - 2 * both)[..., None]
        labels = [(" ⊕ ", "")]
        if kind == "product":  # of signs: -1 where they differ
            where_true, labels, levels = total[..., None] - where_true, [("·", "")], (-1.0, 1.0)
    else:
        where_true, labels = both[..., None], [("·", "")]
    where_true = where_true.reshape(3, -1)
    sums = np.stack([total - where_true, where_true], axis=1)
    sums[:, sums[0] < _NOTHING * total[0]] = 0
    n, sr, srr = sums
    found = spread(n, sr, srr, rows)
    full = [
        f"{names[a]}{middle}{names[b]}{end}"
        for a, b in zip(j.tolist(), k.tolist(), strict=True)
        for middle, end in labels
    ]
    tolerance = ROUNDING * np.sqrt(scores.total[2] / scores.total[0])
    sign = np.where(found.m[1] - found.m[0] < -tolerance, -1.0, 1.0)
    return full, found.estimate(sign), PairTallies(levels, sums)
