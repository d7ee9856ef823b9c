"""What rows count for: checks of their scores, weights and units."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from firmlib._checks import check_option, check_unmasked, check_weights
from firmlib._columns import as_array
from firmlib._moments import ROWS
from firmlib._table import Table

WEIGHT_TYPES = ("auto", "count", "sampling")

LARGEST = 1e150
"""Scores beyond it overflow when they are squared."""

_DIFFERENCES = {"sample": 1e30, "population": LARGEST}
"""Errors are made of eighth powers of what scores differ by: none may overflow or vanish."""


def check_rows(rows: str) -> str:
    """Return what the rows are: a sample unless they are said to be the population."""
    check_option("rows", rows, ROWS)
    return "sample" if rows == "auto" else rows


def check_scores(
    name: str, s: np.ndarray, sample_weight: ArrayLike | None, *, zeros: bool = False
) -> tuple[np.ndarray, np.ndarray, slice | np.ndarray]:
    """Return the scores and weights of the rows that have a weight, and which these are."""
    w = check_weights("sample_weight", sample_weight, len(s), zeros=zeros)
    keep = slice(None) if w.all() else w > 0
    s, w = s[keep], w[keep]
    largest = np.abs(s).max(initial=0.0)
    if largest > LARGEST:
        raise ValueError(f"{name}={largest:.3g} overflows when squared; rescale the scores")
    return s, w, keep


def check_differences(name: str, difference: float, rows: str) -> None:
    """Raise if scores differ by more or less than can be reckoned with; they may be alike."""
    most = _DIFFERENCES[rows]
    if difference > 0 and not 1 / most <= difference <= most:
        raise ValueError(
            f"{name} differs by {difference:.3g}; expected {1 / most:g} to {most:g}, or 0: rescale "
            "the scores"
        )


def are_whole(w: np.ndarray) -> bool:
    """Return whether weights may count rows: whole numbers, not so large that all floats are."""
    return not (w != np.rint(w)).any() and bool(w.max() < 2**53)


def check_weight_type(weight_type: str, w: np.ndarray, rows: str, method: str) -> str:
    """Return whether the weights are a "count" of rows or those of "sampling"."""
    check_option("weight_type", weight_type, WEIGHT_TYPES)
    if rows == "population":
        return "count"
    if weight_type == "auto":
        weight_type = "count" if are_whole(w) else "sampling"
    if weight_type == "count" and method != "slope" and w.sum() <= 1:
        raise ValueError(
            f"sample_weight sums to {w.sum():g}, but if it counts rows it must exceed 1; for "
            "probabilities use rows='population', for weights of sampling weight_type='sampling'"
        )
    if weight_type == "sampling" and len(w) < 2:
        raise ValueError(f"a sample needs at least 2 rows with a weight, got {len(w)}")
    return weight_type


def check_groups(
    groups: ArrayLike | None, table: Table, keep: slice | np.ndarray, copies: bool
) -> np.ndarray | None:
    """Return the number of the unit of each row that has a weight; None if all have their own.

    Where weights count `copies` of a row, these are of one unit, too.
    """
    if groups is None:
        return None
    names, unit = units(groups, table, keep)
    if len(names) < 2:
        raise ValueError(f"groups={names[:1]!r} has one label; expected at least 2 units")
    return None if len(names) == len(unit) and not copies else unit


def units(
    groups: ArrayLike, table: Table, keep: slice | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of units, and the number of that of each row that has a weight."""
    import pandas as pd

    table.check_rows("groups", groups)
    check_unmasked("groups", groups)
    labels = as_array("groups", groups)
    if labels.shape != (table.n,):
        raise ValueError(f"groups has shape {labels.shape}, expected {(table.n,)}: a label per row")
    missing = pd.isna(labels)
    if missing[keep].any():
        rows = np.arange(table.n)[keep][missing[keep]]
        raise ValueError(
            f"groups must not be missing, got {len(rows)} missing labels, the first at row "
            f"{rows[0]}; expected the unit of each row, one of its own where it is not known"
        )
    if labels.dtype != object:
        return np.unique(labels[keep], return_inverse=True)
    unit, names = pd.factorize(labels[keep])  # 1 and "1" are two
    order = np.argsort(names.astype(str), kind="stable")
    return names[order], np.argsort(order)[unit]
