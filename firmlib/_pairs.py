"""All pairs of binary features at once: three matrix products instead of a loop over pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from firmlib._bins import Bins
from firmlib._inference import Estimate
from firmlib._moments import Tally
from firmlib._rounding import NUDGE, ROUNDING
from firmlib._scored import Scores
from firmlib._spread import Sums, spread, standardized_influence


class PairTallies(Sequence[Tally]):
    """The sums of many features of two levels, one by one when asked for."""

    def __init__(self, levels: tuple[float, float], sums: Sums) -> None:
        self._bins, self._sums = Bins(np.array(levels), "discrete"), sums

    def __getitem__(self, i):  # type: ignore[override]
        """Return the sums of a feature; those of its values are not needed of levels."""
        sums = self._sums.each(lambda a: a[:, i])
        return Tally(self._bins, sums._replace(wf=sums.w * self._bins.first))

    def __len__(self) -> int:
        return self._sums.w.shape[1]


def estimate_pairs(
    scores: Scores, table: np.ndarray, names: list[str], kind: str, rows: str
) -> tuple[list[str], Estimate, PairTallies] | None:
    """Estimate products, conjunctions or xors of all pairs of columns of a table of two values.

    With B = 1 where it has the larger value and 0 elsewhere, B'diag(a)B sums `a` over the rows
    where both columns have it; with the sums over each column that gives the sums over the rows
    where both, one or none of them have it. For `a` take what `tally` takes. None if the table
    has other values, if several rows belong to a unit, or if sums are not enough.
    """
    low, high = table.min(), table.max()
    if np.any((table != low) & (table != high)) or scores.unit is not None:
        return None
    if kind == "product" and (low, high) not in ((0, 1), (-1, 1)):
        return None
    if scores.standardized and rows == "sample":
        if scores.parts.ww is not None:
            return None
        scores = Scores.of(scores.r, scores.w, 0.0, powers=True)
    B = (table == high).astype(float)
    j, k = np.triu_indices(B.shape[1], 1)
    summed = [a for a in scores.parts if a is not None]
    both = np.array([(B.T @ (a[:, None] * B))[j, k] for a in summed])
    each = np.array([a @ B for a in summed])
    total = np.array([a for a in scores.total if a is not None])[:, None]
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
    where_true = where_true.reshape(len(summed), -1)
    sums = np.stack([total - where_true, where_true], axis=1)
    sums[:, sums[0] < NUDGE * total[0]] = 0
    rest = iter(sums)
    sums = Sums._make(None if a is None else next(rest) for a in scores.parts)
    known = None if sums.wrrrr is None else standardized_influence(sums)
    found = spread(sums, rows, known=known)
    full = [
        f"{names[a]}{middle}{names[b]}{end}"
        for a, b in zip(j.tolist(), k.tolist(), strict=True)
        for middle, end in labels
    ]
    tolerance = ROUNDING * np.sqrt(scores.total.wrr / scores.total.w)
    sign = np.where(found.m[1] - found.m[0] < -tolerance, -1.0, 1.0)
    return full, found.estimate(sign), PairTallies(levels, sums)
