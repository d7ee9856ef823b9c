"""Expected weights of the words that reach out of a window, over all windows (Section 1.2).

Seen from a window, a word with a weight lies inside it, or reaches out of it to the right, to the
left, or on both sides. `sweep` takes expectations over the letters outside, from long words down to
short ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from firmlib.strings.background import Background
from firmlib.strings.words import find, windows

if TYPE_CHECKING:
    from firmlib.strings.weights import PositionalWeights

_BATCH = 2**17  # numbers at once: enough for NumPy, few enough for the cache


def sweep(weights: PositionalWeights, background: Background, top: int = 0) -> Iterator[tuple]:
    """Go down in d and yield d, w, and, given X[i:i+d] = y, the expected sum of the weights that

        right_{i,d}(y) = E_last(w + right)_{i,d+1}(y)        start at i, end after i + d,
        left_{i,d}(y)  = E_first(w + left)_{i-1,d+1}(y)      start before i, end at i + d,
        both_{i,d}(y)  = E_first(right + both)_{i-1,d+1}(y)  start before i, end after i + d,

    from d = `top`, or from the longest table of `weights`, to the background's order: tables of
    shape (L - d + 1, a**d), or 0.0.
    """
    D, forward, backward = background.order, background.transition, background.backward
    top, right, left, both = max(top, D, weights.split), 0.0, 0.0, 0.0
    if weights.degree > top:
        right, left, both = sweep_long_words(weights, background, {top: None})[top]
    for d in range(top, D - 1, -1):
        w = weights.columns(d) if 0 < d <= weights.degree else 0.0
        yield d, w, right, left, both
        if d > D:
            both = _expect_first(total(right, both), backward)
            left = _expect_first(total(w, left), backward)
            right = _expect_last(total(w, right), forward)


def sweep_long_words(
    weights: PositionalWeights, background: Background, wanted: Mapping[int, np.ndarray | None]
) -> dict[int, np.ndarray]:
    """The same for words with a code among ``wanted[d]``, sorted; None stands for all.

    Goes through the sequences of `weights`, some at a time, instead of through all words. Gives,
    for each d, the tables right, left and both, shape (3, L - d + 1, number of words).
    """
    D, L, size = background.order, weights.length, len(weights.alphabet)
    count = {d: size**d if codes is None else len(codes) for d, codes in wanted.items()}
    tables = {d: np.zeros((3, L - d + 1, m)) for d, m in count.items()}
    S, low, top = len(weights.smear) - 1, min(wanted), weights.values.shape[1]
    shift = np.arange(-S, S + 1)[:, None, None]
    step = max(1, _BATCH // (len(shift) * L))
    for i in range(0, len(weights.sequences), step):
        X, value = weights.sequences[i : i + step], weights.values[i : i + step]
        Z, known = np.minimum(X, size - 1), X.max() < size  # no word goes past an unknown letter
        context, place = windows(Z, D, size), np.clip(shift + np.arange(L - D), 0, L - D - 1)
        forward = background.transition[place, context[:, :-1], Z[:, D:]]
        backward = background.backward[place, Z[:, : L - D], context[:, 1:]]
        right = left = both = np.zeros((len(shift), len(X), L - top + 1))
        for d in range(top, low - 1, -1):
            place = shift + np.arange(L - d + 1)
            if d in wanted:
                row, start, column = find(windows(X, d, size), wanted[d])
                cell = np.clip(place[:, 0, start], 0, L - d) * count[d] + column
                for table, sums in zip(tables[d], (right, left, both), strict=True):
                    np.add.at(table.reshape(-1), cell.ravel(), sums[:, row, start].ravel())
            if d > low:
                factor = np.where((place >= 0) & (place <= L - d), weights.smear[abs(shift)], 0)
                w = factor * value[:, d - 1 : d]
                w = w if known else w * (windows(X, d, size) >= 0)
                first, last = backward[..., : L - d + 1], forward[..., d - 1 - D :]
                both = np.pad(first * (right + both), ((0, 0), (0, 0), (1, 0)))
                left = np.pad(first * (w + left), ((0, 0), (0, 0), (1, 0)))
                right = np.pad(last * (w + right), ((0, 0), (0, 0), (0, 1)))
    return tables


def messages(
    weights: PositionalWeights, background: Background, right: Any, left: Any
) -> tuple[np.ndarray, np.ndarray, float]:
    """Expected sums of all that ends after, or starts before, a context, given X[j:j+D] = c.

        right'_j(c) = right_j(c) + sum_b Pr(b | c) (right' + ending)_{j+1}(c[1:] b)
        left'_j(c)  = left_j(c)  + sum_a Pr(a | c) (left' + starting)_{j-1}(a c[:-1])

    `right` and `left` are those of d = D; `ending` and `starting` are the weights of the words in
    a context that end where it ends or start where it starts. Also E[s], without the intercept.
    """
    D, n, a = background.order, weights.length - background.order, len(weights.alphabet)
    word = np.arange(a ** (D + 1))
    starting, ending = np.zeros((2, n + 1, a**D))
    right, left, mean = starting + right, starting + left, 0.0
    for d in range(1, D + 1):
        w = weights.dense(d)
        mean += (w * background.probabilities(d))[: D - d + 1].sum()
        starting += w[: n + 1, word[: a**D] // a ** (D - d)]
        ending += w[D - d :, word[: a**D] % a**d]
    for j in reversed(range(n)):
        known = (right[j + 1] + ending[j + 1])[word % a**D].reshape(-1, a)
        right[j] += (background.transition[j] * known).sum(axis=1)
    for j in range(n):
        known = (left[j] + starting[j])[word // a].reshape(a, -1)
        left[j + 1] += (background.backward[j] * known).sum(axis=0)
    return right, left, float(mean + background.initial @ right[0])


def expected_score(weights: PositionalWeights, background: Background) -> float:
    """E[s(X)] without the intercept."""
    *_, (_, _, right, left, _) = sweep(weights, background)
    return messages(weights, background, right, left)[2]


def total(*tables: Any) -> Any:
    """Sum of those that are not 0.0; a single table is returned as it is."""
    tables = tuple(table for table in tables if np.ndim(table))
    return sum(tables[1:], tables[0]) if tables else 0.0


def _expect_last(table: Any, forward: np.ndarray) -> Any:
    """Mean over the last letter given those before it; the last position gets 0."""
    if np.ndim(table) == 0:
        return table
    n, (contexts, a) = len(table), forward.shape[1:]
    by_context = table.reshape(n, -1, contexts, a).swapaxes(1, 2)
    mean = (by_context @ forward[-n:, :, :, None]).swapaxes(1, 2)
    return np.pad(mean.reshape(n, -1), ((0, 1), (0, 0)))


def _expect_first(table: Any, backward: np.ndarray) -> Any:
    """Mean over the first letter given those after it; the first position gets 0."""
    if np.ndim(table) == 0:
        return table
    n, (a, contexts) = len(table), backward.shape[1:]
    by_context = table.reshape(n, a, contexts, -1).swapaxes(1, 2)
    mean = backward[:n].swapaxes(1, 2)[:, :, None] @ by_context
    return np.pad(mean.reshape(n, -1), ((1, 0), (0, 0)))
