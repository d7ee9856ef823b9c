"""The laws of the measure, each once, for every way to it: over public names only.

A way takes scores (n,), a table with columns number, level, group, and options, and returns a
FirmResult. `same` compares two results; what a law lets change is said there.
"""

import importlib
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from firmlib import StreamingFirm, features, firm, firm_by_class, search

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # few rows; constant columns

# The ways


def stream(s, X, sample_weight=None, groups=None, parts=1, **options):
    """Return the result of a stream over some chunks of rows, with the bins of all rows."""
    one = StreamingFirm(**options)
    if parts > 1 and "bins" not in options:
        one = StreamingFirm(bins=one.partial_fit(X, s, groups=groups).bins, **options)
    for rows in np.array_split(np.arange(len(s)), parts):
        more = {"sample_weight": sample_weight, "groups": groups}
        more = {k: np.asarray(v)[rows] for k, v in more.items() if v is not None}
        one.partial_fit(taken(X, rows), s[rows], **more)
    return one.result()


def taken(X, rows):
    """Return some rows of a table of any kind."""
    return X.take(rows) if hasattr(X, "columns") and hasattr(X, "take") else X[rows]


WAYS = {
    "firm": firm,
    "slope": lambda s, X, **o: firm(s, X, method="slope", **{"missing": "drop"} | o),
    "bins": lambda s, X, **o: firm(s, X, n_bins=4, **o),
    "population": lambda s, X, **o: firm(s, X, rows="population", **o),
    "stream": stream,
    "by class": lambda s, X, **o: firm_by_class(np.column_stack([s, -2 * s]), X, **o)[0],
    "group": lambda s, X, **o: firm(s, X, {"both": names(X)[:2]}, **o),
    "given": lambda s, X, **o: firm(s, X, names(X)[:2], given=names(X)[2:3], **o),
    "interaction": lambda s, X, **o: firm(s, X, features.Pairs("interaction"), **o),
    "search": lambda s, X, **o: search(s, X, order=1, n=2, **o),
}
QUICK = ["firm", "slope", "bins", "population", "stream", "by class"]
LEARNT = ["group", "given", "interaction"]
"""These split the rows, so that their order may move V, but by less than its error."""


def names(X):
    """Return the columns of a table as `features` takes them."""
    if hasattr(X, "column_names"):
        return list(X.column_names)
    return list(X.columns) if hasattr(X, "columns") else list(range(X.shape[1]))


# Samples: small ones of every kind for hypothesis, one of 300 rows for ways that learn


class Sample(NamedTuple):
    """Scores; a number, a level and a group of each row; weights."""

    s: np.ndarray
    X: np.ndarray
    w: np.ndarray

    def of(self, rows):
        return Sample(*(a[rows] for a in self))


def sample(seed, n, ties=False, missing=False):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n), rng.integers(0, 3, n)])
    X[:, 0] += X[:, 2] / 2
    if ties:
        X[:, 0] = np.round(X[:, 0])
    s = X[:, 0] + X[:, 1] * (X[:, 2] == 1) + 0.5 * rng.normal(size=n)
    if missing:
        X[rng.random(n) < 0.2, 0] = np.nan
    return Sample(s, X, rng.integers(1, 9, n) / 4)


samples = st.builds(
    sample, st.integers(0, 2**32), st.integers(12, 60), st.booleans(), st.booleans()
)
LARGE = sample(1, 400, missing=True)
every_way = pytest.mark.parametrize("way", WAYS)
quick_ways = pytest.mark.parametrize("way", QUICK)
few = settings(max_examples=12)


def same(a, b, factor=1.0, errors=1.0, V=1e-9, direction=1, standardized=True):
    """Check that two results are the same up to rounding, if score b is multiplied by `factor`.

    errors : by which factor errors may differ; if that is not 1, tests and intervals may, too.
    V : by how much V may differ, of the largest V, or "error": by the standard error of Q.
    """
    assert list(a.feature_names) == list(b.feature_names)
    if V == "error":
        gap = np.abs(a.importances - b.importances)
        assert (gap <= np.fmax(a.standard_error, b.standard_error) + 1e-9).all(), gap
    else:
        unit = np.nanmax(np.abs(b.variance)) * factor**2
        close(a.variance, b.variance * factor**2, V, V * unit + 1e-30)
        close(a.importances**2, b.importances**2 * factor**2, V, V * unit + 1e-30)
        clear = np.abs(b.variance) * factor**2 > 1e-6 * unit
        np.testing.assert_array_equal(a.direction[clear], direction * b.direction[clear])
        if standardized:
            close(a.standardized[clear], b.standardized[clear], 1e-6)
    strong = (b.importances > 3 * b.standard_error) & (b.standard_error > 1e-9 * b.importances)
    ratio = a.standard_error[strong] / (b.standard_error[strong] * factor)
    if errors != 1:
        assert ((1 / errors < ratio) & (ratio < errors)).all(), ratio
        return
    close(ratio, np.ones(len(ratio)), 1e-6)
    close(a.pvalues, b.pvalues, 1e-5, 1e-12)
    unit = np.nanmax(np.append(b.ci_high * factor, 0)) ** 2
    for end in ("ci_low", "ci_high"):  # roots of what may be 0 up to rounding
        close(getattr(a, end) ** 2, (getattr(b, end) * factor) ** 2, 1e-5, 1e-7 * unit)


def close(a, b, rtol, atol=0.0):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


# Nothing


@every_way
def test_what_is_constant_has_importance_0(way):
    s, X, w = LARGE  # the mean of 400 times 0.1 is not 0.1, which must not show
    flat = np.column_stack([np.full(400, 0.1), np.full(400, 1e100 / 3), X[:, 2]])
    result = WAYS[way](s, flat, sample_weight=w)
    constant = [j for j, name in enumerate(result.feature_names) if "x2" not in name]
    if way == "interaction":
        constant = range(len(result.feature_names))
    for j in constant:
        assert result.importances[j] == result.signed[j] == 0
        assert result.pvalues[j] == 1 or way == "population"
    if way != "search":  # which refuses to search for nothing
        flat_score = WAYS[way](np.full(400, 1e6 / 3), X, sample_weight=w)
        assert not flat_score.importances.any()
        assert not flat_score.standardized.any()


# Rows


@every_way
@pytest.mark.parametrize("n", [400, 30_000, 70_000])
def test_the_order_of_many_rows_does_not_matter(way, n):
    if way == "search" or (n > 400 and way not in QUICK):
        pytest.skip("halves are drawn anew" if way == "search" else "slow")
    rows = sample(2, n, missing=True)
    order = np.random.default_rng(0).permutation(n)
    a, b = (WAYS[way](r.s, r.X, sample_weight=r.w) for r in (rows.of(order), rows))
    same(a, b, errors=2, V="error" if way in LEARNT else 1e-9)
    sorted_rows = rows.of(np.argsort(rows.X[:, 0], kind="stable"))
    c = WAYS[way](sorted_rows.s, sorted_rows.X, sample_weight=sorted_rows.w)
    same(c, b, errors=2, V="error" if way in LEARNT else 1e-9)


@every_way
def test_units_may_come_in_any_order(way):
    rows, unit = LARGE, np.arange(400) // 4
    order = np.random.default_rng(0).permutation(400)
    if way in ("population", "search"):
        pytest.skip("no errors, or other halves")
    a = WAYS[way](rows.s, rows.X, groups=unit)
    b = WAYS[way](rows.s[order], rows.X[order], groups=unit[order])
    same(b, a, errors=2, V="error" if way in LEARNT else 1e-9)


def test_copies_of_rows_in_one_unit_add_nothing():
    rows = sample(5, 200, ties=True)
    X, unit = rows.X[:, 1:], np.arange(200)
    twice = np.repeat(unit, 3)
    a, b = firm(rows.s, X, groups=unit), firm(rows.s[twice], X[twice], groups=twice)
    same(b, a, errors=1.1)
    rows = sample(5, 200)
    a, b = firm(rows.s, rows.X, groups=unit), firm(rows.s[twice], rows.X[twice], groups=twice)
    same(b, a, errors=1.1)  # nor do they make bins finer


# Weights


@quick_ways
@given(samples, st.sampled_from([0.125, 3.0, 1e6, 1e-9]))
def test_the_scale_of_weights_does_not_matter(way, rows, scale):
    a = WAYS[way](rows.s, rows.X, sample_weight=rows.w)
    same(WAYS[way](rows.s, rows.X, sample_weight=scale * rows.w), a)


@quick_ways
@given(samples, st.integers(1, 7))
def test_equal_weights_are_none(way, rows, weight):
    a = WAYS[way](rows.s, rows.X)
    same(WAYS[way](rows.s, rows.X, sample_weight=np.full(len(rows.s), weight)), a)


@quick_ways
@given(samples, st.integers(0, 2**32))
def test_a_row_of_weight_0_is_absent(way, rows, seed):
    keep = np.random.default_rng(seed).random(len(rows.s)) < 0.7
    keep[:8] = True
    left = rows.of(keep)
    a = WAYS[way](left.s, left.X, sample_weight=left.w)
    s, X = np.where(keep, rows.s, 1e10), np.where(keep[:, None], rows.X, -1e9)
    same(WAYS[way](s, X, sample_weight=rows.w * keep), a, errors=5)


@pytest.mark.parametrize("way", [*LEARNT, "search"])
def test_weights_of_ways_that_learn(way):
    s, X, w = LARGE
    a = WAYS[way](s, X, sample_weight=w)
    same(WAYS[way](s, X, sample_weight=4096 * w), a, V=1e-6, errors=1.01)
    more = Sample(np.r_[s, s], np.r_[X, X[::-1]], np.r_[w, 0 * w])
    if way != "search":
        same(WAYS[way](*more[:2], sample_weight=more.w), a, V="error", errors=2)


@given(samples)
def test_weights_of_a_population_are_repetitions(rows):
    k = (4 * rows.w).astype(int)
    for options in ({}, {"method": "slope"}):
        a = firm(rows.s, rows.X, rows="population", sample_weight=k, **options)
        repeated = firm(
            np.repeat(rows.s, k), np.repeat(rows.X, k, axis=0), rows="population", **options
        )
        same(a, repeated)


# Chunks


@pytest.mark.parametrize("method", ["auto", "slope"])
@given(samples, st.integers(1, 6), st.randoms(use_true_random=False))
@few
def test_parts_merge_in_any_order_to_one_pass(method, rows, parts, random):
    options = {"method": method, "missing": "drop"}
    s, number = rows.s + np.arange(len(rows.s)), rows.X[:, 0]  # centres of parts differ
    X = pd.DataFrame({"number": number, "level": rows.X[:, 1], "tied": np.round(number)})
    X = X if method == "slope" else X.assign(word=np.array(list("dacb"))[rows.X[:, 1].astype(int)])
    whole = StreamingFirm(**options).partial_fit(X, s, sample_weight=rows.w)
    options["bins"] = whole.bins
    pieces = [
        StreamingFirm(**options).partial_fit(X.iloc[i], s[i], sample_weight=rows.w[i])
        for i in np.array_split(np.arange(len(s)), parts)
    ]
    random.shuffle(pieces)
    while len(pieces) > 1:
        other = pieces.pop(random.randrange(1, len(pieces)))
        pieces[0].merge(other)
    same(pieces[0].result(), whole.result(), errors=5, V=1e-8)


@pytest.mark.parametrize("parts", [1, 7])
@pytest.mark.parametrize("options", [{}, {"n_bins": 8}, {"rows": "population"}], ids=str)
def test_a_stream_is_the_batch(parts, options):
    rows = sample(4, 3000, missing=True)
    if options.get("rows") == "population":
        rows = rows._replace(X=rows.X[:, 1:])
    for weights in ({}, {"sample_weight": rows.w}):
        a = firm(rows.s, rows.X, **weights, **options)
        same(stream(rows.s, rows.X, parts=parts, **weights, **options), a, errors=1.1)
    if "rows" not in options:
        unit = np.arange(3000) // 3
        a = firm(rows.s, rows.X, groups=unit, **options)
        same(stream(rows.s, rows.X, groups=unit, parts=parts, **options), a, errors=1.1)


# Tables


def frame(kind):
    """Return a function from an array to a frame of this package."""
    package = importlib.import_module(kind)
    make = package.table if kind == "pyarrow" else package.DataFrame
    return lambda X: make({f"x{j}": X[:, j] for j in range(3)})


FORMS = {
    **{kind: getattr(sparse, kind) for kind in ("csr_array", "csc_array", "csr_matrix")},
    **{kind: frame(kind) for kind in ("pandas", "polars", "pyarrow")},
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "integers": lambda X: X.astype(np.int16),
}


@every_way
@pytest.mark.parametrize("form", FORMS)
def test_a_table_of_any_form_is_an_array(way, form):
    X = LARGE.X if form in ("pandas", "polars", "pyarrow") else np.nan_to_num(LARGE.X * 8).round()
    for w in (LARGE.w, np.where(np.arange(400) % 7, LARGE.w, 0)):
        b = WAYS[way](LARGE.s, FORMS[form](X), sample_weight=w)
        same(b, WAYS[way](LARGE.s, X, sample_weight=w), V=1e-8)


@pytest.mark.parametrize("way", ["firm", "population", "stream", "by class", *LEARNT])
def test_levels_may_have_any_labels(way):
    s, X, w = LARGE
    code = X[:, 1:].astype(int)
    labels = np.array([["d", "a", "c", "b"], ["w", "z", "y", "?"]], dtype=object)
    frames = [
        pd.DataFrame({"l": code[:, 0], "g": code[:, 1]}),
        pd.DataFrame({"l": 3 - code[:, 0], "g": (7 * code[:, 1] + 1) % 3}),
        pd.DataFrame({"l": labels[0][code[:, 0]], "g": labels[1][code[:, 1]]}),
    ]
    frames = [frame.assign(number=np.nan_to_num(X[:, 0])) for frame in frames]
    found = [WAYS[way](s, frame, sample_weight=w, categorical=["l", "g"]) for frame in frames]
    for result in found[1:]:
        same(result, found[0], V=1e-8)


@quick_ways
@given(samples, st.sampled_from([2.0**-30, 2.0, 2.0**60]), st.sampled_from([0.0, 1024.0]))
def test_units_of_a_feature_do_not_matter(way, rows, scale, shift):
    a = WAYS[way](rows.s, np.round(rows.X, 3) * 1024)
    same(WAYS[way](rows.s, (np.round(rows.X, 3) * 1024 + shift) * scale), a, V=1e-8)


@pytest.mark.parametrize("way", ["firm", "slope", "population", "stream"])
@given(samples)
def test_a_feature_turned_around_changes_direction_only(way, rows):
    X = np.round(rows.X)
    f = np.sort(X[:, 0][~np.isnan(X[:, 0])])
    assume(np.ptp(f + f[::-1]) > 0)  # nothing tells a symmetric column from its negative
    same(WAYS[way](rows.s, -X), WAYS[way](rows.s, X), errors=5, direction=-1)


# Scores


@quick_ways
@given(samples, st.sampled_from([2.0, 1e-8, 1e8, -1.0, -3.0]), st.sampled_from([0.0, 1e3]))
def test_a_score_may_be_shifted_and_scaled(way, rows, scale, shift):
    b = WAYS[way](rows.s, rows.X, sample_weight=rows.w)
    a = WAYS[way](scale * (rows.s + shift), rows.X, sample_weight=rows.w)
    same(a, b, abs(scale), V=1e-8, direction=np.sign(scale))


@pytest.mark.parametrize("way", [*LEARNT, "search"])
@pytest.mark.parametrize(("scale", "shift"), [(3e6, 5), (1e-6, -1)])
def test_scores_of_ways_that_learn(way, scale, shift):
    a, b = WAYS[way](scale * (LARGE.s + shift), LARGE.X), WAYS[way](LARGE.s, LARGE.X)
    if way == "search":  # a rule and its negation matter alike
        close(a.importances, scale * b.importances, 1e-6)
    else:  # learners round to single precision
        same(a, b, scale, V=1e-3, errors=1.01)


@every_way
def test_standardized_is_divided_by_the_sd_of_the_score(way):
    s, X, w = LARGE
    sd = np.sqrt(np.cov(s, aweights=w, ddof=0))
    result = WAYS[way](s, X, sample_weight=w)
    close(result.standardized, result.importances / sd, 0.05 if way == "search" else 0.01)
    close(result.standardize().importances, result.standardized, 1e-9, 1e-12)


# Missing values


@pytest.mark.parametrize("way", ["firm", "slope", "bins", "population", "stream", "by class"])
@pytest.mark.parametrize("weighted", [False, True])
@given(samples)
@few
def test_missing_values_dropped_are_rows_left_out(way, weighted, rows):
    there = ~np.isnan(rows.X[:, 0])
    left = rows.of(there)
    a, b = ({"sample_weight": r.w} if weighted else {} for r in (rows, left))
    far = np.where(there, rows.s, 1e10)  # scores of dropped rows do not matter
    whole = WAYS[way](far, rows.X[:, :1], missing="drop", **a)
    alone = WAYS[way](left.s, left.X[:, :1], **b)
    same(whole, alone, errors=5, V=1e-7, standardized=False)  # by the sd of all scores


@pytest.mark.parametrize("way", QUICK)
@pytest.mark.parametrize("known", [150, 60])
def test_scores_of_dropped_rows_may_be_far_away_even_if_they_are_most(way, known):
    s, X, _ = LARGE
    there = np.arange(400) < known
    f = X[:, 1] + X[:, 2] / 8 + np.arange(400) % 2 / 16  # for 60 rows, these are many levels
    far, f = np.where(there, s, 1e10), np.where(there, f, np.nan)[:, None]
    whole, alone = WAYS[way](far, f, missing="drop"), WAYS[way](s[there], f[there])
    same(whole, alone, errors=2, V=1e-7, standardized=False)


@pytest.mark.parametrize("way", ["group", "given"])
def test_missing_values_dropped_by_ways_that_learn(way):
    there = ~np.isnan(LARGE.X[:, 0])
    left = LARGE.of(there)
    whole = WAYS[way](LARGE.s, LARGE.X, missing="drop")
    a, b = ([r.importances[0], r.standard_error[0]] for r in (whole, WAYS[way](left.s, left.X)))
    assert abs(a[0] - b[0]) <= max(a[1], b[1])


# Classes


@given(samples, st.booleans())
@few
def test_by_class_is_one_by_one(rows, weighted):
    S = np.column_stack([rows.s, rows.s**2, -rows.X[:, 1]])
    options = {"sample_weight": rows.w} if weighted else {}
    found = firm_by_class(S, rows.X, **options)
    for k, result in enumerate(found.values()):
        same(result, firm(S[:, k], rows.X, **options))


@given(samples)
@few
def test_a_subset_of_features_has_the_same_numbers(rows):
    whole = firm(rows.s, rows.X).to_frame()
    for j in range(3):
        part = firm(rows.s, rows.X, j).to_frame()
        pd.testing.assert_frame_equal(part, whole.loc[part.index], rtol=1e-9, check_exact=False)
