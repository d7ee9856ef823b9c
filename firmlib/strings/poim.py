"""Positional oligomer importance matrices, exact for any Markov background (Sections 1.2, 2.3).

Seen from a window, a word with a weight lies inside it, or reaches out of it to the right, to the
left, or on both sides. `sweep` takes expectations over the letters outside, from long words down to
short ones; `poim` puts windows together again, from short ones up to long ones.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from firmlib._checks import check_integer, check_memory, check_option
from firmlib.binary import firm_from_poim
from firmlib.strings.alphabet import windows
from firmlib.strings.background import Background, marginal
from firmlib.strings.weights import PositionalWeights

__all__ = ["poim"]

_BATCH = 2**17  # numbers at once: enough for NumPy, few enough for the cache


def poim(
    weights: PositionalWeights,
    k: int,
    background: Background | None = None,
    *,
    scale: str = "poim",
) -> np.ndarray:
    """Importance of all words z of length k at all positions j, eq. (5).

        Q'(z, j) = E[s(X) | X[j:j+k] = z] - E[s(X)],

    exactly, whether k is shorter or longer than the words that carry weight or the background's
    contexts. The time is linear in the size of the weights and of the result.

    Parameters
    ----------
    weights : PositionalWeights
        s.
    k : int
        Letters in each word.
    background : Background, optional
        The distribution of X; uniform by default.
    scale : {"poim", "firm"}, default "poim"
        "poim" gives Q', "firm" gives Q = Q' sqrt(p / (1 - p)),
        p = Pr(X[j:j+k] = z), as `firm_from_poim`.

    Returns
    -------
    ndarray of shape (L - k + 1, 4**k)
        Columns in the order AA..A, AA..C, ..., TT..T. The mean of Q' at a position, weighted with
        p, is 0. Words that are impossible (p = 0) have importance 0.

    See Also
    --------
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
    background = check_background(background, weights)
    k = check_integer("k", k, 1, weights.length)
    tables = 8 if k < weights.degree else 2  # in memory at once
    check_memory("the POIM with its tables", (tables, weights.length - k + 1, 4**k))
    Q = _windows(weights, k, background)
    if scale == "firm" or background.has_zeros:
        for q, p in zip(Q, background.probabilities(k), strict=True):
            q[:] = firm_from_poim(q, p) if scale == "firm" else np.where(p > 0, q, 0)
    return Q


def check_background(background: Background | None, weights: PositionalWeights) -> Background:
    """Return the background, uniform for None, of sequences as long as those of `weights`."""
    if background is None:
        return Background.uniform(weights.length)
    if background.length != weights.length:
        raise ValueError(
            f"background has length {background.length}, but the weights' is {weights.length}"
        )
    return background


class Level(NamedTuple):
    """Words of d letters: w, and what reaches out of them; shape (L - d + 1, 4**d), None for 0."""

    d: int
    w: np.ndarray | None
    right: np.ndarray | None
    left: np.ndarray | None
    both: np.ndarray | None


class LongLevel(NamedTuple):
    """The same for some words, one by one; shape (shifts, m, n)."""

    d: int
    w: np.ndarray
    right: np.ndarray
    left: np.ndarray
    both: np.ndarray


def sweep(weights: PositionalWeights, background: Background, top: int = 0) -> Iterator[Level]:
    """Go down in d and yield, given X[i:i+d] = y, the expected sum of the weights that

        right_{i,d}(y) = E_last(w + right)_{i,d+1}(y)        start at i, end after i + d,
        left_{i,d}(y)  = E_first(w + left)_{i-1,d+1}(y)      start before i, end at i + d,
        both_{i,d}(y)  = E_first(right + both)_{i-1,d+1}(y)  start before i, end after i + d,

    from d = `top`, or from the longest table that `weights` has, to the background's order.
    """
    D, forward, backward = background.order, background.transition, background.backward
    top = max(top, D, weights.split)
    right, left, both = _long_words_at(top, weights, background)
    for d in range(top, D - 1, -1):
        w = weights.columns(d) if 0 < d <= weights.degree else None
        yield Level(d, w, right, left, both)
        if d > D:
            both = _expect_first(_sum(right, both), backward)
            left = _expect_first(_sum(w, left), backward)
            right = _expect_last(_sum(w, right), forward)


def sweep_long_words(
    weights: PositionalWeights, background: Background, low: int
) -> Iterator[tuple[np.ndarray, np.ndarray, LongLevel]]:
    """The same for the words of `weights.pieces`, from the degree down to d = `low`.

    Yields, for a few sequences at a time, the codes of their words, shape (m, n); the words'
    positions, one row for each shift; and the level, with values of shape (shifts, m, n), 0 for
    what a shift pushes over the edge.
    """
    D, L = background.order, weights.length
    shift = np.arange(1 - len(weights.smear), len(weights.smear))[:, None, None]
    for codes, offset, values in weights.part(low, weights.degree).pieces:
        n, top = codes.shape[1], max(values)
        for rows in gen_batches(len(codes), max(1, _BATCH // (len(shift) * n))):
            X, context = codes[rows], windows(codes[rows], D)
            place = np.clip(offset + shift + np.arange(n - D), 0, L - D - 1)
            forward = background.transition[place, context[:, :-1], X[:, D:]]
            backward = background.backward[place, X[:, : n - D], context[:, 1:]]
            right = left = both = np.zeros((len(shift), len(X), n - top + 1))
            for d in range(top, low - 1, -1):
                place = offset + shift + np.arange(n - d + 1)
                factor = np.where((place >= 0) & (place <= L - d), weights.smear[abs(shift)], 0)
                w = factor * values[d][rows, None] if d in values else np.zeros(1)
                yield windows(X, d), place, LongLevel(d, w, right, left, both)
                if d > low:
                    first, last = backward[..., : n - d + 1], forward[..., d - 1 - D :]
                    both = np.pad(first * (right + both), ((0, 0), (0, 0), (1, 0)))
                    left = np.pad(first * (w + left), ((0, 0), (0, 0), (1, 0)))
                    right = np.pad(last * (w + right), ((0, 0), (0, 0), (0, 1)))


def messages(
    weights: PositionalWeights, background: Background, level: Level
) -> tuple[np.ndarray, np.ndarray]:
    """Expected sums of all that ends after, or starts before, a context, given X[j:j+D] = c.

        right'_j(c) = right_j(c) + sum_b Pr(b | c) (right' + ending)_{j+1}(c[1:] b)
        left'_j(c)  = left_j(c)  + sum_a Pr(a | c) (left' + starting)_{j-1}(a c[:-1])

    `level` is that of d = D; `ending` and `starting` are the weights of the words in a context
    that end where it ends or start where it starts. E[s] is subtracted from left'.
    """
    D, n = background.order, weights.length - background.order
    word = np.arange(4 ** (D + 1))
    right, left, starting, ending = np.zeros((4, n + 1, 4**D))
    right += 0 if level.right is None else level.right
    left += 0 if level.left is None else level.left
    mean = 0.0
    for d in range(1, D + 1):
        w = weights.dense(d)
        mean += (w * background.probabilities(d))[: D - d + 1].sum()
        starting += w[: n + 1, word[: 4**D] >> 2 * (D - d)]
        ending += w[D - d :, word[: 4**D] % 4**d]
    for j in reversed(range(n)):
        known = (right[j + 1] + ending[j + 1])[word % 4**D].reshape(-1, 4)
        right[j] += (background.transition[j] * known).sum(axis=1)
    for j in range(n):
        known = (left[j] + starting[j])[word // 4].reshape(4, -1)
        left[j + 1] += (background.backward[j] * known).sum(axis=0)
    return right, left - (mean + background.initial @ right[0])


def _windows(weights: PositionalWeights, k: int, background: Background) -> np.ndarray:
    """Q' from windows up: T_d(z) is the expected sum of all that does not reach out on both sides,

        T_d(z) = (w + right + left)_d(z) + (T - right)_{d-1}(z[:-1]) + (T - left)_{d-1}(z[1:])
                 - T_{d-2}(z[1:-1]),

    because what lies left and what lies right of D known letters is independent.
    """
    D, L = background.order, weights.length
    top = max(k, D + 1)
    levels = {level.d: level for level in sweep(weights, background, top) if level.d <= top}
    right, left = messages(weights, background, levels[D])
    inside, inner = np.zeros((L + 1, 1)), None
    for d in range(1, D + 1):
        inside, inner = _join(weights.dense(d), inside, inside, inner), inside
    prefix, suffix, before = inside + left, inside + right, inside + left + right
    for d in range(D + 1, top):
        _, w, right, left, _ = levels[d]
        T = _join(_sum(w, right, left), prefix, suffix, inner)
        prefix, suffix, inner, before = _minus(T, right), _minus(T, left), before, T
    _, w, right, left, both = levels[top]
    T = _join(_sum(w, right, left), prefix, suffix, inner)
    if both is not None:
        T += both
    return T if k > D else _means(T, k, background)


def _join(
    own: np.ndarray | None, prefix: np.ndarray, suffix: np.ndarray, inner: np.ndarray | None
) -> np.ndarray:
    """own(z) + prefix(z[:-1]) + suffix(z[1:]) - inner(z[1:-1]) for all words z, all positions."""
    joined = np.empty((len(prefix) - 1, 4, prefix.shape[1]))
    for j, out in enumerate(joined):
        rest = suffix[j + 1] if inner is None else suffix[j + 1] - np.repeat(inner[j + 1], 4)
        np.add(np.repeat(prefix[j], 4).reshape(4, -1), rest, out=out)
    joined = joined.reshape(len(joined), -1)
    if own is not None:
        joined += own
    return joined


def _means(T: np.ndarray, k: int, background: Background) -> np.ndarray:
    """Means over the letters that words of D + 1 letters have more than words of k <= D."""
    weighted = T * background.probabilities(background.order + 1)
    for _ in range(background.order + 1 - k):
        weighted = marginal(weighted)
    p = background.probabilities(k)
    return weighted / np.where(p > 0, p, 1)


def _long_words_at(
    d: int, weights: PositionalWeights, background: Background
) -> list[np.ndarray | None]:
    """The tables right, left and both of level d, from all words that are longer than d."""
    if weights.degree <= d:
        return [None] * 3
    n = weights.length - d + 1
    tables = np.zeros((3, n * 4**d))
    for code, place, level in sweep_long_words(weights, background, d):
        if level.d == d:
            cell = np.clip(place, 0, n - 1) * 4**d + code
            for table, value in zip(tables, level[2:], strict=True):
                np.add.at(table, cell.ravel(), value.ravel())
    return list(tables.reshape(3, n, -1))


def _expect_last(table: np.ndarray | None, forward: np.ndarray) -> np.ndarray | None:
    """Mean over the last letter given those before it; the last position gets 0."""
    if table is None:
        return None
    n, contexts = len(table), forward.shape[1]
    mean = np.einsum("nxcb,ncb->nxc", table.reshape(n, -1, contexts, 4), forward[-n:])
    return np.pad(mean.reshape(n, -1), ((0, 1), (0, 0)))


def _expect_first(table: np.ndarray | None, backward: np.ndarray) -> np.ndarray | None:
    """Mean over the first letter given those after it; the first position gets 0."""
    if table is None:
        return None
    n, contexts = len(table), backward.shape[2]
    mean = np.einsum("nacx,nac->ncx", table.reshape(n, 4, contexts, -1), backward[:n])
    return np.pad(mean.reshape(n, -1), ((1, 0), (0, 0)))


def _sum(*tables: np.ndarray | None) -> np.ndarray | None:
    """Sum of those that are not None; a table alone is handed through."""
    total = None
    for table in tables:
        if table is not None:
            total = table if total is None else total + table
    return total


def _minus(T: np.ndarray, table: np.ndarray | None) -> np.ndarray:
    return T if table is None else T - table
