"""StreamingFirm: rows in parts, in any order or tree, give what all of them give at once."""

import copy
import pickle
import subprocess
import sys
from itertools import pairwise
from random import Random

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import sparse

from firmlib import StreamingFirm, firm
from firmlib._bins import Bins
from firmlib._gather import MAX_LEVELS

rng = np.random.default_rng(11)
N = 3000
F = np.column_stack(
    [
        rng.normal(size=N),  # many values
        rng.integers(0, 4, N),  # levels
        np.round(rng.exponential(size=N), 1),  # ties, uneven
        np.full(N, 7.0),  # constant
        rng.lognormal(sigma=4, size=N),  # no grid would do
    ]
)
S = np.sin(F[:, 0]) - F[:, 1] + 0.3 * F[:, 2] + rng.normal(size=N)
W = rng.integers(0, 4, N).astype(float)


def assert_same(a, b, tolerance=1e-10):
    """All that results hold, to `tolerance` in units of sd(s)."""
    assert a.feature_names == b.feature_names
    assert a.methods == b.methods
    sd = max(np.ptp(c.q) for c in b.curves.values()) or 1.0

    def close(x, y, unit=1.0):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * unit)

    close(a.variance, b.variance, sd**2)
    close(a.pvalues, b.pvalues)
    # A square root of what is 0 but for rounding says nothing.
    clear = np.abs(b.variance) > 1e-9 * sd**2
    for name in ("importances", "standard_error"):
        close(getattr(a, name)[clear], getattr(b, name)[clear], sd)
        close(getattr(a, name), getattr(b, name), 1e5 * sd)
    for x, y in ((a.ci_low, b.ci_low), (a.ci_high, b.ci_high)):  # roots too, hence squared
        close(x * np.abs(x), y * np.abs(y), sd**2)
    close(a.standardized[clear], b.standardized[clear])
    for name in a.feature_names:
        mine, other = a.curves[name], b.curves[name]
        close(mine.t, other.t, np.abs(other.t).max())
        close(mine.p, other.p)
        close(mine.n, other.n)
        close(mine.q, other.q, sd)
        close(mine.standard_error, other.standard_error, 1e2 * sd)
        close(mine.variance, other.variance, sd**2)


def whole(**options):
    return StreamingFirm(**options).partial_fit(F, S)


def tree(parts, random):
    """Merge in random order and shape."""
    parts = [copy.copy(part) for part in parts]
    while len(parts) > 1:
        i, j = random.sample(range(len(parts)), 2)
        parts[i].merge(parts[j])
        del parts[j]
    return parts[0]


# All at once


@pytest.mark.parametrize("n", [40, 500, N])
@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize(
    "options", [{}, {"method": "binned"}, {"rows": "population"}, {"n_bins": 7}], ids=str
)
def test_one_chunk_equals_firm(n, weights, options):
    weights = None if weights is None else weights[:n]
    for first_rows in (10, 10**6):
        stream = StreamingFirm(first_rows=first_rows, confidence_level=0.9, **options)
        result = stream.partial_fit(F[:n], S[:n], weights).result()
        batch = firm(S[:n], F[:n], sample_weight=weights, confidence_level=0.9, **options)
        assert_same(result, batch)


@pytest.mark.parametrize("n", [40, N])
def test_few_rows_in_any_chunks_equal_firm(n):
    """Until there are enough for bins, rows are gathered; so nothing depends on the chunks."""
    stream = StreamingFirm()
    for i in range(0, n, 7):
        stream.partial_fit(F[i : min(n, i + 7)], S[i : min(n, i + 7)])
    assert_same(stream.result(), firm(S[:n], F[:n]))


def test_rows_one_by_one():
    stream, bins = StreamingFirm(first_rows=200), whole().bins
    other = StreamingFirm(bins=bins)
    for i in range(600):
        stream.partial_fit(F[i : i + 1], S[i : i + 1])
        other.partial_fit(F[i : i + 1], S[i : i + 1])
    first = StreamingFirm(first_rows=200).partial_fit(F[:200], S[:200])
    assert_same(stream.result(), first.partial_fit(F[200:600], S[200:600]).result())
    assert_same(other.result(), StreamingFirm(bins=bins).partial_fit(F[:600], S[:600]).result())


# In parts


@given(
    cuts=st.lists(st.integers(0, N), max_size=12),
    random=st.randoms(use_true_random=False),
    weighted=st.booleans(),
    offset=st.sampled_from([0.0, 1e6, -3e7]),
)
@example(cuts=[0, 1, 2, N - 1, N], random=Random(0), weighted=True, offset=1e6)
def test_any_chunks_merged_in_any_tree_equal_the_batch(cuts, random, weighted, offset):
    bins, weights = whole().bins, W if weighted else np.ones(N)
    edges = [0, *sorted(cuts), N]
    parts = [
        StreamingFirm(bins=bins).partial_fit(F[a:b], offset + S[a:b], weights[a:b])
        for a, b in pairwise(edges)
    ]
    merged = tree(parts, random).result()
    # 1e6 costs six of sixteen digits of a score before anything is done with it.
    assert_same(merged, firm_with(bins, offset + S, weights), 1e-10)
    if not weighted and not offset:
        assert_same(merged, firm(S, F))


def firm_with(bins, s, weights):
    return StreamingFirm(bins=bins).partial_fit(F, s, weights).result()


@given(
    data=st.lists(
        st.tuples(st.integers(-9, 9), st.integers(-3, 3), st.integers(0, 3), st.integers(0, 4)),
        min_size=6,
        max_size=40,
    ),
    random=st.randoms(use_true_random=False),
    first_rows=st.integers(2, 50),
)
@example(  # without noise within the bins, which rounding must not look like
    data=[(0, 0, 0, 0)] * 2 + [(0, 0, 0, 3), (0, 0, 0, 0), (0, 0, 0, 2), (1, 1, 0, 2)],
    random=Random(0),
    first_rows=2,
)
@example(  # V = 0, of which rounding must not make a sign
    data=[(0, 0, 0, 0)] + [(0, 0, 0, 1)] * 2 + [(0, 0, 1, 1)] * 2 + [(-3, 0, 1, 1)],
    random=Random(0),
    first_rows=2,
)
@example(  # all means equal, of which rounding must not make a signal
    data=[(0, 0, 0, 0), (1, 0, 0, 2), (1, -1, 0, 2), (-1, 0, 0, 2), (-4, -1, 0, 2), (6, -1, 0, 1)],
    random=Random(0),
    first_rows=2,
)
def test_whole_weights_are_repetitions(data, random, first_rows):
    s, f, g, w = np.array(data, dtype=float).T
    f, w = np.column_stack([f, g]), w.astype(int)
    assume((w > 0).any())
    sample = StreamingFirm(first_rows=first_rows).partial_fit(f, s)
    weighted = [
        StreamingFirm(bins=sample.bins).partial_fit(f[i : i + 3], s[i : i + 3], w[i : i + 3])
        for i in range(0, len(s), 3)
    ]
    repeated = StreamingFirm(bins=sample.bins)
    repeated.partial_fit(np.repeat(f, w, axis=0), np.repeat(s, w))
    try:
        expected = repeated.result()
    except ValueError as error:
        assume("two rows" not in str(error) and "must exceed 1" not in str(error))
        raise
    assert_same(tree(weighted, random).result(), expected)


@pytest.mark.parametrize("mean", [1e6, -1e9])
def test_scores_far_from_zero(mean):
    near, far = StreamingFirm(bins=whole().bins), StreamingFirm(bins=whole().bins)
    scores = np.round(S * 2**10) / 2**10  # so that adding the mean is exact
    for i in range(0, N, 100):
        near.partial_fit(F[i : i + 100], scores[i : i + 100])
        far.partial_fit(F[i : i + 100], mean + scores[i : i + 100])
    a, b = near.result(), far.result()
    np.testing.assert_allclose(a.importances, b.importances, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(a.standard_error, b.standard_error, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(a.pvalues, b.pvalues, rtol=1e-8, atol=1e-12)
    assert_same(b, firm(mean + scores, F))


def test_an_outlier_that_comes_first_costs_no_digits():
    """The centre moves along; around a fixed one of 1e8 the variance of the rest were lost."""
    scores = S.copy()
    scores[0] = 1e8
    bins = {k: v for k, v in whole().bins.items() if k != "x3"}
    stream, table = StreamingFirm(bins=bins), np.delete(F, 3, axis=1)
    for a, b in [(0, 1), (1, 50), (50, N)]:
        stream.partial_fit(table[a:b], scores[a:b])
    batch = StreamingFirm(bins=bins).partial_fit(table, scores)
    for a, b in zip(stream._statistics.features, batch._statistics.features, strict=True):
        variance = [x.sums[2] - x.sums[1] ** 2 / np.maximum(x.sums[0], 1) for x in (a, b)]
        np.testing.assert_allclose(*variance, rtol=1e-6, atol=1e-1)
    assert_same(stream.result(), batch.result())


def test_a_constant_score_stays_constant():
    stream = StreamingFirm(first_rows=10)
    for i in range(0, 300, 7):
        stream.partial_fit(F[i : i + 7], np.full(7, 0.1))
    result = stream.result()
    np.testing.assert_array_equal(result.importances, 0)
    np.testing.assert_array_equal(result.standardized, 0)
    np.testing.assert_array_equal(result.pvalues, 1)


def test_empty_and_weightless_chunks_change_nothing():
    stream = StreamingFirm(first_rows=100)
    for _ in range(2):
        stream.partial_fit(F[:0], S[:0]).partial_fit(F[:1], S[:1], [0.0])
    stream.partial_fit(F[:500], S[:500])
    before = stream.result()
    stream.partial_fit(F[:0], S[:0]).partial_fit(F[:9] + 100, S[:9], np.zeros(9))
    stream.merge(StreamingFirm()).merge(StreamingFirm(bins=stream.bins))
    assert_same(stream.result(), before)
    assert_same(before, firm(S[:500], F[:500]))


def test_what_is_merged_stays_as_it_was():
    a, b = StreamingFirm(first_rows=100), StreamingFirm(first_rows=10**5)
    a.partial_fit(F[:200], S[:200])
    b.partial_fit(F[200:300], S[200:300])
    before = b.result()
    a.merge(b)
    assert_same(b.result(), before)
    assert_same(b.merge(a).bins and b._statistics and b.result(), b.result())
    twice = StreamingFirm().partial_fit(F, S)
    assert_same(twice.merge(twice).result(), firm(S, F, sample_weight=np.full(N, 2)))


def test_rows_without_bins_take_those_of_the_other():
    bins = whole().bins
    fixed = StreamingFirm(bins=bins).partial_fit(F[:1000], S[:1000])
    loose = StreamingFirm().partial_fit(F[1000:], S[1000:])
    assert_same(copy.copy(fixed).merge(loose).result(), firm(S, F))
    assert_same(copy.copy(loose).merge(fixed).result(), firm(S, F))
    both = StreamingFirm(first_rows=N).partial_fit(F[:9], S[:9])
    assert_same(both.merge(StreamingFirm().partial_fit(F[9:], S[9:])).result(), firm(S, F))


def test_the_callers_array_may_be_used_again():
    buffer, stream = np.empty((300, 5)), StreamingFirm()
    for i in range(0, N, 300):
        buffer[:] = F[i : i + 300]
        scores = S[i : i + 300].copy()
        stream.partial_fit(buffer, scores)
        buffer[:] = scores[:] = np.nan
    assert_same(stream.result(), firm(S, F))


def test_more_may_follow_a_result():
    stream = StreamingFirm().partial_fit(F[:100], S[:100])
    assert_same(stream.result(), firm(S[:100], F[:100]))
    assert_same(stream.partial_fit(F[100:], S[100:]).result(), firm(S, F))


def test_pickles():
    for first_rows in (100, 10**6):
        stream = StreamingFirm(first_rows=first_rows).partial_fit(F[:500], S[:500])
        again = pickle.loads(pickle.dumps(stream)).partial_fit(F[500:], S[500:])
        assert_same(again.result(), stream.partial_fit(F[500:], S[500:]).result())


# Levels that appear later, and values out of range


@given(random=st.randoms(use_true_random=False), first=st.integers(2, 300))
def test_levels_that_appear_later_get_their_own_bins(random, first):
    """Whatever was seen first, and in whatever order, it is the mean on each level."""
    f = np.random.default_rng(random.randrange(99)).permutation(np.arange(2000) % 40)[:, None]
    start = StreamingFirm(
        bins=StreamingFirm(first_rows=2).partial_fit(f[:first] // 20, f[:first, 0]).bins
    )
    cuts = [0, *sorted(random.sample(range(2000), 5)), 2000]
    parts = [copy.copy(start).partial_fit(f[a:b], S[a:b]) for a, b in pairwise(cuts)]
    result = tree(parts, random).result()
    assert result.methods == ("discrete",)
    assert_same(result, firm(S[:2000], f))


@given(random=st.randoms(use_true_random=False))
def test_too_many_levels_are_binned_at_the_first_ones(random):
    f = np.r_[[0.0, 1, 2] * 20, np.linspace(-1, 4, N - 60)][:, None]
    bins = StreamingFirm().partial_fit(f[:60], S[:60]).bins
    cuts = [0, *sorted(random.sample(range(N), 6)), N]
    parts = [StreamingFirm(bins=bins).partial_fit(f[a:b], S[a:b]) for a, b in pairwise(cuts)]
    total = tree(parts, random)
    with pytest.warns(UserWarning, match=f"'x0' has more than {MAX_LEVELS} levels.* had 3"):
        result = total.result()
    assert result.methods == ("binned",)
    expected = firm(S, np.clip(np.floor(f), 0, 2))
    np.testing.assert_allclose(result.variance, expected.variance, rtol=1e-10)
    np.testing.assert_allclose(result.pvalues, expected.pvalues, rtol=1e-10)
    t = [f[f < 1].mean(), f[(f >= 1) & (f < 2)].mean(), f[f >= 2].mean()]
    np.testing.assert_allclose(result.curves["x0"].t, t, rtol=1e-10)


def test_method_discrete_has_no_limit_of_levels():
    stream = StreamingFirm(method="discrete", rows="population", first_rows=2)
    for i in range(0, N, 50):
        stream.partial_fit(F[i : i + 50], S[i : i + 50])
    assert_same(stream.result(), firm(S, F, rows="population"))


@pytest.mark.parametrize("n", [500, N])  # without a grid and on one
def test_values_out_of_range_fall_into_the_outermost_bins(n):
    stream = StreamingFirm(first_rows=n).partial_fit(F[:n], S[:n])
    before = stream.result().curves["x0"]
    far = np.tile([1e300, 0, 0.1, 7, 1], (3, 1)) * [[-1, 1, 1, 1, 1], [1] * 5, [1] * 5]
    after = stream.partial_fit(far, np.zeros(3)).result().curves["x0"]
    np.testing.assert_array_equal(after.n - before.n, [1, *[0] * (len(before.n) - 2), 2])


@given(
    first=st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=40, unique=True),
    f=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
)
@example(first=[0.0], f=[1.0, -1.0])
@example(first=[0.0, 5e-324, 1.0], f=[0.0, 5e-324, -5e-324, 1.0])
def test_cells_find_the_same_bins_as_a_search(first, f):
    first = np.unique(first)
    f = np.r_[f, first, np.nextafter(first, np.inf), np.nextafter(first, -np.inf)]
    with np.errstate(over="ignore"):
        found = Bins(first, "binned").index(f)
    sought = np.maximum(np.searchsorted(first, f, side="right") - 1, 0)
    np.testing.assert_array_equal(found, sought)


# Tables and names


def test_frames_keep_their_names():
    names, half = list("abcde"), N // 2
    frame = pd.DataFrame(F, columns=names)
    a = StreamingFirm(first_rows=10).partial_fit(frame[:half], pd.Series(S[:half]))
    b = StreamingFirm(first_rows=10).partial_fit(pl.from_pandas(frame)[:half], pl.Series(S[:half]))
    c = StreamingFirm(first_rows=10, feature_names=names).partial_fit(
        sparse.csr_matrix(F[:half]), S[:half]
    )
    for stream in (a, b, c):
        assert list(stream.bins) == names
        stream.partial_fit(F[half:].tolist(), S[half:].tolist())  # by position
        assert stream.result().feature_names == tuple(names)
        assert_same(stream.result(), a.result())
    c.partial_fit(frame[:5].rename(columns=str.upper), S[:5])  # by position, too


def test_float32_and_labels():
    table = F.astype(np.float32)
    assert_same(StreamingFirm().partial_fit(table, S > 0).result(), firm(S > 0, table))


# Refusals

FRAME = pd.DataFrame(F[:50], columns=list("abcde"))


def started(**options):
    return StreamingFirm(first_rows=10, **options).partial_fit(F[:50], S[:50])


REFUSED = {
    "n_bins": (lambda: StreamingFirm(n_bins=1), "^n_bins=1 must be 'auto' or an integer"),
    "slope": (
        lambda: StreamingFirm(method="slope"),
        r"^method='slope' is unknown; expected one of \['auto', 'discrete', 'binned'\]",
    ),
    "level": (lambda: StreamingFirm(confidence_level=2), "^confidence_level must be .* got 2"),
    "first_rows": (lambda: StreamingFirm(first_rows=1), "^first_rows must be an integer at least"),
    "bins of another kind": (lambda: StreamingFirm(bins=[0, 1]), r"^bins=\[0, 1\] must be the"),
    "no bins": (lambda: StreamingFirm(bins={}), r"^bins=\{\} must be"),
    "edges": (lambda: StreamingFirm(bins={"a": 3}), r"^bins\['a'\]=3 must be Bins"),
    "bins against the method": (
        lambda: StreamingFirm(bins=whole().bins, method="discrete"),
        r"^bins\['x0'\] are binned, but method='discrete'",
    ),
    "bins of other names": (
        lambda: StreamingFirm(bins=whole().bins, feature_names=list("abcde")),
        r"^feature_names=\['a', .* must be those of bins, \['x0'",
    ),
    "too few names": (
        lambda: StreamingFirm(feature_names=["a"]).partial_fit(F, S),
        "^feature_names has 1 names for 5 features",
    ),
    "result first": (lambda: StreamingFirm().result(), "^there are no rows yet; expected partial_"),
    "result of bins": (lambda: StreamingFirm(bins=whole().bins).result(), "^there are no rows"),
    "bins first": (lambda: StreamingFirm().bins, "^there are no rows yet"),
    "result of nothing": (
        lambda: StreamingFirm().partial_fit(F[:0], S[:0]).result(),
        "^there are no rows yet",
    ),
    "one row": (
        lambda: StreamingFirm().partial_fit(F[:1], S[:1]).result(),
        "^sample_weight sums to 1, but if it counts rows it must exceed 1",
    ),
    "two rows": (
        lambda: StreamingFirm().partial_fit(F[:2], S[:2]).result(),
        "^feature 'x0': a sample needs two rows",
    ),
    "F of one axis": (lambda: started().partial_fit(S, S), r"^F must be a table .* \(3000,\)"),
    "F ragged": (lambda: started().partial_fit([[1], [1, 2]], [1, 2]), "(?i)^(F|setting)"),
    "F inf": (
        lambda: started().partial_fit([[1, 2, 3, 4, np.inf]], [1]),
        r"^column 'x4' of F must be finite or missing, got 1 infinite values, the first inf at \(0",
    ),
    "F inf at first": (
        lambda: StreamingFirm().partial_fit([[1, np.inf]], [1]),
        "^column 'x1' of F must be finite",
    ),
    "F of words": (
        lambda: started().partial_fit([["a"] * 5], [1]),
        "^feature 'x0' holds number values in one part of the rows and nominal values in another",
    ),
    "columns": (
        lambda: started().partial_fit(F[:, :3], S),
        r"^F has 3 columns, expected 5: \['x0', 'x1'",
    ),
    "names": (
        lambda: started().partial_fit(FRAME, S[:50]),
        r"^F has the columns \['a', .* expected \['x0'",
    ),
    "names in another order": (
        lambda: (
            StreamingFirm().partial_fit(FRAME, S[:50]).partial_fit(FRAME[list("bacde")], S[:50])
        ),
        r"^F has the columns \['b', 'a'",
    ),
    "names twice": (
        lambda: StreamingFirm().partial_fit(FRAME.set_axis(list("abcda"), axis=1), S[:50]),
        "^feature names must differ, got 'a' 2 times",
    ),
    "s short": (
        lambda: started().partial_fit(F[:9], S[:8]),
        r"^s has shape \(8,\), expected \(9,\)",
    ),
    "s without F": (lambda: started().partial_fit(F[:0], S[:8]), r"^s has shape \(8,\), .* \(0,\)"),
    "s nan": (lambda: started().partial_fit(F[:1], [np.nan]), "^s must be finite, got 1 NaN"),
    "s very large": (lambda: started().partial_fit(F, 1e78 * S).result(), r"^s differs by .*e\+78"),
    "s small": (
        lambda: StreamingFirm().partial_fit(F, 1e-100 * S).result(),
        "^s differs by .*e-100",
    ),
    "s lost": (
        lambda: StreamingFirm().partial_fit(F, 1e-170 * S).result(),
        "^s differs by .*e-169",
    ),
    "weights large": (
        lambda: started().partial_fit(F[:1], [1], [1e200]),
        r"to 1e\+30, got .*1e\+200",
    ),
    "s large": (lambda: started().partial_fit(F[:1], [1e200]), r"^s=1e\+200 overflows"),
    "s 2-d": (lambda: started().partial_fit(F, S[:, None]), "^s must have 1 axes, got shape"),
    "weights short": (
        lambda: started().partial_fit(F[:2], S[:2], [1]),
        r"^sample_weight has shape \(1,\), expected \(2,\)",
    ),
    "weights negative": (
        lambda: started().partial_fit(F[:2], S[:2], [1, -1]),
        "^sample_weight must not be negative, got -1.0 at row 1",
    ),
    "merge with a number": (lambda: started().merge(3), "^other=3 must be a StreamingFirm"),
    "merge of methods": (
        lambda: started().merge(started(method="binned")),
        "^other has method='binned', expected 'auto'",
    ),
    "merge of names": (
        lambda: started().merge(started(feature_names=list("abcde"))),
        r"^other has the features \['a', .* expected \['x0'",
    ),
    "merge of columns": (
        lambda: started().merge(StreamingFirm().partial_fit(F[:, :2], S)),
        r"^other has the features \['x0', 'x1'\], expected \['x0', 'x1', 'x2'",
    ),
    "merge of bins": (
        lambda: started().merge(StreamingFirm(first_rows=10).partial_fit(F[:60] + 1, S[:60])),
        r"^other has \d binned bins of feature 'x0' that differ from the 7 binned ones here",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_refused_chunk_leaves_no_trace():
    bad = F[:50].copy()
    bad[3, 4] = np.inf
    for stream in (started(), StreamingFirm(), StreamingFirm().partial_fit(F[:50], S[:50])):
        names = None if stream._names is None else list(stream._names)
        before = None if names is None else stream.result()
        for table in (bad, da.from_array(bad, chunks=(25, 5))):
            with pytest.raises(ValueError, match="must be finite"):
                stream.partial_fit(table, S[:50])
        assert stream._names == names
        if before is not None:
            assert_same(stream.result(), before)


@pytest.mark.parametrize("least", [0.0, -1e9])
def test_many_rows_at_the_least_value_do_not_lie_beyond(least):
    rng = np.random.default_rng(0)
    z = rng.normal(size=70_000)
    f, s = np.where(z < 0.5, least, least + np.exp(3 * z)), z + rng.normal(size=len(z))
    stream = StreamingFirm(first_rows=50_000)
    for part in np.split(np.arange(len(z)), 7):
        stream.partial_fit(f[part, None], s[part])
    found = stream.result()  # no warning
    assert found.importances[0] == pytest.approx(firm(s, f[:, None]).importances[0], rel=0.01)


@pytest.mark.parametrize("far", [0.0, 1e9, -1e12])
def test_values_far_from_zero_lose_no_digits(far):
    rng = np.random.default_rng(15)
    z = rng.normal(size=2500)
    s, f = np.tanh(z) + 0.3 * rng.normal(size=2500), np.round(2**10 * np.exp(3 * z)) / 2**10 + far
    expected = firm(s, (f - far)[:, None]).importances
    np.testing.assert_allclose(firm(s, f[:, None]).importances, expected, rtol=1e-4)
    bins = StreamingFirm().partial_fit(f[:, None], s).bins
    found = []
    for parts in (1, 2, 50):
        stream = StreamingFirm(bins=bins)
        for part in np.array_split(np.arange(2500), parts):
            stream.partial_fit(f[part, None], s[part])
        found.append(stream.result().importances[0])
    np.testing.assert_allclose(found, found[0], rtol=1e-9)


# dask, on its threads; see test_cluster.py for processes


@pytest.mark.parametrize("first_rows", [10, 700, 10**6])
@pytest.mark.parametrize("chunks", [(700, 5), ((1, 2, 997, 2000), 2), (N, 5)])
def test_dask_array(first_rows, chunks):
    table = da.from_array(F, chunks=chunks)
    for s, w in [(S, W), (da.from_array(S, chunks=500), da.from_array(W, chunks=500))]:
        lazy = StreamingFirm(first_rows=first_rows, bins=whole().bins).partial_fit(table, s, w)
        assert_same(lazy.result(), firm_with(whole().bins, S, W))
    at_once, lazy = StreamingFirm(first_rows=first_rows), StreamingFirm(first_rows=first_rows)
    for a, b in pairwise(np.cumsum([0, *table.chunks[0]])):
        at_once.partial_fit(F[a:b], S[a:b])
    assert_same(lazy.partial_fit(table, S).result(), at_once.result())


def test_dask_frame_with_partitions_of_unknown_length():
    frame = pd.DataFrame({**dict(zip("abcde", F.T, strict=True)), "s": S, "w": W})
    frame["number"] = np.arange(N)
    lazy = dd.from_pandas(frame, npartitions=13)
    lazy = lazy[lazy.a > -10]  # nobody knows how many rows are left
    none = lazy[lazy.number < 2000]  # some partitions are empty
    options = {"first_rows": 500}
    result = StreamingFirm(**options).partial_fit(lazy[list("abcde")], lazy.s, lazy.w)
    assert result.result().feature_names == tuple("abcde")
    bins = result.bins
    expected = StreamingFirm(bins=bins).partial_fit(frame[list("abcde")], S, W)
    assert_same(result.result(), expected.result())
    result = StreamingFirm(bins=bins).partial_fit(none[list("abcde")], none.s.values)
    expected = StreamingFirm(bins=bins).partial_fit(F[:2000], S[:2000])
    assert_same(result.result(), expected.result())


def test_dask_frame_as_an_array():
    lazy = dd.from_pandas(pd.DataFrame(F), npartitions=4)
    result = StreamingFirm(first_rows=N).partial_fit(lazy.values, dd.from_pandas(pd.Series(S), 4))
    assert_same(result.result(), firm(S, F))


LAZY = dd.from_pandas(pd.DataFrame(F), npartitions=4)
DASK_REFUSED = {
    "one axis": (lambda: (da.zeros(9), S), r"^F must be a table .*got shape \(9,\)"),
    "s short": (lambda: (da.zeros((9, 2)), S), r"^s has shape \(3000,\), expected \(9,\)"),
    "lazy s short": (
        lambda: (da.zeros((9, 2)), da.zeros(8)),
        r"^s has shape \(8,\), expected \(9,\)",
    ),
    "s in memory": (
        lambda: (LAZY, S),
        "^s is ndarray, but the partitions of F have unknown .* 4 p",
    ),
    "partitions": (
        lambda: (LAZY, dd.from_pandas(pd.Series(S), npartitions=3)),
        "^s has 3 partitions, expected 4 as F has",
    ),
    "lengths of partitions": (
        lambda: (LAZY, da.from_array(S, chunks=((10, 10, 10, N - 30),))),
        r"^s has shape \(10,\), expected \(750,\)",
    ),
    "weights": (
        lambda: (LAZY, dd.from_pandas(pd.Series(S), npartitions=4), np.ones(N)),
        "^sample_weight is ndarray, but the partitions",
    ),
}


@pytest.mark.parametrize(("table", "message"), DASK_REFUSED.values(), ids=DASK_REFUSED)
def test_dask_refused(table, message):
    with pytest.raises(ValueError, match=message):
        StreamingFirm().partial_fit(*table())


def test_dask_is_imported_only_if_it_is_used():
    code = "import sys, firmlib; firmlib.StreamingFirm().partial_fit([[1]], [2]); "
    subprocess.run([sys.executable, "-c", code + "assert 'dask' not in sys.modules"], check=True)


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_many_new_levels_are_binned_however_the_rows_are_cut(parts):
    rng = np.random.default_rng(0)
    known = StreamingFirm().partial_fit(rng.integers(0, 3, (500, 1)), rng.normal(size=500)).bins
    f = rng.permutation(np.arange(3000) // 2)[:, None]
    stream = StreamingFirm(bins=known)
    for rows in np.array_split(np.arange(3000), parts):
        stream.partial_fit(f[rows], np.sin(f[rows, 0]))
    with pytest.warns(UserWarning, match=f"'x0' has more than {MAX_LEVELS} levels.* had 3"):
        assert stream.result().methods == ("binned",)
