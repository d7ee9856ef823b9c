"""Figures that everyone can read: sizes, and the numbers in a heat map."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from seaborn.utils import relative_luminance

from firmlib.compendium import figures
from workflow import ROOT


@pytest.mark.parametrize("path", sorted((ROOT / "figures").glob("*.png")), ids=lambda p: p.stem)
def test_figures_fit_a_page(path):
    assert imread(path).shape[1] <= 7 * figures.STYLE["savefig.dpi"]


def test_heat_map_has_readable_numbers_dots_and_gaps():
    values = np.ma.masked_array([[-1.0, np.nan], [-0.5, 9.0]], [[0, 0], [0, 1]])
    ax = plt.figure().add_subplot()
    shown = figures.heat_map(ax, values, 1, ["a", "b"], ["c", "d"], words=True)
    assert [text.get_text() for text in ax.texts] == ["-1.00", "-0.50", "•"]
    for text, value in zip(ax.texts[:2], (-1, -0.5), strict=True):
        colors = text.get_color(), shown.cmap(shown.norm(value))
        dark, light = sorted(map(relative_luminance, colors))
        assert (light + 0.05) / (dark + 0.05) >= 4.5
    assert figures.heat_map(ax, values, 1, ["a", "b"], ["c", "d"], words=False) is not None
    assert len(ax.texts) == 3
    plt.close("all")


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
