"""Sequences: WD and WDS kernels, an SVM, its weights and POIMs (Sections 1.2 and 3.3)."""

from firmlib.strings.alphabet import decode, encode, index_word, read_fasta, word_index
from firmlib.strings.background import Background
from firmlib.strings.kernel import wds_diagonal, wds_kernel
from firmlib.strings.motifs import motif_importance, motif_rank
from firmlib.strings.poim import poim
from firmlib.strings.search import top_motifs
from firmlib.strings.svm import WDSClassifier
from firmlib.strings.weights import PositionalWeights

__all__ = [
    "Background",
    "PositionalWeights",
    "WDSClassifier",
    "decode",
    "encode",
    "index_word",
    "motif_importance",
    "motif_rank",
    "poim",
    "read_fasta",
    "top_motifs",
    "wds_diagonal",
    "wds_kernel",
    "word_index",
]
