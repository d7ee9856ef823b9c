"""q_f as a curve (Definition 1), made when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from firmlib._moments import Tally
from firmlib._slope import Slope

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from firmlib.display import ConditionalScoreDisplay


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
    kind : str
        What t holds: "number", "date", "duration", or the levels of an "ordered" or "nominal"
        category. The last entry may be that of missing values: nan, NaT or, of levels, None.

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
    kind: str = "number"

    @classmethod
    def of(cls, source: Tally | Slope, mean: float, rows: str, weight: float) -> Self:
        """Return the curve of a feature, whose sums are in units of `weight`."""
        found = source.curve(mean, rows)
        return cls(**found | {"n": weight * found["n"]})

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per value; a missing one is the last."""
        import pandas as pd

        names = ("t", "q", "standard_error", "p", "n")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def plot(self, ax: Axes | None = None) -> ConditionalScoreDisplay:
        """Draw the curve, with at most 60 points.

        Parameters
        ----------
        ax : matplotlib Axes, default None
            Where to draw; by default in a new figure.
        """
        from firmlib.display import ConditionalScoreDisplay  # matplotlib is an extra

        return ConditionalScoreDisplay(self).plot(ax, points=60)


class Curves(Mapping[str, ConditionalScore]):
    """q_f of each feature that has one, made when asked for."""

    def __init__(
        self,
        names: Sequence[str],
        sources: Sequence[Tally | Slope | None],
        mean: float,
        rows: str,
        weight: float = 1.0,
    ) -> None:
        self._sources, self._mean, self._rows, self._weight = sources, mean, rows, weight
        drawn = isinstance(sources, list)  # of all pairs each has a curve, and none is made here
        self._place = {
            name: i for i, name in enumerate(names) if not drawn or sources[i] is not None
        }

    def __getitem__(self, name: str) -> ConditionalScore:
        source = self._sources[self._place[name]]
        assert source is not None
        return ConditionalScore.of(source, self._mean, self._rows, self._weight)

    def __iter__(self) -> Iterator[str]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)
