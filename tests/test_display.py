"""Pictures: what is drawn, and that a saved figure is the same again."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

import firmlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from firmlib import display

TABLE = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
RESULT = firmlib.firm([0.0, 1.0, -3.0, 1.0], TABLE, method="discrete")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_bars_are_the_importances_the_largest_on_top():
    drawn = RESULT.plot()
    widths = [bar.get_width() for bar in drawn.ax_.patches]
    assert widths == sorted(RESULT.importances, key=abs)
    labels = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    assert labels == ["x0", "x1"]


def test_bars_from_an_estimator_on_given_axes():
    _, ax = plt.subplots()
    drawn = firmlib.FirmDisplay.from_estimator(lambda X: X[:, 0], TABLE, method="discrete").plot(ax)
    assert drawn.ax_ is ax
    assert len(drawn.plot(n=1).ax_.patches) == 1


def test_curve_and_its_band():
    drawn = firmlib.ConditionalScoreDisplay.from_result(RESULT, "x0").plot()
    (band,) = drawn.ax_.patches
    mean, Q = -0.25, abs(RESULT.importances[0])
    np.testing.assert_allclose(
        [band.get_y(), band.get_y() + band.get_height()], [mean - Q, mean + Q]
    )
    np.testing.assert_allclose(drawn.ax_.lines[-1].get_ydata(), [0.5, -1.0])
    assert drawn.ax_.get_xlabel() == "x0"
    with pytest.raises(ValueError, match="name='z' is unknown"):
        firmlib.ConditionalScoreDisplay.from_result(RESULT, "z")


def test_saved_figures_are_the_same_bytes_again(tmp_path, monkeypatch):
    saved = []
    for folder in ("a", "b"):
        monkeypatch.setenv("FIRMLIB_OUTPUT", str(tmp_path / folder))
        with plt.rc_context(display.STYLE):
            figure, ax = plt.subplots()
            ax.plot([1, 2], [3, 4])
            display.save(figure, "line", pd.DataFrame({"x": [1, 2], "y": [1 / 3, 2e-20]}))
        saved.append({p.name: p.read_bytes() for p in (tmp_path / folder).rglob("*.*")})
    assert set(saved[0]) == {"line.png", "line.svg", "line.csv"}
    assert saved[0] == saved[1]
    assert saved[0]["line.csv"] == b"x,y\n1,0.3333333333\n2,2e-20\n"


def test_band_of_a_sample_is_the_corrected_importance():
    rng = np.random.default_rng(0)
    noise = firmlib.conditional_expected_score(rng.normal(size=300), rng.normal(size=(300, 1)), 0)
    (band,) = firmlib.ConditionalScoreDisplay(noise).plot().ax_.patches
    np.testing.assert_allclose(band.get_height(), 2 * np.sqrt(max(noise.variance, 0)))
    assert band.get_height() < 2 * np.sqrt(noise.p @ (noise.q - noise.p @ noise.q) ** 2)
