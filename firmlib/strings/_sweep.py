"""Expected weights of the words that reach out of a window, over all windows (Section 1.2).

Seen from a window, a word with a weight lies inside it, or reaches out of it to the right, to the
left, or on both sides. `sweep` takes expectations over the letters outside, from long words down to
short ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from firmlib.strings.background import Background
from firmlib.strings.words import windows

if TYPE_CHECKING:
    from firmlib.strings.weights import PositionalWeights

_BATCH = 2**17  # numbers at once: enough for NumPy, few enough for the cache


class Level(NamedTuple):
    """Words of d letters: w, and what reaches out of them; shape (L - d + 1, a**d), None for 0.

    For some words, one by one, the shape is (shifts, m, n).
    """

    d: int
    w: Any
    right: Any
    left: Any
    both: Any


def sweep(weights: PositionalWeights, background: Background, top: int = 0) -> Iterator[Level]:
    """Go down in d and yield, given X[i:i+d] = y, the expected sum of the weights that

        right_{i,d}(y) = E_last(w + right)_{i,d+1}(y)        start at i, end after i + d,
        left_{i,d}(y)  = E_first(w + left)_{i-1,d+1}(y)      start before i, end at i + d,
        both_{i,d}(y)  = E_first(right + both)_{i-1,d+1}(y)  start before i, end after i + d,

    from d = `top`, or from the longest table of `weights`, to the background's order.
    """
    D, forward, backward = background.order, background.transition, background.backward
    top = max(top, D, weights.split)
    right, left, both = _long_words_at(top, weights, background)
    for d in range(top, D - 1, -1):
        w = weights.columns(d) if 0 < d <= weights.degree else None
        yield Level(d, w, right, left, both)
        if d > D:
            both = _expect_first(total(right, both), backward)
            left = _expect_first(total(w, left), backward)
            right = _expect_last(total(w, right), forward)


def sweep_long_words(
    weights: PositionalWeights, background: Background, low: int
) -> Iterator[tuple[np.ndarray, np.ndarray, Level]]:
    """The same for the words of `weights.pieces`, from the degree down to d = `low`.

    Yields, for a few sequences at a time, the codes of their words, shape (m, n); the words'
    positions, one row for each shift; and the level, 0 for what a shift pushes over the edge.
    """
    D, L, size = background.order, weights.length, len(weights.alphabet)
    shift = np.arange(1 - len(weights.smear), len(weights.smear))[:, None, None]
    for codes, offset, values in weights.part(low, weights.degree).pieces:
        n, top = codes.shape[1], max(values)
        for rows in gen_batches(len(codes), max(1, _BATCH // (len(shift) * n))):
            X, context = codes[rows], windows(codes[rows], D, size)
            place = np.clip(offset + shift + np.arange(n - D), 0, L - D - 1)
            forward = background.transition[place, context[:, :-1], X[:, D:]]
            backward = background.backward[place, X[:, : n - D], context[:, 1:]]
            right = left = both = np.zeros((len(shift), len(X), n - top + 1))
            for d in range(top, low - 1, -1):
                place = offset + shift + np.arange(n - d + 1)
                factor = np.where((place >= 0) & (place <= L - d), weights.smear[abs(shift)], 0)
                w = factor * values[d][rows, None] if d in values else np.zeros(1)
                yield windows(X, d, size), place, Level(d, w, right, left, both)
                if d > low:
                    first, last = backward[..., : n - d + 1], forward[..., d - 1 - D :]
                    both = np.pad(first * (right + both), ((0, 0), (0, 0), (1, 0)))
                    left = np.pad(first * (w + left), ((0, 0), (0, 0), (1, 0)))
                    right = np.pad(last * (w + right), ((0, 0), (0, 0), (0, 1)))


def messages(
    weights: PositionalWeights, background: Background, level: Level
) -> tuple[np.ndarray, np.ndarray, float]:
    """Expected sums of all that ends after, or starts before, a context, given X[j:j+D] = c.

        right'_j(c) = right_j(c) + sum_b Pr(b | c) (right' + ending)_{j+1}(c[1:] b)
        left'_j(c)  = left_j(c)  + sum_a Pr(a | c) (left' + starting)_{j-1}(a c[:-1])

    `level` is that of d = D; `ending` and `starting` are the weights of the words in a context
    that end where it ends or start where it starts. Also E[s], without the intercept.
    """
    D, n, a = background.order, weights.length - background.order, len(weights.alphabet)
    word = np.arange(a ** (D + 1))
    right, left, starting, ending = np.zeros((4, n + 1, a**D))
    right += 0 if level.right is None else level.right
    left += 0 if level.left is None else level.left
    mean = 0.0
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
    *_, level = sweep(weights, background)
    return messages(weights, background, level)[2]


def _long_words_at(
    d: int, weights: PositionalWeights, background: Background
) -> list[np.ndarray | None]:
    """The tables right, left and both of level d, from all words that are longer than d."""
    if weights.degree <= d:
        return [None] * 3
    n, n_words = weights.length - d + 1, len(weights.alphabet) ** d
    tables = np.zeros((3, n * n_words))
    for code, place, level in sweep_long_words(weights, background, d):
        if level.d == d:
            cell = np.clip(place, 0, n - 1) * n_words + code
            for table, value in zip(tables, level[2:], strict=True):
                np.add.at(table, cell.ravel(), value.ravel())
    return list(tables.reshape(3, n, -1))


def _expect_last(table: np.ndarray | None, forward: np.ndarray) -> np.ndarray | None:
    """Mean over the last letter given those before it; the last position gets 0."""
    if table is None:
        return None
    n, (contexts, a) = len(table), forward.shape[1:]
    by_context = table.reshape(n, -1, contexts, a).swapaxes(1, 2)
    mean = (by_context @ forward[-n:, :, :, None]).swapaxes(1, 2)
    return np.pad(mean.reshape(n, -1), ((0, 1), (0, 0)))


def _expect_first(table: np.ndarray | None, backward: np.ndarray) -> np.ndarray | None:
    """Mean over the first letter given those after it; the first position gets 0."""
    if table is None:
        return None
    n, (a, contexts) = len(table), backward.shape[1:]
    by_context = table.reshape(n, a, contexts, -1).swapaxes(1, 2)
    mean = backward[:n].swapaxes(1, 2)[:, :, None] @ by_context
    return np.pad(mean.reshape(n, -1), ((1, 0), (0, 0)))


def total(*tables: np.ndarray | None) -> np.ndarray | None:
    """Sum of those that are not None; a single table is returned as it is."""
    result = None
    for table in tables:
        if table is not None:
            result = table if result is None else result + table
    return result
