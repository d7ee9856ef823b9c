"""How q_f and its variance are estimated from rows (Definition 2 and the slope after it).

A feature's values are put into bins, its own levels where they are few; per bin four sums over
the rows tell all that is needed (`tally`), and they add up over parts of the data; `summarize`
turns them into q_f, its variance, a standard error and a test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import special

METHODS = ("auto", "discrete", "binned", "slope")
ROWS = ("auto", "sample", "population")

_LARGE = 2048  # rows from which bins are found on a grid, without sorting
_CELLS = 64  # cells of that grid a bin


@dataclass(frozen=True, eq=False)
class ConditionalScore:
    """The conditional expected score q_f, Definition 1, at finitely many values.

    Attributes
    ----------
    t : ndarray
        Values of the feature: its levels, or the mean of the feature in each bin.
    q : ndarray
        E[s(X) | f(X) = t].
    p : ndarray
        Pr(f(X) = t); sums to 1.
    n : ndarray
        Rows (or the sum of their weights) behind each value.
    method : str
        "discrete", "binned" or "slope".
    variance : float
        Var[q_f(f(X))] = Q_f^2: of these values for a population, corrected for the noise in
        them, and perhaps negative, for a sample.
    standard_error : ndarray
        Of q; 0 for a population.

    Examples
    --------
    >>> import firmlib
    >>> scores, level = [1, 2, 3, 5, 6, 7], [[0], [0], [0], [1], [1], [1]]
    >>> curve = firmlib.conditional_expected_score(scores, level, 0)
    >>> curve.t, curve.q, curve.n
    (array([0., 1.]), array([2., 6.]), array([3., 3.]))
    """

    t: np.ndarray
    q: np.ndarray
    p: np.ndarray
    n: np.ndarray
    method: str
    variance: float
    standard_error: np.ndarray


class Estimate(NamedTuple):
    """One feature: q_f (if it can be drawn), its variance with error and test, its sign.

    `noise` is the variance of the mean score that is left if the bins of the rows are given.
    """

    curve: ConditionalScore | None
    method: str
    variance: float
    error: float
    pvalue: float
    noise: float = 0.0
    sign: float = 1.0


class Estimates(NamedTuple):
    """Many features, an array each."""

    names: list[str]
    methods: list[str]
    sign: np.ndarray
    variance: np.ndarray
    error: np.ndarray
    pvalue: np.ndarray
    noise: np.ndarray
    curves: Mapping[str, ConditionalScore]

    @classmethod
    def of(cls, names: list[str], each: list[Estimate]) -> Self:
        """Put single estimates together."""
        curves, methods, variance, error, pvalue, noise, sign = zip(*each, strict=True)
        drawn = {name: c for name, c in zip(names, curves, strict=True) if c is not None}
        return cls(names, methods, *map(np.array, (sign, variance, error, pvalue, noise)), drawn)


class Rows(NamedTuple):
    """Scores less their mean, weights, and what is summed in bins: w, w r and w r^2."""

    mean: float
    r: np.ndarray
    w: np.ndarray
    wr: np.ndarray
    wrr: np.ndarray

    @classmethod
    def of(cls, s: np.ndarray, w: np.ndarray, mean: float | None = None) -> Self:
        """Scores less `mean`, by default their own."""
        if mean is None:
            mean = float((w * s).sum() / w.sum())  # w @ s would wake a pool of threads
        r = s - mean if np.ptp(s) > 0 else np.zeros_like(s)
        wr = w * r
        return cls(mean, r, w, wr, wr * r)


class Grid(NamedTuple):
    """Equal cells, of f or, where f has long tails, of arcsinh((f - centre) / unit)."""

    centre: float
    unit: float
    long_tails: bool
    low: float
    scale: float

    @classmethod
    def over(cls, f: np.ndarray, cells: int, long_tails: bool) -> Self:
        """Cells over the range of f."""
        grid = cls(0.0, 1.0, long_tails, 0.0, 1.0)
        if long_tails:
            centre = np.median(f)
            away = np.abs(f - centre)
            grid = grid._replace(centre=centre, unit=np.median(away) or away.mean())
        low, high = grid.place(np.array([f.min(), f.max()]))
        return grid._replace(low=low, scale=cells * (1 - 1e-12) / (high - low))

    def place(self, f: np.ndarray) -> np.ndarray:
        """Where in the grid the values lie, in cells."""
        if self.long_tails:
            f = np.arcsinh((f - self.centre) / self.unit)
        return (f - self.low) * self.scale

    def value(self, place: np.ndarray) -> np.ndarray:
        """The value that lies there."""
        f = self.low + place / self.scale
        return self.centre + self.unit * np.sinh(f) if self.long_tails else f


@dataclass(frozen=True, eq=False)
class Bins:
    """Intervals of a feature's values, given by the first value of each; ties are never split.

    On a grid the bin of a value is that of its cell, and is looked up instead of searched for.
    """

    first: np.ndarray
    method: str
    grid: Grid | None = None
    bin_of_cell: np.ndarray | None = None

    def index(self, f: np.ndarray) -> np.ndarray:
        """The bin of each value; those beyond the ends go to the last."""
        if self.grid is None:
            return np.maximum(np.searchsorted(self.first, f, side="right") - 1, 0)
        cell = np.clip(self.grid.place(f), 0, len(self.bin_of_cell) - 1)
        return self.bin_of_cell[cell.astype(np.int32)]


class Binned(NamedTuple):
    """A feature's bins and what `tally` found in them."""

    bins: Bins
    sums: np.ndarray


def estimate(
    rows: Rows, f: np.ndarray, *, method: str, kind: str, n_bins: int | str
) -> Binned | Estimate:
    """What rows that are a "sample" or a "population" tell of a feature: see `summarize`."""
    if method == "slope":
        return _slope(rows, f, kind)
    bins, index = find_bins(f, rows.w, method=method, kind=kind, n_bins=n_bins)
    sums = tally(index, len(bins.first), rows, f)
    if kind == "sample":
        check_paired(sums)
    return Binned(bins, sums)


def check_paired(sums: np.ndarray) -> None:
    """Raise if no bin has two rows, so that effect and noise cannot be told apart."""
    n, squares = sums[0], sums[2]
    if len(n) > 1 and squares.any() and n.max() <= 2 - 1e-9:
        raise ValueError(
            "a sample needs two rows in some level or bin of the feature to tell its effect from "
            "noise; use fewer n_bins, or rows='population' if the rows are the whole distribution"
        )


def find_bins(
    f: np.ndarray, w: np.ndarray, *, method: str, kind: str, n_bins: int | str
) -> tuple[Bins, np.ndarray]:
    """Bins for the values of a feature, and the bin of each.

    With n_bins="auto" the outermost bins are halved again and again: q_f may change much there.
    """
    tails = n_bins == "auto" and kind == "sample"
    if n_bins == "auto" and kind == "sample":
        n_bins = max(2, int(np.sqrt(w.sum()) + 1e-9))  # the nudge: 3 x 1/3 rows are one row
    many = len(f) >= _LARGE and kind == "sample" and method != "discrete"
    if many and _CELLS * n_bins <= 4 * len(f):
        for long_tails in (False, True):
            found = _on_grid(f, w, method, n_bins, tails, long_tails)
            if found is not None:
                return found
    levels, index = np.unique(f, return_inverse=True)
    if n_bins == "auto":
        n_bins = max(2, int(np.sqrt(len(levels))))
    if method == "auto":
        few = kind == "population" or len(levels) <= n_bins
        method = "discrete" if few else "binned"
    if method == "binned":
        first = _equal_frequency(np.bincount(index, w), n_bins, tails)
        return Bins(levels[first], method), (np.cumsum(first) - 1)[index]
    return Bins(levels, method), index


def _on_grid(
    f: np.ndarray, w: np.ndarray, method: str, n_bins: int, tails: bool, long_tails: bool
) -> tuple[Bins, np.ndarray] | None:
    """Bins that are runs of equal cells, found in linear time; None if the cells are too coarse.

    They are where more than a quarter of a bin lies within a cell and is not one value.
    """
    cells = _CELLS * n_bins
    with np.errstate(all="ignore"):
        grid = Grid.over(f, cells, long_tails)
        if not 0 < grid.scale < np.inf or not np.isfinite(grid.low):
            return None
    cell = grid.place(f).astype(np.int32)
    n = np.bincount(cell, w, cells)
    taken = n > 0
    few = method == "auto" and np.count_nonzero(taken) <= n_bins
    full = taken if few else n > n.sum() / (4 * n_bins)
    if full.any():
        value = np.zeros(cells)
        value[cell] = f
        if np.any((value[cell] != f) & full[cell]):
            return None
    if few:
        return Bins(value[taken], "discrete"), (np.cumsum(taken) - 1)[cell]
    first = np.zeros(cells, dtype=bool)
    first[taken] = _equal_frequency(n[taken], n_bins, tails)
    bin_of_cell = np.maximum(np.cumsum(first, dtype=np.int32) - 1, 0)
    index = bin_of_cell[cell]
    return Bins(grid.value(np.flatnonzero(first)), "binned", grid, bin_of_cell), index


def _equal_frequency(n: np.ndarray, n_bins: int, tails: bool) -> np.ndarray:
    """Whether each level begins one of about `n_bins` bins of equal weight; ties stay together.

    With `tails` the first and the last bin are halved until about four rows are left.
    """
    W = n.sum()
    edges = np.arange(1, n_bins) / n_bins
    if tails:
        halvings = max(0, int(np.log2(max(W / (4 * n_bins), 1)) + 1e-9))
        halves = 0.5 ** np.arange(halvings, 0, -1) / n_bins
        edges = np.concatenate([halves, edges, 1 - halves[::-1]])
    middle = (np.cumsum(n) - n / 2) / W
    # The nudge keeps a level that lies on an edge there, however its weight was split.
    bin_of_level = np.searchsorted(edges, middle + 1e-9 / n_bins, side="right")
    return np.diff(bin_of_level, prepend=-1) > 0


def tally(index: np.ndarray, n_bins: int, rows: Rows, f: np.ndarray) -> np.ndarray:
    """Sums of w, w r, w r^2 and w f over the rows of each bin, shape (4, n_bins)."""
    summed = (rows.w, rows.wr, rows.wrr, rows.w * f)
    sums = np.array([np.bincount(index, values, n_bins) for values in summed])
    if not np.isfinite(sums[3]).all():
        raise ValueError(f"values such as {np.abs(f).max():.3g} overflow when summed; rescale them")
    return sums


def summarize(found: Sequence[Binned], mean: float, kind: str) -> list[Estimate]:
    """q_f of each feature with its variance, error, test and sign."""
    estimates = [None] * len(found)
    sizes = np.array([len(bins.first) for bins, _ in found], dtype=int)
    alike = np.ceil(np.log2(sizes))  # features with about as many bins are looked at together
    for which in (np.flatnonzero(alike == k) for k in np.unique(alike)):
        sums = np.zeros((4, sizes[which].max(), len(which)))
        t = np.zeros(sums.shape[1:])
        for i, j in enumerate(which):
            sums[:, : sizes[j], i] = found[j].sums
            t[: sizes[j], i] = found[j].bins.first
        n, sr, srr, sf = sums
        some = np.maximum(n, 1e-300)
        t = np.where([found[j].bins.method == "binned" for j in which], sf / some, t)
        m, v, *numbers = spread(n, sr, srr, kind)
        q, error = m + sr.sum(axis=0) / n.sum(axis=0) + mean, np.sqrt(v / some)
        sign = np.where(_downhill(n, t, m, srr.sum(axis=0)), -1.0, 1.0)
        for i, j in enumerate(which):
            rows, method = n[:, i] > 0, found[j].bins.method
            variance, *rest = (float(number[i]) for number in numbers)
            own = (a[rows, i] for a in (t, q, n / n[:, i].sum(), n))
            curve = ConditionalScore(*own, method, variance, error[rows, i])
            estimates[j] = Estimate(curve, method, variance, *rest, float(sign[i]))
    return estimates


def _downhill(n: np.ndarray, t: np.ndarray, m: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Whether q_f falls with t on the whole."""
    z = t / np.maximum(np.abs(t).max(axis=0), 1e-300)  # any unit will do, and can't overflow
    z = np.where(n > 0, z - (n * z).sum(axis=0) / n.sum(axis=0), 0.0)
    slope = (n * z * m).sum(axis=0)
    return slope < -1e-12 * np.sqrt((n * z**2).sum(axis=0) * squares)


class Spread(NamedTuple):
    """Means and variances in bins; V = Var[q_f(f(X))], its standard error, p-value of 0, noise."""

    m: np.ndarray
    v: np.ndarray
    variance: np.ndarray
    error: np.ndarray
    pvalue: np.ndarray
    noise: np.ndarray


def spread(n: np.ndarray, sr: np.ndarray, srr: np.ndarray, kind: str) -> Spread:
    """How far the means differ between bins (first axis), for one feature or many (last axes).

    From a sample of W rows, by the within-bin U-statistic: the mean of s_i s_j over pairs i != j
    within a bin estimates q_f(t)^2 without bias, and the same over all pairs estimates the
    squared mean. Written with the unbiased variances v_b within the bins and v in total, that is

        V = sum_b p_b (m_b - m)^2 - (sum_b v_b - v) / W.

    For a population, V is the first term alone, without error.
    """
    W, some = n.sum(axis=0), np.maximum(n, 1e-300)
    centre = sr.sum(axis=0) / W
    flat = ((n > 0).sum(axis=0) == 1) | (srr.sum(axis=0) == 0)
    m = np.where((n > 0) & ~flat, sr / some - centre, 0.0)
    variance = (n * m**2).sum(axis=0) / W
    zero = np.zeros_like(variance)
    if kind == "population":
        return Spread(m, np.zeros_like(m), variance, zero, zero * np.nan, zero)
    v = np.where(flat, 0.0, _within(srr - sr**2 / some, n))
    total = srr.sum(axis=0) - W * centre**2
    variance -= np.where(flat, 0.0, (v.sum(axis=0) - total / (W - 1)) / W)
    error, pvalue = _standard_error(m, n, v), np.where(flat, 1.0, _brown_forsythe(m, n, v))
    return Spread(m, v, variance, error, pvalue, (n * v).sum(axis=0) / W**2)


def _within(squares: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Unbiased variances v_b within the bins; lone rows borrow the pooled one."""
    squares = np.maximum(squares, 0)
    paired = n > 2 - 1e-9
    df = np.where(paired, n - 1, 0.0)
    pooled = (squares * paired).sum(axis=0) / np.maximum(df.sum(axis=0), 1e-300)
    return np.where(paired, squares / np.where(paired, df, 1.0), np.where(n > 0, pooled, 0.0))


def _standard_error(m: np.ndarray, n: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Of V, by its influence function psi = 2 (s - mu)(q - mu) - (q - mu)^2 - V.

    Var(psi) = 4 E[v q^2] + Var(q^2) for centred q. The noise in m_b^2 is taken off; where q = 0
    there remains the variance 2 sum_b v_b^2 / W^2 of a U-statistic of second order.
    """
    W, vv = n.sum(axis=0), (v**2 * np.maximum(n - 1, 1) / (n + 1)).sum(axis=0)
    slope = 4 * (v * n * m**2).sum(axis=0) - 4 * vv
    bend = (n * (m**2 - (n * m**2).sum(axis=0) / W) ** 2).sum(axis=0)
    return np.sqrt(np.maximum(slope, 0) + bend + 2 * vv) / W


def _brown_forsythe(m: np.ndarray, n: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Test that all q are equal where the bins' variances need not be.

    F = sum_b n_b m_b^2 / sum_b (1 - p_b) v_b, with degrees of freedom by two moments.

    M. B. Brown, A. B. Forsythe. Technometrics 16(1), 1974. D. V. Mehrotra. Communications in
    Statistics – Simulation and Computation 26(3), 1997.
    """
    p, signal = n / n.sum(axis=0), (n * m**2).sum(axis=0)
    noise = ((1 - p) * v).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # no noise: any difference is real
        df1 = noise**2 / (
            (v**2).sum(axis=0) + (p * v).sum(axis=0) ** 2 - 2 * (p * v**2).sum(axis=0)
        )
        df2 = noise**2 / (((1 - p) * v) ** 2 / np.maximum(n - 1, 1)).sum(axis=0)
        pvalue = special.fdtrc(df1, df2, signal / noise)
    return np.where(noise > 0, pvalue, np.where(signal > 0, 0.0, 1.0))


def _slope(rows: Rows, f: np.ndarray, kind: str) -> Estimate:
    """The linear part of q_f: beta times the feature, with variance beta^2 Var(f)."""
    _, r, w, wr, wrr = rows
    W = w.sum()
    f0 = w @ f / W
    unit = np.abs(f - f0).max() or 1.0  # any will do, and this one can't overflow
    z = (f - f0) / unit
    covariance, z_variance = wr @ z / W, w @ z**2 / W
    if f.min() == f.max():
        covariance = z_variance = 0.0
    beta = covariance / (z_variance or 1.0)
    variance = beta**2 * z_variance
    error, pvalue = 0.0, np.nan if kind == "population" else 1.0
    noise = w @ (z * (r - beta * z)) ** 2
    if kind == "sample" and z_variance * wrr.sum() > 0:
        psi = 2 * r * beta * z - (beta * z) ** 2 - variance
        error = float(np.sqrt(w @ psi**2) / W)
        pvalue = float(2 * special.ndtr(-abs(covariance) * W / np.sqrt(noise))) if noise else 0.0
    levels, index = np.unique(f, return_inverse=True)
    n = np.bincount(index, w)
    x = (levels - f0) / unit
    spread = np.sqrt(noise) / (W * (z_variance or 1.0)) * np.abs(x) * (error > 0)
    curve = ConditionalScore(
        levels, beta * x + rows.mean, n / W, n, "slope", float(variance), spread
    )
    downhill = covariance < -1e-12 * np.sqrt(z_variance * wrr.sum() / W)
    sign = -1.0 if downhill else 1.0
    return Estimate(curve, "slope", float(variance), error, pvalue, 0.0, sign)
