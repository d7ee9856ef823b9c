"""The search for rules, against enumeration of all conjunctions and against pysubgroup."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

import firmlib
from firmlib import SearchResult, search
from firmlib._conjunctions import Conjunctions
from firmlib.datasets import boolean_table
from firmlib.discovery import _half


def conditions(X, cuts):
    """Above and not above quantiles, one column after another: (n, 2 * columns * cuts)."""
    levels = np.quantile(X, np.arange(1, cuts + 1) / (cuts + 1), axis=0).T
    above = [f > tau for f, taus in zip(X.T, levels, strict=True) for tau in taus]
    return np.column_stack([part for f in above for part in (f, ~f)])


def enumerated(holds, r, w, order, min_rows):
    """|Q| of all conjunctions by the definition, the largest first."""
    found = {}
    for k in range(1, order + 1):
        for rule in combinations(range(holds.shape[1]), k):
            A = holds[:, list(rule)].all(axis=1)
            if min_rows <= A.sum() <= len(r) - min_rows:
                p = w[A].sum() / w.sum()
                found[rule] = abs((w * r)[A].sum()) / (w.sum() * np.sqrt(p * (1 - p)))
    return dict(sorted(found.items(), key=lambda item: -item[1]))


@pytest.mark.parametrize("seed", range(6))
def test_it_finds_the_best_of_all_conjunctions(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(150, 400))
    X = rng.normal(size=(n, 4))
    X[:, 3] = rng.integers(0, 3, n)
    s = (X[:, 0] > 0.5) * (X[:, 1] < 0) + rng.exponential(0.5, n)
    w = rng.integers(1, 4, n).astype(float) if seed % 2 else np.ones(n)
    holds, r = conditions(X, 3), s - np.average(s, weights=w)
    found = Conjunctions(holds, r, w, 10)
    best = found.best(3, 40)
    assert len(set(best)) == 40
    values = [abs(found.importance(rule)) for rule in best]
    truth = list(enumerated(holds, r, w, 3, 10).values())
    np.testing.assert_allclose(values, truth[:40], rtol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_for_every_subset(seed):
    rng = np.random.default_rng(seed)
    X, s = rng.normal(size=(60, 3)), rng.normal(size=60)
    found = Conjunctions(conditions(X, 4), s - s.mean(), np.ones(60), 2)
    _, [bound] = found._refined(np.ones((1, 60)), 0)
    for i, j in combinations(range(len(bound)), 2):
        Q = abs(found.importance(found._place[[i, j]]))
        assert max(Q, 1e-12) <= min(bound[i], bound[j])


def test_pysubgroup_finds_the_same():
    ps = pytest.importorskip("pysubgroup")

    class Importance(ps.StandardQFNumeric):
        """Q = (mean_A - mean) sqrt(p / (1 - p)); sets of fewer than 10 rows, or all, count 0."""

        def evaluate(self, subgroup, target, data, statistics=None):
            size, mean = np.asarray(statistics.size_sg), np.asarray(statistics.mean)
            n, overall = self.dataset_statistics.size_sg, self.dataset_statistics.mean
            some = (size >= 10) & (size <= n - 10)
            return np.where(some, (mean - overall) * np.sqrt(size / np.maximum(n - size, 1)), 0.0)

        def optimistic_estimate(self, subgroup, target, data, statistics=None):
            return np.full(np.shape(statistics.size_sg), np.inf)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    s = (X[:, 0] > 0.5) * (X[:, 1] < 0) + 0.5 * rng.normal(size=300)
    holds = conditions(X, 3)
    frame = pd.DataFrame({f"c{i}": column for i, column in enumerate(holds.T)})
    task = ps.SubgroupDiscoveryTask(
        frame.assign(s=s),
        ps.NumericTarget("s"),
        [ps.EqualitySelector(name, True) for name in frame],
        Importance(1.0),
        result_set_size=8,
        depth=3,
    )
    theirs = ps.Apriori(use_numba=False).execute(task).to_descriptions()
    found = Conjunctions(holds, s - s.mean(), np.ones(300), 10)
    positive = [rule for rule in found.best(3, 60) if found.importance(rule) > 0][:8]
    np.testing.assert_allclose([float(q) for q, _ in theirs], list(map(found.importance, positive)))
    rules = [{int(x.attribute_name[1:]) for x in rule.selectors} for _, rule in theirs]
    assert {frozenset(rule) for rule in rules} == {frozenset(rule) for rule in positive}


def test_the_other_half_does_not_believe_the_best_of_many():
    X = np.random.default_rng(0).normal(size=(2000, 20))
    noise = np.random.default_rng(1).normal(size=2000)
    result = search(noise, X, order=2, n=5)
    assert (np.abs(result.searched) > 2 * np.abs(result.importances)).all()
    assert (result.pvalues > 0.01).all()


def test_what_is_held_out_is_firm_of_the_indicator():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    s = X[:, 0] * X[:, 1]
    [rule] = search(s, X, n=1).feature_names
    conditions = [part.split() for part in rule.split(" ∧ ")]
    met = [X[:, int(x[1])] > float(t) if sign == ">" else X[:, int(x[1])] <= float(t)
           for x, sign, t in conditions]  # fmt: skip
    seen = np.random.default_rng(0).permutation(1000) < 500
    inside = np.all(met, axis=0)
    expected = firmlib.firm(s[~seen], inside[~seen, None] * 1.0)
    result = search(s, X, n=1)
    np.testing.assert_allclose(result.importances, expected.importances)
    np.testing.assert_allclose(result.ci_low, expected.ci_low)
    where = firmlib.firm(s[seen], inside[seen, None] * 1.0, rows="population")
    np.testing.assert_allclose(result.searched, where.importances)
    np.testing.assert_allclose(result.covered, inside.mean())


def test_breast_cancer_the_two_halves():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    result = search(y.to_numpy(), X, n=3)
    assert result.n == 284  # of 569
    assert ((result.standardized**2 > 0.6) & (result.standardized**2 < 0.95)).all()


def black_box(formula, n_variables):
    """A boosted model of a formula, and the rows it is asked about."""
    table, labels = boolean_table(formula, n_variables)
    X = np.random.default_rng(0).permutation(np.tile(table, (1280 // len(table), 1)))
    y = labels[(X @ 2 ** np.arange(n_variables)[::-1]).astype(int)]
    return HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(X, y), X


def terms(result):
    return [set(name.split(" ∧ ")) for name in result.feature_names]


@pytest.mark.parametrize("seed", range(5))
def test_random_formulas_of_three_literals_are_found_in_a_black_box(seed):
    rng = np.random.default_rng(seed)
    places, values = rng.permutation(6)[:3], rng.integers(0, 2, 3)
    written = [f"{'' if v else '~'}x{j + 1}" for j, v in zip(places, values, strict=True)]
    a, b, c = (f"x{j} = {v}" for j, v in zip(places, values, strict=True))
    found = terms(search(*black_box(" & ".join(written), 6), order=3, n=1))
    assert found == [{a, b, c}]
    found = terms(search(*black_box(f"{written[0]} & {written[1]} | {written[2]}", 6), order=3))
    assert {a, b} in found
    assert {c} in found


def test_the_formula_of_section_3_1():
    """x1 or (not x1 and not x2) is x1 or not x2; it fails where x2 and not x1."""
    found = terms(search(*black_box("x1 | (~x1 & ~x2)", 3), order=3))
    assert found == [{"x0 = 0", "x1 = 1"}, {"x0 = 1"}, {"x1 = 0"}]


def test_rules_differ_and_each_condition_is_needed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    s = (X[:, 0] > 0) + 0.1 * rng.normal(size=3000)
    result = search(s, X, order=2, n=6, distinct=0.8)
    assert result.feature_names[0].startswith("x0 >")
    assert "∧" not in result.feature_names[0]
    held_out = result.kept.data.table.data  # the indicators
    correlation = np.abs(np.corrcoef(held_out.T)) - np.eye(len(result))
    assert correlation.max() < 0.85  # on the other half; 0.8 where they were found


def test_groups_stay_together():
    rng = np.random.default_rng(0)
    units = np.repeat(np.arange(60), 20)
    X = np.column_stack([units, rng.normal(size=1200)])
    s = rng.normal(size=60)[units]  # of the unit alone
    seen = _half(units, 1200, 0)
    assert not set(units[seen]) & set(units[~seen])
    whole, split = search(s, X, groups=units, n=1), search(s, X, n=1)
    assert whole.pvalues[0] > 1e-3 > 1e-6 > split.pvalues[0]
    words = np.array([f"patient {u}" for u in units])
    np.testing.assert_array_equal(search(s, X, groups=words, n=1).n, whole.n)


def test_categories_dates_and_missing_values():
    rng = np.random.default_rng(0)
    n = 4000
    X = pd.DataFrame(
        {
            "site": rng.choice(["Osaka", "Porto", "Quito"], n),
            "temperature": rng.normal(37, 1, n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
            "sick": rng.random(n) < 0.5,
            "grade": pd.Categorical(
                rng.choice(list("ABC"), n), categories=list("ABC"), ordered=True
            ),
        }
    )
    X.loc[rng.random(n) < 0.3, "temperature"] = np.nan
    noise = 0.1 * rng.normal(size=n)

    def best(where, **options):
        return search(where + noise, X, n=1, **options).feature_names[0]

    assert best((X.site == "Porto") & X.temperature.isna()) == "site = Porto ∧ temperature missing"
    assert best((X.site != "Porto") & X.sick) == "site ≠ Porto ∧ sick = True"
    assert best((X.grade > "B") & ~X.sick) in (
        "sick = False ∧ grade > B",
        "grade > B ∧ sick = False",
    )
    name = best((X.temperature > 37) & (X.grade > "A"))
    assert "grade > A" in name
    assert "temperature > 3" in name
    assert "missing" not in name
    name = best((X.temperature <= 37) | X.temperature.isna())
    assert name.endswith(" or missing")
    name = best(X.day > "2020-06-01", order=1)
    assert name.startswith("day ")
    assert abs(pd.Timestamp(name[6:]) - pd.Timestamp("2020-06-01")) < pd.Timedelta("31D")


def test_rounded_thresholds_are_those_that_are_used():
    f = 1e6 + np.random.default_rng(0).normal(size=600) / 1000  # three digits tell nothing apart
    result = search(f, np.column_stack([f, f]), columns=[0], n=1, order=1, cuts=3)
    sign, tau = result.feature_names[0].split()[1:]
    inside = f > float(tau) if sign == ">" else f <= float(tau)
    np.testing.assert_allclose(result.covered, inside.mean())


def test_the_bar_shows_each_number_of_conditions(capsys):
    X = np.random.default_rng(0).normal(size=(400, 2))
    search(X[:, 0], X, order=2, progress=True)
    assert "2 conditions: 100%" in capsys.readouterr().err


def test_the_table_the_picture_and_json():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    result = search(X[:, 0] * X[:, 1], X, n=3)
    frame = result.to_frame()
    assert {"importance", "searched", "covered", "pvalue"} <= set(frame.columns)
    assert frame["covered"].between(0, 1).all()
    display = result.plot(n=2)
    assert len(display.ax_.get_yticks()) == 2
    again = SearchResult.from_json(result.to_json())
    np.testing.assert_allclose(again.searched, result.searched)


X = np.random.default_rng(3).normal(size=(300, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: search(X[:, 0], X, order=0), "order must be an integer at least 1, got 0"),
        (lambda: search(X[:, 0], X, n=0), "n must be an integer at least 1, got 0"),
        (lambda: search(X[:, 0], X, cuts=0), "cuts must be an integer at least 1, got 0"),
        (lambda: search(X[:, 0], X, min_rows=1), "min_rows must be an integer at least 2, got 1"),
        (lambda: search(X[:, 0], X, distinct=0), "distinct must be a finite number above 0"),
        (lambda: search(X[:, 0], X, groups=[1, 2]), "groups has shape (2,), expected (300,)"),
        (lambda: search(X[:, 0], X, groups=np.ones(300)), "has one label; expected at least 2"),
        (lambda: search(np.full(300, 7.0), X), "score=7 is constant"),
        (lambda: search(X[:150, 0], X[:150]), "150 rows with a weight; expected at least 200"),
        (lambda: search(X[:, 0], np.zeros((300, 2))), "no column of X has two values"),
        (lambda: search(X[:, 0], X, min_rows=80), "holds in min_rows=80 rows"),
        (lambda: search(X[:, 0], X, columns=["age"]), "'age' is no column of X"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
