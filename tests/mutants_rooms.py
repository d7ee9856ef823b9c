"""Mutants of tables, features, closed forms and joint measures, beside those of the core.

The same as `tests.mutants_core`, with the tests that must notice each; run by `make mutants`, or
`python -m tests.mutants_rooms binary joint` for files whose path contains these words.
"""

import sys

from tests import mutants_core as core

JOINT = "levels or binary or dropped or exact or product or additive or unexplained or missing"

MUTANTS: dict[tuple[str, str], list[tuple[str, str, str]]] = {
    ("tests/test_binary.py", ""): [
        ("binary.py", "np.sqrt(p_a * (1 - p_a))", "(p_a * (1 - p_a))"),
        ("binary.py", "np.sqrt(2**k - 1)", "np.sqrt(2**k)"),
        ("binary.py", "(n_minus - n_plus) / (2 * n * root)", "(n_plus - n_minus) / (2 * n * root)"),
        ("binary.py", "s - p @ s", "s"),
        ("binary.py", "np.sqrt(p / np.where(p < 1, 1 - p, 1))",
         "np.sqrt(np.where(p < 1, 1 - p, 1) / np.maximum(p, 1e-9))"),
    ],
    ("tests/test_normal.py", ""): [
        ("normal.py", "u**2 / (1 + 2 * u)) / 2", "u**2 / (1 + u)) / 2"),
        ("normal.py", "log_e - r / 2 +", "log_e - r +"),
        ("normal.py", "A @ cov @ weights / np.where(sd > 0, sd, 1)", "A @ cov @ weights"),
        ("normal.py", "n / (n - 1) ** 3 *", "n / (n - 1) ** 2 *"),
        ("normal.py", "left > _KNOWN * variances", "left > 0 * variances"),
    ],
    ("tests/test_expansion.py", ""): [
        ("expansion.py", "2 * self.scale * (A @ self.centers", "self.scale * (A @ self.centers"),
        ("expansion.py", "inner ** (self.degree - 1)", "inner**self.degree"),
        ("expansion.py", "coef0**rest *", "coef0 *"),
    ],
    ("tests/test_tables.py", ""): [
        ("tables/columns.py", "np.where(codes < 0, np.nan, codes), None, kind",
         "codes, None, kind"),
        ("tables/columns.py", ".max(initial=0.0) < 2**53", ".max(initial=0.0) < 2**60"),
        ("tables/columns.py", "(np.cumsum(keep) - 1)", "np.cumsum(keep)"),
        ("tables/columns.py", "float(found[0]) if found else np.nan",
         "float(found[0]) if found else 0"),
        ("tables/table.py", "2 * len(values) < self.n", "2 * len(values) < -1"),
        ("tables/table.py", "data.sum_duplicates()", "data.sort_indices()"),
    ],
    ("tests/test_features.py", ""): [
        ("features.py", "np.where(np.isnan(x), np.nan, x > least)", "1.0 * (x > least)"),
        ("features.py", "hold *= missing & (value is None)", "hold *= missing"),
        ("features.py", "x != seen[0])", "x == seen[0])"),
        ("features.py", "len(f) != table.n or len(places) == len(f)", "True"),
    ],
    ("tests/test_fuzz.py", "given_columns"): [
        ("joint/given.py", "known(rows, fine - less)", "known(rows, fine)"),
    ],
    ("tests/test_joint.py", JOINT): [
        ("joint/cells.py", "[(-1, way) for way in coarse]", "[(-0.9, way) for way in coarse]"),
        ("joint/cells.py", "V += c * bins.T.sum()", "V += c * (bins.p * bins.m**2).sum()"),
        ("joint/given.py", "coarse = code if place < len(known)", "coarse = code if place < 0"),
        ("joint/pairs.py", "cells[..., [0, 1]] + cells[..., [3, 2]]",
         "cells[..., [0, 1]] + cells[..., [2, 3]]"),
        ("joint/pairs.py", "for which in (cell, a, b)", "for which in (a, a, b)"),
        ("joint/pairs.py", "slot = column.dense(len(w)), np.full(len(w), Q)",
         "slot = column.dense(len(w)), np.full(len(w), Q // 2)"),
        ("joint/additive.py", "e -= curve.fit(w * e)", "e -= curve.fit(w * r)"),
        ("joint/additive.py", "e /= np.sqrt(np.clip(1 - own, 0.1, 1))", "e /= 2"),
        ("joint/search.py", "np.sqrt(np.where(some, variance, 1))", "np.where(some, variance, 1)"),
        ("joint/search.py", "kept[key] = max(", "kept[key] = min("),
    ],
}  # fmt: skip


def main(*only: str) -> int:
    """Run the mutants of some files, or all; return how many survive."""
    survivors = 0
    for (test, expression), mutants in MUTANTS.items():
        if any(word in mutant[0] for mutant in mutants for word in only or ("",)):
            core.TESTS, core.SLOW, core.MUTANTS = [test], expression, mutants
            survivors += core.main(*only)
    return survivors


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
