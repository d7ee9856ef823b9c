"""A FASTA reader."""

import gzip
import zlib
from os import PathLike
from pathlib import Path

from firmlib._checks import check_integer
from firmlib.strings.alphabet import shortened

__all__ = ["read_fasta"]

MAX_BYTES = 2**30
"""Of the text of a FASTA file, unless the caller allows more."""

_BLOCK = 2**20  # bytes of a file read at once


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
    >>> from firmlib.strings import read_fasta
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
            raise ValueError(
                f"{path}: line {number} is {shortened(line)}; expected a header '>name'"
            )
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
