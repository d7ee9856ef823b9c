"""Motifs as text that other programs read."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from firmlib._checks import check_array
from firmlib.strings.alphabet import DNA, Alphabet, encode
from firmlib.strings.background import Background, check_rows

__all__ = ["to_meme"]


def to_meme(
    motifs: Sequence[tuple[str, int, float]] | Mapping[str, ArrayLike],
    *,
    background: Background | None = None,
    alphabet: Alphabet = DNA,
) -> str:
    """Write motifs in the minimal MEME format, which FIMO, Tomtom and others read.

    Parameters
    ----------
    motifs : list of (motif, position, importance), or mapping from a name to a PWM
        As `top_motifs` gives them: a letter becomes a row with a one, an ambiguous letter is
        spread over those that it stands for. PWMs have the shape (k, a).
    background : Background, optional
        Gives the letters' frequencies, averaged over positions, and the alphabet; uniform by
        default.
    alphabet : Alphabet, default DNA
        If there is no background.

    Returns
    -------
    str

    Examples
    --------
    >>> from firmlib.strings import to_meme
    >>> print(to_meme([("GAN", 7, 1.5)]))
    MEME version 4
    <BLANKLINE>
    ALPHABET= ACGT
    <BLANKLINE>
    strands: + -
    <BLANKLINE>
    Background letter frequencies
    A 0.250000 C 0.250000 G 0.250000 T 0.250000
    <BLANKLINE>
    MOTIF GAN_at_7 importance=1.5
    letter-probability matrix: alength= 4 w= 3
    0.000000 0.000000 1.000000 0.000000
    1.000000 0.000000 0.000000 0.000000
    0.250000 0.250000 0.250000 0.250000
    <BLANKLINE>
    """
    alphabet = alphabet if background is None else background.alphabet
    frequency = np.full(len(alphabet), 1 / len(alphabet))
    if background is not None:
        frequency = background.probabilities(1).mean(axis=0)
    if isinstance(motifs, Mapping):
        named = dict(motifs)
    else:
        named = {}
        for motif, position, importance in motifs:
            codes = encode([motif], alphabet=alphabet, unknown="average", name="motifs")[0]
            allowed = alphabet.members[codes] * frequency
            name = f"{motif.upper()}_at_{position} importance={importance:.6g}"
            named[name] = allowed / allowed.sum(axis=1, keepdims=True)
    lines = ["MEME version 4", "", f"ALPHABET= {alphabet.letters}", ""]
    if alphabet.complement is not None:
        lines += ["strands: + -", ""]
    letters = zip(alphabet.letters, frequency, strict=True)
    lines += ["Background letter frequencies", " ".join(f"{b} {p:.6f}" for b, p in letters), ""]
    for name, matrix in named.items():
        pwm = check_array(f"motifs[{name!r}]", matrix, 2, (None, len(alphabet)))
        pwm = check_rows(f"motifs[{name!r}]", pwm)
        lines.append(f"MOTIF {name}")
        lines.append(f"letter-probability matrix: alength= {len(alphabet)} w= {len(pwm)}")
        lines += [" ".join(f"{p:.6f}" for p in row) for row in pwm]
        lines.append("")
    return "\n".join(lines)
