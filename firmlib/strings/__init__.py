"""Sequences: WD and WDS kernels, an SVM, its weights and POIMs (Sections 1.2 and 3.3)."""

from typing import TYPE_CHECKING, Any

from firmlib.strings.alphabet import (
    DNA,
    PROTEIN,
    RNA,
    Alphabet,
    decode,
    encode,
    index_word,
    one_hot,
    read_fasta,
    word_index,
)
from firmlib.strings.background import Background
from firmlib.strings.kernel import wds_diagonal, wds_kernel
from firmlib.strings.motifs import motif_importance
from firmlib.strings.poim import max_by_length, motif_rank, poim
from firmlib.strings.search import Motif, to_meme, top_motifs
from firmlib.strings.surrogate import confirm, fit_surrogate
from firmlib.strings.svm import WDSClassifier
from firmlib.strings.weights import PositionalWeights

if TYPE_CHECKING:
    from firmlib.strings.display import plot_logo

__all__ = [
    "DNA", "PROTEIN", "RNA", "Alphabet", "Background", "Motif", "PositionalWeights",
    "WDSClassifier", "confirm", "decode", "encode", "fit_surrogate", "index_word",
    "max_by_length", "motif_importance", "motif_rank", "one_hot", "plot_logo", "poim",
    "read_fasta", "to_meme", "top_motifs", "wds_diagonal", "wds_kernel", "word_index",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "plot_logo":  # needs matplotlib, which the rest does not
        from firmlib.strings.display import plot_logo

        return plot_logo
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
