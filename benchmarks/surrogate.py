"""How well are POIMs of a model known that is not ours? python benchmarks/surrogate.py.

A multilayer perceptron on one-hot letters, trained on the donor sites in data/: all words of six
letters at all positions from 40 000 calls of the model, by naive conditional means and by the
surrogate, against a simulation a hundred times as large; and the first 20, confirmed.

    python benchmarks/surrogate.py floating

needs torch, and captum for the peer: a convolutional network trained on three motifs of eight
letters that stand anywhere, on both strands. How many of them are among the first ten merged motifs
of the surrogates, from 20 000 calls each, and of windows with a large DeepLIFT attribution?
"""

import sys
import time
import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier

from firmlib import strings as dna
from firmlib.datasets import splice
from firmlib.strings import (
    Background,
    PositionalWeights,
    confirm,
    encode,
    fit_surrogate,
    index_word,
    poim,
    top_motifs,
)
from firmlib.strings.alphabet import windows
from firmlib.strings.search import copies_of

K, CALLS, LARGE = 6, 40_000, 4_000_000


def report(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def one_hot(X: np.ndarray) -> np.ndarray:
    return np.eye(4, dtype=np.float32)[X].reshape(len(X), -1)


def conditional_means(score, background: Background, n: int, seed: int) -> tuple:
    """Means of s - E[s] given each word at each position, and their variances."""
    positions = background.length - K + 1
    count, total, square = np.zeros((3, positions, 4**K))
    for batch in range(max(1, n // 40_000)):
        X = background.sample(min(n, 40_000), np.random.RandomState([seed, batch]))
        s = score(X)
        for j, code in enumerate(windows(X, K).T):
            count[j] += np.bincount(code, minlength=4**K)
            total[j] += np.bincount(code, s, minlength=4**K)
            square[j] += np.bincount(code, s**2, minlength=4**K)
    seen = np.maximum(count, 1)
    mean = total / seen
    variance = np.maximum(square / seen - mean**2, 0) / np.maximum(count - 1, 1)
    return np.where(count > 0, mean - total[0].sum() / count[0].sum(), 0), variance, count


def compare(score, background: Background, large: int, degree: int = 4) -> dict[str, str]:
    """What one column of the table says about a model."""
    truth, noise, count = conditional_means(score, background, large, 1)
    known = count > 100
    start = time.process_time()
    options = {"positional": True, "degree": degree, "random_state": 0}
    surrogate = fit_surrogate(score, background, CALLS, **options)
    seconds = time.process_time() - start
    naive = conditional_means(score, background, CALLS, 2)[0]
    Q = poim(surrogate, K, background)
    top = np.argsort(-np.abs(Q[known]))[:1000]

    def error(table: np.ndarray, among=slice(None)) -> float:
        """Without that of the truth."""
        square = (table[known] - truth[known]) ** 2 - noise[known]
        return float(np.sqrt(max(square[among].mean(), 0)))

    motifs = top_motifs(surrogate, K, 20, background, merge=False)
    found = confirm(score, motifs, background, 2000, surrogate=surrogate, random_state=0)
    plain = confirm(score, motifs, background, 2000, random_state=0)
    much = confirm(score, motifs, background, 20_000, random_state=1)
    gap = (found["measured"] - much["measured"]).abs()
    se = np.hypot(found["standard_error"], much["standard_error"])
    bias = np.sqrt(((found["surrogate"] - much["measured"]) ** 2).mean())
    ratio = error(naive) / error(Q)
    return {
        "R² of the surrogate, held out": f"{surrogate.r2:.3f}",
        "CPU seconds to fit it": f"{seconds:.0f}",
        "sd of Q' over all words": f"{np.sqrt((truth[known] ** 2 - noise[known]).mean()):.3f}",
        "error of naive conditional means": f"{error(naive):.3f}",
        "error of the surrogate": f"{error(Q):.3f}, {ratio:.1f} times less",
        "both among its first 1000 words": f"{error(naive, top):.3f} and {error(Q, top):.3f}",
        "first 20 confirmed within 3 standard errors": f"{(gap < 3 * se).sum()} of 20",
        "their standard error": f"{found['standard_error'].mean():.4f}",
        "and without control variate": f"{plain['standard_error'].mean():.4f}",
        "their mean Q', and the surrogate's error there": (
            f"{much['measured'].mean():.2f}, {bias:.2f}"
        ),
    }


def main() -> None:
    X, y, _ = splice("donor")
    X = np.ascontiguousarray(X[:, 40:100])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "all sequences have the same letter")  # GT at 30
        background = Background.fit(X[y == -1], 1)
    mlp = MLPClassifier((64,), early_stopping=True, random_state=0).fit(one_hot(X), y)

    def by_network(Z: np.ndarray) -> np.ndarray:
        hidden = np.maximum(one_hot(Z) @ mlp.coefs_[0] + mlp.intercepts_[0], 0)
        return (hidden @ mlp.coefs_[1] + mlp.intercepts_[1])[:, 0].astype(float)

    p = np.clip(mlp.predict_proba(one_hot(X[:100]))[:, 1], 1e-12, 1 - 1e-12)
    np.testing.assert_allclose(by_network(X[:100]), np.log(p / (1 - p)), atol=1e-3)
    trees = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(one_hot(X), y)
    models = {
        "perceptron, its logit": (by_network, LARGE),
        "its probability": (lambda Z: 1 / (1 + np.exp(-by_network(Z))), LARGE),
        "boosted trees": (lambda Z: trees.decision_function(one_hot(Z)), LARGE // 10),
    }
    table = {name: compare(model, background, large) for name, (model, large) in models.items()}
    report(f"| | {' | '.join(table)} |\n|---|{'---|' * len(table)}")
    for what in next(iter(table.values())):
        report(f"| {what} | {' | '.join(column[what] for column in table.values())} |")

    rng = np.random.default_rng(0)
    words = PositionalWeights.from_dual(X[:50], rng.normal(size=50), degree=4)
    Q = poim(words.score, K, background, n=CALLS, random_state=0)
    exact = poim(words, K, background)
    gap = np.sqrt(np.mean((Q - exact) ** 2) / np.mean(exact**2))
    report(f"a model linear in words of 4 letters: off by {gap:.1e} of the POIM's size")


PLANTED = ("GATAAGCA", "CACGTGAC", "TGACTCAT")


def planted(n: int, seed: int, length: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Random sequences; every other one has each motif with probability 0.7, 15 % of it changed."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (n, length)).astype(np.uint8), np.arange(n) % 2
    for i in np.flatnonzero(y):
        for word in encode(PLANTED)[rng.random(len(PLANTED)) < 0.7]:
            word = np.where(rng.random(8) < 0.8, word, rng.integers(0, 4, 8))
            word = 3 - word[::-1] if rng.random() < 0.5 else word
            start = rng.integers(length - 7)
            X[i, start : start + 8] = word
    return X, y


def trained_network(epochs: int = 12):
    """A torch module from one-hot letters (n, 4, L) to logits (n, 1), and its test AUC."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = nn.Sequential(
        *(nn.Conv1d(4, 24, 12, padding=6), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten()),
        *(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 1)),
    )
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    X, y = planted(20_000, 1)
    letters = torch.tensor(dna.one_hot(X).transpose(0, 2, 1))
    labels = torch.tensor(y, dtype=torch.float32)[:, None]
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(128):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(
                network(letters[rows]), labels[rows]
            )
            loss.backward()
            optimizer.step()
    X, y = planted(4000, 2)
    s = network(torch.tensor(dna.one_hot(X).transpose(0, 2, 1))).detach()[:, 0]
    return network.eval(), roc_auc_score(y, s)


def n_found(words: list[str]) -> int:
    """How many planted motifs are among the words, on either strand, up to two edits."""
    Z = encode(words)
    both = np.concatenate([Z, 3 - Z[:, ::-1]])
    return sum(bool(copies_of(both, z, 2).any()) for z in encode(PLANTED))


def by_deeplift(network, n: int = 5000) -> list[str]:
    """The first ten merged words of eight letters by the attribution of the best windows."""
    import torch
    from captum.attr import DeepLift

    X, y = planted(2 * n, 3)
    letters = torch.tensor(dna.one_hot(X[y == 1]).transpose(0, 2, 1))
    baseline = torch.full_like(letters, 0.25)
    value = (DeepLift(network).attribute(letters, baseline) * letters).sum(dim=1).detach().numpy()
    sums = np.lib.stride_tricks.sliding_window_view(value, 8, axis=1).sum(axis=2)
    total: dict[int, float] = {}
    codes = windows(X[y == 1], 8)
    for row, code in zip(sums, codes, strict=True):
        for j in np.argsort(-row)[:3]:
            total[code[j]] = total.get(code[j], 0) + row[j]
    order = sorted(total, key=lambda code: -total[code])
    Z, first = encode(index_word(order, 8)), []
    while len(Z) and len(first) < 10:
        first.append(Z[0])
        Z = Z[~(copies_of(Z, Z[0], 2) | copies_of(3 - Z[:, ::-1], Z[0], 2))]
    return dna.decode(np.array(first))


def floating(calls: int = 20_000) -> None:
    network, auc = trained_network()
    report(f"convolutional network, test AUC {auc:.3f}; planted {', '.join(PLANTED)}")
    background = Background.uniform(100)
    kinds = {"position-free": False, "positional": True}
    for name, positional in kinds.items():
        start = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            surrogate = fit_surrogate(
                network, background, calls, positional=positional, reverse_complement=True,
                random_state=0,
            )  # fmt: skip
            motifs = top_motifs(surrogate, 8, 10, background)
        seconds = time.process_time() - start
        words = [motif.word for motif in motifs]
        report(
            f"{name}, {calls} calls: R² {surrogate.r2:.2f}, {n_found(words)} of 3 among the first "
            f"{len(words)}, {seconds:.0f} CPU s, {len(caught)} warnings: {' '.join(words)}"
        )
        if not positional:
            table = confirm(
                network, motifs[:5], background, 500, surrogate=surrogate, random_state=0
            )
            report(table.round(2).to_string(index=False))
    start = time.process_time()
    words = by_deeplift(network)
    seconds = time.process_time() - start
    report(
        f"DeepLIFT of 5000 positives: {n_found(words)} of 3, {seconds:.0f} CPU s: {' '.join(words)}"
    )


if __name__ == "__main__":
    floating() if sys.argv[1:] == ["floating"] else main()
