"""Importance of given motifs of any length, without a table of all words."""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from firmlib._checks import check_array, check_integer, check_option
from firmlib.binary import firm_from_poim
from firmlib.strings._expected import expected_score
from firmlib.strings._sweep import messages, sweep, sweep_long_words
from firmlib.strings.alphabet import DNA, Alphabet, encode
from firmlib.strings.background import Background, check_rows
from firmlib.strings.poim import check_background, each_poim, poim
from firmlib.strings.weights import PositionalWeights, find
from firmlib.strings.words import windows

__all__ = [
    "importance_along",
    "letter_contributions",
    "max_by_length",
    "motif_importance",
    "motif_rank",
]

_WORDS = 2**12  # of a motif with ambiguous letters that are summed one by one

ROUNDING = 1e-9
"""Sums that differ by less than this part of the largest are equal, but for rounding."""


def motif_importance(
    weights: PositionalWeights,
    motifs: Sequence[str] | ArrayLike,
    background: Background | None = None,
    *,
    scale: str = "poim",
) -> np.ndarray:
    """Importance of given motifs at all positions, as in `poim`, for motifs of any length.

        Q'(z, j) = E[s(X) | X[j:j+k] = z] - E[s(X)]

    is the sum of the weights of all words inside z, which are known, and of the expected weights
    of those that reach out of it or lie beside it. A motif may have ambiguous letters, such as N
    for a gap; then "= z" reads "is one of the words that z stands for".

    A matrix of letter probabilities M (a PWM) is a feature, too: with the odds
    f(x) = prod_t M_t(x_{j+t}) / Pr(X_{j+t} = x_{j+t}),

        Q'(M, j) = E[s f] / E[f] - E[s],   Q(M, j) = Cov(s, f) / sd(f).

    Under independent positions, Q' is the mean of Q'(z, j) over words z drawn from M. Words are
    the special case where f is 1 or 0. All are exact.

    Parameters
    ----------
    weights : PositionalWeights
        s.
    motifs : n motifs of one length k, as strings or codes, or array of shape (n, k, a)
        Of an array with three axes, ``motifs[i]`` is a PWM, each row the distribution of a letter.
    background : Background, optional
        The distribution of X; uniform by default.
    scale : {"poim", "firm"}, default "poim"
        "poim" gives Q', "firm" gives Q = Q' sqrt(p / (1 - p)), p = Pr(X[j:j+k] = z).

    Returns
    -------
    ndarray of shape (n, L - k + 1)
        0 for a motif that is impossible where it stands.

    Examples
    --------
    >>> from firmlib.strings.motifs import motif_importance
    >>> from firmlib.strings.weights import PositionalWeights
    >>> w = PositionalWeights.from_dict({("ATTA", 1): 256.0}, length=8)
    >>> motif_importance(w, ["GATTACA", "GATTCCA", "NATTRNN"])
    array([[255.,  -1.],
           [ -1.,  -1.],
           [127.,  -1.]])
    """
    check_option("scale", scale, ("poim", "firm"))
    background = check_background(background, weights)
    if np.ndim(np.asarray(motifs)) == 3:
        pwm = check_array("motifs", motifs, 3, (None, None, len(weights.alphabet)))
        pwm = check_rows("motifs", pwm)
        k = check_integer("the motifs' length", pwm.shape[1], 1, weights.length)
        letter = sliding_window_view(background.probabilities(1), k, axis=0).transpose(0, 2, 1)
        odds = [np.where(letter > 0, M / np.where(letter > 0, letter, 1), 0) for M in pwm]
        return np.array([_soft_importance(weights, f, background, scale) for f in odds])
    Z = encode(motifs, alphabet=weights.alphabet, unknown="average", name="motifs")
    k = check_integer("the motifs' length", Z.shape[1], 1, weights.length)
    known = (len(weights.alphabet) > Z).all(axis=1)
    Q = np.zeros((len(Z), weights.length - k + 1))
    if known.any():
        Q[known] = _word_importance(weights, Z[known], background, scale)
    for i in np.flatnonzero(~known):
        allowed = weights.alphabet.members[Z[i]].astype(float)
        f = np.broadcast_to(allowed, (Q.shape[1], *allowed.shape))
        Q[i] = _soft_importance(weights, f, background, scale)
    return Q


def _word_importance(
    weights: PositionalWeights, Z: np.ndarray, background: Background, scale: str
) -> np.ndarray:
    k = Z.shape[1]
    if k <= background.order:
        Q = poim(weights, k, background)[:, windows(Z, k, len(weights.alphabet))[:, 0]].T
    else:
        Q = (_inside(weights, Z) + _beside(weights, Z, background)).T
    p = background.motif_probabilities(Z)
    return firm_from_poim(Q, p) if scale == "firm" else np.where(p > 0, Q, 0)


def _soft_importance(
    weights: PositionalWeights, f: np.ndarray, background: Background, scale: str
) -> np.ndarray:
    """Q' or Q of the feature prod_t f[j, t, X_{j+t}] at each position j, from E f, E f^2, E f s.

    A feature of few words is their weighted sum; else each position has its own tilted chain.
    """
    support = np.asarray((f > 0).any(axis=0))
    if np.prod(support.sum(axis=1), dtype=float) <= _WORDS:
        Z = np.array(list(product(*map(np.flatnonzero, support))))
        odds = f[:, np.arange(len(support)), Z].prod(axis=-1).T  # (words, positions)
        p = background.motif_probabilities(Z) * odds
        first, second = p.sum(axis=0), (p * odds).sum(axis=0)
        Q = (p * _word_importance(weights, Z, background, "poim")).sum(axis=0)
        Q /= np.where(first > 0, first, 1)
    else:
        Q, first, second = np.zeros((3, len(f)))
        mean = expected_score(weights, background)
        for j, rows in enumerate(f):
            factors = np.ones((weights.length, len(weights.alphabet)))
            factors[j : j + len(rows)] = rows
            initial, transition, log_z = background.tilt(factors)
            if log_z > -np.inf:
                tilted = Background(initial, transition, weights.alphabet)
                Q[j] = expected_score(weights, tilted) - mean
                first[j], second[j] = np.exp([log_z, background.tilt(factors**2)[2]])
    if scale == "poim":
        return Q
    variance = second - first**2
    varies = variance > ROUNDING * second
    return np.where(varies, Q * first / np.sqrt(np.where(varies, variance, 1)), 0)


def _inside(weights: PositionalWeights, Z: np.ndarray) -> np.ndarray:
    """Sum of the weights of the words in each motif, shape (L - k + 1, n)."""
    k, n = Z.shape[1], weights.length - Z.shape[1] + 1
    total = np.zeros((n, len(Z)))
    for d in range(1, min(k, weights.degree) + 1):
        codes, column = np.unique(windows(Z, d, len(weights.alphabet)), return_inverse=True)
        w = weights.columns(d, codes)
        for t, word in enumerate(column.T):
            total += w[t : t + n, word]
    return total


def _beside(weights: PositionalWeights, Z: np.ndarray, background: Background) -> np.ndarray:
    """Expected weights of all words that are not in a motif, minus E[s], shape (L - k + 1, n)."""
    D, k, n = background.order, Z.shape[1], weights.length - Z.shape[1] + 1
    size = len(weights.alphabet)
    total = np.zeros((n, len(Z)))
    for level in sweep(weights, background):
        d, _, right, left, both = level
        if d <= k:
            if d == D:
                right, left, mean = messages(weights, background, level)
                left -= mean
            words = windows(Z, d, size)
            prefix, suffix = words[:, 0], words[:, -1]
            total += 0 if right is None else right[k - d : k - d + n, suffix]
            total += 0 if left is None else left[:n, prefix]
            total += 0 if both is None or d < k else both[:, prefix]
    for code, place, level in sweep_long_words(weights, background, max(D, weights.split) + 1):
        d, _, right, left, both = level
        if d <= k:
            words = windows(Z, d, size)
            prefix, suffix = words[:, 0], words[:, -1]
            _add_at(total, code, place - (k - d), right, suffix)
            _add_at(total, code, place, left, prefix)
            if d == k:
                _add_at(total, code, place, both, prefix)
    return total


def _add_at(
    total: np.ndarray, code: np.ndarray, place: np.ndarray, value: np.ndarray, wanted: np.ndarray
) -> None:
    """Add the values of the wanted words, one for each column of `total`, where they stand."""
    codes, column = np.unique(wanted, return_inverse=True)
    row, start, which = find(code, codes)
    table, place = np.zeros((len(total), len(codes))), place[:, 0, start]
    fits = (place >= 0) & (place < len(total))
    value = np.where(fits, value[:, row, start], 0)
    np.add.at(table, (np.where(fits, place, 0), which), value)
    total += table[:, column]


def importance_along(
    importance: PositionalWeights | ArrayLike,
    motif: str,
    background: Background | None = None,
    *,
    scale: str = "poim",
    alphabet: Alphabet = DNA,
) -> pd.DataFrame:
    """Importance of a motif and of its neighbours along the sequence, as in Figure 3.

    Parameters
    ----------
    importance : PositionalWeights, or array of shape (L - k + 1, a**k)
        Of an array, such as `poim` or `PositionalWeights.dense` give, the columns are taken.
    motif : str
        Of length k.
    background, scale
        As in `motif_importance`. An array has both already: they are not used.
    alphabet : Alphabet, default DNA
        That of an array; weights have their own.

    Returns
    -------
    DataFrame
        One row per position; columns "position", "motif", "distance 1" and "distance 2" (means over
        all strings with so many letters changed), "null mean" and "null sd" (over the strings that
        differ from the motif at every position: all of them if these are not more than the 2187
        of 7 letters of DNA, else 4096 random ones, always the same).

    Examples
    --------
    >>> from firmlib.strings.motifs import importance_along
    >>> from firmlib.strings.weights import PositionalWeights
    >>> w = PositionalWeights.from_dict({("GAT", 1): 1.0}, length=5)
    >>> importance_along(w, "GAT")[["position", "motif", "distance 1"]].round(3)
       position  motif  distance 1
    0         0 -0.016      -0.016
    1         1  0.984      -0.016
    2         2 -0.016      -0.016
    """
    alphabet = getattr(importance, "alphabet", alphabet)
    z, a = encode([motif], alphabet=alphabet, name="motif")[0], len(alphabet)
    k = len(z)
    if not isinstance(importance, PositionalWeights):
        importance = check_array("importance", importance, 2, (None, a**k))

    def values(change: np.ndarray) -> np.ndarray:
        strings = (z + change) % a
        if isinstance(importance, PositionalWeights):
            return motif_importance(importance, strings, background, scale=scale).T
        return importance[:, windows(strings, k, a)[:, 0]]

    few = (a - 1) ** k <= 3**7
    random = np.random.default_rng(0).integers(1, a, (4096, k))
    null = values(_changes(k, k, a) if few else random)
    columns = {
        "position": np.arange(len(null)),
        "motif": values(_changes(k, 0, a))[:, 0],
        **{
            f"distance {r}": values(_changes(k, r, a)).mean(axis=1) for r in range(1, min(k, 2) + 1)
        },
        "null mean": null.mean(axis=1),
        "null sd": null.std(axis=1),
    }
    return pd.DataFrame(columns)


def motif_rank(
    importance: ArrayLike,
    motif: str,
    positions: slice = slice(None),
    *,
    alphabet: Alphabet = DNA,
) -> int:
    """Rank of a motif among all words of its length, by the mean importance over positions.

    It is the number of words, the motif included, whose mean is at least that of the motif, up to
    rounding. Ties count against it: rank 1 is ahead of every other word, and where all words have
    the same importance, such as weights of 0, the motif comes last.

    Parameters
    ----------
    importance : array of shape (L - k + 1, a**k)
        As `poim` or `PositionalWeights.dense` give it.
    motif : str
        Of length k.
    positions : slice, default slice(None)
        Of the motif's first letter; all of them by default.
    alphabet : Alphabet, default DNA
        That of the motif, of a letters.

    Returns
    -------
    int
        From 1 to a**k.

    Examples
    --------
    >>> from firmlib.strings import PositionalWeights, motif_rank, poim
    >>> w = PositionalWeights.from_dict({("GA", 0): 1.0, ("AT", 1): 1.0}, length=3)
    >>> motif_rank(poim(w, 3), "GAT"), motif_rank(poim(w, 3), "GAC"), motif_rank(w.dense(3), "GAT")
    (1, 7, 64)
    """
    codes, a = encode([motif], alphabet=alphabet, name="motif"), len(alphabet)
    importance = check_array("importance", importance, 2, (None, a ** codes.shape[1]))
    if not isinstance(positions, slice) or not len(importance[positions]):
        raise ValueError(
            f"positions={positions!r} must be a slice of the {len(importance)} positions"
        )
    mean = importance[positions].mean(axis=0)
    own = mean[windows(codes, codes.shape[1], a)[0, 0]]
    return int((mean >= own - ROUNDING * np.abs(mean).max()).sum())


def _changes(k: int, r: int, a: int) -> np.ndarray:
    """What to add to codes, modulo a, to change r of k letters, in all ways."""
    where = np.array(list(combinations(range(k), r)), dtype=int)
    steps = np.array(list(product(range(1, a), repeat=r)), dtype=int)
    changes = np.zeros((len(where), len(steps), k), dtype=int)
    np.put_along_axis(changes, where[:, None, :], steps[None], axis=2)
    return changes.reshape(-1, k)


def max_by_length(
    weights: PositionalWeights,
    max_k: int = 8,
    background: Background | None = None,
    *,
    scale: str = "poim",
) -> pd.DataFrame:
    """Largest importance among all words z of each length, max_z |Q(z, j)|, at each position j.

    On the scale of FIRM, Q of one length can be compared with Q of another.

    Parameters
    ----------
    weights : PositionalWeights
        s.
    max_k : int, default 8
        The greatest length; the `poim` of each is made, all from one sweep.
    background, scale
        As in `poim`.

    Returns
    -------
    DataFrame
        One row per length from 1 to `max_k`, one column per position; NaN where a word does not
        fit.

    Examples
    --------
    >>> from firmlib.strings.motifs import max_by_length
    >>> from firmlib.strings.weights import PositionalWeights
    >>> w = PositionalWeights.from_dict({("AC", 1): 16.0}, length=3)
    >>> max_by_length(w, 2, scale="firm").round(2)
    position     0     1     2
    length
    1         0.00  1.73  1.73
    2         0.77  3.87   NaN
    """
    check_option("scale", scale, ("poim", "firm"))
    background = check_background(background, weights)
    max_k = check_integer("max_k", max_k, 1, weights.length)
    largest = np.full((max_k, weights.length), np.nan)
    for row, Q in zip(largest, each_poim(weights, 1, max_k, background, scale), strict=True):
        row[: len(Q)] = np.maximum(np.abs(Q.max(axis=1)), np.abs(Q.min(axis=1)))
    lengths = pd.RangeIndex(1, max_k + 1, name="length")
    return pd.DataFrame(largest, lengths).rename_axis(columns="position")


def letter_contributions(
    weights: PositionalWeights, motif: str, position: int, background: Background | None = None
) -> pd.DataFrame:
    """How much each letter of a motif adds to its importance, and what others would add there.

        h_t(b) = Q'(z with b at t) - sum_a Pr(X_{j+t} = a | the other letters) Q'(z with a at t)

    Parameters
    ----------
    weights : PositionalWeights
        s.
    motif : str
        z.
    position : int
        j, that of the first letter, counted from 0.
    background : Background, optional
        The distribution of X; uniform by default.

    Returns
    -------
    DataFrame
        One row per letter of the motif, one column per letter of the alphabet.

    Examples
    --------
    >>> from firmlib.strings.motifs import letter_contributions
    >>> from firmlib.strings.weights import PositionalWeights
    >>> letter_contributions(PositionalWeights.from_dict({("CG", 0): 4.0}, 3), "CGA", 0)
         A    C    G    T
    0 -1.0  3.0 -1.0 -1.0
    1 -1.0 -1.0  3.0 -1.0
    2  0.0  0.0  0.0  0.0
    """
    background = check_background(background, weights)
    z, a = encode([motif], alphabet=weights.alphabet, name="motif")[0], len(weights.alphabet)
    k = check_integer("the motif's length", len(z), 1, weights.length)
    j = check_integer("position", position, 0, weights.length - k)
    strings = np.tile(z, (k, a, 1))
    strings[np.arange(k), :, np.arange(k)] = np.arange(a)
    strings = strings.reshape(-1, k)
    Q = motif_importance(weights, strings, background)[:, j].reshape(k, a)
    p = background.motif_probabilities(strings)[:, j].reshape(k, a)
    total = p.sum(axis=1, keepdims=True)
    mean = (p * Q).sum(axis=1, keepdims=True) / np.where(total > 0, total, 1)
    return pd.DataFrame(np.where(p > 0, Q - mean, 0), columns=list(weights.alphabet.letters))
