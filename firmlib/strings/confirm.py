"""Importance of motifs measured on the model itself, with standard errors."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from firmlib._checks import check_integer
from firmlib.strings.background import Background
from firmlib.strings.motifs import motif_importance
from firmlib.strings.surrogate import evaluate
from firmlib.strings.weights import PositionalWeights

__all__ = ["confirm"]


def confirm(
    score: Callable[[np.ndarray], ArrayLike],
    motifs: Sequence[str],
    positions: Sequence[int],
    background: Background,
    n: int,
    *,
    surrogate: PositionalWeights | None = None,
    batch_size: int = 1000,
    random_state: int | np.random.RandomState | None = None,
    verbose: bool = False,
) -> pd.DataFrame:
    """Measure Q'(z, j) = E[s(X) | X[j:j+k] = z] - E[s(X)] of some motifs on any model.

    Draws n pairs (X', X): X' from the background given z at j (`Background.given`), X from the
    background itself with the same random numbers, so that they differ in little but the motif;
    Q' is the mean of s(X') - s(X). With a surrogate g, whose own Q' is known exactly, the mean of

        s(X') - s(X) - c (g(X') - g(X) - Q'_g(z, j)),

    c by least squares: what the surrogate foretells about the pairs is no longer noise. What is
    left may come from a few rare pairs that the sample has not met; the standard error allows for
    one of them, as large as the largest difference, in the n pairs.

    Parameters
    ----------
    score : callable
        As in `fit_surrogate`.
    motifs : sequence of m str
        Ambiguous letters allowed.
    positions : sequence of m int
        Where each one's first letter stands.
    background : Background
        The distribution of X.
    n : int
        Pairs for each motif, at least 10; the model is asked (m + 1) n times.
    surrogate : PositionalWeights, optional
        Of `fit_surrogate`.
    batch_size, random_state, verbose
        As in `fit_surrogate`.

    Returns
    -------
    DataFrame
        One row per motif; columns "motif", "position", "surrogate" (its Q', NaN if there is none),
        "measured" (Q' of the model) and "standard_error" (of "measured").

    Examples
    --------
    >>> from firmlib.strings import Background, confirm
    >>> def score(X):  # A at both ends
    ...     return 4.0 * ((X[:, 0] == 0) & (X[:, 5] == 0))
    >>> uniform = Background.uniform(6)
    >>> confirm(score, ["A", "ANNNNA"], [0, 0], uniform, 2000, random_state=0).round(2)
        motif  position  surrogate  measured  standard_error
    0       A         0        NaN      0.73            0.03
    1  ANNNNA         0        NaN      3.76            0.02
    """
    n = check_integer("n", n, 10)
    if len(motifs) != len(positions) or isinstance(motifs, str):
        raise ValueError(
            f"motifs and positions must be lists of one length, got {len(motifs)} and "
            f"{len(positions)}"
        )
    seed = check_random_state(random_state).randint(2**31)
    plain = background.sample(n, seed)
    conditioned = [
        background.given(motif, position).sample(n, seed)
        for motif, position in zip(motifs, positions, strict=True)
    ]
    X = np.concatenate([plain, *conditioned])
    s = evaluate(score, X, batch_size, verbose=verbose).reshape(-1, n)
    noise = s[1:] - s[0]
    rare = np.abs(noise).max(axis=1) / n
    known = np.full(len(motifs), np.nan)
    if surrogate is not None:
        g = surrogate.score(X).reshape(-1, n)
        for i, (motif, position) in enumerate(zip(motifs, positions, strict=True)):
            known[i] = motif_importance(surrogate, [motif], background)[0, position]
            control = g[i + 1] - g[0] - known[i]
            spread = control.var()
            c = np.cov(noise[i], control, bias=True)[0, 1] / spread if spread > 0 else 0.0
            noise[i] -= c * control
    return pd.DataFrame(
        {
            "motif": list(motifs),
            "position": list(positions),
            "surrogate": known,
            "measured": noise.mean(axis=1),
            "standard_error": np.sqrt(noise.var(axis=1) / (n - 2) + rare**2),
        }
    )
