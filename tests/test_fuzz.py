"""Random tables against brute force: groupby, enumeration, plain sums; nothing of firmlib inside.

The fast test takes some tables, the slow one has a budget of seconds (FUZZ_SECONDS, 60 by default)
and a seed that it prints (FUZZ_SEED). A failure names the seed of its table.
"""

import os
import time
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from firmlib import StreamingFirm, conditional_expected_score, features, firm

KINDS = {  # of few levels: below sqrt(n) even of the rows that are known and count
    "two": lambda rng, codes: (rng.random(len(codes)) < rng.uniform(0.1, 0.9)).astype(float),
    "levels": lambda rng, codes: codes * rng.choice([1.0, -2.5, 1e-9, 1e12]),
    "rare": lambda rng, codes: np.minimum(rng.geometric(0.5, len(codes)), codes.max() + 1),
    "words": lambda rng, codes: rng.permutation([f"w{c}" for c in range(99)]).astype(object)[codes],
    "missing": lambda rng, codes: np.where(rng.random(len(codes)) < 0.3, np.nan, codes),
    "dates": lambda rng, codes: np.datetime64("2020-01-01", "s") + codes * np.timedelta64(36, "h"),
    "flags": lambda rng, codes: rng.random(len(codes)) < 0.3,
    "constant": lambda rng, codes: np.full(len(codes), 3),
}


def table(rng):
    """Return a frame of random columns, scores that depend on some, weights or None."""
    n, columns = int(rng.integers(20, 300)), {}
    for j, kind in enumerate(rng.choice(list(KINDS), 4)):
        codes = rng.integers(0, rng.integers(2, max(3, int(0.6 * np.sqrt(n)))), n)
        columns[f"{kind}{j}"] = KINDS[kind](rng, codes)
    frame = pd.DataFrame(columns)
    s = rng.normal(size=n) * rng.choice([0.1, 1.0])
    for name in frame:
        code = pd.factorize(frame[name], use_na_sentinel=False)[0]
        s = s + rng.normal(size=code.max() + 1)[code] * rng.choice([0, 1])
    s = s * 10.0 ** rng.integers(-3, 4) + rng.choice([0, 100])
    w = [None, rng.integers(1, 6, n), rng.exponential(size=n)][rng.integers(3)]
    if w is not None and rng.random() < 0.3:
        w = w * (rng.random(n) < 0.8)
    return frame, s, w


def u_statistic(s, f, w):
    """Return V of levels: sum_b p_b (m_b^2 - e_b) less the same of all rows as one bin."""
    w = np.ones(len(s)) if w is None else np.asarray(w, dtype=float)
    there = w > 0
    rows = pd.DataFrame({"f": np.asarray(f)[there], "w": w[there], "s": s[there]})
    rows["r"] = rows["s"] - np.average(rows["s"], weights=rows["w"])

    def squares(groups):
        bins = []
        for _, part in groups:
            W, WW = part["w"].sum(), (part["w"] ** 2).sum()
            m, SS = (part["w"] * part["r"]).sum() / W, ((part["w"] * part["r"]) ** 2).sum()
            e = (SS - m**2 * WW) / (W**2 - WW) if len(part) > 1 else np.nan
            bins.append((W, m, e, W**2 / WW))
        W, m, e, n = np.array(bins).T
        df = np.where(np.isnan(e), 0, n - 1)
        pooled = max(np.nansum(df * e * n) / max(df.sum(), 1e-300), 0)
        return (W / W.sum()) @ (m**2 - np.where(np.isnan(e), pooled, e))

    levels = squares(rows.groupby("f", dropna=False))
    return levels - squares([("all", rows)])


def levels_of(s, f, w):
    """Return the share and the mean of each level."""
    rows = pd.DataFrame({"f": np.asarray(f), "w": 1.0 if w is None else w, "s": s})
    rows = rows[rows["w"] > 0].assign(ws=lambda t: t["w"] * t["s"])
    sums = rows.groupby("f", dropna=False)[["w", "ws"]].sum()
    return sums["w"] / sums["w"].sum(), sums["ws"] / sums["w"]


def enumerated(s, f, w):
    """Return V of a population: the variance of the means of its levels."""
    p, q = levels_of(s, f, w)
    return float(p @ (q - p @ q) ** 2)


def slope(s, f, w):
    """Return the slope of a regression line times the sd of f, without missing values."""
    w = np.ones(len(s)) if w is None else w
    there = ~np.isnan(f) & (w > 0)
    s, f, w = s[there], f[there], w[there] / w[there].sum()
    f, s = f - w @ f, s - w @ s
    variance = w @ f**2
    return w @ (f * s) / np.sqrt(variance) if variance > 1e-12 * np.ptp(f) ** 2 else 0.0


def check(seed):
    """Compare firmlib with brute force on one random table."""
    rng = np.random.default_rng(seed)
    frame, s, w = table(rng)
    unit = np.var(s)
    say = f"table {seed}: {list(frame.columns)}, {len(s)} rows"

    def agree(found, expected, what):
        np.testing.assert_allclose(
            found, expected, rtol=1e-7, atol=1e-9 * unit, err_msg=f"{say}, {what}"
        )

    result = firm(s, frame, sample_weight=w)
    agree(result.variance, [u_statistic(s, frame[c], w) for c in frame], "sample")
    agree(result.importances**2, np.maximum(result.variance, 0), "importances")
    missing = [np.average(frame[c].isna(), weights=w) for c in frame]
    np.testing.assert_allclose(result.missing, missing, atol=1e-9, err_msg=say)
    whole = firm(s, frame, rows="population", sample_weight=w)
    agree(whole.variance, [enumerated(s, frame[c], w) for c in frame], "population")
    stream = StreamingFirm(bins=StreamingFirm().partial_fit(frame, s, sample_weight=w).bins)
    cuts = np.sort(rng.integers(0, len(s) + 1, 3))
    for a, b in pairwise([0, *cuts, len(s)]):
        part = None if w is None else w[a:b]
        stream.partial_fit(frame.iloc[a:b], s[a:b], sample_weight=part)
    agree(stream.result().variance, result.variance, "stream")
    joint(frame, s, w, agree)
    curve(frame, s, w, agree)
    numbers(rng, s, w, agree)


def cells(frame, a, b):
    """Return a number for each pair of levels of two columns."""
    code = {c: pd.factorize(frame[c], use_na_sentinel=False)[0] for c in (a, b)}
    return code[a] * (code[b].max() + 1) + code[b]


def joint(frame, s, w, agree):
    """Groups and conjunctions of a population are levels of several columns."""
    a, b = list(frame)[:2]
    group = firm(s, frame, {"both": [a, b]}, rows="population", sample_weight=w)
    agree(group.variance[0], enumerated(s, cells(frame, a, b), w), "group")
    first = {c: frame[c].dropna().iloc[0] for c in (a, b)}
    both = features.conjunction(first)
    holds = (frame[a] == first[a]) & (frame[b] == first[b])
    found = firm(s, frame, both, rows="population", sample_weight=w)
    agree(found.variance[0], enumerated(s, holds, w), "conjunction")


def curve(frame, s, w, agree):
    """The curve of levels is that of groupby."""
    name = frame.columns[0]
    found = conditional_expected_score(s, frame, name, sample_weight=w)
    p, q = levels_of(s, frame[name], w)
    order, mine = np.lexsort((p, q)), np.lexsort((found.p, found.q))
    agree(np.asarray(found.q)[mine], q.to_numpy()[order], "curve")
    agree(np.asarray(found.p)[mine], p.to_numpy()[order], "shares")


def numbers(rng, s, w, agree):
    """Numbers: k bins of equal rank are those of qcut, and the slope is that of regression."""
    k = int(rng.integers(2, 8))
    n = len(s) // k * k
    f = rng.permutation(n) ** rng.choice([1, 3]) * rng.choice([1.0, -1e-6])
    found = firm(s[:n], f[:, None], n_bins=k)
    agree(found.variance[0], u_statistic(s[:n], pd.qcut(f, k, labels=False), None), "n_bins")
    f = np.where(rng.random(len(s)) < 0.1, np.nan, rng.normal(size=len(s)) + s / (1 + np.std(s)))
    found = firm(s, f[:, None], method="slope", missing="drop", sample_weight=w)
    agree(found.signed[0], slope(s, f, w), "slope")
    whole = firm(s, f[:, None], rows="population", sample_weight=w)
    agree(whole.variance[0], enumerated(s, f, w), "population of numbers")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_random_tables(seed):
    check(seed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_given_columns_of_a_population(seed):
    """What a column adds is the V of both less that of the given one."""
    frame, s, w = table(np.random.default_rng(seed))
    a, b = list(frame)[:2]
    found = firm(s, frame, [a], given=[b], rows="population", sample_weight=w)
    V = enumerated(s, cells(frame, a, b), w) - enumerated(s, frame[b], w)
    np.testing.assert_allclose(found.variance[0], V, rtol=1e-7, atol=1e-9 * np.var(s))


@pytest.mark.slow
def test_many_random_tables(capsys):
    first = int(os.environ.get("FUZZ_SEED", np.random.default_rng().integers(2**31)))
    end = time.monotonic() + float(os.environ.get("FUZZ_SECONDS", "60"))
    failures, k = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        while time.monotonic() < end and len(failures) < 5:
            try:
                check(first + k)
            except Exception as error:
                failures.append(f"{first + k}: {type(error).__name__}: {error}")
            k += 1
    with capsys.disabled():
        print(f"\n{k} random tables, FUZZ_SEED={first}")
    assert not failures, "\n\n".join(failures)
