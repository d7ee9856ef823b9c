"""Change the library's source in one place at a time; `pytest` must notice within ten seconds.

    python -m tests.mutants_library [--places] [WORD …]

runs the mutants of the files whose path contains one of the words, or all of them. Survivors are
named, and mutants that have lost their place in the source, each with the line that is nearest to
it; how many there are of both is the exit status. --places looks for the places only. Run by
`make mutants`.

The table gives the test files that must notice a mutant (`binary` is tests/test_binary.py; `-k`
selects tests, as in pytest), then the mutants: a file of firmlib, a text that occurs in it exactly
once, and the text that replaces it. Every mutant runs in a fork of one process, which has imported
everything but firmlib. Seconds are CPU seconds.
"""

import difflib
import importlib
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest
from tqdm import tqdm

from workflow import ROOT, engine

SECONDS = 10
WARM = "hypothesis hypothesis.extra.numpy pandas scipy.optimize scipy.stats sklearn.ensemble"
WARM += " sklearn.inspection sklearn.linear_model sklearn.pipeline sklearn.svm"

MUTANTS: dict[str, list[tuple[str, str, str]]] = {
    "golden fuzz laws -k not (group or given or interaction or search or learn)": [
        ("estimation/variance.py", "open_ * (k < most)", "open_ * 0"),
        ("estimation/sums.py", "round(np.log2(n) / 2)", "round(np.log2(n) / 3)"),
        ("estimation/sums.py", "np.ceil(np.log2(n / 4))", "np.ceil(np.log2(n / 2))"),
        ("estimation/sums.py", "n_bins or 1.5 * 2**base)", "n_bins or 2**base)"),
        ("estimation/sums.py", "((edges[:-1] + edges[1:]) / 2)", "(edges[:-1] + 0.5)"),
        ("estimation/sums.py", "_HALVES), len(self.start), np.int16)", "_HALVES), 0, np.int16)"),
        ("estimation/sums.py", 'self._edges.searchsorted(f, side="right") - 1',
         'self._edges.searchsorted(f, side="left") - 1'),
        ("estimation/sums.py", "half = ((f - centre)", "half = ((f - 0)"),
        ("estimation/sums.py", "up = -1 if", "up = 1 if"),
        ("estimation/sums.py", "np.append(each[0], each)", "np.append(each, each[-1])"),
        ("estimation/sums.py", "np.greater(f[1:]", "np.greater_equal(f[1:]"),
        ("estimation/rows.py", "slice(a, a + _RUN)", "slice(a, a + _RUN - 1)"),
        ("estimation/sums.py", "rows.fold[here] *", "rows.fold[::-1][here] *"),
        ("estimation/sums.py", "part[here]", "part[: len(cell)]"),
        ("estimation/sums.py", "self.find(f[here])", "self.find(f[: here.stop - here.start])"),
        ("estimation/sums.py", "base, K = scales(known)", "base, K = scales(n)"),
        ("estimation/sums.py", "base, _ = scales(known)", "base, _ = scales(2 * known)"),
        ("estimation/sums.py", "None if unit is None else unit[sample]", "None"),
        ("estimation/sums.py", "return self.K, self.K", "return base, self.K"),
        ("estimation/sums.py", "return 1, 1", "return 0, 0"),
        ("estimation/stored.py", "(all_ - found)[", "(all_ - 0 * found)["),
        ("estimation/stored.py", "[len(row) :], FOLDS)", "[len(row) :] * 0, FOLDS)"),
        ("estimation/stored.py", "np.add.outer(d * np.arange(FOLDS), zeros)",
         "np.add.outer(0 * np.arange(FOLDS), zeros)"),
        ("estimation/stored.py", "factor[slot] * own for", "factor[slot] for"),
        ("estimation/variance.py", "pooled.shape[-1] // 2**self.base",
         "2 * pooled.shape[-1] // 2**self.base"),
        ("estimation/variance.py", "pooled[0, :, :-1]", "pooled[0]"),
        ("estimation/sums.py", "one.sums, centre - one.centre", "one.sums, one.centre - centre"),
        ("estimation/sums.py", "(recentred(one.sums, centre - one.centre) for", "(one.sums for"),
        ("estimation/sums.py", "[0, 1, 2, 1, 0]", "[0, 1, 2, 2, 0]"),
        ("estimation/sums.py", "rows.taken(there)", "rows.taken(slice(0, there.sum()))"),
        ("estimation/sums.py", 'how.missing == "drop"', "how.slope"),
        ("estimation/rows.py", "[w, x, x * x, w * x,", "[w, x, x * x / w, w * x,"),
        ("estimation/rows.py", "self.w, self.w * (self.s", "self.w, (self.s"),
        ("estimation/rows.py", "folds_of_positions(start, len(s))",
         "np.argsort(np.argsort(s)) % FOLDS"),
        ("estimation/rows.py", "return Rows(s, w, fold, unit, keep",
         "return Rows(s, w, folds_of_positions(0, len(s)), unit, keep"),
        ("estimation/rows.py", "w.all() else w > 0", "w.all() else w >= 0"),
        ("estimation/scan.py", "np.flatnonzero(key < np.uint64(2.0**64 / rows.n * m))",
         "np.arange(m)"),
        ("estimation/stored.py", "rows.fold[row] * d", "rows.fold[: len(row)] * d"),
        ("estimation/stored.py", "indptr[j + 1]])) < room", "indptr[j + 1]])) < np.inf"),
        ("estimation/scan.py", "isinstance(rows.keep, slice) and", ""),
        ("estimation/scan.py", "list(chain(*sources))", "list(chain(*sources[::-1]))"),
        ("estimation/variance.py", "(m - (p * m).sum(axis=-1, keepdims=True))", "m"),
        ("estimation/variance.py", "x - c * w, xx", "x + c * w, xx"),
        ("estimation/variance.py", "xx - 2 * c * wx +", "xx - c * wx +"),
        ("estimation/variance.py", "wx - c * ww,", "wx,"),
        ("estimation/variance.py", "w - c * x, c", "w + c * x, c"),
        ("estimation/variance.py", "wx - 2 * c * xx", "wx"),
        ("estimation/variance.py", "-2 * at_k, 2 * S * step]", "-2 * at_k, 0 * S]"),
        ("estimation/variance.py", "2 * S * at_0, -2", "S * at_0, -2"),
        ("estimation/variance.py", "np.where(few, 1, 2) * k", "k"),
        ("estimation/variance.py", "~alone * lone * left", "0 * left"),
        ("estimation/variance.py", "np.where(few, last, [", "np.where(alone, last, ["),
        ("estimation/variance.py", "W - lone * W, at_0 * N)", "W, at_0 * N)"),
        ("estimation/variance.py", "own + (doubled(total)", "own + (0 * doubled(total)"),
        ("estimation/variance.py", "-c.sum(axis=0), axis=0)", "0 * c.sum(axis=0), axis=0)"),
        ("estimation/variance.py", "p * (m * m - e)", "p * (m * m + e)"),
        ("estimation/variance.py", "SS - m * m * WW", "SS"),
        ("estimation/variance.py", "TINY), W * W - WW", "TINY), W * W"),
        ("estimation/variance.py", "(df * e * n)", "(df * e)"),
        ("estimation/variance.py", " - whole.T[:, 0]", ""),
        ("estimation/variance.py", "2 * self.p**2 * self.e**2", "self.p**2 * self.e**2"),
        ("estimation/variance.py", "u * u / np.maximum(n - 1, 1)", "u * u / np.maximum(n, 1)"),
        ("estimation/variance.py", "(1 - 2 * p) * u * u", "(1 - p) * u * u"),
        ("estimation/variance.py", "np.arctan2(1, mean)", "np.arctan2(1, 2 * mean)"),
        ("estimation/variance.py", "np.where(k < cells.base, test", "np.where(k == 0, test"),
        ("estimation/variance.py", "np.sqrt(error) - 1, 0, 1)", "np.sqrt(error), 0, 1)"),
        ("estimation/variance.py", "4 * added**2", "added**2"),
        ("estimation/variance.py", "[4 * (b.p**2", "[2 * (b.p**2"),
        ("estimation/variance.py", "rises = S @ rank", "rises = -S @ rank"),
        ("estimation/variance.py", "points[0]) - points[0] / 2", "points[0])"),
        ("estimation/slope.py", "left * (V - without)", "(V - without)"),
        ("estimation/jackknife.py", "psi -= share * psi.sum(axis=0)", "psi -= 0"),
        ("estimation/jackknife.py", "np.maximum(1 - (share**2).sum(axis=0), TINY)", "1"),
        ("estimation/jackknife.py", "self.J - 2 * rest", "self.J - rest"),
        ("estimation/jackknife.py", "2 * J**2 / spread", "J**2 / spread"),
        ("estimation/jackknife.py", "degrees(self.psi), 1 - alpha / 2",
         "degrees(self.psi), 1 - alpha"),
        ("estimation/jackknife.py", "self.V + t * t * a / 2", "self.V"),
        ("estimation/jackknife.py", "np.where(self.pvalue > alpha, 0,",
         "np.where(self.pvalue > 1, 0,"),
        ("estimation/jackknife.py", "np.maximum(2 * self.Q, np", "np.maximum(self.Q, np"),
        ("estimation/jackknife.py", "np.multiply.outer(own, V)", "np.multiply.outer(0 * own, V)"),
        ("estimation/jackknife.py", "-1, 1) * paired", "-1, 1)"),
        ("estimation/jackknife.py", "(1 - rho**2) ** 2 * twice, total / 4", "0 * twice, total / 4"),
        ("estimation/jackknife.py", "differ = p <= 1 - level", "differ = p <= 1"),
        ("estimation/jackknife.py", "np.maximum.accumulate(p[order] *", "(p[order] *"),
        ("result.py", "control(self.pvalues)", "control(self.pvalues, method='by')"),
        ("estimation/slope.py", "fr / w - f * r / w / w", "fr / w"),
        ("estimation/slope.py", "2) - 1.0, -t)", "2) + 9.0, -t)"),
        ("estimation/slope.py", "2 * error**2, 4 * error]", "2 * error**2, error]"),
        ("estimation/slope.py", "error = v * (", "error = ("),
        ("estimation/slope.py", "r + move * w, fr + move * f", "r, fr"),
        ("estimation/slope.py", "self.middle - middle", "middle - self.middle"),
        ("estimation/slope.py", "u * fr + c * r,", "u * fr,"),
        ("estimation/slope.py", "u * u * ff + 2 * u * c * f +", "u * u * ff +"),
        ("estimation/slope.py", "W2 / max(W2 - ww.sum(), TINY)", "1.0"),
        ("estimation/slope.py", "unbiased * self.unit**2", "unbiased * self.unit"),
        ("streaming.py", "(X, state, state.n, **given)", "(X, state, 0, **given)"),
    ],
    "streaming -k before_the_first": [
        ("streaming.py", 'axis = None if known.kind == "unknown" else',
         "axis = None if name not in before.sums else"),
    ],
    "streaming -k stay_small": [
        ("estimation/sums.py", "self.most - len(own), len(new)", "self.most, len(new)"),
    ],
    "estimation": [
        ("estimation/variance.py", "& (n.max(axis=-1) > 1.5)", ""),
        ("estimation/variance.py", "_PAIRED = 0.05", "_PAIRED = 1e-9"),
        ("estimation/slope.py", "(f - mean * w) ** 2", "f**2"),
        ("estimation/sums.py", "out[level == len(edges) - 1] = np.inf", "pass"),
    ],
    "estimation -k far_apart or far_away": [
        ("estimation/sums.py", "1 if self.most else _ALIKE", "64"),
    ],
    "streaming": [
        ("estimation/sums.py", "most=self.most if room == len(new) else 0", "most=self.most"),
        ("estimation/sums.py", "np.arange(room) * len(new) // max(room, 1)", "np.arange(room)"),
        ("estimation/sums.py", "if self.most and np.isfinite(self.start).sum() <= 1.5 * 2**base:",
         "if self.most:"),
        ("estimation/sums.py", "take(found) != f", "take(found) > f"),
        ("estimation/sums.py", "levels[np.isfinite(levels)], own)", "levels, own)"),
        ("estimation/sums.py", "return grown, grown.find(f)", "return grown, found"),
        ("estimation/sums.py", "np.inf)[label]", "np.inf)[label[::-1]]"),
        ("estimation/sums.py", "one: one.sums[0].sum())", "one: -one.sums[0].sum())"),
        ("estimation/sums.py", "axis = axis.grown(start)", "pass"),
        ("estimation/sums.py", "np.add.at(out, at, sums)", "out[at] = sums"),
        ("estimation/sums.py", "most=0, p=shares(mine))", "most=0)"),
        ("estimation/sums.py", "few or (p is not None", "few and (p is not None"),
        ("estimation/sums.py", "> 0.05 + 2 * p).any()", "> 0.05 + 2 * p)[[0, -1]].any()"),
        ("estimation/sums.py", "scales(self.known)[0] > axis.K", "scales(self.known)[0] >= axis.K"),
        ("estimation/sums.py", "self.known + other.known", "self.known"),
        ("estimation/sums.py", "return W / max(W.sum(), 1e-300)", "return 0 * W"),
        ("estimation/sums.py", "if not other.axis.most and not", "if"),
        ("estimation/sums.py", "if not other.axis.most and not np", "if 0 and not np"),
        ("estimation/sums.py", 'if name[0] != "_"', "if name"),
        ("estimation/scan.py", 'if column.kind != "nominal":', "if True:"),
        ("streaming.py", "one, other = other, one", "pass"),
        ("streaming.py", "self.n + new.n", "new.n"),
        ("streaming.py", "self.total.merged(new.total)", "new.total"),
        ("streaming.py", 'new.columns[name].joined(f"feature {name!r}", before)',
         "new.columns[name]"),
        ("streaming.py", "self._with(self._first,", "self._with(self._state,"),
        ("streaming.py", "in own and value != own[option]:", "in own and False:"),
        ("streaming.py", "(self._how.n_bins or 0) > rows.n", "False"),
        ("tables/columns.py", "before._replace(values=self.values)", "self"),
        ("tables/columns.py", "labels=codes[count:]", "labels=codes[:count]"),
    ],
    "binary": [
        ("binary.py", "np.sqrt(p_a * (1 - p_a))", "(p_a * (1 - p_a))"),
        ("binary.py", "(n_minus - n_plus) * D1", "(n_plus - n_minus) * D1"),
        ("binary.py", "s - s.mean()", "s"),
        ("binary.py", "np.sqrt(p / np.where(p < 1, 1 - p, 1))",
         "np.sqrt(np.where(p < 1, 1 - p, 1) / np.maximum(p, 1e-9))"),
    ],
    "normal": [
        ("normal.py", "u**2 / (1 + 2 * u)) / 2", "u**2 / (1 + u)) / 2"),
        ("normal.py", "log_e - r / 2 +", "log_e - r +"),
        ("normal.py", "A @ cov @ weights / np.sqrt(", "A @ cov @ weights / np.abs("),
        ("normal.py", "n / (n - 1) ** 3 *", "n / (n - 1) ** 2 *"),
        ("normal.py", "left > _KNOWN * v", "left > 0 * v"),
    ],
    "expansion": [
        ("expansion.py", "2 * self.scale * (A @ self.centers", "self.scale * (A @ self.centers"),
        ("expansion.py", "inner ** (self.degree - 1)", "inner**self.degree"),
        ("expansion.py", "coef0**rest *", "coef0 *"),
    ],
    "tables refused": [
        ("estimation/stored.py", "np.flatnonzero(count < rows.n)", "np.arange(d)"),
        ("estimation/stored.py", "size.cumsum() - size", "size.cumsum()"),
        ("estimation/stored.py", "<< (K - base)[of]", "<< 0"),
        ("estimation/stored.py", "[rows.centre] * d", "[0.0] * d"),
        ("tables/columns.py", "placed[known] = column.values",
         "placed[: known.sum()] = column.values"),
        ("tables/columns.py", ".max(initial=0.0) >= 2**53", ".max(initial=0.0) >= 2**60"),
        ("tables/table.py", "data[:, [j]]", "data[:, [j - 1]]"),
        ("tables/table.py", "self._block[0] != first", "self._block[0] is None"),
        ("tables/table.py", "first = j - j % width", "first = j - (j - 1) % width"),
        ("tables/table.py", " and np.fmin.reduce(values) > -most", ""),
        ("estimation/stored.py", "(f < most) & (f > -most)", "f < most"),
        ("estimation/stored.py", "fits[[*table.categorical]] = False", "pass"),
        ("tables/columns.py", "if not found and known:", "if found and known:"),
        ("tables/table.py", "data.sum_duplicates()", "data.sort_indices()"),
    ],
    "features": [
        ("features.py", "np.where(np.isnan(x), np.nan, x > least)", "1.0 * (x > least)"),
        ("features.py", "missing if value is None else", "missing if number is None else"),
        ("features.py", "x != seen[0])", "x == seen[0])"),
        ("features.py", "one.labels is not None and other.labels is not None", "False"),
        ("tables/columns.py", "float(found[0]) if found else np.nan",
         "float(found[0]) if found else 0"),
        ("features.py", "all(map(is_place, f)) and len(set(f)) == len(f)", "all(map(is_place, f))"),
    ],
    "joint -k few_units": [
        ("joint/given.py", "special.stdtr(df, -z)",
         "special.ndtr(-z)"),
    ],
    "joint": [
        ("joint/interactions.py", "{(): 1, (-1,): -1}", "{(): 1, (-1,): -0.9}"),
        ("joint/interactions.py", "c * some.T.sum(", "c * some.p.sum("),
        ("estimation/variance.py", "np.where(np.abs(noise) > 1e-15 * signal, found,",
         "np.where(True, found,"),
        ("features.py", "np.abs(x - y)", "x * y"),
        ("features.py", "(1 - np.abs(x - i)) * (1 - np.abs(y - j))", "1.0 * ((x == i) & (y == j))"),
        ("joint/interactions.py", "values > MOST_VALUES * n", "values > n"),
        ("measure.py", '" × ".join(pair)', "pair[0]"),
        ("joint/interactions.py", "float((a + b) @ place)", "float(len(a))"),
        ("joint/interactions.py", "(B.T @ (w * e))", "(B.T @ (w * r))"),
        (
            "joint/interactions.py",
            "e /= np.sqrt(np.clip(1 - w / w.sum() - w * h, 0.1, 1))",
            "e /= 2",
        ),
        ("joint/interactions.py", "moved += c * fallen", "moved = c * fallen"),
        ("joint/given.py", "_cells(rows, f), BEYOND_FIRST", "_cells(rows, g), BEYOND_FIRST"),
        ("joint/given.py", "max(initial=0) < 1e-9", "max(initial=0) < 0"),
        ("joint/search.py", "np.abs(S) / np.sqrt(", "np.abs(S) / np.square("),
        ("joint/search.py", "rows.w * ~seen", "rows.w * seen"),
        ("joint/search.py", "Q.argmax()", "Q.argmin()"),
        ("joint/search.py", "np.unique(np.minimum(at, levels[-2]))", "np.unique(at)"),
    ],
    "scores": [
        ("scores.py", "(first, values), strict", "(values, first), strict"),
        ("scores.py", "target = [*found][1]", "target = [*found][0]"),
        ("scores.py", "{label: values == label", "{label: values != label"),
    ],
    "measure result refused": [
        ("measure.py", "frame.max(axis=1)", "frame.min(axis=1)"),
        ("measure.py", "if features is None and own:", "if own:"),
        ("joint/given.py", "for f in (*known, *found)", "for f in (*found, *known)"),
        ("joint/given.py", "taken & {f.name, *f.places}", "taken & {f.name}"),
        ("result.py", "np.argsort(-self.importances", "np.argsort(self.importances"),
        ("result.py", "self.estimate.Q * self.direction,", "self.estimate.Q,"),
        ("result.py", "np.sqrt(np.maximum(bins.e, 0))", "np.maximum(bins.e, 0)"),
        ("result.py", "divided(self.total.V[0],", "divided(self.total.V[0] ** 2,"),
    ],
    "display -k any_names or colours": [
        ("display.py", "np.ravel(result.pairs)", "result.feature_names"),
        ("display.py", "(-1, RED, 0.25)", "(-1, RED, 1)"),
    ],
    "datasets": [
        ("datasets.py", "y, shift / 2)", "y, shift)"),
        ("datasets.py", "rng.randint(int(unseen), 4", "rng.randint(0, 4"),
        ("datasets.py", "[:, :mutations]", "[:, : mutations + 1]"),
        ("datasets.py", "p=p / p.sum()", "p=p[::-1] / p.sum()"),
    ],
    "claims": [
        ("compendium/claims.py", '"partly" if any(', '"partly" if all('),
        ("compendium/parameters.py", "entry, low, high)", "entry, low)"),
    ],
    "strings_kernel": [
        ("strings/kernel.py", "delta * self.beta[-1] / len", "delta * self.beta[0] / len"),
        ("strings/kernel.py", "row /= np.sqrt(k * ky)", "row /= np.sqrt(k * k)"),
        ("strings/kernel.py", "1 / (2 * (s + 1) if", "1 / (2 * (s + 2) if"),
        ("strings/kernel.py", "(A[:, : length - s], B[:, s:])", "(A[:, s:], B[:, : length - s])"),
    ],
    "strings_kernel strings_any": [
        ("strings/matvec.py", "(lag < len(delta))", "(lag < len(delta) - 1)"),
        ("strings/matvec.py", "np.tile(v / strands, strands)", "np.tile(v, strands)"),
        ("strings/matvec.py", "above @ g + above.T @ g", "above @ g"),
        ("strings/weights.py", "/ len(strands), len(strands)", "/ len(strands) ** 2, len(strands)"),
        ("strings/weights.py", "self.values[i + row, d - 1])", "self.values[i, d - 1])"),
        ("strings/weights.py", "(share > 0) & (share < 1)", "(share > 0.1) & (share < 1)"),
    ],
    "strings_any": [
        ("strings/alphabet.py", "self._partner[codes[:, ::-1]]", "self._partner[codes]"),
    ],
    "strings_poim": [
        ("strings/background.py", 'f"{j} ({alphabet', 'f"{j + 1} ({alphabet'),
        ("strings/background.py", "joint = self.contexts[:-1, :, None]",
         "joint = self.contexts[1:, :, None]"),
        ("strings/poim.py", "both = expect_first(right, backward)",
         "both = expect_first(left, backward)"),
        ("strings/poim.py", "(w[j + 1] + right[j + 1])", "(w[j + 1] + left[j + 1])"),
        ("strings/poim.py", "np.tile(total[-1], a)", "np.repeat(total[-1], a)"),
        ("strings/poim.py", "first * (right + both)", "first * (left + both)"),
        ("strings/poim.py", "firm_from_poim(q, p) if", "firm_from_poim(q, 1 - p) if"),
        ("strings/poim.py", "left - background.initial @", "left - 0.9 * background.initial @"),
        ("strings/poim.py", "np.repeat(inner[j + 1], a)", "np.repeat(inner[j], a)"),
    ],
    "strings_motifs strings_any": [
        ("strings/motifs.py", "(right, k - d, -1)", "(right, k - d, 0)"),
        ("strings/motifs.py", "Q * first / np.sqrt", "Q / np.sqrt"),
    ],
    "strings_any strings_surrogate strings_motifs -k strands_are or merging or pwm_is or sorting": [
        ("strings/search.py", "weights.length - k - position", "weights.length - position"),
        ("strings/search.py", "keepdims=True)) ** k", "keepdims=True)) ** 1"),
        ("strings/search.py", "(gain[t : t + places]", "(gain[t - 1 : t - 1 + places]"),
    ],
    "strings_svm": [
        ("strings/svm.py", "matches(X) / np.sqrt(", "matches(X) * np.sqrt("),
        ("strings/svm.py", "2.0 * second - 1", "1 - 2.0 * second"),
        ("strings/svm.py", "db = float(np.average(", "db = float(1.01 * np.average("),
    ],
    "strings_surrogate": [
        ("strings/surrogate.py", "1 - least / s[held].var()", "1 - np.sqrt(least / s[held].var())"),
        ("strings/surrogate.py", "3 / n * np.ptp(s) / 2", "0 * np.ptp(s)"),
        ("strings/surrogate.py", "g[i + 1] - g[0] - known[i]", "g[i + 1] - g[0]"),
    ],
}  # fmt: skip


def changed(file: str, old: str, new: str) -> str:
    """Return the source of a file after the change."""
    source = (ROOT / "firmlib" / file).read_text(encoding="utf-8")
    if (n := source.count(old)) != 1:
        [near] = difflib.get_close_matches(old, source.splitlines(), 1, 0) or [""]
        raise ValueError(f"{file}: {old!r} occurs {n} times; nearest line: {near.strip()!r}")
    return source.replace(old, new)


def lost() -> dict[tuple[str, str, str], str]:
    """Return the mutants that have no place, or are no Python, and what is wrong with each."""
    wrong = {}
    for mutant in (mutant for mutants in MUTANTS.values() for mutant in mutants):
        try:
            compile(changed(*mutant), mutant[0], "exec")
        except (ValueError, OSError, SyntaxError) as error:
            wrong[mutant] = str(error)
    return wrong


def replace_source(file: str, source: str) -> None:
    """Let this process import a file of firmlib with another source."""
    path, get_code = str(ROOT / "firmlib" / file), SourceFileLoader.get_code

    def changed_code(loader: SourceFileLoader, name: str):
        if loader.path == path:
            return compile(source, path, "exec")
        return get_code(loader, name)

    SourceFileLoader.get_code = changed_code


class FirstFailure:
    """A plugin of pytest that remembers which test, or test file, failed first."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            self.name = self.name or report.nodeid

    pytest_collectreport = pytest_runtest_logreport


def run_tests(tests: str) -> str:
    """Run tests until the first one fails, and return its name, or nothing."""
    words, _, expression = tests.partition(" -k ")
    files = [f"tests/test_{word}.py" for word in words.split()]
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is imported early
    first = FirstFailure()
    status = pytest.main([*options, *files, "-k", expression], plugins=[first])
    return first.name or (f"pytest ends with status {status}" if status else "")


def start(tests: str, mutant: tuple[str, str, str] | None, report: Path) -> int:
    """Run tests in a fork, which writes what failed first to `report`; return its process id."""
    source = changed(*mutant) if mutant else ""
    if pid := os.fork():
        return pid
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    if mutant:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        replace_source(mutant[0], source)
    report.write_text(run_tests(tests))
    os._exit(0)


def run(jobs: list, processes: int) -> Iterator[tuple[tuple, str, float]]:
    """Run pairs of tests and mutant side by side; yield each, what failed first, CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        waiting, running = list(enumerate(jobs)), {}
        while waiting or running:
            while waiting and len(running) < processes:
                i, job = waiting.pop(0)
                running[start(*job, Path(folder, str(i)))] = i
            pid, status, used = os.wait4(-1, 0)
            report = Path(folder, str(i := running.pop(pid)))
            code = os.waitstatus_to_exitcode(status)
            failed = report.read_text() if report.exists() else f"the process ends with {code}"
            failed = "" if code == -signal.SIGXCPU else failed
            yield jobs[i], failed, used.ru_utime + used.ru_stime


def main(*words: str) -> int:
    """Run the mutants of some files, or all; return how many survive or have no place."""
    chosen = [
        (tests, mutant)
        for tests, mutants in MUTANTS.items()
        for mutant in mutants
        if any(word in mutant[0] for word in set(words) - {"--places"} or ("",))
    ]
    mutants = [mutant for _, mutant in chosen]
    without = {mutant: said for mutant, said in lost().items() if mutant in mutants}
    if without:
        print("These mutants have lost their place; update MUTANTS:", *without.values(), sep="\n  ")
    if "--places" in words:
        return len(without)
    chosen = [(tests, mutant) for tests, mutant in chosen if mutant not in without]
    os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    os.environ |= {"HYPOTHESIS_PROFILE": "few", "POLARS_MAX_THREADS": "1"}
    for name in WARM.split():
        importlib.import_module(name)
    processes = engine.jobs(os.environ.get("JOBS"))
    unchanged = [(tests, None) for tests in dict.fromkeys(tests for tests, _ in chosen)]
    for _, failed, _ in run(unchanged, processes):
        if failed:
            raise SystemExit(f"{failed} fails without a change")
    survivors = []
    done = tqdm(run(chosen, processes), total=len(chosen), disable=None)
    for (_, (file, old, new)), failed, seconds in done:
        change = f"{file}: {old!r} → {new!r}"
        print(f"{change}: {failed or 'NOT NOTICED'}, {seconds:.1f} s", flush=True)
        if not failed:
            survivors.append(change)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants were noticed.")
    print(f"{len(without)} have lost their place: see above, or --places.")
    if survivors:
        print("Survivors:", *survivors, sep="\n  ")
    return len(survivors) + len(without)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
