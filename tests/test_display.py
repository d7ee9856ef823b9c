"""Pictures: what is drawn, and that a saved figure is the same again."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

import firmlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import PathCollection

from firmlib.compendium import figures

TABLE = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
RESULT = firmlib.firm([0.0, 1.0, -3.0, 1.0], TABLE, rows="population")


def test_every_mark_of_the_bars_is_in_a_legend():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["up", "down"])
    X["kind"] = rng.choice(["a", "b"], 200)
    s = (X["up"] - X["down"] + (X["kind"] == "a") + rng.normal(size=200)).to_numpy()
    drawn = firmlib.firm(s, X, confidence_level=0.9).plot(ranks=True)
    bars, beside = ([t.get_text() for t in ax.get_legend().texts] for ax in drawn.figure_.axes)
    directions = ["score rises with it", "score falls with it", "no direction"]
    assert bars == [*directions, "90 % interval"]
    assert beside == ["rank, and those allowed"]
    known = firmlib.firm(s, X, rows="population").plot().ax_.get_legend()
    assert [t.get_text() for t in known.texts] == directions  # without intervals
    by_class = firmlib.firm_by_class(np.array(["a", "b", "c", "a"] * 50), X).plot().legends[0]
    assert by_class.texts[-1].get_text() == "95 % interval"


def test_names_are_no_formulas(tmp_path):
    names, levels = ["price_$_per_$kg", "$^", "level"], np.array(["a_$_$", "b"])
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=names)
    s = X["$^"] * X["price_$_per_$kg"] + X["$^"]
    X["level"] = levels[(s > 0).astype(int)]
    result = firmlib.firm(s, X)
    result.report(tmp_path / "out.html")
    drawn = [
        result.plot(ranks=True).figure_,
        result.plot_curves(),
        firmlib.ConditionalScoreDisplay.from_estimator(s, X, "price_$_per_$kg").plot().figure_,
        firmlib.firm_by_class(X["level"], X).plot(),
        firmlib.firm(lambda X: s, X, given="$^").plot().figure_,
        firmlib.search(s, X, n=3).plot().figure_,
        firmlib.plot_interactions(firmlib.firm(s, X, firmlib.features.Pairs("interaction"))).figure,
    ]
    for figure in drawn:
        with plt.rc_context({"svg.fonttype": "none"}):
            figure.savefig(tmp_path / "out.svg")
        text = (tmp_path / "out.svg").read_text(encoding="utf-8")
        assert "$" in text.replace(r"\$", "")


def test_bars_are_the_importances_the_largest_on_top():
    drawn = RESULT.plot()
    widths = [bar.get_width() for bar in drawn.ax_.patches]
    assert widths == sorted(RESULT.importances, key=abs)
    labels = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    assert labels == ["x0", "x1"]


def test_bars_from_an_estimator_on_given_axes():
    _, ax = plt.subplots()
    drawn = firmlib.FirmDisplay.from_estimator(lambda X: X[:, 0], TABLE, rows="population").plot(ax)
    assert drawn.ax_ is ax
    assert len(drawn.plot(n=1).ax_.patches) == 1


def test_curve_and_its_band():
    drawn = firmlib.ConditionalScoreDisplay.from_result(RESULT, "x0").plot()
    band, *bars = drawn.ax_.patches
    mean, Q = -0.25, abs(RESULT.importances[0])
    np.testing.assert_allclose(
        [band.get_y(), band.get_y() + band.get_height()], [mean - Q, mean + Q]
    )
    np.testing.assert_allclose(drawn.ax_.lines[-1].get_ydata(), [0.5, -1.0])
    assert drawn.ax_.get_xlabel() == "x0"
    heights = np.array([bar.get_height() for bar in bars])
    np.testing.assert_allclose(heights / heights.sum(), RESULT.curves["x0"].p)
    with pytest.raises(ValueError, match="name='z' is unknown"):
        firmlib.ConditionalScoreDisplay.from_result(RESULT, "z")


def test_saved_figures_are_the_same_bytes_again(tmp_path, monkeypatch):
    saved = []
    for folder in ("a", "b"):
        monkeypatch.setenv("FIRMLIB_OUTPUT", str(tmp_path / folder))
        with plt.rc_context(figures.STYLE):
            figure, ax = plt.subplots()
            ax.plot([1, 2], [3, 4])
            figures.save(figure, "line", pd.DataFrame({"x": [1, 2], "y": [1 / 3, 2e-20]}))
        saved.append({p.name: p.read_bytes() for p in (tmp_path / folder).rglob("*.*")})
    assert set(saved[0]) == {"line.png", "line.svg", "line.csv"}
    assert saved[0] == saved[1]
    assert saved[0]["line.csv"] == b"x,y\n1,0.3333333333\n2,2e-20\n"


def test_band_of_a_sample_is_the_corrected_importance():
    rng = np.random.default_rng(0)
    noise = firmlib.conditional_expected_score(rng.normal(size=300), rng.normal(size=(300, 1)), 0)
    band, *_ = firmlib.ConditionalScoreDisplay(noise).plot().ax_.patches
    np.testing.assert_allclose(band.get_height(), 2 * np.sqrt(max(noise.variance, 0)))
    assert band.get_height() < 2 * np.sqrt(noise.p @ (noise.q - noise.p @ noise.q) ** 2)


def test_bars_have_their_intervals():
    X = np.random.default_rng(0).normal(size=(400, 3))
    result = firmlib.firm(X[:, 0] - 2 * X[:, 1], X)
    ax = result.plot(n=2).ax_
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x0", "x1"]
    [(low, _), (high, _)] = ax.collections[0].get_segments()[1]
    np.testing.assert_allclose([low, high], [result.ci_low[1], result.ci_high[1]])
    assert not RESULT.plot().ax_.collections  # a population has none


def test_gallery_shows_the_most_important_first_on_one_scale():
    X = np.random.default_rng(1).normal(size=(3000, 5))
    X[:, 4] = np.round(X[:, 4])
    result = firmlib.firm(X @ [1.0, 3, 0, 2, 4], X)
    figure = result.plot_curves(n=4, columns=3)
    assert [ax.get_xlabel() for ax in figure.axes] == ["x4", "x1", "x3", "x0"]
    assert len({ax.get_ylim() for ax in figure.axes}) == 1
    low, high = figure.axes[0].get_ylim()
    assert all(low < q < high for ax in figure.axes for q in ax.lines[-1].get_ydata())
    with pytest.raises(ValueError, match="n must be an integer at least 1, got 0"):
        result.plot_curves(n=0)
    group = firmlib.firm(X[:100, 0], X[:100], {"g": [0, 1]})
    with pytest.raises(ValueError, match="result has no curve to draw"):
        group.plot_curves()


def test_a_notebook_shows_a_table_of_the_largest():
    X = np.random.default_rng(2).normal(size=(200, 25))
    html = firmlib.firm(X[:, 7], X)._repr_html_()
    assert html.index("x7") < html.index("x1</")
    assert html.count("<tr") == 2 + 20
    assert "and 5 more" in html
    assert "importance" in html


def test_long_names_are_shortened_and_stay_apart():
    names = [f"{'very ' * 20}long name {i}{' of many' * 2}" for i in range(3)]
    X = np.random.default_rng(0).normal(size=(200, 3))
    result = firmlib.firm(X @ [3, 2, 1], X, feature_names=names)
    assert list(result) == names
    assert names[0] in result
    assert "x0" not in result
    drawn = result.plot(ranks=True)
    figure, ax = drawn.figure_, drawn.ax_
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert [len(label) for label in labels] == [48] * 3
    assert labels[0].startswith("very very")
    assert [label[-17] for label in labels] == ["…"] * 3
    assert sorted(label[-16] for label in labels) == ["0", "1", "2"]  # the ends are alike
    assert len({bar.get_y() for bar in ax.patches}) == 3
    figure.canvas.draw()
    inside = figure.get_tightbbox()
    assert inside.x0 >= -0.02
    assert inside.x1 <= figure.get_figwidth() + 0.02
    curves = result.plot_curves()
    assert all(len(line) <= 26 for line in curves.axes[0].get_xlabel().split("\n"))


def test_levels_are_points_in_order_of_q_with_rare_ones_as_one_and_missing_apart():
    rng = np.random.default_rng(0)
    level = rng.choice(list("abcdefghijklmnop"), 3000, p=np.r_[0.5, np.full(15, 0.5 / 15)])
    s = rng.normal(size=3000) + (level == "a")
    frame = pd.DataFrame({"letter": np.where(level == "p", None, level), "size": rng.random(3000)})
    frame.loc[level == "b", "size"] = np.nan
    result = firmlib.firm(s, frame)
    drawn = result.curves["letter"].plot()
    pale, points = [c for c in drawn.ax_.collections if isinstance(c, PathCollection)]
    heights = points.get_offsets()[:, 1]
    labels = [label.get_text() for label in drawn.ax_.get_xticklabels()]
    assert list(heights) == sorted(heights)
    assert len(labels) == 12
    assert labels[-1] == "a"
    assert "4 rarer" in labels
    assert len(drawn.ax_.texts) == 1
    assert drawn.ax_.texts[0].get_text() == f"missing\n{np.mean(level == 'p'):.0%}"
    known = level != "p"
    rare = ~np.isin(level, labels) & known
    np.testing.assert_allclose(heights[labels.index("4 rarer")], s[rare].mean())
    each = [s[level == letter].mean() for letter in sorted(set(level[rare]))]
    np.testing.assert_allclose(pale.get_offsets(), [(labels.index("4 rarer"), q) for q in each])
    axes = result.plot_curves(features=["size", "letter"]).axes
    assert [ax.get_xlabel() for ax in axes] == ["size", "letter"]
    line = axes[0].lines[1].get_xydata()
    assert len(line) <= 60
    assert len(line) < len(result.curves["size"].t)
    with pytest.raises(ValueError, match="features='z' is unknown"):
        result.plot_curves(features=["z"])
    frame = result.curves["size"].to_frame()
    assert list(frame.columns) == ["t", "q", "standard_error", "p", "n"]
    assert np.isnan(frame["t"].iloc[-1])


def test_dates_are_shown_as_dates():
    days = pd.date_range("2013-01-01", periods=300)
    curve = firmlib.conditional_expected_score(np.arange(300.0), pd.DataFrame({"day": days}), "day")
    assert curve.t.dtype.kind == "M"
    drawn = curve.plot()
    drawn.figure_.canvas.draw()
    assert "Apr" in [label.get_text() for label in drawn.ax_.get_xticklabels()]
