"""Given and groups: what columns tell of the score, and what they add to others.

With e_A = r - E[r | x_A], learnt from other rows (`firmlib.joint.learning`),

    group   Var(E[s | F])                     = mean of r^2 - e_F^2
    given   Var(E[s | F, g]) - Var(E[s | g])  = mean of e_g^2 - e_{F,g}^2

Where all columns have few levels, and in a population, both come from cells instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import TINY, Estimate
from firmlib.estimation.rows import Rows
from firmlib.estimation.sums import Source
from firmlib.features import Feature, Group
from firmlib.joint import cells
from firmlib.joint.learning import design, unseen
from firmlib.tables.columns import Column, check_present
from firmlib.tables.sources import progress
from firmlib.tables.table import Table

MIN_ROWS, FEW_ROWS = 100, 1000
ROWS_PER_CELL, MOST_CELLS = 10, 1000
FEW_LEVELS = 12  # of a column of numbers in cells
ALONE = 0.9  # share of rows with a level of their own at which a nominal column tells nothing
STILL_LEARNING = 0.05  # a gain to mention
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


def with_groups(
    found: Sequence[Feature | Group],
    table: Table,
    sample: Rows,
    estimate: Estimate,
    sources: Sequence[Source],
    missing: str = "level",
) -> tuple[Learned, list[Source]]:
    """Return estimates of single features and of groups of columns in the order of `found`."""
    is_group = [isinstance(f, Group) for f in found]
    joined, more = adds_to(list(compress(found, is_group)), table, sample, (), missing)
    order = np.argsort(np.argsort(is_group, kind="stable"))
    both = Estimate.concatenate([estimate, joined]).taken(order)
    gain = np.append(np.zeros(len(sources)), joined.gain)[order]
    return Learned(**vars(both), gain=gain), [[*sources, *more][i] for i in order]


def adds_to(
    found: Sequence[Feature | Group],
    table: Table,
    sample: Rows,
    known: tuple[str, ...],
    missing: str = "level",
) -> tuple[Learned, list[Source]]:
    """Return Var(E[s | F, known]) - Var(E[s | known]) for each feature or group F.

    With missing="drop", each F uses the rows in which it and the known columns are there. Warnings
    name what cannot add anything, and say if there are too few rows to learn from.
    """
    for f in found:
        if f.name in known:
            raise ValueError(f"feature {f.name!r} is also in given=; remove it from one of them")
    given = _columns(Group(known), table, sample, missing)
    estimates, gains, sources, memory, silent = [], [], [], {}, {}
    for feature in progress(found, "features"):
        F = _columns(feature, table, sample, missing)
        there = np.ones(sample.n, bool)
        if missing == "drop":
            there &= np.all([~np.isnan(c.values) for c in [*F, *given]], axis=0)
        rows, f, g = _taken(sample, there), *([c.take(there) for c in some] for some in (F, given))
        if why := "" if sample.population else _silence(f, g):
            silent.setdefault(why, []).append(repr(feature.name))
        one, gain = cells.nothing(sample), 0.0
        if not why and rows.n and np.ptp(rows.s):
            one = _of_cells(rows, f, g)
        if one is None:
            one, gain = _of_models(rows, f, g, memory.setdefault(there.tobytes(), {}))
        estimates.append(one)
        gains.append(gain)
        place = np.sin(1.0 + np.arange(sample.n))  # the same columns have the same mark
        mark = float(sum(np.nan_to_num(c.values) @ place for c in F))
        sources.append(Source("group" if isinstance(feature, Group) else F[0].kind, mark))
    if silent:
        said = "; ".join(f"{', '.join(some)}: {why}" for why, some in silent.items())
        warnings.warn(f"importance 0 for {said}", stacklevel=3)
    if memory and sample.n < FEW_ROWS:
        warnings.warn(
            f"{sample.n} rows are few to learn E[s | several columns] from, so importances may be "
            f"too small; expected at least {FEW_ROWS} rows",
            stacklevel=3,
        )
    return Learned(**vars(Estimate.concatenate(estimates)), gain=np.array(gains)), sources


def _columns(f: Feature | Group, table: Table, sample: Rows, missing: str) -> list[Column]:
    """Return the columns of a feature in the rows that count."""
    found = f.columns(table) if isinstance(f, Group) else [f.of(table)]
    found = [column.take(sample.keep) for column in found]
    found = [column._replace(values=column.dense(sample.n), rows=None) for column in found]
    for column in found if missing == "raise" else ():
        check_present(f"feature {f.name!r}", column.values)
    return found


def _taken(rows: Rows, there: np.ndarray) -> Rows:
    """Return some of the rows."""
    w, unit = rows.w[there], None if rows.unit is None else rows.unit[there]
    w = w / w.mean() if len(w) else w
    return replace(rows, s=rows.s[there], w=w, fold=rows.fold[there], unit=unit, key=None)


def _silence(F: Sequence[Column], known: Sequence[Column]) -> str:
    """Return why columns cannot add anything, or an empty string."""

    def same(f: Column, g: Column) -> bool:  # up to the unit
        a, b = (design([c], len(c.values)) for c in (f, g))
        return a.shape == b.shape and a.size > 0 and min(np.ptp(a - b), np.ptp(a + b)) < 1e-9

    def tells(f: Column) -> bool:
        count = np.unique(f.values, return_counts=True)[1]
        alone = f.kind == "nominal" and (count == 1).sum() >= ALONE * len(f.values)
        return len(count) > 1 and not alone

    if not any(map(tells, F)):
        return "constant, missing, or another level in nearly every row"
    twins = all(any(same(f, g) for g in known) for f in F)
    return "the same as a given column" if twins else ""


def _of_cells(rows: Rows, F: Sequence[Column], known: Sequence[Column]) -> Estimate | None:
    """Measure in cells; return None if columns have many values or cells few rows."""
    code = coarse = np.zeros(rows.n, np.intp)
    few = True
    for place, column in enumerate([*known, *F]):
        levels, index = np.unique(column.values, return_inverse=True)
        few &= column.kind == "nominal" or len(levels) <= FEW_LEVELS
        code = np.unique(code * len(levels) + index, return_inverse=True)[1]
        coarse = code if place < len(known) else coarse
    size = int(code.max()) + 1
    few &= size <= min(rows.n / ROWS_PER_CELL, MOST_CELLS)
    if not few and not rows.population:
        return None
    above = np.zeros((size, coarse.max() + 1))
    above[code, coarse] = 1.0
    return cells.contrast(rows, cells.cell_sums(rows, rows.r, code, size), above)


def _of_models(
    rows: Rows, F: Sequence[Column], known: Sequence[Column], known_left: dict[int, np.ndarray]
) -> tuple[Estimate, float]:
    """Measure by models; return also the gain.

    `known_left` keeps what models of the known columns leave, by width. The feature enters as
    f - E[f | g]. The test asks whether e_g moves with d - E[d | g], where d is what the joint model
    says beyond g (Lundborg et al., 2024, the projected covariance measure). What e_g still falls by
    when the rows double might be mistaken for an effect, so it counts as error.
    """
    if rows.n < MIN_ROWS:
        raise ValueError(f"{rows.n} rows; expected at least {MIN_ROWS} to learn several columns")
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
    effect = Estimate.of_rows(told, rows)
    error = np.hypot(np.sqrt(effect.J), learning)
    pvalue = special.ndtr(-effect.V / np.maximum(error, TINY) / BOLD)
    return _grown(rows, e_g**2 - e**2, pvalue)


def _grown(rows: Rows, value: np.ndarray, pvalue: np.ndarray) -> tuple[Estimate, float]:
    """Return the estimate from what each row adds, with all rows and with half of them; its gain.

    An effect that clearly grew from half of the rows to all is taken to grow by as much again; the
    growth goes into the error as well.
    """
    both = Estimate.of_rows(np.column_stack([value[0], value[0] - value[1]]), rows)
    (V, growth), (real, grew) = both.V, 2 * np.sqrt(both.J) < both.V
    clear = real and grew
    one = Estimate.of_rows(value[0] + clear * (value[0] - value[1]), rows, pvalue=pvalue)
    J = one.J + clear * growth**2
    psi = one.psi * np.sqrt(J / np.maximum(one.J, TINY))
    # half of J is there without an effect; comparisons take off rest + 3/4 (extra - rest) = 0
    noise = np.array([J / 2, -J / 6, J / 2 / np.maximum(one.V, np.sqrt(J) + TINY)])
    return replace(one, psi=psi, noise=noise), float(np.clip(growth / V, 0, 1)) if real else 0.0
