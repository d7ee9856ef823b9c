"""Numbers of firm on fixed samples, kept in golden.csv: a change of the estimator shows here.

`python -m tests.test_golden` keeps them anew. Whether they are good is for benchmarks/intervals.py.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import firmlib
from firmlib import StreamingFirm, firm

FILE = Path(__file__).with_name("golden.csv")
NUMBERS = ["variance", "importances", "signed", "standard_error", "ci_low", "ci_high", "pvalues"]


def sample(n, seed=0):
    """Return a table of numbers, levels, tails, ties and missing values; a score; weights."""
    rng = np.random.default_rng([n, seed])
    x, y, z = rng.normal(size=(3, n))
    level, rare = rng.integers(0, 4, n), np.minimum(rng.geometric(0.3, n), 12)
    columns = {"number": x, "null": y, "tail": np.exp(2 * z), "level": level, "rare": rare}
    columns |= {"tied": np.round(3 * x) / 3, "wiggle": rng.uniform(-2, 2, n)}
    columns["missing"] = np.where(rng.random(n) < 0.2, np.nan, x + y)
    s = x + 0.3 * level + np.log1p(columns["tail"]) / 2 + np.sin(6 * columns["wiggle"])
    return pd.DataFrame(columns), s + 0.5 * rng.normal(size=n), rng.exponential(size=n)


def numbers(result):
    """Return all numbers of a result, by name of feature and number."""
    return {
        f"{name}, {kind}": value
        for kind in NUMBERS
        for name, value in zip(result.feature_names, getattr(result, kind), strict=True)
    }


def compared(table):
    """Return all numbers of a table of differences."""
    return {f"{index}, {name}": v for name in table for index, v in table[name].items()}


def streamed(X, s, w):
    stream = StreamingFirm()
    for rows in np.array_split(np.arange(len(s)), 4):
        stream.partial_fit(X.iloc[rows], s[rows], sample_weight=w[rows])
    return stream.result()


def merged(X, s, w, **options):
    """Return the result of three streams with the same bins, whose scores have other centres."""
    X, s = X.assign(word=np.array(list("dacb"))[X["level"]]), s + np.arange(len(s)) / 100
    X = X.drop(columns="word") if options else X
    pieces = [StreamingFirm(**options).partial_fit(X[:300], s[:300])]
    more = options if options else {"bins": pieces[0].bins}
    for here in (slice(300, 500), slice(500, 1000)):
        one = StreamingFirm(**more)
        pieces.append(one.partial_fit(X[here], s[here], sample_weight=w[here]))
    return pieces[0].merge(pieces[2]).merge(pieces[1]).result()


def cases():
    """Return functions that measure, by name."""
    (X, s, w), (small, t, u) = sample(1000), sample(40)
    (large, r, v), unit = sample(20_000), np.arange(1000) // 5
    other = s + X["null"] / 2 + np.random.default_rng(1).normal(size=1000) / 2
    words = X[["level", "rare"]]
    return {
        "firm": lambda: numbers(firm(s, X)),
        "small": lambda: numbers(firm(t, small)),
        "small, weights": lambda: numbers(firm(t, small, sample_weight=u)),
        "large": lambda: numbers(firm(r, large)),
        "large, weights": lambda: numbers(firm(r, large, sample_weight=v)),
        "weights": lambda: numbers(firm(s, X, sample_weight=w)),
        "units": lambda: numbers(firm(s, X, groups=unit)),
        "units, weights": lambda: numbers(firm(s, X, groups=unit, sample_weight=w)),
        "nominal": lambda: numbers(firm(s, words, categorical=["level", "rare"])),
        "slope": lambda: numbers(firm(s, X, method="slope", missing="drop")),
        "slope, units": lambda: numbers(
            firm(s, X, method="slope", missing="drop", groups=unit, sample_weight=w)
        ),
        "bins": lambda: numbers(firm(s, X, n_bins=7)),
        "drop": lambda: numbers(firm(s, X, missing="drop")),
        "level .8": lambda: numbers(firm(s, X, confidence_level=0.8)),
        "population": lambda: numbers(firm(s, X, rows="population", sample_weight=w)),
        "standardize": lambda: numbers(firm(s, X).standardize()),
        "stream": lambda: numbers(streamed(X, s, w)),
        "merged": lambda: numbers(merged(X, s, w).standardize()),
        "merged slope": lambda: numbers(merged(X, s, w, method="slope", missing="drop")),
        "weight 0": lambda: numbers(
            firm(
                np.where(w < 1, 1e6, s), np.where(w[:, None] < 1, 7, X), sample_weight=w * (w >= 1)
            )
        ),
        "compare": lambda: compared(firm(s, X).compare()),
        "ranks": lambda: compared(firm(s, X).ranks()),
        "holm": lambda: dict(enumerate(firm(s, X).pvalues_adjusted())),
        "bh": lambda: dict(enumerate(firm(s, X).pvalues_adjusted("bh"))),
        "two scores": lambda: compared(firmlib.compare(firm(s, X), firm(other, X))),
        "two samples": lambda: compared(firmlib.compare(firm(s, X), firm(r, large))),
        "curve": lambda: compared(
            firmlib.conditional_expected_score(s, X, "number").to_frame().reset_index(drop=True)
        ),
    }


def measured(name):
    found = {f"{name}: {k}": float(v) for k, v in cases()[name]().items() if np.isreal(v)}
    return pd.Series(found, name="value", dtype=float)


@pytest.mark.parametrize("name", cases())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_numbers_are_those_that_were_kept(name):
    kept = pd.read_csv(FILE, index_col=0)["value"]
    kept = kept[kept.index.str.startswith(f"{name}: ")]
    found = measured(name)
    assert list(found.index) == list(kept.index)
    np.testing.assert_allclose(found, kept, rtol=1e-6, atol=1e-9)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore", UserWarning)
    pd.concat([measured(name) for name in cases()]).to_csv(FILE, float_format="%.10g")
