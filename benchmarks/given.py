"""Do features that add nothing stay silent, and are real ones found? python benchmarks/given.py

Many samples of situations in which E[s | f, g] is known: `given` with null and real effects,
wiggly, stepped, noise-free and with unequal noise; groups of columns; interactions. For each the
share of tests with p < 0.05, the mean of V and its true value. --repeats, --rows and --only choose.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from firmlib import firm
from firmlib.features import Pairs


class Situation(NamedTuple):
    """The score of columns f, a, b and noise e; the proxy f; what is asked; the true V."""

    score: Callable
    proxy: Callable = lambda a, b, u: u
    ask: dict = {"features": [0], "given": [1, 2]}  # noqa: RUF012
    truth: float = 0.0


GROUP = {"features": {"f, a": [0, 1]}}
INTERACTION = {"features": Pairs("interaction")}
SITUATIONS = {
    "null: sin 3a": Situation(
        lambda f, a, b, e: np.sin(3 * a) + b, lambda a, b, u: np.sin(3 * a) + 0.3 * u
    ),
    "null: sin 3a, noise": Situation(
        lambda f, a, b, e: np.sin(3 * a) + b + 0.5 * e, lambda a, b, u: np.sin(3 * a) + 0.3 * u
    ),
    "null: sin 5a, noise": Situation(
        lambda f, a, b, e: np.sin(5 * a) + 0.5 * e, lambda a, b, u: np.sin(5 * a) + 0.5 * u
    ),
    "null: linear": Situation(lambda f, a, b, e: a + e, lambda a, b, u: a + 0.5 * u),
    "null: square": Situation(lambda f, a, b, e: a**2 + a, lambda a, b, u: a + 0.5 * u),
    "null: product": Situation(lambda f, a, b, e: a * b + 0.3 * e, lambda a, b, u: a * b + 0.5 * u),
    "null: product, no noise": Situation(lambda f, a, b, e: a * b, lambda a, b, u: a * b + 0.5 * u),
    "null: step": Situation(
        lambda f, a, b, e: (a > 0.5) + 0.3 * e, lambda a, b, u: a + 0.3 * u > 0.5
    ),
    "null: two steps": Situation(
        lambda f, a, b, e: (a > 0.5) * (b > 0), lambda a, b, u: a + 0.3 * u > 0.5
    ),
    "null: independent": Situation(lambda f, a, b, e: a + b + e),
    "null: unequal noise": Situation(
        lambda f, a, b, e: a + np.exp(0.7 * a) * e, lambda a, b, u: a + u
    ),
    "null: exp": Situation(lambda f, a, b, e: np.exp(a) + 0.5 * e, lambda a, b, u: np.exp(a) + u),
    "real: sum": Situation(lambda f, a, b, e: a + f + e, truth=1.0),
    "real: correlated": Situation(
        lambda f, a, b, e: a + 0.5 * f + e, lambda a, b, u: (a + u) / np.sqrt(2), truth=0.125
    ),
    "real: product": Situation(lambda f, a, b, e: f * a + e, truth=1.0),
    "real: weak": Situation(lambda f, a, b, e: a + 0.2 * f + e, truth=0.04),
    "real: sin 2f": Situation(
        lambda f, a, b, e: np.sin(3 * a) + 0.5 * np.sin(2 * f) + 0.5 * e, truth=0.125
    ),
    "real: three-way": Situation(lambda f, a, b, e: f * a * b, truth=1.0),
    "group: null": Situation(lambda f, a, b, e: b + e, ask=GROUP),
    "group: product": Situation(lambda f, a, b, e: f * a + b, ask=GROUP, truth=1.0),
    "pairs: additive": Situation(
        lambda f, a, b, e: f + b, lambda a, b, u: a * b + u, ask=INTERACTION
    ),
    "pairs: additive, noise": Situation(
        lambda f, a, b, e: a**2 + np.sin(2 * a) + f + 0.3 * e,
        lambda a, b, u: 0.8 * a + 0.6 * u,
        ask=INTERACTION,
    ),
    "pairs: weak": Situation(lambda f, a, b, e: 0.2 * f * a + a + b, ask=INTERACTION, truth=0.04),
}


def measure(name: str, n: int, repeats: int) -> dict:
    """Return the share of rejections, V and seconds of a situation; of pairs, those of f and a."""
    situation, found, start = SITUATIONS[name], [], time.process_time()
    for seed in range(repeats):
        a, b, u, e = np.random.default_rng([seed, n]).normal(size=(4, n))
        f = 1.0 * situation.proxy(a, b, u)
        result = firm(
            1.0 * situation.score(f, a, b, e), np.column_stack([f, a, b]), **situation.ask
        )
        found.append([result.pvalues[0] < 0.05, result.variance[0]])
    rejected, V = np.mean(found, axis=0)
    seconds = (time.process_time() - start) / repeats
    columns = ("situation", "n", "rejected", "V", "truth", "seconds")
    return dict(zip(columns, (name, n, rejected, V, situation.truth, seconds), strict=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*rows are few")
    names = [name for name in SITUATIONS if options.only in name]
    rows = [measure(name, n, options.repeats) for n in options.rows for name in names]
    print(pd.DataFrame(rows).round(3).to_string(index=False))
