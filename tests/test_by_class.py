"""Every class and every output of a model, and models whose score is no prediction."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.svm import OneClassSVM

import firmlib
from firmlib import firm, firm_by_class

matplotlib.use("Agg")

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(300, 3)), columns=list("abc"))
X["word"] = np.where(X["a"] + RNG.normal(size=300) > 0, "up", "down")
NUMBERS = X[["a", "b", "c"]]
Y = np.array(["no", "so", "yes"])[np.digitize(X["b"] + 0.1 * RNG.normal(size=300), [-0.5, 0.5])]
TWO = np.column_stack([Y, np.where(X["a"] > 0, "plus", "minus")])


class Counted(LogisticRegression):
    """A classifier that counts how often it is asked."""

    asked = 0

    def decision_function(self, X):
        self.asked += 1
        return super().decision_function(X)


def same(result, alone):
    """Whether two results are the same in all that is computed."""
    for name in ("importances", "ci_low", "ci_high", "pvalues", "standard_error", "standardized"):
        np.testing.assert_allclose(getattr(result, name), getattr(alone, name), rtol=1e-12)
    assert result.response == alone.response
    np.testing.assert_allclose(result.curves["a"].q, alone.curves["a"].q, rtol=1e-12)


@pytest.mark.parametrize("response", ["auto", "predict_proba", "predict"])
@pytest.mark.parametrize("options", [{}, {"standardize": True}, {"features": ["b", "a"]}])
def test_all_classes_at_once_are_each_class_alone(response, options):
    model = LogisticRegression().fit(NUMBERS, Y)
    results = firm_by_class(model, NUMBERS, response_method=response, **options)
    assert list(results) == ["no", "so", "yes"]
    for label, result in results.items():
        assert result.target == label
        same(result, firm(model, NUMBERS, response_method=response, target=label, **options))
    assert results.importances.index[0] == "b"


def test_one_pass_of_predictions_serves_all_classes():
    model = Counted().fit(NUMBERS, Y)
    assert len(firm_by_class(model, NUMBERS)) == 3
    assert model.asked == 1


def test_two_classes_mirror_each_other():
    model = LogisticRegression().fit(NUMBERS, X["a"] > 0)
    results = firm_by_class(model, NUMBERS)
    np.testing.assert_allclose(results[False].importances, -results[True].importances)
    chance = firm_by_class(model, NUMBERS, response_method="predict_proba")
    np.testing.assert_allclose(chance[False].curves["a"].q, 1 - chance[True].curves["a"].q)


@pytest.mark.parametrize("model", [LinearRegression(), RandomForestRegressor(5, random_state=0)])
def test_every_output_of_a_regressor(model):
    model.fit(NUMBERS, NUMBERS @ [[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    results = firm_by_class(model, NUMBERS)
    assert list(results) == [0, 1]
    for j, result in results.items():
        same(result, firm(model, NUMBERS, target=j))


@pytest.mark.parametrize("response", ["auto", "predict"])
@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, random_state=0),
        MultiOutputClassifier(LogisticRegression()),
    ],
)
def test_every_class_of_every_output(model, response):
    results = firm_by_class(model.fit(NUMBERS, TWO), NUMBERS, response_method=response)
    assert list(results) == [
        (0, "no"), (0, "so"), (0, "yes"), (1, "minus"), (1, "plus"),
    ]  # fmt: skip
    for target, result in results.items():
        same(result, firm(model, NUMBERS, response_method=response, target=target))
    assert results.importances[1, "plus"].abs().idxmax() == "a"
    assert results.to_frame()["class"].iloc[0] == (0, "no")


def test_probabilities_of_a_chain_of_classifiers():
    model = ClassifierChain(LogisticRegression()).fit(NUMBERS, TWO[0] == TWO)
    results = firm_by_class(model, NUMBERS, response_method="predict_proba")
    np.testing.assert_allclose(results[1, False].curves["a"].q, 1 - results[1, True].curves["a"].q)


def test_clusters_components_callables_and_labels():
    clusters = firm_by_class(KMeans(3, n_init=1, random_state=0).fit(NUMBERS), NUMBERS)
    assert list(clusters) == [0, 1, 2]
    components = firm_by_class(GaussianMixture(3, random_state=0).fit(NUMBERS), NUMBERS)
    assert components[2].response == "predict_proba"
    scores = NUMBERS.to_numpy() @ [[1, 0], [0, 2], [0, 1]]
    called, given = firm_by_class(lambda X: scores, X), firm_by_class(scores, X)
    same(called[1], firm(lambda X: scores[:, 1], X))
    same(given[1], firm(scores[:, 1], X))
    named = firm_by_class(pd.DataFrame(scores, columns=["one", "two"]), X)
    assert list(named) == ["one", "two"]
    same(named["two"], given[1])
    same(firm_by_class(pd.Series(Y), X)["so"], firm((Y == "so").astype(float), X))


def test_a_table_with_the_class_of_each_row():
    results = firm_by_class(Y, X)
    table = results.to_frame()
    assert table.columns[0] == "class"
    assert len(table) == 3 * 4
    for label, part in table.groupby("class"):
        pd.testing.assert_frame_equal(part.drop(columns="class"), results[label].to_frame())
    assert "3 classes, 4 features, 300 rows" in repr(results)


def test_a_panel_for_each_class_with_the_same_features():
    results = firm_by_class(Y, X, ["a", "b", "word"])
    figure = results.plot(n=3, columns=2)
    assert figure.get_figwidth() <= 7
    assert [ax.get_title() for ax in figure.axes] == ["no", "so", "yes"]
    names = list(results.importances.index[:3])
    for ax, result in zip(figure.axes, results.values(), strict=True):
        widths = [bar.get_width() for bar in ax.patches]
        np.testing.assert_allclose(widths[::-1], result.to_frame().loc[names, "importance"])
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    directions = ["score rises with it", "score falls with it", "no direction"]
    assert legend == [*directions, "95 % interval"]


@pytest.mark.parametrize(
    ("model", "response"),
    [
        (IsolationForest(n_estimators=20, random_state=0), "decision_function"),
        (OneClassSVM(), "decision_function"),
        (EllipticEnvelope(random_state=0), "decision_function"),
        (LocalOutlierFactor(novelty=True), "decision_function"),
        (KernelDensity(), "score_samples"),
    ],
)
def test_how_usual_a_row_is_counts_as_a_score(model, response):
    result = firm(model.fit(NUMBERS.to_numpy()), NUMBERS.to_numpy())
    assert (result.response, result.target) == (response, None)
    same_scores = getattr(model, response)(NUMBERS.to_numpy())
    np.testing.assert_allclose(result.importances, firm(same_scores, NUMBERS).importances)
    assert (result.pvalues < 0.05).any()  # rows far from the middle are rare


def test_density_of_a_mixture_if_asked_for():
    model = GaussianMixture(3, random_state=0).fit(NUMBERS)
    result = firm(model, NUMBERS, response_method="score_samples")
    np.testing.assert_allclose(
        result.importances, firm(model.score_samples(NUMBERS), NUMBERS).importances
    )


def test_ranker():
    lightgbm = pytest.importorskip("lightgbm")
    relevance = np.digitize(X["b"], [-1, 0, 1])
    options = {"n_estimators": 10, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
    model = lightgbm.LGBMRanker(**options).fit(NUMBERS, relevance, group=[30] * 10)
    result = firm(model, NUMBERS)
    assert result.to_frame().index[0] == "b"
    assert result["b"]["importance"] > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: firm_by_class(LinearRegression().fit(NUMBERS, X["a"]), NUMBERS),
         "estimator=LinearRegression has no classes and one output"),
        (lambda: firm_by_class(lambda X: X["a"], X), "has no classes and one output"),
        (lambda: firm_by_class(X["a"], X), "estimator=Series has no classes and one output"),
        (lambda: firm_by_class(LogisticRegression, X), "is a class; expected a fitted instance"),
        (lambda: firm_by_class(LogisticRegression(), X), "is not fitted"),
        (lambda: firm_by_class(Y, X, target="no"), "target='no' is for one class"),
        (lambda: firm_by_class(Y, "rows/*.parquet"), "rows that come in parts"),
        (lambda: firm_by_class(np.zeros((4, 2)), X), "score"),
        (lambda: firm_by_class(Y, X).plot(n=0), "n must be an integer"),
    ],
)  # fmt: skip
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_mapping_that_names_the_classes_it_has():
    results = firm_by_class(Y, X)
    assert "so" in results
    assert "maybe" not in results
    assert results.get("maybe") is None
    with pytest.raises(KeyError, match=r"class='maybe' is unknown; expected one of \['no', 'so'"):
        results["maybe"]
    assert results._repr_html_().count("<tr") == 2 + 4


def test_public_names():
    assert isinstance(firm_by_class(Y, X), firmlib.FirmByClass)
