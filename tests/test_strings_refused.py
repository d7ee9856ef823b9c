"""Sequences: what is refused, with a message that names the argument, the value and the cure."""

import gzip

import numpy as np
import pandas as pd
import pytest

from firmlib.strings import (
    PROTEIN,
    Alphabet,
    Background,
    PositionalWeights,
    WDSClassifier,
    confirm,
    decode,
    encode,
    fit_surrogate,
    index_word,
    motif_importance,
    motif_rank,
    poim,
    read_fasta,
    to_meme,
    top_motifs,
    wds_diagonal,
    wds_kernel,
)
from firmlib.strings.display import plot_poim
from firmlib.strings.kernel import check_kernel

# fmt: off
SEQS = {
    "N": (["ACGT", "ACNT"], r"^seqs\[1\] has 'N' at position 2; .* C, G or T; .* unknown='average"),
    "gap": (["-CGT"], r"^seqs\[0\] has '-' at position 0; .*; remove gaps, or write N"),
    "U": (["ACGU"], r"^seqs\[0\] has 'U' at position 3; .*pass alphabet=RNA, or replace U with T"),
    "stop codon": (["AC*"], r"^seqs\[0\] has '\*' at position 2; .*; remove the stop codon$"),
    "longer": (["ACGT", "ACGTA"], r"^seqs\[1\] has length 5, .* length 4; .*fill up with N"),
    "empty sequence": (["", ""], r"^seqs\[0\] has length 0, .*; expected equal"),
    "empty list": ([], r"^seqs is empty, got shape \(0,\)"),
    "one long string": ("A" * 99, r"^seqs='A{29} is a single sequence; expected a list of them"),
    "missing in a frame": (pd.Series(["ACGT", np.nan]), r"^seqs\[1\] is of type float"),
    "none": (None, r"^seqs\[0\] is of type NoneType; expected text"),
    "code 4": ([[0, 1], [2, 4]], r"^seqs\[1\] has 4 at position 1; .* 0..3; .*unknown='average'"),
    "code -1": (np.array([[0, -1]]), r"^seqs\[0\] has -1 at position 1; expected codes 0..3$"),
    "codes in one row": (np.array([0, 1, 2]), r"^seqs holds int64 of shape \(3,\); .* on 2 axes"),
    "floats": (np.array([[0.0, 1.0]]), r"^seqs holds float64 of .* expected strings or integer"),
    "one-hot": (np.eye(4)[[[2, 0]] * 3], r"^seqs of shape \(3, 2, 4\) is one-hot.* seqs.argmax"),
}
FASTA = {
    "no header": (b"ACGT\n>one\nACGT\n", r"begins with 'ACGT'; expected .* a header '>name'"),
    "blank": (b"\n \n", "is empty; expected FASTA records"),
    "empty record": (b">one\nACGT\n>two\n>three\nACGT", r"record 1 \('two'\) is empty"),
    "truncated": (gzip.compress(b">one\nACGT\n")[:-6], "is not a plain or compressed FASTA file"),
    "binary": (b"\xff\xfe\x00", "is not a plain or compressed FASTA file"),
}
KERNEL = {
    "degree 0": ({"degree": 0}, r"^degree for sequences of length 8 .* from 1 to 8, got 0"),
    "degree 32": ({"X": ["A" * 40], "degree": 32}, r"^degree .* from 1 to 31, got 32"),
    "degree True": ({"degree": True}, r"^degree .* must be an integer .*, got True"),
    "shift 8": ({"shift": 8}, r"^shift for sequences of length 8 .* from 0 to 7, got 8"),
    "weights": ({"shift_weights": "pmb"}, r"^shift_weights='pmb' is unknown; .*'rase', 'shogun'"),
}
MODEL = {
    "y continuous": ({"y": np.linspace(0, 1, 6)}, "Unknown label type"),
    "y one class": ({"y": np.ones(6)}, r"^y has 1 class, \[1.0\], expected 2"),
    "y three": ({"y": np.arange(6) % 3}, r"^y has 3 classes, \[0, 1, 2\], .*OneVsRestClassifier"),
    "C 0": ({"C": 0}, r"^C must be a finite number above 0, got 0"),
    "max_iter": ({"max_iter": -2}, r"^max_iter must be an integer at least -1, got -2"),
    "loss": ({"loss": "log"}, r"^loss='log' is unknown; expected one of \['hinge'"),
    "weight": ({"sample_weight": -np.ones(6)}, r"^sample_weight must not be negative"),
}
S, U, ROWS = ["ACGTA", "CCGTA"], Background.uniform(5), np.full((4, 4), 0.25)
W = PositionalWeights.from_dict({("ACG", 0): 1.0}, 40)
DUAL, DICT, TABLES = (getattr(PositionalWeights, f"from_{n}") for n in ("dual", "dict", "tables"))
CALLS = {
    "decode": (lambda: decode([[7]]), r"^codes\[0\] has 7 at position 0"),
    "33 letters": (lambda: Alphabet("A" * 33), "^the number of letters must be .* 2 to 32"),
    "twice": (lambda: Alphabet("Aa"), "must be different ASCII characters"),
    "sets": (lambda: Alphabet("AC", sets={"M": "AT"}), "must give some of the letters 'AC'"),
    "complement": (lambda: Alphabet("AC", complement="AA"), "must hold the letters 'AC'"),
    "index": (lambda: index_word([0, 16], 2), "^index must be from 0 to 15, .* first 16 at row 1"),
    "a number": (lambda: index_word(3, 2), r"^index must be a list of integers, got array\(3\)"),
    "probs": (lambda: Background.product(np.full((5, 3), 1 / 3)), r"^probs has shape"),
    "probs sign": (lambda: Background.product([[1.5, -0.5, 0, 0]]), r"^probs must .* got \[ 1.5"),
    "initial": (lambda: Background.markov([0.5, 0.5], ROWS, 5), "^initial has length 2, .* of 4"),
    "order": (lambda: Background.fit(["ACG"], 3), "^order must be an integer from 0 to 2"),
    "fit too much": (lambda: Background.fit(["ACGT" * 10], 20), "^the table of transitions"),
    "k too large": (lambda: Background.uniform(50).probabilities(15), "^the table of prob.* GiB"),
    "impossible": (lambda: Background.product([[1, 0, 0, 0]]).given("C"), "^motif=C has prob.* 0"),
    "no complement": (lambda: wds_kernel(["MK"], degree=1, alphabet=PROTEIN,
                                         reverse_complement=True), "has no complement; expected D"),
    "Y length": (lambda: wds_kernel(S, ["ACGT"], degree=2), "^Y has sequences of length 4, expect"),
    "kernel": (lambda: wds_kernel(np.zeros((40_000, 2), np.uint8), degree=2), "would take 11.9 Gi"),
    "dual_coef": (lambda: DUAL(S, [1], degree=1), r"^dual_coef has shape \(1,\), expected \(2,\)"),
    "dict empty": (lambda: DICT({}, 5), "^weights is empty"),
    "dict key": (lambda: DICT({"ACG": 1.0}, 5), r"^weights has the key 'ACG', expected \(word, po"),
    "dict position": (lambda: DICT({("AC", 4): 1.0}, 5), "^the position of 'AC' .* 0 to 3, got 4"),
    "tables empty": (lambda: TABLES({}), "^tables is empty"),
    "dense": (lambda: DICT({("A", 0): 1.0}, 500).dense(12), "^the table of weights .* GiB"),
    "score": (lambda: W.score(["ACGT"]), "^X has sequences of length 4, expected 40"),
    "poim": (lambda: poim(W, 14), "^the POIM with its tables .* GiB"),
    "background": (lambda: poim(W, 2, U), "^background has length 5, but the weights' is 40"),
    "one motif": (lambda: motif_importance(W, "ACG"), "^motifs='ACG' is a single sequence"),
    "pwm": (lambda: motif_importance(W, np.full((1, 2, 4), 0.3)), "^motifs must hold .*sum to 1"),
    "top model": (lambda: top_motifs(len, 2, 1), "expected PositionalWeights: pass fit_surrogate"),
    "long words": (lambda: top_motifs(DUAL(["ACGTA" * 6], [1], degree=20), 22, 1),
                   r"^the table of all words of 20 letters for length=22 and degree=20, .* GiB"),
    "rank": (lambda: motif_rank(np.zeros((5, 16)), "AC", slice(5, 9)), r"^positions=slice\(5, 9, "),
    "heat map": (lambda: plot_poim(np.zeros((5, 256))), r"^matrix has 256 columns, .* \[4, 16"),
    "weights": (lambda: poim(WDSClassifier(), 2), r"^weights is a WDSClassifier; .*pass fit_surr"),
    "no n": (lambda: poim(len, 2, U), r"^weights is a builtin.*background and n"),
    "not callable": (lambda: fit_surrogate(3, U, 100), "^score is a int; expected a function"),
    "shape": (lambda: fit_surrogate(lambda X: X, U, 100), "^the result of score has shape"),
    "confirm": (lambda: confirm(len, ["A"], U, 50), "^motifs must be Motif objects or"),
    "MEME name": (lambda: to_meme({"two\u2028lines": np.eye(4)}), "expected one line of text"),
}
# fmt: on


@pytest.mark.parametrize(("seqs", "message"), SEQS.values(), ids=SEQS)
def test_sequences(seqs, message):
    with pytest.raises(ValueError, match=message):
        encode(seqs)


@pytest.mark.parametrize(("content", "message"), FASTA.values(), ids=FASTA)
def test_fasta(tmp_path, content, message):
    path = tmp_path / "bad.fa"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"bad\.fa.* {message}"):
        read_fasta(path)


@pytest.mark.parametrize("function", [wds_kernel, wds_diagonal, check_kernel])
@pytest.mark.parametrize(("options", "message"), KERNEL.values(), ids=KERNEL)
def test_kernels(function, options, message):
    options = {"X": ["ACGTACGT", "GATTACAA"], "degree": 2, **options}
    with pytest.raises(ValueError, match=message):
        function(options.pop("X"), **options)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("options", "message"), MODEL.values(), ids=MODEL)
def test_models(options, message, loss):
    options = {"degree": 3, "loss": loss, "y": np.arange(6) % 2, **options}
    y, weight = options.pop("y"), options.pop("sample_weight", None)
    with pytest.raises(ValueError, match=message):
        WDSClassifier(**options).fit(["ACGTACGT", "GATTACAA"] * 3, y, weight)


@pytest.mark.parametrize(("call", "message"), CALLS.values(), ids=CALLS)
def test_calls(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_model_has_the_length_of_its_sequences():
    model = WDSClassifier(2).fit(["ACGTA", "CCGTA"], [0, 1])
    with pytest.raises(ValueError, match=r"^X has sequences of length 4, expected 5 as in fit"):
        model.predict(["ACGT"])
    with pytest.raises(ValueError, match=r"pass its weights, WDSClassifier\.weights_"):
        poim(model, 2)
