"""The result of `firm`: importances with intervals, tests, comparisons and ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from firmlib.curves import ConditionalScore, Curves
from firmlib.estimation.jackknife import Estimate, benjamini_hochberg, holm
from firmlib.estimation.jackknife import compare as compare_estimates
from firmlib.estimation.sums import Source
from firmlib.tables.checks import check_confidence_level, check_memory, check_option

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from firmlib.display import FirmDisplay

__all__ = ["FirmResult"]

_SHOWN = 10  # features in a printed result


def _of_estimate(name: str) -> Any:
    return property(lambda result: getattr(result.estimate, name))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FirmResult:
    """Importances of several features for one score.

    ``result["age"]`` is one row of `to_frame`; iteration is over the names of the features. A
    result contains no data rows and can be pickled.

    Attributes
    ----------
    importances, standard_error, ci_low, ci_high : ndarrays of shape (m,)
        Q_f, which is never negative, with its standard error and interval.
    pvalues : ndarray of shape (m,)
        p-values of Q_f = 0; nan for a population.
    direction, signed : ndarrays of shape (m,)
        1 if the score rises on average with the rank of the feature, -1 if it falls, nan if Q_f is
        0 or the levels are nominal; and Q_f with that sign, as in eq. (10).
    variance, standardized : ndarrays of shape (m,)
        The estimate of Q_f^2, which noise can make negative; and Q_f / sd(s), whose square is the
        correlation ratio and, for independent inputs, the first-order Sobol index.
    heavy_tails : ndarray of bool, shape (m,)
        True where a few rows dominate the error, so that it and the interval are unreliable.
    feature_names, kinds : tuples of str
        Kinds: "number", "date", "duration", "ordered", "nominal", "group" or "pair".
    missing : ndarray of shape (m,)
        Share of missing values; nan for groups and pairs.
    curves : mapping of str to ConditionalScore
        q_f of each feature except groups and pairs.
    n, rows, response, target, given, confidence_level
        Rows with a positive weight; "sample" or "population"; method and class of the score; known
        columns; level of the intervals.
    unexplained : Unexplained or None
        For ``Pairs("interaction")``: the share of Var(s) that no sum of single columns explains.

    Examples
    --------
    >>> import firmlib
    >>> firmlib.firm([3, 0, 0, 5], [[0, 0], [0, 1], [1, 0], [1, 1]], rows="population")
    FirmResult: 2 features, 4 rows (population), score: values
             importance  ci_low  ci_high  pvalue  direction
    feature
    x0              0.5     0.5      0.5                  1
    x1              0.5     0.5      0.5                  1
    """

    estimate: Estimate
    feature_names: tuple[str, ...]
    sources: tuple[Source, ...]
    n: int
    rows: str
    total: Estimate
    response: str = "values"
    target: Any = None
    given: tuple[str, ...] = ()
    confidence_level: float = 0.95
    notes: tuple[str, ...] = ()
    unexplained: Any = None

    def __len__(self) -> int:
        return len(self.feature_names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.feature_names)

    def __contains__(self, name: object) -> bool:
        return name in self.feature_names

    def __getitem__(self, name: str) -> pd.Series:
        return self._frame(np.array([self._place(name)])).iloc[0]

    def _place(self, name: str) -> int:
        if name not in self._places:
            raise KeyError(f"feature {name!r} is unknown; expected one of {self.feature_names[:8]}")
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.feature_names)}

    importances = _of_estimate("Q")
    variance = _of_estimate("V")
    pvalues = _of_estimate("pvalue")
    standard_error = _of_estimate("standard_error")

    @property
    def ci_low(self) -> np.ndarray:
        return self.estimate.interval(self.confidence_level)[0]

    @property
    def ci_high(self) -> np.ndarray:
        return self.estimate.interval(self.confidence_level)[1]

    @property
    def heavy_tails(self) -> np.ndarray:
        return self.estimate.heavy_tails & (self.pvalues < 1 - self.confidence_level)

    @property
    def standardized(self) -> np.ndarray:
        sd = self.total.Q[0]
        return self.importances / sd if sd > 0 else np.zeros(len(self))

    @cached_property
    def direction(self) -> np.ndarray:
        each = [source.direction() for source in self.sources]
        return np.where(self.importances > 0, each, np.nan)

    @property
    def signed(self) -> np.ndarray:
        return np.where(self.importances > 0, self.importances * self.direction, 0.0)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(source.kind for source in self.sources)

    @property
    def missing(self) -> np.ndarray:
        return np.array([source.missing for source in self.sources])

    @cached_property
    def curves(self) -> Mapping[str, ConditionalScore]:
        sample = self.rows == "sample"
        return Curves(dict(zip(self, self.sources, strict=True)), sample)

    def standardize(self) -> FirmResult:
        """Return the result for s / sd(s); errors account for the estimation of sd(s)."""
        if self.total.V[0] <= 0:
            return self
        estimate = self.estimate.divided(self.total.V[0], self.total.psi[:, 0])
        return replace(self, estimate=estimate, total=replace(self.total, V=np.ones(1)))

    def to_frame(self, *, ranks: bool = False) -> pd.DataFrame:
        """Return one row per feature, the most important first; `ranks` adds those of `ranks`."""
        table = self._frame(self._order)
        return table.join(self.ranks(self.confidence_level)) if ranks else table

    @property
    def _order(self) -> np.ndarray:
        return np.argsort(-self.importances, kind="stable")

    def _frame(self, order: np.ndarray) -> pd.DataFrame:
        import pandas as pd

        columns = {
            "importance": self.importances,
            "standard_error": self.standard_error,
            "ci_low": self.ci_low,
            "ci_high": self.ci_high,
            "pvalue": self.pvalues,
            "direction": self.direction,
            "standardized": self.standardized,
            "variance": self.variance,
            "heavy_tails": self.heavy_tails,
            "kind": np.array(self.kinds, dtype=object),
            "missing": self.missing,
        }
        index = pd.Index(np.array(self.feature_names, dtype=object)[order], name="feature")
        return pd.DataFrame({k: v[order] for k, v in columns.items()}, index=index)

    def intervals(
        self, confidence_level: float = 0.95, *, simultaneous: bool = False
    ) -> pd.DataFrame:
        """Return intervals at any level; `simultaneous` applies Bonferroni's correction."""
        import pandas as pd

        check_confidence_level(confidence_level)
        low, high = self.estimate.interval(confidence_level, len(self) if simultaneous else 1)
        index = pd.Index(self.feature_names, name="feature")
        return pd.DataFrame({"ci_low": low, "ci_high": high}, index=index)

    def pvalues_adjusted(self, method: str = "holm") -> np.ndarray:
        """Return p-values adjusted for the number of features.

        "holm" controls the family-wise error rate, "bh" (Benjamini-Hochberg) the false discovery
        rate.
        """
        check_option("method", method, ("holm", "bh"))
        return holm(self.pvalues) if method == "holm" else benjamini_hochberg(self.pvalues)

    def compare(
        self, a: str | None = None, b: str | None = None, *, confidence_level: float = 0.95
    ) -> pd.DataFrame:
        """Return Q_a - Q_b with error, interval and test, by default for all pairs of features."""
        import pandas as pd

        check_confidence_level(confidence_level)
        if (a is None) != (b is None):
            raise ValueError(f"a={a!r} and b={b!r} must both be features, or neither")
        if a is None or b is None:
            i, j = self._pairs()
        else:
            i, j = np.array([self._place(a)]), np.array([self._place(b)])
        found = compare_estimates(self._sampled(), i, self.estimate, j, confidence_level)
        names = np.array(self.feature_names, dtype=object)
        index = pd.MultiIndex.from_arrays([names[i], names[j]], names=["a", "b"])
        return pd.DataFrame(found._asdict(), index=index)

    def _sampled(self) -> Estimate:
        if self.rows == "population":
            raise ValueError("rows='population' has no standard errors; expected rows='sample'")
        return self.estimate

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        check_memory("the comparison of all pairs of features", (len(self), len(self), 40))
        order = self._order
        i, j = np.triu_indices(len(self), 1)
        return order[i], order[j]

    def ranks(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return the best and the worst rank of each feature that the data allow.

        A feature ranks before another if their difference is significant after Holm's correction
        over all pairs, so all ranks hold together with this probability.

        Examples
        --------
        >>> import firmlib
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> firmlib.firm(X @ [1, 1.1, 3], X).ranks()
                 rank  best  worst
        feature
        x2          1     1      1
        x1          2     2      3
        x0          3     2      3
        """
        import pandas as pd

        check_confidence_level(confidence_level)
        m, (i, j) = len(self), self._pairs()
        found = compare_estimates(self._sampled(), i, self.estimate, j, confidence_level)
        told = (holm(found.pvalue) <= 1 - confidence_level) & (found.difference > 0)
        best, worst = 1 + np.bincount(j[told], minlength=m), m - np.bincount(i[told], minlength=m)
        order = self._order
        index = pd.Index(np.array(self.feature_names, dtype=object)[order], name="feature")
        ranks = {"rank": np.arange(1, m + 1), "best": best[order], "worst": worst[order]}
        return pd.DataFrame(ranks, index=index)

    def plot(self, ax: Axes | None = None, *, n: int = 30, ranks: bool = False) -> FirmDisplay:
        """Draw the n largest importances as bars; `ranks` adds the ranks that the data allow."""
        from firmlib.display import FirmDisplay  # matplotlib is an extra

        return FirmDisplay.from_result(self).plot(ax=ax, n=n, ranks=ranks)

    def plot_curves(
        self, *, n: int = 12, columns: int = 3, features: Sequence[str] | None = None
    ) -> Figure:
        """Draw q_f of the n most important features, or of `features`, side by side."""
        from firmlib.display import plot_curves

        return plot_curves(self, n=n, columns=columns, features=features)

    def _head(self) -> str:
        target = "" if self.target is None else f" of {self.target!r}"
        many = f"{len(self)} feature{'s' * (len(self) != 1)}"
        given = f", given {', '.join(self.given)}" * bool(self.given)
        return f"{many}, {self.n} rows ({self.rows}), score: {self.response}{target}{given}"

    @property
    def _foot(self) -> list[str]:
        heavy = [name for name, h in zip(self.feature_names, self.heavy_tails, strict=True) if h]
        notes = [f"heavy tails, so errors are uncertain: {', '.join(heavy[:5])}"] * bool(heavy)
        notes += self.notes
        if self.unexplained is not None:
            notes.append(str(self.unexplained))
        elif self.rows == "sample" and not self.given and len(self) > 1:
            notes.append("firmlib.unexplained(score, X) tells what no single column shows")
        return notes

    def _shown(self, n: int) -> Any:
        columns = ["importance", "ci_low", "ci_high", "pvalue", "direction"]
        return self.to_frame()[columns].head(n)

    def __repr__(self) -> str:
        lines = self._shown(_SHOWN).to_string(float_format="{:.3g}".format, na_rep="")
        more = [f"… and {len(self) - _SHOWN} more: see to_frame()"] * (len(self) > _SHOWN)
        return "\n".join([f"{type(self).__name__}: {self._head()}", lines, *more, *self._foot])

    def _repr_html_(self) -> str:
        """Show the largest importances as a table in a notebook."""
        from html import escape

        html = self._shown(2 * _SHOWN).to_html(float_format="{:.3g}".format, na_rep="", border=0)
        more = [f"and {len(self) - 2 * _SHOWN} more: see to_frame()"] * (len(self) > 2 * _SHOWN)
        foot = "".join(f"<p>{escape(note)}</p>" for note in [*more, *self._foot])
        return f"<p>{escape(self._head())}</p>{html}{foot}"
