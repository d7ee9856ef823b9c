"""A result as one file for a browser: a table, pictures, and how sure it all is."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from firmlib.result import FirmResult

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Feature importances</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
body {{ font: 16px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }}
div {{ overflow-x: auto }} img {{ max-width: 100% }}
table {{ border-collapse: collapse; font-size: 14px }}
th, td {{ text-align: right; padding: .1em .6em }}
td, th {{ white-space: nowrap; border-bottom: 1px solid #ddd }}
</style></head><body>
<h1>Feature importances</h1><p>{head}</p>
{bars}<h2>How far to trust this</h2><ul>{notes}</ul>
<h2>All features</h2><div>{table}</div>{curves}
<p>firmlib {version}</p></body></html>
"""


def page(result: FirmResult, head: str, version: str, n: int) -> str:
    """Return the page, with pictures of the `n` most important features."""
    try:
        width = result.ranks(result.confidence_level).eval("worst - best + 1").mean()
        order = (
            f"The data allow each feature {width:.1f} of {len(result)} ranks, on average; all "
            f"brackets hold together with {result.confidence_level:.0%}."
        )
        ranks = True
    except ValueError as error:
        order, ranks = f"How sure the order is remains open: {error}.", False
    curves = ""
    if result.curves:
        drawn = _picture(result.plot_curves(n=n), "expected scores given each feature")
        curves = f"<h2>The expected score, given a feature</h2>{drawn}"
    table = result.to_frame(ranks=ranks)
    return _PAGE.format(
        head=escape(head),
        bars=_picture(result.plot(n=n, ranks=ranks).figure_, "importances as bars"),
        notes="".join(f"<li>{escape(note)}</li>" for note in [order, *_notes(result)]),
        table=table.to_html(float_format="{:.3g}".format, na_rep="", border=0),
        curves=curves,
        version=version,
    )


def _notes(result: FirmResult) -> list[str]:
    """Return what a reader should know before believing the numbers."""
    if result.rows == "population":
        return ["The rows are the whole distribution: there are no errors of sampling."]
    alpha, names = 1 - result.confidence_level, np.array(result.feature_names, dtype=object)
    found = int((result.pvalues_adjusted() < alpha).sum())
    said = [
        f"Of {len(result)} features {found} have an effect that stands out among so many tests "
        f"(Holm). Each interval holds with {result.confidence_level:.0%}, taken alone.",
        "The model is taken as given; firmlib.stability tells what other fits would change.",
    ]
    if result.weight_type == "sampling":
        said.append("Weights are those of sampling: errors are larger where weights are uneven.")
    some = {
        "Fewer than ten rows decide the errors of these features, do not trust them: ": (
            result.heavy_tails
        ),
        "In some rows these features are missing: ": np.nan_to_num(result.missing) > 0,
    }
    return said + [text + ", ".join(names[which]) for text, which in some.items() if which.any()]


def _picture(figure: Any, what: str) -> str:
    """Return a figure as part of the page, and close it."""
    import matplotlib.pyplot as plt

    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=150)
    plt.close(figure)
    text = base64.b64encode(data.getvalue()).decode()
    return f'<img alt="{what}" src="data:image/png;base64,{text}">'
