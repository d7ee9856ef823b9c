"""Compiled loops give the numbers of NumPy, and are not needed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import firmlib
from firmlib import _fast
from firmlib._grid import Cells, Grid
from firmlib._table import Table
from firmlib.strings import DNA, PROTEIN, wds_kernel

N = 60_000


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    z = rng.normal(size=N)
    return {
        "normal": z,
        "far": 1e9 + z,
        "right": np.exp(2 * z),
        "left": -np.exp(2 * z),
        "both": z / rng.normal(size=N),
        "zeros": np.where(z < 0.5, 0.0, np.exp(3 * z)),
        "tied": np.round(z, 1),
        "many ties": np.round(z, 3),
        "binary": np.where(z > 0, 1.0, 0.0),
        "constant": np.ones(N),
        "missing": np.where(z > 1, np.nan, z),
        "huge": 1e300 * z,
        "tiny": 1e-300 * z,
        "sorted": np.sort(z),
    }


@pytest.fixture(scope="module")
def score(columns):
    rng = np.random.default_rng(1)
    return np.sin(3 * columns["normal"]) + columns["sorted"] + rng.normal(size=N)


def both(monkeypatch, call):
    """Return what a call gives with compiled loops, and without."""
    pytest.importorskip("numba")
    found = []
    for least in (0, np.inf):
        monkeypatch.setattr(_fast, "LEAST", least)
        found.append(call())
    return found


def assert_same(fast, slow):
    assert fast.methods == slow.methods
    for name, values in slow.to_frame().select_dtypes(float).items():
        found = fast.to_frame()[name].loc[values.index]
        np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-12, err_msg=name)
    for name in fast.feature_names:
        a, b = fast.curves[name], slow.curves[name]
        for values in ("t", "q", "n"):
            expected = getattr(b, values)
            scale = 1e-12 * np.nanmax(np.abs(expected))  # a mean near 0 is a difference
            np.testing.assert_allclose(getattr(a, values), expected, rtol=1e-12, atol=scale)


@pytest.mark.parametrize("weights", [None, "count"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_same_numbers(monkeypatch, columns, score, weights, n_jobs):
    X = pd.DataFrame(columns)
    w = None if weights is None else np.arange(N) % 3
    fast, slow = both(monkeypatch, lambda: firmlib.firm(score, X, sample_weight=w, n_jobs=n_jobs))
    assert_same(fast, slow)


@pytest.mark.parametrize("weights", [None, "count"])
def test_the_same_numbers_of_many_rows(monkeypatch, weights):
    """Here cells are fewer per bin, and every fourth row tells where long tails begin."""
    rng = np.random.default_rng(4)
    z = np.sort(rng.normal(size=300_000))
    X = np.column_stack([z, np.exp(3 * z), np.where(z < 0.5, 0.0, np.exp(3 * z)), z.round(3)])
    s, w = z + rng.normal(size=len(z)), None if weights is None else 1 + np.arange(len(z)) % 3
    fast, slow = both(monkeypatch, lambda: firmlib.firm(s, X, sample_weight=w))
    assert_same(fast, slow)
    ranked = firmlib.firm(s, np.argsort(np.argsort(X[:, :2], axis=0), axis=0))
    np.testing.assert_allclose(fast.importances[:2], ranked.importances, rtol=2e-3)


@pytest.mark.parametrize("n", [20, 300, 2500, 30_000])
@pytest.mark.parametrize("weights", [None, "count", "sampling"])
def test_the_same_numbers_of_small_tables(monkeypatch, columns, score, n, weights):
    X = pd.DataFrame(columns).sample(n, random_state=0)
    w = {None: None, "count": 1 + np.arange(n) % 3, "sampling": np.linspace(0.5, 2, n)}[weights]
    fast, slow = both(monkeypatch, lambda: firmlib.firm(score[X.index], X, sample_weight=w))
    assert_same(fast, slow)
    for name in ("skewness", "heavy"):
        a, b = (getattr(result.estimate, name) for result in (fast, slow))
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "g", ">f8", "i4", "u1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_by_rows_and_by_columns(monkeypatch, score, dtype, order):
    X = (100 + 20 * np.random.default_rng(2).normal(size=(N, 19))).astype(dtype, order=order)
    expected = firmlib.firm(score, [tuple(row) for row in X[:, :1].tolist()])
    fast, slow = both(monkeypatch, lambda: firmlib.firm(score, X))
    assert_same(fast, slow)
    assert fast.importances[0] == pytest.approx(expected.importances[0], rel=1e-12)


@pytest.mark.parametrize("least", [0, np.inf])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1"])
def test_ends_are_known_where_columns_are_copied(monkeypatch, least, dtype):
    monkeypatch.setattr(_fast, "LEAST", least)
    X = (50 * np.random.default_rng(5).normal(size=(1000, 40))).astype(dtype)
    if dtype.startswith("f"):
        X[7, 1] = np.nan
        X[8, 2], X[9, 2] = np.copysign(np.nan, -1), 1e30
        X[:, 3], X[5, 3] = 0.0, -0.0
        X[:, 4] = np.nan
    table = Table(X).in_order()
    assert (table.loops is None) == (least > 0)
    for j in range(40):
        column = table.column(j)
        np.testing.assert_array_equal(column.values, X[:, j])
        np.testing.assert_array_equal(column.ends, (X[:, j].min(), X[:, j].max()))


@pytest.mark.parametrize("least", [0, np.inf])
@pytest.mark.parametrize("sign", [1, -1])
def test_infinite_values_are_refused_where_columns_are_copied(monkeypatch, score, least, sign):
    monkeypatch.setattr(_fast, "LEAST", least)
    X = np.random.default_rng(3).normal(size=(N, 3))
    X[77, 1] = sign * np.inf
    with pytest.raises(ValueError, match=rf"'x1' of X must be finite.*{sign * np.inf} at \(77,\)"):
        firmlib.firm(score, X)
    stream = firmlib.StreamingFirm(first_rows=50).partial_fit(X[:70], score[:70])
    with pytest.raises(ValueError, match=r"'x1' of F must be finite.*at \(7,\)"):
        stream.partial_fit(X[70:90], score[70:90])


def test_what_is_masked_is_missing(score):
    X = np.random.default_rng(3).normal(size=(N, 3))
    found = firmlib.firm(score, np.ma.masked_where(X > 1, X))
    expected = firmlib.firm(score, np.where(X > 1, np.nan, X))
    np.testing.assert_array_equal(found.missing, expected.missing)
    np.testing.assert_array_equal(found.importances, expected.importances)
    stream = firmlib.StreamingFirm(first_rows=N).partial_fit(np.ma.masked_where(X > 1, X), score)
    np.testing.assert_array_equal(stream.result().missing, expected.missing)


def test_streams(monkeypatch, columns, score):
    X = pd.DataFrame(columns).sample(frac=1, random_state=0)
    s = score[X.index]

    def call():
        stream = firmlib.StreamingFirm(first_rows=20_000)
        for start in range(0, N, 20_000):
            stream.partial_fit(X[start : start + 20_000], s[start : start + 20_000])
        return stream.result()

    assert_same(*both(monkeypatch, call))


@pytest.mark.parametrize("weights", [None, "count"])
@pytest.mark.parametrize("first", [5000, 55_000])
def test_streams_of_arrays_by_rows(monkeypatch, columns, score, weights, first):
    """Numbers, levels that come late and missing values, with lines in bins (at first) or none."""
    X = np.column_stack(
        [columns[name] for name in ("normal", "zeros", "tied", "binary", "missing")]
    )
    X = X[np.random.default_rng(6).permutation(N)].astype(np.float32)
    X[-1, 3] = 2.0
    w = 1 + np.arange(N) % 3 if weights else None

    def call():
        stream = firmlib.StreamingFirm(first_rows=first)
        for part in np.split(np.arange(N), [first, first + 1, first + 2500]):
            stream.partial_fit(X[part], score[part], None if w is None else w[part])
        return stream.result()

    fast, slow = both(monkeypatch, call)
    assert_same(fast, slow)
    binary = fast.curves["x3"]
    expected = pd.Series(score).groupby(X[:, 3]).mean() if w is None else None
    np.testing.assert_array_equal(binary.t, [0, 1, 2])
    if expected is not None:
        np.testing.assert_allclose(binary.q, expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["right", "left", "both", "zeros"])
def test_long_tails_need_no_sort(monkeypatch, columns, score, name):
    def refused(*args, **kwargs):
        raise AssertionError("sorted")

    monkeypatch.setattr("firmlib._bins._begins", refused)
    found = firmlib.firm(score, pd.DataFrame({name: columns[name]}))
    assert found.methods == ("binned",)


@pytest.mark.parametrize("unit", [0.0, 0.3])
def test_a_grid_finds_its_values_again(unit):
    f = np.random.default_rng(0).standard_cauchy(1000)
    grid = Grid.over(f.min(), f.max(), 500, 0.1, unit)
    np.testing.assert_allclose(grid.value(grid.place(f)), f, rtol=1e-9, atol=1e-9)
    order = np.argsort(f)
    assert np.all(np.diff(grid.cell(f, 500)[order]) >= 0)
    assert grid.cell(f, 500).min() == 0
    assert grid.cell(f, 500).max() == 499
    assert Cells(f, np.ones(1000), grid, 500, 10).n.sum() == 1000


@pytest.mark.parametrize("degree", [1, 3, 4, 7, 8, 13])
@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize("alphabet", [DNA, PROTEIN])
@pytest.mark.parametrize("others", [None, 270])
def test_the_same_kernel(monkeypatch, degree, shift, alphabet, others):
    size = len(alphabet)
    share = np.r_[0.6, np.full(size, 0.4 / size)]  # long runs; the last letter is unknown
    X = np.random.default_rng(degree).choice(size + 1, (300, 130), p=share)
    options = {"degree": degree, "shift": shift, "alphabet": alphabet, "unknown": "average"}
    options["reverse_complement"] = alphabet is DNA
    Y = None if others is None else X[:others]
    fast, slow = both(monkeypatch, lambda: wds_kernel(X, Y, **options))
    np.testing.assert_array_equal(fast, slow)


def test_numpy_serves_where_numba_may_not_compile(monkeypatch):
    config = pytest.importorskip("numba").config
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    assert _fast._compiled.__wrapped__() is None


def test_numpy_serves_where_machine_code_cannot_be_kept(tmp_path):
    """As in a container, where neither the package nor a home can be written."""
    package = tmp_path / "firmlib"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(firmlib.__file__).parent, package, ignore=ignore)
    (package / "__pycache__").touch()
    code = (
        "import numpy as np, firmlib\n"
        "from firmlib import _fast\n"
        "_fast.LEAST = 0\n"
        "X = np.random.default_rng(0).normal(size=(5000, 2))\n"
        "print(firmlib.firm(X[:, 0], X).importances[0].round(1), firmlib.__file__)"
    )
    nowhere = {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none"}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")} | nowhere
    options = {"cwd": tmp_path, "env": environment, "capture_output": True}
    run = subprocess.run([sys.executable, "-c", code], **options)
    assert run.stdout.decode().split() == ["1.0", str(package / "__init__.py")], run.stderr.decode()


def test_numba_is_loaded_for_many_values_alone():
    pytest.importorskip("numba")
    code = (
        "import sys, numpy as np, firmlib\n"
        "from firmlib import _fast\n"
        "X = np.random.default_rng(0).normal(size=(_fast.LEAST // 2, 2))\n"
        "for some, method in ((X[:5000], 'auto'), (X, 'slope'), (X, 'auto')):\n"
        "    firmlib.firm(some[:, 0], some, method=method)\n"
        "    print('numba' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert run.stdout.decode().split() == ["False", "False", "True"], run.stderr.decode()


def test_numba_is_not_needed():
    code = (
        "import sys, numpy as np, firmlib\n"
        "from firmlib import _fast\n"
        "sys.modules['numba'] = None\n"
        "_fast.LEAST = 0\n"
        "X = np.random.default_rng(0).normal(size=(5000, 2))\n"
        "print(firmlib.firm(X[:, 0], X).importances[0].round(1))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert run.stdout.decode().strip() == "1.0", run.stderr.decode()


@pytest.mark.parametrize("least", [0, np.inf])
def test_levels_that_come_late(monkeypatch, least):
    monkeypatch.setattr(_fast, "LEAST", least)
    rng = np.random.default_rng(0)
    f = np.r_[np.full(1000, np.nan), rng.integers(0, 5, 1000), rng.integers(2, 9, 1000)]
    g = np.r_[rng.integers(0, 3, 2000), rng.integers(-3, 3, 1000) / 2]
    X, s = np.column_stack([f, g]), g + rng.normal(size=3000)
    stream = firmlib.StreamingFirm(first_rows=1000)
    for start in range(0, 3000, 1000):
        stream.partial_fit(X[start : start + 1000], s[start : start + 1000])
    found, expected = stream.result(), firmlib.firm(s, X)
    np.testing.assert_allclose(found.importances, expected.importances, rtol=1e-12)
    for name in ("x0", "x1"):
        np.testing.assert_array_equal(found.curves[name].n, expected.curves[name].n)
