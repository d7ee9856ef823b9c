"""The best motifs of a length, by a search that is exact, without a table of all words."""

from typing import NamedTuple

import numpy as np

from firmlib._checks import check_integer, check_memory
from firmlib.strings._sweep import messages, sweep, sweep_long_words
from firmlib.strings.alphabet import Alphabet, decode, encode
from firmlib.strings.background import Background
from firmlib.strings.motifs import ROUNDING, motif_importance
from firmlib.strings.poim import check_background, poim
from firmlib.strings.weights import PositionalWeights
from firmlib.strings.words import letters, windows

__all__ = ["top_motifs"]

_ENTRIES = 2**24  # numbers in the largest table of a search
_WIDTH = 2**12  # strings that a search follows at first


def top_motifs(
    weights: PositionalWeights, length: int, n: int, background: Background | None = None
) -> list[tuple[str, int, float]]:
    """The n motifs of a length, at any position, with the largest Q', as in `poim`.

    With d the degree of the weights, or the background's order and one if that is more,

        Q'(z, j) = Q'(z[:d], j) + sum_{i=1..k-d} (Q'(z[i:i+d], j+i) - Q'(z[i:i+d-1], j+i)),

    so that what can still be gained after some letters is a function of the last d - 1 of them,
    by dynamic programming from the end. Where a table of all words of d letters does not fit, d is
    smaller, and what longer words may add makes it a bound. A search follows the most promising
    strings letter by letter. It is exact: the result is returned only if none of the strings
    dropped on the way could have come to more, up to rounding; otherwise the search is repeated
    with more strings.

    Parameters
    ----------
    weights : PositionalWeights
        s.
    length : int
        k; it may be far too long for a table of all a**k motifs.
    n : int
        How many motifs to return.
    background : Background, optional
        The distribution of X; uniform by default. Motifs that are impossible are left out.

    Returns
    -------
    list of (motif, position, importance)
        The best first; ties, which rounding may break, by position and then by letters. Fewer
        than n if there are no more. Of a model of both strands (`reverse_complement`), a motif is
        named once, on the strand where it is more important, or else where it comes first.

    Raises
    ------
    RuntimeError
        If the search gave up: two million strings at a time do not suffice, which can only happen
        where words longer than the d that fits have weights. It names what it could not rule out.
    ValueError
        If not even the tables for the least d, that of the weights' tables and the background's
        order, fit in memory. It names their size.

    Examples
    --------
    >>> from firmlib.strings.search import top_motifs
    >>> from firmlib.strings.weights import PositionalWeights
    >>> w = PositionalWeights.from_dict({("GATTA", 9): 1.0, ("TACA", 12): 1.0}, length=40)
    >>> top_motifs(w, 7, 1)
    [('GATTACA', 9, 1.9951171875)]
    """
    background = check_background(background, weights)
    k = check_integer("length", length, 1, weights.length)
    n = check_integer("n", n, 1)
    if not weights.reverse_complement:
        return _top(weights, k, n, background)
    found, once = [], set()
    for motif, position, value in _top(weights, k, 2 * n, background):
        codes = encode([motif], alphabet=weights.alphabet)
        (other,) = decode(weights.alphabet.reverse_complement(codes), alphabet=weights.alphabet)
        if (other, weights.length - k - position) not in once:
            once.add((motif, position))
            found.append((motif, position, value))
    return found[:n]


def _top(
    weights: PositionalWeights, k: int, n: int, background: Background
) -> list[tuple[str, int, float]]:
    alphabet = weights.alphabet
    low = max(background.order + 1, weights.split)
    if k <= low or (weights.length - k + 1) * len(alphabet) ** k <= _ENTRIES:
        Q = np.where(background.probabilities(k) > 0, poim(weights, k, background), -np.inf)
        keep, _ = _best(Q.ravel(), n)
        position, code = np.divmod(keep, len(alphabet) ** k)
        return _ranked(alphabet, letters(code, k, len(alphabet)), position, Q[position, code])
    bounds = _bounds(weights, k, _window(weights, k, low), background)
    width, dropped, worst = 0, np.inf, -np.inf
    for width in [max(_WIDTH, 4 * n) * 8**i for i in range(4)]:
        Z, position, dropped = _search(weights, k, bounds, width, 4 * n + 1000)
        motifs, which = np.unique(Z, axis=0, return_inverse=True)
        value = motif_importance(weights, motifs, background)[which, position]
        keep, _ = _best(value, n)
        worst = value[keep].min() if len(keep) == n else -np.inf
        if dropped <= worst + ROUNDING * np.abs(value).max(initial=0):
            return _ranked(alphabet, Z[keep], position[keep], value[keep])
    raise RuntimeError(
        f"top_motifs gave up: {width} strings of length {k} at a time do not rule out one of "
        f"importance {dropped:.6g}, and the last one found has {worst:.6g}"
    )


class _Bounds(NamedTuple):
    """What windows of d letters add to the importance of a motif, at most."""

    d: int
    first: np.ndarray  # as the first letters of a motif, (positions, a**d)
    gain: np.ndarray  # with their last letter, given the others, (L - d + 1, a**d)
    rest: dict[int, np.ndarray]  # after t letters: all that can still come


def _window(weights: PositionalWeights, k: int, low: int) -> int:
    """The longest windows that are needed, or else that fit, of at least `low` letters."""
    L, d, a = weights.length, min(k - 1, max(low, weights.degree)), len(weights.alphabet)
    while d > low and max((L - d + 1) * a, (L - k + 1) * (k - d)) * a ** (d - 1) > _ENTRIES:
        d -= 1
    check_memory("the table of bounds", (k - d, L - k + 1, a ** (d - 1)))
    return d


def _bounds(weights: PositionalWeights, k: int, d: int, background: Background) -> _Bounds:
    n, a = weights.length - k + 1, len(weights.alphabet)
    short, long = weights.part(1, d), weights.part(d + 1, weights.degree)
    start, final, slack = _long_bounds(long, k, d, background)
    gain = poim(short, d, background)
    first = gain[:n] + start[:n]
    if d > 1:
        gain -= np.repeat(poim(short, d - 1, background)[:-1], a, axis=1)
    if background.has_zeros:
        zero = background.probabilities(d) == 0
        first[zero[:n]] = gain[zero] = -np.inf
    rest = {k: final[k - d :]}
    for t in range(k - 1, d - 1, -1):
        here, later = slice(t + 1 - d, t + 1 - d + n), rest[t + 1]
        best = (gain[here] + slack[here]).reshape(n, -1, later.shape[1]) + later[:, None]
        rest[t] = best.reshape(n, -1, a).max(axis=2)
    return _Bounds(d, first, gain, rest)


def _long_bounds(
    weights: PositionalWeights, k: int, d: int, background: Background
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What words longer than d add at most, by the window of d letters they meet.

    At the start and at the end of a motif: those that reach out of it; where they reach over no
    more than d letters of it, exactly. In between: those that end with the window.
    """
    a = len(weights.alphabet)
    levels = list(sweep(weights, background, d))[::-1]
    right, left, mean = messages(weights, background, levels[0])
    left -= mean
    for level in levels[1:]:
        left = np.repeat(left[:-1], a, axis=1) + (0 if level.left is None else level.left)
        right = np.tile(right[1:], a) + (0 if level.right is None else level.right)
    slack = np.zeros_like(left)
    for code, place, level in sweep_long_words(weights, background, d + 1):
        if level.d <= k:
            prefix, suffix = code // a ** (level.d - d), code % a**d
            reaches = level.left + level.both if level.d == k else level.left
            _add_positive(left, place, prefix, reaches)
            _add_positive(right, place + level.d - d, suffix, level.right)
            _add_positive(slack, place + level.d - d, suffix, level.w)
    return left, right, slack


def _add_positive(
    table: np.ndarray, place: np.ndarray, code: np.ndarray, value: np.ndarray
) -> None:
    cell = np.clip(place, 0, len(table) - 1) * table.shape[1] + code
    np.add.at(table.reshape(-1), cell.ravel(), np.broadcast_to(value, cell.shape).ravel().clip(0))


def _search(
    weights: PositionalWeights, k: int, bounds: _Bounds, width: int, last_width: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Follow the `width` most promising strings; also say what a dropped one might have come to."""
    (d, first, gain, rest), a = bounds, len(weights.alphabet)
    bound = first + np.tile(rest[d], a)
    keep, dropped = _best(bound.ravel(), width)
    position, code = np.divmod(keep, a**d)
    Z, value = letters(code, d, a), first[position, code]
    for t in range(d + 1, k + 1):
        Z = np.hstack([np.repeat(Z, a, axis=0), np.tile(np.arange(a), len(Z))[:, None]])
        position, value = np.repeat(position, a), np.repeat(value, a)
        code = windows(Z[:, -d:], d, a)[:, 0]
        value = value + gain[position + t - d, code]
        for e in range(d + 1, min(t, weights.degree) + 1):
            value += weights.at(e, position + t - e, windows(Z[:, -e:], e, a)[:, 0])
        bound = value + rest[t][position, code % rest[t].shape[1]]
        keep, lost = _best(bound, width if t < k else last_width)
        Z, position, value, dropped = Z[keep], position[keep], value[keep], max(dropped, lost)
    return Z, position, dropped


def _best(value: np.ndarray, n: int) -> tuple[np.ndarray, float]:
    """Where the n largest values are, -inf aside, and the largest of the others.

    Of equal ones the first are taken; which of them a partition puts in front depends on the CPU.
    """
    lost = -np.inf
    keep = np.arange(len(value))
    if len(value) > n:
        smallest, lost = -np.partition(-value, [n - 1, n])[n - 1 : n + 1]
        above, equal = np.flatnonzero(value > smallest), np.flatnonzero(value == smallest)
        keep = np.concatenate([above, equal[: n - len(above)]])
    return keep[value[keep] > -np.inf], float(lost)


def _ranked(
    alphabet: Alphabet, Z: np.ndarray, position: np.ndarray, value: np.ndarray
) -> list[tuple[str, int, float]]:
    order = np.lexsort([*Z.T[::-1], position, -value])
    motifs = decode(Z[order], alphabet=alphabet)
    return list(zip(motifs, position[order].tolist(), value[order].tolist(), strict=True))
