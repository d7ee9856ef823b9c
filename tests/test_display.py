"""Pictures: what is drawn, what explains it, and that nothing overlaps or is cut off."""

from itertools import pairwise

import matplotlib
import numpy as np
import pandas as pd
import pytest

import firmlib
from firmlib.display import GREY, RED

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_hex

TABLE = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
RESULT = firmlib.firm([0.0, 1.0, -3.0, 1.0], TABLE, rows="population")


@pytest.fixture(scope="module")
def frame():
    """Columns of all kinds, four years of days, and a score."""
    rng = np.random.default_rng(0)
    n = 1461
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["up", "down"])
    X["day"] = pd.date_range("2013-01-01", periods=n)
    X["city"] = rng.choice([f"city number {i} of many" for i in range(20)], n)
    X["month"] = X["day"].dt.month
    X["wait"] = pd.to_timedelta(rng.exponential(5, n), unit="h")
    s = X["up"] - X["down"] + (X["city"] == "city number 3 of many") + np.sin(X["month"])
    X.loc[rng.random(n) < 0.15, "down"] = np.nan
    return X, s.to_numpy() + rng.normal(size=n)


def texts(legend):
    return [text.get_text() for text in legend.texts]


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels() if label.get_text()]


def test_bars_go_right_the_largest_on_top_and_colours_show_the_direction(frame):
    drawn = firmlib.firm(frame[1], frame[0][["up", "down", "city"]], confidence_level=0.9).plot()
    widths = [bar.get_width() for bar in drawn.ax_.patches]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] > 0
    top_down = sorted(drawn.ax_.patches, key=lambda bar: -bar.get_y())
    bars = dict(zip(labels(drawn.ax_.yaxis), top_down, strict=True))
    colors = {name: to_hex(bar.get_facecolor(), True).upper() for name, bar in bars.items()}
    assert colors == {"up": f"{RED}FF", "down": f"{RED}40", "city": f"{GREY}80"}
    assert texts(drawn.figure_.legends[0]) == [
        "score rises with the feature",
        "score falls with it",
        "no direction",
        "90 % confidence interval",
    ]


def test_intervals_are_those_of_the_result_and_seen_on_any_background():
    X = np.random.default_rng(0).normal(size=(400, 3))
    result = firmlib.firm(X[:, 0] - 2 * X[:, 1], X)
    with plt.style.context("dark_background"):
        ax = result.plot(n=2).ax_
    assert labels(ax.yaxis) == ["x1", "x0"]
    [lines] = ax.collections
    [(low, _), (high, _)] = lines.get_segments()[0]
    np.testing.assert_allclose([low, high], [result.ci_low[1], result.ci_high[1]])
    assert to_hex(lines.get_edgecolor()) == "#ffffff"
    assert ax.get_xlabel().endswith("(1 less important feature not shown)")
    assert not RESULT.plot().ax_.collections  # a population has no errors


def test_ranks_stand_beside_the_bars(frame):
    drawn = firmlib.firm(frame[1], frame[0][["up", "down"]]).plot(ranks=True)
    bars, beside = drawn.figure_.axes
    assert beside.get_ylim() == bars.get_ylim()
    assert beside.get_xlabel() == "rank and range"


@pytest.mark.parametrize("features", [1, 30, 200])
def test_few_and_many_long_names_leave_room_for_bars(features):
    names = [f"{'very ' * 20}long name {i}{' of many' * 2}" for i in range(features)]
    X = np.random.default_rng(0).normal(size=(300, features))
    drawn = firmlib.firm(X[:, 0], X, feature_names=names).plot()
    drawn.figure_.canvas.draw()
    shown = labels(drawn.ax_.yaxis)
    assert len(set(shown)) == min(features, 30)
    assert max(len(line) for text in shown for line in text.split("\n")) <= 40
    assert drawn.ax_.get_window_extent().width / drawn.figure_.dpi > 2.5
    box = drawn.figure_.get_tightbbox()
    assert box.x0 >= -0.02
    assert box.x1 <= drawn.figure_.get_figwidth() + 0.02
    assert ("170 less important" in drawn.ax_.get_xlabel()) == (features == 200)


def test_axes_say_what_the_score_is_in_words(frame):
    from sklearn.linear_model import LogisticRegression

    X, y = frame[0][["up", "wait"]].assign(wait=np.arange(1461) % 7), frame[1] > 0
    model = LogisticRegression().fit(X, y)
    _, ax = plt.subplots()
    drawn = firmlib.FirmDisplay.from_estimator(model, X, given=["wait"]).plot(ax)
    assert drawn.ax_ is ax
    assert ax.get_xlabel() == "importance $Q_f$ (decision value of class True)\ngiven wait"
    result = firmlib.firm(model, X, response_method="predict_proba")
    curve = firmlib.ConditionalScoreDisplay.from_result(result, "up").plot()
    assert curve.ax_.get_ylabel() == "expected probability of class True $q_f(t)$"


def test_curve_and_its_band():
    drawn = firmlib.ConditionalScoreDisplay.from_result(RESULT, "x0").plot()
    band, *bars = drawn.ax_.patches
    mean, Q = -0.25, RESULT.importances[0]
    ends = [band.get_y(), band.get_y() + band.get_height()]
    np.testing.assert_allclose(ends, [mean - Q, mean + Q])
    np.testing.assert_allclose(drawn.ax_.lines[-1].get_ydata(), [0.5, -1.0])
    heights = np.array([bar.get_height() for bar in bars])
    np.testing.assert_allclose(heights / heights.sum(), RESULT.curves["x0"].p)
    assert len(texts(drawn.figure_.legends[0])) == 4
    with pytest.raises(ValueError, match="name='z' is unknown"):
        firmlib.ConditionalScoreDisplay.from_result(RESULT, "z")


def test_gallery_shows_every_kind_on_one_scale(frame):
    result = firmlib.firm(frame[1], frame[0], categorical=["month"])
    figure = result.plot_curves()
    figure.canvas.draw()
    axes = {ax.get_xlabel(): ax for ax in figure.axes}
    assert set(axes) == {"up", "down", "day", "city", "month", "wait (hours)"}
    assert len({ax.get_ylim() for ax in figure.axes}) == 1
    assert (
        axes["down"].get_title("right") == f"missing: {100 * frame[0]['down'].isna().mean():.2g} %"
    )
    assert labels(axes["month"].xaxis) == [str(month) for month in range(1, 13)]
    levels = labels(axes["city"].xaxis)
    assert len(set(levels)) == 12
    assert levels[-1] == "9 rarer"
    days = [label.get_window_extent() for label in axes["day"].xaxis.get_ticklabels()]
    assert all(a.x1 <= b.x0 for a, b in pairwise(days))
    assert [ax.get_xlabel() for ax in result.plot_curves(features=["up", "day"]).axes] == [
        "up",
        "day",
    ]
    with pytest.raises(ValueError, match="name='z' is unknown"):
        result.plot_curves(features=["z"])
    with pytest.raises(ValueError, match="n must be an integer at least 1, got 0"):
        result.plot_curves(n=0)
    with pytest.raises(ValueError, match="result has no curve to draw"):
        firmlib.firm(frame[1], frame[0], {"g": ["up", "month"]}).plot_curves()


def test_interactions_show_whole_names_in_the_upper_triangle():
    names = ["a", "a much longer name of a column in the table", "c"]
    X = np.random.default_rng(0).normal(size=(1000, 3))
    pairs = firmlib.features.Pairs("interaction")
    result = firmlib.firm(X[:, 0] * X[:, 1], pd.DataFrame(X, columns=names), pairs)
    ax = firmlib.plot_interactions(result)
    assert [label.replace("\n", " ") for label in labels(ax.xaxis)] == names[1:]
    assert [label.replace("\n", " ") for label in labels(ax.yaxis)] == names[:-1]
    cells = ax.collections[0].get_array()
    assert cells.mask.ravel().tolist() == [False, False, True, False]
    low = matplotlib.colors.rgb_to_hsv(ax.collections[0].cmap(0.0)[:3])
    assert low[2] > 0.9  # zero is light
    with pytest.raises(ValueError, match=r"^result has the features \['x0', .* of Pairs"):
        firmlib.plot_interactions(RESULT)


def test_interactions_of_columns_with_any_names():
    names = ["a", "a × b", "b ×"]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=names)
    pairs = firmlib.features.Pairs("interaction")
    for renamed in (None, ["p", "q", "r"]):
        result = firmlib.firm(X["a"] * X["b ×"], X, pairs, feature_names=renamed)
        ax = firmlib.plot_interactions(result)
        assert [*labels(ax.yaxis), *labels(ax.xaxis)] == [*names[:2], *names[1:]]
        [strong] = np.argwhere(ax.collections[0].get_array() > 0.5)
        assert strong.tolist() == [0, 1]  # row a, column b ×
    assert result.pairs == ((names[0], names[1]), (names[0], names[2]), (names[1], names[2]))


def test_names_are_not_formulas(tmp_path):
    names = ["price_$_per_$kg", "$^", "level"]
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(200, 3)), columns=names)
    s = X["$^"] * X["price_$_per_$kg"] + X["$^"]
    X["level"] = np.array(["a_$_$", "b"])[(s > 0).astype(int)]
    result = firmlib.firm(s, X)
    pairs = firmlib.firm(s, X, firmlib.features.Pairs("interaction"))
    drawn = [
        result.plot(ranks=True).figure_,
        result.plot_curves(),
        firmlib.ConditionalScoreDisplay.from_estimator(s, X, "price_$_per_$kg").plot().figure_,
        firmlib.firm_by_class(X["level"], X).plot(),
        firmlib.plot_interactions(pairs).figure,
    ]
    for figure in drawn:
        with plt.rc_context({"svg.fonttype": "none"}):
            figure.savefig(tmp_path / "out.svg")
        assert "$" in (tmp_path / "out.svg").read_text(encoding="utf-8").replace(r"\$", "")
