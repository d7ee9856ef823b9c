"""Change the library's source in one place at a time; `pytest` must notice within ten seconds.

A mutant is a file of firmlib, a text that occurs in it exactly once, and another text. Run by
`make mutants`, or `python -m tests.mutants_core variance slope` for files whose path contains
these words; survivors are named, and their number is the exit status. Seconds are CPU seconds.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tqdm import tqdm

from workflow import ROOT, engine

SECONDS = 10
TESTS = ["tests/test_golden.py", "tests/test_fuzz.py", "tests/test_laws.py"]
SLOW = "not group and not given and not interaction and not search and not learn"

MUTANTS: list[tuple[str, str, str]] = [
    # bins
    ("estimation/bins.py", "round(np.log2(n) / 2)", "round(np.log2(n) / 3)"),
    ("estimation/bins.py", "np.ceil(np.log2(n / 4))", "np.ceil(np.log2(n / 2))"),
    ("estimation/bins.py", "n_bins or 1.5 * 2**base)", "n_bins or 2**base)"),
    ("estimation/bins.py", "np.ceil(want - 0.5)", "np.ceil(want + 0.5)"),
    ("estimation/bins.py", "place[np.isnan(place)] = width - 1", "place[np.isnan(place)] = 0"),
    ("estimation/bins.py", 'F[k], side="right") - 1', 'F[k], side="left") - 1'),
    ("estimation/bins.py", "(start > F) & (slot > 0)", "(start > F) & (slot > 99)"),
    ("estimation/bins.py", "first] < 0, -1, 1", "first] < 0, 1, 1"),
    ("estimation/bins.py", "table.cumsum(axis=1) - 1", "table.cumsum(axis=1) - 2"),
    ("estimation/bins.py", "1.0 if n_bins else _TAILS", "_TAILS"),
    ("estimation/bins.py", "new[:, 1:] = F[:, 1:] != F[:, :-1]", "new[:, 1:] = True"),
    # sums
    ("estimation/rows.py", "= w, w * r, (w * r) ** 2,", "= w, w * r, w * r * r,"),
    ("estimation/rows.py", "each[:] = w, w * r,", "each[:] = w, r,"),
    ("estimation/rows.py", "0.0, self.s[here] - centre", "0.0, self.s[here] - self.centre"),
    ("estimation/sums.py", "cell = slot + (fold", "cell = np.maximum(slot - 1, 0) + (fold"),
    ("estimation/sums.py", "_moved(theirs.sums, other.centre, self.centre)", "theirs.sums"),
    ("estimation/sums.py", "np.nan_to_num(to - centre)", "np.nan_to_num(centre - to)"),
    ("estimation/sums.py", "wrr / W - square", "wrr / W"),
    ("estimation/sums.py", "sums[5] + 2 * move", "sums[5] + move"),
    ("estimation/sums.py", "np.sign(S @ (rank", "np.sign(-S @ (rank"),
    ("estimation/sums.py", "sums[..., -1] = 0", "sums[..., 0] = 0"),
    ("estimation/sums.py", "rows = np.flatnonzero(key <", "rows = np.arange(m) + 0 * np.sum(key <"),
    ("estimation/sums.py", "where[code]", "where[code[::-1]]"),
    ("estimation/sums.py", "each, rows.fold[here])", "each, rows.fold[here][::-1])"),
    # variance
    ("estimation/variance.py", "rr - 2 * c * wr", "rr - c * wr"),
    ("estimation/variance.py", "p * (m * m - e)", "p * (m * m + e)"),
    ("estimation/variance.py", "SS - m * m * WW", "SS"),
    ("estimation/variance.py", "TINY), W * W - WW", "TINY), W * W"),
    ("estimation/variance.py", "(df * e * n)", "(df * e)"),
    ("estimation/variance.py", " - whole.T[:, 0]", ""),
    ("estimation/variance.py", "2 * self.p**2 * self.e**2", "self.p**2 * self.e**2"),
    ("estimation/variance.py", "u * u / np.maximum(n - 1, 1)", "u * u / np.maximum(n, 1)"),
    ("estimation/variance.py", "(1 - 2 * p) * u * u", "(1 - p) * u * u"),
    ("estimation/variance.py", "np.arctan2(1, mean)", "np.arctan2(1, 2 * mean)"),
    ("estimation/variance.py", "np.where(k < base, test_equal(b)",
     "np.where(k == 0, test_equal(b)"),
    ("estimation/variance.py", "np.sqrt(error) - 1, 0, 1)", "np.sqrt(error), 0, 1)"),
    ("estimation/variance.py", "np.where(beyond, 4 / 3, 1)", "np.where(beyond, 1, 1)"),
    ("estimation/variance.py", "4 * added**2", "added**2"),
    ("estimation/variance.py", "least = 4 *", "least = 2 *"),
    # jackknife
    ("estimation/jackknife.py", "(V - without) * (1 - share)", "(V - without)"),
    ("estimation/jackknife.py", "psi -= share * psi.sum(axis=0)", "psi -= 0"),
    ("estimation/jackknife.py", "self.J - 2 * rest", "self.J - rest"),
    ("estimation/jackknife.py", "2 * J**2 / np", "J**2 / np"),
    ("estimation/jackknife.py", "degrees(self.psi), 1 - alpha / 2", "degrees(self.psi), 1 - alpha"),
    ("estimation/jackknife.py", "self.V + t * t * a / 2", "self.V"),
    ("estimation/jackknife.py", "np.where(self.pvalue > alpha, 0,", "np.where(self.pvalue > 1, 0,"),
    ("estimation/jackknife.py", "np.maximum(2 * self.Q, np", "np.maximum(self.Q, np"),
    ("estimation/jackknife.py", "np.multiply.outer(own, V)", "np.multiply.outer(0 * own, V)"),
    ("estimation/jackknife.py", "-1, 1) * paired", "-1, 1)"),
    ("estimation/jackknife.py", "(1 - rho**2) ** 2 * noise, total / 4", "0 * noise, total / 4"),
    ("estimation/jackknife.py", "differ = p <= 1 - level", "differ = p <= 1"),
    ("estimation/jackknife.py", "scaled = p[order] * len(p)", "scaled = p[order]"),
    ("estimation/jackknife.py", "np.maximum.accumulate(p[order] *", "(p[order] *"),
    # slope
    ("estimation/slope.py", "fr / w - f * r / w / w", "fr / w"),
    ("estimation/slope.py", "special.stdtr(folds - 1.0", "special.stdtr(folds + 9.0"),
    ("estimation/slope.py", "[4 * noise]", "[noise]"),
    ("estimation/slope.py", "noise *= folds / (folds - 1)", "noise *= 1"),
    ("estimation/slope.py", "r + move * w, fr + move * f", "r, fr"),
    # rows and streams
    ("estimation/rows.py", "folds_of_positions(start, len(s))",
     "np.argsort(np.argsort(s)) % FOLDS"),
    ("estimation/rows.py", "Rows(s, w, folds_of_units(key)",
     "Rows(s, w, folds_of_positions(0, len(s))"),
    ("estimation/rows.py", "keep = w > 0", "keep = w >= 0"),
    ("streaming.py", "start=self._n,", "start=0,"),
    ("estimation/scan.py", "(other.totals, other.centre - self", "(other.totals, 0 * self"),
    ("estimation/variance.py", "pairs > 1e-9 * WW", "pairs > 9 * WW"),
]  # fmt: skip


def changed(file: str, old: str, new: str) -> str:
    """Return the source of a file after the change."""
    source = (ROOT / "firmlib" / file).read_text(encoding="utf-8")
    if source.count(old) != 1:
        raise ValueError(f"{old!r} occurs {source.count(old)} times in {file}; update MUTANTS")
    return source.replace(old, new)


def run_tests(folder: Path, seconds: int | None) -> subprocess.CompletedProcess:
    """Run the tests in a copy of the project until the first one fails or time is up."""

    def limit() -> None:
        if seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))

    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    return subprocess.run(
        [*command, "-k", SLOW, *TESTS],
        cwd=folder,
        env=os.environ | one_thread | {"HYPOTHESIS_PROFILE": "few", "POLARS_MAX_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )


def noticed(mutant: tuple[str, str, str]) -> str:
    """Return the test that notices a mutant, or nothing."""
    file, old, new = mutant
    with tempfile.TemporaryDirectory() as folder:
        copy = project(Path(folder))
        (copy / "firmlib" / file).write_text(changed(file, old, new), encoding="utf-8")
        done = run_tests(copy, SECONDS)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode in (1, 2, 3, 4) and lines:
        return lines[0].split(" - ")[0]
    return f"stops with status {done.returncode}" if done.returncode in (2, 3, 4) else ""


def project(folder: Path) -> Path:
    """Return a copy of what the tests need."""
    skip = shutil.ignore_patterns("__pycache__", "browser", "strange")
    for name in ("firmlib", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def main(*only: str) -> int:
    """Run the mutants of some files, or all; return how many survive."""
    chosen = [m for m in MUTANTS if not only or any(word in m[0] for word in only)]
    for mutant in chosen:
        changed(*mutant)
    with tempfile.TemporaryDirectory() as folder:
        done = run_tests(project(Path(folder)), None)
        if done.returncode:
            raise SystemExit(f"the tests fail without a change\n{done.stdout}{done.stderr}")
    survivors = []
    with ThreadPoolExecutor(engine.jobs(os.environ.get("JOBS"))) as pool:
        found = tqdm(pool.map(noticed, chosen), total=len(chosen), disable=None)
        for (file, old, new), how in zip(chosen, found, strict=True):
            print(f"{file}: {old!r} → {new!r}: {how or 'NOT NOTICED'}", flush=True)
            if not how:
                survivors.append(f"{file}: {old!r} → {new!r}")
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} changes were noticed.")
    if survivors:
        print("Survivors:", *survivors, sep="\n  ")
    return len(survivors)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
