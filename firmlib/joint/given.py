"""Given and groups: what columns tell of the score, and what they add to others.

With e_A = r - E[r | x_A], learnt from other rows (`firmlib.joint.learning`),

    group   Var(E[s | F])                     = mean of r^2 - e_F^2
    given   Var(E[s | F, g]) - Var(E[s | g])  = mean of e_g^2 - e_{F,g}^2

Where all columns have few levels, and in a population, both come from cells instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from firmlib.estimation.jackknife import TINY, Estimate
from firmlib.estimation.rows import Rows
from firmlib.estimation.scan import How, scan
from firmlib.estimation.variance import Source
from firmlib.features import Feature, Group
from firmlib.joint.cells import contrast, nothing
from firmlib.joint.learning import PARTS, design, fitted
from firmlib.tables.checks import warn
from firmlib.tables.columns import Column, check_present
from firmlib.tables.sources import progress
from firmlib.tables.table import Table

MIN_ROWS, FEW_ROWS = 100, 1000
ROWS_PER_CELL, MOST_CELLS = 10, 1000
FEW_LEVELS = 12  # of a column of numbers in cells
STILL_LEARNING = 0.05  # a gain to mention


@dataclass(frozen=True, eq=False)
class Learned(Estimate):
    """An estimate from models, with `gain` (m,): the share of V that doubling the rows added."""

    gain: np.ndarray

    def notes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Say which features would have a larger V with more rows."""
        pairs = zip(names, self.gain, strict=True)
        some = [f"{name} (by {100 * gain:.0f} %)" for name, gain in pairs if gain > STILL_LEARNING]
        return (f"with twice the rows, V would still grow for {', '.join(some)}",) if some else ()


def adds_to(
    found: Sequence[Feature | Group], table: Table, sample: Rows, known: tuple[str, ...], how: How
) -> tuple[Learned, list[Source]]:
    """Return Var(E[s | F, known]) - Var(E[s | known]) for each feature or group F."""
    if both := [f.name for f in found if f.name in known]:
        raise ValueError(f"feature {both[0]!r} is also in given=; remove it from one of them")
    alone, missing = [f for f in found if isinstance(f, Feature) and not known], how.missing
    single, sources = scan(alone, table, sample, how)
    each: dict[Any, tuple[Estimate, float, Source]]
    each = {f: (single.taken(np.array([k])), 0.0, sources[k]) for k, f in enumerate(alone)}
    given, memory, silent = _columns(Group(known), table, sample, missing), {}, {}
    for feature in progress([f for f in found if f not in each], "features"):
        F = _columns(feature, table, sample, missing)
        place = np.sin(1.0 + np.arange(sample.n))  # the same columns have the same mark
        mark = float(sum(np.nan_to_num(c.values) @ place for c in F))
        source = Source("group" if isinstance(feature, Group) else F[0].kind, mark)
        there = np.all([~np.isnan(c.values) | (missing != "drop") for c in [*F, *given]], axis=0)
        rows, f, g = sample.taken(there), *([c.take(there) for c in some] for some in (F, given))
        X, G = design(f, rows.n), design(g, rows.n)
        if why := "" if rows.population else _silence(X, G):
            silent.setdefault(why, []).append(repr(feature.name))
        one, gain = nothing(sample), 0.0
        if not why and rows.n and np.ptp(rows.s):
            one = _of_cells(rows, f, g)
        if one is None:
            one, gain = _of_models(rows, X, G, memory.setdefault(there.tobytes(), {}))
        each[feature] = one, gain, source
    if silent:
        said = "; ".join(f"{', '.join(some)}: {why}" for why, some in silent.items())
        warn(f"importance 0 for {said}")
    if memory and sample.n < FEW_ROWS:
        warn(
            f"{sample.n} rows are few to learn E[s | several columns] from, so importances may be "
            f"too small; expected at least {FEW_ROWS} rows"
        )
    estimates, gains, sources = zip(*(each[f] for f in found), strict=True)
    return Learned(**vars(Estimate.concatenate(estimates)), gain=np.array(gains)), [*sources]


def _columns(f: Feature | Group, table: Table, sample: Rows, missing: str) -> list[Column]:
    """Return the columns of a feature in the rows that count."""
    found = f.columns(table) if isinstance(f, Group) else [f.of(table)]
    found = [column.take(sample.keep) for column in found]
    for column in found if missing == "raise" else ():
        check_present(f"feature {f.name!r}", column.values)
    return found


def _silence(X: np.ndarray, G: np.ndarray) -> str:
    """Return why the columns X of a design cannot add anything to G, or an empty string."""
    if not X.shape[1]:
        return "constant, missing, or another level in nearly every row"
    same = [any(min(np.ptp(x - g), np.ptp(x + g)) < 1e-9 for g in G.T) for x in X.T]
    return "the same as a given column" if all(same) else ""


def _of_cells(rows: Rows, F: Sequence[Column], known: Sequence[Column]) -> Estimate | None:
    """Measure in cells; return None if columns have many values or cells few rows."""

    def code(columns: Sequence[Column]) -> np.ndarray:
        found = np.zeros(rows.n, np.intp)
        for c in columns:
            index = np.unique(c.values, return_inverse=True)[1]
            found = np.unique(found * (index.max() + 1) + index, return_inverse=True)[1]
        return found

    columns = [*F, *known]
    few = all(c.kind == "nominal" or len(np.unique(c.values)) <= FEW_LEVELS for c in columns)
    few = few and code(columns).max() < min(rows.n / ROWS_PER_CELL, MOST_CELLS)
    if not few and not rows.population:
        return None
    return contrast(rows, rows.r, code(known), code(F), 1)


def _of_models(
    rows: Rows, X: np.ndarray, G: np.ndarray, memory: dict[int, list[np.ndarray]]
) -> tuple[Estimate, float]:
    """Measure by models of the columns X and G, kept in `memory` by width; return also the gain.

    The test is the projected covariance measure (Lundborg et al., 2024). Without an effect, two
    rows in different parts count twice, each in the model of the other, so the variance doubles.
    What e_g^2 clearly falls by when the rows double might be mistaken for an effect, so it counts
    as error. An effect that clearly grew from half of the rows to all is taken to grow by as much
    again; the growth counts as error, too.
    """
    if rows.n < MIN_ROWS:
        raise ValueError(f"{rows.n} rows; expected at least {MIN_ROWS} to learn several columns")
    width = X.shape[1] + G.shape[1]
    own = rows.fold % PARTS, np.arange(rows.n)  # the model that did not see a row
    if width not in memory:
        memory[width] = [fitted(rows, G, rows.r, width, every) for every in (1, 2)]
    if G.shape[1] > 0 and X.shape[1] <= FEW_LEVELS:
        X = np.column_stack([f - fitted(rows, G, f, width)[own] for f in X.T])
    m_g = memory[width]
    m = [fitted(rows, np.column_stack([X, G]), rows.r, width, every) for every in (1, 2)]
    e_g, e = (np.array([rows.r - every[own] for every in models]) for models in (m_g, m))
    d = m[0] - m_g[0]
    effect = Estimate.of_rows(e_g[0] * (d - fitted(rows, G, d, width))[own], rows)
    falls = Estimate.of_rows(e_g[1] ** 2 - e_g[0] ** 2, rows)
    learning = np.maximum(falls.V - np.sqrt(falls.J), 0)
    error = np.sqrt(2 * (effect.J + learning**2)) + TINY
    all_rows, half = e_g**2 - e**2
    both = Estimate.of_rows(np.column_stack([all_rows, all_rows - half]), rows)
    (V, growth), grows = both.V, (2 * np.sqrt(both.J) < both.V).all()
    pvalue = special.ndtr(-effect.V / error)
    one = Estimate.of_rows(all_rows + grows * (all_rows - half), rows)
    J = one.J + grows * growth**2
    noise = J * np.array([[1], [-1 / 3], [0]])  # comparisons take off rest + 3/4 (extra - rest) = 0
    psi = one.psi * np.sqrt(J / np.maximum(one.J, TINY))
    one = replace(one, psi=psi, noise=noise, pvalue=pvalue)
    return one, float(np.clip(growth / V, 0, 1)) if grows else 0.0
