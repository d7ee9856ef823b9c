"""Expected scores, over a chain and given the letters that are known: exact for any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from firmlib.strings._sweep import messages, sweep
from firmlib.strings.background import Background

if TYPE_CHECKING:
    from firmlib.strings.weights import PositionalWeights

_FILLINGS = 4**5  # of the unknown letters within reach of one another, to go through them all
_BATCH = 2**22  # numbers in a batch


def expected_score(weights: PositionalWeights, background: Background) -> float:
    """E[s(X)] without the intercept."""
    *_, level = sweep(weights, background)
    return messages(weights, background, level)[2]


def expected_scores(
    weights: PositionalWeights, X: np.ndarray, background: Background | None
) -> np.ndarray:
    """E[s(X) | the known letters of x] without the intercept, for codes with unknown letters.

    Where few letters are unknown in any stretch that a word or a context covers, by going through
    all that may stand there; else by the law of X given x, which is a chain again.
    """
    background = background or Background.uniform(weights.length, alphabet=weights.alphabet)
    if (background.length, background.alphabet) != (weights.length, weights.alphabet):
        raise ValueError(
            f"background has length {background.length} and the {background.alphabet}, "
            f"but the weights' are {weights.length} and {weights.alphabet}"
        )
    reach = min(weights.length, max(weights.degree, background.order + 1))
    ways = np.log(weights.alphabet.members.sum(axis=1))[X]
    few = sliding_window_view(ways, reach, axis=1).sum(axis=2).max(axis=1) < np.log(_FILLINGS)
    s = np.zeros(len(X))
    size = weights.length * len(background.initial) * len(weights.alphabet)
    step = max(1, _BATCH // (size + _FILLINGS))
    for start in range(0, np.count_nonzero(few), step):
        rows = np.flatnonzero(few)[start : start + step]
        s[rows] = _fill_in(weights, X[rows], background)
    for i in np.flatnonzero(~few):
        factors = weights.alphabet.members[X[i]].astype(float)
        s[i] = expected_score(weights, background.given(factors))
    return s


def _fill_in(weights: PositionalWeights, X: np.ndarray, background: Background) -> np.ndarray:
    """From left to right, keep each history of the last letters, and how likely it is given x."""
    D, a, degree = background.order, len(weights.alphabet), weights.degree
    initial, transition, log_z = background.tilt(weights.alphabet.members[X].astype(float))
    if (log_z == -np.inf).any():
        raise ValueError(
            f"X[{int(log_z.argmin())}] of those with unknown letters is impossible under the "
            "background; expected sequences that it can produce"
        )
    row, history, p = np.arange(len(X)), np.zeros(len(X), dtype=np.int64), np.ones(len(X))
    words = {d: [] for d in range(1, degree + 1)}
    for t in range(weights.length):
        letter = np.tile(np.arange(a), len(row))
        context = np.repeat(history % a**D, a)
        row, history, p = np.repeat(row, a), a * np.repeat(history, a) + letter, np.repeat(p, a)
        if t < D:
            p = initial.reshape(len(X), a ** (t + 1), -1).sum(axis=2)[row, history]
        else:
            p = p * transition[row, t - D, context, letter]
        row, history, p = row[p > 0], history[p > 0], p[p > 0]
        for d in range(1, min(degree, t + 1) + 1):
            words[d].append((row, np.full(len(row), t + 1 - d), history % a**d, p))
        history = history % a ** max(degree - 1, D)
        order = np.lexsort([history, row])
        row, history = row[order], history[order]
        first = np.flatnonzero(np.diff(row, prepend=-1) | np.diff(history, prepend=-1))
        row, history, p = row[first], history[first], np.add.reduceat(p[order], first)
    s = np.zeros(len(X))
    for d, found in words.items():
        row, position, code, p = map(np.concatenate, zip(*found, strict=True))
        s += np.bincount(row, p * weights.at(d, position, code), minlength=len(X))
    return s
