"""Letters to codes and back, and FASTA files."""

import bz2
import gzip
import lzma
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmlib.strings import PROTEIN, PositionalWeights, motif_importance, one_hot, read_fasta
from firmlib.strings.alphabet import decode, encode, index_word, word_index

SEQS = ["GATTACA", "acgtACG", "TTTTTTT"]
CODES = np.array([[2, 0, 3, 3, 0, 1, 0], [0, 1, 2, 3, 0, 1, 2], [3] * 7])


@pytest.mark.parametrize(
    "seqs",
    [
        SEQS,
        [s.encode() for s in SEQS],
        np.array(SEQS),
        np.array(SEQS, dtype="S"),
        np.array(SEQS, dtype=object),
        np.array(SEQS, dtype=np.dtypes.StringDType()),
        pd.Series(SEQS, dtype="string"),
        pl.Series(SEQS),
        CODES,
        CODES.tolist(),
        CODES.astype(np.int8).T.copy().T,
        pd.DataFrame(CODES),
    ],
    ids=lambda seqs: type(seqs).__name__,
)
def test_every_kind_of_sequences(seqs):
    codes = encode(seqs)
    assert codes.dtype == np.uint8
    assert codes.flags.c_contiguous
    np.testing.assert_array_equal(codes, CODES)


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.lists(st.text("ACGTacgt", min_size=n, max_size=n), min_size=1, max_size=5)
    )
)
def test_decode_is_the_inverse(seqs):
    assert decode(encode(seqs)) == [s.upper() for s in seqs]
    np.testing.assert_array_equal(encode(decode(encode(seqs))), encode(seqs))


PLAIN = ">one  first\nGATT\nACA\n\n>two\r\nacgtACG\r\n> three\nTTTTTTT"


@pytest.mark.parametrize("text", [PLAIN, "\n\n" + PLAIN + "\n\n", "\ufeff" + PLAIN])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_fasta(tmp_path, text, pack):
    path = tmp_path / "seqs.any"
    path.write_bytes(pack(text.encode()))
    names, seqs = read_fasta(path)
    assert names == ["one  first", "two", "three"]
    assert seqs == SEQS


def test_a_header_keeps_its_odd_characters_and_comments_are_left_out(tmp_path):
    path = tmp_path / "odd.fa"
    path.write_bytes(">one\u2028two\x0cthree\x85\n;comment\nGA\r;more\rTT\r\nACA\n".encode())
    assert read_fasta(path) == (["one\u2028two\x0cthree\x85"], ["GATTACA"])


def test_one_hot():
    X = one_hot(["GAN", "TTT"])
    assert (X.shape, X.dtype) == ((2, 3, 4), np.float32)
    np.testing.assert_array_equal(X[0], [[0, 0, 1, 0], [1, 0, 0, 0], [0.25] * 4])
    np.testing.assert_array_equal(X[1].argmax(axis=1), [3, 3, 3])
    assert one_hot(["MK"], alphabet=PROTEIN).shape == (1, 2, 20)


def test_a_small_file_that_unpacks_to_much_takes_little_memory(tmp_path):
    path = tmp_path / "bomb.fa.gz"
    path.write_bytes(gzip.compress(b">one\n" + b"A" * 10**8, compresslevel=1))
    tracemalloc.start()
    with pytest.raises(ValueError, match="holds more than max_bytes=1000 bytes"):
        read_fasta(path, max_bytes=1000)
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()
    path.write_bytes(b">one\nACGT")
    assert read_fasta(path, max_bytes=9) == (["one"], ["ACGT"])
    with pytest.raises(ValueError, match="max_bytes=8 bytes"):
        read_fasta(path, max_bytes=8)


@given(
    st.integers(1, 31).flatmap(
        lambda k: st.lists(st.text("ACGT", min_size=k, max_size=k), min_size=1)
    )
)
def test_words_and_their_numbers(words):
    k = len(words[0])
    index = word_index(words)
    assert index.tolist() == [
        int(word.translate(str.maketrans("ACGT", "0123")), 4) for word in words
    ]
    assert index_word(index, k) == words
    np.testing.assert_array_equal(word_index(encode(words)), index)


def test_words_that_look_one_hot_are_words():
    words = ["CAAA", "ACAA", "AACA", "AAAC"]
    assert decode(encode(words)) == words
    assert index_word(word_index(words), 4) == words
    w = PositionalWeights.from_dict({("AC", 0): 16.0}, length=4)
    np.testing.assert_array_equal(motif_importance(w, words)[:, 0], [-1, 15, -1, -1])
