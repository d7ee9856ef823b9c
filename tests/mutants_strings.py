"""Change `firmlib.strings` in one place at a time; `pytest` must notice within ten seconds.

As `tests.mutants_core`, with the tests of each file: `python -m tests.mutants_strings`, or
`python -m tests.mutants_strings kernel poim` for files whose path contains these words.
"""

import sys

from tests import mutants_core

MUTANTS: list[tuple[str, str, str]] = [
    # kernel and its operator
    ("strings/kernel.py", "yield 2 * delta / (degree", "yield delta / (degree"),
    ("strings/kernel.py", "row /= np.sqrt(k * ky)", "row /= np.sqrt(k * k)"),
    ("strings/kernel.py", "1 / (2 * (s + 1) if", "1 / (2 * (s + 2) if"),
    ("strings/kernel.py", "(A[:, : length - s], B[:, s:])", "(A[:, s:], B[:, : length - s])"),
    ("strings/matvec.py", "(lag < len(delta))", "(lag < len(delta) - 1)"),
    ("strings/matvec.py", "np.tile(v / strands, strands)", "np.tile(v, strands)"),
    # weights and strands
    ("strings/weights.py", "np.r_[a, a] / 2", "np.r_[a, -a] / 2"),
    ("strings/weights.py", "start * m + column, value[row]", "start * m + column, value[start]"),
    ("strings/alphabet.py", "self.complement[codes[:, ::-1]]", "self.complement[codes]"),
    # backgrounds
    ("strings/background.py", 'f"{j} ({alphabet', 'f"{j + 1} ({alphabet'),
    ("strings/background.py", "joint = self.contexts[:-1, :, None]",
     "joint = self.contexts[1:, :, None]"),
    # expected scores and POIMs
    ("strings/_sweep.py", "_expect_first(total(right, both)", "_expect_first(total(left, both)"),
    ("strings/_sweep.py", "(right[j + 1] + ending[j + 1])", "(right[j + 1] + starting[j + 1])"),
    ("strings/_sweep.py", "first * (right + both)", "first * (left + both)"),
    ("strings/poim.py", "firm_from_poim(q, p) if", "firm_from_poim(q, 1 - p) if"),
    ("strings/poim.py", "    left -= mean", "    left -= 0.9 * mean"),
    ("strings/poim.py", "np.repeat(inner[j + 1], a)", "np.repeat(inner[j], a)"),
    ("strings/motifs.py", "(right, k - d, suffix)", "(right, k - d, prefix)"),
    ("strings/motifs.py", "Q * first / np.sqrt", "Q / np.sqrt"),
    # searches
    ("strings/search.py", "weights.length - k - position", "weights.length - position"),
    ("strings/search.py", "[good] ** k", "[good] ** 1"),
    ("strings/search.py", "[Q[t : t + n] for t in", "[Q[t - 1 : t - 1 + n] for t in"),
    # models and surrogates
    ("strings/svm.py", "alpha = alpha / np.sqrt(", "alpha = alpha * np.sqrt("),
    ("strings/svm.py", "2.0 * second - 1", "1 - 2.0 * second"),
    ("strings/surrogate.py", "1 - least / s[held].var()", "1 - np.sqrt(least / s[held].var())"),
    ("strings/surrogate.py", "_SURE * np.ptp(s) / n", "0 * np.ptp(s) / n"),
    ("strings/surrogate.py", "g[i + 1] - g[0] - known[i]", "g[i + 1] - g[0]"),
]  # fmt: skip

TESTS = {
    "kernel": ("kernel", "every_degree"),
    "matvec": ("kernel any", "larger_products or (operator and strands)"),
    "weights": ("weights any", "definition or strands_are_one"),
    "alphabet": ("any", "strands"),
    "background": ("background", ""),
    "_sweep": ("poim", "definition"),
    "poim": ("poim", "definition or indicators"),
    "motifs": ("any motifs", "(ambiguous and DNA and firm) or entry_of_the_poim"),
    "search": ("any surrogate motifs", "strands_are_one or merging or pwm_is or sorting"),
    "svm": ("svm", "kernel_expansion or dense_solver"),
    "surrogate": ("surrogate", "confirm or never_zero or exact_poim or two_motifs"),
}


def main(*only: str) -> int:
    """Run the mutants of some files, or all; return how many survive."""
    survivors, every = 0, MUTANTS
    for name, (files, mutants_core.SLOW) in TESTS.items():
        mutants_core.MUTANTS = [mutant for mutant in every if f"/{name}.py" in mutant[0]]
        mutants_core.TESTS = [f"tests/test_strings_{file}.py" for file in files.split()]
        if not only or any(word in name for word in only):
            survivors += mutants_core.main()
    return survivors


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
