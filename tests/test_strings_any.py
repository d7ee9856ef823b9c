"""Any alphabet, unknown letters, both strands, motifs beyond words: all against enumeration."""

import numpy as np
import pytest
from conftest import all_sequences, kernel_by_definition, random_background

from firmlib.strings import (
    DNA,
    PROTEIN,
    RNA,
    Alphabet,
    Background,
    PositionalWeights,
    decode,
    encode,
    motif_importance,
    motifs,
    poim,
    to_meme,
    top_motifs,
    wds_diagonal,
    wds_kernel,
    word_index,
)
from firmlib.strings.kernel import check_kernel
from firmlib.strings.matvec import WDSOperator

SIX = Alphabet("ACDEFG", wildcard="X", sets={"B": "DE"})
CASES = {"six letters": (SIX, 4), "DNA": (DNA, 5), "two letters": (Alphabet("HP"), 7)}
cases = pytest.mark.parametrize(("alphabet", "length"), CASES.values(), ids=CASES)
orders = pytest.mark.parametrize("order", [0, 1, 2])


def everything(alphabet, length):
    return all_sequences(length, len(alphabet))


def background_of(rng, alphabet, length, order, zeros=False):
    """A background and the probability of each sequence."""
    background = random_background(rng, order, length, alphabet, zeros)
    return background, background.motif_probabilities(everything(alphabet, length))[:, 0]


def random_weights(rng, alphabet, length, degree=3, shift=1, unknown=True, **options):
    n = len(alphabet.symbols) if unknown else len(alphabet)
    X = rng.integers(0, n, (6, length))
    kinds = {"alphabet": alphabet, "unknown": "average", **options}
    return PositionalWeights.from_dual(
        X, rng.normal(size=6), degree=degree, shift=shift, intercept=0.3, **kinds
    )


KERNELS = {
    "six letters": (SIX, 9, False),
    "protein": (PROTEIN, 70, False),
    "two letters": (Alphabet("HP"), 70, False),
    "32 letters": (Alphabet("ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"), 9, False),
    "DNA": (DNA, 70, False),
    "both strands": (DNA, 9, True),
    "both strands of RNA": (RNA, 70, True),
}


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize(("alphabet", "length", "both"), KERNELS.values(), ids=KERNELS)
def test_kernel_operator_and_weights(alphabet, length, both, unknown):
    rng = np.random.default_rng(length)
    n = len(alphabet.symbols if unknown else alphabet)
    few = [0, 1, n - 1]  # so that words agree
    X, Y = rng.choice(few, (5, length)), rng.choice(few, (3, length))
    if unknown:
        X[0] = len(alphabet)
    kernel = {"degree": 4, "shift": 2, "alphabet": alphabet, "unknown": "average"}
    kernel["reverse_complement"] = both

    def naive(X, Y):
        def strands(Y):
            return [Y, alphabet.reverse_complement(Y)] if both else [Y]

        return kernel_by_definition(X, Y, 4, 2, letters=len(alphabet), strands=strands)

    K = wds_kernel(X, Y, normalize=False, **kernel)
    np.testing.assert_allclose(K, naive(X, Y), rtol=1e-12)
    own = naive(X, X)
    np.testing.assert_allclose(wds_kernel(X, normalize=False, **kernel), own, rtol=1e-12)
    np.testing.assert_allclose(wds_diagonal(X, **kernel), np.diag(own), rtol=1e-12)
    scale = np.sqrt(np.where(np.diag(own) > 0, np.diag(own), 1))
    np.testing.assert_allclose(wds_kernel(X, **kernel), own / np.outer(scale, scale), rtol=1e-12)
    v = rng.normal(size=len(X))
    np.testing.assert_allclose(
        WDSOperator(*check_kernel(X, **kernel)) @ v, (own / np.outer(scale, scale)) @ v, atol=1e-12
    )
    assert np.linalg.eigvalsh(own).min() > -1e-9
    w = PositionalWeights.from_dual(X, v, **kernel)
    clean = rng.integers(0, len(alphabet), (4, length)) % 2
    np.testing.assert_allclose(w.score(clean), v @ naive(X, clean), atol=1e-12)


@orders
@cases
def test_poim_motifs_and_search(alphabet, length, order):
    rng = np.random.default_rng(order)
    a, all_x = len(alphabet), everything(alphabet, length)
    background, p = background_of(rng, alphabet, length, order, zeros=order == 2)
    w = random_weights(rng, alphabet, length)
    s = w.score(all_x)
    for k in range(1, length + 1):
        wanted = np.zeros((length - k + 1, a**k))
        for j in range(length - k + 1):
            at = all_x[:, j : j + k].astype(int) @ a ** np.arange(k)[::-1]
            mass, sums = (np.bincount(at, v, minlength=a**k) for v in (p, p * s))
            wanted[j] = np.where(mass > 0, sums / np.where(mass > 0, mass, 1) - p @ s, 0)
        Q = poim(w, k, background)
        np.testing.assert_allclose(Q, wanted, atol=1e-12)
        words = everything(alphabet, k)
        np.testing.assert_allclose(motif_importance(w, words, background).T, wanted, atol=1e-12)
        [(motif, position, value, _)] = top_motifs(w, k, 1, background)
        index = word_index([motif], alphabet=alphabet)[0]
        assert value == pytest.approx(wanted[position, index], abs=1e-12)
        possible = background.probabilities(k) > 0
        assert value == pytest.approx(wanted[possible].max(), abs=1e-12)


@pytest.mark.parametrize("fillings", [1, 4**6], ids=["chain", "fillings"])
@orders
@cases
def test_unknown_letters_are_averaged_over_the_background(
    alphabet, length, order, fillings, monkeypatch
):
    monkeypatch.setattr(motifs, "_WORDS", fillings)
    rng = np.random.default_rng(order)
    all_x = everything(alphabet, length)
    background, p = background_of(rng, alphabet, length, order)
    w = random_weights(rng, alphabet, length, degree=length)
    s = w.score(all_x)
    X = rng.integers(0, len(alphabet.symbols), (60, length))
    X[0] = len(alphabet)
    X[1:8] = rng.integers(0, len(alphabet), (7, length))
    X[1:8][np.arange(7), np.arange(7) % length] = len(alphabet)  # in any place
    wanted = []
    for x in X:
        match = alphabet.members[x][np.arange(length), all_x].all(axis=1)
        wanted.append((p * s)[match].sum() / p[match].sum())
    np.testing.assert_allclose(w.score(X, background, unknown="average"), wanted, atol=1e-12)
    if order == 0:
        uniform = Background.uniform(length, alphabet=alphabet)
        np.testing.assert_allclose(
            w.score(X, unknown="average"), w.score(X, uniform, unknown="average")
        )


@pytest.mark.parametrize("most", [0, 2**12], ids=["chain", "words"])
@pytest.mark.parametrize("scale", ["poim", "firm"])
@orders
@pytest.mark.parametrize("alphabet", [SIX, DNA], ids=["six letters", "DNA"])
def test_ambiguous_motifs_and_pwms(alphabet, order, scale, most, monkeypatch):
    monkeypatch.setattr(motifs, "_WORDS", most)
    rng = np.random.default_rng(order)
    length, a = 4, len(alphabet)
    all_x = everything(alphabet, length)
    background, p = background_of(rng, alphabet, length, order, zeros=order == 1)
    w = random_weights(rng, alphabet, length)
    s = w.score(all_x)

    def importance(rows, j):
        """Of the product of rows[t, x[j + t]]."""
        f = rows[np.arange(3), all_x[:, j : j + 3]].prod(axis=1)
        first, second = p @ f, p @ f**2
        if first == 0:
            return 0
        Q = (p * s) @ f / first - p @ s
        sd = np.sqrt(max(second - first**2, 0))
        return Q if scale == "poim" else Q * first / sd if sd > 1e-6 else 0

    z = rng.integers(0, len(alphabet.symbols), (8, 3))
    z[0] = a
    z[1], z[2] = [0, a, 1], [1, 0, a + 1]
    wanted = [[importance(alphabet.members[row] * 1.0, j) for j in range(2)] for row in z]
    words = decode(z, alphabet=alphabet, unknown="average")
    got = motif_importance(w, words, background, scale=scale)
    np.testing.assert_allclose(got, wanted, atol=1e-10)

    pwm = rng.dirichlet(np.ones(a), size=(2, 3))
    pwm[0, 1] = np.eye(a)[1]
    letter = background.probabilities(1)
    odds = np.divide(1, letter, out=np.zeros_like(letter), where=letter > 0)
    wanted = [[importance(M * odds[j : j + 3], j) for j in range(2)] for M in pwm]
    got = motif_importance(w, pwm, background, scale=scale)
    np.testing.assert_allclose(got, wanted, atol=1e-10)


@orders
@cases
def test_the_law_given_a_motif(alphabet, length, order):
    rng = np.random.default_rng(order)
    all_x = everything(alphabet, length)
    background, p = background_of(rng, alphabet, length, order)
    z = rng.uniform(size=(3, len(alphabet)))
    z[1] = [1, 1] + [0] * (len(alphabet) - 2)
    given = background.given(z, 1)
    tilted = p * z[np.arange(3), all_x[:, 1:4]].prod(axis=1)
    np.testing.assert_allclose(given.motif_probabilities(all_x)[:, 0], tilted / tilted.sum())
    log_z = background.tilt(z, 1)[1]
    assert log_z == pytest.approx(np.log(tilted.sum()))
    x = given.sample(50, 0)
    assert given.order == order
    assert (x[:, 2] < 2).all()


def test_both_strands_are_one():
    rng = np.random.default_rng(0)
    w = random_weights(rng, DNA, 6, unknown=False, reverse_complement=True)
    all_x = everything(DNA, 6)
    s = w.score(all_x)
    np.testing.assert_allclose(w.score(DNA.reverse_complement(all_x)), s, atol=1e-12)
    Q, words = poim(w, 3), everything(DNA, 3)
    mirrored = word_index(DNA.reverse_complement(words))
    np.testing.assert_allclose(Q, Q[::-1, mirrored], atol=1e-12)
    found = top_motifs(w, 3, 40, merge=False)
    keys = {(motif, position) for motif, position, *_ in found}
    other = decode(DNA.reverse_complement(encode([motif for motif, *_ in found])))
    again = {(motif, 3 - position) for motif, (_, position, *_) in zip(other, found, strict=True)}
    assert len(found) == 40
    assert not keys & again  # words of odd length are not their own complement
    best = np.sort(Q.ravel())[::-1]
    np.testing.assert_allclose([value for _, _, value, _ in found], best[:80:2], atol=1e-12)


def test_background_counts_only_what_is_known():
    background = Background.fit(["ACNGT", "NACGA"], 1, pseudo_count=0, unknown="average")
    np.testing.assert_allclose(background.initial, [1, 0, 0, 0])
    np.testing.assert_allclose(background.transition[0, 0], [0, 1, 0, 0])  # A C, A C
    np.testing.assert_allclose(background.transition[0, 2], [0.5, 0, 0, 0.5])  # G T, G A
    amino = Background.fit(["MKV", "MKL"], 0, pseudo_count=0, alphabet=PROTEIN)
    assert amino.motif_probabilities(["M"])[0, 0] == pytest.approx(1 / 3)


def test_meme_text_can_be_read_back():
    M = np.random.default_rng(0).dirichlet(np.ones(20), size=5)
    background = Background.fit(["MKVA", "MKLC"], 0, alphabet=PROTEIN)
    text = to_meme({"one": M, "two": M[:2]}, background=background)
    blocks = text.split("MOTIF ")
    assert "ALPHABET= ACDEFGHIKLMNPQRSTVWY" in blocks[0]
    assert "strands" not in blocks[0]
    name, header, *rows = blocks[1].strip().splitlines()
    assert (name, header) == ("one", "letter-probability matrix: alength= 20 w= 5")
    np.testing.assert_allclose([list(map(float, row.split())) for row in rows], M, atol=1e-6)
    frequencies = blocks[0].splitlines()[5].split()[1::2]
    np.testing.assert_allclose(np.array(frequencies, float), background.probabilities(1).mean(0),
                               atol=1e-6)  # fmt: skip
