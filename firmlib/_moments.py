"""Sums in bins, and what follows from them (Definition 2).

Per bin a few sums over the rows tell all that is needed (`Sums`), and they add up over parts of
the data; from them follow q_f, the variance of q_f, a standard error and a test (`summarize`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple, Self

import numpy as np

from firmlib._bins import Bins
from firmlib._columns import Column
from firmlib._fast import Summed
from firmlib._inference import Estimate, Influence
from firmlib._rounding import EMPTY, ROUNDING
from firmlib._scored import MANY, Scores, by_unit, summed_pairs
from firmlib._spread import Sums, paired_bins, spread

METHODS = ("auto", "discrete", "binned", "slope")
ROWS = ("auto", "sample", "population")

FINE = 50_000
"""Rows from which bins are so narrow that lines within them, and skewness, no longer matter."""


class Tally(NamedTuple):
    """A feature's bins and the sums in them.

    `total` are those of all rows where these do not add up, because units share bins, and
    `influence` sums of psi, if they are needed; `dropped` is the weight of rows that were left
    out because the feature is missing there.
    """

    bins: Bins
    sums: Sums
    total: Sums | None = None
    influence: Influence | None = None
    dropped: float = 0.0

    @classmethod
    def of(
        cls, scores: Scores, column: Column, *, method: str, rows: str, n_bins: int | str
    ) -> Self:
        """Find bins for the values of a feature, and sum up in them."""
        f, entries = scores.of_column(column)
        bins, index = entries.find_bins(
            f, method=method, rows=rows, n_bins=n_bins, scale=column.scale, ends=column.ends
        )
        sums = tally(index, bins, entries, f)
        units, total, influence = scores.unit is not None, None, None
        if units:
            total = scores.total
        if rows == "sample" and (units or scores.standardized):
            influence = scores.influence(index, sums)
        return cls(bins, sums, total, influence)

    @property
    def method(self) -> str:
        """How q_f is estimated."""
        return self.bins.method

    @property
    def missing(self) -> float:
        """The share of rows in which the feature is missing."""
        if not (self.bins.missing or self.dropped):
            return 0.0
        missing = self.sums.w[-1] if self.bins.missing else 0.0
        return float((missing + self.dropped) / (self.sums.w.sum() + self.dropped))

    def check(self, rows: str) -> None:
        """Raise if no bin has two rows, so that effect and noise cannot be told apart."""
        w, squares = self.sums.w, self.sums.wrr
        lone = not paired_bins(self.sums).any()
        if rows == "sample" and lone and len(w) > 1 and squares.any():
            instead = "leave it out of features=" if self.bins.nominal else "use fewer n_bins"
            raise ValueError(
                "a sample needs two rows in some level or bin of the feature to tell its effect "
                f"from noise; {instead}, or rows='population' if the rows are the whole "
                "distribution"
            )

    def curve(self, mean: float, rows: str) -> dict[str, Any]:
        """Return q_f as the fields of a `ConditionalScore`."""
        taken = self.sums.w > 0
        sums = self.sums.each(lambda a: a[taken])
        first, w = self.bins.first[taken], sums.w
        found = spread(sums, rows, self.total, not self.bins.nominal, self.influence)
        t = first
        if self.bins.method == "binned" and sums.wf is not None:
            t = np.where(np.isnan(first), first, sums.wf / w)
        return {
            "t": self.bins.scale.shown(t),
            "q": found.m + sums.wr.sum() / w.sum() + mean,
            "p": w / w.sum(),
            "n": w,
            "method": self.bins.method,
            "variance": float(found.variance),
            "standard_error": np.sqrt(found.u / w),
            "kind": self.bins.scale.kind,
        }


def tally(index: Any, bins: Bins, scores: Scores, f: np.ndarray) -> Sums:
    """Return the sums over the rows of each bin."""
    n_bins, w, wr = len(bins.first), scores.w, scores.parts.wr
    if bins.missing and not isinstance(index, Summed) and np.isnan(f.max()):
        f = np.where(np.isnan(f), 0.0, f)
    if scores.loops is not None:
        sums = _swept(index, scores, f, bins)
    else:
        sums = scores.summed(index, n_bins)
        if bins.method == "binned" and scores.fine:
            with np.errstate(over="ignore", invalid="ignore"):  # then there is no line
                g = f - bins.first.take(index)
                wg = np.bincount(index, w * g, n_bins)
                if len(f) < MANY:
                    wgr = np.bincount(index, wr * g, n_bins)
                    wgg = np.bincount(index, np.square(g, out=g) * w, n_bins)
                else:
                    pairs = np.empty((len(f), 2))
                    np.multiply(wr, g, out=pairs[:, 0])
                    np.multiply(np.square(g, out=g), w, out=pairs[:, 1])
                    wgr, wgg = summed_pairs(pairs.view(complex).ravel(), index, n_bins)
                sums = sums._replace(wg=wg, wgr=wgr, wgg=wgg, wf=sums.w * bins.first + wg)
        if sums.wf is None or not isfinite(sums.wf.sum()):  # of missing values it is not known yet
            sums = sums._replace(wf=np.bincount(index, w * f, n_bins))
    with np.errstate(invalid="ignore"):
        known = isfinite(sums.wf.sum())
    if not known:
        raise ValueError(f"values such as {np.abs(f).max():.3g} overflow when summed; rescale them")
    return sums if scores.unit is None else by_unit(index, n_bins, scores, sums)


def _swept(index: np.ndarray | Summed, scores: Scores, f: np.ndarray, bins: Bins) -> Sums:
    """Return the sums by compiled loops, unless they are known already."""
    if not isinstance(index, Summed):
        rows = index.astype(np.int32, copy=False), np.ascontiguousarray(f), scores.r, scores.weights
        index = Summed(scores.loops.sums(*rows, bins.first, scores.numbers))
    table = index.table
    if len(table) < len(bins.first):  # no row that was swept lies in a last bin of missing values
        table = np.append(table, np.zeros((1, table.shape[1])), axis=0)
    w, wr, wrr, wf, *fine = table.T
    wrrr, wgg, wgr, wg = fine or [None] * 4
    if bins.method != "binned":
        wg = wgg = wgr = None
    return Sums(w, wr, wrr, wf, wrrr=wrrr, wg=wg, wgg=wgg, wgr=wgr)


def summarize(tallies: Sequence[Tally], rows: str) -> Estimate:
    """Return the variance of q_f with its error, test and sign, for each feature."""
    estimates = Estimate.empty(len(tallies))
    sizes = np.array([len(one.bins.first) for one in tallies], dtype=int)
    alike = np.ceil(np.log2(sizes))  # features with about as many bins are looked at together
    kinds = np.array([one.sums.wgg is not None for one in tallies])
    for k in np.unique(2 * alike + kinds):
        which = np.flatnonzero(2 * alike + kinds == k)
        some = [tallies[j] for j in which.tolist()]
        there = np.arange(sizes[which].max()) < sizes[which, None]

        def table(values: Sequence[Any]) -> Any:
            """Return what is known of each feature's bins; these stay together in memory."""
            if any(each is None for each in values):
                return None
            if there.all():  # noqa: B023
                return np.array(values).T
            filled = np.zeros(there.shape)  # noqa: B023
            filled[there] = np.concatenate(values)  # noqa: B023
            return filled.T

        sums = Sums._make(map(table, zip(*(one.sums for one in some), strict=True)))
        first = table([one.bins.first for one in some])
        known = total = None
        if some[0].influence is not None:
            known = Influence(*np.array([one.influence for one in some]).T)
        if some[0].total is not None:
            columns = zip(*(one.total for one in some if one.total), strict=True)
            total = Sums._make(None if c[0] is None else np.array(c) for c in columns)
        ordered = np.array([not one.bins.nominal for one in some])
        found = spread(sums, rows, total, ordered, known)
        binned = [one.bins.method == "binned" for one in some] & ~np.isnan(first)
        t = np.where(binned, sums.wf / np.maximum(sums.w, EMPTY), first)
        falls = _downhill(sums.w, t, found.m, sums.wrr.sum(axis=0)) & ordered
        estimates.put(which, found.estimate(np.where(falls, -1.0, 1.0)))
    return estimates


def _downhill(n: np.ndarray, t: np.ndarray, m: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return whether q_f falls with t on the whole, where t is known."""
    n, t = np.where(np.isnan(t), 0.0, n), np.nan_to_num(t, nan=0.0)
    z = t / np.maximum(np.abs(t).max(axis=0), EMPTY)  # any unit will do, and can't overflow
    z = np.where(n > 0, z - (n * z).sum(axis=0) / np.maximum(n.sum(axis=0), EMPTY), 0.0)
    slope = (n * z * m).sum(axis=0)
    return slope < -ROUNDING * np.sqrt((n * z**2).sum(axis=0) * squares)
