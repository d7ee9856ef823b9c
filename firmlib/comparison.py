"""One feature under two models, in two samples, in two years: are its importances different?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firmlib._checks import check_confidence_level
from firmlib._data import Data
from firmlib._paired import Kept, correlation, difference_error, differences, known
from firmlib.result import FirmResult

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare"]


def compare(
    result: FirmResult,
    other: FirmResult,
    *,
    paired: bool | None = None,
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Compare the importances of the same features in two results.

    Parameters
    ----------
    result, other : FirmResult
        Of two models on the same rows, or of two independent samples.
    paired : bool, default None
        Whether the rows are the same, in the same order; by default that is so if both were
        computed from the very same object X, with the same weights and groups, and results that
        share but some of its rows are refused. Results that keep no rows count as independent;
        those of streams with keep=True are paired only on request.
    confidence_level : float, default 0.95
        Of the intervals.

    Returns
    -------
    DataFrame
        One row per feature that both have: the difference of |Q_f|, first minus second, with its
        standard error, interval and p-value.

    Examples
    --------
    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> one, two = (firmlib.firm(lambda X, a=a: X[:, 0] + a * X[:, 1], X) for a in (1, 1.1))
    >>> firmlib.compare(one, two)[["difference", "pvalue"]].round(2)
             difference  pvalue
    feature
    x0             -0.0    0.71
    x1             -0.1    0.00
    """
    import pandas as pd

    for name, each in (("result", result), ("other", other)):
        if not isinstance(each, FirmResult):
            raise ValueError(f"{name}={type(each).__name__} must be a FirmResult, as firm has it")
    check_confidence_level(confidence_level)
    names = [name for name in result.feature_names if name in other.feature_names]
    if not names:
        raise ValueError(f"other has the features {other.feature_names}, none of result's")
    here, there = ([r.feature_names.index(name) for name in names] for r in (result, other))
    one, two = (each.kept.data if isinstance(each.kept, Kept) else None for each in (result, other))
    if paired is None:
        paired = one is not None and two is not None and _share_rows(one, two)
    if paired:
        if one is not None and two is not None and not _alike(one, two):
            raise ValueError("paired=True needs the same rows with the same weights and groups")
        if result.n != other.n:
            raise ValueError(
                f"paired=True needs the same rows, but there are {result.n}, {other.n}"
            )
        (psi, vv), (psi_other, vv_other) = result.influences(here), other.influences(there)
        if psi.shape != psi_other.shape:
            raise ValueError(
                f"paired=True needs units of both alike, but there are {len(psi)}, {len(psi_other)}"
            )
        squares, own, others = ((a**2).sum(axis=0) for a in (psi - psi_other, psi, psi_other))
        error, r = difference_error(squares, vv + vv_other), correlation(squares, own, others)
        df = min(result.kept.df, other.kept.df)  # type: ignore[union-attr]
    else:
        r, df = 0.0, np.inf
        error = np.hypot(result.estimate.error[here], other.estimate.error[there])
    first = known(result.estimate, confidence_level)[:, here]
    second = known(other.estimate, confidence_level)[:, there]
    found = differences(first, second, error, r, confidence_level, df)
    return pd.DataFrame(found, index=pd.Index(names, name="feature"))


def _alike(one: Data, two: Data) -> bool:
    """Return whether rows, one by one, have the same weights and units."""
    a, b = one.scores, two.scores
    units = (a.unit is None) == (b.unit is None) and np.array_equal(a.unit, b.unit)  # type: ignore[arg-type]
    return units and np.array_equal(a.w, b.w) and (a.parts.ww is None) == (b.parts.ww is None)


def _share_rows(one: Data, two: Data) -> bool:
    """Return whether all rows are the same; raise if some are, or if they count differently."""
    if one.table.data is not two.table.data:
        return False
    rows = [np.arange(data.table.n)[data.table.keep] for data in (one, two)]
    if np.array_equal(*rows) and _alike(one, two):
        return True
    if len(np.intersect1d(*rows)):
        raise ValueError(
            "other has rows of result with other weights or groups, so that the two are neither "
            "paired nor independent; expected the same rows, weights and groups, or other rows "
            "(paired=False takes them for independent)"
        )
    return False
