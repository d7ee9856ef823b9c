"""Exact search for rules: the conjunctions of a few conditions with the largest importance.

With r the centred scores and W the sum of the weights, the importance of a set A of rows is

    Q(A) = |sum_A w r| / (W sqrt(p (1 - p))),   p = sum_A w / W   (eq. 10),

so two sums over A are enough, and those of many sets with each condition added are two matrix
products. With w r^2 summed as well, they bound what a subset of A can reach: by Cauchy and Schwarz
Q(A')^2 (1 - p') <= sum_A' w r^2 / W over the rows of one sign, and p' <= p. Sets that cannot beat
the worst rule kept are not grown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firmlib.joint.learning import steps

BATCH = 256  # sets that are grown together
POOLS = 20, 200  # rules for each that is asked for, from which different ones are chosen
SECONDS, SPEED = 60, 1e10  # how long a search may take, and additions in a second
ROUNDING = 1e-12

Rule = tuple[int, ...]  # its conditions


@dataclass(frozen=True)
class Rules:
    """Conditions and the rows they are searched in.

    holds (n, 2 m): rows that meet each condition; 2 i + 1 is the negation of 2 i.
    family (2 m,): the same for thresholds of one column and direction.
    r, w (n,): centred scores and weights. A rule must hold, and fail, in `min_rows` rows.
    """

    holds: np.ndarray
    family: np.ndarray
    r: np.ndarray
    w: np.ndarray
    min_rows: int

    def where(self, rule: Rule) -> np.ndarray:
        """Return which rows meet a rule."""
        return np.asarray(self.holds[:, list(rule)].all(axis=1))

    def importance(self, rule: Rule) -> float:
        """Return Q of a rule."""
        A = self.where(rule)
        return float(self._Q(self.w[A].sum(), (self.w * self.r)[A].sum()))

    def _Q(self, w: np.ndarray, wr: np.ndarray) -> np.ndarray:
        both = w * (self.w.sum() - w)
        some = both > ROUNDING * self.w.sum() ** 2
        return np.where(some, np.abs(wr) / np.sqrt(np.where(some, both, 1.0)), 0.0)

    def best(self, order: int, n: int, progress: bool = False) -> list[Rule]:
        """Return the best rule of each set of families, the `n` best of them, by falling Q."""
        m, worst = self.holds.shape[1], 0.0
        values, rules = np.zeros(0), np.zeros((0, order), int)
        sets, bounds = np.zeros((1, 0), int), np.full(1, np.inf)
        for depth in range(order):
            last = depth + 1 == order
            self._check_work(len(sets), depth + 1, 2 if last else 4)
            grown, limits = [np.zeros((0, depth + 1), int)], [np.zeros(0)]
            batches = range(0, len(sets), BATCH)
            for start in steps(batches, progress and depth > 0, f"{depth + 1} conditions"):
                some = sets[start : start + BATCH]
                some = some[bounds[start : start + BATCH] > worst]
                if not len(some):
                    break
                Q, bound = self._grow(some, last)
                new = np.arange(m) > some.max(axis=1, initial=-1)[:, None]  # each set once
                i, j = np.nonzero(new & (worst < Q))
                found = np.full((len(i), order), -1)
                found[:, :depth], found[:, depth] = some[i], j
                values, rules = self._kept(np.append(values, Q[i, j]), np.vstack([rules, found]), n)
                worst = values[-1] if len(values) == n else 0.0
                i, j = np.nonzero(new & (worst < bound))
                grown.append(np.column_stack([some[i], j]))
                limits.append(bound[i, j])
            sets, bounds = np.vstack(grown), np.concatenate(limits)
            sets, bounds = sets[bounds > worst], bounds[bounds > worst]
            ranked = np.argsort(-bounds, kind="stable")
            sets, bounds = sets[ranked], bounds[ranked]
        return [tuple(int(i) for i in rule if i >= 0) for rule in rules]

    def _kept(self, values: np.ndarray, rules: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the best rule of each set of families, at most n."""
        size = values / max(values.max(initial=0.0), 1e-300)
        ranked = np.argsort(-size.round(9), kind="stable")  # the shorter of rules that coincide
        values, rules = values[ranked], rules[ranked]
        families = np.sort(np.append(self.family, -1)[rules], axis=1)
        first = np.sort(np.unique(families, axis=0, return_index=True)[1])[:n]
        return values[first], rules[first]

    @cached_property
    def _terms(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """What is summed up, in the rows and in those that meet each condition."""
        wr = self.w * self.r
        terms = {"w": self.w, "wr": wr, "rows": np.ones(len(wr))}
        terms |= {"up": wr * np.maximum(self.r, 0), "down": wr * np.minimum(self.r, 0)}
        return {name: (a, self.holds[:, ::2] * a[:, None]) for name, a in terms.items()}

    def _grow(self, sets: np.ndarray, last: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return Q of sets with each condition added and, unless it is the last, the bounds."""
        masks = self.holds[:, sets].all(axis=2).T.astype(float)

        def sums(name: str) -> np.ndarray:  # over a condition, and over its negation
            a, met = self._terms[name]
            part = masks @ met
            return np.stack([part, (masks @ a)[:, None] - part], axis=-1).reshape(len(masks), -1)

        w, W, n = sums("w"), self.w.sum(), len(self.w)
        rows = sums("rows") if np.ptp(self.w) else w * n / W
        enough = rows > self.min_rows - 0.5
        some = enough & (rows < n - self.min_rows + 0.5)
        Q = np.where(some, self._Q(w, sums("wr")), 0.0)
        if last:
            return Q, np.zeros_like(Q)
        squares = np.maximum(np.maximum(sums("up"), sums("down")), 0)
        bound = np.sqrt(squares / np.maximum(W - w, ROUNDING * W)) * (1 + 1e-9)
        return Q, np.where(enough, bound, 0.0)

    def _check_work(self, sets: int, order: int, sums: int) -> None:
        n, m = self.holds.shape
        seconds = sets * m / 2 * n * sums / SPEED
        if seconds > SECONDS:
            raise ValueError(
                f"{sets * m:.3g} rules of {order} conditions on {n} rows would take about "
                f"{seconds / 60:.0f} minutes; expected at most one: search fewer columns, with "
                f"fewer cuts, or up to order={order - 1}"
            )

    def different(self, order: int, n: int, distinct: float, progress: bool) -> list[Rule]:
        """Return up to n rules that beat their parts, without those that nearly coincide."""
        kept: list[Rule] = []
        for pool in POOLS:
            rules = self.best(order, pool * n, progress)
            kept = self._chosen(rules, n, distinct)
            if len(kept) == n or len(rules) < pool * n:
                break
        return kept

    def _chosen(self, rules: list[Rule], n: int, distinct: float) -> list[Rule]:
        kept: list[Rule] = []
        indicators: list[np.ndarray] = []
        for rule in rules:
            if len(kept) == n:
                break
            A, W = self.where(rule), self.w.sum()
            p = self.w[A].sum() / W
            z = (A - p) * np.sqrt(self.w / (W * p * (1 - p)))
            apart = all(abs(z @ other) <= distinct * (1 - 1e-9) for other in indicators)
            if apart and self._needed(rule, A, p):
                kept.append(rule)
                indicators.append(z)
        return kept

    def _needed(self, rule: Rule, A: np.ndarray, p: float) -> bool:
        """Whether a rule beats each rule that lacks one of its conditions by its standard error."""
        noise = 0.0
        for part in (A, ~A):
            w, r = self.w[part], self.r[part]
            noise += np.average((r - np.average(r, weights=w)) ** 2, weights=w) / len(w)
        shorter = [rule[:i] + rule[i + 1 :] for i in range(len(rule))] if len(rule) > 1 else []
        best = max((self.importance(other) for other in shorter), default=0.0)
        return self.importance(rule) > best + np.sqrt(noise * p * (1 - p))
