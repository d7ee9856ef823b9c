"""Files that other programs write and read: FASTA in, MEME out."""

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from firmlib.strings.alphabet import DNA, Alphabet
from firmlib.strings.background import Background, check_rows
from firmlib.tables.checks import check_array, check_integer

__all__ = ["read_fasta", "to_meme"]

_PACKED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.BZ2File, b"\xfd7zXZ": lzma.LZMAFile}
_BLOCK = 2**20  # bytes of a file read at once


def read_fasta(path: str | PathLike, *, max_bytes: int = 2**30) -> tuple[list[str], list[str]]:
    """Read the names and sequences of a FASTA file, plain, gzip, bzip2 or xz.

    Its first bytes show whether it is compressed. Lines that begin with ";" are comments.

    Parameters
    ----------
    path : path of the file
    max_bytes : int, default 2**30, limit of the text after decompression

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from firmlib.strings import read_fasta
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "two.fa").write_text(">one\\nGATT\\nACA\\n>two\\nACGTACG\\n")
    ...     read_fasta(Path(folder, "two.fa"))
    (['one', 'two'], ['GATTACA', 'ACGTACG'])
    """
    names, parts = [], []
    for number, line in enumerate(re.split("\r\n|\r|\n", _read_text(path, max_bytes)), start=1):
        line = line.strip(" \t")
        if line.startswith(">"):
            names.append(line[1:].strip(" \t"))
            parts.append([])
        elif line and not line.startswith(";"):
            if not names:
                raise ValueError(
                    f"{path}: line {number} is {line!r:.30}; expected a header '>name'"
                )
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
        kinds = [kind for magic, kind in _PACKED.items() if file.peek(8).startswith(magic)]
        stream: Any = kinds[0](file) if kinds else file
        try:
            while len(text) <= max_bytes and (block := stream.read(_BLOCK)):
                text += block
            if len(text) <= max_bytes:
                return text.decode("utf-8-sig")
        except (OSError, EOFError, zlib.error, lzma.LZMAError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a plain or compressed FASTA file: {error}") from error
    more = f"{path} holds more than max_bytes={max_bytes} bytes of text"
    raise ValueError(f"{more}; if that is intended, raise max_bytes")


def to_meme(
    motifs: Sequence[tuple] | Mapping[str, ArrayLike],
    *,
    background: Background | None = None,
    alphabet: Alphabet = DNA,
) -> str:
    """Write motifs in the minimal MEME format, which FIMO, Tomtom and others read.

    Parameters
    ----------
    motifs : the result of `top_motifs`, or mapping from a name to a PWM of shape (k, a)
    background : Background, optional
        Gives the mean letter frequencies and the alphabet; uniform over `alphabet` by default.
    alphabet : as in `encode`

    Examples
    --------
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
        pwm = check_array(f"motifs[{name!r}]", matrix, 2, (None, len(alphabet)))
        pwm = check_rows(f"motifs[{name!r}]", pwm)
        size = f"alength= {len(alphabet)} w= {len(pwm)}"
        lines += [f"MOTIF {name}", f"letter-probability matrix: {size}"]
        lines += [*(" ".join(f"{p:.6f}" for p in row) for row in pwm), ""]
    return "\n".join(lines)
