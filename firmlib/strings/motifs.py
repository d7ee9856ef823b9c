"""Importance of given motifs of any length, without a table of all words."""

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from firmlib.strings.alphabet import DNA, Alphabet, encode, letters, windows
from firmlib.strings.background import Background, check_rows
from firmlib.strings.poim import ROUNDING, check_weights, exact_poim, long_words, sweep
from firmlib.strings.weights import PositionalWeights
from firmlib.tables.checks import check_array, check_integer

_WORDS = 2**12  # that a motif with ambiguous letters stands for, to sum them one by one
_BATCH = 2**12  # words at once


def motif_importance(
    weights: PositionalWeights,
    motifs: ArrayLike,
    background: Background | None = None,
    *,
    scale: str = "poim",
) -> np.ndarray:
    """Importance (n, L - k + 1), as in `poim`, of n given motifs of any length k at all positions.

    With ambiguous letters, such as N for a gap, a motif stands for one of several words. A matrix
    of letter probabilities M (a PWM) has f(x) = prod_t M_t(x_{j+t}) / Pr(X_{j+t} = x_{j+t}) and

        Q'(M, j) = E[s f] / E[f] - E[s],   Q(M, j) = Cov(s, f) / sd(f).

    `motifs` are strings, codes (n, k) or PWMs (n, k, a); `background` and `scale` as in `poim`.

    >>> from firmlib.strings import PositionalWeights, motif_importance
    >>> w = PositionalWeights.from_dict({("ATTA", 1): 256.0}, length=8)
    >>> motif_importance(w, ["GATTACA", "GATTCCA", "NATTRNN"])
    array([[255.,  -1.],
           [ -1.,  -1.],
           [127.,  -1.]])
    """
    weights, background = check_weights(weights, background, scale)
    if np.ndim(np.asarray(motifs)) == 3:
        Z = check_rows("motifs", motifs, (None, None, len(weights.alphabet)))
    else:
        Z = encode(motifs, alphabet=weights.alphabet, unknown="average", name="motifs")
    check_integer("the motifs' length", Z.shape[1], 1, weights.length)
    return exact_importance(weights, Z, background, scale)


def exact_importance(
    weights: PositionalWeights, Z: np.ndarray, background: Background, scale: str = "poim"
) -> np.ndarray:
    """`motif_importance` of checked weights, codes or PWMs Z, and background, without warnings."""
    odds = weights.alphabet.members[Z][:, None].astype(float) if Z.ndim == 2 else Z[:, None]
    if Z.ndim == 3:
        p = sliding_window_view(background.probabilities(1), Z.shape[1], axis=0).swapaxes(1, 2)
        odds = np.where(p > 0, odds / np.where(p > 0, p, 1), 0)
    Q, first, second = soft_importance(weights, odds, background)
    if scale == "poim":
        return np.where(first > 0, Q, 0)
    variance = second - first**2
    varies = variance > ROUNDING * second
    return np.where(varies, Q * first / np.sqrt(np.where(varies, variance, 1)), 0)


def soft_importance(
    weights: PositionalWeights, odds: np.ndarray, background: Background
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Q', E f and E f^2 of features f = prod_t odds[i, j, t, X_{j+t}] at each position j."""
    (n, _, k, _), support = odds.shape, np.any(odds > 0, axis=1)
    Q, first, second = np.zeros((3, n, weights.length - k + 1))
    count = support.sum(axis=2).prod(axis=1, dtype=float)  # of words: few are enumerated
    few = np.flatnonzero(count <= _WORDS)
    batch = np.cumsum(count[few]) // _BATCH
    for owner in (few[batch == i] for i in np.unique(batch)):
        Z, f = np.zeros((len(owner), 0), np.uint8), np.ones((len(owner), 1))
        for t in range(k):
            row, letter = np.nonzero(support[owner, t])
            owner = owner[row]
            Z, f = np.column_stack([Z[row], letter]), f[row] * odds[owner, :, t, letter]
        start = np.flatnonzero(np.diff(owner, prepend=-1))
        p, i = background.word_probabilities(Z) * f, owner[start]
        first[i], second[i] = np.add.reduceat(p, start), np.add.reduceat(p * f, start)
        Q[i] = np.add.reduceat(p * _word_importance(weights, Z, background), start)
        Q[i] /= np.where(first[i] > 0, first[i], 1)
    for i in np.flatnonzero(count > _WORDS):  # by a chain for each position
        mean = expected_score(weights, background)
        for j, rows in enumerate(np.broadcast_to(odds[i], (Q.shape[1], *odds.shape[2:]))):
            tilted, log_z = background.tilt(rows, j)
            if log_z > -np.inf:
                Q[i, j] = expected_score(weights, tilted) - mean
                first[i, j], second[i, j] = np.exp([log_z, background.tilt(rows**2, j)[1]])
    return Q, first, second


def expected_score(weights: PositionalWeights, background: Background) -> float:
    """E[s(X)] without the intercept."""
    *_, (_, right, _, _, w) = sweep(weights, background, {})
    return float(background.initial @ (w + right)[0])


def _word_importance(
    weights: PositionalWeights, Z: np.ndarray, background: Background
) -> np.ndarray:
    """Q' (n, L - k + 1) of words: weights inside, and expected ones beside, minus E[s]."""
    D, k, a = background.order, Z.shape[1], len(weights.alphabet)
    n = weights.length - k + 1
    if k < D:
        return exact_poim(weights, k, background)[:, windows(Z, k, a)[:, 0]].T
    long = {d: np.unique(windows(Z, d, a)) for d in long_words(weights, background, k)}
    total = np.zeros((n, len(Z)))
    for d, right, left, both, w in sweep(weights, background, long):
        if d > k:
            continue
        word = windows(Z, d, a)
        word = np.searchsorted(long[d], word) if d in long else word
        for t, inner in enumerate(word.T):
            total += w[t : t + n, inner]
        for table, start, end in ((right, k - d, -1), (left, 0, 0), (both, 0, 0)):
            if np.ndim(table) and (table is not both or d == k):
                total += table[start : start + n, word[:, end]]
    return total.T


def importance_along(
    importance: ArrayLike, motif: str, *, alphabet: Alphabet = DNA
) -> pd.DataFrame:
    """Importance of a motif and of its neighbours along the sequence, as in Figure 3.

    `importance` is a table as from `poim`. "distance 1" and "distance 2" are means over all strings
    with 1 or 2 letters changed, "null mean" and "null sd" over those that differ at every position,
    or 4096 random ones of them if they are more than 2187.
    """
    z, a = encode([motif], alphabet=alphabet, name="motif")[0], len(alphabet)
    k = len(z)
    Q = check_array("importance", importance, 2, (None, a**k))
    changed = (letters(np.arange(a**k), k, a) != z).sum(axis=1)
    null = Q[:, changed == k]
    if null.shape[1] > 3**7:
        random = z + np.random.default_rng(0).integers(1, a, (4096, k))
        null = Q[:, windows(random % a, k, a)[:, 0]]
    columns = {"position": np.arange(len(Q)), "motif": Q[:, changed == 0][:, 0]}
    for r in range(1, min(k, 2) + 1):
        columns[f"distance {r}"] = Q[:, changed == r].mean(axis=1)
    return pd.DataFrame({**columns, "null mean": null.mean(axis=1), "null sd": null.std(axis=1)})


def letter_contributions(
    weights: PositionalWeights,
    motif: str,
    position: int | None = None,
    background: Background | None = None,
) -> pd.DataFrame:
    """How much each letter of a motif adds to its importance, and what others would add there.

        h_t(b) = Q'(z with b at t) - sum_a Pr(X_{j+t} = a | the other letters) Q'(z with a at t)

    With `motif` z at `position` j, by default the mean over all positions.
    """
    weights, background = check_weights(weights, background)
    z = encode([motif], alphabet=weights.alphabet, name="motif")[0]
    last = weights.length - check_integer("the motif's length", len(z), 1, weights.length)
    places = slice(None) if position is None else [check_integer("position", position, 0, last)]
    Q, p = (table[0][:, :, places] for table in changed_letters(weights, z[None], background))
    total = p.sum(axis=1, keepdims=True)
    mean = (p * Q).sum(axis=1, keepdims=True) / np.where(total > 0, total, 1)
    heights = np.where(p > 0, Q - mean, 0).mean(axis=2)
    return pd.DataFrame(heights, columns=list(weights.alphabet.letters))


def changed_letters(
    weights: PositionalWeights, Z: np.ndarray, background: Background
) -> tuple[np.ndarray, np.ndarray]:
    """Q' and the probability of words with each letter at each place t, (n, k, a, positions)."""
    (n, k), a = Z.shape, len(weights.alphabet)
    strings = np.tile(Z[:, None, None], (1, k, a, 1))
    strings[:, np.arange(k), :, np.arange(k)] = np.arange(a)
    strings = strings.reshape(-1, k)
    shape = (n, k, a, weights.length - k + 1)
    Q = exact_importance(weights, strings, background)
    return Q.reshape(shape), background.word_probabilities(strings).reshape(shape)
