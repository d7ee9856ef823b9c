"""DNA as numbers: letters as codes, words as column numbers of a table; and a FASTA reader."""

import gzip
import zlib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from firmlib._checks import check_integer

__all__ = ["LETTERS", "decode", "encode", "index_word", "read_fasta", "word_index"]

LETTERS = "ACGT"
"""The alphabet; a letter's code is its place."""

MAX_LETTERS = 31
"""Of a word whose index fits into an int64, with two bits per letter."""

MAX_BYTES = 2**30
"""Of the text of a FASTA file, unless the caller allows more."""

_BLOCK = 2**20  # bytes of a file read at once

_CODES = np.full(256, 4, dtype=np.uint8)
for _code, _letter in enumerate(LETTERS):
    _CODES[[ord(_letter), ord(_letter.lower())]] = _code


def encode(seqs: Sequence[str] | Sequence[bytes] | ArrayLike, *, name: str = "seqs") -> np.ndarray:
    """Turn sequences of one length into codes, A, C, G, T = 0..3.

    Parameters
    ----------
    seqs : sequence or array of n str or bytes, or integer array of shape (n, L)
        Upper or lower case. Integers from 0 to 3 are taken as codes and handed through.
    name : str, default "seqs"
        What error messages call `seqs`.

    Returns
    -------
    ndarray of uint8, shape (n, L)

    Examples
    --------
    >>> from firmlib.strings.alphabet import encode
    >>> encode(["GATTACA", "acgtacg"])
    array([[2, 0, 3, 3, 0, 1, 0],
           [0, 1, 2, 3, 0, 1, 2]], dtype=uint8)
    """
    if isinstance(seqs, str | bytes):
        raise ValueError(f"{name}={_short(seqs)} is a single sequence; expected a list of them")
    if isinstance(seqs, list | tuple) and any(isinstance(s, str | bytes) for s in seqs):
        return _encode_words(name, seqs)
    array = _as_array(name, seqs)
    if array.dtype.kind in "biufc":
        return _check_codes(name, array)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be a list of sequences, got {type(seqs).__name__} of shape {array.shape}"
        )
    return _encode_words(name, array.tolist())


def _as_array(name: str, seqs: ArrayLike) -> np.ndarray:
    try:
        array = np.asarray(seqs)
    except ValueError as error:
        raise ValueError(f"{name} must be strings, or rows of codes of one length") from error
    if array.size == 0:
        raise ValueError(
            f"{name} is empty, got shape {array.shape}; expected at least one sequence"
        )
    return array


def _encode_words(name: str, seqs: list | tuple) -> np.ndarray:
    kind = bytes if isinstance(seqs[0], bytes) else str
    for i, seq in enumerate(seqs):
        if not isinstance(seq, kind):
            raise ValueError(
                f"{name}[{i}] is of type {type(seq).__name__}; expected {kind.__name__} throughout"
            )
    lengths = np.fromiter(map(len, seqs), dtype=np.intp, count=len(seqs))
    if lengths[0] == 0:
        raise ValueError(f"{name}[0] is empty; expected at least one letter")
    if (lengths != lengths[0]).any():
        i = int(np.argmax(lengths != lengths[0]))
        raise ValueError(
            f"{name}[{i}] has length {lengths[i]}, but {name}[0] has length {lengths[0]}; "
            "expected equal lengths"
        )
    joined = b"".join(seqs) if kind is bytes else "".join(seqs).encode("latin-1", "replace")
    codes = _CODES[np.frombuffer(joined, dtype=np.uint8)].reshape(len(seqs), -1)
    if codes.max() > 3:
        i, position = (int(k) for k in np.unravel_index(np.argmax(codes), codes.shape))
        letter = seqs[i][position : position + 1]
        raise ValueError(
            f"{name}[{i}] has {letter!r} at position {position}; expected A, C, G or T"
        )
    return codes


def _check_codes(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} holds {array.dtype}; expected strings or integer codes 0..3")
    if array.ndim != 2:
        raise ValueError(f"{name} must have 2 axes if it holds codes, got shape {array.shape}")
    if array.min() < 0 or array.max() > 3:
        i, position = (int(k) for k in np.argwhere((array < 0) | (array > 3))[0])
        raise ValueError(
            f"{name}[{i}] has {array[i, position]} at position {position}; expected codes 0..3"
        )
    return np.ascontiguousarray(array, dtype=np.uint8)


def decode(codes: ArrayLike) -> list[str]:
    """Turn codes back into strings, the inverse of `encode`.

    Parameters
    ----------
    codes : integer array of shape (n, L)
        From 0 to 3.

    Returns
    -------
    list of n str

    Examples
    --------
    >>> from firmlib.strings.alphabet import decode
    >>> decode([[2, 0, 3, 3, 0, 1, 0]])
    ['GATTACA']
    """
    codes = _check_codes("codes", _as_array("codes", codes))
    letters = np.frombuffer(LETTERS.encode(), dtype=np.uint8)[codes]
    return letters.view(f"S{codes.shape[1]}").ravel().astype(str).tolist()


def word_index(words: Sequence[str] | ArrayLike) -> np.ndarray:
    """Number words of one length k from AA..A = 0 to TT..T = 4**k - 1, first letter first.

    These are the columns of the tables that `poim` and `PositionalWeights.dense` return.

    Parameters
    ----------
    words : sequence of n str, or codes of shape (n, k)
        Of 1 to 31 letters each.

    Returns
    -------
    ndarray of int64, shape (n,)

    Examples
    --------
    >>> from firmlib.strings import word_index
    >>> word_index(["AA", "AC", "TT"])
    array([ 0,  1, 15])
    """
    codes = encode(words, name="words")
    k = check_integer("the words' length", codes.shape[1], 1, MAX_LETTERS)
    return windows(codes, k)[:, 0]


def index_word(index: ArrayLike, k: int) -> list[str]:
    """Return the words of k letters that have these numbers, the inverse of `word_index`.

    Parameters
    ----------
    index : integer array of shape (n,)
        From 0 to 4**k - 1.
    k : int
        Letters in each word, from 1 to 31.

    Returns
    -------
    list of n str

    Examples
    --------
    >>> from firmlib.strings import index_word
    >>> index_word([0, 1, 15], 2)
    ['AA', 'AC', 'TT']
    """
    k, index = check_integer("k", k, 1, MAX_LETTERS), np.asarray(index)
    if index.dtype.kind not in "iu" or index.ndim != 1 or index.size == 0:
        raise ValueError(
            f"index must be a list of integers, got {index.dtype} of shape {index.shape}"
        )
    if index.min() < 0 or index.max() >= 4**k:
        bad = index[(index < 0) | (index >= 4**k)][0]
        raise ValueError(f"index must be from 0 to {4**k - 1} for words of length {k}, got {bad}")
    return decode(letters(index, k))


def windows(codes: np.ndarray, d: int) -> np.ndarray:
    """Index of the d letters from each position on, shape (n, L - d + 1); 0 for d = 0."""
    n = codes.shape[1] - d + 1
    index = np.zeros((len(codes), n), dtype=np.int64)
    for t in range(d):
        index = 4 * index + codes[:, t : t + n]
    return index


def letters(index: np.ndarray, d: int) -> np.ndarray:
    """Codes of the words of d letters with these indices, shape (n, d)."""
    return index[:, None] >> 2 * np.arange(d)[::-1] & 3


def read_fasta(path: str | PathLike, *, max_bytes: int = MAX_BYTES) -> tuple[list[str], list[str]]:
    """Read a FASTA file, plain or gzip.

    Parameters
    ----------
    path : path of the file
        Whether it is compressed is read off its first bytes, not off its name.
    max_bytes : int, default 2**30
        How much text it may hold, counted after decompression and while reading: a file that
        holds more is refused as soon as that is known.

    Returns
    -------
    names : list of str
        What follows the ">" of each record.
    seqs : list of str
        Its letters, lines joined; `encode` checks them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from firmlib.strings.alphabet import read_fasta
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.fa")
    ...     _ = path.write_text(">one\\nGATT\\nACA\\n>two\\nACGTACG\\n")
    ...     read_fasta(path)
    (['one', 'two'], ['GATTACA', 'ACGTACG'])
    """
    names, parts = [], []
    for number, line in enumerate(_read_text(path, max_bytes).splitlines(), start=1):
        line = line.strip()
        if line.startswith(">"):
            names.append(line[1:].strip())
            parts.append([])
        elif line and not names:
            raise ValueError(f"{path}: line {number} is {_short(line)}; expected a header '>name'")
        elif line:
            parts[-1].append(line)
    if not names:
        raise ValueError(f"{path} is empty; expected FASTA records")
    seqs = ["".join(lines) for lines in parts]
    if not all(seqs):
        i = seqs.index("")
        raise ValueError(f"{path}: record {i} ({names[i]!r}) is empty; expected a sequence")
    return names, seqs


def _read_text(path: str | PathLike, max_bytes: int) -> str:
    max_bytes = check_integer("max_bytes", max_bytes, 1)
    text = bytearray()
    with Path(path).open("rb") as file:
        stream = gzip.GzipFile(fileobj=file) if file.peek(2).startswith(b"\x1f\x8b") else file
        try:
            while len(text) <= max_bytes and (block := stream.read(_BLOCK)):
                text += block
            if len(text) <= max_bytes:
                return text.decode("utf-8-sig")
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is no plain or gzip FASTA file: {error}") from error
    raise ValueError(
        f"{path} holds more than max_bytes={max_bytes} bytes of text; if that is meant, raise "
        "max_bytes"
    )


def _short(text: str | bytes) -> str:
    return repr(text) if len(text) <= 20 else f"{text[:20]!r}…"
