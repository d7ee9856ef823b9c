"""Do 95 % intervals cover, and does the 5 % test keep its size? python benchmarks/intervals.py

Many samples of populations whose importances are known; of each sample the estimate, interval and
test of `firm`, and those of the first version ("before": the U-statistic in bins with the interval
of its square root, which knows of no units, no levels without order, and takes weights for counts).
The first feature has an effect, the last one has none, unless a population says otherwise.
--csv FILE keeps the table, --only NAME runs some populations.
"""

import argparse
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats
from tqdm import tqdm

from firmlib import firm
from firmlib._bins import find_bins
from firmlib._inference import brown_forsythe

SIZES = (30, 100, 300, 1000, 10_000)
Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, dict]]


class Population(NamedTuple):
    """How to draw rows, scores and options of `firm`; the importances; the fewest rows."""

    draw: Draw
    truth: list[float]
    least: int = 30


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
    truth = firm(score, table, sample_weight=weight, rows="population").importances
    return Population(draw, np.abs(truth).round(12).tolist())


def interaction() -> Population:
    """s = x0 x1 + noise: both are null alone."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, dict]:
        X = rng.normal(size=(n, 2))
        return X, X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n), {}

    return Population(draw, [0.0, 0.0])


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
}


class Found(NamedTuple):
    """Of each feature: |Q|, the ends of its interval, and the p-value."""

    Q: np.ndarray
    low: np.ndarray
    high: np.ndarray
    pvalue: np.ndarray


def after(X: np.ndarray, s: np.ndarray, options: dict) -> Found:
    """Return what `firm` says."""
    result = firm(s, X, **options)
    ends = result.intervals()
    low, high = ends["ci_low"].to_numpy(), ends["ci_high"].to_numpy()
    return Found(np.abs(result.importances), low, high, result.pvalues)


def before(X: np.ndarray, s: np.ndarray, options: dict) -> Found:
    """Return what version 0.1 said: V +- z se of the U-statistic in bins, and the test of these."""
    w = options.get("sample_weight", np.ones(len(s)))
    s = s / s.std(ddof=1) if options.get("standardize") else s
    return Found(*np.array([_before(f, s, w) for f in X.T]).T)


def _before(f: np.ndarray, s: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
    _, index = find_bins(f, w, method="auto", rows="sample", n_bins="auto")
    W, r = w.sum(), s - w @ s / w.sum()
    n, wr, wrr = (np.bincount(index, a) for a in (w, w * r, w * r**2))
    n, wr, wrr = (a[n > 0] for a in (n, wr, wrr))
    if len(n) == 1:
        return 0.0, 0.0, 0.0, 1.0
    m, paired = wr / n, n > 2 - 1e-9
    squares, df = np.maximum(wrr - wr * m, 0), np.where(paired, n - 1, 0.0)
    pooled = squares[paired].sum() / max(df.sum(), 1e-300)
    v = np.where(paired, squares / np.where(paired, df, 1.0), pooled)
    V = n @ m**2 / W - (v.sum() - wrr.sum() / (W - 1)) / W
    vv = (v**2 * np.maximum(n - 1, 1) / (n + 1)).sum()
    slope, bend = 4 * n @ (v * m**2), n @ (m**2 - n @ m**2 / W) ** 2
    error = np.sqrt(max(slope - 4 * vv, 0) + bend + 2 * vv) / W
    Q, noise, z = np.sqrt(max(V, 0)), n @ v / W**2, special.ndtri(0.975)
    half = z * error / (2 * max(Q, np.sqrt(error), 1e-300))
    wide = np.sqrt(max(V + z * error, 0)), np.sqrt(max(V + noise, 0)) + z * np.sqrt(noise)
    return Q, max(Q - half, 0), max(Q + half, *wide), float(brown_forsythe(n, m, v, n))


def simulate(name: str, n: int, repeats: int) -> pd.DataFrame:
    """Return coverage, width, rejections and errors over samples, one row per feature."""
    draw, truth, _ = POPULATIONS[name]
    rng, truth = np.random.default_rng(n), np.array(truth)
    found: dict[str, list[Found]] = {"": [], " before": []}
    for _ in range(repeats):
        sample = draw(rng, n)
        found[""].append(after(*sample))
        found[" before"].append(before(*sample))
    table = {"population": name, "n": n, "feature": [f"x{j}" for j in range(len(truth))]}
    table |= {"truth": truth, "repeats": repeats}
    real = truth > 0
    for when, samples in found.items():
        Q, low, high, pvalue = (np.array(a) for a in zip(*samples, strict=True))
        inside = ((low <= truth) & (truth <= high)).mean(axis=0)
        table |= {
            f"mean{when}": Q.mean(axis=0),
            f"rmse{when}": np.sqrt(((Q - truth) ** 2).mean(axis=0)),
            f"coverage{when}": np.where(real, inside, np.nan),
            f"above 0{when}": np.where(real, np.nan, (low > 0).mean(axis=0)),
            f"width{when}": (high - low).mean(axis=0),
            f"rejected{when}": (pvalue < 0.05).mean(axis=0),
        }
    return pd.DataFrame(table)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per n: how many features are covered too rarely, sizes, widths, errors."""
    rows = {}
    for n, part in table.groupby("n"):
        real, null = part[part["truth"] > 0], part[part["truth"] == 0]
        ratio, width = (real[k] / real[f"{k} before"] for k in ("rmse", "width"))
        rows[n] = {"features with an effect": len(real), "without": len(null)}
        for when in (" before", ""):
            rows[n] |= {
                f"cover less than .90{when}": (real[f"coverage{when}"] < 0.9).sum(),
                f"median coverage{when}": real[f"coverage{when}"].median(),
                f"largest size{when}": null[f"rejected{when}"].max(),
                f"most above 0{when}": null[f"above 0{when}"].max(),
                f"mean power{when}": real[f"rejected{when}"].mean(),
            }
        rows[n] |= {
            "width, ratio": width.median(),
            "rmse, ratio": ratio.median(),
            "rmse, largest ratio": ratio.max(),
            "rmse more than 1.05 times": (ratio > 1.05).sum(),
        }
    return pd.DataFrame(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=100, help="samples of each population")
    parser.add_argument("--csv", help="where to keep the table")
    parser.add_argument("--only", nargs="+", default=list(POPULATIONS), help="some populations")
    arguments = parser.parse_args()
    tables = []
    for n in SIZES:
        for name in tqdm(arguments.only, desc=f"n = {n}", leave=False):
            if n >= POPULATIONS[name].least:
                tables.append(simulate(name, n, arguments.repeats))
        if arguments.csv:
            sofar = pd.concat(tables, ignore_index=True)
            sofar.to_csv(arguments.csv, index=False, float_format="%.4g")
    table = pd.concat(tables, ignore_index=True)
    print(table.round(3).to_string())
    print(summary(table).round(3).to_string())
    print(f"standard error of a share near 5 %: {np.sqrt(0.05 * 0.95 / arguments.repeats):.4f}")
