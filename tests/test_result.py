"""FirmResult and FirmByClass: tables, comparisons, ranks, adjusted p-values, what is shown."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.ensemble import IsolationForest, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KernelDensity
from sklearn.svm import OneClassSVM

import firmlib
from firmlib import StreamingFirm, compare, firm, firm_by_class

matplotlib.use("Agg")

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(300, 3)), columns=list("abc"))
X["word"] = np.where(X["a"] + RNG.normal(size=300) > 0, "up", "down")
NUMBERS = X[["a", "b", "c"]]
S = (X["a"] + 0.9 * X["b"] + 0.3 * RNG.normal(size=300)).to_numpy()
Y = np.array(["no", "so", "yes"])[np.digitize(X["b"] + 0.1 * RNG.normal(size=300), [-0.5, 0.5])]
TWO = np.column_stack([Y, np.where(X["a"] > 0, "plus", "minus")])


def same(result, other):
    pd.testing.assert_frame_equal(result.to_frame(), other.to_frame(), rtol=1e-10)
    assert result.response == other.response


# Tables


def test_to_frame_is_sorted_by_size_and_keeps_the_order_of_ties():
    result = firm(lambda X: X @ [1, -3, 2], np.eye(3), rows="population")
    frame = result.to_frame()
    assert list(frame.index) == ["x1", "x2", "x0"]
    assert frame.index.name == "feature"
    columns = "importance standard_error ci_low ci_high pvalue direction standardized variance"
    assert list(frame.columns) == [*columns.split(), "heavy_tails", "kind", "missing"]
    for name in ("standard_error", "ci_low", "ci_high", "standardized", "variance", "direction"):
        np.testing.assert_array_equal(frame[name], getattr(result, name)[[1, 2, 0]])
    np.testing.assert_array_equal(frame["direction"], [-1, 1, 1])
    tied = firm(S, X, {"b": "a", "a": "a", "c": "b"}).to_frame()
    assert [name for name in tied.index if name != "c"] == ["b", "a"]
    pd.testing.assert_series_equal(result["x2"], frame.loc["x2"])
    assert "x2" in result
    assert "zz" not in result
    with pytest.raises(KeyError, match="zz"):
        result["zz"]


def test_what_is_shown():
    many = np.random.default_rng(1).normal(size=(60, 25))
    result = firm(many[:, 0], many, feature_names=["<b>", *(f"x{j}" for j in range(1, 25))])
    text = repr(result)
    assert "25 features, 60 rows (sample), score: values" in text
    assert "15 more" in text
    assert text.index("<b>") < text.index("x1")
    model = LogisticRegression().fit(NUMBERS, Y)
    shown = repr(firm(model, NUMBERS, target="so", response_method="predict_proba"))
    assert "score: predict_proba of 'so'" in shown
    assert list(result) == list(result.feature_names)
    assert len(result) == 25


def test_pvalues_adjusted():
    result = firm(S, X)
    p, m = result.pvalues, len(result)
    bh = stats.false_discovery_control(p)
    np.testing.assert_allclose(result.pvalues_adjusted("bh"), bh, rtol=1e-12)
    holm, worst = np.empty(m), 0.0
    for rank, j in enumerate(np.argsort(p)):
        worst = max(worst, (m - rank) * p[j])
        holm[j] = min(worst, 1)
    np.testing.assert_allclose(result.pvalues_adjusted(), holm, rtol=1e-12)
    np.testing.assert_allclose(result.intervals()["ci_high"], result.ci_high, rtol=1e-12)
    with pytest.raises(ValueError, match="method='sidak' is unknown"):
        result.pvalues_adjusted("sidak")


# Comparisons


def test_a_difference_is_surer_than_two_intervals():
    rng = np.random.default_rng(5)
    table = rng.normal(size=(1000, 4))
    table[:, 1] = 0.5 * table[:, 0] + np.sqrt(0.75) * table[:, 1]
    result = firm(table @ [1, 1, 0.7, 0] + rng.normal(size=1000), table)
    one, other = (result.compare(*names).iloc[0] for names in (("x0", "x1"), ("x1", "x0")))
    assert one["standard_error"] < 0.8 * np.hypot(*result.standard_error[:2])
    ends = ["difference", "ci_low", "ci_high", "standard_error", "pvalue"]
    mirrored = ["difference", "ci_high", "ci_low", "standard_error", "pvalue"]
    np.testing.assert_allclose(one[ends], other[mirrored] * [-1, -1, -1, 1, 1], rtol=1e-9)
    every = result.compare()
    assert len(every) == 6
    assert (every["difference"] >= 0).all()
    frame = result.ranks()
    assert ((frame["best"] <= frame["rank"]) & (frame["rank"] <= frame["worst"])).all()
    assert list(result.to_frame(ranks=True).columns[-3:]) == ["rank", "best", "worst"]


def test_intervals_and_tests_of_differences_agree():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        table = rng.normal(size=(int(rng.integers(20, 200)), 5))
        found = firm(table @ [1, 0.8, 0.2, 0, 0] + rng.normal(size=len(table)), table).compare()
        told = found["pvalue"] <= 0.05
        assert (found["ci_low"][told] >= 0).all()  # at most one end reaches 0
        assert (found["ci_high"][told] > 0).all()
        assert (found["ci_low"][~told] <= 0).all()
        assert (found["ci_low"] <= found["difference"]).all()
        assert (found["difference"] <= found["ci_high"]).all()


@pytest.mark.parametrize("level", [0, 1, np.nan, "95"])
def test_confidence_level_is_checked(level):
    result = firm(S, X)
    for call in (
        lambda: firm(S, X, confidence_level=level),
        lambda: StreamingFirm(confidence_level=level),
        lambda: compare(result, result, confidence_level=level),
        lambda: result.compare(confidence_level=level),
        lambda: result.intervals(level),
        lambda: result.ranks(level),
    ):
        with pytest.raises(ValueError, match=r"^confidence_level must be .* above 0 and below 1"):
            call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: compare(r, S), "must be FirmResults, got .*ndarray"),
        (lambda r: compare(firm_by_class(Y, X), r), "must be FirmResults, got .*FirmByClass"),
        (lambda r: compare(r, firm(S, X, feature_names=list("pqrs"))), "^other has the features"),
        (lambda r: compare(r, r, paired="yes"), "^paired='yes' is unknown; expected one of"),
        (lambda r: compare(r, firm(S[:99], X[:99]), paired=True), "paired=True needs the same"),
        (lambda r: r.compare("a"), r"^features=\('a',\) must be two features"),
        (lambda r: r.compare("a", "z"), r"^features=\('a', 'z'\) must be two features"),
        (lambda r: firm(S, X, rows="population").ranks(), "rows='population' has no"),
        (lambda r: compare(r, firm(S, X, rows="population")), "rows='population' has no"),
        (lambda r: r.plot(n=0), "^n must be an integer"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(firm(S, X))


def test_too_many_features_for_ranks_are_refused_before_memory_is_taken(monkeypatch):
    many = np.random.default_rng(33).normal(size=(30, 100))
    result = firm(many[:, 0], many)
    monkeypatch.setattr("firmlib.tables.checks.MEMORY_LIMIT", 10**5)
    for call in (result.ranks, result.compare, lambda: result.to_frame(ranks=True)):
        with pytest.raises(ValueError, match="comparison of all pairs of features"):
            call()


# Every class and every output


@pytest.mark.parametrize(
    ("model", "y", "targets"),
    [
        (LinearRegression(), NUMBERS @ [[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]], [0, 1]),
        (RandomForestRegressor(5, random_state=0), NUMBERS @ np.eye(3)[:, :2], [0, 1]),
        (RandomForestClassifier(5, random_state=0), TWO, None),
        (MultiOutputClassifier(LogisticRegression()), TWO, None),
        (KMeans(3, n_init=1, random_state=0), None, [0, 1, 2]),
        (GaussianMixture(3, random_state=0), None, [0, 1, 2]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_output(model, y, targets):
    results = firm_by_class(model.fit(NUMBERS, y), NUMBERS)
    both = [(0, "no"), (0, "so"), (0, "yes"), (1, "minus"), (1, "plus")]
    assert list(results) == (targets or both)
    for target, result in results.items():
        same(result, firm(model, NUMBERS, target=target))


def test_callables_tables_and_labels():
    scores = NUMBERS.to_numpy() @ [[1, 0], [0, 2], [0, 1]]
    called, given = firm_by_class(lambda X: scores, X), firm_by_class(scores, X)
    named = firm_by_class(pd.DataFrame(scores, columns=["one", "two"]), X)
    assert list(named) == ["one", "two"]
    assert called.importances.max(axis=1).is_monotonic_decreasing
    for result in (called[1], given[1], named["two"]):
        np.testing.assert_array_equal(result.importances, firm(scores[:, 1], X).importances)
    labels = firm_by_class(pd.Series(Y), X)["so"]
    np.testing.assert_array_equal(labels.importances, firm((Y == "so") * 1.0, X).importances)


def test_a_mapping_with_tables_and_panels():
    results = firm_by_class(Y, X)
    assert isinstance(results, firmlib.FirmByClass)
    table = results.to_frame()
    assert table.columns[0] == "class"
    for label, part in table.groupby("class"):
        pd.testing.assert_frame_equal(part.drop(columns="class"), results[label].to_frame())
    assert repr(results).startswith("FirmByClass: 3 classes, importances:\n")
    assert results.get("maybe") is None
    with pytest.raises(KeyError, match="'maybe'"):
        results["maybe"]
    figure = results.plot(n=3, columns=2)
    assert [ax.get_title() for ax in figure.axes] == ["no", "so", "yes"]
    names = list(results.importances.index[:3])
    for ax, result in zip(figure.axes, results.values(), strict=True):
        widths = sorted(bar.get_width() for bar in ax.patches)
        drawn = result.to_frame().loc[names, "importance"]
        np.testing.assert_allclose(widths, sorted(drawn[drawn > 0]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: firm_by_class(X["a"], X), "estimator=Series has no classes and one output"),
        (lambda: firm_by_class(LogisticRegression(), X), "is not fitted"),
        (lambda: firm_by_class(Y, X, target="no"), "target='no' selects one class"),
        (lambda: firm_by_class(Y, "rows/*.parquet"), "X comes in chunks"),
        (lambda: firm_by_class(np.zeros((4, 2)), X), "score"),
    ],
)
def test_classes_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("model", "response", "options"),
    [
        (IsolationForest(n_estimators=20, random_state=0), "decision_function", {}),
        (OneClassSVM(), "decision_function", {}),
        (KernelDensity(), "score_samples", {}),
        (GaussianMixture(3, random_state=0), "score_samples", {"response_method": "score_samples"}),
    ],
)
def test_how_usual_a_row_is_counts_as_a_score(model, response, options):
    table = NUMBERS.to_numpy()
    result = firm(model.fit(table), table, **options)
    assert (result.response, result.target) == (response, None)
    expected = firm(getattr(model, response)(table), table).importances
    np.testing.assert_allclose(result.importances, expected)


def test_jupyter_shows_a_table_with_escaped_names():
    html = firm(np.arange(20.0), pd.DataFrame({"a<b": range(20)}))._repr_html_()
    assert "a&lt;b" in html
    assert html.count("<table") == 1
