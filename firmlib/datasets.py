"""The paper's toy data (Section 3), and the files of `data/`: splice sites and flights."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.utils import check_random_state

from firmlib.strings.alphabet import decode, encode
from firmlib.tables.checks import check_array, check_integer, check_option, check_weights

__all__ = ["boolean_table", "data_file", "flights", "gattaca", "splice", "two_gaussians"]

PAPER_FORMULA = "x1 | (~x1 & ~x2)"
DATA = Path(__file__).resolve().parents[1] / "data"  # of a checkout of the compendium

Seed = int | np.random.RandomState | None


def boolean_table(
    formula: str = PAPER_FORMULA, n_variables: int = 3, *, coding: str = "01"
) -> tuple[np.ndarray, np.ndarray]:
    """Truth table of a Boolean formula (Section 3.1): inputs X, and labels y, -1 and +1.

    The `formula`, by default the paper's, has x1, x2, ..., 0, 1, parentheses and, from strongest to
    weakest, ``~``, ``&``, ``^`` and ``|``. The last of 1 to 10 `n_variables` changes fastest. The
    `coding` of false and true is "01" or "+-" (-1 and +1).

    >>> X, y = boolean_table("x1 & ~x2", 2)
    >>> y
    array([-1, -1,  1, -1])
    """
    n_variables = check_integer("n_variables", n_variables, 1, 10)
    check_option("coding", coding, ("01", "+-"))
    bits = np.indices([2] * n_variables).reshape(n_variables, -1).T
    variables = {f"x{j + 1}": column for j, column in enumerate(bits.T)}
    try:
        if odd := re.sub(r"x\d+|\b[01]\b|[~&^|()\s]", "", formula):
            raise SyntaxError(f"unexpected {odd!r}")
        true = 1 & eval(formula, {"__builtins__": {}}, variables)
    except (SyntaxError, NameError, TypeError, RecursionError, MemoryError) as error:
        wanted = f"a Boolean formula of {', '.join(variables)}, 0, 1, ~, &, ^, | and parentheses"
        raise ValueError(f"formula={formula!r} must be {wanted}: {error}") from error
    X = bits.astype(float) if coding == "01" else 2.0 * bits - 1
    return X, 2 * np.broadcast_to(true, len(X)) - 1


def two_gaussians(
    n: int = 400, *, shift: ArrayLike = (1.0, 2.0, 0.0), random_state: Seed = None
) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of normal inputs X (Section 3.2), with labels y, -1 and +1.

    Each class has half of the `n` rows, covariance I and mean -`shift` / 2 or +`shift` / 2.

    >>> X, y = two_gaussians(1000, random_state=0)
    >>> (X[y == 1].mean(axis=0) - X[y == -1].mean(axis=0)).round()
    array([1., 2., 0.])
    """
    n = check_integer("n", n, 4)
    shift = check_array("shift", shift, 1)
    rng = check_random_state(random_state)
    y = np.repeat([-1, 1], [n - n // 2, n // 2])
    X = rng.multivariate_normal(np.zeros(len(shift)), np.eye(len(shift)), size=len(y))
    return X + np.outer(y, shift / 2), y


def gattaca(
    n: int = 5000,
    *,
    length: int = 70,
    mutations: int = 1,
    unseen: bool = False,
    background: ArrayLike = (0.25, 0.25, 0.25, 0.25),
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Random DNA X with mutated copies of GATTACA in one class of y (Section 3.3).

    Half of the `n` sequences of this `length` are in each class, -1 and +1. The motif begins at a
    normal position with mean 35 and sd 7. In each copy, letters at `mutations` random places are
    replaced. With `unseen`, for a `length` up to 10 000, new letters differ from old ones, and no
    sequence contains the motif; otherwise, as in the paper, a quarter do not change.
    Outside the motif, letters A, C, G, T, which are 0 to 3 in X, are as frequent as `background`.

    >>> from firmlib.strings import decode
    >>> X, y = gattaca(4, mutations=0, random_state=0)
    >>> ["GATTACA" in sequence for sequence in decode(X)]
    [False, False, True, True]
    """
    motif, k = encode(["GATTACA"])[0], 7
    n, mutations = check_integer("n", n, 2), check_integer("mutations", mutations, int(unseen), k)
    length = check_integer("length", length, 42, 10_000 if unseen else None)
    p = check_weights("background", background, 4)
    rng = check_random_state(random_state)
    y = np.repeat([-1, 1], [n - n // 2, n // 2])
    X = np.empty((n, length), dtype=np.uint8)
    places = np.diff(norm.cdf(np.arange(length - k + 2) - 0.5, 35, 7))
    draw = np.arange(n)
    while len(draw):
        X[draw] = rng.choice(4, (len(draw), length), p=p / p.sum())
        planted = draw[y[draw] == 1]
        copies, row = np.tile(motif, (len(planted), 1)), np.arange(len(planted))[:, None]
        at = np.argsort(rng.random_sample(copies.shape), axis=1, kind="stable")[:, :mutations]
        copies[row, at] = (copies[row, at] + rng.randint(int(unseen), 4, size=at.shape)) % 4
        start = rng.choice(len(places), size=len(planted), p=places / places.sum())
        X[planted[:, None], start[:, None] + np.arange(k)] = copies
        draw = draw[["GATTACA" in x for x in decode(X[draw])]] if unseen else draw[:0]
    return X, y


def data_file(name: str) -> Path:
    """Return the path of a file in data/ of the compendium.

    >>> data_file('claims.json').exists()
    True
    """
    check_option("name", name, sorted(path.name for path in DATA.glob("*")))
    return DATA / name


def splice(site: str = "acceptor") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Splice sites of real genes, among decoys (data/README.md).

    The `site` is "acceptor" (AG) or "donor" (GT), 140 letters of Drosophila genes with as many
    decoys that contain the same two letters; or "uci", 60 letters of primate genes. The junction of
    exon and intron is in the middle, just after AG or just before GT. Return X (n, length), with
    A, C, G, T as 0 to 3; y (n,), -1 for decoys and +1 for sites, or for "uci" "EI" (donor), "IE"
    (acceptor) and "N" (neither); and groups (n,), equal for related sequences, for splits by group.

    >>> X, y, groups = splice("donor")
    >>> bool((X[:, 70:72] == [2, 3]).all()), int(y.sum())  # GT in all, half of them true
    (True, 0)
    """
    check_option("site", site, ("acceptor", "donor", "uci"))
    table = pd.read_csv(DATA / f"splice_{site}.tsv.gz", sep="\t")
    y = np.array(table["label"].tolist())
    return encode(table["sequence"]), y, np.unique(table["group"], return_inverse=True)[1]


def flights() -> tuple[pd.DataFrame, np.ndarray]:
    """Flights from New York in 2013 with their weather: a typical table (data/README.md).

    Return a frame of 30 000 rows in the order of time: `scheduled` (a date with its time), the
    categories `carrier`, `origin` and `dest`, and numbers of the flight, the plane and the weather,
    many missing; and the delay of each departure in minutes, negative if it was early.

    >>> X, delay = flights()
    >>> float(X["pressure"].isna().mean().round(2)), float(delay.mean().round(1))
    (0.11, 12.7)
    """
    X = pd.read_csv(DATA / "flights.csv.gz", parse_dates=["scheduled"])
    X[["carrier", "origin", "dest"]] = X[["carrier", "origin", "dest"]].astype("category")
    return X, X.pop("dep_delay").to_numpy()
