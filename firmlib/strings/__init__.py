"""Sequences: WD and WDS kernels, an SVM, its weights and POIMs (Sections 1.2 and 3.3)."""

from firmlib.strings.alphabet import DNA, PROTEIN, RNA, Alphabet, decode, encode
from firmlib.strings.background import Background
from firmlib.strings.confirm import confirm
from firmlib.strings.fasta import read_fasta
from firmlib.strings.kernel import wds_diagonal, wds_kernel
from firmlib.strings.meme import to_meme
from firmlib.strings.motifs import motif_importance, motif_rank
from firmlib.strings.null import null_band
from firmlib.strings.poim import poim
from firmlib.strings.search import top_motifs
from firmlib.strings.surrogate import fit_surrogate
from firmlib.strings.svm import WDSClassifier
from firmlib.strings.weights import PositionalWeights
from firmlib.strings.words import index_word, word_index

__all__ = [
    "DNA",
    "PROTEIN",
    "RNA",
    "Alphabet",
    "Background",
    "PositionalWeights",
    "WDSClassifier",
    "confirm",
    "decode",
    "encode",
    "fit_surrogate",
    "index_word",
    "motif_importance",
    "motif_rank",
    "null_band",
    "poim",
    "read_fasta",
    "to_meme",
    "top_motifs",
    "wds_diagonal",
    "wds_kernel",
    "word_index",
]
