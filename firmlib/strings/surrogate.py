"""Any model of sequences: a linear string score fitted to it, and motifs measured on it."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.utils import check_random_state, gen_batches

from firmlib.strings.alphabet import Alphabet, encode, one_hot, windows
from firmlib.strings.background import Background
from firmlib.strings.kernel import Kernel
from firmlib.strings.matvec import WDSOperator, solve
from firmlib.strings.motifs import exact_importance
from firmlib.strings.poim import LOW_R2
from firmlib.strings.weights import PositionalWeights
from firmlib.tables.checks import as_numpy, check_array, check_integer, check_option, warn

_PENALTIES = 4.0 ** np.arange(4, -5, -1)  # of the ridge, the largest first
_TOLERANCE = 1e-4  # of the ridge while its penalty is sought: far below the error of any sample
_LAST = 1e-10  # of the one that is returned, so that it is the same on every CPU


def fit_surrogate(
    score: Callable[..., Any],
    background: Background,
    n: int,
    *,
    positional: bool | str = "auto",
    degree: int | None = None,
    reverse_complement: bool = False,
    batch_size: int = 1000,
    random_state: int | np.random.RandomState | None = None,
) -> PositionalWeights:
    """Fit weights of words to any model, over a background, by ridge regression.

    The scores of `n` sequences give one weight to each word of up to `degree` letters at each
    position, or one to each word of `degree` letters wherever it stands. The penalty is the one
    that predicts a held-out fifth of the scores best, and `r2` the share of their variance that it
    explains, NaN if they are all equal; below 0.5 there is a warning. Motifs that count only
    together are missed: `confirm` those that matter.

    Parameters
    ----------
    score : callable or torch module
        From codes (m, L), as `encode` gives them, to scores, an array or tensor (m,) or (m, 1). A
        torch module gets ``one_hot`` letters of shape (m, a, L).
    positional : {"auto", True, False}, default "auto"
        True for signals at fixed places, False for motifs anywhere, "auto" for what predicts better
    degree : int, optional; by default 4 with positions, 6 without
    reverse_complement : bool, default False, give a word and its reverse complement one weight
    batch_size : int, default 1000, sequences in one call of `score`

    Examples
    --------
    >>> from firmlib.strings import Background, fit_surrogate, top_motifs
    >>> def score(X):  # GAT at 3, by a function that nobody can look into
    ...     return 8.0 * ((X[:, 3] == 2) & (X[:, 4] == 0) & (X[:, 5] == 3))
    >>> surrogate = fit_surrogate(score, Background.uniform(10), 4000, degree=3, random_state=0)
    >>> top_motifs(surrogate, 3, 1)[0][:2], surrogate.r2 > 0.99
    (('GAT', 3), True)
    """
    n = check_integer("n", n, 10)
    check_option("positional", positional, ("auto", True, False))  # type: ignore[arg-type]
    X = background.sample(n, random_state)
    s = evaluate(score, X, background.alphabet, batch_size)
    options = {"reverse_complement": reverse_complement, "alphabet": background.alphabet}
    fits = []
    for kind, fit, most in ((True, _fit_positional, 4), (False, _fit_anywhere, 6)):
        if positional in (kind, "auto"):
            d = min(most, X.shape[1]) if degree is None else degree
            fits.append(fit(X, s, Kernel(X.shape[1], degree=d, normalize=False, **options)))
    best = max(fits, key=lambda fitted: np.nan_to_num(fitted.r2, nan=-np.inf))
    if best.r2 < LOW_R2:
        warn(
            f"the surrogate explains only {max(best.r2, 0):.0%} of the variance of held-out "
            f"scores (R² {best.r2:.2f}): its importances miss most of what the model does; draw "
            "more sequences, allow longer words (degree), and confirm motifs on the model"
        )
    return best


def _fit_positional(X: np.ndarray, s: np.ndarray, kernel: Kernel) -> PositionalWeights:
    """One weight for each word of up to `degree` letters at each position."""
    size = kernel.beta @ (X.shape[1] - np.arange(kernel.degree))  # k(x, x), one strand
    alpha, r2 = _ridge_path(WDSOperator(X, kernel), s, size)
    return replace(PositionalWeights.unfold(X, alpha, kernel, float(s.mean())), r2=r2)


def _fit_anywhere(X: np.ndarray, s: np.ndarray, kernel: Kernel) -> PositionalWeights:
    """One weight for each word of `degree` letters wherever it stands, from centred counts F."""
    strands, n, columns = kernel.strands(X), len(X), len(kernel.alphabet) ** kernel.degree
    words = np.hstack([windows(Z, kernel.degree, len(kernel.alphabet)) for Z in strands])
    entries = np.full(words.size, 1 / len(strands)), words.ravel()
    F = sparse.csr_array((*entries, np.arange(n + 1) * words.shape[1]), (n, columns))
    F.sum_duplicates()
    mean = F.T @ np.full(n, 1 / n)
    centred = aslinearoperator(F) - aslinearoperator(np.ones((n, 1))) @ aslinearoperator(mean[None])
    alpha, r2 = _ridge_path(centred @ centred.T, s, float(F.multiply(F).sum() / n))
    w = centred.T @ alpha
    table = np.broadcast_to(w, (X.shape[1] - kernel.degree + 1, columns))
    weights = PositionalWeights(X.shape[1], {kernel.degree: table}, alphabet=kernel.alphabet)
    b, both = float(s.mean() - mean @ w), kernel.reverse_complement
    return replace(weights, intercept=b, reverse_complement=both, positional=False, r2=r2)


def _ridge_path(K: Any, s: np.ndarray, size: float) -> tuple[np.ndarray, float]:
    """Dual coefficients with the penalty that predicts a held-out fifth best, and its R²."""
    n = len(s)
    train, held = np.split(np.arange(n), [n - n // 5])
    least, best, alpha = np.inf, size, np.zeros(n)
    for penalty in size * _PENALTIES:
        alpha = solve(K, train, penalty, s - s[train].mean(), alpha, rtol=_TOLERANCE)
        error = np.mean((s - s[train].mean() - K @ alpha)[held] ** 2)
        if error >= least:
            break
        least, best = error, penalty
    r2 = float(1 - least / s[held].var()) if s[held].std() > 0 else np.nan
    return solve(K, np.arange(n), best, s - s.mean(), alpha, rtol=_LAST), r2


def evaluate(
    score: Callable[..., Any], X: np.ndarray, alphabet: Alphabet, batch_size: int
) -> np.ndarray:
    """Scores of the rows of X, some at a time, checked."""
    if not callable(score):
        raise ValueError(
            f"score is a {type(score).__name__}; expected a function from codes (m, L) to m "
            "scores, such as model.decision_function, or a torch module"
        )
    torch, scores = sys.modules.get("torch"), []
    if torch is not None and isinstance(score, torch.nn.Module):
        score = partial(_ask_module, score, alphabet, torch)
    for rows in gen_batches(len(X), check_integer("batch_size", batch_size, 1)):
        s = np.asarray(as_numpy(score(X[rows])))
        s = s[:, 0] if s.shape[1:] == (1,) else s
        scores.append(check_array("the result of score", s, 1, (rows.stop - rows.start,)))
    return np.concatenate(scores)


def _ask_module(score: Any, alphabet: Alphabet, torch: Any, X: np.ndarray) -> Any:
    """Call a torch module with one-hot letters, in evaluation mode."""
    like = next(score.parameters(), torch.zeros(0))  # of the same type, on the same device
    training = score.training
    score.eval()
    with torch.no_grad():
        s = score(torch.from_numpy(one_hot(X, alphabet=alphabet).transpose(0, 2, 1)).to(like))
    score.train(training)
    return s


def confirm(
    score: Callable[..., Any],
    motifs: Sequence[tuple],
    background: Background,
    n: int,
    *,
    surrogate: PositionalWeights | None = None,
    batch_size: int = 1000,
    random_state: int | np.random.RandomState | None = None,
) -> pd.DataFrame:
    """Measure Q', as in `poim`, of some motifs on any model.

    The mean of s(X') - s(X) over n pairs: X from the background, and X' from the same random
    numbers given the motif, so that they differ in little else. With a `surrogate` g of
    `fit_surrogate`, it is the mean of s(X') - s(X) - c (g(X') - g(X) - Q'_g), c by least squares.

    The standard error allows for one rare pair, as large as the largest difference, that the n
    pairs have not met. If no pair differs, it is half the bound by the rule of three, 3 / n times
    the range of all scores. If all scores are equal, the result is NaN, with a warning.

    `motifs` holds `Motif` objects or pairs (word, position), where words may have ambiguous letters
    and None means random positions. m motifs take (m + 1) n scores, `batch_size` in one call.

    >>> from firmlib.strings import Background, confirm
    >>> def score(X):  # A at both ends
    ...     return 4.0 * ((X[:, 0] == 0) & (X[:, 5] == 0))
    >>> motifs = [("A", 0), ("ANNNNA", 0)]
    >>> confirm(score, motifs, Background.uniform(6), 2000, random_state=0).round(2)
        motif  position  surrogate  measured  standard_error
    0       A         0        NaN      0.73            0.03
    1  ANNNNA         0        NaN      3.76            0.02
    """
    n = check_integer("n", n, 10)
    pairs = [tuple(motif)[:2] for motif in motifs]
    if not pairs or not all(len(p) == 2 and isinstance(p[0], str) for p in pairs):
        raise ValueError(f"motifs must be Motif objects or (word, position), got {motifs!r}")
    rng = np.random.RandomState(check_random_state(random_state).randint(2**31))
    u = rng.random_sample((background.length - background.order + 1, n))
    X = [background.from_uniform(u)]
    for word, position in pairs:
        most = background.length - len(word) + 1
        places = np.full(n, position) if position is not None else rng.randint(most, size=n)
        planted = np.empty_like(X[0])
        for j in np.unique(places):
            planted[places == j] = background.given(word, int(j)).from_uniform(u[:, places == j])
        X.append(planted)
    X = np.concatenate(X)
    s = evaluate(score, X, background.alphabet, batch_size).reshape(-1, n)
    difference = s[1:] - s[0]
    rare = np.abs(difference).max(axis=1) / n
    known = np.full(len(pairs), np.nan)
    if surrogate is not None:
        g = surrogate.score(X).reshape(-1, n)
        for i, (word, position) in enumerate(pairs):
            z = encode([word], alphabet=background.alphabet, unknown="average", name="motifs")
            Q = exact_importance(surrogate, z, background)[0]
            known[i] = Q.mean() if position is None else Q[position]
            control = g[i + 1] - g[0] - known[i]
            if rare[i] > 0 and control.var() > 0:
                slope = np.cov(difference[i], control, bias=True)[0, 1] / control.var()
                difference[i] -= slope * control
    error = np.sqrt(difference.var(axis=1) / (n - 2) + rare**2)
    error[rare == 0] = 3 / n * np.ptp(s) / 2  # an event not seen has probability < 3 / n
    table = pd.DataFrame(pairs, columns=["motif", "position"]).assign(
        surrogate=known, measured=difference.mean(axis=1), standard_error=error
    )
    if np.ptp(s) == 0:
        warn(f"the score is the same for all {s.size} sequences, so that nothing can be measured")
        table[["measured", "standard_error"]] = np.nan
    return table
