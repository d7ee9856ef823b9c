"""Given and groups: what columns tell of the score, and what they add to others.

With e_A = r - E[r | x_A], learnt from other rows (`firmlib.joint.learning`),

    group   Var(E[s | F])                     = mean of r^2 - e_F^2
    given   Var(E[s | F, g]) - Var(E[s | g])  = mean of e_g^2 - e_{F,g}^2

where all columns have few levels, both come from cells instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import Estimate
from firmlib.estimation.rows import Rows
from firmlib.joint.cells import TINY, contrast, sum_up
from firmlib.joint.learning import design, steps, unseen
from firmlib.tables.columns import Column

MIN_ROWS, FEW_ROWS = 100, 1000
ROWS_PER_CELL = 10
STILL_LEARNING = 0.05  # a gain to mention
MOST_CELLS = 1000
FEW_LEVELS = 12  # of a column of numbers in cells
BOLD = np.sqrt(2)  # under no effect rows of two folds err together: each is in the other's model


@dataclass(frozen=True, eq=False)
class Learned(Estimate):
    """An estimate from models, with `gain` (m,): the share of V that doubling the rows added."""

    gain: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def notes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Say which features would have a larger V with more rows."""
        pairs = zip(names, self.gain, strict=True)
        some = [f"{name} (by {100 * gain:.0f} %)" for name, gain in pairs if gain > STILL_LEARNING]
        return (f"with twice the rows, V would still grow for {', '.join(some)}",) if some else ()


def group(
    rows: Rows,
    columns: Sequence[Sequence[Column]],
    names: Sequence[str] | None = None,
    progress: bool = False,
) -> Learned:
    """Estimate Var(E[s | F]) for each group F of columns."""
    return given(rows, columns, [], names, progress)


def given(
    rows: Rows,
    columns: Sequence[Sequence[Column]],
    known: Sequence[Column],
    names: Sequence[str] | None = None,
    progress: bool = False,
) -> Learned:
    """Estimate Var(E[s | F, known]) - Var(E[s | known]) for each F in `columns`.

    A constant feature, and one that equals a known column, adds 0. A warning names those that
    duplicate a known column, and says if there are too few rows to learn from.
    """
    names = [f"feature {i}" for i in range(len(columns))] if names is None else names
    found, known_left = [], {}
    duplicates = [all(any(_same(rows.n, f, g) for g in known) for f in F) for F in columns]
    if any(duplicates):
        some = ", ".join(repr(name) for name, same in zip(names, duplicates, strict=True) if same)
        warnings.warn(f"{some}: the same as a given column, so it adds 0", stacklevel=3)
    for F, same in steps(list(zip(columns, duplicates, strict=True)), progress, "features"):
        if same or not rows.r.any() or not design(F, rows.n).size:
            found.append((_nothing(rows), 0.0))
        else:
            found.append(_cells(rows, F, known) or _learned(rows, F, known, known_left))
    if known_left and rows.n < FEW_ROWS:
        warnings.warn(
            f"{rows.n} rows are few to learn E[s | several columns] from, so importances may be "
            f"too small; expected at least {FEW_ROWS} rows",
            stacklevel=3,
        )
    whole = Estimate.concatenate([one for one, _ in found])
    gain = np.array([gain for _, gain in found])
    return Learned(whole.V, whole.noise, whole.pvalue, whole.psi, gain)


def _nothing(rows: Rows) -> Estimate:
    """Return the estimate of a feature that can add nothing."""
    return Estimate(np.zeros(1), np.zeros((3, 1)), np.ones(1), np.zeros((rows.G, 1)))


def _same(n: int, f: Column, g: Column) -> bool:
    """Whether two columns are the same up to their unit."""
    a, b = design([f], n), design([g], n)
    return a.shape == b.shape and a.size > 0 and min(np.ptp(a - b), np.ptp(a + b)) < 1e-9


def _cells(
    rows: Rows, F: Sequence[Column], known: Sequence[Column]
) -> tuple[Estimate, float] | None:
    """Measure in cells; return None if columns have many values or cells few rows."""
    code, coarse = np.zeros(rows.n, np.int64), np.zeros(rows.n, np.int64)
    for place, column in enumerate([*known, *F]):
        levels, index = np.unique(column.dense(rows.n), return_inverse=True)
        if column.kind != "nominal" and len(levels) > FEW_LEVELS:
            return None
        code = np.unique(code * len(levels) + index, return_inverse=True)[1]
        coarse = code if place < len(known) else coarse
    size = code.max() + 1
    if size > min(rows.n / ROWS_PER_CELL, MOST_CELLS):
        return None
    above = np.zeros((size, coarse.max() + 1))
    above[code, coarse] = 1.0
    return contrast(sum_up(rows, rows.r, code, size), above), 0.0


def _learned(
    rows: Rows, F: Sequence[Column], known: Sequence[Column], known_left: dict[int, np.ndarray]
) -> tuple[Estimate, float]:
    """Measure by models. `known_left` keeps what models of the known columns leave, by width.

    The feature enters as f - E[f | g]. The test asks whether e_g moves with d - E[d | g], where
    d is what the joint model says beyond g (Lundborg et al., 2024, the projected covariance
    measure). What e_g still falls by when the rows double might be mistaken for an effect, so it
    counts as error.
    """
    if rows.n < MIN_ROWS:
        raise ValueError(f"X has {rows.n} rows; expected at least {MIN_ROWS} for several columns")
    X, G, r = design(F, rows.n), design(known, rows.n), rows.r
    width = X.shape[1] + G.shape[1]
    if width not in known_left:
        known_left[width] = unseen(rows, G, r, width)
    e_g = known_left[width]
    if G.shape[1] > 0 and X.shape[1] <= FEW_LEVELS:
        X = np.column_stack([unseen(rows, G, f - f.mean(), width, False)[0] for f in X.T])
    e = unseen(rows, np.column_stack([X, G]), r, width)
    d = e_g[0] - e[0]
    told = e_g[0] * unseen(rows, G, d - rows.w @ d / rows.w.sum(), width, False)[0]
    learning = max(rows.w @ (e_g[1] ** 2 - e_g[0] ** 2) / rows.w.sum(), 0.0)
    V, error = _mean(rows, told)
    pvalue = special.ndtr(-V / max(np.hypot(error, learning), 1e-300) / BOLD)
    return _grown(rows, e_g**2 - e**2, pvalue)


def _grown(rows: Rows, value: np.ndarray, pvalue: float) -> tuple[Estimate, float]:
    """Return the estimate from what each row adds, with all rows and with half of them; its gain.

    An effect that clearly grew from half of the rows to all is taken to grow by as much again; the
    growth goes into the error as well.
    """
    step = value[0] - value[1]
    (V, error), (growth, its_error) = _mean(rows, value[0]), _mean(rows, step)
    clear = 2 * error < V and growth > 2 * its_error
    one = Estimate.of_rows(value[0] + clear * step, rows, pvalue=np.array([pvalue]))
    J = (one.psi**2).sum(axis=0) + clear * growth**2
    psi = one.psi * np.sqrt(J / np.maximum((one.psi**2).sum(axis=0), TINY))
    # half of J is there without an effect; comparisons take off rest + 3/4 (extra - rest) = 0
    noise = np.array([J / 2, -J / 6, J / 2 / np.maximum(one.V, np.sqrt(J) + TINY)])
    gain = float(np.clip(growth / V, 0, 1)) if 2 * error < V else 0.0
    return replace(one, psi=psi, noise=noise), gain


def _mean(rows: Rows, value: np.ndarray) -> tuple[float, float]:
    """Return the mean over rows and its error, by folds."""
    found = Estimate.of_rows(value, rows)
    return float(found.V[0]), float(np.sqrt((found.psi**2).sum()))
