"""The paper's toy data, splice sites and flights: what they hold, how they are made, bad files."""

import gzip
import hashlib
import re
import runpy
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from firmlib.datasets import (
    PAPER_FORMULA,
    boolean_table,
    data_file,
    flights,
    gattaca,
    splice,
    two_gaussians,
)
from firmlib.strings import decode, encode

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize(
    ("formula", "function"),
    [
        (PAPER_FORMULA, lambda a, b, c: a or (not a and not b)),
        ("x1 ^ x2 ^ x3", lambda a, b, c: (a + b + c) % 2),
        ("x1 | x2 & x3", lambda a, b, c: a or (b and c)),
        ("x1 ^ ~x2", lambda a, b, c: a == b),
        ("~x1 & x2 | x3", lambda a, b, c: (not a and b) or c),
        ("0", lambda a, b, c: False),
        ("~(x1 & 1) | ~1", lambda a, b, c: not a),
    ],
)
def test_truth_table(formula, function):
    X, y = boolean_table(formula)
    assert X.tolist() == [list(map(float, row)) for row in product([0, 1], repeat=3)]
    assert y.tolist() == [1 if function(*row) else -1 for row in product([0, 1], repeat=3)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"formula": "x4"}, r"formula='x4' must be .* of x1, x2, x3, 0, 1, .*: name 'x4' is"),
        ({"formula": "x1 + x2"}, "unexpected '\\+'"),
        ({"formula": "not x1 ∧ x2"}, "unexpected 'not∧'"),
        ({"formula": 1}, "formula=1 must be a Boolean formula"),
        ({"formula": "__import__('os').system('true')"}, "unexpected .__import__"),
        ({"formula": "(" * 500 + "x1" + ")" * 500}, "must be a Boolean formula"),
        ({"formula": "x1 (x2)"}, "must be a Boolean formula"),
        ({"formula": "x1 & "}, "must be a Boolean formula"),
        ({"n_variables": 11}, "got 11"),
        ({"coding": "binary"}, "coding='binary' is unknown; expected one of"),
    ],
)
def test_bad_formulas(arguments, message):
    with pytest.raises(ValueError, match=message):
        boolean_table(**arguments)


def test_two_gaussians_have_the_moments_asked_for():
    shift = np.array([1.0, 2.0, 0.0])
    X, y = two_gaussians(40_001, shift=shift, random_state=0)
    assert [(y == -1).sum(), (y == 1).sum()] == [20_001, 20_000]
    for label in (-1, 1):
        part = X[y == label]
        error = 1 / np.sqrt(len(part))
        assert (np.abs(part.mean(axis=0) - label * shift / 2) < 4 * error).all()
        np.testing.assert_allclose(np.cov(part.T), np.eye(3), atol=0.04)
    again, _ = two_gaussians(40_001, shift=shift, random_state=0)
    np.testing.assert_array_equal(X, again)
    for bad in ({"n": 1}, {"shift": [[1.0]]}):
        with pytest.raises(
            ValueError, match=r"n must be an integer at least 4|shift has shape \(1, 1\)"
        ):
            two_gaussians(**bad)


def occurrences(X, motif):
    windows = np.lib.stride_tricks.sliding_window_view(X, len(motif), axis=1)
    return (windows == encode([motif])).sum(axis=2)


def test_gattaca_plants_the_motif_where_and_as_often_as_the_paper_says():
    X, y = gattaca(20_000, random_state=0)
    assert X.shape == (20_000, 70)
    assert X.dtype == np.uint8
    matches = occurrences(X[y == 1], "GATTACA")
    best, position = matches.max(axis=1), matches.argmax(axis=1)
    unchanged = (best == 7).mean()
    by_chance = 64 * 4.0**-7
    assert abs(unchanged - 0.25 - by_chance) < 4 * np.sqrt(0.25 * 0.75 / 10_000)
    sure = position[best == 7]
    assert abs(sure.mean() - 35) < 4 * 7 / np.sqrt(len(sure))
    quartiles = np.percentile(sure, [25, 75])  # hardly moved by the few that occur by chance
    assert abs(np.diff(quartiles)[0] - 2 * 0.6745 * 7) < 1
    assert (best >= 6).mean() > 0.999
    frequencies = np.bincount(X[y == -1].ravel(), minlength=4) / X[y == -1].size
    np.testing.assert_allclose(frequencies, 0.25, atol=4 * 0.5 / np.sqrt(X[y == -1].size))
    assert occurrences(X[y == -1], "GATTACA").max(axis=1).mean() < 5.5


def test_gattaca_unseen_never_shows_the_motif():
    X, y = gattaca(3000, unseen=True, random_state=1)
    assert occurrences(X, "GATTACA").max() == 6
    assert (occurrences(X[y == 1], "GATTACA").max(axis=1) == 6).all()
    X, y = gattaca(3000, unseen=True, mutations=3, background=[0, 1, 0, 0], random_state=1)
    assert (occurrences(X[y == 1], "GATTACA").max(axis=1) == 4).mean() > 0.95


def test_gattaca_background_and_mutations():
    p = [0.4, 0.1, 0.2, 0.3]
    X, y = gattaca(4000, background=p, mutations=3, random_state=2)
    frequencies = np.bincount(X[y == -1].ravel(), minlength=4) / X[y == -1].size
    np.testing.assert_allclose(frequencies, p, atol=0.005)
    assert (occurrences(X[y == 1], "GATTACA").max(axis=1) >= 4).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 41}, "length must be an integer at least 42, got 41"),
        (
            {"length": 10_001, "unseen": True},
            "length must be an integer from 42 to 10000, got 10001",
        ),
        ({"mutations": 8}, "mutations must be an integer from 0 to 7, got 8"),
        ({"mutations": 0, "unseen": True}, "mutations must be an integer from 1 to 7, got 0"),
        ({"background": [0.5, 0.5]}, r"background has shape \(2,\), expected \(4,\)"),
        ({"background": [0.5, 0.5, 0.5, -0.5]}, "^background must not be negative, got 1"),
    ],
)
def test_bad_gattaca(arguments, message):
    with pytest.raises(ValueError, match=message):
        gattaca(**arguments)


# Splice sites


@pytest.mark.parametrize(
    ("site", "count", "junction"), [("acceptor", 4222, {68: "AG"}), ("donor", 4188, {70: "GT"})]
)
def test_drosophila_sites(site, count, junction):
    X, y, groups = splice(site)
    assert X.shape == (count, 140)
    assert X.dtype == np.uint8
    assert sorted(set(y)) == [-1, 1]
    assert y.sum() == 0
    [(start, pair)] = junction.items()
    assert set(decode(X[:, start : start + 2])) == {pair}
    balance = np.bincount(groups, weights=y)
    assert (balance == 0).all()  # decoys come from the genes that the sites come from


def test_uci_classes_and_junctions():
    X, y, groups = splice("uci")
    assert X.shape == (2989, 60)
    assert {kind: int((y == kind).sum()) for kind in set(y)} == {"EI": 674, "IE": 669, "N": 1646}
    assert len(X) == len(groups)
    assert np.mean(np.array(decode(X[:, 30:32]))[y == "EI"] == "GT") > 0.98


def test_no_file_and_another_site_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="site='branch' is unknown; expected one of"):
        splice("branch")
    with pytest.raises(ValueError, match=r"name='none\.csv' is unknown; expected one of"):
        data_file("none.csv")
    monkeypatch.setattr("firmlib.datasets.DATA", tmp_path)
    for read in (splice, flights):
        with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path))):
            read()


def test_the_files_are_those_of_the_datasheet_and_of_the_scripts_that_make_them():
    rows = re.findall(r"\| `(.*gz)` .* `([0-9a-f]{64})` \|", (DATA / "README.md").read_text())
    assert {file for file, _ in rows} == {path.name for path in DATA.glob("*.gz")}
    scripts = "".join(path.read_text() for path in DATA.glob("fetch_*.py"))
    for file, sha256 in rows:
        text = gzip.decompress((DATA / file).read_bytes())
        assert hashlib.sha256(text).hexdigest() == sha256
        assert sha256 in scripts


def test_another_checksum_stops():
    check_sha256 = runpy.run_path(str(DATA / "checksum.py"))["check_sha256"]
    with pytest.raises(SystemExit, match=r"a has sha256 .*; nothing was written.* data/README\.md"):
        check_sha256("a", b"newer", "0" * 64)
    check_sha256("a", b"", hashlib.sha256().hexdigest())


# Flights


def test_flights_as_the_datasheet_says():
    X, delay = flights()
    assert X.shape == (30_000, 16)
    assert np.isfinite(delay).all()
    assert X["scheduled"].is_monotonic_increasing
    assert set(X["scheduled"].dt.year) == {2013}
    assert {name: X[name].nunique() for name in ("carrier", "origin")} == {
        "carrier": 16,
        "origin": 3,
    }
    assert (X["pressure"].isna().mean(), X["wind_gust"].isna().mean()) > (0.1, 0.7)
    assert X.notna().all(axis=1).mean() == pytest.approx(0.187, abs=0.001)
