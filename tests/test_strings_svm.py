"""The classifier: its optimum, its score, and the contract of a scikit-learn estimator."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, SkipTestWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data

from firmlib.strings import DNA
from firmlib.strings.alphabet import decode, encode
from firmlib.strings.kernel import wds_diagonal, wds_kernel
from firmlib.strings.svm import WDSClassifier

both_losses = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])


def planted(n, seed=0, length=20, motif="GATTACA", jitter=1):
    """Random sequences; every other one has the motif somewhere about its middle."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (n, length)), np.arange(n) % 2
    for i in np.flatnonzero(y):
        start = (length - len(motif)) // 2 + rng.integers(-jitter, jitter + 1)
        X[i, start : start + len(motif)] = encode([motif])[0]
    return X, y


X, Y = planted(80)
NEW = planted(30, seed=1)[0]
LABELS = np.where(Y, "with", "without")  # "with" is the first class


def kernel(machine, A, B=None):
    options = {name: getattr(machine, name) for name in ("degree", "shift", "shift_weights")}
    return wds_kernel(A, B, **options, normalize=machine.normalize)


def alpha_of(machine, n):
    alpha = np.zeros(n)
    alpha[machine.support_] = machine.dual_coef_
    return alpha


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_hinge_is_svc(C):
    machine = WDSClassifier(4, 2, C).fit(X, LABELS)
    K = kernel(machine, X)
    svc = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, LABELS)
    np.testing.assert_array_equal(machine.support_, np.sort(svc.support_))
    np.testing.assert_allclose(machine.intercept_, svc.intercept_[0])
    np.testing.assert_allclose(
        machine.decision_function(X), svc.decision_function(K), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize(
    "options", [{}, {"normalize": False}, {"shift_weights": "shogun"}], ids=str
)
def test_squared_hinge_fulfils_the_conditions_of_the_optimum(C, options):
    """alpha = 2 C y max(0, 1 - y f) and sum(alpha) = 0: no other point fulfils them."""
    rng = np.random.default_rng(2)
    y = np.where(rng.random(len(Y)) < 0.2, 1 - Y, Y)  # noisy labels
    options = {"degree": 4, "shift": 2, "C": C, "loss": "squared_hinge", **options}
    machine = WDSClassifier(**options).fit(X, y)
    K, y = kernel(machine, X), 2.0 * y - 1
    alpha = alpha_of(machine, len(y))
    f = K @ alpha + machine.intercept_
    loss = np.maximum(0, 1 - y * f)
    error = np.linalg.norm(alpha - 2 * C * y * loss) / np.linalg.norm(alpha)
    assert error < 1.1e-6
    assert abs(alpha.sum()) < 1e-9 * np.abs(alpha).sum()
    np.testing.assert_array_equal(machine.support_, np.flatnonzero(loss))
    np.testing.assert_allclose(machine.decision_function(X), f, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(machine.predict(X), (f > 0).astype(int))


# The contract of scikit-learn ---------------------------------------------------------------------


def test_check_estimator():
    """All but the check of `clone` need tables of floats, which are not DNA; see below."""
    with pytest.warns(SkipTestWarning, match="Can't test estimator WDSClassifier"):
        checks = check_estimator(WDSClassifier())
    assert {check["status"] for check in checks} == {"passed"}


class TableClassifier(WDSClassifier):
    """Reads a table of floats as DNA, so that the other checks can run."""

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y)
        return super().fit(np.floor(X).astype(int) % 4, y, sample_weight)

    def decision_function(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        return super().decision_function(np.floor(X).astype(int) % 4)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string = True, False
        return tags


def expected_failures(estimator):
    """Before 1.7 this check tells the first row's label from the others, in each of its two fits,
    but shuffles the rows of one: the fits learn different labels. Our own check is below."""
    if not sklearn.__version__.startswith("1.6."):
        return {}
    return {"check_sample_weight_equivalence_on_dense_data": "the two fits have different labels"}


@parametrize_with_checks(
    [TableClassifier(degree=1), TableClassifier(degree=1, loss="squared_hinge")],
    expected_failed_checks=expected_failures,
)
def test_estimator_on_tables(estimator, check):
    check(estimator)


def machine_numbers(machine):
    return machine.decision_function(NEW), machine.weights_.score(NEW)


@both_losses
@pytest.mark.parametrize(
    "changed", [{"degree": 5}, {"shift": 3}, {"shift_weights": "shogun"}, {"normalize": False}]
)
def test_changed_parameters_wait_for_the_next_fit(changed, loss):
    machine = WDSClassifier(3, 1, loss=loss).fit(X, Y)
    before = machine_numbers(WDSClassifier(3, 1, loss=loss).fit(X, Y))
    machine.set_params(**changed)
    np.testing.assert_array_equal(machine_numbers(machine), before)
    after = machine_numbers(machine.fit(X, Y))
    expected = machine_numbers(WDSClassifier(3, 1, loss=loss).set_params(**changed).fit(X, Y))
    np.testing.assert_array_equal(after, expected)
    assert not np.array_equal(after, before)


def test_a_fit_that_fails_leaves_the_machine_as_it_was():
    machine = WDSClassifier(3, 1).fit(X, LABELS)
    before, weights = machine.decision_function(NEW), machine.weights_
    for bad in ({"degree": 99}, {"shift": 99}, {"C": 0}):
        old = {name: machine.get_params()[name] for name in bad}
        with pytest.raises(ValueError, match=next(iter(bad))):
            machine.set_params(**bad).fit(X, Y)
        machine.set_params(**old)
    with pytest.raises(ValueError, match="3 classes"):
        machine.fit(X, np.arange(80) % 3)
    np.testing.assert_array_equal(machine.decision_function(NEW), before)
    assert machine.classes_.tolist() == ["with", "without"]
    assert machine.weights_ is weights


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), deepcopy])
def test_copies_have_the_weights_but_not_their_bulk(copied):
    machine = WDSClassifier(3, 1).fit(X, Y)
    size = len(pickle.dumps(machine))
    expected = machine_numbers(machine)
    assert len(pickle.dumps(machine)) == size
    again = copied(machine).set_params(degree=2)
    np.testing.assert_array_equal(machine_numbers(again), expected)
    assert not hasattr(clone(machine), "weights_")


def test_says_that_it_did_not_converge():
    message = r"^stopped after 1 steps .* above tol=1e-06"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        WDSClassifier(3, loss="squared_hinge", max_iter=1).fit(X, Y)
    assert caught[0].filename == __file__  # where fit was called
    with pytest.warns(ConvergenceWarning):
        WDSClassifier(3, max_iter=1).fit(X, Y)


# Weights of classes and sequences, more classes, probabilities, strands, reads


@both_losses
def test_sample_weight_counts_sequences_so_often(loss):
    times = np.random.default_rng(0).integers(0, 4, len(Y))
    weighted = WDSClassifier(3, 1, loss=loss, tol=1e-9).fit(X, Y, times)
    repeated = WDSClassifier(3, 1, loss=loss, tol=1e-9).fit(np.repeat(X, times, axis=0),
                                                           np.repeat(Y, times))  # fmt: skip
    np.testing.assert_allclose(
        weighted.decision_function(NEW), repeated.decision_function(NEW), atol=1e-5
    )
    assert (times[weighted.support_] > 0).all()
    np.testing.assert_array_equal(weighted.support_vectors_, X[weighted.support_])


@both_losses
def test_class_weight_is_a_sample_weight(loss):
    Z, labels = X[:60], Y[:60]
    balanced = len(labels) / (2 * np.bincount(labels))[labels]
    for class_weight, weight in (("balanced", balanced), ({0: 5}, np.where(labels, 1, 5))):
        one = WDSClassifier(3, 1, loss=loss, class_weight=class_weight).fit(Z, labels)
        other = WDSClassifier(3, 1, loss=loss).fit(Z, labels, weight)
        np.testing.assert_allclose(
            one.decision_function(NEW), other.decision_function(NEW), atol=1e-9
        )


def test_more_classes_and_probabilities_by_scikit_learn():
    seqs, labels = decode(X), np.arange(len(X)) % 3
    model = OneVsRestClassifier(WDSClassifier(3)).fit(seqs, labels)
    assert model.predict(seqs[:5]).shape == (5,)
    assert [estimator.weights_.degree for estimator in model.estimators_] == [3, 3, 3]
    calibrated = CalibratedClassifierCV(WDSClassifier(3), cv=3).fit(seqs, LABELS)
    p = calibrated.predict_proba(seqs)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert np.mean(calibrated.classes_[p.argmax(axis=1)] == LABELS) > 0.7


@both_losses
def test_both_strands_get_one_score(loss):
    model = WDSClassifier(3, 2, loss=loss, reverse_complement=True).fit(X, Y)
    s, other = DNA.reverse_complement(encode(NEW)), encode(NEW)
    np.testing.assert_allclose(model.decision_function(s), model.decision_function(other))
    options = {"degree": 3, "shift": 2, "reverse_complement": True}
    unfolded = model.weights_.score(NEW) / np.sqrt(wds_diagonal(NEW, **options))
    np.testing.assert_allclose(unfolded + model.intercept_, model.decision_function(NEW))


@both_losses
def test_reads(loss):
    seqs = [seq[: 15 + i % 6].ljust(20, "N") for i, seq in enumerate(decode(X))]
    seqs[3] = seqs[3][:5] + "nR" + seqs[3][7:]
    model = WDSClassifier(3, 1, loss=loss, unknown="average")
    model.fit(seqs, Y)
    assert model.n_features_in_ == 20
    options = {"degree": 3, "shift": 1, "unknown": "average"}
    K = wds_kernel(encode(seqs, unknown="average"), model.support_vectors_, **options)
    np.testing.assert_allclose(
        model.decision_function(seqs), K @ model.dual_coef_ + model.intercept_, atol=1e-10
    )
    with pytest.raises(ValueError, match=r"^X\[0\] has 'N' at position 15.*unknown='average'"):
        WDSClassifier(3).fit(seqs, Y)


@both_losses
def test_sequences_that_look_one_hot_and_sequences_without_a_letter(loss):
    seqs, new = ["CAAA", "ACAA", "AACA", "AAAC"], ["ACGT", "CCAA"]
    model = WDSClassifier(2, loss=loss).fit(seqs, [0, 0, 1, 1])
    np.testing.assert_array_equal(model.predict(seqs), [0, 0, 1, 1])
    K = wds_kernel(new, seqs, degree=2)
    expected = K[:, model.support_] @ model.dual_coef_ + model.intercept_
    np.testing.assert_allclose(model.decision_function(new), expected, atol=1e-12)
    options = {"degree": 2, "unknown": "average"}
    model = WDSClassifier(loss=loss, **options).fit(["NNNN", *seqs], [0, 1, 0, 1, 0])
    K = wds_kernel(new, model.support_vectors_, **options)
    expected = K @ model.dual_coef_ + model.intercept_
    assert 0 in model.support_
    np.testing.assert_allclose(model.decision_function(new), expected, atol=1e-12)
