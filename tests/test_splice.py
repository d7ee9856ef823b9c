"""Splice sites: what the committed files hold, how they are made, and what bad files give."""

import gzip
from functools import cache

import numpy as np
import pytest
from conftest import script

from firmlib import datasets
from firmlib.datasets import SPLICE, splice
from firmlib.strings import decode
from workflow import ROOT

SITES = sorted(SPLICE)


@pytest.fixture(scope="module")
def fetch():
    """The script that made the files."""
    return script("fetch_splice")


@cache
def table(site="donor"):
    return gzip.decompress((ROOT / "data" / SPLICE[site].file).read_bytes()).decode()


def write(folder, text, site="donor"):
    path = folder / SPLICE[site].file
    path.write_bytes(text if isinstance(text, bytes) else gzip.compress(text.encode(), 1))
    return path


@pytest.mark.parametrize(
    ("site", "count", "junction"), [("acceptor", 4222, {68: "AG"}), ("donor", 4188, {70: "GT"})]
)
def test_drosophila_sites(site, count, junction):
    X, y, groups = splice(site)
    assert X.shape == (count, 140)
    assert X.dtype == np.uint8
    assert sorted(set(y)) == [-1, 1]
    assert y.sum() == 0
    assert len(np.unique(X, axis=0)) == count
    [(start, pair)] = junction.items()
    assert set(decode(X[:, start : start + 2])) == {pair}
    balance = np.bincount(groups, weights=y)
    assert (balance == 0).all()  # decoys come from the genes that the sites come from
    assert len(balance) > 400


def test_uci_classes_and_junctions():
    X, y, groups = splice("uci")
    assert X.shape == (2989, 60)
    assert {kind: int((y == kind).sum()) for kind in set(y)} == {"EI": 674, "IE": 669, "N": 1646}
    assert len(np.unique(X, axis=0)) == len(X) == len(groups)
    after, before = np.array(decode(X[:, 30:32])), np.array(decode(X[:, 28:30]))
    assert np.mean(after[y == "EI"] == "GT") > 0.98
    assert np.mean(before[y == "IE"] == "AG") > 0.98
    assert np.mean(after[y == "N"] == "GT") < 0.1


@pytest.mark.parametrize("site", SITES)
def test_no_stretch_of_24_letters_is_in_two_groups(site):
    X, _, groups = splice(site)
    owner = {}
    for x, group in zip(decode(X), groups, strict=True):
        for i in range(len(x) - 23):
            assert owner.setdefault(x[i : i + 24], group) == group


def change_a_letter(text):
    head, tail = text[:-9], text[-9:]
    return head + ("A" if tail[0] != "A" else "C") + tail[1:]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (change_a_letter, "was changed: the sha256 of its text is [0-9a-f]{64}, expected"),
        (lambda t: "", "was changed: the sha256"),
        (lambda t: gzip.compress(t.encode())[:-5000], "is truncated or not a gzip text"),
        (lambda t: gzip.compress("ä".encode()), "is truncated or not a gzip text"),
    ],
)
def test_bad_files_are_named_and_left_alone(tmp_path, spoil, message):
    path = write(tmp_path, spoil(table()))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message) as error:
        splice("donor", folder=tmp_path)
    assert str(path) in str(error.value)
    assert "restore it with git, or make it again with the scripts in data/" in str(error.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_outside_the_repository_it_says_where_the_data_are(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "DATA", tmp_path)
    with pytest.raises(ValueError, match="is not there: the data are in data/ of the repository"):
        splice()
    with pytest.raises(ValueError, match="site='branch' is unknown; expected one of"):
        splice("branch")


def genbank(location, sequence, name="chr_1-9"):
    return (
        f"LOCUS       {name}   {len(sequence)} bp  DNA\nFEATURES             Location/Qualifiers\n"
        f"     source          1..{len(sequence)}\n     CDS             {location}\n"
        f'                     /gene="1"\nBASE COUNT     1 a\nORIGIN\n        1 {sequence}\n//\n'
    )


def test_genbank_lines_break_inside_numbers_and_strands_turn(fetch):
    text = genbank("join(3..4,1\n                     0..12)", "aaccgggttt acg")
    text += genbank("complement(join(3..4,10..12))", "aaccgggttt acg") + genbank("2..3", "acgt")
    forward, backward, single = fetch.parse_genbank(text)
    assert forward == ("chr_1-9", "AACCGGGTTTACG", [(2, 4), (9, 12)])
    assert backward[1:] == ("CGTAAACCCGGTT", [(1, 4), (9, 11)])
    assert [backward[1][a:b] for a, b in backward[2]] == ["GTA", "GG"]
    assert single[2] == [(1, 3)]


def test_sites_are_cut_at_the_junction_and_decoys_are_others(fetch):
    rng = np.random.default_rng(1)
    exons = ["".join(rng.choice(list("ACGT"), 100)) for _ in range(2)]
    intron = "GT" + "".join(rng.choice(list("ACGT"), 90)) + "AG"
    gene = ("g", exons[0] + intron + exons[1], [(0, 100), (194, 294)])
    for pair, junction, place in (("GT", 100, 70), ("AG", 194, 68)):
        (_, one, true), (_, other, decoy) = fetch.sites([gene], pair)
        assert (one, other) == (1, -1)
        assert true == gene[1][junction - 70 : junction + 70]
        assert decoy[place : place + 2] == pair
        assert decoy != true


def test_uci_keeps_each_clear_sequence_once(fetch):
    a, b, c = ("".join(x) * 15 for x in ("ACGT", "AAGT", "CCGA"))
    lines = [(a, "EI"), (a, "EI"), (b, "IE"), (b, "N"), (c, "N"), (c[:-1] + "N", "N")]
    text = "".join(", ".join([*seq, kind]) + "\n" for seq, kind in lines)
    assert [row[1:] for row in fetch.uci_rows(text)] == [("EI", a), ("N", c)]


def test_the_datasheet_names_every_file_with_its_sum():
    datasheet = (ROOT / "data" / "README.md").read_text()
    for expected in SPLICE.values():
        assert f"| `{expected.file}` |" in datasheet
        assert expected.sha256 in datasheet
