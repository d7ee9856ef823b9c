"""Compare the importances of the same features for two models or two samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firmlib.estimation.jackknife import compare as compare_estimates
from firmlib.result import FirmResult
from firmlib.tables.checks import check_confidence_level

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare"]


def compare(
    result: FirmResult,
    other: FirmResult,
    *,
    paired: bool | str = "auto",
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Return the differences, `result` minus `other`, between importances of shared features.

    Each row has the difference with its standard error, interval and p-value.

    Parameters
    ----------
    result, other : FirmResult
        Results for two models on the same rows, or for two independent samples.
    paired : bool or "auto", default "auto"
        Whether the rows are the same, in the same order, with the same weights and groups. "auto"
        decides from the bins of the shared features.
    confidence_level : float, default 0.95

    Examples
    --------
    >>> import firmlib
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> one, two = (firmlib.firm(lambda X, a=a: X[:, 0] + a * X[:, 1], X) for a in (1, 1.1))
    >>> firmlib.compare(one, two)["difference"]["x1"].round(1)
    np.float64(-0.1)
    """
    import pandas as pd

    for name, each in (("result", result), ("other", other)):
        if not isinstance(each, FirmResult):
            raise ValueError(f"{name}={type(each).__name__} must be a FirmResult")
    check_confidence_level(confidence_level)
    if paired not in (True, False, "auto"):
        raise ValueError(f"paired={paired!r} must be True, False or 'auto'")
    names = [name for name in result.feature_names if name in other]
    if not names:
        raise ValueError(f"other has the features {other.feature_names}; result has none of them")
    i, j = (np.array([each._place(name) for name in names]) for each in (result, other))
    if paired and result.n != other.n:
        if paired != "auto":
            raise ValueError(f"paired=True needs the same rows, got {result.n} and {other.n}")
        paired = False
    if paired == "auto":
        marks = [np.array([r.sources[k].mark for k in at]) for r, at in ((result, i), (other, j))]
        paired = bool(np.allclose(*marks, rtol=1e-9, atol=0))
    one, two = result._sampled(), other._sampled()
    found = compare_estimates(one, i, two, j, confidence_level, bool(paired))
    return pd.DataFrame(found._asdict(), index=pd.Index(names, name="feature"))
