"""Definition 1: q_f as a curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from firmlib.estimation.sums import Source

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from firmlib.display import ConditionalScoreDisplay

__all__ = ["ConditionalScore"]


@dataclass(frozen=True, eq=False)
class ConditionalScore:
    """The conditional expected score q_f, Definition 1, at finitely many values.

    Attributes
    ----------
    t : ndarray
        Levels of the feature, or a value in the middle of each bin. The last may stand for missing
        values: nan, NaT or None.
    q, standard_error : ndarrays
        E[s(X) | f(X) = t] and its standard error (0 for a population).
    p, n : ndarrays
        Pr(f(X) = t) and the effective number of rows.
    kind : str
        "number", "date", "duration", "ordered" or "nominal".

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
    standard_error: np.ndarray
    kind: str = "number"

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per value."""
        import pandas as pd

        names = ("t", "q", "standard_error", "p", "n")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def plot(self, ax: Axes | None = None) -> ConditionalScoreDisplay:
        """Draw the curve."""
        from firmlib.display import ConditionalScoreDisplay  # matplotlib is an extra

        return ConditionalScoreDisplay(self).plot(ax)


class Curves(Mapping[str, ConditionalScore]):
    """q_f of each feature that has a curve, computed on access."""

    def __init__(self, sources: Mapping[str, Source], sample: bool) -> None:
        self._sources = {name: s for name, s in sources.items() if s.sums is not None}
        self._sample = sample

    def __getitem__(self, name: str) -> ConditionalScore:
        source = self._sources[name]
        t, bins = source.curve()
        error = np.sqrt(np.maximum(bins.e, 0)) * self._sample
        return ConditionalScore(t, bins.m, bins.p, bins.n, error, source.kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)
