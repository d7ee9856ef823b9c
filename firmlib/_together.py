"""Small columns looked at together, as NumPy takes longer to be called than to sum them up."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from firmlib._bins import Bins, starts_by_rank
from firmlib._columns import NUMBER, Column
from firmlib._moments import Tally, tally
from firmlib._scored import Scores
from firmlib._spread import paired_bins

SMALL = 512
"""Rows up to which that is faster."""

_HEAD = 32  # rows that show most columns with ties, which would be sorted in vain
_NEAR = 8 * SMALL  # values that are summed up together; larger arrays are fetched anew each time


def tally_by_rank(
    scores: Scores, features: Sequence[Any], *, method: str, rows: str, n_bins: int | str
) -> list[Tally | None]:
    """Sum up several features at once: numbers without ties have the same bins, by rank.

    None stands for a feature that is to be looked at alone.
    """
    found: list[Tally | None] = [None] * len(features)
    n, weight, starts = len(scores.r), float(scores.w[0]), None
    if n <= SMALL and scores.loops is None and scores.plain and scores.alike:
        starts = starts_by_rank(n, weight, method=method, rows=rows, n_bins=n_bins)
    if starts is None:
        return found
    limit = np.finfo(float).max / (2 * _NEAR * weight)  # beyond it, sums may overflow
    some = [j for j, feature in enumerate(features) if _numbers(feature, limit)]
    repeated = scores
    for part in np.array_split(some, min(len(some), -(-len(some) * n // _NEAR))) if some else ():
        if len(repeated.w) != n * len(part):
            repeated = scores.repeated(len(part))
        f = np.array([features[j].values for j in part])
        for j, one in zip(part.tolist(), _ranked(f, repeated, starts), strict=True):
            found[j] = one
    return found


def _ranked(f: np.ndarray, scores: Scores, starts: np.ndarray) -> list[Tally | None]:
    """Sum up features (first axis) as if they were one, whose bins lie one behind the other."""
    m, n = f.shape
    order = (f.argsort(axis=1) + n * np.arange(m)[:, None]).ravel()
    ranked = f.take(order).reshape(m, n)
    first = ranked[:, starts] + 0.0  # never -0.0
    index = np.empty_like(order)
    index[order] = np.arange(first.size).repeat(np.tile(np.diff(starts, append=n), m))
    sums = tally(index, Bins(first.ravel(), "binned"), scores, f.ravel())
    sums = sums.each(lambda a: a.reshape(first.shape))
    good = (ranked[:, 1:] != ranked[:, :-1]).all(axis=1) & paired_bins(sums).any(axis=1)
    return [
        Tally(Bins(first[i], "binned", last=float(ranked[i, -1]), n=n), sums.each(itemgetter(i)))
        if one
        else None
        for i, one in enumerate(good.tolist())
    ]


def _numbers(feature: Any, limit: float) -> bool:
    """Return whether a feature is a column of numbers up to a limit, without ties at its head."""
    if not isinstance(feature, Column) or feature.rows is not None or feature.scale is not NUMBER:
        return False
    head = feature.values[:_HEAD].tolist()
    within = feature.ends is not None and -limit < feature.ends[0] <= feature.ends[1] < limit
    return within and len(set(head)) == len(head)
