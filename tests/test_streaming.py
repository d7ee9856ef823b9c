"""StreamingFirm: chunks of rows, in any order or tree, give what all of them give at once."""

import copy
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression
from test_laws import same

from firmlib import StreamingFirm, compare, firm
from firmlib.features import literal, threshold

rng = np.random.default_rng(11)
N = 3000
F = np.column_stack(
    [
        rng.normal(size=N),
        rng.integers(0, 4, N),
        np.round(rng.exponential(size=N), 1),  # ties, uneven
        rng.lognormal(sigma=4, size=N),
        np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)),
    ]
)
S = np.sin(F[:, 0]) - F[:, 1] + 0.3 * F[:, 2] + rng.normal(size=N)


def assert_same(a, b, errors=1.0, **options):
    """Check all that results hold; errors within a factor if folds of rows differ."""
    same(a, b, errors=errors, **options)
    assert (a.kinds, a.n, a.response, a.target) == (b.kinds, b.n, b.response, b.target)
    np.testing.assert_allclose(a.missing, b.missing, rtol=1e-9)
    for name in a.curves:
        for part in ("q", "p", "n"):
            mine, other = (getattr(result.curves[name], part) for result in (a, b))
            np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-9)


def parted(parts, s=S, **options):
    """Return a stream over some chunks, or over rows between cuts, with the bins of all rows."""
    stream = StreamingFirm(bins=BINS, **options)
    split = np.split if np.ndim(parts) else np.array_split
    for rows in split(np.arange(N), parts):
        stream.partial_fit(F[rows], s[rows])
    return stream


def tree(parts, random):
    """Merge in random order and shape."""
    parts = [copy.deepcopy(part) for part in parts]
    while len(parts) > 1:
        i, j = random.sample(range(len(parts)), 2)
        parts[i].merge(parts[j])
        del parts[j]
    return parts[0]


BINS = StreamingFirm().partial_fit(F, S).bins


# Chunks and merges


@given(st.randoms(use_true_random=False), st.integers(2, 300))
@settings(max_examples=15)
def test_levels_that_appear_later_get_their_own_bins(random, first):
    """Whatever was seen first, and in whatever order, it is the mean on each level."""
    f = np.random.default_rng(random.randrange(99)).permutation(np.arange(2000) % 40)
    words = pd.DataFrame({"w": [f"level {k}" for k in f]})
    start = StreamingFirm(bins=StreamingFirm().partial_fit(words[:first], S[:first]).bins)
    cuts = [0, *sorted(random.sample(range(2000), 5)), 2000]
    parts = [copy.deepcopy(start).partial_fit(words[a:b], S[a:b]) for a, b in pairwise(cuts)]
    result = tree(parts, random).result()
    curve = result.curves["w"].to_frame().set_index("t").sort_index()
    expected = pd.Series(S[:2000]).groupby(words["w"]).agg(["mean", "size"])
    np.testing.assert_allclose(curve["q"], expected["mean"], rtol=1e-9)
    np.testing.assert_allclose(curve["n"], expected["size"])
    np.testing.assert_allclose(result.variance, firm(S[:2000], words).variance, rtol=1e-9)


def test_numbers_of_few_levels_at_first_and_many_later():
    f = np.r_[[0.0, 1, 2] * 20, np.linspace(-1, 4, N - 60)][:, None]
    s = np.r_[[0.0, 1, 2] * 20, np.linspace(-1, 4, N - 60)]
    stream = StreamingFirm()
    for a, b in pairwise([0, 60, 1000, N]):
        stream.partial_fit(f[a:b], s[a:b])
    with pytest.warns(UserWarning, match="are too small"):  # the rows are in order
        result = stream.result()
    assert result.curves["x0"].n.sum() == N
    assert 0.5 < result.importances[0] / s.std() <= 1.01


def test_an_outlier_that_comes_first_costs_no_digits():
    scores, w = S.copy(), np.ones(N)
    scores[0], w[0] = 1e9, 1e-20  # a tiny weight, so that the other rows decide on V
    stream = StreamingFirm(bins=BINS)
    for rows in np.split(np.arange(N), [1, 50]):
        stream.partial_fit(F[rows], scores[rows], sample_weight=w[rows])
    whole = StreamingFirm(bins=BINS).partial_fit(F, scores, sample_weight=w)
    assert_same(stream.result(), whole.result(), errors=1.05, V=1e-6, standardized=False)


def test_empty_and_weightless_chunks_change_nothing():
    stream = StreamingFirm()
    for _ in range(2):
        stream.partial_fit(F[:0], S[:0]).partial_fit(F[:1], S[:1], sample_weight=[0.0])
    stream.partial_fit(F[:500], S[:500])
    before = stream.result()
    stream.partial_fit(F[:0], S[:0]).partial_fit(F[:9] + 100, S[:9], sample_weight=np.zeros(9))
    stream.merge(StreamingFirm()).merge(StreamingFirm(bins=stream.bins))
    assert_same(stream.result(), before)
    assert_same(before, firm(S[:500], F[:500]), errors=1.2)


def test_what_is_merged_stays_as_it_was():
    a = StreamingFirm().partial_fit(F[:200], S[:200])
    b = StreamingFirm(bins=a.bins).partial_fit(F[200:500], S[200:500])
    before = b.result()
    a.merge(b)
    assert_same(b.result(), before)
    assert a.result().n == 500
    buffer, scores = F[:200].copy(), S[:200].copy()
    c = StreamingFirm().partial_fit(buffer, scores)
    buffer[:] = scores[:] = np.nan  # the caller's arrays may be used again
    assert_same(c.result(), firm(S[:200], F[:200]))


def test_a_stream_takes_the_bins_of_the_first_that_it_merges():
    fixed = StreamingFirm(bins=BINS).partial_fit(F[:1000], S[:1000])
    other = StreamingFirm(bins=BINS).partial_fit(F[1000:], S[1000:])
    assert_same(StreamingFirm().merge(fixed).merge(other).result(), firm(S, F), errors=1.6)


def test_more_may_follow_a_result_and_a_pickle():
    stream = StreamingFirm(bins=BINS).partial_fit(F[:100], S[:100])
    stream.result()
    again = pickle.loads(pickle.dumps(stream)).partial_fit(F[100:], S[100:])
    assert_same(again.result(), firm(S, F))
    assert_same(stream.partial_fit(F[100:], S[100:]).result(), firm(S, F))


def test_a_first_chunk_with_too_few_rows_is_noted():
    stream = StreamingFirm().partial_fit(F[:50], S[:50])
    stream.result()
    with pytest.warns(UserWarning, match=r"importances of .'x0', .* are too small"):
        stream.partial_fit(F[50:], S[50:]).result()


@pytest.mark.filterwarnings("ignore:importances of:UserWarning")
def test_rows_one_by_one_find_bins_as_well():
    """Numbers are levels until there is no room for more; then they share the bins of those."""
    stream = StreamingFirm()
    for row in range(N):
        stream.partial_fit(F[[row]], S[[row]])
    expected = firm(S, F)
    np.testing.assert_allclose(stream.result().importances, expected.importances, atol=0.2)
    assert stream.result()["x1"]["variance"] == pytest.approx(expected["x1"]["variance"])


def test_units_may_continue_in_other_chunks():
    unit = np.arange(N) % 300
    batch = firm(S, F, groups=unit)
    left, right = StreamingFirm(bins=BINS), StreamingFirm(bins=BINS)
    for rows in np.array_split(np.arange(N), 5):
        (left if rows[0] < 1000 else right).partial_fit(F[rows], S[rows], groups=unit[rows])
    merged = right.merge(left).result()
    np.testing.assert_allclose(merged.importances, batch.importances, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(merged.standard_error[:3], batch.standard_error[:3], rtol=0.1)


def test_streams_are_compared_and_ranked():
    result = parted(4).result()
    pd.testing.assert_frame_equal(result.ranks(), firm(S, F).ranks())
    other = parted(4, s=S + 0.1 * F[:, 0]).result()
    table = compare(result, other)
    expected = compare(firm(S, F), firm(S + 0.1 * F[:, 0], F))
    np.testing.assert_allclose(table, expected, rtol=1e-5, atol=1e-9)


def test_words_and_later_chunks_may_have_fewer_rows_than_bins():
    frame = pd.DataFrame({"word": np.where(F[:, 0] > 0, "A", "B"), "x": F[:, 0]})
    first = StreamingFirm(["word"], n_bins=60).partial_fit(frame[:50], S[:50])
    assert first.result().kinds == ("nominal",)
    stream = StreamingFirm(n_bins=60).partial_fit(frame[:100], S[:100])
    assert stream.partial_fit(frame[100:150], S[100:150]).result().n == 150


def test_a_stream_adds_a_source_to_chunks_before():
    stream = StreamingFirm(bins=BINS).partial_fit(F[:500], lambda X: X[:, 0])
    stream.partial_fit(iter([F[500:900], F[900:]]), lambda X: X[:, 0])
    assert_same(stream.result(), firm(lambda X: X[:, 0], F))


def test_fit_starts_anew():
    model = LinearRegression().fit(F[:, :2], S)
    again = StreamingFirm().partial_fit(F, S).fit(iter([F[:, :2]]), model)
    assert_same(again.result(), firm(model, F[:, :2]))


def test_streams_of_different_targets_do_not_merge():
    model = LogisticRegression().fit(F[:, :2], np.digitize(S, [-2, 0]))
    one, other = (StreamingFirm(target=k).partial_fit(F[:, :2], model) for k in (0, 2))
    before = one.result()
    with pytest.raises(ValueError, match="target"):
        one.merge(other)
    assert_same(one.result(), before)
    proba = StreamingFirm(target=0, response_method="predict_proba")
    with pytest.raises(ValueError, match=r"response|predict_proba"):
        one.merge(proba.partial_fit(F[:, :2], model))


def test_a_refused_chunk_leaves_the_stream_as_it_was():
    stream = StreamingFirm(bins=BINS).partial_fit(F[:300], S[:300])
    before = stream.result()
    wrong = [
        (F[300:, :2], S[300:]),
        (F[300:], S[300:-1]),
        (np.where(F[300:] > 2, np.inf, F[300:]), S[300:]),
        (F[300:], np.where(S[300:] > 1, np.nan, S[300:])),
        (F[300:, :2], LinearRegression().fit(F[:, :2], S)),
    ]
    for table, score in wrong:
        with pytest.raises(ValueError, match=r"X|score"):
            stream.partial_fit(table, score)
        assert_same(stream.result(), before)
    assert_same(stream.partial_fit(F[300:], S[300:]).result(), firm(S, F))


# Tables and features


def test_streams_have_the_features_of_firm():
    frame = pd.DataFrame(
        {"hour": F[:, 1], "temp": F[:, 4], "city": np.where(F[:, 0] > 0, "A", "B")}
    )
    asked = {"late": threshold("hour", 2), "A": literal("city", "A"), "temp": "temp"}
    options = {"features": asked, "missing": "drop"}
    chunks = [frame.iloc[i : i + 333] for i in range(0, N, 333)]

    def model(X):
        return X["hour"].to_numpy() + (X["city"] == "A") - X["temp"].fillna(2).to_numpy()

    bins = StreamingFirm(**options).partial_fit(frame, model).bins
    stream = StreamingFirm(bins=bins, **options).fit(iter(chunks), model)
    assert_same(stream.result(), firm(model, frame, **options))


def test_nothing_slow_is_imported_unless_it_is_used():
    code = "import sys, firmlib; firmlib.StreamingFirm().partial_fit([[1]], [2]).merge; "
    code += "assert not {'dask', 'polars', 'numba', 'matplotlib', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Refusals


def started(**options):
    return StreamingFirm(**options).partial_fit(F[:50], S[:50])


def fed(*args, **kwargs):
    return lambda: started().partial_fit(*args, **kwargs)


REFUSED = [
    (lambda: StreamingFirm(bins=[0, 1]), r"^bins=\[0, 1\] must be the"),
    (
        lambda: StreamingFirm(feature_names=["a"]).partial_fit(F, S),
        "^feature_names has shape .*, expected",
    ),
    (
        lambda: StreamingFirm(n_bins=60).partial_fit(F[:50], S[:50]),
        "^n_bins=60 must be at most 50, the rows of the first chunk, which",
    ),
    (lambda: StreamingFirm().result(), "^there are no rows yet; expected partial_"),
    (lambda: StreamingFirm(bins=BINS).result(), "^there are no rows yet"),
    (lambda: StreamingFirm().partial_fit(F[:0], S[:0]).result(), "^there are no rows yet"),
    (fed(F[:, :3], S), r"^X has features=\['x0', 'x1', 'x2'\], expected"),
    (lambda: StreamingFirm(missing="raise").partial_fit(F, S), "^feature 'x4'.* must not be"),
    (fed(F, 1e78 * S), r"^score has values .*e\+7\d"),
    (fed(F[:2], S[:2], groups=[1, 2]), "^X has groups given=True, expected False"),
    (
        lambda: StreamingFirm({"g": ["x0", "x1"]}).partial_fit(F, S),
        r"^features=.'g'.* pairs, groups and ready values need",
    ),
    (lambda: started().merge(3), "^other=3 must be a StreamingFirm"),
    (
        lambda: started().merge(started(method="slope", missing="drop")),
        "^other has method='slope', expected 'auto'",
    ),
    (
        lambda: StreamingFirm(missing="drop", bins=BINS).merge(started()),
        "^other has missing='level', expected 'drop'",
    ),
    (
        lambda: StreamingFirm(categorical=[0]).merge(started()),
        "^other has categorical=.., expected",
    ),
    (
        lambda: started().merge(StreamingFirm().partial_fit(F[:, :2], S)),
        r"^other has features=\['x0', 'x1'\], expected \['x0', 'x1', 'x2'",
    ),
    (lambda: started().merge(StreamingFirm().partial_fit(F[:60] + 1, S[:60])), "bins"),
]


def two_chunks(one, other):
    stream = StreamingFirm()
    return lambda: [stream.partial_fit(pd.DataFrame({"f": f}), [0.0, 1, 2]) for f in (one, other)]


SIZES = [pd.Categorical(list(w), ordered=True) for w in ("aba", "aca")]
REFUSED += [
    (two_chunks(["a", "b", None], [1, 2, 1]), "'f'.* holds nominal values in one chunk, number"),
    (two_chunks(*SIZES), r"'f'.* has the ordered levels \['a', 'b'\] .* \['c'\]"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_rows_in_order_warn_if_the_first_ones_do_not_show_the_rest(rng):
    """Bins come from the first rows; what lies beyond them cannot be told apart."""
    x = np.sort(rng.normal(size=40_000))
    score = np.sin(3 * x)
    stream, shuffled = StreamingFirm(), StreamingFirm()
    order = rng.permutation(len(x))
    for some in np.split(np.arange(len(x)), 4):
        stream.partial_fit(x[some, None], score[some])
        shuffled.partial_fit(x[order[some], None], score[order[some]])
    with pytest.warns(UserWarning, match=r"'x0'. are too small: the first chunk"):
        assert stream.result().importances[0] < 0.5
    assert shuffled.result().importances[0] == pytest.approx(score.std(), rel=0.01)
    again = StreamingFirm(bins=shuffled.bins).partial_fit(x[:, None], score)
    assert again.result().importances[0] == pytest.approx(score.std(), rel=0.01)


def test_bins_belong_to_columns_whatever_kinds_come_later():
    """A column that is all missing where bins are found may hold words or numbers later."""
    rng, n = np.random.default_rng(0), 5000
    e, label = rng.normal(size=100), rng.integers(0, 100, n)
    words = np.array([f"k{i}" for i in label], dtype=object)
    X = pd.DataFrame({"late": words, "a": rng.normal(size=n), "again": words})
    X.loc[:1999, "late"] = None
    s = (e[label] + X["a"]).to_numpy()
    for missing in ("level", "drop"):
        bins = StreamingFirm(missing=missing).partial_fit(X[:2000], s[:2000]).bins
        stream = StreamingFirm(missing=missing, bins=bins).partial_fit(X[2000:], s[2000:])
        whole = firm(s[2000:], X[2000:], missing=missing)
        np.testing.assert_allclose(stream.result().variance, whole.variance, rtol=0.05)


def test_merged_levels_keep_their_slots_while_there_is_room():
    base = StreamingFirm().partial_fit(np.tile(np.arange(4.0), 8)[:, None], np.ones(32))
    x, y = (np.tile(np.arange(k), 50)[:, None] for k in (6.0, 8.0))
    one, two = (StreamingFirm(bins=base.bins).partial_fit(f, 5.0 * (f[:, 0] >= 6)) for f in (x, y))
    both = np.r_[x, y]
    expected = firm(5.0 * (both[:, 0] >= 6), both).importances
    np.testing.assert_allclose(one.merge(two).result().importances, expected)


def test_numbers_beyond_levels_of_the_first_chunk_have_bins_or_are_noted():
    rng = np.random.default_rng(0)
    later = rng.normal(size=20_000) + 100
    for values, warns in ((later, False), (np.sort(later), True)):
        X = np.r_[np.tile(np.arange(5.0), 200), values][:, None]
        stream, score = StreamingFirm(), np.sin(X[:, 0])
        for rows in np.split(np.arange(len(X)), 21):
            stream.partial_fit(X[rows], score[rows])
        if warns:
            with pytest.warns(UserWarning, match="are too small"):
                stream.result()
        else:
            assert stream.result().importances[0] == pytest.approx(score.std(), rel=0.02)


def test_levels_without_room_when_merged_share_bins_and_lose_no_rows():
    first = np.tile(np.arange(5.0), 20)
    bins = StreamingFirm().partial_fit(first[:, None], first).bins
    parts = [np.repeat(np.arange(300) + shift, 5) for shift in (0.5, 300.5)]
    one, two = (StreamingFirm(bins=bins).partial_fit(f[:, None], np.sin(f / 40)) for f in parts)
    result = one.merge(two).result()
    assert result.curves["x0"].n.sum() == 3000
    assert result.standardized[0] == pytest.approx(1, abs=0.02)


def test_many_levels_that_appear_later_are_merged_as_firm_merges_them():
    rng = np.random.default_rng(0)
    f = np.r_[np.tile(np.arange(5.0), 20), rng.integers(0, 300, 1000)]
    s = f / 300 + 2 * rng.normal(size=len(f))
    stream = StreamingFirm().partial_fit(f[:100, None], s[:100])
    found = stream.partial_fit(f[100:, None], s[100:]).result()
    expected = firm(s, f[:, None])
    assert found.standard_error == pytest.approx(expected.standard_error, rel=0.2)
    assert len(found.curves["x0"].n) < 1.5 * len(expected.curves["x0"].n)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [10, 100, 3000])
@pytest.mark.parametrize("missing", ["level", "drop"])
def test_nothing_is_noted_if_the_first_values_show_the_rest(n, missing):
    x = np.random.default_rng(0).normal(size=(n, 1))
    assert StreamingFirm(missing=missing).partial_fit(x, x[:, 0]).result().n == n
    nothing = StreamingFirm(missing=missing).partial_fit(np.c_[x, np.nan * x], x[:, 0])
    result = nothing.partial_fit(np.c_[x, x], x[:, 0]).result()
    assert result.missing.tolist() == [0, 0.5]


def test_streams_of_words_and_of_numbers_do_not_merge():
    s, x = np.arange(100.0), np.arange(100) % 2
    frames = [pd.DataFrame({"f": f}) for f in (np.array(["u", "v"], object)[x], x, x == 1)]
    streams = [StreamingFirm().partial_fit(frame, s) for frame in frames]
    for one, two in ((0, 1), (1, 0), (2, 1)):
        with pytest.raises(ValueError, match="'f' holds"):
            copy.deepcopy(streams[one]).merge(streams[two])


def test_the_sample_of_a_long_table_does_not_depend_on_labels():
    rng, n = np.random.default_rng(0), 20_000
    z, g = rng.normal(size=n), rng.integers(0, 5, n)
    s = np.sin(3 * z) + g + rng.normal(size=n)
    words = (np.array(list(w), object)[g] for w in ("abcde", "edcba"))
    one, two = (firm(s, pd.DataFrame({"w": w, "z": z})) for w in words)
    assert one["z"]["variance"] == two["z"]["variance"]


def test_an_error_leaves_the_stream_unchanged(monkeypatch):
    X, s = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40.0)
    words = StreamingFirm().partial_fit(pd.DataFrame({"w": list("abab")}), s[:4])
    with monkeypatch.context() as patch:
        patch.setattr("firmlib.tables.checks.MEMORY_LIMIT", 100)
        with pytest.raises(ValueError, match="GiB"):
            words.partial_fit(pd.DataFrame({"w": np.arange(5000).astype(str)}), np.zeros(5000))
    assert words.result().n == 4
    stream = StreamingFirm().partial_fit(X, s)
    before = stream.result()
    with pytest.raises(ValueError, match="must be a fitted model or callable"):
        stream.fit(iter([X]), s)
    with pytest.raises(ValueError, match=r"X has .*features"):
        stream.fit(iter([X, X[:, :1]]), lambda X: X[:, 0])
    assert stream.result().n == before.n == 40
    assert stream.partial_fit(X, s).result().n == 80


def test_chunks_whose_values_are_all_equal_do_not_end_the_sums_of_a_slope():
    x = np.random.default_rng(0).normal(size=(50, 1)) * 1e-200
    stream = StreamingFirm(method="slope").partial_fit(x, x[:, 0] * 1e200)
    stream.partial_fit(0 * x, np.zeros(50))
    both = firm(np.r_[x[:, 0] * 1e200, np.zeros(50)], np.r_[x, 0 * x], method="slope")
    np.testing.assert_allclose(stream.result().variance, both.variance, rtol=1e-9)


def test_bins_are_small_to_send():
    X = np.random.default_rng(0).normal(size=(10_000, 20))
    bins = StreamingFirm().partial_fit(X, X[:, 0]).partial_fit(X, X[:, 0]).bins
    sent = pickle.dumps(bins)
    assert len(sent) < 500_000
    found = [StreamingFirm(bins=b).partial_fit(X, X[:, 0]) for b in (bins, pickle.loads(sent))]
    np.testing.assert_array_equal(*(stream.result().variance for stream in found))


def test_bins_stay_small_however_many_levels_come():
    f = np.r_[np.zeros(100), np.arange(4000.0)][:, None]
    stream = StreamingFirm()
    for rows in np.split(np.arange(4100), 41):
        stream.partial_fit(f[rows], f[rows, 0])
    assert len(pickle.dumps(stream.bins)) < 20_000


def test_a_slope_without_values_is_0_and_harms_no_other():
    X = np.c_[np.random.default_rng(0).normal(size=500), np.full(500, np.nan)]
    with pytest.warns(UserWarning, match="importance 0"):
        result = firm(X[:, 0], X, method="slope")
    assert result.ci_high[1] == result.standard_error[1] == 0
    assert result.ranks()["worst"].tolist() == [1, 2]


def late(first, later, score):
    """Return a stream whose later chunks are unlike its first one, and its scores."""
    stream, x = StreamingFirm(), np.concatenate([first, *later])
    for chunk in (first, *later):
        stream.partial_fit(chunk[:, None], score(chunk))
    return stream, score(x)


@pytest.mark.parametrize("case", ["drift beside zeros", "a hole"])
def test_later_values_that_the_first_chunk_lacked_are_noted(case):
    rng = np.random.default_rng(0)
    if case == "a hole":
        first = rng.choice([0.0, 10.0], 3000) + 0.01 * rng.normal(size=3000)
        later = [rng.uniform(0, 10, 3000) for _ in range(5)]
    else:
        some = [(rng.random(3000) < 0.5) * rng.uniform(0, k, 3000) for k in (1, *[10] * 5)]
        first, *later = some
    with pytest.warns(UserWarning, match="are too small"):
        late(first, later, lambda x: np.where(x > 1, np.sin(x), 0))[0].result()


@pytest.mark.parametrize("tiny", [1e-13, 1e-3])
def test_constant_chunks_cost_slopes_no_digits(tiny):
    rng = np.random.default_rng(0)
    x = np.r_[np.zeros(300), tiny * rng.normal(size=400)]
    s = x + tiny * rng.normal(size=700)
    stream = StreamingFirm(method="slope")
    for rows in (slice(0, 300), slice(300, 301), slice(301, None)):
        stream.partial_fit(x[rows, None], s[rows])
    batch = firm(s, x[:, None], method="slope")
    np.testing.assert_allclose(stream.result().importances, batch.importances, rtol=1e-9)
    np.testing.assert_allclose(stream.result().standardized, batch.standardized, rtol=1e-9)


def test_bins_are_of_streams_with_the_same_options():
    with pytest.raises(ValueError, match="bins has rows='sample', expected 'population'"):
        StreamingFirm(rows="population", bins=BINS)
    with pytest.raises(ValueError, match="bins has n_bins='auto', expected 5"):
        StreamingFirm(n_bins=5, bins=BINS)
    for other in (0, 109):  # whose fold is that of 0
        with pytest.raises(ValueError, match="groups has too few labels"):
            StreamingFirm().partial_fit(F, S, groups=np.arange(N) % 2 * other).result()
    frame = pd.DataFrame({"a": F[:, 0], "nothing": np.full(N, np.nan)})
    with pytest.warns(UserWarning, match="importance 0"):
        assert StreamingFirm().partial_fit(frame, S).result().kinds == ("number", "number")


@pytest.mark.parametrize(
    "values", [np.arange(200) % 4, np.array(list("abcd"), object)[[0, 1, 2, 3] * 50]]
)
def test_rows_before_the_first_value_count_as_missing(values):
    frame = pd.DataFrame({"late": [*[None] * 100, *values]})
    stream, s = StreamingFirm(), np.arange(300.0)
    for rows in (slice(0, 50), slice(50, 100), slice(100, 300)):
        stream.partial_fit(frame.iloc[rows].infer_objects(), s[rows])
    result, expected = stream.result(), firm(s, frame.infer_objects())
    assert result.missing == pytest.approx([1 / 3])
    assert result.curves["late"].n.sum() == 300
    assert (result.kinds, result.feature_names) == (expected.kinds, expected.feature_names)
    np.testing.assert_allclose(result.variance, expected.variance, rtol=1e-9)
    np.testing.assert_allclose(result.pvalues, expected.pvalues, rtol=1e-9)


@pytest.mark.parametrize("known", [1, 3, 5, 40])
def test_few_known_values_in_the_first_chunk_grow_or_are_noted(known):
    rng = np.random.default_rng(0)
    x = np.r_[rng.normal(size=known), np.full(3000 - known, np.nan), rng.normal(size=12_000)]
    s = np.nan_to_num(np.sin(4 * x))
    stream = StreamingFirm(missing="drop")
    for rows in np.split(np.arange(len(x)), 5):
        stream.partial_fit(x[rows, None], s[rows])
    if known <= 3:
        assert stream.result().importances[0] == pytest.approx(0.707, rel=0.03)
    else:
        with pytest.warns(UserWarning, match="are too small"):
            stream.result()


def test_units_that_vary_later_are_noted():
    rng = np.random.default_rng(0)
    unit = np.arange(12_000) // 600
    x = np.where(unit < 5, rng.normal(size=20)[unit], rng.normal(size=12_000))
    s = np.sin(2 * x)
    stream = StreamingFirm()
    for rows in np.split(np.arange(len(x)), 4):
        stream.partial_fit(x[rows, None], s[rows], groups=unit[rows])
    with pytest.warns(UserWarning, match="are too small"):
        stream.result()
