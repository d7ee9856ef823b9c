"""Sequences as numbers: an alphabet, and letters as codes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firmlib._checks import check_integer, check_option

__all__ = [
    "DNA",
    "PROTEIN",
    "RNA",
    "Alphabet",
    "decode",
    "encode",
]

_FOREIGN = 255  # the code of what is no symbol


class Alphabet:
    """Up to 32 letters, and what else may stand for one of them.

    The code of a symbol is its place: first the `letters`, then the wildcard, then the other
    ambiguous symbols. Case does not matter. Ready made: `DNA`, `RNA` and `PROTEIN`.

    Parameters
    ----------
    letters : str
        From 2 to 32 of them.
    wildcard : str, default "?"
        The symbol that stands for any letter.
    sets : mapping from a symbol to its letters, optional
        Other ambiguous symbols, such as ``{"R": "AG"}``; none by default.
    complement : str, optional
        The complement of each letter, in their order; by default there is none.

    Attributes
    ----------
    letters, wildcard : str
        As given, in upper case.
    symbols : str
        Letters and ambiguous symbols in the order of their codes.
    members : ndarray of bool, shape (n_symbols, n_letters)
        Which letters a symbol stands for.
    complement : ndarray of uint8, shape (n_symbols,), or None
        Code of each symbol's complement.
    max_letters : int
        Of a word whose number fits into an int64.

    Examples
    --------
    >>> from firmlib.strings import Alphabet, encode
    >>> hydrophobic = Alphabet("HP", wildcard="X")
    >>> encode(["HPPH", "PPHH"], alphabet=hydrophobic)
    array([[0, 1, 1, 0],
           [1, 1, 0, 0]], dtype=uint8)
    """

    def __init__(
        self,
        letters: str,
        *,
        wildcard: str = "?",
        sets: Mapping[str, str] | None = None,
        complement: str | None = None,
    ) -> None:
        if not isinstance(letters, str):
            raise ValueError(f"letters must be a str, got {letters!r}")
        check_integer("the number of letters", len(letters), 2, 32)
        stands = {letter: letter for letter in letters} | {wildcard: letters} | dict(sets or {})
        stands = {symbol.upper(): members.upper() for symbol, members in stands.items()}
        self.symbols = "".join(stands)
        self.letters, self.wildcard = letters.upper(), wildcard.upper()
        if len(self.symbols) != len(letters) + 1 + len(sets or {}) or not self.symbols.isascii():
            raise ValueError(
                f"letters={letters!r}, wildcard={wildcard!r} and sets={sets!r} must be "
                "different ASCII characters, upper and lower case being one"
            )
        if not all(members and set(members) <= set(self.letters) for members in stands.values()):
            raise ValueError(f"sets={sets!r} must give some of the letters {letters!r}")
        members = [[letter in stands[symbol] for letter in self.letters] for symbol in stands]
        self.members = np.array(members)
        self.complement = None if complement is None else self._complements(complement.upper())
        self.max_letters = max(d for d in range(1, 63) if len(letters) ** d <= 2**62)
        self._codes = np.full(256, _FOREIGN, dtype=np.uint8)
        for code, symbol in enumerate(self.symbols):
            self._codes[[ord(symbol), ord(symbol.lower())]] = code

    def _complements(self, complement: str) -> np.ndarray:
        if sorted(complement) != sorted(self.letters):
            raise ValueError(f"complement={complement!r} must hold the letters {self.letters!r}")
        order = [self.letters.index(letter) for letter in complement]
        same = (self.members[:, None, order] == self.members[None]).all(axis=2)
        if not same.any(axis=1).all():
            symbol = self.symbols[int(np.argmin(same.any(axis=1)))]
            raise ValueError(f"sets must have a symbol for the complement of {symbol!r}")
        return same.argmax(axis=1).astype(np.uint8)

    def reverse_complement(self, codes: np.ndarray) -> np.ndarray:
        """`codes`, shape (n, L), of the other strand, read in its own direction.

        Examples
        --------
        >>> from firmlib.strings import DNA, decode, encode
        >>> decode(DNA.reverse_complement(encode(["GATTACA"])))
        ['TGTAATC']
        """
        if self.complement is None:
            raise ValueError(f"{self} has no complement; expected DNA, RNA or one that has")
        return self.complement[codes[:, ::-1]]

    def __len__(self) -> int:
        """Return the number of letters."""
        return len(self.letters)

    def __repr__(self) -> str:
        return f"Alphabet({self.letters!r}, wildcard={self.wildcard!r})"

    def _key(self) -> tuple:
        strands = None if self.complement is None else self.complement.tobytes()
        return self.symbols, self.members.tobytes(), strands

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alphabet) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


_IUPAC = {
    "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG",
}  # fmt: skip

DNA = Alphabet("ACGT", wildcard="N", sets=_IUPAC, complement="TGCA")
"""A, C, G, T; N and the ten other ambiguous letters of IUPAC."""

RNA = Alphabet(
    "ACGU",
    wildcard="N",
    sets={symbol: members.replace("T", "U") for symbol, members in _IUPAC.items()},
    complement="UGCA",
)
"""The same with U in the place of T."""

PROTEIN = Alphabet("ACDEFGHIKLMNPQRSTVWY", wildcard="X", sets={"B": "DN", "J": "IL", "Z": "EQ"})
"""The twenty amino acids; X for any, B, J and Z for pairs."""

LETTERS = DNA.letters


def encode(
    seqs: Sequence[str] | Sequence[bytes] | ArrayLike,
    *,
    alphabet: Alphabet = DNA,
    unknown: str = "error",
    align: str | ArrayLike | None = None,
    length: int | None = None,
    name: str = "seqs",
) -> np.ndarray:
    """Turn sequences of one length into codes; of DNA, A, C, G, T = 0..3.

    Parameters
    ----------
    seqs : sequence or array of n str or bytes, or integer array of shape (n, L)
        Upper or lower case. Integers are taken as codes and handed through.
    alphabet : Alphabet, default DNA
        Its letters have the codes from 0 on, its wildcard and ambiguous symbols those after them.
    unknown : {"error", "average"}, default "error"
        Whether ambiguous symbols, such as N, are refused or kept. Those kept match nothing in a
        kernel, and expected scores are averaged over the letters that they stand for.
    align : {"left", "right"} or n integers, optional
        Allows sequences of unequal lengths: their first or last letters stand in one column, or
        the letters at these places (counted from 0 in each sequence). The rest is filled with the
        wildcard. By default, they must have one length.
    length : int, optional
        L, if `align` is "left" or "right"; by default that of the longest sequence.
    name : str, default "seqs"
        What error messages call `seqs`.

    Returns
    -------
    ndarray of uint8, shape (n, L)

    Examples
    --------
    >>> from firmlib.strings import PROTEIN, decode, encode
    >>> encode(["GATTACA", "acgtacg"])
    array([[2, 0, 3, 3, 0, 1, 0],
           [0, 1, 2, 3, 0, 1, 2]], dtype=uint8)
    >>> encode(["GNTT", "TT"], unknown="average", align="right")
    array([[2, 4, 3, 3],
           [4, 4, 3, 3]], dtype=uint8)
    >>> encode(["MKV"], alphabet=PROTEIN)
    array([[10,  8, 17]], dtype=uint8)
    """
    check_option("unknown", unknown, ("error", "average"))
    if isinstance(seqs, str | bytes):
        raise ValueError(f"{name}={shortened(seqs)} is a single sequence; expected a list of them")
    if isinstance(seqs, list | tuple) and any(isinstance(s, str | bytes) for s in seqs):
        words: list[Any] = list(seqs)
    else:
        array = _as_array(name, seqs)
        if array.dtype.kind in "biufc":
            return _check_codes(name, array, alphabet, unknown)
        if array.ndim != 1:
            kind = type(seqs).__name__
            raise ValueError(
                f"{name} must be a list of sequences, got {kind} of shape {array.shape}"
            )
        words = array.tolist()
    joined, lengths = _join(name, words)
    codes = alphabet._codes[np.frombuffer(joined, dtype=np.uint8)]
    bad = codes >= (len(alphabet) if unknown == "error" else _FOREIGN)
    if bad.any():
        end = np.cumsum(lengths)
        i = int(np.searchsorted(end, int(bad.argmax()), side="right"))
        position = int(bad.argmax() - (end[i] - lengths[i]))
        letter, known = words[i][position : position + 1], codes[bad.argmax()] < _FOREIGN
        _refuse(f"{name}[{i}] has {letter!r} at position {position}", alphabet, known)
    if align is None and length is None:
        _check_lengths(name, lengths)
        return codes.reshape(len(words), -1)
    return _aligned(name, codes, lengths, align, length, alphabet)


def _as_array(name: str, seqs: object) -> np.ndarray:
    try:
        array = np.asarray(seqs)
    except ValueError as error:
        raise ValueError(f"{name} must be strings, or rows of codes of one length") from error
    if array.size == 0:
        raise ValueError(
            f"{name} is empty, got shape {array.shape}; expected at least one sequence"
        )
    return array


def _join(name: str, seqs: list) -> tuple[bytes, np.ndarray]:
    """All letters as bytes, and the lengths."""
    kind = bytes if isinstance(seqs[0], bytes) else str
    for i, seq in enumerate(seqs):
        if not isinstance(seq, kind):
            raise ValueError(
                f"{name}[{i}] is of type {type(seq).__name__}; expected {kind.__name__} throughout"
            )
    lengths = np.fromiter(map(len, seqs), dtype=np.intp, count=len(seqs))
    joined = b"".join(seqs) if kind is bytes else "".join(seqs).encode("latin-1", "replace")
    return joined, lengths


def _refuse(what: str, alphabet: Alphabet, known: bool, expected: str = "") -> None:
    *most, last = alphabet.letters
    wanted = expected or (f"{', '.join(most)} or {last}")
    hint = (
        "; to keep ambiguous letters and average over them, say unknown='average'" if known else ""
    )
    raise ValueError(f"{what}; expected {wanted}{hint}")


def _check_lengths(name: str, lengths: np.ndarray) -> None:
    if lengths[0] == 0:
        raise ValueError(f"{name}[0] is empty; expected at least one letter")
    if (lengths != lengths[0]).any():
        i = int(np.argmax(lengths != lengths[0]))
        raise ValueError(
            f"{name}[{i}] has length {lengths[i]}, but {name}[0] has length {lengths[0]}; "
            "expected equal lengths, or align='left', 'right' or a place in each sequence"
        )


def _aligned(
    name: str,
    codes: np.ndarray,
    lengths: np.ndarray,
    align: str | ArrayLike | None,
    length: int | None,
    alphabet: Alphabet,
) -> np.ndarray:
    """Rows filled up with the wildcard."""
    longest = int(lengths.max())
    if align is None or isinstance(align, str):
        check_option("align", align, ("left", "right"))
        total = longest if length is None else check_integer("length", length, 1)
        if longest > total:
            i = int(lengths.argmax())
            raise ValueError(f"{name}[{i}] has length {longest}, expected at most {total}")
        start = np.zeros_like(lengths) if align == "left" else total - lengths
    else:
        place = np.asarray(align)
        if place.dtype.kind not in "iu" or place.shape != lengths.shape or length is not None:
            raise ValueError(
                f"align must be 'left', 'right' or {len(lengths)} integers (then without length), "
                f"got {align!r}"
            )
        if (place < 0).any() or (place >= lengths).any():
            i = int(np.argmax((place < 0) | (place >= lengths)))
            raise ValueError(f"align[{i}]={place[i]} is no place in {name}[{i}] of {lengths[i]}")
        start, total = place.max() - place, int(place.max() + (lengths - place).max())
    aligned = np.full((len(lengths), total), len(alphabet), dtype=np.uint8)
    column = np.arange(total)
    aligned[(column >= start[:, None]) & (column < (start + lengths)[:, None])] = codes
    return aligned


def _check_codes(name: str, array: np.ndarray, alphabet: Alphabet, unknown: str) -> np.ndarray:
    last = len(alphabet if unknown == "error" else alphabet.symbols) - 1
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} holds {array.dtype}; expected strings or integer codes 0..{last}")
    if array.ndim != 2:
        raise ValueError(f"{name} must have 2 axes if it holds codes, got shape {array.shape}")
    if array.min() < 0 or array.max() > last:
        i, position = (int(k) for k in np.argwhere((array < 0) | (array > last))[0])
        code = array[i, position]
        what = f"{name}[{i}] has {code} at position {position}"
        _refuse(what, alphabet, last < code < len(alphabet.symbols), f"codes 0..{last}")
    return np.ascontiguousarray(array, dtype=np.uint8)


def decode(codes: ArrayLike, *, alphabet: Alphabet = DNA, unknown: str = "error") -> list[str]:
    """Turn codes back into strings, the inverse of `encode`.

    Parameters
    ----------
    codes : integer array of shape (n, L)
        From 0 to 3 for DNA.
    alphabet : Alphabet, default DNA
        That of the codes.
    unknown : {"error", "average"}, default "error"
        Whether codes of ambiguous letters are refused.

    Returns
    -------
    list of n str

    Examples
    --------
    >>> from firmlib.strings import decode
    >>> decode([[2, 0, 3, 3, 0, 1, 0]])
    ['GATTACA']
    """
    check_option("unknown", unknown, ("error", "average"))
    codes = _check_codes("codes", _as_array("codes", codes), alphabet, unknown)
    symbols = np.frombuffer(alphabet.symbols.encode(), dtype=np.uint8)[codes]
    return symbols.view(f"S{codes.shape[1]}").ravel().astype(str).tolist()


def shortened(text: str | bytes) -> str:
    """Show a text in a message, the first of it."""
    return repr(text) if len(text) <= 20 else f"{text[:20]!r}…"
