"""The files in `data/` of the compendium, read and checked."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import zlib
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from firmlib._checks import check_option
from firmlib.strings.alphabet import LETTERS, encode

if TYPE_CHECKING:
    import pandas as pd

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


def _restore(script: str) -> str:
    return f"restore it with git, or make it again with data/{script}"


def _read(file: str, folder: str | PathLike | None, script: str) -> tuple[Path, str]:
    """Return where a file is, by default in data/, and the text in it."""
    path = Path(DATA if folder is None else folder, file)
    if not path.is_file():
        raise ValueError(
            f"{path} is not there: the data are in data/ of the repository, not in the package; "
            f"name their folder with folder=..., or {_restore(script)}"
        )
    try:
        return path, gzip.decompress(path.read_bytes()).decode("ascii")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is truncated or no gzip text ({error}); {_restore(script)}"
        ) from error


def _check_sum(path: Path, text: str, sha256: str, script: str) -> None:
    found = hashlib.sha256(text.encode()).hexdigest()
    if found != sha256:
        raise ValueError(
            f"{path} was changed: the sha256 of its text is {found}, expected {sha256}; "
            f"{_restore(script)}"
        )


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
    path, text = _read(expected.file, folder, "fetch_splice.py")
    try:
        group, label, sequence = _read_splice(text, expected)
    except ValueError as error:
        raise ValueError(f"{path}: {error}; {_restore('fetch_splice.py')}") from None
    _check_sum(path, text, expected.sha256, "fetch_splice.py")
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


class FlightsFile(NamedTuple):
    """A file of flights; data/README.md says where it comes from."""

    file: str
    sha256: str
    columns: tuple[str, ...]


FLIGHTS = FlightsFile(
    "flights.csv.gz",
    "eb40d33a6dbb1a7c0d55341d48f7c5583a11faf852d69bdbdc8e7df346075ead",
    (
        "scheduled", "carrier", "origin", "dest", "distance", "seats", "plane_year",
        "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure",
        "visib", "dep_delay",
    ),
)  # fmt: skip


def flights(*, folder: str | PathLike | None = None) -> tuple[pd.DataFrame, np.ndarray]:
    """Flights from New York in 2013 with their weather: a table as tables come (data/README.md).

    Parameters
    ----------
    folder : path, optional
        Where the file is; by default data/ of the repository.

    Returns
    -------
    X : DataFrame of shape (30_000, 16)
        In the order of time: `scheduled` (a date with its time), the categories `carrier`,
        `origin` and `dest`, and numbers, many of them missing: of the flight, the plane, and the
        weather at the airport in that hour.
    delay : ndarray of shape (30_000,)
        Minutes from the scheduled to the real departure, negative if it was early.

    Raises
    ------
    ValueError
        If the file is not there, or not the one of this version of firmlib.

    Examples
    --------
    >>> from firmlib.datasets import flights
    >>> X, delay = flights()
    >>> X[["carrier", "distance", "pressure"]].head(2)
      carrier  distance  pressure
    0      DL       762    1011.7
    1      B6      1065    1012.4
    >>> float(X["pressure"].isna().mean().round(2)), float(delay.mean().round(1))
    (0.11, 12.7)
    """
    import pandas as pd

    path, text = _read(FLIGHTS.file, folder, "fetch_flights.py")
    _check_sum(path, text, FLIGHTS.sha256, "fetch_flights.py")
    kinds: Any = dict.fromkeys(("carrier", "origin", "dest"), "category")
    X = pd.read_csv(io.StringIO(text), parse_dates=["scheduled"], dtype=kinds)
    return X, X.pop("dep_delay").to_numpy()
