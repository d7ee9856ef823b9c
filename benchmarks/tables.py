"""How fast is FIRM on a table as it comes? python benchmarks/tables.py

Ten times the 30 000 flights of `firmlib.datasets.flights`, drawn with replacement: words, a date,
numbers, missing values. Boosted trees that take categories and missing values as they are; XGBoost
and CatBoost if installed. One pass of predictions against FIRM of all columns, with intervals and
tests; the means of every level of `dest` are compared with those of pandas' groupby.
"""

import argparse
import os
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from timing import Row, cpu_seconds, show

from firmlib import firm
from firmlib.datasets import flights

WORDS = ["carrier", "origin", "dest"]


def models() -> Iterator[tuple[str, object]]:
    """As many trees as each package makes by default, of those that are installed."""
    yield "scikit-learn", HistGradientBoostingClassifier(early_stopping=False)
    yield "LightGBM", LGBMClassifier(n_jobs=1, verbose=-1)
    try:
        from xgboost import XGBClassifier

        yield "XGBoost", XGBClassifier(n_estimators=100, enable_categorical=True, n_jobs=1)
    except ImportError:
        print("XGBoost is not installed")
    try:
        from catboost import CatBoostClassifier

        options = {"allow_writing_files": False, "thread_count": 1, "verbose": 0}
        yield "CatBoost", CatBoostClassifier(cat_features=WORDS, **options)
    except ImportError:
        print("CatBoost is not installed")


def rows(n: int = 300_000) -> Iterator[Row]:
    X, delay = flights()
    used = [c for c in X if not pd.api.types.is_datetime64_any_dtype(X[c])]
    many = X.iloc[np.random.default_rng(0).integers(0, len(X), n)].reset_index(drop=True)
    for name, model in models():
        model.fit(X[used], ~(delay < 15))  # 15 minutes late, or not at all

        def score(X: pd.DataFrame, model=model) -> np.ndarray:
            return model.predict_proba(X[used])[:, 1].astype(float)

        one = cpu_seconds(lambda score=score: score(many), 2)
        ours = cpu_seconds(lambda score=score: firm(score, many), 2)
        s = score(many)
        alone = cpu_seconds(lambda s=s: firm(s, many), 2)
        curve = firm(s, many).curves["dest"]
        by_level = pd.Series(s).groupby(many["dest"], observed=True).mean()
        np.testing.assert_allclose(curve.q, by_level[curve.t].to_numpy(), rtol=1e-9)
        yield Row(f"{name}: one pass of predictions, {n:.0e} × {X.shape[1]}", one)
        yield Row(f"{name}: FIRM", ours, ratio=ours / one, to="a pass", target=1.5)
        yield Row(f"{name}: FIRM, given the scores", alone)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300_000)
    show(rows(parser.parse_args().rows))
