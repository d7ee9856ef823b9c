"""Figures that everyone can read: colours, sizes, and the numbers in a heat map."""

import re
from itertools import combinations

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from firmlib.compendium import figures
from firmlib.display import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY
from workflow import ROOT

CATEGORIES = [entry["color"] for entry in figures.STYLE["axes.prop_cycle"]]
# Linear RGB as it is seen without one kind of cones: Machado, Oliveira and Fernandes (2009).
SIGHT = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
APART = 15  # in CIELAB; 2.3 is just noticeable side by side


def cielab(color, sight):
    """The colour as it is seen, under daylight."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = to_xyz @ np.clip(SIGHT[sight] @ linear, 0, 1) / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def gap(a, b, sight):
    return np.linalg.norm(cielab(a, sight) - cielab(b, sight))


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_are_told_apart(sight):
    assert set(CATEGORIES) == {BLUE, RED, GREEN, ORANGE, PURPLE, SKY, "black"}
    assert min(gap(a, b, sight) for a, b in combinations(CATEGORIES, 2)) > APART
    assert min(gap(GREY, other, sight) for other in (BLUE, RED, ORANGE, SKY)) > APART


def test_the_simulation_sees_what_merges():
    assert gap("red", "green", "all cones") > 100
    assert gap(GREEN, GREY, "deuteranopia") < APART
    assert (
        gap("#a05000", "#607000", "deuteranopia") < APART < gap("#a05000", "#607000", "all cones")
    )


@pytest.mark.parametrize("path", sorted((ROOT / "figures").glob("*.png")), ids=lambda p: p.stem)
def test_figures_fit_a_page(path):
    assert imread(path).shape[1] <= 7 * figures.STYLE["savefig.dpi"]


def test_words_in_figures_have_seven_points():
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            if "figures.save" in cell.source:
                sizes = re.findall(r"(?:font|label)size=([\d.]+)", cell.source)
                assert all(float(size) >= 7 for size in sizes), (path.stem, sizes)


def test_heat_map_has_readable_numbers_dots_and_gaps():
    values = np.ma.masked_array([[-1.0, np.nan], [-0.5, 9.0]], [[0, 0], [0, 1]])
    ax = plt.figure().add_subplot()
    shown = figures.heat_map(ax, values, 1, ["a", "b"], ["c", "d"], words=True)
    assert [text.get_text() for text in ax.texts] == ["-1.00", "-0.50", "•"]
    for text, value in zip(ax.texts[:2], (-1, -0.5), strict=True):
        ink, paper = to_rgb(text.get_color()), shown.cmap(shown.norm(value))[:3]
        light, dark = sorted((cielab(c, "all cones")[0] + 16) / 116 for c in (ink, paper))[::-1]
        assert (light**3 + 0.05) / (dark**3 + 0.05) >= 4.5
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
