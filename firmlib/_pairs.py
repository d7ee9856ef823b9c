"""All pairs of binary columns at once: three matrix products instead of a loop over pairs."""

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from firmlib.estimators import ConditionalScore, Estimates, Rows, Spread, spread


def estimate_pairs(
    rows: Rows, table: np.ndarray, names: list[str], kind: str, sampled: str
) -> Estimates | None:
    """Estimate products, conjunctions or xors of all pairs of columns of a table of two values.

    With B = 1 where it has the larger value and 0 elsewhere, B'diag(a)B sums `a` over the rows
    where both columns have it; with the sums over each column that gives the sums over the rows
    where both, one or none of them have it. For `a` take w, w r and w r^2, as `tally` does.
    None if the table has other values.
    """
    low, high = table.min(), table.max()
    if np.any((table != low) & (table != high)):
        return None
    if kind == "product" and (low, high) not in ((0, 1), (-1, 1)):
        return None
    B = (table == high).astype(float)
    j, k = np.triu_indices(B.shape[1], 1)
    weights = (rows.w, rows.wr, rows.wrr)
    both = np.array([(B.T @ (a[:, None] * B))[j, k] for a in weights])
    each = np.array([a @ B for a in weights])
    total = np.array([[a.sum()] for a in weights])
    levels = (0.0, 1.0)
    if kind == "conjunction":
        none = total - each[:, j] - each[:, k] + both
        where_true = np.stack([none, each[:, k] - both, each[:, j] - both, both], axis=-1)
        labels = [(f"={a:g} ∧ ", f"={b:g}") for a, b in product((low, high), repeat=2)]
    elif kind == "xor" or low == -1:
        where_true = (each[:, j] + each[:, k] - 2 * both)[..., None]
        labels = [(" ⊕ ", "")]
        if kind == "product":  # of signs: -1 where they differ
            where_true, labels, levels = total[..., None] - where_true, [("·", "")], (-1.0, 1.0)
    else:
        where_true, labels = both[..., None], [("·", "")]
    where_true = where_true.reshape(3, -1)
    rest = total - where_true
    sums = np.stack([rest, where_true], axis=1)
    sums[:, sums[0] < 1e-9 * total[0]] = 0  # differences of equal numbers
    found = spread(*sums, sampled)
    full = [
        f"{names[a]}{middle}{names[b]}{end}"
        for a, b in zip(j.tolist(), k.tolist(), strict=True)
        for middle, end in labels
    ]
    tolerance = 1e-12 * np.sqrt(rows.wrr.sum() / total[0])
    sign = np.where(found.m[1] - found.m[0] < -tolerance, -1.0, 1.0)
    centre = rows.mean + rows.wr.sum() / rows.w.sum()
    curves = _Curves(full, levels, sums[0], found, centre)
    methods = ["discrete"] * len(full)
    return Estimates(full, methods, sign, *found[2:], curves)


class _Curves(Mapping):
    """Curves of two points, made one by one."""

    def __init__(
        self,
        names: list[str],
        levels: tuple[float, float],
        n: np.ndarray,
        found: Spread,
        centre: float,
    ) -> None:
        self._place = {name: i for i, name in enumerate(names)}
        self._levels, self._n, self._found, self._centre = np.array(levels), n, found, centre

    def __getitem__(self, name: str) -> ConditionalScore:
        i = self._place[name]
        taken = self._n[:, i] > 0
        n, m, v = (a[taken, i] for a in (self._n, self._found.m, self._found.v))
        variance = float(self._found.variance[i])
        return ConditionalScore(
            self._levels[taken],
            m + self._centre,
            n / n.sum(),
            n,
            "discrete",
            variance,
            np.sqrt(v / n),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)
