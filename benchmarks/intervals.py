"""Do 95 % intervals cover, and does the 5 % test keep its size? python benchmarks/intervals.py

Many samples of populations whose importances are known. For each sample: the estimate, interval and
test of `firm`, the comparison of every two of its features, and, if a population has two scores,
the comparison of both. The samples depend only on the population, n and the repeat, so that two
versions of firmlib see the same ones: --csv FILE keeps the table, --against FILE compares with one
that was kept.
"""

import argparse
import inspect
import zlib
from collections.abc import Callable
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats
from tqdm import tqdm

import firmlib

REPEATS = {30: 100, 100: 100, 300: 80, 1000: 60, 10_000: 20}
Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, dict]]


class Population(NamedTuple):
    """How to draw rows, scores and options of `firm`; the importances; the fewest rows.

    If scores have two columns, they are two scores, and `second` holds the second's importances.
    """

    draw: Draw
    truth: list[float]
    least: int = 30
    second: list[float] | None = None


NORMAL, UNIFORM = stats.norm(), stats.uniform(-2, 4)
GRID = np.linspace(-40, 40, 2_000_001)


def sd_of(curve: Callable, x: Any) -> float:
    """Return the standard deviation of curve(x), where x has a density or probabilities p_k."""
    t, p = (np.arange(len(x)), x) if isinstance(x, np.ndarray) else (GRID, x.pdf(GRID))
    here = p > 0
    q, p = np.asarray(curve(t[here]), dtype=float), p[here] / p.sum()
    return float(np.sqrt(p @ (q - p @ q) ** 2))


def normal(sd: float) -> Callable:
    return lambda rng, X: sd * rng.normal(size=len(X))


def t3(sd: float) -> Callable:
    return lambda rng, X: sd * rng.standard_t(3, len(X))


def of(
    curve: Callable,
    noise: Callable | None = None,
    x: Any = NORMAL,
    *,
    change: Callable | None = None,
    sd: float | None = None,
    least: int = 30,
    **options: Any,
) -> Population:
    """s = curve(x0) + noise, x0 and x1 alike; `change` turns rng, X and s into X, s and options.

    If the total `sd` of the scores is given, importances are divided by it.
    """

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, dict]:
        if isinstance(x, np.ndarray):
            X = rng.choice(len(x), (n, 2), p=x).astype(float)
        else:
            X = x.ppf(rng.random((n, 2)))
        s = curve(X[:, 0]) + (0.0 if noise is None else noise(rng, X))
        if change is None:
            return X, s, options
        X, s, more = change(rng, X, s)
        return X, s, options | more

    if sd is not None:
        options["standardize"] = True
    return Population(draw, [sd_of(curve, x) / (sd or 1.0), 0.0], least)


def weighted(draw: Callable) -> Callable:
    """Give the rows weights that have nothing to do with them."""
    return lambda rng, X, s: (X, s, {"sample_weight": draw(rng, len(s))})


def survey() -> Population:
    """s = x0 + noise; rows with large |x0| are drawn more often than they are, and weigh less."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, dict]:
        X = rng.normal(size=(n, 2)) * [1.4, 1]
        weight = np.exp((1.4**-2 - 1) * X[:, 0] ** 2 / 2)
        return X, X[:, 0] + rng.normal(size=n), {"sample_weight": weight}

    return Population(draw, [1.0, 0.0])


def in_units(size: int, share: float, *, uneven: bool = False, weights: bool = False) -> Callable:
    """Let the noise of a unit share so much of its variance; x1 is the same in all of a unit."""

    def change(rng: np.random.Generator, X: np.ndarray, s: np.ndarray) -> tuple:
        n = len(s)
        unit = np.arange(n) // size
        if uneven:  # half of the rows in units of their own
            unit = np.where(np.arange(n) < n // 2, unit, n + np.arange(n))
        unit = np.unique(unit, return_inverse=True)[1]
        u = rng.normal(size=(unit.max() + 1, 2))[unit]
        s = s + np.sqrt(share) * u[:, 0] + np.sqrt(1 - share) * rng.normal(size=n)
        X = np.column_stack([X[:, 0], u[:, 1]])
        options = {"sample_weight": rng.exponential(size=n)} if weights else {}
        return X, s, options | {"groups": unit}

    return change


def labels(rng: np.random.Generator, X: np.ndarray, s: np.ndarray) -> tuple:
    """Draw labels 0 and 1 with the probabilities s."""
    return X, (rng.random(len(s)) < s).astype(float), {}


def with_missing(rng: np.random.Generator, X: np.ndarray, s: np.ndarray) -> tuple:
    """Let three in ten values of x1 be missing, which tells nothing."""
    return np.where(rng.random(X.shape) < [0.0, 0.3], np.nan, X), s, {}


def zipf(k: int) -> np.ndarray:
    """Return k uneven probabilities."""
    p = 1 / np.arange(1, k + 1)
    return p / p.sum()


def gaussian() -> Population:
    """s = x0 + x1 / 2, x0 and x1 correlated, x2 a proxy of both, x3 alone."""
    corr = np.eye(4)
    corr[:3, :3] = [[1, 0.5, 0.6], [0.5, 1, 0.2], [0.6, 0.2, 1]]
    w, root = np.array([1, 0.5, 0, 0]), np.linalg.cholesky(corr)

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, dict]:
        X = rng.normal(size=(n, 4)) @ root.T
        return X, X @ w, {}

    return Population(draw, (corr @ w).tolist())


def curved() -> Population:
    """s = x0^2 + x1^3 / 4 of normal inputs: most of the variance is in the tails; x2 is null."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, dict]:
        X = rng.normal(size=(n, 3))
        return X, X[:, 0] ** 2 + X[:, 1] ** 3 / 4, {}

    return Population(draw, [np.sqrt(2), np.sqrt(15) / 4, 0.0])


def ishigami() -> Population:
    """s = sin x0 + 7 sin(x1)^2 + 0.1 x2^4 sin x0: x2 is null, but moves the spread of s."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, dict]:
        X = rng.uniform(-np.pi, np.pi, (n, 3))
        return X, np.sin(X[:, 0]) * (1 + 0.1 * X[:, 2] ** 4) + 7 * np.sin(X[:, 1]) ** 2, {}

    return Population(draw, [(1 + np.pi**4 / 50) / np.sqrt(2), 7 / np.sqrt(8), 0.0])


def bits() -> Population:
    """Four bits, s = b0 + 2 b1 + (2 b0 - 1)(2 b2 - 1) + b0 b3: b2 is null."""
    p = np.array([0.5, 0.2, 0.5, 0.1])

    def score(B: np.ndarray) -> np.ndarray:
        return B[:, 0] + 2 * B[:, 1] + (2 * B[:, 0] - 1) * (2 * B[:, 2] - 1) + B[:, 0] * B[:, 3]

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, dict]:
        B = (rng.random((n, 4)) < p).astype(float)
        return B, score(B), {}

    table = np.array(list(product([0.0, 1.0], repeat=4)))
    weight = np.prod(np.where(table == 1, p, 1 - p), axis=1)
    s, truth = score(table), []
    for b in table.T.astype(int):
        p_b, sums = np.bincount(b, weight), np.bincount(b, weight * s)
        truth.append(float(np.sqrt(max(sums**2 @ (1 / p_b) - (weight @ s) ** 2, 0))))
    return Population(draw, np.round(truth, 12).tolist())


def interaction() -> Population:
    """s = x0 x1 + noise: both are null alone."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, dict]:
        X = rng.normal(size=(n, 2))
        return X, X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n), {}

    return Population(draw, [0.0, 0.0])


def drawn(make: Callable, truth: list[float], *, least: int = 30, second: Any = None) -> Population:
    """Return the population from which `make(rng, n)` draws X and s, and options if it has any."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, dict]:
        X, s, *options = make(rng, n)
        return X, s, options[0] if options else {}

    return Population(draw, truth, least, second)


def of_x0(make: Callable, q: Callable, sd: float, noise: float = 1.0) -> Population:
    """Return s = q(x0) + noise, where q(x0) has this sd and make(rng, shape) draws both columns."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        X = make(rng, (n, 2))
        return X, q(X[:, 0]) + noise * rng.normal(size=n)

    return drawn(draw, [sd, 0.0])


def two_modes(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    return np.where(rng.random(shape) < 0.5, -2, 2) + rng.normal(size=shape) / 2


def mixture(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    """Four in ten values are 0, the others normal."""
    return np.where(rng.random(shape) < 0.4, 0.0, rng.normal(size=shape))


def zero_inflated(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    return np.where(rng.random(shape) < 0.8, 0.0, rng.exponential(size=shape))


def often_missing(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    return np.where(rng.random(shape) < 0.3, np.nan, rng.normal(size=shape))


def nulls(rng: np.random.Generator, n: int) -> tuple:
    """Four null features, correlated with each other, beside three strong ones."""
    X = rng.normal(size=(n, 7))
    X[:, 3:] += rng.normal(size=(n, 1))
    return X, 3 * X[:, 0] + 2 * X[:, 1] ** 2 + np.exp(X[:, 2])


def spread(rng: np.random.Generator, n: int) -> tuple:
    """The spread of s grows like exp(.7 x1), its mean with x0 only."""
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + np.exp(0.7 * X[:, 1]) * rng.normal(size=n)


def product_too(rng: np.random.Generator, n: int) -> tuple:
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + X[:, 0] * X[:, 1] + X[:, 0] * X[:, 1] * X[:, 2]


def number_and_sign(rng: np.random.Generator, n: int) -> tuple:
    """A number and two levels that matter alike."""
    X = np.column_stack([rng.normal(size=n), rng.choice([-1.0, 1.0], n), rng.normal(size=n)])
    return X, X[:, 0] + X[:, 1] + rng.normal(size=n)


def tied(noise: float, correlation: float = 0.0) -> Population:
    """s = x0 + x1 + noise: x0 and x1 matter alike."""
    root = np.linalg.cholesky([[1, correlation, 0], [correlation, 1, 0], [0, 0, 1]])

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(size=(n, 3)) @ root.T
        return X, X[:, 0] + X[:, 1] + noise * rng.normal(size=n)

    return drawn(draw, [1 + correlation, 1 + correlation, 0.0])


def two_scores(
    scores: Callable, first: list, second: list, k: int = 3, **options: Any
) -> Population:
    """Return two scores of k normal columns, from X, rng and n."""

    def draw(rng: np.random.Generator, n: int) -> tuple:
        X = rng.normal(size=(n, k))
        return X, np.column_stack(scores(X, rng, n)), options

    return drawn(draw, first, second=second)


def same_noise(X: np.ndarray, rng: np.random.Generator, n: int) -> tuple:
    e = rng.normal(size=n)
    s = X[:, 0] + 0.6 * X[:, 1] + e
    return s, 1.2 * X[:, 0] + 0.6 * X[:, 1] + 0.8 * e + 0.3 * rng.normal(size=n)


def own_noise(X: np.ndarray, rng: np.random.Generator, n: int) -> tuple:
    s = X[:, 0] + 0.6 * X[:, 1]
    return s + rng.normal(size=n), s - 0.3 * X[:, 1] + rng.normal(size=n)


def tails(X: np.ndarray, rng: np.random.Generator, n: int) -> tuple:
    s = X[:, 0] + 0.5 * X[:, 1] ** 2
    return s + rng.standard_t(3, n) / 2, s + rng.standard_t(3, n) / 2 + X[:, 2] / 2


def two_models(X: np.ndarray, rng: np.random.Generator, n: int) -> tuple:
    """Without noise; x0 matters alike to both, x1 and x2 swap."""
    return X[:, 0] + X[:, 1], X[:, 0] + X[:, 2] + 0.5 * X[:, 1]


def curved_alike(X: np.ndarray, rng: np.random.Generator, n: int) -> tuple:
    """x0 has equal importances but other curves."""
    e = 0.5 * rng.normal(size=n)
    return X[:, 0] + e, (X[:, 0] ** 2 - 1) / np.sqrt(2) + 0.5 * X[:, 1] + e


def line(x: np.ndarray) -> np.ndarray:
    return x


def sine(x: np.ndarray) -> np.ndarray:
    return np.sin(8 * x)


def steps(x: np.ndarray) -> np.ndarray:
    return np.sign(x) + (x > 1)


def wild(k: np.ndarray) -> np.ndarray:
    """Levels whose numbers say nothing."""
    return np.random.default_rng(0).normal(size=100)[np.asarray(k, dtype=int)]


COUNTS = 0.6 * stats.nbinom.pmf(np.arange(2000), 0.5, 0.02)
COUNTS[0] += 1 - COUNTS.sum()

POPULATIONS: dict[str, Population] = {
    "gaussian": gaussian(),
    "curved": curved(),
    "ishigami": ishigami(),
    "bits": bits(),
    "interaction": interaction(),
    # smooth curves, of the strongest to the weakest
    "line, no noise": of(line),
    "line, R2 .99": of(line, normal(0.1)),
    "line, R2 .96": of(line, normal(0.2)),
    "line, R2 .5": of(line, normal(1)),
    "line, R2 .2": of(line, normal(2)),
    "line, R2 .05": of(line, normal(np.sqrt(19))),
    "line, R2 .01": of(line, normal(10)),
    "line, uniform x": of(line, normal(1), UNIFORM),
    "line, exponential x": of(line, normal(1), stats.expon()),
    "line, lognormal x": of(line, normal(1), stats.lognorm(0.5)),
    "line, t5 x": of(line, normal(1), stats.t(5)),
    "square": of(np.square, normal(1)),
    "square, uniform x": of(np.square, normal(1), UNIFORM),
    "abs": of(np.abs, normal(0.5)),
    "tanh 5x": of(lambda x: np.tanh(5 * x), normal(0.5)),
    "cube": of(lambda x: x**3, normal(1)),
    "cube, no noise": of(lambda x: x**3),
    "exp x": of(np.exp, normal(1)),
    "exp 2x": of(lambda x: np.exp(2 * x), normal(1)),
    # rough ones
    "sin 3x": of(lambda x: np.sin(3 * x), normal(0.5)),
    "sin 8x": of(sine, normal(0.5)),
    "sin 8x, no noise": of(sine),
    "sin 8x, uniform x": of(sine, normal(0.5), UNIFORM),
    "steps": of(steps, normal(0.5)),
    "steps, no noise": of(steps),
    "rare jump": of(lambda x: 3.0 * (x > 2), normal(0.5)),
    # noise of other kinds
    "t3 noise": of(line, t3(1)),
    "exponential noise": of(line, lambda rng, X: rng.exponential(size=len(X))),
    "lognormal noise": of(line, lambda rng, X: rng.lognormal(size=len(X))),
    "noise grows with x0": of(line, lambda rng, X: X[:, 0] * rng.normal(size=len(X))),
    "noise grows with x1": of(line, lambda rng, X: X[:, 1] ** 2 * rng.normal(size=len(X))),
    "labels": of(special.expit, change=labels),
    "rare labels": of(lambda x: special.expit(x - 3), change=labels),
    # levels and ties
    "two levels": of(line, normal(1), np.array([0.5, 0.5])),
    "rare level": of(line, normal(1), np.array([0.95, 0.05])),
    "five levels": of(np.sin, normal(1), zipf(5)),
    "twenty levels": of(
        lambda k: np.sin(k) / 2,
        lambda rng, X: np.where(X[:, 1] >= 3, 1.5, 0.5) * rng.normal(size=len(X)),
        zipf(20),
    ),
    "fifty levels, no order": of(wild, normal(1), zipf(50), categorical=[0, 1]),
    "fifty levels, weak": of(lambda k: wild(k) / 5, normal(1), zipf(50), categorical=[0, 1]),
    "hundred even levels": of(wild, normal(1), np.full(100, 0.01), categorical=[0, 1], least=100),
    "counts": of(np.sqrt, normal(0.5), stats.binom(30, 0.1).pmf(np.arange(31))),
    "ties": of(lambda k: np.sqrt(k) / 5, lambda rng, X: rng.exponential(size=len(X)), COUNTS),
    "rounded": of(lambda k: k / 10 - 2, normal(1), stats.binom(40, 0.5).pmf(np.arange(41))),
    "missing": of(line, normal(1), change=with_missing),
    # weights and units
    "weights": of(line, normal(1), change=weighted(lambda rng, n: rng.exponential(size=n))),
    "uneven weights": of(line, normal(1), change=weighted(lambda rng, n: rng.lognormal(size=n))),
    "weights, sin 8x": of(
        sine, normal(0.5), change=weighted(lambda rng, n: rng.exponential(size=n))
    ),
    "survey": survey(),
    "units of ten": of(line, change=in_units(10, 1), least=100),
    "units of five": of(line, change=in_units(5, 0.5), least=100),
    "uneven units": of(line, change=in_units(5, 0.5, uneven=True), least=100),
    "units and weights": of(line, change=in_units(5, 0.5, weights=True), least=100),
    "units, sin 3x": of(lambda x: np.sin(3 * x), change=in_units(5, 0.5), least=100),
    # divided by sd(s)
    "standardized, R2 .2": of(line, normal(2), sd=np.sqrt(5)),
    "standardized, R2 .5": of(line, normal(1), sd=np.sqrt(2)),
    "standardized, R2 .96": of(line, normal(0.2), sd=np.sqrt(1.04)),
    "standardized, R2 .99": of(line, normal(0.1), sd=np.sqrt(1.01)),
    "standardized, t3 noise": of(line, t3(1), sd=2.0),
    "standardized, square, no noise": of(np.square, sd=np.sqrt(2)),
    "standardized, five levels": of(
        np.sin, normal(1), zipf(5), sd=np.hypot(1, sd_of(np.sin, zipf(5)))
    ),
    # more shapes, tails and spreads
    "noise exp .7x0": of(line, lambda rng, X: np.exp(0.7 * X[:, 0]) * rng.normal(size=len(X))),
    "noise exp .7x1": drawn(spread, [1.0, 0.0]),
    "two modes": of_x0(two_modes, line, np.sqrt(4.25)),
    "two modes, square": of_x0(two_modes, np.square, np.sqrt(4.125)),
    "mixture": of_x0(mixture, lambda x: x + 1.5 * (x == 0), np.sqrt(1.14)),
    "zero inflated": of_x0(zero_inflated, line, 0.6),
    "missing matters": of_x0(
        often_missing, lambda x: np.where(np.isnan(x), 1.5, x), np.sqrt(1.1725)
    ),
    "Cauchy x, bounded s": of_x0(
        lambda rng, shape: rng.standard_cauchy(shape), np.arctan, np.pi / np.sqrt(12), 0.5
    ),
    "Cauchy x, no noise": of_x0(
        lambda rng, shape: rng.standard_cauchy(shape), np.arctan, np.pi / np.sqrt(12), 0.0
    ),
    "cos 5x": of(lambda x: np.cos(5 * x), normal(0.5)),
    "saw": of(lambda x: np.mod(2 * x, 1), normal(0.3), UNIFORM),
    "rare step": of(lambda x: 5.0 * (x > NORMAL.ppf(0.995)), normal(0.5), least=300),
    "two percent": of(lambda x: 2.0 * (x > NORMAL.ppf(0.98)), normal(0.5), least=100),
    "expit 4x, no noise": of(lambda x: special.expit(4 * x)),
    "lognormal s": drawn(
        lambda rng, n: (X := rng.normal(size=(n, 2)), np.exp(X[:, 0] / 2 + rng.normal(size=n) / 2)),
        [float(np.exp(0.125) * np.sqrt(np.expm1(0.25) * np.exp(0.25))), 0.0],
    ),
    "skewed levels": of(wild, normal(1), 3.0 ** -np.arange(12) / (3.0 ** -np.arange(12)).sum()),
    "skewed levels, no order": of(
        wild, normal(1), 2.0 ** -np.arange(12) / (2.0 ** -np.arange(12)).sum(), categorical=[0, 1]
    ),
    "counts, whole weights": of(
        np.sqrt,
        normal(0.5),
        stats.poisson(3).pmf(np.arange(30)) / stats.poisson(3).pmf(np.arange(30)).sum(),
        change=weighted(lambda rng, n: 1.0 + rng.poisson(4, n)),
    ),
    "whole weights": of(line, normal(1), change=weighted(lambda rng, n: rng.integers(1, 11, n))),
    "products too": drawn(product_too, [1.0, 0.0, 0.0]),
    "nulls beside strong": drawn(
        nulls, [3.0, np.sqrt(8), float(np.sqrt(np.expm1(1) * np.e)), 0.0, 0.0, 0.0, 0.0]
    ),
    "pairs of rows": of(line, change=in_units(2, 0.8)),
    "units of three": of(line, change=in_units(3, 0.5, weights=True)),
    "units of four, square": of(np.square, change=in_units(4, 0.5), least=100),
    # ties of features
    "tied": tied(1.0),
    "tied, no noise": tied(0.0),
    "tied, correlated": tied(1.0, 0.5),
    "tied, weak": tied(4.0),
    "number and sign": drawn(number_and_sign, [1.0, 1.0, 0.0]),
    # two scores on the same rows
    "two scores, same noise": two_scores(same_noise, [1.0, 0.6], [1.2, 0.6], 2),
    "two scores, own noise": two_scores(own_noise, [1.0, 0.6], [1.0, 0.3], 2),
    "two scores, tails": two_scores(tails, [1.0, np.sqrt(0.5), 0.0], [1.0, np.sqrt(0.5), 0.5]),
    "two scores, two models": two_scores(two_models, [1.0, 1.0, 0.0], [1.0, 0.5, 1.0]),
    "two scores, other curves": two_scores(curved_alike, [1.0, 0.0], [1.0, 0.5], 2),
    "two scores, standardized": two_scores(
        own_noise,
        [1 / np.sqrt(2.36), 0.6 / np.sqrt(2.36)],
        [1 / np.sqrt(2.09), 0.3 / np.sqrt(2.09)],
        2,
        standardize=True,
    ),
}


def measured(X: np.ndarray, s: np.ndarray, options: dict) -> Any:
    """Return the result of `firm`, of this or an earlier version."""
    options = dict(options)
    if not options.pop("standardize", False):
        return firmlib.firm(s, X, **options)
    if "standardize" in inspect.signature(firmlib.firm).parameters:
        return firmlib.firm(s, X, standardize=True, **options)
    return firmlib.firm(s, X, **options).standardize()


def features_of(result: Any) -> np.ndarray:
    """Return importance, ends of the interval and p-value of each feature (m, 4)."""
    ends = result.intervals()
    return np.column_stack(
        [np.abs(result.importances), ends["ci_low"], ends["ci_high"], result.pvalues]
    )


def pairs_of(result: Any) -> np.ndarray:
    """Return difference, ends and p-value of every two features (pairs, 4)."""
    table = result.compare()[["difference", "ci_low", "ci_high", "pvalue"]]
    rows = []
    for a, b in combinations(result.feature_names, 2):
        if (a, b) in table.index:
            rows.append(table.loc[(a, b)].to_numpy(dtype=float))
        else:
            difference, low, high, pvalue = table.loc[(b, a)]
            rows.append(np.array([-difference, -high, -low, pvalue]))
    return np.array(rows)


def scores_of(result: Any, other: Any) -> np.ndarray:
    """Return difference, ends and p-value of each feature, of two scores (m, 4)."""
    table = firmlib.compare(result, other).loc[list(result.feature_names)]
    return table[["difference", "ci_low", "ci_high", "pvalue"]].to_numpy(dtype=float)


def simulate(name: str, n: int, repeats: int) -> pd.DataFrame:
    """Return coverage, length, rejections and errors over samples.

    One row per feature, per two features of the score, and per feature of two scores.
    """
    draw, truth, _, second = POPULATIONS[name]
    names = [f"x{j}" for j in range(len(truth))]
    rows = [("feature", f, t) for f, t in zip(names, truth, strict=True)]
    rows += [
        ("pair", f"{a} - {b}", truth[names.index(a)] - truth[names.index(b)])
        for a, b in combinations(names, 2)
    ]
    if second is not None:
        gaps = np.subtract(truth, second)
        rows += [("scores", f, t) for f, t in zip(names, gaps, strict=True)]
    table = pd.DataFrame(rows, columns=["kind", "feature", "truth"])
    table["truth"] = table["truth"].round(12)
    found = []
    for repeat in range(repeats):
        rng = np.random.default_rng([zlib.crc32(name.encode()), n, repeat])
        X, s, options = draw(rng, n)
        result = measured(X, s if s.ndim == 1 else s[:, 0], options)
        parts = [features_of(result), pairs_of(result)]
        if second is not None:
            parts.append(scores_of(result, measured(X, s[:, 1], options)))
        found.append(np.concatenate(parts))
    Q, low, high, pvalue = np.moveaxis(np.array(found), 2, 0)
    t = table["truth"].to_numpy()
    table.insert(0, "population", name)
    table.insert(1, "n", n)
    table["repeats"] = repeats
    table["mean"] = Q.mean(axis=0)
    table["rmse"] = np.sqrt(((Q - t) ** 2).mean(axis=0))
    table["coverage"] = ((low <= t) & (t <= high)).mean(axis=0)
    table["length"] = (high - low).mean(axis=0)
    table["rejected"] = (pvalue < 0.05).mean(axis=0)
    table["nan"] = np.isnan(Q + low + high + pvalue).mean(axis=0)
    return table


def summary(table: pd.DataFrame) -> dict[str, float]:
    """Return how well the intervals cover and the tests reject, all populations together."""
    real, null = (table["kind"] == "feature") & (table["truth"] != 0), table["truth"] == 0
    one, two = table["kind"] == "pair", table["kind"] == "scores"
    both_null = one & null & table["null pair"]
    features = table[real]
    size = table[(table["kind"] == "feature") & null]["rejected"]
    ties = {"ties": one & null & ~both_null, "null ties": both_null, "two-score ties": two & null}
    out = {
        "features": len(features),
        "coverage": features["coverage"].mean(),
        "covered < .90": (features["coverage"] < 0.9).sum(),
        "worst coverage": features["coverage"].min(),
        "size": size.mean(),
        "largest size": size.max(),
        "power": features["rejected"].mean(),
    }
    for name, some in ties.items():
        out[name] = table[some]["rejected"].mean()
        out[f"largest, {name}"] = table[some]["rejected"].max()
    out["pairs, power"] = table[one & ~null]["rejected"].mean()
    out["pairs, coverage"] = table[one & ~both_null]["coverage"].mean()
    out["two scores, power"] = table[two & ~null]["rejected"].mean()
    out["two scores, coverage"] = table[two]["coverage"].mean()
    out["nan"] = table["nan"].sum()
    return out


def with_null_pairs(table: pd.DataFrame) -> pd.DataFrame:
    """Add whether both features of a pair are null: then nothing is tied."""
    nulls = table[(table["kind"] == "feature") & (table["truth"] == 0)]
    null = set(zip(nulls["population"], nulls["feature"], strict=True))
    both = [
        k == "pair" and all((p, g) in null for g in f.split(" - "))
        for p, k, f in zip(table["population"], table["kind"], table["feature"], strict=True)
    ]
    return table.assign(**{"null pair": both})


KEYS = ["population", "n", "kind", "feature", "repeats"]


def summaries(table: pd.DataFrame, against: pd.DataFrame | None) -> pd.DataFrame:
    """Return one column per n (and version): summaries, and ratios of errors and lengths."""
    columns = {}
    if against is not None:
        keys = pd.merge(table[KEYS], against[KEYS])
        table, against = (keys.merge(a) for a in (table, against))
    for n, part in with_null_pairs(table).groupby("n"):
        columns[str(n)] = summary(part)
        if against is None:
            continue
        before = against[against["n"] == n].reset_index(drop=True)
        part = part.reset_index(drop=True)
        columns[f"{n} against"] = summary(with_null_pairs(before))
        real = (part["kind"] == "feature") & (part["truth"] != 0)
        null = (part["kind"] == "feature") & (part["truth"] == 0)
        ratio = {k: part[k] / before[k] for k in ("rmse", "length")}
        exact = before["rmse"] < 1e-9  # nothing to be divided by
        columns[str(n)] |= {
            "rmse, mean ratio": ratio["rmse"][real & ~exact].mean(),
            "rmse, largest ratio": ratio["rmse"][real & ~exact].max(),
            "rmse of null, mean ratio": ratio["rmse"][null & ~exact].mean(),
            "length, median ratio": ratio["length"][real].median(),
        }
    return pd.DataFrame(columns)


def worst(table: pd.DataFrame, against: pd.DataFrame) -> pd.DataFrame:
    """Return the features whose error is larger by more than a tenth, or covered less by .05."""
    both = table.merge(against, on=KEYS, suffixes=("", " against"))
    ratio = both["rmse"] / both["rmse against"].clip(lower=1e-12)
    fewer = both["coverage"] < both["coverage against"].clip(upper=0.95) - 0.05
    real = (both["kind"] == "feature") & (both["truth"] != 0)
    shown = [*KEYS, "rmse", "rmse against", "coverage", "coverage against"]
    return both.assign(ratio=ratio)[real & ((ratio > 1.1) | fewer)][[*shown, "ratio"]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", nargs="+", type=int, default=list(REPEATS), help="sample sizes")
    parser.add_argument("--share", type=float, default=1.0, help="of the samples, at least two")
    parser.add_argument("--csv", help="where to keep the table")
    parser.add_argument("--against", help="a kept table, for instance of an earlier version")
    parser.add_argument("--only", nargs="+", default=list(POPULATIONS), help="some populations")
    arguments = parser.parse_args()
    tables = []
    for n in arguments.n:
        repeats = max(round(arguments.share * REPEATS.get(n, 50)), 2)
        for name in tqdm(arguments.only, desc=f"n = {n}", leave=False):
            if n >= POPULATIONS[name].least:
                tables.append(simulate(name, n, repeats))
        if arguments.csv:
            sofar = pd.concat(tables, ignore_index=True)
            sofar.to_csv(arguments.csv, index=False, float_format="%.6g")
    table = pd.concat(tables, ignore_index=True)
    before = pd.read_csv(arguments.against) if arguments.against else None
    if before is not None and not len(table[KEYS].merge(before[KEYS])):
        raise SystemExit(f"{arguments.against} has no population with the same n and repeats")
    print(summaries(table, before).round(3).to_string())
    if before is not None:
        print(worst(table, before).round(3).to_string(index=False))
