"""The files in `data/` of the compendium, read and checked."""

import gzip
import hashlib
import re
import zlib
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from firmlib._checks import check_option
from firmlib.strings.alphabet import LETTERS, encode

DATA = Path(__file__).resolve().parents[1] / "data"
"""The files that come with a checkout of the compendium."""


def data_file(name: str) -> Path:
    """Return the path of a file in data/ of the compendium, from any working directory.

    Parameters
    ----------
    name : str
        Of the file, with its suffix.

    Returns
    -------
    Path

    Examples
    --------
    >>> from firmlib.datasets import data_file
    >>> data_file('claims.json').exists()
    True
    """
    check_option("name", name, sorted(path.name for path in DATA.glob("*")))
    return DATA / name


class SpliceFile(NamedTuple):
    """A file of splice sites; data/README.md says where it comes from."""

    file: str
    sha256: str  # of the text; the compressed bytes depend on the version of zlib
    length: int
    labels: tuple[str, ...]


SPLICE = {
    "acceptor": SpliceFile(
        "splice_acceptor.tsv.gz",
        "24169cc84a49398027e9984da413f10e05ed5b9fe4d98d7db3fa9e486dfaa2ba",
        140,
        ("-1", "1"),
    ),
    "donor": SpliceFile(
        "splice_donor.tsv.gz",
        "881e66b26a8d33acf3e7ef8d51eb0496ac5a09a5ab712071df344f12bb14573c",
        140,
        ("-1", "1"),
    ),
    "uci": SpliceFile(
        "splice_uci.tsv.gz",
        "632fcba5745d5c3e8e1003e117893da18382bc6656aa440df89098f89dc4ce56",
        60,
        ("EI", "IE", "N"),
    ),
}


def splice(
    site: str = "acceptor", *, folder: str | PathLike | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Splice sites of real genes, among decoys (data/README.md).

    Parameters
    ----------
    site : {"acceptor", "donor", "uci"}, default "acceptor"
        Acceptors (AG) or donors (GT) of Drosophila genes with as many decoys that carry the same
        two letters, 140 letters; or the UCI splice-junction set of primate genes, 60 letters. The
        junction of exon and intron is in the middle: AG just before it, or GT just after.
    folder : path, optional
        Where the files are; by default data/ of the repository.

    Returns
    -------
    X : ndarray of shape (n, length), uint8
        A, C, G, T as 0 to 3.
    y : ndarray of shape (n,)
        -1 for decoys and +1 for sites; of "uci" "EI" (donor), "IE" (acceptor) and "N" (neither).
    groups : ndarray of shape (n,)
        Sequences of one gene, or with a stretch in common, have one number: for splits by group.

    Raises
    ------
    ValueError
        If the file is not there, is no such table, or not the one of this version of firmlib. The
        message names the file, the row and what was expected.

    Examples
    --------
    >>> from firmlib.datasets import splice
    >>> X, y, groups = splice("donor")
    >>> bool((X[:, 70:72] == [2, 3]).all()), int(y.sum())  # GT in all, half of them true
    (True, 0)
    """
    check_option("site", site, SPLICE)
    expected = SPLICE[site]
    path = Path(DATA if folder is None else folder, expected.file)
    restore = "restore it with git, or make it again with data/fetch_splice.py"
    if not path.is_file():
        raise ValueError(
            f"{path} is not there: the data are in data/ of the repository, not in the package; "
            f"name their folder with folder=..., or {restore}"
        )
    try:
        text = gzip.decompress(path.read_bytes()).decode("ascii")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is truncated or no gzip text ({error}); {restore}") from error
    try:
        group, label, sequence = _read_splice(text, expected)
    except ValueError as error:
        raise ValueError(f"{path}: {error}; {restore}") from None
    found = hashlib.sha256(text.encode()).hexdigest()
    if found != expected.sha256:
        raise ValueError(
            f"{path} was changed: the sha256 of its text is {found}, expected {expected.sha256}; "
            f"{restore}"
        )
    y = np.array(label)
    return (
        encode(sequence),
        y if site == "uci" else y.astype(int),
        np.unique(group, return_inverse=True)[1],
    )


def _read_splice(text: str, expected: SpliceFile) -> tuple[tuple[str, ...], ...]:
    """Return the columns of a table of splice sites; rows are counted from 1, after the header."""
    header, *lines = [line.split("\t") for line in text.splitlines()] or [[""]]
    columns = ["group", "label", "sequence"]
    if header != columns:
        missing = [name for name in columns if name not in header]
        what = f"column {missing[0]!r} is missing" if missing else "the columns are in disorder"
        raise ValueError(f"{what}: the header is {header}, expected {columns}")
    letters = re.compile(f"[{LETTERS}]{{{expected.length}}}")
    for number, row in enumerate(lines, start=1):
        if len(row) != 3:
            raise ValueError(f"row {number} has {len(row)} columns, expected {columns}")
        if row[1] not in expected.labels:
            raise ValueError(
                f"row {number} has the label {row[1]!r}, expected one of {list(expected.labels)}"
            )
        if not letters.fullmatch(row[2]):
            foreign = re.search(f"[^{LETTERS}]", row[2])
            what = f"{foreign[0]!r} at position {foreign.start()}" if foreign else LETTERS
            raise ValueError(
                f"row {number} has {len(row[2])} letters with {what}, expected "
                f"{expected.length} of A, C, G and T"
            )
    if not lines:
        raise ValueError("the table has no rows")
    return tuple(zip(*lines, strict=True))
