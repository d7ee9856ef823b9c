"""The ledger: what the paper claims, what came out, and a verdict that follows from the check."""

from __future__ import annotations

import csv
import html
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from firmlib._checks import check_option
from firmlib.compendium.output import output_dir, write_atomic

VERDICTS = {"confirmed": "✔", "corrected": "✎", "partly": "◐", "not reproduced": "✘", "open": "…"}
"""Every verdict, with its sign in tables."""

LONGEST = 100
"""Characters of a finding: it is read in a table."""


@dataclass(frozen=True)
class Claim:
    """One line of the ledger."""

    id: str
    section: str
    statement: str
    verdict: str
    finding: str
    parts: dict[str, bool]
    measured: dict[str, object]
    expected: str
    correction: str
    notebook: str

    def __repr__(self) -> str:
        return f"{self.id}: {self.verdict}. {self.finding}"

    def _repr_markdown_(self) -> str:
        return "\n".join(
            [f"`{self.id}` **{self.verdict}**: {self.finding}", *details(asdict(self))]
        )


def registry() -> list[Claim]:
    """Return every claim of the paper, in its order, as still open."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        return [
            Claim(
                id=row["id"],
                section=row["section"],
                statement=row["statement"],
                verdict="open",
                finding="",
                parts={},
                measured={},
                expected="",
                correction="",
                notebook=f"notebooks/{row['notebook']}.ipynb",
            )
            for row in csv.DictReader(file)
        ]


def record(
    id: str,
    parts: bool | Mapping[str, bool],
    *,
    finding: str,
    measured: Mapping[str, object] | None = None,
    expected: str = "",
    correction: str = "",
    corrected: bool | None = None,
) -> Claim:
    """Record what a check of the printed statement gave; the verdict follows from it.

    Parameters
    ----------
    id : str
        One of the ids of `registry`.
    parts : bool, or dict of part to bool
        Did the statement, or each part of it, hold *as printed*?
    finding : str
        What came out, in a sentence of at most 100 characters.
    measured : dict of name to figure, optional
        The figures behind it: numbers, arrays, dicts of them, or text. They are rounded to three
        significant digits, see `rounded`. By default there are none.
    expected : str, optional
        What the paper prints (LaTeX between dollar signs), by default nothing beyond the statement.
    correction : str, optional
        The statement put right, where it does not hold as printed. Needs `expected`.
    corrected : bool, optional
        Did the correction hold? Needed with `correction`; if it did not, nothing is recorded.

    Returns
    -------
    Claim
        "confirmed" if all of it held; else "corrected" with a correction that held; else
        "partly" or "not reproduced". Written to the output folder as json.

    Examples
    --------
    >>> import os, tempfile
    >>> os.environ["FIRMLIB_OUTPUT"] = tempfile.mkdtemp()
    >>> from firmlib.compendium import claims
    >>> claim = claims.record("2.3-variance", {"size": False}, finding="Half of it.",
    ...                       measured={"Q": 1 / 3})
    >>> claim
    2.3-variance: not reproduced. Half of it.
    >>> claim.measured
    {'Q': 0.333}
    """
    known = {claim.id: claim for claim in registry()}
    check_option("id", id, known)
    parts = dict(parts) if isinstance(parts, Mapping) else {"as printed": parts}
    flags = {"corrected": corrected} if correction else {}
    for name, flag in {**parts, **flags}.items():
        if not isinstance(flag, bool | np.bool_):
            raise ValueError(f"{id}: check {name!r} must be True or False, got {flag!r}")
    if not parts:
        raise ValueError(f"{id}: parts holds no check")
    if not 0 < len(finding) <= LONGEST:
        raise ValueError(f"{id}: finding must have 1 to {LONGEST} characters, got {len(finding)}")
    if correction and not expected:
        raise ValueError(f"{id}: a correction needs what it corrects, expected")
    if correction and not corrected:
        raise ValueError(f"{id}: the correction {correction!r} did not hold either")
    if corrected is not None and not correction:
        raise ValueError(f"{id}: corrected was given without the correction itself")
    if correction and all(parts.values()):
        raise ValueError(f"{id}: all of it held as printed; there is nothing to correct")

    if all(parts.values()):
        verdict = "confirmed"
    elif correction:
        verdict = "corrected"
    else:
        verdict = "partly" if any(parts.values()) else "not reproduced"
    fields = asdict(known[id]) | {
        "verdict": verdict,
        "finding": finding,
        "parts": {name: bool(flag) for name, flag in parts.items()},
        "measured": rounded(measured or {}),
        "expected": expected,
        "correction": correction,
    }
    write_atomic(output_dir() / "claims" / f"{id}.json", dumps(fields))
    return Claim(**fields)


def rounded(figure: Any, digits: int = 3) -> object:
    """Return a figure as the ledger has it: numbers to `digits` digits, below 1e-9 as 0.

    Examples
    --------
    >>> rounded({"Q": np.array([2 / 3, 1e-17]), "rows": 12_345, "exact": "1001/1296"})
    {'Q': [0.667, 0.0], 'rows': 12345, 'exact': '1001/1296'}
    """
    if hasattr(figure, "to_dict"):  # a pandas Series
        figure = figure.to_dict()
    if isinstance(figure, Mapping):
        return {str(name): rounded(value, digits) for name, value in figure.items()}
    if isinstance(figure, str):
        return figure
    if isinstance(figure, bool | np.bool_):
        return bool(figure)
    if isinstance(figure, Integral):
        return int(figure)
    if isinstance(figure, Real):
        number = float(figure)
        return 0.0 if abs(number) < 1e-9 else float(f"{number:.{digits}g}")
    if isinstance(figure, Iterable):
        return [rounded(value, digits) for value in figure]
    return str(figure)  # a symbol


def collect(folder: Path) -> list[dict]:
    """Return the ledger: all claims in the paper's order; what is not in `folder` is open."""
    files = {claim.id: folder / f"{claim.id}.json" for claim in registry()}
    return [
        json.loads(files[claim.id].read_text()) if files[claim.id].exists() else asdict(claim)
        for claim in registry()
    ]


def dumps(ledger: object) -> str:
    """Return json as it is written everywhere: readable, and the same again."""
    return json.dumps(ledger, indent=1, ensure_ascii=False) + "\n"


def tally(ledger: list[dict]) -> str:
    """Return how many claims have which verdict, in a line."""
    counts = Counter(claim["verdict"] for claim in ledger)
    return f"{len(ledger)} claims: " + ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v])


def details(claim: dict) -> list[str]:
    """Return what is behind a finding as items of a Markdown list."""
    parts = claim["parts"].items()
    lines = {
        "printed": claim["expected"],
        "corrected": claim["correction"],
        "holds": "; ".join(name for name, flag in parts if flag),
        "fails": "; ".join(name for name, flag in parts if not flag),
        "figures": "; ".join(f"{name} {text(value)}" for name, value in claim["measured"].items()),
    }
    return [f"- {name}: {line}" for name, line in lines.items() if line]


def text(figure: object) -> str:
    """Return a rounded figure as it is read."""
    if isinstance(figure, dict):
        return ", ".join(f"{text(value)} ({name})" for name, value in figure.items())
    if isinstance(figure, list):
        return ", ".join(map(text, figure))
    return f"{figure:g}" if isinstance(figure, float) else str(figure)


def overview(ledger: list[dict]) -> str:
    """Return the tally, a grid of sections and verdicts, and one line for all but the confirmed."""
    shown = [v for v in VERDICTS if any(claim["verdict"] == v for claim in ledger)]
    grid = [
        (
            section,
            *(" ".join(_link(c, VERDICTS[v]) for c in group if c["verdict"] == v) for v in shown),
        )
        for section, group in _by_section(ledger).items()
    ]
    rest = [
        (f"{VERDICTS[c['verdict']]} {_link(c)}", c["statement"], c["finding"] or "–")
        for c in ledger
        if c["verdict"] != "confirmed"
    ]
    return "\n\n".join(
        [
            f"**{tally(ledger)}.**",
            _markdown(("section", *(f"{VERDICTS[v]} {v}" for v in shown)), grid),
            _markdown(("claim", "what the paper says", "what holds"), rest),
        ]
    )


def page(ledger: list[dict], misprints: list[dict]) -> str:
    """Return CLAIMS.md: every claim with its figures, the errata, the misprints."""
    lines = [
        "# What the paper claims, and what came out",
        "Written by `make accept` from `data/claims.json` and `data/misprints.json`. Each claim "
        "was checked by running its notebook; the verdict is computed from the check.",
        f"**{tally(ledger)}.** The [errata](#errata) and the [misprints](#misprints-and-slips) "
        "are at the end.",
    ]
    for section, group in _by_section(ledger).items():
        lines.append(f"## Section {section}")
        for claim in group:
            head = f"**{_link(claim)} {VERDICTS[claim['verdict']]} {claim['verdict']}.**"
            found = [f"- found: {claim['finding']}"] if claim["finding"] else []
            lines.append("\n".join([f"{head} {claim['statement']}\n", *found, *details(claim)]))
    return "\n\n".join([*lines, "## Errata", errata(ledger), *_misprints(misprints)]) + "\n"


def errata(ledger: list[dict]) -> str:
    """Return what is corrected as a Markdown table, printed form beside corrected form."""
    return _markdown(
        ("claim", "as printed", "corrected"),
        [
            (_link(claim), claim["expected"], claim["correction"])
            for claim in ledger
            if claim["verdict"] == "corrected"
        ],
    )


def _misprints(misprints: list[dict]) -> list[str]:
    rows = [(m["place"], m["printed"], m["meant"]) for m in misprints]
    return ["## Misprints and slips", _markdown(("place", "printed", "meant"), rows)]


def _by_section(ledger: list[dict]) -> dict[str, list[dict]]:
    return {k: list(group) for k, group in groupby(ledger, key=lambda claim: claim["section"])}


def _link(claim: dict, shown: str = "") -> str:
    shown = shown or f"`{claim['id']}`"
    if claim["verdict"] == "open":
        return shown
    return f"[{shown}]({claim['notebook']}#{claim['id']})"


def _escaped(cell: str) -> str:
    """Escape bars, which would end the cell: in text by a backslash, in math by their names."""
    text, *rest = cell.split("$")
    text = text.replace("|", "\\|")
    if not rest:
        return text
    math = rest[0].replace("\\|", "\\Vert ").replace("|", "\\vert ")
    return f"{text}${math}${_escaped('$'.join(rest[1:]))}"


def _markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    escaped = [[_escaped(cell) for cell in row] for row in [head, *rows]]
    escaped.insert(1, ["---"] * len(head))
    return "\n".join("| " + " | ".join(row) + " |" for row in escaped)


def summary(*ids: str) -> Summary:
    """Return the verdicts on `ids`, as recorded in the output folder, for a notebook's end."""
    ledger = {claim["id"]: Claim(**claim) for claim in collect(output_dir() / "claims")}
    for id in ids:
        check_option("id", id, ledger)
    return Summary([ledger[id] for id in ids])


class Summary(list[Claim]):
    """Claims that show themselves as a table."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>"
            + "".join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in row)
            + "</tr>"
            for row in ((c.id, c.statement, c.finding, c.verdict) for c in self)
        )
        heads = ("claim", "the paper says", "what came out", "verdict")
        head = "".join(f"<th>{name}</th>" for name in heads)
        return f"<table><tr>{head}</tr>{rows}</table>"
