"""The best motifs of a length, by a search that is exact, without a table of all words."""

from typing import NamedTuple

import numpy as np

from firmlib.strings._sweep import messages, sweep, sweep_long_words
from firmlib.strings.alphabet import decode
from firmlib.strings.background import Background
from firmlib.strings.motifs import changed_letters, exact_importance
from firmlib.strings.poim import ROUNDING, check_weights_and_background, each_poim
from firmlib.strings.weights import PositionalWeights
from firmlib.strings.words import letters, windows
from firmlib.tables.checks import check_integer, check_memory

__all__ = ["Motif", "top_motifs"]

_ENTRIES = 2**24  # numbers in the largest table of a search
_WIDTH = 2**12  # strings that a search follows at first
_COPIES = (50, 1000)  # words to look at for each motif, as many of them are copies


class Motif(NamedTuple):
    """A word, its position (None: anywhere), its importance Q', and its PWM of shape (k, a).

    A letter b at place t has the probability (Q'(word with b at t) / Q'(word))^k, up to a factor:
    b is e times less likely if it costs one k-th of the importance.

    Examples
    --------
    >>> from firmlib.strings import PositionalWeights, top_motifs
    >>> [motif] = top_motifs(PositionalWeights.from_dict({("GA", 3): 1.0}, 9), 2, 1)
    >>> motif.word, motif.position
    ('GA', 3)
    """

    word: str
    position: int | None
    importance: float
    pwm: np.ndarray


class Motifs(list[Motif]):
    """A list of `Motif` that names the background they were found under."""

    background = "not named"

    def __repr__(self) -> str:
        rows = [f"{len(self)} motif{'s' * (len(self) != 1)}, background: {self.background}"]
        for word, position, importance, _ in self:
            where = "anywhere" if position is None else f"at {position}"
            rows.append(f"{word} {where}, importance {importance:.6g}")
        return "\n".join(rows)


def top_motifs(
    weights: PositionalWeights,
    length: int,
    n: int,
    background: Background | None = None,
    *,
    merge: bool = True,
) -> Motifs:
    """The n motifs of a length, at any position, with the largest Q', as in `poim`.

    With d the degree of the weights, or the background's order and one if that is more,

        Q'(z, j) = Q'(z[:d], j) + sum_{i=1..k-d} (Q'(z[i:i+d], j+i) - Q'(z[i:i+d-1], j+i)),

    so that what can still be gained after some letters is a function of the last d - 1 of them,
    by dynamic programming from the end. Where a table of all words of d letters does not fit, d is
    smaller, and what longer words may add makes it a bound. A search follows the most promising
    strings. It is exact: the result is returned only if no string dropped on the way could have
    come to more, up to rounding; otherwise the search is repeated with more strings, and gives up
    with a RuntimeError at two million.

    Parameters
    ----------
    weights : PositionalWeights
        s. If it has one weight for a word at all positions, Q' is the mean over positions.
    length, n : int
        k, perhaps far too long for a table of all a**k words, and how many motifs to return.
    background : Background, optional
        The distribution of X; uniform by default. Motifs that are impossible are left out.
    merge : bool, default True
        List a motif once: words that differ from a better one in at most k // 3 letters, changed
        or moved over the edge, at positions that lead to it in steps below k, are left out. A model
        of both strands (`reverse_complement`) names a motif on one strand in any case.

    Returns
    -------
    Motifs
        A list of (word, position, importance, pwm), the best first; ties, which rounding may break,
        by position and then by letters. Fewer than n if there are no more.

    Examples
    --------
    >>> from firmlib.strings import PositionalWeights, top_motifs
    >>> w = PositionalWeights.from_dict({("GATTA", 9): 1.0, ("TACA", 12): 1.0}, length=40)
    >>> top_motifs(w, 7, 1)
    1 motif, background: uniform
    GATTACA at 9, importance 1.99512
    """
    weights, background = check_weights_and_background(weights, background)
    k, n = check_integer("length", length, 1, weights.length), check_integer("n", n, 1)
    found = Motifs()
    found.background = background.name
    Z = position = value = chosen = np.zeros(0, dtype=int)
    for copies in _COPIES if merge else (1 + weights.reverse_complement,):
        Z, position, value = _top(weights, k, copies * n, background)
        chosen = _distinct(weights, Z, position, n, merge)
        if len(chosen) == n or len(Z) < copies * n:
            break
    words = decode(Z[chosen], alphabet=weights.alphabet) if len(chosen) else []
    for word, i in zip(words, chosen, strict=True):
        place = slice(None) if not weights.positional else [position[i]]
        pwm = np.eye(len(weights.alphabet))[Z[i]]
        if merge and value[i] > 0:
            Q = changed_letters(weights, Z[i], background)[0][:, :, place].mean(axis=2)
            pwm = (np.clip(Q, 0, None) / Q.max(axis=1, keepdims=True)) ** k
        j = int(position[i]) if weights.positional else None
        found.append(Motif(word, j, float(value[i]), pwm / pwm.sum(axis=1, keepdims=True)))
    return found


def _distinct(
    weights: PositionalWeights, Z: np.ndarray, position: np.ndarray, n: int, merge: bool
) -> np.ndarray:
    """The first n words that are not copies of one before, on either strand if these are one."""
    k = Z.shape[1]
    strands = [(Z, position)]
    if weights.reverse_complement:
        strands.append((weights.alphabet.reverse_complement(Z), weights.length - k - position))
    chosen, left = [], np.arange(len(Z))
    while len(left) and len(chosen) < n:
        chosen.append(left[0])
        copies = np.zeros(len(left), dtype=bool)
        for words, places in strands:
            alike, place = _alike(words[left], Z[left[0]], k // 3 if merge else 0), places[left]
            if weights.positional and alike.any():  # in steps below k, or at the same place
                steps = np.unique(np.append(place[alike], position[left[0]]))
                run = np.cumsum(np.diff(steps, prepend=steps[0]) >= (k if merge else 1))
                own = steps[run == run[np.searchsorted(steps, position[left[0]])]]
                alike &= (place >= own[0]) & (place <= own[-1])
            copies |= alike
        copies[0] = True
        left = left[~copies]
    return np.array(chosen, dtype=int)


def _alike(Z: np.ndarray, z: np.ndarray, edits: int) -> np.ndarray:
    """Which words are z with at most so many letters changed or moved over the edge."""
    k = len(z)
    alike = (z != Z).sum(axis=1) <= edits
    for o in range(1, edits + 1):
        alike |= (Z[:, o:] != z[: k - o]).sum(axis=1) + o <= edits
        alike |= (Z[:, : k - o] != z[o:]).sum(axis=1) + o <= edits
    return alike


def _top(
    weights: PositionalWeights, k: int, n: int, background: Background
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The best n words: codes, positions (0 if they stand anywhere), importances; best first."""
    a, low = len(weights.alphabet), max(background.order + 1, weights.split)
    if k <= low or (weights.length - k + 1) * a**k <= _ENTRIES:
        Q = np.where(
            background.probabilities(k) > 0, next(each_poim(weights, k, k, background)), -np.inf
        )
        Q = _pooled(weights, Q)
        keep, _ = _best(Q.ravel(), n)
        position, code = np.divmod(keep, a**k)
        return _ranked(letters(code, k, a), position, Q[position, code])
    bounds = _bounds(weights, k, _window(weights, k, low), background)
    width, dropped, worst = 0, np.inf, -np.inf
    for width in [max(_WIDTH, 4 * n) * 8**i for i in range(4)]:
        Z, position, dropped = _search(weights, k, bounds, width, 4 * n + 1000)
        motifs, which = np.unique(Z, axis=0, return_inverse=True)
        value = _pooled(weights, exact_importance(weights, motifs, background).T)[position, which]
        keep, _ = _best(value, n)
        worst = value[keep].min() if len(keep) == n else -np.inf
        if dropped <= worst + ROUNDING * np.abs(value).max(initial=0):
            return _ranked(Z[keep], position[keep], value[keep])
    raise RuntimeError(
        f"top_motifs gave up: {width} strings of length {k} at a time do not rule out one of "
        f"importance {dropped:.6g}, and the last one found has {worst:.6g}"
    )


def _pooled(weights: PositionalWeights, table: np.ndarray) -> np.ndarray:
    """A table by positions, or its mean over them for weights that are the same at all."""
    return table if weights.positional else table.mean(axis=0, keepdims=True)


class _Bounds(NamedTuple):
    """What windows of d letters add to the importance of a motif, at most."""

    d: int
    first: np.ndarray  # as the first letters of a motif, (positions, a**d)
    gain: dict[int, np.ndarray]  # as its last d of t letters, given all but the last of them
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
    start, final, slack = _long_bounds(weights.part(d + 1, weights.degree), k, d, background)
    *less, all_gain = each_poim(weights.part(1, d), max(1, d - 1), d, background)
    first = all_gain[:n] + start[:n]
    if less:
        all_gain -= np.repeat(less[0][:-1], a, axis=1)
    if background.has_zeros:
        zero = background.probabilities(d) == 0
        first[zero[:n]] = all_gain[zero] = -np.inf
    gain, rest = {}, {k: _pooled(weights, final[k - d :])}
    for t in range(k, d, -1):
        here = slice(t - d, t - d + n)
        gain[t] = _pooled(weights, all_gain[here])
        best = gain[t] + _pooled(weights, slack[here])
        best = best.reshape(len(best), -1, rest[t].shape[1]) + rest[t][:, None]
        rest[t - 1] = best.reshape(len(best), -1, a).max(axis=2)
    return _Bounds(d, _pooled(weights, first), gain, rest)


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
    keep, dropped = _best((first + np.tile(rest[d], a)).ravel(), width)
    position, code = np.divmod(keep, a**d)
    Z, value = letters(code, d, a), first[position, code]
    for t in range(d + 1, k + 1):
        Z = np.hstack([np.repeat(Z, a, axis=0), np.tile(np.arange(a), len(Z))[:, None]])
        position, value = np.repeat(position, a), np.repeat(value, a)
        code = windows(Z[:, -d:], d, a)[:, 0]
        value = value + gain[t][position, code]
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
    Z: np.ndarray, position: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.lexsort([*Z.T[::-1], position, -value])
    return Z[order], position[order], value[order]
