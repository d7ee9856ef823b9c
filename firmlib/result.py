"""The result of `firm`: importances with intervals, tests, comparisons, ranks and curves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
import pandas as pd

import firmlib  # for pictures, which import this module
from firmlib.estimation import jackknife
from firmlib.estimation.variance import Source
from firmlib.tables.checks import check_memory, check_number, check_option

__all__ = ["ConditionalScore", "FirmResult", "compare"]

_SINGULAR = {"importances": "importance", "pvalues": "pvalue", "kinds": "kind"}


@dataclass(frozen=True, eq=False)
class ConditionalScore:
    """The conditional expected score q_f, Definition 1, at finitely many values.

    `t` has the levels of the feature, or a value in the middle of each bin; the last may stand for
    missing values: nan, NaT or None. `q` is E[s(X) | f(X) = t] with its `standard_error` (0 for a
    population), `p` is Pr(f(X) = t), and `n` is the effective number of rows. `kind` is "number",
    "date", "duration", "ordered" or "nominal".
    """

    t: np.ndarray
    q: np.ndarray
    p: np.ndarray
    n: np.ndarray
    standard_error: np.ndarray
    kind: str = "number"

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per value."""
        return pd.DataFrame(vars(self), columns=["t", "q", "standard_error", "p", "n"])

    def plot(self, ax: Any = None) -> firmlib.ConditionalScoreDisplay:
        """Draw the curve."""
        return firmlib.ConditionalScoreDisplay(self).plot(ax)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FirmResult:
    """Importances of several features for one score.

    ``result["age"]`` is one row of `to_frame`; iteration is over names. It pickles, without data.

    Attributes
    ----------
    importances, standard_error, ci_low, ci_high, pvalues : ndarrays of shape (m,)
        Q_f, which is never negative, its interval, and p-values of Q_f = 0 (nan for a population).
    direction, signed : ndarrays of shape (m,)
        1 if the score rises on average with the rank of the feature, -1 if it falls, nan if Q_f is
        0 or the levels are nominal; and Q_f with that sign, as in eq. (10).
    variance, standardized : ndarrays of shape (m,)
        The estimate of Q_f^2, which noise can make negative; and Q_f / sd(s), whose square is the
        correlation ratio and, for independent inputs, the first-order Sobol index.
    heavy_tails, missing : ndarrays of shape (m,)
        Where a few rows dominate the error, so that it is unreliable; the share of missing values.
    kinds, curves : tuple of str, dict of str to ConditionalScore
        Kinds: those of `ConditionalScore`, "group" or, of interactions, "pair"; q_f for the former.
    feature_names, n, rows, response, target, given, confidence_level
        Rows with a positive weight, and what `firm` was asked for.
    pairs, unexplained
        Of Pairs("interaction"): the names of both columns, and what sums of curves leave of Var(s).
    """

    estimate: jackknife.Estimate
    feature_names: tuple[str, ...]
    sources: tuple[Source, ...]
    n: int
    rows: str
    total: jackknife.Estimate  # Var(s)
    response: str = "values"
    target: Any = None
    given: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    confidence_level: float = 0.95
    notes: tuple[str, ...] = ()
    unexplained: Any = None

    _columns = """importances standard_error ci_low ci_high pvalues direction standardized variance
    heavy_tails kinds missing"""

    def __len__(self) -> int:
        return len(self.feature_names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.feature_names)

    def __getitem__(self, name: str) -> pd.Series:
        return self.to_frame().loc[name]

    importances = property(lambda self: self.estimate.Q)
    variance = property(lambda self: self.estimate.V)
    standardized = property(lambda self: self.standardize().importances)
    pvalues = property(lambda self: self.estimate.pvalue)
    standard_error = property(lambda self: self.estimate.standard_error)
    ci_low = property(lambda self: self.estimate.interval(self.confidence_level)[0])
    ci_high = property(lambda self: self.estimate.interval(self.confidence_level)[1])
    kinds = property(lambda self: tuple(source.kind for source in self.sources))
    missing = property(lambda self: np.array([source.missing for source in self.sources]))
    signed = property(lambda self: np.where(self.variance > 0, self.estimate.Q * self.direction, 0))
    heavy_tails = property(lambda self: self.estimate.heavy_tails & (self.pvalues < self._alpha))
    _alpha = property(lambda self: 1 - self.confidence_level)
    _index = property(lambda self: pd.Index(self.feature_names, name="feature"))
    _order = property(lambda self: np.argsort(-self.importances, kind="stable"))

    @cached_property
    def direction(self) -> np.ndarray:
        each = [source.direction() for source in self.sources]
        return np.where(self.importances > 0, each, np.nan)

    @cached_property
    def curves(self) -> dict[str, ConditionalScore]:
        found = {}
        for name, source in zip(self, self.sources, strict=True):
            if source.sums is not None:
                t, bins = source.curve()
                error = np.sqrt(np.maximum(bins.e, 0)) * (self.rows == "sample")
                found[name] = ConditionalScore(t, bins.m, bins.p, bins.n, error, source.kind)
        return found

    def to_frame(self, *, ranks: bool = False) -> pd.DataFrame:
        """Return one row per feature, the most important first; `ranks` adds those of `ranks()`."""
        columns = {_SINGULAR.get(name, name): getattr(self, name) for name in self._columns.split()}
        table = pd.DataFrame(columns, self._index).iloc[self._order]
        return table.join(self.ranks(self.confidence_level)) if ranks else table

    def standardize(self) -> FirmResult:
        """Return the result for s / sd(s); errors account for the estimation of sd(s)."""
        if self.total.V[0] <= 0:
            return self
        estimate = self.estimate.divided(self.total.V[0], self.total.psi[:, 0])
        return replace(self, estimate=estimate, total=replace(self.total, V=np.ones(1)))

    def intervals(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return intervals at any level, such as 1 - 0.05 / m for m features together."""
        check_number("confidence_level", confidence_level, 0, 1, inside=True)
        low, high = self.estimate.interval(confidence_level)
        return pd.DataFrame({"ci_low": low, "ci_high": high}, self._index)

    def pvalues_adjusted(self, method: str = "holm") -> np.ndarray:
        """Return p-values that control the family-wise ("holm") or false discovery rate ("bh")."""
        check_option("method", method, ("holm", "bh"))
        if method == "holm" or self.rows == "population":  # whose p-values are nan
            return jackknife.holm(self.pvalues)
        from scipy.stats import false_discovery_control  # slow to import

        return false_discovery_control(self.pvalues)

    def compare(self, *features: str, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return Q_a - Q_b of two features, or of all pairs, with error, interval and test."""
        if not features:
            check_memory("the comparison of all pairs of features", (len(self), len(self), 40))
            i, j = self._order[np.array(np.triu_indices(len(self), 1))]
        elif len(features) == 2 and all(name in self.feature_names for name in features):
            i, j = self._index.get_indexer(features)[:, None]
        else:
            raise ValueError(f"features={features} must be two features; without any, all pairs")
        index = pd.MultiIndex.from_arrays([self._index[i], self._index[j]], names=["a", "b"])
        return self._minus(i, self, j, confidence_level).set_axis(index)

    def _minus(self, i: Any, other: FirmResult, j: Any, level: float, paired: bool = True) -> Any:
        check_number("confidence_level", level, 0, 1, inside=True)
        if "population" in (self.rows, other.rows):
            raise ValueError("rows='population' has no standard errors; expected rows='sample'")
        return pd.DataFrame(jackknife.compare(self.estimate, i, other.estimate, j, level, paired))

    def ranks(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return the best and the worst rank of each feature that the data allow.

        A feature ranks before another if their difference is significant after Holm's correction
        over all pairs, so all ranks hold together with this probability.

        >>> import firmlib
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> firmlib.firm(X @ [1, 1.1, 3], X).ranks()
                 rank  best  worst
        feature
        x2          1     1      1
        x1          2     2      3
        x0          3     2      3
        """
        gap, *_, p = self.compare(confidence_level=confidence_level).to_numpy().T
        clear, m = (jackknife.holm(p) <= 1 - confidence_level) & (gap > 0), len(self)
        better, worse = (np.bincount(end[clear], minlength=m) for end in np.triu_indices(m, 1))
        columns = {"rank": np.arange(1, m + 1), "best": 1 + worse, "worst": m - better}
        return pd.DataFrame(columns, self._index[self._order])

    def plot(self, ax: Any = None, **options: Any) -> firmlib.FirmDisplay:
        """Draw the importances as bars, with the options of `FirmDisplay.plot`."""
        return firmlib.FirmDisplay(self).plot(ax, **options)

    def plot_curves(self, **options: Any) -> Any:
        """Draw q_f of several features, with the options of `firmlib.plot_curves`."""
        return firmlib.plot_curves(self, **options)

    def _shown(self, render: str) -> list[str]:
        """Return a headline, a table as this method of pandas renders it, and notes."""
        head = f"{type(self).__name__}: {len(self)} feature{'s' * (len(self) != 1)}, "
        head += f"{self.n} rows ({self.rows}), score: {self.response}"
        head += f" of {self.target!r}" * (self.target is not None)
        head += f", given {', '.join(self.given)}" * bool(self.given)
        notes = [f"… and {len(self) - 10} more: see to_frame()"] * (len(self) > 10)
        heavy = ", ".join(self._index[self.heavy_tails][:5])
        notes += [f"heavy tails, so errors are uncertain: {heavy}"] * bool(heavy) + [*self.notes]
        if self.unexplained is not None:
            notes.append(str(self.unexplained))
        elif self.rows == "sample" and not self.given and len(self) > 1:
            notes.append("firmlib.unexplained(score, X) estimates what no single column explains")
        columns = ["importance", "ci_low", "ci_high", "pvalue", "direction"]
        table: Any = self.to_frame()[columns].head(10)
        return [head, getattr(table, render)(float_format="{:.3g}".format, na_rep=""), *notes]

    def __repr__(self) -> str:
        return "\n".join(self._shown("to_string"))

    def _repr_html_(self) -> str:
        head, table, *notes = self._shown("to_html")
        return f"<p>{escape(head)}</p>{table}<p>{escape('; '.join(notes))}</p>"


def compare(
    result: FirmResult, other: FirmResult, *, paired: Any = "auto", confidence_level: float = 0.95
) -> pd.DataFrame:
    """Return the differences, `result` minus `other`, between importances of shared features.

    The results are for two models on the same rows, or for two independent samples. Rows are
    `paired` if they, their order, weights and groups are the same; "auto" finds out from the bins.
    `confidence_level` is that of the intervals.

    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> one, two = (firmlib.firm(lambda X, a=a: X[:, 0] + a * X[:, 1], X) for a in (1, 1.1))
    >>> firmlib.compare(one, two)["difference"]["x1"].round(1)
    np.float64(-0.1)
    """
    if not all(isinstance(each, FirmResult) for each in (result, other)):
        raise ValueError(f"result and other must be FirmResults, got {type(result)}, {type(other)}")
    check_option("paired", paired, (True, False, "auto"))
    names = result._index.intersection(other._index, sort=False)
    if names.empty:
        raise ValueError(f"other has the features {other.feature_names}; result has none of them")
    i, j = (each._index.get_indexer(names) for each in (result, other))
    if paired == "auto":
        marks = [[r.sources[k].mark for k in at] for r, at in ((result, i), (other, j))]
        paired = result.n == other.n and np.allclose(*marks, rtol=1e-9, atol=0)
    elif paired and result.n != other.n:
        raise ValueError(f"paired=True needs the same rows, got {result.n} and {other.n}")
    return result._minus(i, other, j, confidence_level, bool(paired)).set_axis(names)
