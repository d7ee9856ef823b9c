"""Importance of given motifs of any length, without a table of all words."""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from firmlib.binary import firm_from_poim
from firmlib.strings._sweep import expected_score, messages, sweep, sweep_long_words
from firmlib.strings.alphabet import DNA, Alphabet, encode
from firmlib.strings.background import Background, check_rows
from firmlib.strings.poim import ROUNDING, check_weights_and_background, each_poim
from firmlib.strings.weights import PositionalWeights, find
from firmlib.strings.words import windows
from firmlib.tables.checks import check_array, check_integer, check_option

__all__ = ["importance_along", "letter_contributions", "motif_importance"]

_WORDS = 2**12  # that a motif with ambiguous letters stands for, to sum them one by one


def motif_importance(
    weights: PositionalWeights,
    motifs: Sequence[str] | ArrayLike,
    background: Background | None = None,
    *,
    scale: str = "poim",
) -> np.ndarray:
    """Importance (n, L - k + 1) of given motifs at all positions, for motifs of any length.

        Q'(z, j) = E[s(X) | X[j:j+k] = z] - E[s(X)]

    is the sum of the weights of all words inside z, which are known, and of the expected weights
    of those that reach out of it or lie beside it. A motif may have ambiguous letters, such as N
    for a gap; then "= z" reads "is one of the words that z stands for".

    A matrix of letter probabilities M (a PWM) is a feature, too: with the odds
    f(x) = prod_t M_t(x_{j+t}) / Pr(X_{j+t} = x_{j+t}),

        Q'(M, j) = E[s f] / E[f] - E[s],   Q(M, j) = Cov(s, f) / sd(f).

    Under independent positions, Q' is the mean of Q'(z, j) over words z drawn from M.

    Parameters
    ----------
    weights : PositionalWeights
        s.
    motifs : n motifs of one length k, as strings or codes, or n PWMs of shape (n, k, a)
    background, scale
        As in `poim`.

    Examples
    --------
    >>> from firmlib.strings import PositionalWeights, motif_importance
    >>> w = PositionalWeights.from_dict({("ATTA", 1): 256.0}, length=8)
    >>> motif_importance(w, ["GATTACA", "GATTCCA", "NATTRNN"])
    array([[255.,  -1.],
           [ -1.,  -1.],
           [127.,  -1.]])
    """
    check_option("scale", scale, ("poim", "firm"))
    weights, background = check_weights_and_background(weights, background)
    return exact_importance(weights, motifs, background, scale)


def exact_importance(
    weights: PositionalWeights,
    motifs: Sequence[str] | ArrayLike,
    background: Background,
    scale: str = "poim",
) -> np.ndarray:
    """`motif_importance` of checked arguments, without warnings."""
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
        Q = next(each_poim(weights, k, k, background))
        Q = Q[:, windows(Z, k, len(weights.alphabet))[:, 0]].T
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
    total = np.zeros((n, len(Z)))
    for level in sweep(weights, background):
        d, _, right, left, both = level
        if d <= k:
            if d == D:
                right, left, mean = messages(weights, background, level)
                left -= mean
            words = windows(Z, d, len(weights.alphabet))
            prefix, suffix = words[:, 0], words[:, -1]
            total += 0 if right is None else right[k - d : k - d + n, suffix]
            total += 0 if left is None else left[:n, prefix]
            total += 0 if both is None or d < k else both[:, prefix]
    for code, place, level in sweep_long_words(weights, background, max(D, weights.split) + 1):
        d, _, right, left, both = level
        if d <= k:
            words = windows(Z, d, len(weights.alphabet))
            _add_at(total, code, place - (k - d), right, words[:, -1])
            _add_at(total, code, place, left if d < k else left + both, words[:, 0])
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
        For an array, as `poim` or `PositionalWeights.dense` give it, its columns are taken.
    motif : str
        Of length k.
    background, scale
        As in `motif_importance`; not used for an array.
    alphabet : Alphabet, default DNA
        The alphabet of an array.

    Returns
    -------
    DataFrame
        One row per position; columns "position", "motif", "distance 1" and "distance 2" (means over
        all strings with so many letters changed), "null mean" and "null sd" (over the strings that
        differ from the motif at every position, or 4096 random ones if they are more than 2187).

    Examples
    --------
    >>> from firmlib.strings.motifs import importance_along
    >>> importance_along([[0.0, 1.0, 0.0, 0.0]], "C")[["position", "motif", "null mean"]]
       position  motif  null mean
    0         0    1.0        0.0
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
    null = values(_changes(k, k, a) if few else np.random.default_rng(0).integers(1, a, (4096, k)))
    columns = {"position": np.arange(len(null)), "motif": values(_changes(k, 0, a))[:, 0]}
    for r in range(1, min(k, 2) + 1):
        columns[f"distance {r}"] = values(_changes(k, r, a)).mean(axis=1)
    columns |= {"null mean": null.mean(axis=1), "null sd": null.std(axis=1)}
    return pd.DataFrame(columns)


def _changes(k: int, r: int, a: int) -> np.ndarray:
    """What to add to codes, modulo a, to change r of k letters, in all ways."""
    where = np.array(list(combinations(range(k), r)), dtype=int)
    steps = np.array(list(product(range(1, a), repeat=r)), dtype=int)
    changes = np.zeros((len(where), len(steps), k), dtype=int)
    np.put_along_axis(changes, where[:, None, :], steps[None], axis=2)
    return changes.reshape(-1, k)


def letter_contributions(
    weights: PositionalWeights,
    motif: str,
    position: int | None = None,
    background: Background | None = None,
) -> pd.DataFrame:
    """How much each letter of a motif adds to its importance, and what others would add there.

        h_t(b) = Q'(z with b at t) - sum_a Pr(X_{j+t} = a | the other letters) Q'(z with a at t)

    Parameters
    ----------
    weights : PositionalWeights
    motif : str
        z.
    position : int, optional
        j, of the first letter, counted from 0; by default the mean over all positions.
    background : Background, optional
        The distribution of X; uniform by default.

    Examples
    --------
    >>> from firmlib.strings import PositionalWeights
    >>> from firmlib.strings.motifs import letter_contributions
    >>> letter_contributions(PositionalWeights.from_dict({("CG", 0): 4.0}, 3), "CGA", 0)
         A    C    G    T
    0 -1.0  3.0 -1.0 -1.0
    1 -1.0 -1.0  3.0 -1.0
    2  0.0  0.0  0.0  0.0
    """
    weights, background = check_weights_and_background(weights, background)
    z = encode([motif], alphabet=weights.alphabet, name="motif")[0]
    last = weights.length - check_integer("the motif's length", len(z), 1, weights.length)
    places = slice(None) if position is None else [check_integer("position", position, 0, last)]
    Q, p = changed_letters(weights, z, background)
    Q, p = Q[:, :, places], p[:, :, places]
    total = p.sum(axis=1, keepdims=True)
    mean = (p * Q).sum(axis=1, keepdims=True) / np.where(total > 0, total, 1)
    heights = np.where(p > 0, Q - mean, 0).mean(axis=2)
    return pd.DataFrame(heights, columns=list(weights.alphabet.letters))


def changed_letters(
    weights: PositionalWeights, z: np.ndarray, background: Background
) -> tuple[np.ndarray, np.ndarray]:
    """Q' and the probability of z with each letter at each place t, shape (k, a, positions)."""
    k, a = len(z), len(weights.alphabet)
    strings = np.tile(z, (k, a, 1))
    strings[np.arange(k), :, np.arange(k)] = np.arange(a)
    strings = strings.reshape(-1, k)
    Q = exact_importance(weights, strings, background)
    return Q.reshape(k, a, -1), background.motif_probabilities(strings).reshape(k, a, -1)
