"""Do 95 % intervals cover, and does the 5 % test keep its size? python benchmarks/intervals.py

Many samples of populations whose importances are known. For each sample: the estimate, interval and
test of `firm`, the comparison of every two of its features, and, if a population has two scores,
the comparison of both. The samples depend only on the population, n and the repeat, so that two
versions of firmlib see the same ones: --csv FILE keeps the table, --against FILE compares with one
that was kept.
"""

import argparse
import zlib
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats
from tqdm import tqdm

import firmlib

REPEATS = {30: 100, 100: 100, 300: 80, 1000: 60, 10_000: 100}
NORMAL, UNIFORM = stats.norm(), stats.uniform(-2, 4)
GRID = np.linspace(-40, 40, 2_000_001)
Array = np.ndarray
Random = np.random.Generator


class Population(NamedTuple):
    """How to draw rows and scores; the importances; what follows of rows, X, s and options.

    If scores have two columns, they are two scores, and `second` holds the second's importances.
    `change` turns random numbers, X and s into X, s and options of `firm`.
    """

    rows: Callable[[Random, int], Array]
    score: Callable[[Array, Random], Any]
    truth: Sequence[float]
    second: Sequence[float] | None = None
    change: Callable | None = None
    least: int = 30
    standardize: bool = False
    options: dict = {}  # noqa: RUF012

    def draw(self, rng: Random, n: int) -> tuple[Array, Array, dict]:
        """Return X, s and options of `firm`."""
        X = self.rows(rng, n)
        s = self.score(X, rng)
        s = np.column_stack(s) if isinstance(s, tuple) else s
        X, s, more = self.change(rng, X, s) if self.change else (X, s, {})
        return X, s, self.options | more


def sd_of(curve: Callable, x: Any) -> float:
    """Return the standard deviation of curve(x), where x has a density or probabilities p_k."""
    t, p = (np.arange(len(x)), x) if isinstance(x, Array) else (GRID, x.pdf(GRID))
    here = p > 0
    q, p = np.asarray(curve(t[here]), dtype=float), p[here] / p.sum()
    return float(np.sqrt(p @ (q - p @ q) ** 2))


def e(X: Array, rng: Random) -> Array:
    """Draw normal noise."""
    return rng.normal(size=len(X))


def t3(X: Array, rng: Random) -> Array:
    return rng.standard_t(3, len(X))


def exponential(X: Array, rng: Random) -> Array:
    return rng.exponential(size=len(X))


def lognormal(X: Array, rng: Random) -> Array:
    return rng.lognormal(size=len(X))


def plus(curve: Callable, noise: float | Callable, k: int = 1) -> Callable:
    """Return the score curve(x0, x1 ...) of k columns and noise, drawn or normal with this sd."""
    drawn = noise if callable(noise) else lambda X, rng: noise * e(X, rng)
    return lambda X, rng: curve(*X.T[:k]) + drawn(X, rng)


def of(
    curve: Callable,
    noise: float | Callable = 0.0,
    x: Any = NORMAL,
    *,
    Q: float | None = None,
    sd: float | None = None,
    **more: Any,
) -> Population:
    """s = curve(x0) + noise, x0 and x1 alike.

    `x` is a distribution, the probabilities of levels, or draws (n, 2) values; then Q is given. If
    the total `sd` of the scores is given, importances are divided by it.
    """

    def rows(rng: Random, n: int) -> Array:
        if isinstance(x, Array):
            return rng.choice(len(x), (n, 2), p=x).astype(float)
        return x.ppf(rng.random((n, 2))) if hasattr(x, "ppf") else x(rng, (n, 2))

    score = plus(curve, noise) if noise else lambda X, _: curve(X[:, 0])
    truth = [(Q or sd_of(curve, x)) / (sd or 1.0), 0]
    return Population(rows, score, truth, standardize=bool(sd), **more)


def normals(like: int | Array, score: Callable, *truth: Sequence, **more: Any) -> Population:
    """Return scores of so many independent normal columns, or of some with these correlations."""
    root = np.eye(like) if isinstance(like, int) else np.linalg.cholesky(like)
    rows = lambda rng, n: rng.normal(size=(n, len(root))) @ root.T  # noqa: E731
    return Population(rows, score, *truth, **more)


def weighted(draw: Callable) -> Callable:
    """Give the rows weights that have nothing to do with them."""
    return lambda rng, X, s: (X, s, {"sample_weight": draw(X, rng)})


def survey(rng: Random, X: Array, s: Array) -> tuple:
    """Rows with large |x0| are drawn more often than they are, and weigh less."""
    return X, s, {"sample_weight": np.exp((1.4**-2 - 1) * X[:, 0] ** 2 / 2)}


def in_units(size: int, share: float, *, uneven: bool = False, weights: bool = False) -> Callable:
    """Let the noise of a unit share so much of its variance; x1 is the same in all of a unit."""

    def change(rng: Random, X: Array, s: Array) -> tuple:
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


def labels(rng: Random, X: Array, s: Array) -> tuple:
    """Draw labels 0 and 1 with the probabilities s."""
    return X, (rng.random(len(s)) < s).astype(float), {}


def with_missing(rng: Random, X: Array, s: Array) -> tuple:
    """Let three in ten values of x1 be missing, which tells nothing."""
    return np.where(rng.random(X.shape) < [0.0, 0.3], np.nan, X), s, {}


def shares(p: Array) -> Array:
    return p / p.sum()


def zipf(k: int) -> Array:
    """Return k uneven probabilities."""
    return shares(1 / np.arange(1, k + 1))


def in_part(share: float, value: float) -> Callable:
    """Let a share of normal numbers have one value."""
    return lambda rng, shape: np.where(rng.random(shape) < share, value, rng.normal(size=shape))


def two_modes(rng: Random, shape: tuple) -> Array:
    return np.where(rng.random(shape) < 0.5, -2, 2) + rng.normal(size=shape) / 2


def zero_inflated(rng: Random, shape: tuple) -> Array:
    return np.where(rng.random(shape) < 0.8, 0.0, rng.exponential(size=shape))


def cauchy(rng: Random, shape: tuple) -> Array:
    return rng.standard_cauchy(shape)


def bits(rng: Random, n: int) -> Array:
    return (rng.random((n, 4)) < [0.5, 0.2, 0.5, 0.1]).astype(float)


def together(rng: Random, n: int) -> Array:
    """Three normal columns, and four that are correlated with each other."""
    X = rng.normal(size=(n, 7))
    X[:, 3:] += rng.normal(size=(n, 1))
    return X


def number_and_sign(rng: Random, n: int) -> Array:
    return np.column_stack([rng.normal(size=n), rng.choice([-1.0, 1.0], n), rng.normal(size=n)])


def same_noise(X: Array, rng: Random) -> tuple:
    noise = e(X, rng)
    s = X[:, 0] + 0.6 * X[:, 1] + noise
    return s, 1.2 * X[:, 0] + 0.6 * X[:, 1] + 0.8 * noise + 0.3 * e(X, rng)


def own_noise(X: Array, rng: Random) -> tuple:
    s = X[:, 0] + 0.6 * X[:, 1]
    return s + e(X, rng), s - 0.3 * X[:, 1] + e(X, rng)


def tails(X: Array, rng: Random) -> tuple:
    s, n = X[:, 0] + 0.5 * X[:, 1] ** 2, len(X)
    return s + rng.standard_t(3, n) / 2, s + rng.standard_t(3, n) / 2 + X[:, 2] / 2


def two_models(X: Array, rng: Random) -> tuple:
    """Without noise; x0 matters alike to both, x1 and x2 swap."""
    return X[:, 0] + X[:, 1], X[:, 0] + X[:, 2] + 0.5 * X[:, 1]


def curved_alike(X: Array, rng: Random) -> tuple:
    """x0 has equal importances but other curves."""
    noise = 0.5 * e(X, rng)
    return X[:, 0] + noise, (X[:, 0] ** 2 - 1) / np.sqrt(2) + 0.5 * X[:, 1] + noise


def line(x: Array) -> Array:
    return x


def two(x: Array, y: Array) -> Array:
    return x + y


def sin3(x: Array) -> Array:
    return np.sin(3 * x)


def sin8(x: Array) -> Array:
    return np.sin(8 * x)


def steps(x: Array) -> Array:
    return np.sign(x) + (x > 1)


def wild(k: Array) -> Array:
    """Levels whose numbers say nothing."""
    return np.random.default_rng(0).normal(size=100)[np.asarray(k, dtype=int)]


COUNTS = 0.6 * stats.nbinom.pmf(np.arange(2000), 0.5, 0.02)
COUNTS[0] += 1 - COUNTS.sum()
CORR = np.eye(4)  # x2 is a proxy of x0 and x1
CORR[:3, :3] = [[1, 0.5, 0.6], [0.5, 1, 0.2], [0.6, 0.2, 1]]
TIED = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
NOMINAL = {"categorical": [0, 1]}

POPULATIONS: dict[str, Population] = {
    "gaussian": normals(CORR, lambda X, _: X @ [1, 0.5, 0, 0], CORR @ [1, 0.5, 0, 0]),
    # most of the variance is in the tails; x2 is null
    "curved": normals(
        3, lambda X, _: X[:, 0] ** 2 + X[:, 1] ** 3 / 4, [np.sqrt(2), np.sqrt(15) / 4, 0]
    ),
    # x2 is null, but moves the spread of s
    "ishigami": Population(
        lambda rng, n: rng.uniform(-np.pi, np.pi, (n, 3)),
        lambda X, _: np.sin(X[:, 0]) * (1 + 0.1 * X[:, 2] ** 4) + 7 * np.sin(X[:, 1]) ** 2,
        [(1 + np.pi**4 / 50) / np.sqrt(2), 7 / np.sqrt(8), 0],
    ),
    "bits": Population(
        bits,
        lambda B, _: (
            B[:, 0] + 2 * B[:, 1] + (2 * B[:, 0] - 1) * (2 * B[:, 2] - 1) + B[:, 0] * B[:, 3]
        ),
        [0.55, 0.8, 0, 0.15],
    ),
    "interaction": normals(2, lambda X, rng: X[:, 0] * X[:, 1] + 0.5 * e(X, rng), [0, 0]),
    # smooth curves, of the strongest to the weakest
    "line, no noise": of(line),
    "line, R2 .99": of(line, 0.1),
    "line, R2 .96": of(line, 0.2),
    "line, R2 .5": of(line, 1),
    "line, R2 .2": of(line, 2),
    "line, R2 .05": of(line, np.sqrt(19)),
    "line, R2 .01": of(line, 10),
    "line, uniform x": of(line, 1, UNIFORM),
    "line, exponential x": of(line, 1, stats.expon()),
    "line, lognormal x": of(line, 1, stats.lognorm(0.5)),
    "line, t5 x": of(line, 1, stats.t(5)),
    "square": of(np.square, 1),
    "square, uniform x": of(np.square, 1, UNIFORM),
    "abs": of(np.abs, 0.5),
    "tanh 5x": of(lambda x: np.tanh(5 * x), 0.5),
    "cube": of(lambda x: x**3, 1),
    "cube, no noise": of(lambda x: x**3),
    "exp x": of(np.exp, 1),
    "exp 2x": of(lambda x: np.exp(2 * x), 1),
    # rough ones
    "sin 3x": of(sin3, 0.5),
    "sin 8x": of(sin8, 0.5),
    "sin 8x, no noise": of(sin8),
    "sin 8x, uniform x": of(sin8, 0.5, UNIFORM),
    "steps": of(steps, 0.5),
    "steps, no noise": of(steps),
    "rare jump": of(lambda x: 3.0 * (x > 2), 0.5),
    # noise of other kinds
    "t3 noise": of(line, t3),
    "exponential noise": of(line, exponential),
    "lognormal noise": of(line, lognormal),
    "noise grows with x0": of(line, lambda X, rng: X[:, 0] * e(X, rng)),
    "noise grows with x1": of(line, lambda X, rng: X[:, 1] ** 2 * e(X, rng)),
    "labels": of(special.expit, change=labels),
    "rare labels": of(lambda x: special.expit(x - 3), change=labels),
    # levels and ties
    "two levels": of(line, 1, np.array([0.5, 0.5])),
    "rare level": of(line, 1, np.array([0.95, 0.05])),
    "five levels": of(np.sin, 1, zipf(5)),
    "twenty levels": of(
        lambda k: np.sin(k) / 2,
        lambda X, rng: np.where(X[:, 1] >= 3, 1.5, 0.5) * e(X, rng),
        zipf(20),
    ),
    "fifty levels, no order": of(wild, 1, zipf(50), options=NOMINAL),
    "fifty levels, weak": of(lambda k: wild(k) / 5, 1, zipf(50), options=NOMINAL),
    "hundred even levels": of(wild, 1, np.full(100, 0.01), options=NOMINAL, least=100),
    "counts": of(np.sqrt, 0.5, stats.binom(30, 0.1).pmf(np.arange(31))),
    "ties": of(lambda k: np.sqrt(k) / 5, exponential, COUNTS),
    "rounded": of(lambda k: k / 10 - 2, 1, stats.binom(40, 0.5).pmf(np.arange(41))),
    "missing": of(line, 1, change=with_missing),
    # weights and units
    "weights": of(line, 1, change=weighted(exponential)),
    "uneven weights": of(line, 1, change=weighted(lognormal)),
    "weights, sin 8x": of(sin8, 0.5, change=weighted(exponential)),
    "survey": Population(
        lambda rng, n: rng.normal(size=(n, 2)) * [1.4, 1], plus(line, 1), [1, 0], change=survey
    ),
    "units of ten": of(line, change=in_units(10, 1), least=100),
    "units of five": of(line, change=in_units(5, 0.5), least=100),
    "uneven units": of(line, change=in_units(5, 0.5, uneven=True), least=100),
    "units and weights": of(line, change=in_units(5, 0.5, weights=True), least=100),
    "units, sin 3x": of(sin3, change=in_units(5, 0.5), least=100),
    # divided by sd(s)
    "standardized, R2 .2": of(line, 2, sd=np.sqrt(5)),
    "standardized, R2 .5": of(line, 1, sd=np.sqrt(2)),
    "standardized, R2 .96": of(line, 0.2, sd=np.sqrt(1.04)),
    "standardized, R2 .99": of(line, 0.1, sd=np.sqrt(1.01)),
    "standardized, t3 noise": of(line, t3, sd=2),
    "standardized, square, no noise": of(np.square, sd=np.sqrt(2)),
    "standardized, five levels": of(np.sin, 1, zipf(5), sd=np.hypot(1, sd_of(np.sin, zipf(5)))),
    # more shapes, tails and spreads
    "noise exp .7x0": of(line, lambda X, rng: np.exp(0.7 * X[:, 0]) * e(X, rng)),
    "noise exp .7x1": normals(
        2, lambda X, rng: X[:, 0] + np.exp(0.7 * X[:, 1]) * e(X, rng), [1, 0]
    ),
    "two modes": of(line, 1, two_modes, Q=np.sqrt(4.25)),
    "two modes, square": of(np.square, 1, two_modes, Q=np.sqrt(4.125)),
    "mixture": of(lambda x: x + 1.5 * (x == 0), 1, in_part(0.4, 0.0), Q=np.sqrt(1.14)),
    "zero inflated": of(line, 1, zero_inflated, Q=0.6),
    "missing matters": of(
        lambda x: np.where(np.isnan(x), 1.5, x), 1, in_part(0.3, np.nan), Q=np.sqrt(1.1725)
    ),
    "Cauchy x, bounded s": of(np.arctan, 0.5, cauchy, Q=np.pi / np.sqrt(12)),
    "Cauchy x, no noise": of(np.arctan, 0, cauchy, Q=np.pi / np.sqrt(12)),
    "cos 5x": of(lambda x: np.cos(5 * x), 0.5),
    "saw": of(lambda x: np.mod(2 * x, 1), 0.3, UNIFORM),
    "rare step": of(lambda x: 5.0 * (x > NORMAL.ppf(0.995)), 0.5, least=300),
    "two percent": of(lambda x: 2.0 * (x > NORMAL.ppf(0.98)), 0.5, least=100),
    "expit 4x, no noise": of(lambda x: special.expit(4 * x)),
    "lognormal s": normals(
        2,
        lambda X, rng: np.exp(X[:, 0] / 2 + e(X, rng) / 2),
        [np.exp(0.125) * np.sqrt(np.expm1(0.25) * np.exp(0.25)), 0],
    ),
    "skewed levels": of(wild, 1, shares(3.0 ** -np.arange(12))),
    "skewed levels, no order": of(wild, 1, shares(2.0 ** -np.arange(12)), options=NOMINAL),
    "counts, whole weights": of(
        np.sqrt,
        0.5,
        shares(stats.poisson(3).pmf(np.arange(30))),
        change=weighted(lambda X, rng: 1.0 + rng.poisson(4, len(X))),
    ),
    "whole weights": of(line, 1, change=weighted(lambda X, rng: rng.integers(1, 11, len(X)))),
    "products too": normals(
        3, lambda X, _: X[:, 0] + X[:, 0] * X[:, 1] + X[:, 0] * X[:, 1] * X[:, 2], [1, 0, 0]
    ),
    "nulls beside strong": Population(
        together,
        lambda X, _: 3 * X[:, 0] + 2 * X[:, 1] ** 2 + np.exp(X[:, 2]),
        [3, np.sqrt(8), np.sqrt(np.expm1(1) * np.e), 0, 0, 0, 0],
    ),
    "pairs of rows": of(line, change=in_units(2, 0.8)),
    "units of three": of(line, change=in_units(3, 0.5, weights=True)),
    "units of four, square": of(np.square, change=in_units(4, 0.5), least=100),
    # ties of features
    "tied": normals(3, plus(two, 1, 2), [1, 1, 0]),
    "tied, no noise": normals(3, plus(two, 0, 2), [1, 1, 0]),
    "tied, correlated": normals(TIED, plus(two, 1, 2), [1.5, 1.5, 0]),
    "tied, weak": normals(3, plus(two, 4, 2), [1, 1, 0]),
    "number and sign": Population(number_and_sign, plus(two, 1, 2), [1, 1, 0]),
    # two scores on the same rows
    "two scores, same noise": normals(2, same_noise, [1, 0.6], [1.2, 0.6]),
    "two scores, own noise": normals(2, own_noise, [1, 0.6], [1, 0.3]),
    "two scores, tails": normals(3, tails, [1, np.sqrt(0.5), 0], [1, np.sqrt(0.5), 0.5]),
    "two scores, two models": normals(3, two_models, [1, 1, 0], [1, 0.5, 1]),
    "two scores, other curves": normals(2, curved_alike, [1, 0], [1, 0.5]),
    "two scores, standardized": normals(
        2,
        own_noise,
        np.array([1, 0.6]) / np.sqrt(2.36),
        np.array([1, 0.3]) / np.sqrt(2.09),
        standardize=True,
    ),
}


def rows_of(name: str) -> pd.DataFrame:
    """Return what is estimated, and its true value: features, pairs of them, both scores."""
    population = POPULATIONS[name]
    truth = {f"x{j}": float(t) for j, t in enumerate(population.truth)}
    rows = [("feature", f, t) for f, t in truth.items()]
    rows += [("pair", f"{a} - {b}", truth[a] - truth[b]) for a, b in combinations(truth, 2)]
    if population.second is not None:
        gaps = zip(truth, np.subtract(population.truth, population.second), strict=True)
        rows += [("scores", f, gap) for f, gap in gaps]
    return pd.DataFrame(rows, columns=["kind", "feature", "truth"]).round({"truth": 12})


def estimates(population: Population, rng: Random, n: int) -> np.ndarray:
    """Return estimate, ends of the interval and p-value of each row, from one sample."""
    X, s, options = population.draw(rng, n)
    results = [firmlib.firm(one, X, **options) for one in (s.T if s.ndim == 2 else [s])]
    if population.standardize:
        results = [result.standardize() for result in results]
    first, ends = results[0], ["difference", "ci_low", "ci_high", "pvalue"]
    table = first.to_frame().loc[list(first.feature_names)]
    found = [table[["importance", "ci_low", "ci_high", "pvalue"]]]
    found += [first.compare(*pair)[ends] for pair in combinations(first.feature_names, 2)]
    if len(results) == 2:
        found.append(firmlib.compare(*results).loc[list(first.feature_names), ends])
    return np.concatenate(found).astype(float)


def simulate(name: str, n: int, repeats: int) -> pd.DataFrame:
    """Return coverage, length, rejections and errors over samples."""
    seeds = [[zlib.crc32(name.encode()), n, repeat] for repeat in range(repeats)]
    found = [estimates(POPULATIONS[name], np.random.default_rng(seed), n) for seed in seeds]
    Q, low, high, pvalue = np.moveaxis(np.array(found), 2, 0)
    table = rows_of(name)
    t = table["truth"].to_numpy()
    table.insert(0, "population", name)
    table.insert(1, "n", n)
    return table.assign(
        repeats=repeats,
        mean=Q.mean(axis=0),
        rmse=np.sqrt(((Q - t) ** 2).mean(axis=0)),
        coverage=((low <= t) & (t <= high)).mean(axis=0),
        length=(high - low).mean(axis=0),
        rejected=(pvalue < 0.05).mean(axis=0),
        nan=np.isnan(Q + low + high + pvalue).mean(axis=0),
    )


def summary(table: pd.DataFrame) -> dict[str, float]:
    """Return how well the intervals cover and the tests reject, all populations together."""
    feature, pair, scores = (table["kind"] == kind for kind in ("feature", "pair", "scores"))
    null = table["truth"] == 0
    nulls = set(table[feature & null][["population", "feature"]].itertuples(index=False, name=None))
    both_null = pair & np.array([
        all((population, one) in nulls for one in name.split(" - "))
        for population, name in zip(table["population"], table["feature"], strict=True)
    ])  # fmt: skip
    covered = table["coverage"][feature & ~null]
    out = {
        "features": len(covered),
        "coverage": covered.mean(),
        "covered < .90": (covered < 0.9).sum(),
        "worst coverage": covered.min(),
    }
    rejected = {
        "size": feature & null,
        "power": feature & ~null,
        "ties": pair & null & ~both_null,
        "null ties": both_null,  # both features are null: then nothing is tied
        "two-score ties": scores & null,
        "pairs, power": pair & ~null,
        "two scores, power": scores & ~null,
    }
    for name, rows in rejected.items():
        out[name] = table["rejected"][rows].mean()
        if "power" not in name:
            out[f"largest, {name}"] = table["rejected"][rows].max()
    out["pairs, coverage"] = table["coverage"][pair & ~both_null].mean()
    out["two scores, coverage"] = table["coverage"][scores].mean()
    return out | {"nan": table["nan"].sum()}


KEYS = ["population", "n", "kind", "feature", "repeats"]


def summaries(table: pd.DataFrame, against: pd.DataFrame | None) -> pd.DataFrame:
    """Return one column per n (and version): summaries, and ratios of errors and lengths."""
    if against is None:
        return pd.DataFrame({str(n): summary(part) for n, part in table.groupby("n")})
    columns, keys = {}, table[KEYS].merge(against[KEYS])
    table, against = keys.merge(table), keys.merge(against)
    for n, now in table.groupby("n"):
        before = against.loc[now.index]
        ratio = now[["rmse", "length"]] / before[["rmse", "length"]]
        some = (now["kind"] == "feature") & (before["rmse"] > 1e-9)  # else nothing to divide by
        real, null = ratio[some & (now["truth"] != 0)], ratio[some & (now["truth"] == 0)]
        columns[str(n)] = summary(now) | {
            "rmse, mean ratio": real["rmse"].mean(),
            "rmse, largest ratio": real["rmse"].max(),
            "rmse of null, mean ratio": null["rmse"].mean(),
            "length, median ratio": real["length"].median(),
        }
        columns[f"{n} against"] = summary(before)
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
