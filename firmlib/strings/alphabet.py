"""DNA as numbers: A, C, G, T = 0..3; and a FASTA reader."""

import gzip
import zlib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

LETTERS = "ACGT"

_CODES = np.full(256, 4, dtype=np.uint8)
for _code, _letter in enumerate(LETTERS):
    _CODES[[ord(_letter), ord(_letter.lower())]] = _code


def encode(seqs: Sequence[str] | Sequence[bytes] | ArrayLike, *, name: str = "seqs") -> np.ndarray:
    """Turn sequences of one length into codes, A, C, G, T = 0..3.

    Parameters
    ----------
    seqs : sequence or array of n str or bytes, or integer array of shape (n, L)
        Upper or lower case. Integers from 0 to 3 are taken as codes and handed through.
    name : str
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
    if not (isinstance(seqs, list | tuple) and any(isinstance(s, str | bytes) for s in seqs)):
        array = _as_array(name, seqs)
        if array.dtype.kind in "biufc":
            return _check_codes(name, array)
        if array.ndim != 1:
            raise ValueError(
                f"{name} must be a list of sequences, got {type(seqs).__name__} of shape "
                f"{array.shape}"
            )
        seqs = array.tolist()
    return _encode_words(name, seqs)


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


def _encode_words(name: str, seqs: Sequence) -> np.ndarray:
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

    Examples
    --------
    >>> from firmlib.strings.alphabet import decode
    >>> decode([[2, 0, 3, 3, 0, 1, 0]])
    ['GATTACA']
    """
    codes = _check_codes("codes", _as_array("codes", codes))
    letters = np.frombuffer(LETTERS.encode(), dtype=np.uint8)[codes]
    return letters.view(f"S{codes.shape[1]}").ravel().astype(str).tolist()


def read_fasta(path: str | PathLike) -> tuple[list[str], list[str]]:
    """Read a FASTA file, plain or gzip.

    Parameters
    ----------
    path : path of the file
        Whether it is compressed is read off its first bytes, not off its name.

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
    for number, line in enumerate(_read_text(path).splitlines(), start=1):
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


def _read_text(path: str | PathLike) -> str:
    raw = Path(path).read_bytes()
    try:
        if raw.startswith(b"\x1f\x8b"):
            raw = gzip.decompress(raw)
        return raw.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no plain or gzip FASTA file: {error}") from error


def _short(text: str | bytes) -> str:
    return repr(text) if len(text) <= 20 else f"{text[:20]!r}…"
