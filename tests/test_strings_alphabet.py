"""Letters to codes and back, and FASTA files."""

import bz2
import gzip
import lzma
import tracemalloc
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmlib.strings import PROTEIN, one_hot, read_fasta
from firmlib.strings.alphabet import decode, encode
from firmlib.strings.words import index_word, word_index

SEQS = ["GATTACA", "acgtACG", "TTTTTTT"]
CODES = np.array([[2, 0, 3, 3, 0, 1, 0], [0, 1, 2, 3, 0, 1, 2], [3] * 7])


@pytest.mark.parametrize(
    "seqs",
    [
        SEQS,
        tuple(SEQS),
        [s.encode() for s in SEQS],
        np.array(SEQS),
        np.array(SEQS, dtype="S"),
        np.array(SEQS, dtype=object),
        np.array(SEQS, dtype=np.dtypes.StringDType()),
        np.array([s.encode() for s in SEQS], dtype=object),
        pd.Series(SEQS, index=[5, 6, 7]),
        pd.Series(SEQS, dtype="string"),
        pl.Series(SEQS),
        CODES,
        CODES.tolist(),
        CODES.astype(np.uint8),
        CODES.astype(np.int8).T.copy().T,
        pd.DataFrame(CODES),
        list(CODES),
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


def test_codes_are_not_copied():
    codes = CODES.astype(np.uint8)
    assert np.shares_memory(encode(codes), codes)


BAD = {
    "N": (["ACGT", "ACNT"], r"^seqs\[1\] has 'N' at position 2; expected A, C, G or T"),
    "gap": (["-CGT"], r"^seqs\[0\] has '-' at position 0; .*; remove gaps, or write N"),
    "U": (["ACGU"], r"^seqs\[0\] has 'U' at position 3; .*pass alphabet=RNA, or replace U with T"),
    "blank": (["ACGT "], r"^seqs\[0\] has ' ' at position 4"),
    "newline": (["ACGT\n", "ACGTA"], r"^seqs\[0\] has '\\n' at position 4"),
    "first of several": (["ACGT", "ANGX", "NNNN"], r"^seqs\[1\] has 'N' at position 1"),
    "beyond latin-1": (["ACΩT"], r"^seqs\[0\] has 'Ω' at position 2"),
    "accent": (["ÀCGT"], r"^seqs\[0\] has 'À' at position 0"),
    "bytes N": ([b"ACGT", b"ACGN"], r"^seqs\[1\] has b'N' at position 3"),
    "array N": (np.array(["ACGT", "NCGT"]), r"^seqs\[1\] has 'N' at position 0"),
    "longer": (["ACGT", "ACGTA"], r"^seqs\[1\] has length 5, but seqs\[0\] has length 4"),
    "shorter": (["ACGT", "ACGT", ""], r"^seqs\[2\] has length 0, but seqs\[0\] has length 4"),
    "empty sequence": (["", ""], r"^seqs\[0\] is empty; expected at least one letter"),
    "empty list": ([], r"^seqs is empty, got shape \(0,\)"),
    "empty array": (np.empty((0, 7), dtype=int), r"^seqs is empty, got shape \(0, 7\)"),
    "no letters": (np.empty((3, 0), dtype=int), r"^seqs is empty, got shape \(3, 0\)"),
    "one string": ("ACGT", r"^seqs='ACGT' is a single sequence; expected a list of them"),
    "one long string": ("A" * 99, r"^seqs='A{20}'… is a single sequence"),
    "one bytes": (b"ACGT", r"^seqs=b'ACGT' is a single sequence"),
    "mixed": (["ACGT", b"ACGT"], r"^seqs\[1\] is of type bytes; expected str throughout"),
    "mixed, number first": ([7, "ACGT"], r"^seqs\[0\] is of type int; expected str"),
    "missing": (["ACGT", None], r"^seqs\[1\] is of type NoneType; expected str"),
    "missing in a frame": (pd.Series(["ACGT", np.nan]), r"^seqs\[1\] is of type float"),
    "none": (None, r"^seqs must be a list of sequences, got NoneType of shape \(\)"),
    "letters apart": (np.array([["A", "C"]]), r"^seqs must be a list .* of shape \(1, 2\)"),
    "code 4": ([[0, 1], [2, 4]], r"^seqs\[1\] has 4 at position 1; expected codes 0..3"),
    "code -1": (np.array([[0, -1]]), r"^seqs\[0\] has -1 at position 1; expected codes 0..3"),
    "codes in one row": (np.array([0, 1, 2]), r"^seqs must have 2 axes .* shape \(3,\)"),
    "floats": (np.array([[0.0, 1.0]]), r"^seqs holds float64; expected strings or integer codes"),
    "truth": (np.array([[True, False]]), r"^seqs holds bool; expected strings or integer codes"),
    "stop codon": (["AC*"], r"^seqs\[0\] has '\*' at position 2; .*; remove the stop codon$"),
    "identity": (np.eye(4, dtype=int), r"^seqs of shape \(4, 4\) is one-hot; expected codes: pass"),
    "one-hot": (np.eye(4)[CODES], r"^seqs of shape \(3, 7, 4\) is one-hot.* seqs.argmax\(axis=-1"),
    "uneven codes": ([[0, 1], [2]], r"^seqs must be strings, or rows of codes of one length"),
}


@pytest.mark.parametrize(("seqs", "message"), BAD.values(), ids=BAD)
def test_refused(seqs, message):
    with pytest.raises(ValueError, match=message):
        encode(seqs)


def test_messages_carry_the_name_of_the_argument():
    with pytest.raises(ValueError, match=r"^Y\[0\] has 'N' at position 0"):
        encode(["N"], name="Y")
    with pytest.raises(ValueError, match=r"^codes\[0\] has 7 at position 0"):
        decode([[7]])


PLAIN = ">one  first\nGATT\nACA\n\n>two\r\nacgtACG\r\n> three\nTTTTTTT"


@pytest.mark.parametrize("text", [PLAIN, "\n\n" + PLAIN + "\n\n", "\ufeff" + PLAIN])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_fasta(tmp_path, text, pack):
    path = tmp_path / "seqs.any"
    path.write_bytes(pack(text.encode()))
    names, seqs = read_fasta(path)
    assert names == ["one  first", "two", "three"]
    assert seqs == SEQS
    assert read_fasta(str(path)) == (names, seqs)


BAD_FASTA = {
    "no header": (b"ACGT\n>one\nACGT\n", r"line 1 is 'ACGT'; expected a header '>name'"),
    "late": (b"\n\nACGT" * 9, r"line 3 is 'ACGT'"),
    "empty": (b"", r"is empty; expected FASTA records"),
    "blank": (b"\n \n", r"is empty; expected FASTA records"),
    "empty record": (b">one\nACGT\n>two\n>three\nACGT", r"record 1 \('two'\) is empty"),
    "only a header": (b">one\n", r"record 0 \('one'\) is empty; expected a sequence"),
    "truncated": (gzip.compress(b">one\nACGT\n")[:-6], "is no plain or compressed FASTA file"),
    "damaged": (gzip.compress(b">one\nACGT\n")[:10] + b"rubbish" * 9, "is no plain or compressed"),
    "binary": (b"\xff\xfe\x00", "is no plain or compressed FASTA file"),
}


@pytest.mark.parametrize(("content", "message"), BAD_FASTA.values(), ids=BAD_FASTA)
def test_refused_fasta(tmp_path, content, message):
    path = tmp_path / "bad.fa"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"bad\.fa.* {message}"):
        read_fasta(path)


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


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_fasta(tmp_path / "nowhere.fa")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_fasta_file_that_is_too_long_is_refused_before_it_is_read_whole(tmp_path, pack):
    path = tmp_path / "long.fa"
    text = b">one\n" + b"A" * 10**6
    path.write_bytes(pack(text))
    assert len(read_fasta(path, max_bytes=len(text))[1][0]) == 10**6
    with pytest.raises(ValueError, match=r"long\.fa holds more than max_bytes=1000004 .*; if"):
        read_fasta(path, max_bytes=len(text) - 1)
    with pytest.raises(ValueError, match="max_bytes must be an integer at least 1, got 0"):
        read_fasta(path, max_bytes=0)


def test_a_small_file_that_unpacks_to_much_takes_little_memory(tmp_path):
    path = tmp_path / "bomb.fa.gz"
    path.write_bytes(gzip.compress(b">one\n" + b"A" * 10**8, compresslevel=1))
    tracemalloc.start()
    with pytest.raises(ValueError, match="holds more than max_bytes=1000 bytes"):
        read_fasta(path, max_bytes=1000)
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


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


def test_columns_of_a_table_are_numbered_in_the_order_of_letters():
    every = ["".join(word) for word in product("ACGT", repeat=3)]
    assert index_word(np.arange(64), 3) == every
    assert word_index(every).tolist() == list(range(64))


BAD_WORDS = {
    "letter": (lambda: word_index(["AN"]), r"^words\[0\] has 'N' at position 1"),
    "one word": (lambda: word_index("GATTACA"), "^words='GATTACA' is a single sequence"),
    "too long": (lambda: word_index(["A" * 32]), "^the words' length must be .* from 1 to 31"),
    "k": (lambda: index_word([0], 32), "^k must be an integer from 1 to 31, got 32"),
    "index": (lambda: index_word([0, 16], 2), "^index must be from 0 to 15 .* length 2, got 16"),
    "negative": (lambda: index_word([-1], 2), "^index must be from 0 to 15 .* got -1"),
    "a number": (
        lambda: index_word(3, 2),
        "^index must be a list of integers, got int64",
    ),
    "fractions": (lambda: index_word([0.5], 2), "^index must be a list of integers, got float64"),
}


@pytest.mark.parametrize(("call", "message"), BAD_WORDS.values(), ids=BAD_WORDS)
def test_refused_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()
