"""What comes out: Q_f of every feature with its interval, and how it is compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from firmlib._checks import check_confidence_level, check_memory, check_option
from firmlib._curves import ConditionalScore
from firmlib._inference import Estimate
from firmlib._paired import (
    Jackknife,
    Kept,
    benjamini_hochberg,
    correlation,
    difference_error,
    differences,
    holm,
    known,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from firmlib.display import FirmDisplay

__all__ = ["ConditionalScore", "FirmResult"]

_SHOWN = 10  # features in a printed result
_SHOWN_HTML = 20
_TABLES = 16  # of all pairs that are there at once while they are compared


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FirmResult:
    """Importances of several features for one score.

    ``len(result)`` is the number of features, ``result["age"]`` the row of one of them,
    ``"age" in result`` whether there is one, and ``for name in result`` goes through their names.

    Attributes
    ----------
    importances : ndarray of shape (m,)
        Q_f, signed by the direction in which the score moves with the feature; where it goes
        up and down alike, the sign says little.
    standard_error : ndarray of shape (m,)
        Of |Q_f|, by the influence function of its square (where Q_f drowns in noise, an upper
        bound); 0 for a population.
    ci_low, ci_high : ndarrays of shape (m,)
        Confidence interval of Q_f, signed as Q_f; it holds 0 where the test does not reject,
        and may hold it where the test does: to see that there is a trend takes fewer rows than
        to tell how large it is.
    pvalues : ndarray of shape (m,)
        Of the test that Q_f = 0, which allows the scores to vary more at some values of the
        feature than at others; nan for a population.
    variance : ndarray of shape (m,)
        The estimate of Var[q_f(f(X))] = Q_f^2; from a sample it can fall below 0, where
        the importance is 0. Lines within bins, and categories with many levels, count times
        1 - pvalue, rare levels in so far as they stand out from noise; the interval reaches as
        far as if all counted.
    standardized : ndarray of shape (m,)
        Q_f / sd(s): comparable across models, between -1 and 1 up to estimation error. Its
        square is the correlation ratio, and for independent inputs the first-order Sobol index.
    methods : tuple of str
        How each was estimated: "discrete", "binned", "slope" or, for groups, "boosted".
    kinds : tuple of str
        What each holds: "number", "date", "duration", "ordered", "nominal" or "group".
    missing : ndarray of shape (m,)
        Share of the rows in which it is missing; nan for groups.
    feature_names : tuple of str
    curves : mapping of str to ConditionalScore
        q_f of each feature but groups, made when asked for.
    n : int
        Rows with a weight.
    rows : str
        What they were taken for: "sample" or "population".
    response : str
        What the score is: the method that a model was asked, "callable" or "values".
    target : label, column or None
        The class or output that the score belongs to.
    given : tuple of str
        Columns that were known already; then importances are what each feature adds to them.
    weight_type : str
        What weights meant: "count" or "sampling".
    confidence_level : float
        Of the intervals.
    heavy_tails : ndarray of bool, shape (m,)
        Where fewer than ten rows decide how large the error is: do not trust it, nor the
        interval, which other rows would make wider.
    estimate : Estimate
        What the intervals are made from.
    kept : Kept, Jackknife or None
        The table and the scores, for `compare` and `ranks`, references, not copies; of a stream
        the sums of 25 groups of rows.

    Examples
    --------
    >>> import firmlib
    >>> firmlib.firm([3, 0, 0, 5], [[0, 0], [0, 1], [1, 0], [1, 1]], rows="population")
    FirmResult: 2 features, 4 rows (population), score: values
             importance  ci_low  ci_high  pvalue
    feature
    x0              0.5     0.5      0.5
    x1              0.5     0.5      0.5
    """

    importances: np.ndarray
    standard_error: np.ndarray
    ci_low: np.ndarray
    ci_high: np.ndarray
    pvalues: np.ndarray
    variance: np.ndarray
    standardized: np.ndarray
    methods: tuple[str, ...]
    kinds: tuple[str, ...]
    missing: np.ndarray
    feature_names: tuple[str, ...]
    curves: Mapping[str, ConditionalScore]
    n: int
    rows: str
    confidence_level: float
    heavy_tails: np.ndarray
    estimate: Estimate
    weight_type: str = "count"
    response: str = "values"
    target: Any = None
    given: tuple[str, ...] = ()
    kept: Kept | Jackknife | None = None
    _places: dict[str, int] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return len(self.feature_names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.feature_names)

    def __contains__(self, name: object) -> bool:
        return name in self.feature_names

    def __getitem__(self, name: str) -> pd.Series:
        """Return the row of a feature in `to_frame`."""
        if not self._places:
            self._places.update((name, i) for i, name in enumerate(self.feature_names))
        check_option("feature", name, self._places)
        return self._frame(np.array([self._places[name]])).iloc[0]

    @property
    def direction(self) -> np.ndarray:
        """1 where the score rises with the feature on the whole, -1 where it falls, nan if neither.

        A category without order has none, nor has a group, nor a feature of importance 0.
        """
        some = (self.importances != 0) & ~np.isin(self.kinds, ("nominal", "group"))
        return np.where(some, np.sign(self.importances), np.nan)

    def to_frame(self, *, ranks: bool = False) -> pd.DataFrame:
        """Return a table with one row per feature, the most important first.

        Parameters
        ----------
        ranks : bool, default False
            Add the columns of `ranks`, at the result's level: rank, best, worst. They compare all
            pairs of features, row by row, and are computed only when asked for.
        """
        table = self._frame(np.argsort(-np.abs(self.importances), kind="stable"))
        return table.join(self.ranks(self.confidence_level)) if ranks else table

    def _frame(self, order: np.ndarray) -> pd.DataFrame:
        import pandas as pd

        columns = {
            "importance": self.importances,
            "standard_error": self.standard_error,
            "ci_low": self.ci_low,
            "ci_high": self.ci_high,
            "pvalue": self.pvalues,
            "standardized": self.standardized,
            "variance": self.variance,
            "method": np.array(self.methods, dtype=object),
            "kind": np.array(self.kinds, dtype=object),
            "missing": self.missing,
        }
        names = np.array(self.feature_names, dtype=object)[order]
        index = pd.Index(names, name="feature")
        return pd.DataFrame({k: v[order] for k, v in columns.items()}, index=index)

    def to_json(self) -> str:
        """Return all but the rows as JSON, with the version of firmlib; see `from_json`.

        Levels of a category and the target come back as they were if they are words, numbers,
        truth values or moments; others, such as intervals, as text.

        Examples
        --------
        >>> import firmlib
        >>> result = firmlib.firm([0, 0, 0, 1], [[0, 0], [0, 1], [1, 0], [1, 1]])
        >>> firmlib.FirmResult.from_json(result.to_json()).feature_names
        ('x0', 'x1')
        """
        from firmlib import __version__, _json

        return _json.dumps(self, __version__)

    @classmethod
    def from_json(cls, text: str) -> FirmResult:
        """Return the result that `to_json` wrote as `text`; it keeps no rows."""
        from firmlib import _json

        return _json.loads(text, cls, ConditionalScore)

    def intervals(
        self, confidence_level: float = 0.95, *, simultaneous: bool = False
    ) -> pd.DataFrame:
        """Return intervals of |Q_f| at any level.

        Parameters
        ----------
        confidence_level : float, default 0.95
        simultaneous : bool, default False
            Whether all of them are to hold together, with this probability (Bonferroni).
        """
        import pandas as pd

        check_confidence_level(confidence_level)
        low, high = self.estimate.interval(confidence_level, len(self) if simultaneous else 1)
        index = pd.Index(self.feature_names, name="feature")
        return pd.DataFrame({"ci_low": low, "ci_high": high}, index=index)

    def pvalues_adjusted(self, method: str = "holm") -> np.ndarray:
        """Return p-values adjusted for the number of features.

        Parameters
        ----------
        method : {"holm", "bh"}, default "holm"
            "holm" bounds the probability of any false finding, "bh" (Benjamini and Hochberg) the
            expected share of false findings.
        """
        check_option("method", method, ("holm", "bh"))
        return holm(self.pvalues) if method == "holm" else benjamini_hochberg(self.pvalues)

    def influences(self, which: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the influence of each unit on the variance of the features `which`, and noise."""
        if self.kept is None or self.rows == "population":
            raise ValueError(
                "the result keeps no rows, which comparisons need: expected one of firm or "
                "StreamingFirm with keep=True from a sample, not of a file, pairs or a population"
            )
        return self.kept.influences(which, self.feature_names)

    def compare(
        self, a: str | None = None, b: str | None = None, *, confidence_level: float = 0.95
    ) -> pd.DataFrame:
        """Compare two features, or all pairs: the difference of |Q_f| with its error and test.

        Groups of columns are learnt again for that, which takes as long as `firm` took. Rare
        levels of a category count in full here, as in intervals.

        Parameters
        ----------
        a, b : str, default None
            Two features; by default all pairs.
        confidence_level : float, default 0.95
            Of the intervals.

        Returns
        -------
        DataFrame
            One row per pair, the first feature's importance minus the second's, the more
            important feature first if all are compared.

        Examples
        --------
        >>> import firmlib
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> firmlib.firm(X @ [1, 1.1], X).compare("x1", "x0")[["difference", "pvalue"]].round(2)
               difference  pvalue
        a  b
        x1 x0        0.07    0.17
        """
        import pandas as pd

        check_confidence_level(confidence_level)
        if (a is None) != (b is None):
            raise ValueError(f"a={a!r} and b={b!r} must both be features, or neither")
        if a is None or b is None:
            places = np.argsort(-np.abs(self.importances), kind="stable")
        else:
            for name in (a, b):
                check_option("feature", name, self.feature_names)
            places = np.array([self.feature_names.index(a), self.feature_names.index(b)])
        i, j, found = self._differences(places, confidence_level)
        names = np.array(self.feature_names, dtype=object)[places]
        index = pd.MultiIndex.from_arrays([names[i], names[j]], names=["a", "b"])
        return pd.DataFrame(found, index=index)

    def _differences(
        self, places: np.ndarray, level: float
    ) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Return all pairs of some features and what is known of their differences."""
        m = len(places)
        check_memory("what is compared, all pairs of features,", (m, m, _TABLES))
        psi, vv = self.influences(places.tolist())
        gram, each = psi.T @ psi, known(self.estimate, level)[:, places]
        i, j = np.triu_indices(m, 1)
        squares = np.maximum(gram[i, i] + gram[j, j] - 2 * gram[i, j], 0)
        error, df = difference_error(squares, vv[i] + vv[j]), self.kept.df  # type: ignore[union-attr]
        r = correlation(squares, gram[i, i], gram[j, j])
        return i, j, differences(each[:, i], each[:, j], error, r, level, df)

    def ranks(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return the best and the worst rank of each feature that the data allow.

        All of them hold together with this probability: a feature is ranked before another if
        their difference stands out after Holm's correction over all pairs. More than some 10 000
        features are refused: their pairs would take too much memory.

        Parameters
        ----------
        confidence_level : float, default 0.95

        Returns
        -------
        DataFrame
            One row per feature, the most important first: rank, best, worst.

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
        m = len(self)
        order = np.argsort(-np.abs(self.importances), kind="stable")
        i, j, found = self._differences(order, confidence_level)
        told = (holm(found["pvalue"]) <= 1 - confidence_level) & (found["difference"] > 0)
        first, second = np.bincount(j[told], minlength=m), np.bincount(i[told], minlength=m)
        index = pd.Index(np.array(self.feature_names, dtype=object)[order], name="feature")
        ranks = {"rank": np.arange(1, m + 1), "best": 1 + first, "worst": m - second}
        return pd.DataFrame(ranks, index=index)

    def plot(self, ax: Axes | None = None, *, n: int = 30, ranks: bool = False) -> FirmDisplay:
        """Draw the largest importances as bars with their intervals, the largest on top.

        Parameters
        ----------
        ax : matplotlib Axes, default None
            Where to draw; by default in a new figure.
        n : int, default 30
            How many.
        ranks : bool, default False
            Draw beside each bar a bracket of the ranks that the data allow, as `ranks` finds them.
        """
        from firmlib.display import FirmDisplay  # matplotlib is an extra

        return FirmDisplay.from_result(self).plot(ax=ax, n=n, ranks=ranks)

    def plot_curves(
        self, *, n: int = 12, columns: int = 3, features: Sequence[str] | None = None
    ) -> Figure:
        """Draw q_f of the most important features side by side.

        Parameters
        ----------
        n : int, default 12
            How many.
        columns : int, default 3
            How many in a row.
        features : sequence of names, default None
            These instead, in this order.
        """
        from firmlib.display import plot_curves

        return plot_curves(self, n=n, columns=columns, features=features)

    def report(self, path: str | PathLike[str], *, n: int = 12) -> None:
        """Write one HTML file: bars with ranks, notes on trust, the table, the curves.

        Parameters
        ----------
        path : path
            Such as "out.html"; an older file is replaced once the new one is complete.
        n : int, default 12
            How many features to draw; the table has all.

        Examples
        --------
        >>> import firmlib
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> firmlib.firm(X @ [1, 1.1, 3], X).report("out.html")  # doctest: +SKIP
        """
        from firmlib import __version__
        from firmlib._atomic import write_atomic
        from firmlib._report import page

        if not isinstance(path, str | PathLike):
            raise ValueError(f"path={path!r} must be that of a file, such as 'out.html'")
        write_atomic(Path(path), page(self, self._head(), __version__, n))

    def _head(self) -> str:
        target = "" if self.target is None else f" of {self.target!r}"
        many = f"{len(self)} feature{'s' * (len(self) > 1)}"
        return f"{many}, {self.n} rows ({self.rows}), score: {self.response}{target}"

    def __repr__(self) -> str:
        table: Any = self.to_frame()[["importance", "ci_low", "ci_high", "pvalue"]]
        lines = table.head(_SHOWN).to_string(float_format="{:.3g}".format, na_rep="")
        more = f"\n… and {len(self) - _SHOWN} more: see to_frame()" * (len(self) > _SHOWN)
        return f"{type(self).__name__}: {self._head()}\n{lines}{more}"

    def _repr_html_(self) -> str:
        """Show the largest importances as a table in a notebook."""
        from html import escape

        table = self.to_frame().head(_SHOWN_HTML)
        html = table.to_html(float_format="{:.3g}".format, na_rep="", border=0)
        more = f"<p>and {len(self) - _SHOWN_HTML} more: see <code>to_frame()</code></p>"
        return f"<p>{escape(self._head())}</p>" + html + more * (len(self) > _SHOWN_HTML)


def make_result(found: Estimate, sd: float, confidence_level: float, **fields: Any) -> FirmResult:
    """Turn the variance of q_f and its error into Q_f with an interval."""
    Q = np.sqrt(np.maximum(found.variance, 0))
    sign = np.where(Q > 0, found.sign, 1.0)
    floor = np.maximum(Q, np.sqrt(found.error))
    error = np.divide(found.error, 2 * floor, out=np.zeros_like(floor), where=floor > 0)
    low, high = (sign * end for end in found.interval(confidence_level))
    importances = sign * Q + 0.0  # no -0.0
    return FirmResult(
        importances=importances,
        standard_error=error,
        ci_low=np.minimum(low, high) + 0.0,
        ci_high=np.maximum(low, high) + 0.0,
        pvalues=found.pvalue,
        variance=found.variance,
        standardized=importances / sd if sd > 0 else np.zeros_like(importances),
        heavy_tails=(found.heavy > 0) & (found.pvalue < 1 - confidence_level),
        confidence_level=confidence_level,
        estimate=found,
        **fields,
    )
