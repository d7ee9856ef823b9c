"""What a table of importances looks like where there is nothing to find."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from firmlib._checks import check_array, check_integer

__all__ = ["null_band"]


class NullBand(NamedTuple):
    """What `null_band` returns; every array has the shape of the table."""

    observed: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    pvalues: np.ndarray
    pvalues_adjusted: np.ndarray


def null_band(
    table: Callable[[np.ndarray], ArrayLike],
    y: ArrayLike,
    n: int = 99,
    *,
    random_state: int | np.random.RandomState | None = None,
    verbose: bool = False,
) -> NullBand:
    """Compare a table of importances with those of models that were trained on permuted labels.

    With T the table of y and T_1, ..., T_n those of permutations of y,

        p = (1 + number of r with |T_r| >= |T|) / (1 + n)

    for each entry. For the adjusted p-values, |T_r| is the largest of all entries, on the scale of
    each one's own spread over the permutations: the chance that any is wrongly found is at most
    that. The table may be a POIM, or the difference of two: of two models, two backgrounds, or two
    sets of sequences whose names are permuted.

    Parameters
    ----------
    table : callable
        From labels to an array of any shape: it trains, and returns a POIM or a difference.
    y : array of shape (n_sequences,)
        The labels.
    n : int, default 99
        Permutations; no p-value can be below 1 / (n + 1).
    random_state : int, RandomState or None, default None
        As in scikit-learn.
    verbose : bool, default False
        Show a progress bar (needs tqdm).

    Returns
    -------
    NullBand
        ``observed``; ``mean`` and ``sd`` of the permutations, the band; ``pvalues`` and
        ``pvalues_adjusted``.

    Examples
    --------
    >>> from firmlib.datasets import gattaca
    >>> from firmlib.strings import WDSClassifier, null_band, poim
    >>> X, y = gattaca(1000, random_state=0)
    >>> def table(y):
    ...     return poim(WDSClassifier(4, 2).fit(X, y).weights_, 2)
    >>> band = null_band(table, y, 19, random_state=0)
    >>> band.observed.shape, float(band.pvalues_adjusted.min())
    ((69, 16), 0.05)
    """
    n, y = check_integer("n", n, 1), np.asarray(y)
    rng = check_random_state(random_state)
    observed = np.asarray(table(y), dtype=float)
    permutations = range(n)
    if verbose:
        from tqdm import tqdm

        permutations = tqdm(permutations, desc="permutations")
    null = np.array(
        [
            check_array("table(y)", table(rng.permutation(y)), observed.ndim, observed.shape)
            for _ in permutations
        ]
    )
    sd = np.concatenate([observed[None], null]).std(axis=0)
    scale = np.where(sd > 0, sd, 1)
    largest = (np.abs(null) / scale).reshape(n, -1).max(axis=1)
    above = (np.abs(null) >= np.abs(observed)).sum(axis=0)
    beaten = n - np.searchsorted(np.sort(largest), np.abs(observed) / scale)
    return NullBand(
        observed, null.mean(axis=0), null.std(axis=0), (1 + above) / (1 + n), (1 + beaten) / (1 + n)
    )
