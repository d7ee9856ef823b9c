"""Positional oligomer importance matrices, exact for any Markov background (Sections 1.2, 2.3).

`sweep` takes expectations over the letters outside a window, from long words down to short ones;
`poim` puts windows together again, from short ones up to long ones.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from firmlib._checks import check_integer, check_memory, check_option
from firmlib.binary import firm_from_poim
from firmlib.strings._sweep import messages, sweep, total
from firmlib.strings.background import Background, marginal
from firmlib.strings.surrogate import fit_surrogate
from firmlib.strings.weights import PositionalWeights

__all__ = ["poim"]


def poim(
    weights: PositionalWeights | Callable[[np.ndarray], ArrayLike],
    k: int,
    background: Background | None = None,
    *,
    scale: str = "poim",
    n: int | None = None,
    degree: int = 4,
    random_state: int | np.random.RandomState | None = None,
) -> np.ndarray:
    """Importance of all words z of length k at all positions j, eq. (5).

        Q'(z, j) = E[s(X) | X[j:j+k] = z] - E[s(X)],

    exactly, whether k is shorter or longer than the words that carry weight or the background's
    contexts. The time is linear in the size of the weights and of the result.

    Parameters
    ----------
    weights : PositionalWeights, or callable
        s. Of any other model, a function from codes of shape (m, L) to m scores: then the result
        is that of its surrogate, `fit_surrogate(weights, background, n)`, which alone is exact;
        keep the surrogate to see its R², and `confirm` what matters.
    k : int
        Letters in each word.
    background : Background, optional
        The distribution of X; uniform by default. A function needs one, which says how long the
        sequences are.
    scale : {"poim", "firm"}, default "poim"
        "poim" gives Q', "firm" gives Q = Q' sqrt(p / (1 - p)),
        p = Pr(X[j:j+k] = z), as `firm_from_poim`.
    n : int, optional
        How often to call a function; it must be given for one, and is not used for weights.
    degree, random_state
        Of the surrogate of a function, as in `fit_surrogate`.

    Returns
    -------
    ndarray of shape (L - k + 1, a**k), with a letters
        For DNA, columns in the order AA..A, AA..C, ..., TT..T. The mean of Q' at a position,
        weighted with p, is 0. Words that are impossible (p = 0) have importance 0.

    See Also
    --------
    fit_surrogate, confirm : any model that scores sequences.
    motif_importance : given words only, of any length.
    top_motifs : the best words of a length for which this table would not fit.

    References
    ----------
    A. Zien, S. Sonnenburg, P. Philips, G. Rätsch. POIMs: positional oligomer importance matrices.
    Bioinformatics 24(13), 2008.

    Examples
    --------
    Only AC at 0 has a weight, but A at 0 and C at 1 are important too:

    >>> from firmlib.strings.poim import poim
    >>> from firmlib.strings.weights import PositionalWeights
    >>> poim(PositionalWeights.from_dict({("AC", 0): 16.0}, length=2), 1)
    array([[ 3., -1., -1., -1.],
           [-1.,  3., -1., -1.]])
    """
    check_option("scale", scale, ("poim", "firm"))
    if callable(weights) and background is not None and n is not None:
        weights = fit_surrogate(weights, background, n, degree=degree, random_state=random_state)
    background = check_background(background, weights)
    assert isinstance(weights, PositionalWeights)
    k = check_integer("k", k, 1, weights.length)
    return next(each_poim(weights, k, k, background, scale))


def each_poim(
    weights: PositionalWeights, low: int, high: int, background: Background, scale: str
) -> Iterator[np.ndarray]:
    """Yield the `poim` of each k from `low` to `high`, all from one sweep."""
    tables = 8 if high < weights.degree else 2  # in memory at once
    check_memory(
        "the POIM with its tables",
        (tables, weights.length - high + 1, len(weights.alphabet) ** high),
    )
    D = background.order
    for d, T, both in _windows(weights, max(high, D + 1), background):
        if D + 1 < d < low:
            continue
        T = T if d >= high else T.copy()  # longer windows need it as it is
        if both is not None:
            T += both
        for k in range(low, min(D, high) + 1) if d == D + 1 else ():
            yield _scaled(_means(T, k, background), k, background, scale)
        if low <= d <= high:
            yield _scaled(T, d, background, scale)


def _scaled(Q: np.ndarray, k: int, background: Background, scale: str) -> np.ndarray:
    if scale == "firm" or background.has_zeros:
        for q, p in zip(Q, background.probabilities(k), strict=True):
            q[:] = firm_from_poim(q, p) if scale == "firm" else np.where(p > 0, q, 0)
    return Q


def check_background(background: Background | None, weights: object) -> Background:
    """Return the background, uniform for None, of sequences like those of `weights`."""
    if not isinstance(weights, PositionalWeights):
        kind = type(weights).__name__
        if hasattr(weights, "weights_"):
            hint = f"pass its weights, {kind}.weights_"
        elif callable(weights):
            hint = "pass fit_surrogate(function, background, n), or to poim also background and n"
        else:
            hint = "pass fit_surrogate(model.decision_function, background, n), or another function"
        raise ValueError(f"weights is a {kind}; expected PositionalWeights: {hint}")
    if background is None:
        return Background.uniform(weights.length, alphabet=weights.alphabet)
    if background.alphabet != weights.alphabet:
        raise ValueError(
            f"background has the {background.alphabet}, but the weights' is {weights.alphabet}"
        )
    if background.length != weights.length:
        raise ValueError(
            f"background has length {background.length}, but the weights' is {weights.length}"
        )
    return background


def _windows(
    weights: PositionalWeights, top: int, background: Background
) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
    """From windows of D + 1 letters up to `top`, what `Q'` is the sum of: T_d(z) and both_d(z).

    T_d(z) is the expected sum of all that does not reach out on both sides,

        T_d(z) = (w + right + left)_d(z) + (T - right)_{d-1}(z[:-1]) + (T - left)_{d-1}(z[1:])
                 - T_{d-2}(z[1:-1]),

    because what lies left and what lies right of D known letters is independent.
    """
    D, L, a = background.order, weights.length, len(weights.alphabet)
    levels = {level.d: level for level in sweep(weights, background, top) if level.d <= top}
    right, left, mean = messages(weights, background, levels[D])
    left -= mean
    inside, inner = np.zeros((L + 1, 1)), None
    for d in range(1, D + 1):
        inside, inner = _join(a, weights.dense(d), inside, inside, inner), inside
    prefix, suffix, before = inside + left, inside + right, inside + left + right
    for d in range(D + 1, top + 1):
        _, w, right, left, both = levels[d]
        T = _join(a, total(w, right, left), prefix, suffix, inner)
        yield d, T, both
        prefix, suffix, inner, before = _minus(T, right), _minus(T, left), before, T


def _join(
    a: int,
    own: np.ndarray | None,
    prefix: np.ndarray,
    suffix: np.ndarray,
    inner: np.ndarray | None,
) -> np.ndarray:
    """own(z) + prefix(z[:-1]) + suffix(z[1:]) - inner(z[1:-1]) for all words z, all positions."""
    joined = np.empty((len(prefix) - 1, a, prefix.shape[1]))
    for j, out in enumerate(joined):
        rest = suffix[j + 1] if inner is None else suffix[j + 1] - np.repeat(inner[j + 1], a)
        np.add(np.repeat(prefix[j], a).reshape(a, -1), rest, out=out)
    joined = joined.reshape(len(joined), -1)
    if own is not None:
        joined += own
    return joined


def _means(T: np.ndarray, k: int, background: Background) -> np.ndarray:
    """Means over the letters that words of D + 1 letters have more than words of k <= D."""
    weighted = T * background.probabilities(background.order + 1)
    for _ in range(background.order + 1 - k):
        weighted = marginal(weighted, len(background.alphabet))
    p = background.probabilities(k)
    return weighted / np.where(p > 0, p, 1)


def _minus(T: np.ndarray, table: np.ndarray | None) -> np.ndarray:
    return T if table is None else T - table
