"""Which motifs does a model know that is not ours? python benchmarks/surrogate.py

Needs torch, and captum for the peer: a convolutional network trained on three motifs of eight
letters that stand anywhere, on both strands. How many of them are among the first ten merged motifs
of the surrogates, from 20 000 calls each, and of windows with a large DeepLIFT attribution?
"""

import time
import warnings

import numpy as np
from sklearn.metrics import roc_auc_score

from firmlib import strings as dna
from firmlib.strings import Background, confirm, encode, fit_surrogate, index_word, top_motifs
from firmlib.strings.alphabet import windows
from firmlib.strings.search import copies_of

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


def main(calls: int = 20_000) -> None:
    network, auc = trained_network()
    print(f"convolutional network, test AUC {auc:.3f}; planted {', '.join(PLANTED)}")
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
        print(
            f"{name}, {calls} calls: R² {surrogate.r2:.2f}, {n_found(words)} of 3 among the first "
            f"{len(words)}, {seconds:.0f} CPU s, {len(caught)} warnings: {' '.join(words)}"
        )
        if not positional:
            table = confirm(
                network, motifs[:5], background, 500, surrogate=surrogate, random_state=0
            )
            print(table.round(2).to_string(index=False))
    start = time.process_time()
    words = by_deeplift(network)
    seconds = time.process_time() - start
    print(
        f"DeepLIFT of 5000 positives: {n_found(words)} of 3, {seconds:.0f} CPU s: {' '.join(words)}"
    )


if __name__ == "__main__":
    main()
