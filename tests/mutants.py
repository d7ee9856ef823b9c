"""Change one printed coefficient, or one step of a check, at a time; each must be noticed.

A mutant is noticed if its notebook stops, or if the verdict on a claim, or on a part of it, is
another one. Run by `make mutants`, or `make mutants ONLY="08 09"` for some notebooks; not part of
`make test`. A notebook is executed once, and must give the ledger's verdicts; where a mutant
changes a cell, a fork of the process goes on with the change until it is noticed.
"""

import contextlib
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
from tqdm import tqdm

from workflow import ROOT, engine

MUTANTS = [
    ("00_five_minutes", '"mean symmetry"], "mean area"', '"mean area"], "mean area"'),
    ("01_introduction", "wc = X * [c, 1], w / [c, 1]", "wc = X * [c, 1], w / [c**2, 1]"),
    ("01_introduction", "cov[:3, :3] += rho *", "cov[:3, :3] += 0 *"),
    ("01_introduction", 'firmlib.firm(lasso, X[i], method="slope").signed]', "lasso.coef_]"),
    ("01_introduction", "kept = first_on_the_path(A, b, 8)", "kept = range(A.shape[1])"),
    ("01_introduction", '"lasso": LassoCV(cv=3, alphas=15', '"lasso": LassoCV(cv=3, alphas=[1e-6]'),
    ("01_introduction", "rest[first_on_the_path(A[:, rest], b, k)]", "rest[-k:]"),
    ("01_introduction", "-parts / 2", "parts / 2"),
    ("01_introduction", "(uniform, *data)[0], tuned(l1_mkl,", "(l1_mkl, *data)[0], tuned(uniform,"),
    ("01_introduction", "noise=0.03", "noise=3.0"),
    ("01_introduction", "eta = tuned(l1_mkl, K, data", "eta = tuned(uniform, K, data"),
    ("01_introduction", "np.sqrt(multiplicity)", "np.sqrt(1.1 * multiplicity)"),
    ("01_introduction", "inner, pearson = alpha @ A,", "inner, pearson = alpha @ A**2,"),
    ("01_introduction", "np.sqrt(2 / 30)", "np.sqrt(1 / 30)"),
    ("01_introduction", "fit(signs, signs.prod(axis=1))", "fit(signs, signs[:, 0])"),
    ("01_introduction", "return KNeighborsClassifier(k).fit(A, b)", "return forest(A, b)"),
    ("01_introduction", '"x3 / 10"] = drops(X4 / [1, 1, 10, 1]',
     '"x3 / 10"] = drops(X4 * [1, 1, -1, 1]'),
    ("01_introduction", "X4[:, 0] + 0.1 *", "X4[:, 0] + 3 *"),
    ("01_introduction", "[P4, P4[:, 0] * P4[:, 1]]", "[P4, P4[:, 2] * P4[:, 3]]"),
    ("01_introduction", "rho = 0.8", "rho = 0.0"),
    ("01_introduction", "lambda X: trees.predict_proba(X)[:, 1]", "rbf.decision_function"),
    ("01_introduction", "score = x1 * x2 + x1", "score = x1 * x2"),
    ("02_definition", "Fraction(t * t +", "Fraction(t * t + 1 +"),
    ("02_definition", '"uneven": [1, 2, 2, 4]', '"uneven": [2, 1, 1, 2]'),
    ("02_definition", "net = high @ joint[1] / joint[1].sum()", "net = high @ joint.sum(axis=0)"),
    ("02_definition", "table = dice / [c, 1]", "table = dice / 3"),
    ("02_definition", "slope * f.std() / Q", "slope / Q"),
    ("02_definition", '"step": np.sign', '"step": lambda x: x'),
    ("02_definition", '{"line": lambda x: x', '{"line": lambda x: np.sign(x)'),
    ("02_definition", '"independent": [1, 2, 2, 4]', '"independent": [1, 2, 2, 1]'),
    ("02_definition", "for table in (bits, coded)]", "for table in (coded, bits)]"),
    ("02_definition", "{k: r.standardized for", "{k: r.importances for"),
    ("02_definition", '"FIRM, linear": firms[:3]', '"FIRM, linear": permuted[:3]'),
    ("02_definition", "max(scores.values()) - 0.05", "max(scores.values()) - 1"),
    ("02_definition", "for e in np.eye(2**d)", "for e in np.zeros((2, 2**d))"),
    ("02_definition", "s = model.decision_function(Z)",
     "s = model.decision_function(Z) + rng.normal(0, 20, len(Z))"),
    ("02_definition", "(np.array(found) / truth - 1) ** 2", "(np.array(found) / truth - 1) ** 4"),
    ("02_definition", "lambda X, a=a: X[:, 0] + a", "lambda X, a=a: X[:, int(a > 0)] + a"),
    ("02_definition", 'change("rbf")', 'change("poly")'),
    ("02_definition", "-7 * base.signed", "7 * base.signed"),
    ("03_normal", "return (t / S[j, j]) * S[:, j]", "return (2 * t / S[j, j]) * S[:, j]"),
    ("03_normal", "S[:, j].dot(gradient) ** 2 / S[j, j]", "S[:, j].dot(gradient) ** 2"),
    ("03_normal", "return expect(sp.diff(score, j) ** 2 *", "return expect(sp.diff(score, j) *"),
    ("03_normal", "return 2 * sp.exp(-centre", "return 3 * sp.exp(-centre"),
    ("03_normal", "first_form = 2 *", "first_form = 3 *"),
    ("03_normal", "return (a.T * S * gradient)[0] ** 2", "return 2 * (a.T * S * gradient)[0] ** 2"),
    ("03_normal", "(off[widths[-1]] < off[widths[-2]] / 2)", "(off[widths[-2]] < off[widths[-1]])"),
    ("03_normal", '"tuned": tuned, "def', '"tuned": fits[fits["width"] == widths[0]], "def'),
    ("03_normal", "all(v == 1 for v in flat.values())", "all(v >= 1 for v in flat.values())"),
    ("03_normal", '"chain 0.8^|j-k|": 0.8 **', '"chain 0.8^|j-k|": 0.99 **'),
    ("03_normal", '"shrinkage": shrinkage_covariance}', '"shrinkage": lambda A: 2 * np.cov(A.T)}'),
    ("04_binary", "printed = p_a * p_b * (q_a - q_b) ** 2", "printed = p_a * (q_a - q_b) ** 2"),
    ("04_binary", "(q_a - q_b) / (a - b) - fit", "(q_a - q_b) / (a + b) - fit"),
    ("04_binary", "p_a * p_b * (a - b) ** 2 - f_variance", "p_a * (a - b) ** 2 - f_variance"),
    ("04_binary", "poim_b - p_a * (q_b - q_a)", "poim_b - p_b * (q_b - q_a)"),
    ("04_binary", "poim_b * sp.sqrt(p_a / p_b) / firm_b", "poim_b * (p_a / p_b) / firm_b"),
    ("04_binary", "ratio.subs(a, b + step)", "ratio.subs(a, b - step)"),
    ("04_binary", "range(4), repeat=length", "range(2), repeat=length"),
    ("04_binary", "bits = np.array(list(product(range(2)", "bits = np.array(list(product(range(3)"),
    ("04_binary", "size=(2, n_features, m)", "size=(2, n_features, 2)"),
    ("04_binary", "entry, Q_f = np.abs(q[..., -1]", "entry, Q_f = np.abs(2 * q[..., -1]"),
    ("04_binary", "levels = np.array([-1.0, 0.0, 1.0])", "levels = np.array([-1.0, 0.5, 1.0])"),
    ("04_binary", "np.full(len(sequences), 1 / len(sequences))",
     "rng.dirichlet(sequences[:, 0] + 1.0)"),
    ("04_binary", "Background.fit(one[0], order)", "Background.fit(0 * one[0], order)"),
    ("05_linear", "t * w1 + b for t", "2 * t * w1 + b for t"),
    ("05_linear", "sp.simplify(w1 + w2 + b - one)", "sp.simplify(w1 + 2 * w2 + b - one)"),
    ("05_linear", "-sp.Rational(1, 3) * (w1 + w2)", "-sp.Rational(1, 4) * (w1 + w2)"),
    ("05_linear", "sp.simplify(0 - differ)", "sp.simplify(b - differ)"),
    ("05_linear", "X[i, j] / counts[j, X[i, j]]", "X[i, j] / counts[j, 1]"),
    ("05_linear", "printed_D1 = 1 / (2 *", "printed_D1 = 1 / (3 *"),
    ("05_linear", "second = n * np.diag(1 / (2 *", "second = n * np.diag(1 / (3 *"),
    ("05_linear", "t / Sigma[j, j] * (w_vec.T", "t / Sigma[j, j] ** 2 * (w_vec.T"),
    ("05_linear", "printed_Q = D**-1 * Sigma", "printed_Q = D**-2 * Sigma"),
    ("05_linear", "lasso_Q[1] - r * w1", "lasso_Q[1] - r**2 * w1"),
    ("05_linear", "w_ * (1 + r) / 2", "w_ * (1 - r) / 2"),
    ("05_linear", "np.linalg.inv(n * (A.T @ A / n))", "np.linalg.inv(2 * n * (A.T @ A / n))"),
    ("05_linear", "printed, Di @ A.T @ y / n", "printed, Di @ A.T @ y / (2 * n)"),
    ("05_linear", "at / np.diag(cov) * (cov @ w)", "at * (cov @ w)"),
    ("05_linear", "firmlib.firm(part @ w, part)", "firmlib.firm(1.1 * part @ w, part)"),
    ("05_linear", "rescaled * S**-1 * w_vec", "rescaled * S**-2 * w_vec"),
    ("05_linear", "tuned(LassoLars, 1, A, y)", "tuned(Ridge, 200, A, y)"),
    ("05_linear", '"Q": firm_linear(coef, S)', '"Q": firm_linear(coef, np.cov(A.T))'),
    ("05_linear", "S @ truth\n", "truth\n"),
    ("06_boolean_svm", "1 - 2 * x2 + 2 * x1 * x2", "1 - 2 * x2 + x1 * x2"),
    ("06_boolean_svm", "np.isclose(at[0, 1], 5 / 3", "np.isclose(at[0, 1], 4 / 3"),
    ("06_boolean_svm", "codes = {1: A, 0: A[::-1]}", "codes = {1: A, 0: A}"),
    ("06_boolean_svm", '{"~x1", "~x2"} <= set()', '{"x1", "~x2"} <= set()'),
    ("06_boolean_svm", "true_bits[:, j] | true_bits[:, k]", "true_bits[:, j] & true_bits[:, k]"),
    ("06_boolean_svm", "np.sqrt(2 / times)", "np.sqrt(1 / times)"),
    ("06_boolean_svm", "for v in (firm, raw)]", "for v in (raw, firm)]"),
    ("06_boolean_svm", "for name, f in scores.items():",
     "for name, f in {k: np.sign(v) for k, v in scores.items()}.items():"),
    ("06_boolean_svm", "LinearRegression().fit(quadratic, t).predict(quadratic)",
     "LinearRegression().fit(A, t).predict(A)"),
    ("06_boolean_svm", "C: float = 1000.0", "C: float = 0.01"),
    ("06_boolean_svm", "len(to_true) == 7", "len(to_true) == 6"),
    ("07_gaussian_svm", "shift_1: float = 1.0", "shift_1: float = 3.0"),
    ("07_gaussian_svm", "shift_2, 0.0])", "shift_2, 0.5])"),
    ("07_gaussian_svm", "(4 - d1 * d2) / 4", "(3 - d1 * d2) / 4"),
    ("08_gattaca", "dual, degree=3, shift=moved)", "dual, degree=3, shift=0)"),
    ("08_gattaca", "p[there].sum() - p @ s - table[j, code]", "p[there].sum() - table[j, code]"),
    ("08_gattaca", '"FIRM": figures_of(Q)}', '"FIRM": figures_of(-Q)}'),
    ("08_gattaca", "height, line = heights(table), table[planted, index]",
     "height, line = heights(table), density[planted][: len(table[planted])]"),
    ("08_gattaca", "height[planted][:, distance == 1]", "height[planted][:, distance == 6]"),
    ("08_gattaca", 'near_costs = {"degree": 8', 'near_costs = {"degree": 20'),
    ("08_gattaca", "C: list = [0.3, 1.0, 3.0, 10.0]", "C: list = [1.0]"),
    ("08_gattaca", "mean = weights.dense(d)", "mean = -weights.dense(d)"),
    ("08_gattaca", "length=length, mutations=mutations, random_state=seed + 3)",
     "length=length, mutations=0, random_state=seed + 3)"),
    ("08_gattaca", "mutations: int = 1", "mutations: int = 0"),
    ("10_peers", "+ 2 * c**2", "+ c**2"),
    ("10_peers", "slope = m.w**2 + np.diag(4 *", "slope = m.w**2 + np.diag(2 *"),
    ("10_peers", "m.w * ~known, rest", "m.w * known, rest"),
    ("10_peers", "/ (d * comb(d - 1, size))", "/ (d * comb(d, size))"),
    ("10_peers", "both = np.array([1, 0, 1]) * 8", "both = np.array([1, 0, 1]) * 9"),
    ("15_splice_sites", ".split(X, y, genes)", ".split(X, y, range(len(y)))"),
    ("15_splice_sites", "firm_from_poim(Q, background[site].probabilities(k))", "Q"),
    ("11_correlated_table", "np.cov(A.T, bias=True))", "np.cov(A.T))"),
    ("11_correlated_table", "-0.0358191793", "-0.0359191793"),
    ("12_real_table", "literal(name, None)", "literal(name, X[name].mode()[0])"),
    ("12_real_table", '["month"], groups=day)', '["month"])'),
    ("12_real_table", "firmlib.firm(boosted, path,", "firmlib.firm(linear, path,"),
    ("12_real_table", "np.array(names)[", "np.array(names[::-1])["),
    ("12_real_table", 'NUMBERS.index("temp") :', 'NUMBERS.index("pressure") :'),
    ("14_discovery", "normal.firm_linear(weights, cov),", "normal.firm_linear(2 * weights, cov),"),
    ("14_discovery", "together = additive + 0.7", "together = additive + 0.4"),
    ("14_discovery", "weights, cov, given=[0])", "weights, cov)"),
    ("13_how_sure", "three, groups=tumour", "three, groups=None"),
    ("13_how_sure", "np.repeat(scores, people), np.repeat(noise, people, axis=0)", "scores, noise"),
    ("16_any_sequence_model", "== [2, 0]) & (X", "== [2, 0]) | (X"),
    ("16_any_sequence_model", "10 * (1 - p**2)", "10 * (1 - p)"),
    ("09_conclusions", "X, y = gattaca(size, unseen=True", "X, y = gattaca(size, unseen=False"),
    ("09_conclusions", "unseen_rank, small = by_C[tuned_C]", "unseen_rank, small = by_C[0.1]"),
    ("09_conclusions", "short_degree: int = 4", "short_degree: int = 1"),
    ("09_conclusions", 'over_same = gains("more", "labels"', 'over_same = gains("labels", "more"'),
    ("09_conclusions", "rho, records = 0.8, []", "rho, records = 0.0, []"),
    ("09_conclusions", '"labels": firm(X, y)}', '"labels": firm(X_more, score(X_more))}'),
    ("09_conclusions", '== "uniform", gain', '== "uniform", 0 * gain'),
    ("09_conclusions", 'spearmanr(g["accuracy"]', 'spearmanr(-g["accuracy"]'),
    ("09_conclusions", 'ahead["accuracy"] == ahead["more"]', 'ahead["accuracy"] != ahead["more"]'),
    ("09_conclusions", "firmlib.firm(y[rows], X[rows])", "firmlib.firm(y[rows], X[rows][::-1])"),
    ("09_conclusions", "score = scorer(learner, X[train] * units, y[train])",
     "units = 1; score = scorer(learner, X[train], y[train])"),
    ("09_conclusions", "other = firmlib.firm(score(", "other = firmlib.firm(2 * score("),
    ("09_conclusions", "2 / d * (alpha * near) @ centres", "2 / d * near @ centres[:, ::-1]"),
    ("09_conclusions", "X @ w[0] + (X @ w[1]) ** 2, w[0]", "X @ w[0] + 0 * (X @ w[1]) ** 2, w[0]"),
    ("09_conclusions", "np.cov(X.T))), firmlib", "np.eye(6))), firmlib"),
    ("09_conclusions", "scored.append(len(X))", "scored.extend([len(X)] * 10)"),
]  # fmt: skip


def code(name: str) -> list[str]:
    """Return the code cells of a notebook."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def changed(name: str, old: str, new: str) -> tuple[int, list[str]]:
    """Return which code cell a mutant changes, and all of them after the change."""
    cells = code(name)
    places = [i for i, cell in enumerate(cells) if old in cell]
    if len(places) != 1 or cells[places[0]].count(old) != 1:
        raise ValueError(f"{old!r} does not occur exactly once in {name}; update MUTANTS")
    return places[0], [cell.replace(old, new) for cell in cells]


def verdict(claim: dict) -> str:
    """Return the verdict on a claim, with which of its parts fail."""
    failed = [name for name, flag in claim["parts"].items() if not flag]
    return claim["verdict"] + (f" ({'; '.join(failed)})" if failed else "")


def execute(cell: str, names: dict, expected: dict[str, str]) -> str:
    """Execute a cell; return how it stops or what is recorded against the ledger, or nothing."""
    try:
        exec(compile(cell, "<cell>", "exec"), names)
    except Exception as error:
        return f"stops with {type(error).__name__}"
    plt.close("all")
    files = {
        name: Path(os.environ["FIRMLIB_OUTPUT"], "claims", f"{name}.json") for name in expected
    }
    found = {name: verdict(json.loads(f.read_text())) for name, f in files.items() if f.exists()}
    return ", ".join(f"{name} {is_}" for name, is_ in found.items() if is_ != expected[name])


def go_on(cells: list[str], names: dict, expected: dict[str, str], folder: str, results) -> None:
    """Execute changed cells in a fork, with a copy of what was written before."""
    os.environ["FIRMLIB_OUTPUT"] = shutil.copytree(os.environ["FIRMLIB_OUTPUT"], folder)
    os.chdir(folder)
    results.put(next(filter(None, (execute(cell, names, expected) for cell in cells)), ""))


def notice(name: str) -> list[tuple[str, str]]:
    """Execute a notebook; return its mutants, each with how it was noticed."""
    ledger = json.loads((ROOT / "data" / "claims.json").read_text())
    expected = {c["id"]: verdict(c) for c in ledger if c["notebook"] == f"notebooks/{name}.ipynb"}
    fork, names, seen = multiprocessing.get_context("fork"), {"__name__": "__main__"}, []
    mutants = [(new, *changed(name, old, new)) for n, old, new in MUTANTS if n == name]
    results = fork.SimpleQueue()
    with (
        tempfile.TemporaryDirectory() as folder,
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        unchanged = Path(folder, "unchanged")
        unchanged.mkdir()
        os.environ["FIRMLIB_OUTPUT"] = str(unchanged)
        os.chdir(unchanged)
        for i, cell in enumerate(code(name)):
            for new, place, cells in mutants:
                if place == i:
                    copy = f"{folder}/{len(seen)}"
                    rest = (cells[i:], names, expected, copy, results)
                    child = fork.Process(target=go_on, args=rest)
                    child.start()
                    child.join()
                    seen.append((new, "dies" if child.exitcode else results.get()))
            if how := execute(cell, names, expected):
                raise RuntimeError(f"{name} without a change: cell {i}: {how}")
        os.chdir(ROOT)
    return seen


def main(*only: str) -> int:
    """Run the mutants of notebooks that begin so, or all; return how many went unnoticed."""
    names = [n for n in dict.fromkeys(n for n, *_ in MUTANTS) if n.startswith(only or "")]
    if not names:
        raise SystemExit(f"no mutants of notebooks that begin with {' or '.join(only)}")
    os.environ |= {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}  # a fork loses the others
    spawn = multiprocessing.get_context("spawn")
    unnoticed = total = 0
    jobs = engine.jobs(os.environ.get("JOBS"))
    with ProcessPoolExecutor(jobs, spawn, max_tasks_per_child=1) as pool:
        for name, seen in zip(names, tqdm(pool.map(notice, names), total=len(names)), strict=True):
            for new, how in seen:
                print(f"{name}: {new} → {how or 'NOT NOTICED'}", flush=True)
            unnoticed += sum(not how for _, how in seen)
            total += len(seen)
    print(f"{total - unnoticed} of {total} changes were noticed.")
    return unnoticed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
