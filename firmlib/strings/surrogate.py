"""Any model of sequences seen as a linear string score: what POIMs of it rest on."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.utils import check_random_state, gen_batches

from firmlib._checks import check_array, check_integer
from firmlib.strings.background import Background
from firmlib.strings.kernel import wds_diagonal
from firmlib.strings.operator import WDSOperator
from firmlib.strings.weights import PositionalWeights

__all__ = ["fit_surrogate"]

_PENALTIES = 4.0 ** np.arange(4, -5, -1)  # of the ridge, the largest first
_TOLERANCE = 1e-4  # of the ridge while its penalty is sought: far below the error of any sample
_LAST = 1e-10  # of the one that is returned, so that it is the same on every CPU


def fit_surrogate(
    score: Callable[[np.ndarray], ArrayLike],
    background: Background,
    n: int,
    *,
    degree: int = 4,
    batch_size: int = 1000,
    random_state: int | np.random.RandomState | None = None,
    verbose: bool = False,
) -> PositionalWeights:
    """Fit weights of words at positions to any model, over a background.

    Draws n sequences, asks the model for their scores, and fits

        s(x) ~ b + sum_i alpha_i k(x_i, x)

    by ridge regression, k the weighted degree kernel, which is a linear score of all words of up
    to `degree` letters. The penalty is the one that foretells the scores of a fifth of the
    sequences best; with it, all sequences are used. `poim`, `motif_importance` and `top_motifs`
    of the result are exact for the surrogate, and as good as it is for the model: see its `r2`,
    and `confirm` the motifs that matter. What the surrogate cannot see is what words of `degree`
    letters cannot: that two motifs far apart must stand together.

    Parameters
    ----------
    score : callable
        From codes of shape (m, L), A, C, G, T = 0..3 for DNA, to m scores. For a model of strings,
        ``lambda X: model.decision_function(decode(X))``.
    background : Background
        What to draw from.
    n : int
        How many sequences to draw, and how often the model is asked; at least 10.
    degree : int, default 4
        Letters of the longest words, at most L.
    batch_size : int, default 1000
        Sequences in one call of `score`.
    random_state : int, RandomState or None, default None
        As in scikit-learn.
    verbose : bool, default False
        Show a progress bar (needs tqdm).

    Returns
    -------
    PositionalWeights
        ``r2`` is the part of the scores' variance that it explains on the fifth, before those are
        used, too; NaN if these have all one score, and nothing can be said.

    Examples
    --------
    >>> from firmlib.strings import Background, fit_surrogate, top_motifs
    >>> def score(X):  # GAT at 3, by a function that nobody can look into
    ...     return 8.0 * ((X[:, 3] == 2) & (X[:, 4] == 0) & (X[:, 5] == 3))
    >>> surrogate = fit_surrogate(score, Background.uniform(10), 4000, degree=3, random_state=0)
    >>> [(motif, position, importance)] = top_motifs(surrogate, 3, 1)
    >>> motif, position, round(importance, 1), surrogate.r2 > 0.99
    ('GAT', 3, 7.9, True)
    """
    n = check_integer("n", n, 10)
    degree = check_integer("degree", degree, 1, background.length)
    X = background.sample(n, check_random_state(random_state))
    s = evaluate(score, X, batch_size, verbose=verbose)
    options = {"degree": degree, "alphabet": background.alphabet}
    K = WDSOperator(X, normalize=False, **options)
    train, held = np.split(np.arange(n), [n - n // 5])
    size = float(wds_diagonal(X[:1], **options)[0])  # the same for all sequences
    least, best, alpha = np.inf, size, np.zeros(n)
    for penalty in size * _PENALTIES:
        alpha = _ridge(K, s, train, penalty, alpha, _TOLERANCE)
        error = np.mean((s - s[train].mean() - K @ alpha)[held] ** 2)
        if error >= least:
            break
        least, best = error, penalty
    alpha = _ridge(K, s, np.arange(n), best, alpha, _LAST)
    surrogate = PositionalWeights.from_dual(X, alpha, intercept=float(s.mean()), **options)
    surrogate.r2 = float(1 - least / s[held].var()) if s[held].std() > 0 else np.nan
    return surrogate


def _ridge(
    K: WDSOperator,
    s: np.ndarray,
    rows: np.ndarray,
    penalty: float,
    start: np.ndarray,
    tolerance: float,
) -> np.ndarray:
    """Solve (K + penalty I) alpha = s - mean(s) on some rows; alpha = 0 elsewhere."""
    alpha = np.zeros(len(s))

    def product(z: np.ndarray) -> np.ndarray:
        alpha[rows] = z
        return (K @ alpha)[rows] + penalty * z

    system = LinearOperator((len(rows),) * 2, matvec=product, dtype=float)  # type: ignore[call-arg]
    z, _ = cg(system, s[rows] - s[rows].mean(), x0=start[rows], rtol=tolerance)
    alpha[rows] = z
    return alpha


def evaluate(
    score: Callable[[np.ndarray], ArrayLike],
    X: np.ndarray,
    batch_size: int,
    *,
    verbose: bool = False,
) -> np.ndarray:
    """Scores of the rows of X, some at a time, checked."""
    if not callable(score):
        raise ValueError(
            f"score is a {type(score).__name__}; expected a function from codes (m, L) to m "
            "scores, such as model.decision_function"
        )
    batches = list(gen_batches(len(X), check_integer("batch_size", batch_size, 1)))
    if verbose:
        from tqdm import tqdm

        batches = tqdm(batches, desc="scores", unit=" batches")
    scores = []
    for rows in batches:
        m = rows.stop - rows.start
        scores.append(check_array("the result of score", score(X[rows]), 1, (m,)))
    return np.concatenate(scores)
