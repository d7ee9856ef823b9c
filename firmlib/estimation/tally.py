"""The sums of several features over the rows seen so far; sums of two parts add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from firmlib.estimation.bins import Axes
from firmlib.estimation.rows import FOLDS, Rows
from firmlib.estimation.scan import Sums, new_sums
from firmlib.estimation.sums import Levels, Numbers, fold_totals, moved_totals, parts
from firmlib.tables.checks import check_memory
from firmlib.tables.columns import Column


class Bins(NamedTuple):
    """What chunks share: the kinds and labels of the columns, and the slots of the numbers."""

    names: list[str]
    columns: list[Column]
    axes: Axes | None


class Tally:
    """Sums of the features of a stream, in bins found from its first rows."""

    def __init__(
        self,
        columns: Sequence[Column],
        n_bins: int | None,
        *,
        axes: Axes | None = None,
        unit: np.ndarray | None = None,
        population: bool = False,
        slope: bool = False,
    ) -> None:
        n = len(columns[0].values)
        self.others: dict[int, Sums] = {}
        for j, column in enumerate(columns):
            sums = new_sums(column, n, population=population and n_bins is None, slope=slope)
            if sums is not None:
                self.others[j] = sums
        self.places = [j for j in range(len(columns)) if j not in self.others]
        self.numbers: Numbers | None = None
        if self.places:
            F = np.array([columns[j].values for j in self.places])
            axes = axes or Axes.of(F, n, n_bins, roomy=True, unit=unit)
            check_memory("the sums of all features", (5, FOLDS, len(axes.start), axes.slots))
            self.numbers = Numbers(axes)
        self.totals, self.centre = np.zeros((6, FOLDS)), np.nan
        self.n, self.units = 0, np.zeros(0, np.uint64)

    def add(self, columns: Sequence[Column], rows: Rows) -> None:
        """Add rows."""
        self.centre = rows.centre if not self.n else self.centre
        r = rows.s - self.centre
        each = parts(r, rows.w if rows.weighted or rows.w[0] != 1 else None)
        if self.numbers is not None:
            self.numbers.add(np.array([columns[j].values for j in self.places]), each, rows.fold)
        for j, sums in self.others.items():
            if isinstance(sums, Levels):
                sums.add(columns[j], each, rows.fold)
            else:
                sums.add(columns[j].values, each, rows.fold)
        self.totals += fold_totals(r, rows.w, rows.fold)
        self.n += rows.n
        if rows.key is not None:
            self.units = np.union1d(self.units, rows.key)

    def merge(self, other: Tally) -> None:
        """Add the rows of another one with the same bins."""
        self.centre = other.centre if not self.n else self.centre
        move = other.centre - self.centre
        if self.numbers is not None and other.numbers is not None:
            self.numbers.merge(other.numbers, move)
        for j, sums in self.others.items():
            sums.merge(other.others[j], move)  # type: ignore[arg-type]
        self.totals = self.totals + moved_totals(other.totals, move)
        self.n += other.n
        self.units = np.union1d(self.units, other.units)
