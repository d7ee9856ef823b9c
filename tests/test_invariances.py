"""What must not change Q_f, and what must change it in a known way.

Features, scores and weights are small integers or dyadic fractions, so that shifting and scaling
them is exact and no tie appears or vanishes by rounding.
"""

import numpy as np
from hypothesis import assume, example, given, note
from hypothesis import strategies as st

from firmlib import firm

OPTIONS = [
    {"method": "auto", "rows": "sample"},
    {"method": "discrete", "rows": "population"},
    {"method": "binned", "rows": "sample"},
    {"method": "binned", "rows": "population"},
    {"method": "binned", "rows": "sample", "n_bins": 3},
    {"method": "slope", "rows": "sample"},
]


@st.composite
def samples(draw, min_size=8):
    """Scores, a feature with ties, and whole weights: a score, f and w of equal length."""
    n = draw(st.integers(min_size, 30))
    column = st.lists(st.integers(-8, 8), min_size=n, max_size=n)
    s, f = np.array(draw(column)) / 4, np.array(draw(column)) / 2
    w = np.array(draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    return s, f, w


def every(options):
    """Each option in turn, all on one sample: drawing it takes longer than to measure."""
    for option in options:
        note(str(option))  # if what follows fails
        yield option


def measure(sample, options):
    s, f, w = sample
    try:
        return firm(s, f[:, None], sample_weight=w, weight_type="count", **options)
    except ValueError as error:  # nothing but lone rows: a sample says nothing then
        assume("a sample needs two rows" not in str(error))
        raise


def assert_close(a, b, factor=1):
    """Compare variances, and importances wherever they are not 0 but for rounding."""
    np.testing.assert_allclose(a.variance, factor**2 * b.variance, rtol=1e-9, atol=1e-12)
    if b.variance[0] > 1e-9:
        np.testing.assert_allclose(a.importances, factor * b.importances, rtol=1e-9)
        np.testing.assert_allclose(a.standardized, np.sign(factor) * b.standardized, rtol=1e-9)
    assert a.methods == b.methods


def slope_is_zero(sample):
    """Is Cov(f, s) exactly 0? All entries are eighths, so whole numbers decide."""
    s, f, w = (np.round(8 * x).astype(int).tolist() for x in sample)
    total = sum(w)
    products = sum(a * b * c for a, b, c in zip(s, f, w, strict=True))
    sums = [sum(a * c for a, c in zip(x, w, strict=True)) for x in (s, f)]
    return total * products == sums[0] * sums[1]


UPHILL_IN_BINS = (  # while Cov(f, s) is 0
    np.array([-0.5, 0, 0, 0, 0, 0, 0.5, 0, 1.5, 0, 1.75]),
    np.array([1.5, 0, 0, 0, 1.5, 0, 1.5, 0, 1.5, 3.5, 0]),
    np.array([3, 1, 1, 1, 1, 2, 1, 3, 3, 2, 1]),
)


def is_flat(curve):
    """Is the slope of a curve in bins 0 but for rounding? It can be where Cov(f, s) is not."""
    t, q = (x - curve.p @ x for x in (curve.t, curve.q))
    return abs(curve.p @ (t * q)) < 1e-10 * (curve.p @ np.abs(t * q))


@given(sample=samples(), shift=st.integers(-(2**20), 2**20))
def test_shifting_a_feature_changes_nothing(sample, shift):
    s, f, w = sample
    for options in every(OPTIONS):
        assert_close(measure((s, f + shift, w), options), measure(sample, options))


@given(sample=samples(), scale=st.sampled_from([3, 1000, 2.0**-30, 2.0**60, 0.75]))
def test_stretching_a_feature_changes_nothing(sample, scale):
    s, f, w = sample
    for options in every(OPTIONS):
        assert_close(measure((s, f * scale, w), options), measure(sample, options))


@given(sample=samples())
def test_any_increasing_function_of_a_feature_leaves_levels_and_bins_alone(sample):
    s, f, w = sample
    for options in every(OPTIONS[:-1]):
        a, b = measure((s, f**3 + f, w), options), measure(sample, options)
        [name] = a.feature_names
        np.testing.assert_allclose(a.curves[name].q, b.curves[name].q, rtol=1e-9, atol=1e-12)
        if a.methods == ("discrete",) or a.rows == "population":  # else lines in bins have a say
            np.testing.assert_allclose(a.variance, b.variance, rtol=1e-9, atol=1e-12)


@given(sample=samples(), scale=st.sampled_from([-1, -3, -(2.0**-30)]))
def test_turning_a_feature_around_flips_the_sign(sample, scale):
    s, f, w = sample
    for method in every(["discrete", "slope"]):
        options = {"method": method, "rows": "population"}
        factor = 1 if slope_is_zero(sample) else -1  # without a direction the sign stays positive
        assert_close(measure((s, f * scale, w), options), measure(sample, options), factor)


@given(s=st.lists(st.integers(-8, 8), min_size=24, max_size=24), seed=st.integers(0, 99))
def test_turning_a_binned_feature_around_flips_the_sign(s, seed):
    """24 values in 4 bins: none lies on an edge, where turning around would move it."""
    f = np.random.default_rng(seed).permutation(24)
    sample = np.array(s, dtype=float), f, np.ones(24)
    factor = 1 if slope_is_zero((sample[0], f // 6, sample[2])) else -1  # of the bins
    options = {"method": "binned", "n_bins": 4}
    assert_close(measure((sample[0], -f, sample[2]), options), measure(sample, options), factor)


@given(sample=samples(), data=st.data())
def test_the_order_of_rows_does_not_matter(sample, data):
    order = data.draw(st.permutations(range(len(sample[0]))))
    shuffled = tuple(x[order] for x in sample)
    for options in every(OPTIONS):
        assert_close(measure(shuffled, options), measure(sample, options))


@given(sample=samples(), data=st.data())
def test_a_weight_may_be_split_among_equal_rows(sample, data):
    s, f, w = sample
    parts = np.array(data.draw(st.lists(st.integers(1, 7), min_size=len(s), max_size=len(s)))) / 8
    split = np.r_[s, s], np.r_[f, f], np.r_[w * parts, w * (1 - parts)]
    for options in every(OPTIONS):
        assert_close(measure(split, options), measure(sample, options))


@given(sample=samples())
def test_integer_weights_are_repetition(sample):
    s, f, w = sample
    repeated = np.repeat(s, w), np.repeat(f, w), np.ones(w.sum())
    for options in every(OPTIONS):
        assert_close(measure(repeated, options), measure(sample, options))


@given(sample=samples(), scale=st.sampled_from([0.125, 3, 2.0**30, 2.0**-30]))
def test_the_scale_of_weights_does_not_matter_to_a_population(sample, scale):
    s, f, w = sample
    for method in every(["auto", "discrete", "binned", "slope"]):
        options = {"method": method, "rows": "population"}
        assert_close(measure((s, f, w * scale), options), measure(sample, options))


@given(sample=samples(), constant=st.integers(-1000, 1000))
def test_a_constant_added_to_the_score_changes_nothing(sample, constant):
    s, f, w = sample
    for options in every(OPTIONS):
        assert_close(measure((s + constant, f, w), options), measure(sample, options))


@example(sample=UPHILL_IN_BINS, factor=-1)
@given(sample=samples(), factor=st.sampled_from([2, 0.75, -1, -3, 100]))
def test_importances_scale_with_the_score(sample, factor):
    s, f, w = sample
    for options in every(OPTIONS):
        result = measure(sample, options)
        binned = result.methods[0] == "binned"
        flat = is_flat(result.curves["x0"]) if binned else slope_is_zero(sample)
        expected = abs(factor) if flat else factor  # without a direction the sign stays positive
        assert_close(measure((factor * s, f, w), options), result, expected)


@given(sample=samples(min_size=2))
def test_a_population_importance_is_at_most_the_sd_of_the_score(sample):
    s, _, w = sample
    for method in every(["discrete", "binned", "slope"]):
        result = measure(sample, {"method": method, "rows": "population"})
        variance = np.cov(s, fweights=w, ddof=0)
        assert 0 <= result.variance[0] <= variance * (1 + 1e-12)
        assert abs(result.standardized[0]) <= 1 + 1e-12


@given(sample=samples(min_size=2))
def test_the_slope_is_at_most_the_importance(sample):
    """Regression explains no more than the conditional mean."""
    slope = measure(sample, {"method": "slope", "rows": "population"})
    full = measure(sample, {"method": "discrete", "rows": "population"})
    assert slope.variance[0] <= full.variance[0] * (1 + 1e-9) + 1e-15


@given(sample=samples(min_size=2))
def test_coarser_features_explain_less(sample):
    s, f, w = sample
    options = {"method": "discrete", "rows": "population"}
    coarse = measure((s, np.floor(f / 2), w), options)
    assert coarse.variance[0] <= measure(sample, options).variance[0] * (1 + 1e-12) + 1e-15


@given(sample=samples())
def test_importances_are_finite_and_signed_roots(sample):
    for options in every(OPTIONS):
        result = measure(sample, options)
        assert np.isfinite(result.variance).all()
        assert np.isfinite(result.standardized).all()
        np.testing.assert_allclose(
            np.abs(result.importances), np.sqrt(np.maximum(result.variance, 0)), rtol=1e-15
        )
