"""Permutation importance for many calls on small tables."""

from collections.abc import Callable

import numpy as np


def permutation_importance(
    score: Callable[[np.ndarray], np.ndarray], X: np.ndarray, *, n_repeats: int, random_state: int
) -> np.ndarray:
    """Return the mean losses, as scikit-learn; `score` maps tables (m, n, d) at once to (m,)."""
    n, d = X.shape
    seed = np.random.RandomState(random_state).randint(np.iinfo(np.int32).max + 1)
    rng, step, row = np.random.RandomState(seed), np.arange(n), np.arange(n)
    copies = np.tile(X, (n_repeats, d, 1, 1))
    for table in copies:
        rng.shuffle(step)
        row = row[step]
        table[np.arange(d), :, np.arange(d)] = X[row].T
    lost = score(X[None]) - score(copies.reshape(-1, n, d))
    return lost.reshape(n_repeats, d).mean(axis=0)
