"""Sequences as numbers: alphabets, letters as codes, words as column numbers, FASTA files."""

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from firmlib.tables.checks import check_integer, check_option, refuse

_CURES = {
    "-": "; remove gaps, or write N and pass unknown='average'",
    "*": "; remove the stop codon",
    "U": "; for RNA pass alphabet=RNA, or replace U with T",
    "T": "; for DNA pass alphabet=DNA, or replace T with U",
}
_PACKED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.BZ2File, b"\xfd7zXZ": lzma.LZMAFile}


@dataclass(unsafe_hash=True)
class Alphabet:
    """Up to 32 letters, a wildcard and other ambiguous symbols; case does not matter.

    `wildcard` stands for any letter, `sets` holds other ambiguous symbols, ``{"R": "AG"}``, and
    `complement` gives the complement of each letter. The code of a symbol is its place in
    `symbols`; `members` (n_symbols, n_letters) says which letters it stands for; words of up to
    `max_letters` letters fit into an int64.

    >>> from firmlib.strings import Alphabet, encode
    >>> encode(["HPPH"], alphabet=Alphabet("HP", wildcard="X"))
    array([[0, 1, 1, 0]], dtype=uint8)
    """

    letters: str
    _: KW_ONLY
    wildcard: str = "?"
    sets: Mapping[str, str] | None = field(default=None, repr=False, compare=False)
    complement: str | None = field(default=None, repr=False)
    _stands: tuple = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_integer("the number of letters", len(self.letters), 2, 32)
        letters, sets = self.letters.upper(), self.sets or {}
        self.letters, self.wildcard = letters, self.wildcard.upper()
        stands = {letter: letter for letter in letters} | {self.wildcard: letters}
        stands |= {symbol.upper(): members.upper() for symbol, members in sets.items()}
        self._stands, self.symbols = tuple(stands.items()), "".join(stands)
        if len(self.symbols) != len(letters) + 1 + len(sets) or not self.symbols.isascii():
            raise ValueError(f"{self} and sets={sets!r} must be different ASCII characters")
        if not all(members and set(members) <= set(letters) for members in stands.values()):
            raise ValueError(f"sets={sets!r} must give some of the letters {letters!r}")
        self.members = np.array([[b in members for b in letters] for members in stands.values()])
        if self.complement is not None:
            other = self.complement = self.complement.upper()
            if sorted(other) != sorted(letters):
                raise ValueError(f"complement={other!r} must hold the letters {letters!r}")
            order = [letters.index(letter) for letter in other]
            same = (self.members[:, None, order] == self.members).all(axis=2)
            if not same.any(axis=1).all():
                raise ValueError(f"sets={sets!r} must have a symbol for each complement")
            self._partner = same.argmax(axis=1).astype(np.uint8)
        self.max_letters = max(d for d in range(1, 63) if len(letters) ** d <= 2**62)
        self._codes = np.full(256, 255, dtype=np.uint8)  # 255: no symbol
        for code, symbol in enumerate(self.symbols):
            self._codes[[ord(symbol), ord(symbol.lower())]] = code

    def reverse_complement(self, codes: np.ndarray) -> np.ndarray:
        """`codes` (n, L) of the other strand, read in its own direction."""
        if self.complement is None:
            raise ValueError(f"{self} has no complement; expected DNA, RNA or an alphabet with one")
        return self._partner[codes[:, ::-1]]

    def __len__(self) -> int:
        return len(self.letters)


_IUPAC = {
    "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG",
}  # fmt: skip
_OF_RNA = {symbol: members.replace("T", "U") for symbol, members in _IUPAC.items()}
DNA = Alphabet("ACGT", wildcard="N", sets=_IUPAC, complement="TGCA")
RNA = Alphabet("ACGU", wildcard="N", sets=_OF_RNA, complement="UGCA")
PROTEIN = Alphabet("ACDEFGHIKLMNPQRSTVWY", wildcard="X", sets={"B": "DN", "J": "IL", "Z": "EQ"})


def encode(
    seqs: ArrayLike, *, alphabet: Alphabet = DNA, unknown: str = "error", name: str = "seqs"
) -> np.ndarray:
    """Turn n sequences of one length into codes (n, L), uint8; for DNA A, C, G, T = 0..3.

    `seqs` are str or bytes in a list, array or series, or integer codes; messages call them `name`.
    Ambiguous symbols of the `alphabet`, such as N, are refused unless `unknown` is "average": in a
    kernel they match nothing, and expected scores are averages over the letters they stand for.

    >>> from firmlib.strings import encode
    >>> encode(["GATTACA", "acgnacg"], unknown="average")
    array([[2, 0, 3, 3, 0, 1, 0],
           [0, 1, 2, 4, 0, 1, 2]], dtype=uint8)
    """
    check_option("unknown", unknown, ("error", "average"))
    if isinstance(seqs, str | bytes):
        raise ValueError(f"{name}={seqs!r:.30} is a single sequence; expected a list of them")
    text = isinstance(seqs, list | tuple) and any(isinstance(s, str | bytes) for s in seqs)
    array, a = np.asarray(seqs, dtype=object if text else None), len(alphabet)
    if array.dtype.kind in "biufc" or not array.size:
        hot = array.ndim > 1 and array.shape[-1] == a and (array.ndim > 2 or len(array) >= a)
        if hot and (np.sort(array, axis=-1) == np.eye(a)[-1]).all():
            raise ValueError(f"{name} of shape {array.shape} is one-hot; pass {name}.argmax(-1)")
        return _check_codes(name, array, alphabet, unknown)
    words = np.atleast_1d(array).tolist()
    words = [word.decode("latin-1") if isinstance(word, bytes) else word for word in words]
    for i, word in enumerate(words):
        if not isinstance(word, str):
            raise ValueError(f"{name}[{i}] is of type {type(word).__name__}; expected text")
        if len(word) != len(words[0]) or not word:
            raise ValueError(
                f"{name}[{i}] has length {len(word)}, but {name}[0] has length {len(words[0])}; "
                "expected equal lengths: cut them, or fill up with N and pass unknown='average'"
            )
    letters = np.frombuffer("".join(words).encode("latin-1", "replace"), dtype=np.uint8)
    codes = alphabet._codes[letters].reshape(len(words), -1)
    return _check_codes(name, codes, alphabet, unknown, words)


def _check_codes(
    name: str, codes: np.ndarray, alphabet: Alphabet, unknown: str, words: list | None = None
) -> np.ndarray:
    """Return codes as bytes; `words` are what they stand for, to be shown."""
    if codes.size == 0:
        raise ValueError(f"{name} is empty, got shape {codes.shape}; expected sequences")
    last = len(alphabet if unknown == "error" else alphabet.symbols) - 1
    if codes.dtype.kind not in "iu" or codes.ndim != 2:
        found = f"{name} holds {codes.dtype} of shape {codes.shape}"
        raise ValueError(f"{found}; expected strings or integer codes 0..{last} on 2 axes")
    if codes.min() < 0 or codes.max() > last:
        i, j = np.argwhere((codes < 0) | (codes > last))[0]
        found: Any = int(codes[i, j])
        expected, cure = f"codes 0..{last}", ""
        if last < found < len(alphabet.symbols):
            cure = "; to keep ambiguous letters and average over them, pass unknown='average'"
        if words is not None:
            found = words[i][j]
            expected = f"{', '.join(alphabet.letters[:-1])} or {alphabet.letters[-1]}"
            if found in "-*" or alphabet in (DNA, RNA):
                cure = cure or _CURES.get(found.upper(), "")
        raise ValueError(f"{name}[{i}] has {found!r} at position {j}; expected {expected}{cure}")
    return np.ascontiguousarray(codes, dtype=np.uint8)


def decode(codes: ArrayLike, *, alphabet: Alphabet = DNA, unknown: str = "error") -> list[str]:
    """Turn codes (n, L) back into strings; `alphabet` and `unknown` as in `encode`.

    >>> from firmlib.strings import decode
    >>> decode([[2, 0, 3, 3, 0, 1, 0]])
    ['GATTACA']
    """
    checked = _check_codes("codes", np.asarray(codes), alphabet, unknown)
    symbols = np.frombuffer(alphabet.symbols.encode(), dtype=np.uint8)[checked]
    return symbols.view(f"S{checked.shape[1]}").ravel().astype(str).tolist()


def one_hot(X: ArrayLike, *, alphabet: Alphabet = DNA) -> np.ndarray:
    """Sequences of an `alphabet` as (n, L, a) zeros and ones, float32; N is spread evenly.

    PyTorch convolutions expect letters before positions, ``one_hot(X).transpose(0, 2, 1)``.

    >>> from firmlib.strings import one_hot
    >>> one_hot(["G"])
    array([[[0., 0., 1., 0.]]], dtype=float32)
    """
    rows = alphabet.members / alphabet.members.sum(axis=1, keepdims=True)
    return rows.astype(np.float32)[encode(X, alphabet=alphabet, unknown="average", name="X")]


def word_index(words: ArrayLike, *, alphabet: Alphabet = DNA) -> np.ndarray:
    """Number words of k letters of the `alphabet` from AA..A = 0 to TT..T = 4**k - 1.

    These are the columns of `poim`. A word has at most 31 letters, or 14 for proteins.

    >>> from firmlib.strings import word_index
    >>> word_index(["AA", "AC", "TT"])
    array([ 0,  1, 15])
    """
    codes = encode(words, alphabet=alphabet, name="words")
    k = check_integer("the words' length", codes.shape[1], 1, alphabet.max_letters)
    return windows(codes, k, len(alphabet))[:, 0]


def index_word(index: ArrayLike, k: int, *, alphabet: Alphabet = DNA) -> list[str]:
    """Words of k letters of the `alphabet` that have these numbers: the inverse of `word_index`.

    >>> from firmlib.strings import index_word
    >>> index_word([0, 1, 15], 2)
    ['AA', 'AC', 'TT']
    """
    k, index = check_integer("k", k, 1, alphabet.max_letters), np.asarray(index)
    last = len(alphabet) ** k - 1
    if index.dtype.kind not in "iu" or index.ndim != 1 or not index.size:
        raise ValueError(f"index must be a list of integers, got {index!r:.60}")
    refuse(f"index must be from 0 to {last}", (index < 0) | (index > last), index, "others")
    return decode(letters(index, k, len(alphabet)), alphabet=alphabet)


def windows(codes: np.ndarray, d: int, size: int = 4) -> np.ndarray:
    """Numbers of the words of d letters at each position, (n, L - d + 1); -1 if one is unknown."""
    n = codes.shape[1] - d + 1
    index = np.zeros((len(codes), n), dtype=np.int64)
    for t in range(d):
        index *= size
        index += codes[:, t : t + n]
    if codes.max(initial=0) >= size:
        index[sliding_window_view(codes >= size, d, axis=1).any(axis=2)] = -1
    return index


def letters(index: np.ndarray, d: int, size: int = 4) -> np.ndarray:
    """Codes (n, d) of the words of d letters with these numbers."""
    return index[:, None] // size ** np.arange(d)[::-1] % size


def read_fasta(path: str | PathLike, *, max_bytes: int = 2**30) -> tuple[list[str], list[str]]:
    """Read the names and sequences of a FASTA file, plain, gzip, bzip2 or xz.

    Lines that begin with ";" are comments. Files of more text than `max_bytes` are refused.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from firmlib.strings import read_fasta
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "two.fa").write_text(">one\\nGATT\\nACA\\n>two\\nACGTACG\\n")
    ...     read_fasta(Path(folder, "two.fa"))
    (['one', 'two'], ['GATTACA', 'ACGTACG'])
    """
    check_integer("max_bytes", max_bytes, 1)
    with Path(path).open("rb") as file:
        kinds = [kind for magic, kind in _PACKED.items() if file.peek(8).startswith(magic)]
        stream: Any = kinds[0](file) if kinds else file
        try:
            content = stream.read(max_bytes + 1)
            if len(content) > max_bytes:
                raise ValueError(f"{path} holds more than max_bytes={max_bytes} bytes of text")
            text = content.decode("utf-8-sig")
        except (OSError, EOFError, zlib.error, lzma.LZMAError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a plain or compressed FASTA file: {error}") from error
    lines = [line.strip(" \t") for line in re.split("\r\n|\r|\n", text)]
    lines = [line for line in lines if line and not line.startswith(";")]
    starts = [i for i, line in enumerate(lines) if line.startswith(">")]
    if starts[:1] != [0]:
        found = f"begins with {lines[0]!r:.30}" if lines else "is empty"
        raise ValueError(f"{path} {found}; expected FASTA records, each after a header '>name'")
    names = [lines[i][1:].strip(" \t") for i in starts]
    seqs = ["".join(lines[i + 1 : end]) for i, end in pairwise([*starts, len(lines)])]
    if "" in seqs:
        i = seqs.index("")
        raise ValueError(f"{path}: record {i} ({names[i]!r}) is empty; expected a sequence")
    return names, seqs
