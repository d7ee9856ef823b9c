"""Is one feature more important than another? Differences of V = Var[q_f(f(X))] on the same rows.

Both estimates move together with the rows, so their difference is surer than either: its error
comes from the influence functions of both, row by row. The row's own score is left out of the
mean of its bin, or noise would seem to be effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from firmlib._checks import check_memory
from firmlib._columns import Column
from firmlib._data import Data, numeric
from firmlib._inference import Estimate
from firmlib._moments import Tally
from firmlib._rounding import EMPTY, NUDGE, SOLVED
from firmlib._slope import Slope
from firmlib._spread import spread

GROUPS = 25
"""Groups of rows of a stream that are left out in turn."""

_LEAST = 0.25  # share of the variance of a difference that is left when its noise is taken off


class Kept(NamedTuple):
    """What a result keeps to compare features: the table and the scores (not copied), and bins."""

    data: Data
    functions: Sequence[Any]
    sources: Sequence[Tally | Slope | None]

    @property
    def df(self) -> float:
        """The degrees of freedom of errors: as many as rows."""
        return np.inf

    def influences(self, which: Sequence[int], names: Sequence[str]) -> tuple[Any, np.ndarray]:
        """Return psi of the units (rows of the table) and vv of some features (columns).

        psi = 2 r q - q^2 + u_b / (w_b - own w), where q is the mean of the others in the bin (of
        a unit without others m_b^2 - u_b / w_b), and vv the share of noise in its square. Groups
        of columns are learnt again; each row is predicted by models that did not see it.
        """
        scores = self.data.scores
        n = len(scores.r) if scores.unit is None else int(scores.unit.max()) + 1
        check_memory("influences", (n, len(which)))
        psi, vv = np.empty((n, len(which))), np.zeros(len(which))
        for k, j in enumerate(which):
            source, values = self.sources[j], self.functions[j](self.data.table)
            columns = [values] if isinstance(values, Column) else values
            if self.data.missing == "drop" and any(np.isnan(c.values).any() for c in columns):
                raise ValueError(
                    f"feature {names[j]!r} cannot be compared: expected no rows left out because "
                    "it is missing"
                )
            if source is None:
                from firmlib._groups import influence  # scikit-learn, only if it is needed

                one = influence(scores, numeric(columns, len(scores.r)))[0]
            else:
                one, vv[k] = self._one(source, columns[0].dense(len(scores.r)))
            V = scores.w @ one / scores.w.sum()
            if scores.standardized:  # the influence on V / Var(s), where Var(s) = 1
                one = one - V * scores.r**2
            one = one - scores.w @ one / scores.w.sum()
            if scores.unit is not None:
                psi[:, k] = np.bincount(scores.unit, scores.w * one)
            else:
                psi[:, k] = (np.sqrt(scores.w) if scores.parts.ww is None else scores.w) * one
        return psi / scores.w.sum(), vv / scores.w.sum() ** 2

    def _one(self, source: Tally | Slope, f: np.ndarray) -> tuple[np.ndarray, float]:
        scores = self.data.scores
        r, w = scores.r, scores.w
        if isinstance(source, Slope):
            x = (f - source.centre) / source.unit
            return (2 * r - source.beta * x) * source.beta * x, 0.0
        index, sums = source.bins.index(f), source.sums
        own_w, own_wr = np.ones(len(r)), r
        if scores.unit is not None:
            part = np.unique(index * len(r) + scores.unit, return_inverse=True)[1]
            own_w, own_wr = (np.bincount(part, a)[part] for a in (w, w * r))
        elif scores.parts.ww is not None:
            own_w, own_wr = w, w * r
        found = spread(sums, "sample", source.total)
        others = sums.w[index] - own_w
        alone = others <= NUDGE * sums.w[index]
        others = np.where(alone, 1.0, others)
        q = (sums.wr[index] - own_wr) / others
        w_b = np.maximum(sums.w, EMPTY)
        lone = (sums.wr / w_b) ** 2 - found.u / w_b
        psi = np.where(alone, lone[index], (2 * r - q) * q + found.u[index] / others)
        n = sums.w**2 / np.maximum(sums.pairs[0], EMPTY)
        return psi, float((found.u**2 * np.maximum(n - 1, 1) / (n + 1)).sum())


class Jackknife(NamedTuple):
    """What the result of a stream keeps: sums of groups of rows, and how V follows from sums."""

    parts: Sequence[Any]
    variance: Callable[[Any], np.ndarray]

    @property
    def df(self) -> float:
        """The degrees of freedom of errors."""
        return len(self.parts) - 1.0

    def influences(self, which: Sequence[int], names: Sequence[str]) -> tuple[Any, np.ndarray]:
        """Return how V moves if a group is left out, as if groups were units, and 0 for noise.

        B. Efron, C. Stein. The Annals of Statistics 9(3), 1981.
        """
        if len(self.parts) < GROUPS or None in self.parts:
            raise ValueError(f"comparisons of a stream need at least {GROUPS} rows")
        before = list(accumulate(self.parts, lambda a, b: a.merged(b)))
        after = list(accumulate(self.parts[::-1], lambda a, b: a.merged(b)))[::-1]
        inner = (a.merged(b) for a, b in zip(before, after[2:], strict=False))
        V = np.array([self.variance(rest)[which] for rest in (after[1], *inner, before[-2])])
        return np.sqrt(1 - 1 / len(V)) * (V - V.mean(axis=0)), np.zeros(len(which))


def difference_error(squares: Any, noise: Any) -> Any:
    """Return the error of V_A - V_B: from the sum of (psi_A - psi_B)^2 and vv_A + vv_B."""
    return np.sqrt(np.maximum(squares - 2 * noise, _LEAST * squares))


def correlation(squares: Any, own: Any, others: Any) -> Any:
    """Return that of V_A and V_B, from the sums of (psi_A - psi_B)^2, psi_A^2 and psi_B^2."""
    a, b = np.sqrt(own), np.sqrt(others)
    return np.clip(1 - (squares - (a - b) ** 2) / np.maximum(2 * a * b, EMPTY), -1, 1)


def known(estimate: Estimate, level: float) -> np.ndarray:
    """Return V, Q, the error of Q and the ends of its interval: rows of a table (5, features)."""
    V = np.asarray(estimate.unbiased, dtype=float)
    Q = np.sqrt(np.maximum(V, 0))
    error = estimate.error / (2 * np.maximum(np.maximum(Q, np.sqrt(estimate.error)), EMPTY))
    low, high = estimate.interval(level)
    return np.array([V, Q, error, np.minimum(low, Q), np.maximum(high, Q)])


def differences(
    one: np.ndarray, other: np.ndarray, error: Any, r: Any, level: float, df: float = np.inf
) -> dict[str, Any]:
    """Return Q_A - Q_B with error, interval and p-value, from what is `known` of both.

    The test is that of V_A = V_B, and needs the error of V_A - V_B, which has `df` degrees of
    freedom. The interval is made from those of Q_A and Q_B, and r, the correlation of V_A and V_B
    (G. Y. Zou. Psychological Methods 12(4), 2007), and holds 0 where the test does not reject.
    """
    (V, Q, se, low, high), (V_other, Q_other, se_other, low_other, high_other) = one, other
    error = np.asarray(error, dtype=float)
    gap = np.abs(V - V_other)
    gap = np.where(gap > SOLVED * np.maximum(np.abs(V), np.abs(V_other)), gap, 0.0)
    z = np.divide(gap, error, out=np.zeros_like(error), where=error > 0)
    z = np.where((error == 0) & (gap > 0), np.inf, z)
    pvalue, difference = 2 * special.stdtr(df, -z), Q - Q_other

    def both(a: np.ndarray, b: np.ndarray, r: Any) -> np.ndarray:
        """Return how far Q_A - Q_B reaches if Q_A alone does by a, and Q_B by b."""
        return np.sqrt((a - b) ** 2 + 2 * (1 - r) * a * b)

    # what may be 0 is not above it by bad luck, but always: then both add up
    down = difference - both(Q - low, high_other - Q_other, np.where(low > 0, r, -1.0))
    up = difference + both(high - Q, Q_other - low_other, np.where(low_other > 0, r, -1.0))
    differ = pvalue <= 1 - level
    above, below = differ & (difference > 0), differ & (difference < 0)
    return {
        "difference": difference,
        "standard_error": both(se, se_other, r),
        "ci_low": np.where(above, np.maximum(down, 0), np.minimum(down, 0)),
        "ci_high": np.where(below, np.minimum(up, 0), np.maximum(up, 0)),
        "pvalue": pvalue,
    }


def holm(pvalues: np.ndarray) -> np.ndarray:
    """Return p-values adjusted so that no true hypothesis at all is rejected (S. Holm, 1979)."""
    return _stepped(pvalues, lambda p, m: np.maximum.accumulate(p * np.arange(m, 0, -1)))


def benjamini_hochberg(pvalues: np.ndarray) -> np.ndarray:
    """Return p-values adjusted for the share of true hypotheses among the rejected ones (1995)."""
    return _stepped(
        pvalues, lambda p, m: np.minimum.accumulate((p * m / np.arange(1, m + 1))[::-1])[::-1]
    )


def _stepped(pvalues: np.ndarray, adjusted: Any) -> np.ndarray:
    order = np.argsort(pvalues, kind="stable")
    out = np.empty(len(pvalues))
    out[order] = np.minimum(adjusted(pvalues[order], len(order)), 1.0)
    return out
