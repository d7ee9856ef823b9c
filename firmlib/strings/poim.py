"""Positional oligomer importance matrices, exact for any Markov background (Sections 1.2, 2.3)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from firmlib.binary import firm_from_poim
from firmlib.strings.alphabet import DNA, Alphabet, encode, windows
from firmlib.strings.background import Background, marginal
from firmlib.strings.weights import PositionalWeights, check_background
from firmlib.tables.checks import check_array, check_integer, check_memory, check_option, warn

ROUNDING = 1e-9  # sums that differ by less than this part of the largest are equal
SCALES = ("poim", "firm")
LOW_R2 = 0.5  # a surrogate that explains less is named in a warning
_BATCH = 2**17  # numbers at once: enough for NumPy, few enough for the cache


def poim(
    weights: PositionalWeights | Callable[[np.ndarray], ArrayLike],
    k: int,
    background: Background | None = None,
    *,
    scale: str = "poim",
    n: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> np.ndarray:
    """Importance of all words z of length k at all positions j, (L - k + 1, a**k), eq. (5).

        Q'(z, j) = E[s(X) | X[j:j+k] = z] - E[s(X)],

    exactly (Zien et al., POIMs: positional oligomer importance matrices, Bioinformatics 24(13),
    2008). Columns are in the order of `word_index`. Impossible words have importance 0.

    The default `background` is uniform. The `scale` "firm" gives Q = Q' sqrt(p / (1 - p)), with
    p = Pr(X[j:j+k] = z). For a callable s, a surrogate is fitted to `n` sequences, as in
    `fit_surrogate`.

    Only AC at 0 has a weight, but A at 0 and C at 1 are important too:

    >>> from firmlib.strings import PositionalWeights, poim
    >>> poim(PositionalWeights.from_dict({("AC", 0): 16.0}, length=2), 1)
    array([[ 3., -1., -1., -1.],
           [-1.,  3., -1., -1.]])
    """
    if callable(weights) and background is not None and n is not None:
        from firmlib.strings.surrogate import fit_surrogate

        check_option("scale", scale, SCALES)
        weights = fit_surrogate(weights, background, n, random_state=random_state)
    else:
        weights, background = check_weights(weights, background, scale)
    return exact_poim(weights, check_integer("k", k, 1, weights.length), background, scale)


def check_weights(
    weights: object, background: Background | None, scale: str = "poim"
) -> tuple[PositionalWeights, Background]:
    """Return both, the background uniform for None; warn of a surrogate that explains little."""
    check_option("scale", scale, SCALES)
    if not isinstance(weights, PositionalWeights):
        kind = type(weights).__name__
        hint = "fit_surrogate(model, background, n), or to poim also background and n"
        hint = f"its weights, {kind}.weights_" if hasattr(weights, "weights_") else hint
        raise ValueError(f"weights is a {kind}; expected PositionalWeights: pass {hint}")
    if weights.r2 is not None and weights.r2 < LOW_R2:
        warn(
            f"these importances are those of a surrogate with R² {weights.r2:.2f}, which misses "
            "most of what the model does: measure them on the model with confirm"
        )
    return weights, check_background(weights, background)


def exact_poim(
    weights: PositionalWeights, k: int, background: Background, scale: str = "poim"
) -> np.ndarray:
    """`poim` of checked arguments, the sum of both_k(z) of `sweep` and of T_k(z), the rest:

        T_d(z) = (w + right + left)_d(z) + (T - right)_{d-1}(z[:-1]) + (T - left)_{d-1}(z[1:])
                 - T_{d-2}(z[1:-1]),

    because what lies left and what lies right of D known letters is independent.
    """
    D, L, a = background.order, weights.length, len(weights.alphabet)
    check_memory("the POIM with its tables", (8 if k < weights.degree else 2, L - k + 1, a**k))
    long = {d: np.arange(a**d) for d in long_words(weights, background, k)}
    levels = {d: level for d, *level in sweep(weights, background, long) if d <= max(k, D)}
    right, left, both, w = levels[D]
    T, inner = w + right + left, None
    for d in range(D + 1, k + 1):
        prefix, suffix = (T - table if np.ndim(table) else T for table in (right, left))
        T, inner = _join(a, prefix, suffix, inner), T
        right, left, both, w = levels.pop(d, (0.0,) * 4)
        for table in (w, right, left) if d <= weights.degree else ():
            T += table
    if np.ndim(both):
        T += both
    if k < D:
        T *= background.probabilities(D)
        for _ in range(D - k):
            T = marginal(T, a)
        p = background.probabilities(k)
        T /= np.where(p > 0, p, 1)
    if scale == "firm" or background.has_zeros:
        for q, p in zip(T, background.probabilities(k), strict=True):
            q[:] = firm_from_poim(q, p) if scale == "firm" else np.where(p > 0, q, 0)
    return T


def _join(a: int, prefix: np.ndarray, suffix: np.ndarray, inner: np.ndarray | None) -> np.ndarray:
    """prefix(z[:-1]) + suffix(z[1:]) - inner(z[1:-1]) for all words z, at all positions."""
    joined = np.empty((len(prefix) - 1, a, prefix.shape[1]))
    for j, out in enumerate(joined):
        rest = suffix[j + 1] if inner is None else suffix[j + 1] - np.repeat(inner[j + 1], a)
        np.add(np.repeat(prefix[j], a).reshape(a, -1), rest, out=out)
    return joined.reshape(len(joined), -1)


def motif_rank(
    importance: ArrayLike, motif: str, positions: slice = slice(None), *, alphabet: Alphabet = DNA
) -> int:
    """Rank of a motif among all words of its length, by the mean importance over positions.

    `importance` is a table as from `poim`; `positions` are those of the motif's first letter, and
    `alphabet` is as in `encode`. Ties, up to rounding, count against the motif.

    >>> from firmlib.strings import PositionalWeights, motif_rank, poim
    >>> w = PositionalWeights.from_dict({("GA", 0): 1.0, ("AT", 1): 1.0}, length=3)
    >>> motif_rank(poim(w, 3), "GAT"), motif_rank(poim(w, 3), "GAC"), motif_rank(w.dense(3), "GAT")
    (1, 7, 64)
    """
    codes, a = encode([motif], alphabet=alphabet, name="motif"), len(alphabet)
    importance = check_array("importance", importance, 2, (None, a ** codes.shape[1]))
    if not isinstance(positions, slice) or not len(importance[positions]):
        raise ValueError(f"positions={positions!r} must be a slice of {len(importance)} positions")
    mean = importance[positions].mean(axis=0)
    own = mean[windows(codes, codes.shape[1], a)[0, 0]]
    return int((mean >= own - ROUNDING * np.abs(mean).max()).sum())


def max_by_length(
    weights: PositionalWeights,
    max_k: int = 8,
    background: Background | None = None,
    *,
    scale: str = "poim",
) -> pd.DataFrame:
    """Largest importance among all words z of each length, max_z |Q(z, j)|, at each position j.

    Lengths are 1 to `max_k`; `background` and `scale` as in `poim`. Only "firm" compares lengths.

    >>> from firmlib.strings import PositionalWeights, max_by_length
    >>> w = PositionalWeights.from_dict({("AC", 1): 16.0}, length=3)
    >>> max_by_length(w, 2, scale="firm").round(2)
    position     0     1     2
    length
    1         0.00  1.73  1.73
    2         0.77  3.87   NaN
    """
    weights, background = check_weights(weights, background, scale)
    largest = {}
    for k in range(check_integer("max_k", max_k, 1, weights.length), 0, -1):  # most memory first
        Q = exact_poim(weights, k, background, scale)
        largest[k] = pd.Series(np.maximum(Q.max(axis=1), -Q.min(axis=1)) + 0.0)  # no -0.0
    return pd.DataFrame(largest).rename_axis("position").T.rename_axis("length").sort_index()


def long_words(weights: PositionalWeights, background: Background, k: int) -> range:
    """Lengths up to k for which `sweep` has no table of all words."""
    return range(max(background.order, weights.split) + 1, min(k, weights.degree) + 1)


def sweep(
    weights: PositionalWeights, background: Background, long: Mapping[int, np.ndarray]
) -> Iterator[tuple]:
    """Expected weights of the words that reach out of a window, from long windows to short ones.

    Yields d, and, given X[i:i+d] = y, the expected sum of the weights of all words that

        right_{i,d}(y) = E_last(w + right)_{i,d+1}(y)        start at i, end after i + d,
        left_{i,d}(y)  = E_first(w + left)_{i-1,d+1}(y)      start before i, end at i + d,
        both_{i,d}(y)  = E_first(right + both)_{i-1,d+1}(y)  start before i, end after i + d,

    and w, tables of shape (L - d + 1, a**d) or 0.0, down to the background's order D. There w holds
    all words of up to D letters, right all that end later, and left all that start earlier, minus
    E[s] without the intercept. Lengths d above `split` and D come first, and only those in `long`:
    their tables have one column for each word in ``long[d]``.
    """
    D, L, a = background.order, weights.length, len(weights.alphabet)
    start, right, left, both = max(D, weights.split), 0.0, 0.0, 0.0
    if weights.degree > start:
        tables = _sweep_long_words(weights, background, {start: np.arange(a**start), **long})
        yield from ((d, *tables[d]) for d in long)
        right, left, both = tables[start]
    for d in range(min(start, max(D, weights.degree)), D, -1):
        w = weights.columns(d)
        yield d, right, left, both, w
        forward, backward = background.transition, background.backward
        both = expect_first(right, backward) + expect_first(both, backward)
        left = expect_first(w, backward) + expect_first(left, backward)
        right = expect_last(w, forward) + expect_last(right, forward)
    w, word = _in_contexts(weights, D), np.arange(a ** (D + 1))
    right, left = np.zeros_like(w) + right, np.zeros_like(w) + left
    for j in reversed(range(L - D)):
        later = (w[j + 1] + right[j + 1])[word % a**D].reshape(-1, a)
        right[j] += (background.transition[j] * later).sum(axis=1)
    for j in range(L - D):
        earlier = (w[j] + left[j])[word // a].reshape(a, -1)
        left[j + 1] += (background.backward[j] * earlier).sum(axis=0)
    yield D, right, left - background.initial @ (w + right)[0], both, w


def _in_contexts(weights: PositionalWeights, D: int) -> np.ndarray:
    """Weights of up to D letters as weights of words of D letters, the first that hold them."""
    a, total = len(weights.alphabet), np.zeros((weights.length + 1, 1))
    for d in range(1, D + 1):
        longer = np.repeat(total[:-1], a, axis=1)
        longer[-1] += np.tile(total[-1], a)  # a word at the end is held by the last one only
        total = longer + weights.columns(d)
    return total


def expect_last(table: Any, forward: np.ndarray) -> Any:
    """Mean over the last letter given those before it, 0 at the last position."""
    if np.ndim(table) == 0:
        return table
    n, (contexts, a) = len(table), forward.shape[1:]
    by_context = table.reshape(n, -1, contexts, a).swapaxes(1, 2)
    mean = (by_context @ forward[-n:, :, :, None]).swapaxes(1, 2)
    return np.pad(mean.reshape(n, -1), ((0, 1), (0, 0)))


def expect_first(table: Any, backward: np.ndarray) -> Any:
    """Mean over the first letter given those after it, 0 at the first position."""
    if np.ndim(table) == 0:
        return table
    n, (a, contexts) = len(table), backward.shape[1:]
    by_context = table.reshape(n, a, contexts, -1).swapaxes(1, 2)
    mean = backward[:n].swapaxes(1, 2)[:, :, None] @ by_context
    return np.pad(mean.reshape(n, -1), ((1, 0), (0, 0)))


def _sweep_long_words(
    weights: PositionalWeights, background: Background, wanted: Mapping[int, np.ndarray]
) -> dict[int, np.ndarray]:
    """Tables of right, left, both and w of the words ``wanted[d]``; no w of the shortest."""
    D, L, a = background.order, weights.length, len(weights.alphabet)
    S, low, top = len(weights.smear) - 1, min(wanted), weights.values.shape[1]
    tables = {d: np.zeros((3 + (d > low), L - d + 1, len(z))) for d, z in wanted.items()}
    values = np.pad(weights.values, ((0, 0), (1, 0)))  # the word of no letters has none
    shift = np.arange(-S, S + 1)[:, None, None]
    step = max(1, _BATCH // (len(shift) * L))
    for i in range(0, len(weights.sequences), step):
        X, value = weights.sequences[i : i + step], values[i : i + step]
        Z, known = np.minimum(X, a - 1), X.max() < a  # no word goes past an unknown letter
        context, place = windows(Z, D, a), np.clip(shift + np.arange(L - D), 0, L - D - 1)
        forward = background.transition[place, context[:, :-1], Z[:, D:]]
        backward = background.backward[place, Z[:, : L - D], context[:, 1:]]
        right = left = both = np.zeros((len(shift), len(X), L - top + 1))
        for d in range(top, low - 1, -1):
            place = shift + np.arange(L - d + 1)
            factor = np.where((place >= 0) & (place <= L - d), weights.smear[abs(shift)], 0)
            w = factor * value[:, d : d + 1]
            w = w if known else w * (windows(X, d, a) >= 0)
            if d in wanted:
                code = windows(X, d, a)
                column = np.searchsorted(wanted[d], code)
                row, start = np.nonzero(np.append(wanted[d], -2)[column] == code)
                cell = np.clip(place[:, 0, start], 0, L - d) * len(wanted[d]) + column[row, start]
                for table, sums in zip(tables[d], (right, left, both, w), strict=False):
                    np.add.at(table.reshape(-1), cell.ravel(), sums[:, row, start].ravel())
            if d > low:
                first, last = backward[..., : L - d + 1], forward[..., d - 1 - D :]
                both = np.pad(first * (right + both), ((0, 0), (0, 0), (1, 0)))
                left = np.pad(first * (w + left), ((0, 0), (0, 0), (1, 0)))
                right = np.pad(last * (w + right), ((0, 0), (0, 0), (0, 1)))
    return tables
