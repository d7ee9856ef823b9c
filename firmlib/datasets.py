"""The paper's toy data (Section 3); splice sites and flights from `data/`."""

import ast
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.utils import check_random_state

from firmlib._checks import (
    check_array,
    check_covariance,
    check_integer,
    check_number,
    check_option,
)
from firmlib._files import data_file, flights, splice
from firmlib.strings.alphabet import encode

__all__ = ["boolean_table", "data_file", "flights", "gattaca", "splice", "two_gaussians"]

PAPER_FORMULA = "x1 | (~x1 & ~x2)"
_ROUNDS = 1000  # in which sequences with a motif that must not occur are drawn again
_RARE = 0.01  # share of random sequences without that motif below which it is not tried
_POINT = 1e-9  # letters: so small an sd puts the normal distribution on one position
_SYMBOLS = str.maketrans({"∨": "|", "∧": "&", "¬": "~", "⊕": "^", "!": "~"})


def boolean_table(
    formula: str = PAPER_FORMULA, n_variables: int = 3, *, coding: str = "01"
) -> tuple[np.ndarray, np.ndarray]:
    """Truth table of a Boolean formula (Section 3.1).

    Parameters
    ----------
    formula : str, default "x1 | (~x1 & ~x2)", the paper's
        In the variables x1, x2, ..., the constants 0 and 1, parentheses and, from the strongest
        to the weakest, ``~`` (or ¬, !), ``&`` (∧), ``^`` (⊕) and ``|`` (∨); or the words not,
        and, or. It is parsed, never evaluated as code.
    n_variables : int, default 3
        From 1 to 10; the formula need not use all of them.
    coding : {"01", "+-"}, default "01"
        False and true as 0 and 1, or as -1 and +1.

    Returns
    -------
    X : ndarray of shape (2**n_variables, n_variables)
        All inputs, the last variable changing fastest.
    y : ndarray of shape (2**n_variables,)
        Labels, -1 and +1.

    Examples
    --------
    >>> from firmlib.datasets import boolean_table
    >>> X, y = boolean_table("x1 & ~x2", 2)
    >>> y
    array([-1, -1,  1, -1])
    """
    n_variables = check_integer("n_variables", n_variables, 1, 10)
    check_option("coding", coding, ("01", "+-"))
    bits = np.array(list(product([False, True], repeat=n_variables)))
    true = _evaluate(formula, {f"x{j + 1}": column for j, column in enumerate(bits.T)})
    X = bits.astype(float) if coding == "01" else 2.0 * bits - 1
    return X, np.where(np.broadcast_to(true, len(X)), 1, -1)


def _evaluate(formula: str, variables: dict[str, np.ndarray]) -> np.ndarray:
    try:
        tree = ast.parse(str(formula).translate(_SYMBOLS).strip(), mode="eval")
        return _truth(tree.body, variables)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"formula={formula!r} is no Boolean formula: {error}") from error
    except KeyError as error:
        raise ValueError(
            f"formula={formula!r} uses {error.args[0]}, expected only {', '.join(variables)}, "
            "0, 1, ~, &, ^, | and parentheses"
        ) from None


def _truth(node: ast.expr, variables: dict[str, np.ndarray]) -> Any:
    """Truth of a parsed formula on every row; a KeyError names what does not belong in one."""
    match node:
        case ast.Name(id=name):
            return variables[name]
        case ast.Constant(value=0 | 1 | True | False as value):
            return np.bool_(value)
        case ast.UnaryOp(op=ast.Invert() | ast.Not(), operand=operand):
            return ~_truth(operand, variables)
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            return _truth(left, variables) & _truth(right, variables)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _truth(left, variables) | _truth(right, variables)
        case ast.BinOp(left=left, op=ast.BitXor(), right=right):
            return _truth(left, variables) ^ _truth(right, variables)
        case ast.BoolOp(op=ast.And(), values=values):
            return reduce(np.logical_and, [_truth(value, variables) for value in values])
        case ast.BoolOp(op=ast.Or(), values=values):
            return reduce(np.logical_or, [_truth(value, variables) for value in values])
    raise KeyError(repr(ast.unparse(node)))


def two_gaussians(
    n: int = 400,
    *,
    shift: ArrayLike = (1.0, 2.0, 0.0),
    cov: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of normal inputs (Section 3.2).

    Parameters
    ----------
    n : int, default 400
        Rows, half of them in each class.
    shift : array of shape (d,), default (1.0, 2.0, 0.0)
        Distance of the two means in each dimension, which lie symmetric about 0; by default the
        second dimension tells the classes apart best and the third not at all.
    cov : array of shape (d, d), optional
        Covariance within each class; the identity by default.
    random_state : int or RandomState, optional
        Of all random numbers; by default other ones each time.

    Returns
    -------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        Labels, -1 and +1.

    Examples
    --------
    >>> from firmlib.datasets import two_gaussians
    >>> X, y = two_gaussians(1000, random_state=0)
    >>> (X[y == 1].mean(axis=0) - X[y == -1].mean(axis=0)).round()
    array([1., 2., 0.])
    """
    n = check_integer("n", n, 4)
    shift = check_array("shift", shift, 1)
    cov = check_covariance("cov", np.eye(len(shift)) if cov is None else cov, len(shift))
    rng = check_random_state(random_state)
    y = np.repeat([-1, 1], [n - n // 2, n // 2])
    X = rng.multivariate_normal(np.zeros(len(shift)), cov, size=len(y))
    return X + np.outer(y, shift / 2), y


def gattaca(
    n: int = 5000,
    *,
    length: int = 70,
    motif: str = "GATTACA",
    center: float = 35.0,
    sd: float = 7.0,
    mutations: int = 1,
    unseen: bool = False,
    background: ArrayLike = (0.25, 0.25, 0.25, 0.25),
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Random DNA with a mutated motif planted in one class (Section 3.3).

    Parameters
    ----------
    n : int, default 5000
        Sequences, half of them in each class.
    length : int, default 70
        Letters in each; the paper does not give it.
    motif : str, default "GATTACA"
        What is planted in the positive class.
    center : float, default 35.0
        Mean of the normal distribution whose rounded value is the motif's first position, counted
        from 0, given that the motif fits.
    sd : float, default 7.0
        Standard deviation of that distribution.
    mutations : int, default 1
        Letters of each planted motif, at random places, that are replaced by a random letter.
    unseen : bool, default False
        If true, the new letter always differs from the old one, and every sequence in which the
        motif occurs all the same is drawn again: no training example contains it. If false, as
        in the paper, a quarter of the replaced letters stay what they were.
    background : array of shape (4,), default (0.25, 0.25, 0.25, 0.25)
        Probabilities of A, C, G, T outside the motif.
    random_state : int or RandomState, optional
        Of all random numbers; by default other ones each time.

    Returns
    -------
    X : ndarray of shape (n, length), uint8
        A, C, G, T as 0 to 3.
    y : ndarray of shape (n,)
        Labels, -1 and +1.

    Examples
    --------
    >>> from firmlib.datasets import gattaca
    >>> from firmlib.strings import decode
    >>> X, y = gattaca(6, sd=0, mutations=0, random_state=0)
    >>> decode(X[y == 1, 35:42])
    ['GATTACA', 'GATTACA', 'GATTACA']
    """
    try:
        codes = encode([str(motif)])[0]
    except ValueError:
        raise ValueError(f"motif={motif!r} must be a string of A, C, G and T") from None
    k = len(codes)
    n, length = check_integer("n", n, 2), check_integer("length", length, k)
    mutations = check_integer("mutations", mutations, int(unseen), k)
    check_number("center", center, 0, length - k)
    check_number("sd", sd, 0)
    p = check_array("background", background, 1, (4,))
    if (p < 0).any() or not np.isclose(p.sum(), 1):
        raise ValueError(f"background={background!r} must be four probabilities that sum to 1")
    if unseen and (share := _share_without(codes, p, length)) < _RARE:
        raise ValueError(
            f"motif={motif!r} turns up by chance too often for sequences without it: only "
            f"{share:.2g} of those of length={length} lack it, expected {_RARE} or more"
        )
    rng = check_random_state(random_state)
    y = np.repeat([-1, 1], [n - n // 2, n // 2])
    X = np.empty((n, length), dtype=np.uint8)
    draw = np.arange(n)
    edges = (p.cumsum() / p.sum())[:-1]  # between letters; as rng.choice has them, but faster
    for _ in range(_ROUNDS):
        u = rng.random_sample((len(draw), length))
        X[draw] = np.sum([u >= edge for edge in edges], axis=0, dtype=np.uint8)
        planted = draw[y[draw] == 1]
        X[planted[:, None], _starts(rng, len(planted), center, sd, length - k) + np.arange(k)] = (
            _mutated(rng, codes, len(planted), mutations, unseen)
        )
        windows = np.lib.stride_tricks.sliding_window_view(X[draw], k, axis=1)
        draw = draw[(windows == codes).all(axis=2).any(axis=1)] if unseen else draw[:0]
        if not len(draw):
            return X, y
    raise ValueError(
        f"motif={motif!r} turns up by chance too often for sequences without it: {len(draw)} of "
        f"{n} still hold it after {_ROUNDS} draws"
    )


def _share_without(motif: np.ndarray, p: np.ndarray, length: int) -> float:
    """Probability that `length` independent letters do not contain the motif.

    By the automaton whose state is how many letters of the motif have just been read.
    """
    text = motif.tolist()
    step = np.zeros((len(text), len(text) + 1))
    for state in range(len(text)):
        for letter in range(4):
            read = [*text[:state], letter]
            after = max(m for m in range(state + 2) if read[len(read) - m :] == text[:m])
            step[state, after] += p[letter]
    reached = np.eye(1, len(text))[0]
    for _ in range(length):
        reached = (reached @ step)[:-1]
    return float(reached.sum())


def _starts(rng: np.random.RandomState, n: int, center: float, sd: float, last: int) -> np.ndarray:
    """Rounded normal positions from 0 to `last`, as a column."""
    edges = np.arange(last + 2) - 0.5
    p = np.diff(norm.cdf(edges, center, max(sd, _POINT)))
    return rng.choice(last + 1, size=n, p=p / p.sum())[:, None]


def _mutated(
    rng: np.random.RandomState, motif: np.ndarray, n: int, mutations: int, change: bool
) -> np.ndarray:
    """`n` copies of a motif with `mutations` letters redrawn, to another letter if `change`."""
    copies = np.tile(motif, (n, 1))
    rows = np.arange(n)[:, None]
    places = np.argsort(rng.random_sample((n, len(motif))), axis=1, kind="stable")[:, :mutations]
    step = rng.randint(1, 4, size=places.shape) if change else rng.randint(0, 4, places.shape)
    copies[rows, places] = (copies[rows, places] + step) % 4
    return copies
