"""Exact search: of all conjunctions of a few conditions, those whose importance is largest.

With r the centred scores and W the sum of the weights, the importance of the indicator of a set A
of rows (eq. 10) is

    Q(A) = sum_A w r / (W sqrt(p (1 - p))),   p = sum_A w / W,

so two sums over A tell all, and those of many sets with each condition added are two matrix
products. With w r^2 summed as well, they bound what any subset of A can reach, too (`_refined`):
what cannot beat the n-th best found so far is not looked into. The conditions are sorted by this
bound, and each set grows out of its weakest ones, of which most are ruled out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from firmlib._rounding import NUDGE, ROUNDING

_BATCH = 256  # sets that are refined at a time
_POOL = 20, 160, 1280  # sets to look at for each that is wanted: most are variants of each other

Rule = tuple[int, ...]  # conditions by their place in a table


class Conjunctions:
    """Conjunctions of conditions and what they are worth.

    Parameters
    ----------
    holds : bool array of shape (n, m)
        Which rows meet which condition; 2 i + 1 is the negation of 2 i.
    r, w : arrays of shape (n,)
        Scores minus their mean, and weights.
    min_rows : int
        Rows that a set must have, and must leave out.
    progress : bool, default False
        Whether to show a bar.
    """

    def __init__(
        self,
        holds: np.ndarray,
        r: np.ndarray,
        w: np.ndarray,
        min_rows: int,
        progress: bool = False,
    ) -> None:
        self.n, self.min_rows, self.progress = len(r), min_rows, progress
        self.holds, self.w = np.ascontiguousarray(holds.T), w / w.mean()
        self.wr, self.W = self.w * r, self.w.sum()
        self._terms = {"w": self.w, "wr": self.wr} | ({"n": np.ones(len(r))} if np.ptp(w) else {})
        self._terms |= {"up": self.wr * np.maximum(r, 0), "down": self.wr * np.minimum(r, 0)}
        self._parts = {name: holds[:, ::2] * a[:, None] for name, a in self._terms.items()}
        _, [bound] = self._refined(np.ones((1, self.n)), 0)
        weakest = np.argsort(bound.reshape(-1, 2).max(axis=1), kind="stable")
        self._parts = {name: part[:, weakest] for name, part in self._parts.items()}
        self._place = (2 * weakest[:, None] + [0, 1]).ravel()  # of the sorted conditions

    def where(self, rule: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return which rows meet a rule."""
        return np.asarray(self.holds[list(rule)].all(axis=0))

    def importance(self, rule: Sequence[int]) -> float:
        """Return Q of a rule."""
        A = self.where(rule)
        return float(self._importance(self.w[A].sum(), self.wr[A].sum()))

    def _importance(self, w: Any, wr: Any) -> np.ndarray:
        both = np.asarray(w * (self.W - w))
        some = both > ROUNDING * self.W**2
        return np.where(some, wr / np.sqrt(np.where(some, both, 1.0)), 0.0)

    def best(self, order: int, n: int) -> list[Rule]:
        """Return the `n` rules of up to `order` conditions with the largest |Q|, the best first."""
        m, worst = len(self.holds), 0.0
        values, rules = np.zeros(0), np.zeros((0, order), dtype=int)
        sets, bounds = np.zeros((1, 0), dtype=int), np.full(1, np.inf)
        for depth in range(order):
            grown, grown_bounds = [np.zeros((0, depth + 1), dtype=int)], [np.zeros(0)]
            ranked = np.argsort(-bounds, kind="stable")
            last = sets.max(axis=1, initial=-1)
            ranked[_BATCH:] = ranked[_BATCH:][np.argsort(last[ranked[_BATCH:]], kind="stable")]
            batches: Any = range(0, len(ranked), _BATCH)
            if self.progress:
                from tqdm import tqdm

                batches = tqdm(batches, desc=f"{depth + 1} conditions", unit="batch")
            for start in batches:
                batch = ranked[start : start + _BATCH]
                batch = batch[bounds[batch] > worst]
                if not len(batch):
                    continue
                some = sets[batch]
                masks = self.holds[self._place[some]].all(axis=1).astype(float)
                begin = (last[batch].min() + 1) // 2 * 2  # no condition before it is added
                Q, bound = self._refined(masks, begin, last=depth + 1 == order)
                new = np.arange(begin, m) > last[batch, None]  # each set once
                i, literal = np.nonzero(new & (worst < Q))
                found = np.full((len(i), order), -1)
                found[:, :depth], found[:, depth] = some[i], begin + literal
                values, rules = np.append(values, Q[i, literal]), np.vstack([rules, found])
                first = np.argsort(-values, kind="stable")[:n]
                values, rules = values[first], rules[first]
                worst = values[-1] if len(values) == n else 0.0
                i, literal = np.nonzero(new & (worst < bound))
                grown.append(np.column_stack([some[i], begin + literal]))
                grown_bounds.append(bound[i, literal])
            sets, bounds = np.vstack(grown), np.concatenate(grown_bounds)
        return [tuple(sorted(self._place[[i for i in rule if i >= 0]].tolist())) for rule in rules]

    def _refined(
        self, masks: np.ndarray, begin: int, last: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return |Q| of sets with one condition more; unless it is the `last`, bounds on subsets.

        For A' within A, by Cauchy and Schwarz Q(A')^2 (1 - p') <= sum_A' w r^2 / W over the rows
        of one sign, and p' <= p.
        """
        w = self._sums(masks, "w", begin)
        rows = self._sums(masks, "n", begin) if "n" in self._terms else w
        enough = rows > self.min_rows - 0.5
        some = enough & (rows < self.n - self.min_rows + 0.5)
        Q = np.where(some, self._importance(w, self._sums(masks, "wr", begin)), 0.0)
        Q = np.where(Q < 0, -Q * (1 - NUDGE), Q)  # of a rule and its negation, one comes first
        if last:
            return Q, np.zeros_like(Q)
        squares = np.maximum(*(self._sums(masks, name, begin) for name in ("up", "down")))
        bound = np.sqrt(np.maximum(squares, 0) / np.maximum(self.W - w, ROUNDING * self.W))
        return Q, np.where(enough, bound * (1 + NUDGE), 0.0)

    def _sums(self, masks: np.ndarray, name: str, begin: int) -> np.ndarray:
        """Sum over the rows of sets that meet each condition; its negation is the rest."""
        sums = masks @ self._parts[name][:, begin // 2 :]
        rest = (masks @ self._terms[name])[:, None] - sums
        return np.stack([sums, rest], axis=-1).reshape(len(masks), -1)

    def distinct(self, order: int, n: int, distinct: float) -> list[Rule]:
        """Return the best rules without those that add nothing to a better or a shorter one."""
        kept: list[Rule] = []
        for pool in (n * many for many in _POOL):
            found, kept, indicators = self.best(order, pool), [], []
            for rule in found:
                if len(kept) < n and self._needed(rule):
                    A = self.where(rule)
                    p = self.w[A].sum() / self.W
                    z = (A - p) * np.sqrt(self.w / (self.W * p * (1 - p)))
                    if all(abs(z @ other) <= distinct * (1 - NUDGE) for other in indicators):
                        kept.append(rule)
                        indicators.append(z)
            if len(kept) == n or len(found) < pool:
                break
        return kept

    def _needed(self, rule: Rule) -> bool:
        """Whether a rule beats each that lacks one of its conditions by its standard error."""
        A, noise = self.where(rule), 0.0
        for part in (A, ~A):
            w, r = self.w[part], self.wr[part] / self.w[part]
            noise += np.average((r - np.average(r, weights=w)) ** 2, weights=w) / len(w)
        p = self.w[A].sum() / self.W
        shorter = [rule[:i] + rule[i + 1 :] for i in range(len(rule))] if len(rule) > 1 else []
        best = max((abs(self.importance(other)) for other in shorter), default=0.0)
        return abs(self.importance(rule)) > best + np.sqrt(noise * p * (1 - p))
