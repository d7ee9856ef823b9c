"""The best motifs of a length, by an exact search without a table of all words; MEME files."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from firmlib.strings.alphabet import DNA, Alphabet, decode, letters
from firmlib.strings.background import Background, check_rows
from firmlib.strings.motifs import changed_letters
from firmlib.strings.poim import ROUNDING, check_weights, exact_poim, expect_last
from firmlib.strings.weights import PositionalWeights
from firmlib.tables.checks import check_integer, check_memory


class Motif(NamedTuple):
    """A word, its position (None: anywhere), its importance Q', and its PWM of shape (k, a).

    A letter b at place t has the probability (Q'(word with b at t) / Q'(word))^k, up to a factor.
    """

    word: str
    position: int | None
    importance: float
    pwm: np.ndarray

    def __repr__(self) -> str:
        where = "anywhere" if self.position is None else f"at {self.position}"
        return f"{self.word} {where}, importance {self.importance:.6g}"


class Motifs(list[Motif]):
    """A list of `Motif` that names the background they were found under."""

    background = "not named"

    def __repr__(self) -> str:
        head = f"{len(self)} motif{'s' * (len(self) != 1)}, background: {self.background}"
        return "\n".join([head, *map(repr, self)])


def top_motifs(
    weights: PositionalWeights,
    length: int,
    n: int,
    background: Background | None = None,
    *,
    merge: bool = True,
) -> Motifs:
    """The n motifs of a length, at any position, with the largest Q', as in `poim`.

    The search is exact. A table of all words of as many letters as the degree of the weights, or
    the background's order and one, must fit into memory: 10 letters at most, for DNA.

    Ties, up to rounding, go by position and then by letters. If a word has one weight at all
    positions, Q' is the mean over positions. `background` as in `poim`. With `merge`, a motif is
    listed once, without copies: words that differ in at most k // 3 letters, changed or moved over
    the edge, at positions that lead to it in steps below k. A model of both strands names a motif
    on one strand in any case.

    >>> from firmlib.strings import PositionalWeights, top_motifs
    >>> w = PositionalWeights.from_dict({("GATTA", 9): 1.0, ("TACA", 12): 1.0}, length=40)
    >>> top_motifs(w, 7, 1)
    1 motif, background: uniform
    GATTACA at 9, importance 1.99512
    """
    weights, background = check_weights(weights, background)
    k, n = check_integer("length", length, 1, weights.length), check_integer("n", n, 1)
    copies = 1000 if merge else 1 + weights.reverse_complement  # words to look at for each motif
    Z, position, value = _best_words(weights, k, copies * n, background)
    chosen = _distinct(weights, Z, position, n, merge)
    Z, position, value = Z[chosen], position[chosen], value[chosen]
    Q = changed_letters(weights, Z, background)[0]
    Q = Q[np.arange(len(Z)), :, :, position] if weights.positional else Q.mean(axis=3)
    pwm, good = np.eye(len(weights.alphabet))[Z], value > 0
    pwm[good] = (np.clip(Q[good], 0, None) / Q[good].max(axis=2, keepdims=True)) ** k
    pwm /= pwm.sum(axis=2, keepdims=True)
    places = position.tolist() if weights.positional else [None] * len(Z)
    words = decode(Z, alphabet=weights.alphabet)
    found = Motifs(map(Motif, words, places, value.tolist(), pwm))
    found.background = background.name
    return found


def _distinct(
    weights: PositionalWeights, Z: np.ndarray, position: np.ndarray, n: int, merge: bool
) -> list[int]:
    """The first n words that are not copies of one before, on either strand if these are one."""
    k = Z.shape[1]
    edits, step = (k // 3, k) if merge else (0, 1)
    strands = [(Z, position)]
    if weights.reverse_complement:
        strands.append((weights.alphabet.reverse_complement(Z), weights.length - k - position))
    chosen, left = [], np.arange(len(Z))
    while len(left) and len(chosen) < n:
        best = left[0]
        chosen.append(best)
        copies = left == best
        for words, places in strands:
            alike = copies_of(words[left], Z[best], edits)
            if weights.positional:  # from its position in steps over those of its copies
                reached = np.unique(np.append(places[left[alike]], position[best]))
                runs = np.split(reached, np.flatnonzero(np.diff(reached) >= step) + 1)
                alike &= np.isin(places[left], next(run for run in runs if position[best] in run))
            copies |= alike
        left = left[~copies]
    return chosen


def copies_of(Z: np.ndarray, z: np.ndarray, edits: int) -> np.ndarray:
    """Which words are z with at most `edits` letters changed or moved over the edge."""
    k = len(z)
    alike = np.zeros(len(Z), bool)
    for o in range(edits + 1):
        alike |= (Z[:, o:] != z[: k - o]).sum(axis=1) + o <= edits
        alike |= (Z[:, : k - o] != z[o:]).sum(axis=1) + o <= edits
    return alike


def _best_words(
    weights: PositionalWeights, k: int, n: int, background: Background
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The best n words: codes, positions (0 if they stand anywhere), importances; best first.

        Q'(z, j) = Q'(z[:d], j) + sum_{i=1..k-d} (Q'(z[i:i+d], j+i) - Q'(z[i:i+d-1], j+i)),

    so that the most that can still be gained is a function of the last d - 1 letters.
    """
    a, L = len(weights.alphabet), weights.length
    places = L - k + 1
    d = min(k, max(background.order + 1, weights.degree))
    table = f"the table of all words of {d} letters for length={k} and degree={weights.degree},"
    check_memory(table, (8 if d < max(k, weights.degree) else 2, L - d + 1, a**d))
    first = gain = exact_poim(weights, d, background)
    if d < k:
        gain = first - np.repeat(expect_last(first, background.transition)[:-1], a, axis=1)
    if background.has_zeros:
        impossible = background.probabilities(d) == 0
        first[impossible] = gain[impossible] = -np.inf
    tables = [first[:places], *(gain[t : t + places] for t in range(1, k - d + 1))]
    if not weights.positional:
        tables = [table.mean(axis=0, keepdims=True) for table in tables]
    first, *gains = tables
    after = [np.zeros((len(first), a ** (d - 1)))]  # the most that may come after d - 1 letters
    for gain in gains[::-1]:
        best = gain.reshape(len(gain), a, -1) + after[-1][:, None]
        after.append(best.reshape(len(gain), -1, a).max(axis=2))
    n_kept = 2 * n + 100  # more than n, because rounding may break ties
    keep = np.sort(_best(first.reshape(len(first), a, -1) + after.pop()[:, None], n_kept))
    position, code = np.divmod(keep, a**d)
    Z, value = letters(code, d, a).astype(np.uint8), first[position, code]
    for gain in gains:
        left = after.pop()
        code = code[:, None] % a ** (d - 1) * a + np.arange(a)
        value = value[:, None] + gain[position[:, None], code]
        keep = np.sort(_best(value + left[position[:, None], code % a ** (d - 1)], n_kept))
        parent, last = np.divmod(keep, a)
        Z, position = np.column_stack([Z[parent], last.astype(np.uint8)]), position[parent]
        code, value = code.ravel()[keep], value.ravel()[keep]
    order = _best(value, n)  # of equal ones the first by position, then by letters
    return Z[order], position[order], value[order]


def _best(value: np.ndarray, n: int) -> np.ndarray:
    """Places of the n largest values, -inf aside; of equal ones, up to rounding, the first."""
    value = value.ravel()
    n, unit = min(n, len(value)), ROUNDING * (abs(value.max()) or 1)
    keep = np.flatnonzero(value >= np.partition(value, -n)[-n] - unit)
    keep = keep[np.argsort(-np.round(value[keep] / unit), kind="stable")[:n]]
    return keep[value[keep] > -np.inf]


def to_meme(
    motifs: Sequence[tuple] | Mapping[str, ArrayLike],
    *,
    background: Background | None = None,
    alphabet: Alphabet = DNA,
) -> str:
    """Write motifs in the minimal MEME format, which FIMO, Tomtom and others read.

    `motifs` are the result of `top_motifs`, or a mapping from names to PWMs of shape (k, a). The
    `background` gives letter frequencies; the default is uniform over the `alphabet`.

    >>> from firmlib.strings import to_meme
    >>> print(to_meme({"mine": [[0, 0, 1, 0], [0.5, 0, 0, 0.5]]}).partition("MOTIF")[2])
     mine
    letter-probability matrix: alength= 4 w= 2
    0.000000 0.000000 1.000000 0.000000
    0.500000 0.000000 0.000000 0.500000
    <BLANKLINE>
    """
    background = background or Background.uniform(1, alphabet=alphabet)
    alphabet, frequency = background.alphabet, background.probabilities(1).mean(axis=0)
    if not isinstance(motifs, Mapping):
        motifs = {
            f"{word}{'' if position is None else f'_at_{position}'} importance={value:.6g}": pwm
            for word, position, value, pwm in motifs
        }
    lines = ["MEME version 4", "", f"ALPHABET= {alphabet.letters}", ""]
    if alphabet.complement is not None:
        lines += ["strands: + -", ""]
    letters = [f"{b} {p:.6f}" for b, p in zip(alphabet.letters, frequency, strict=True)]
    lines += ["Background letter frequencies", " ".join(letters), ""]
    for name, matrix in motifs.items():
        if not name.strip() or len(name.splitlines()) > 1:
            raise ValueError(f"motifs has the name {name!r}; expected one line of text")
        pwm = check_rows(f"motifs[{name!r}]", matrix, (None, len(alphabet)))
        size = f"alength= {len(alphabet)} w= {len(pwm)}"
        lines += [f"MOTIF {name}", f"letter-probability matrix: {size}"]
        lines += [*(" ".join(f"{p:.6f}" for p in row) for row in pwm), ""]
    return "\n".join(lines)
