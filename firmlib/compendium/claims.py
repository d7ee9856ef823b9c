"""The ledger: what the paper claims, what we found, and a verdict computed from the check."""

from __future__ import annotations

import csv
import html
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from numbers import Integral, Real
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from firmlib.compendium.output import output_dir, write_atomic
from firmlib.tables.checks import check_option

# Every verdict with its sign in tables, and the most characters that a finding may have.
VERDICTS = {"confirmed": "✔", "corrected": "✎", "partly": "◐", "not reproduced": "✘", "open": "…"}
LONGEST = 100


@dataclass(frozen=True)
class Claim:
    """One line of the ledger."""

    id: str
    section: str
    statement: str
    verdict: str = "open"
    finding: str = ""
    parts: dict[str, bool] = field(default_factory=dict)
    measured: dict[str, object] = field(default_factory=dict)
    expected: str = ""
    correction: str = ""
    notebook: str = ""

    def __repr__(self) -> str:
        return f"{self.id}: {self.verdict}. {self.finding}"

    def _repr_markdown_(self) -> str:
        head = f"`{self.id}` **{self.verdict}**: {self.finding}"
        return "\n".join([head, *details(asdict(self))])


def registry() -> list[Claim]:
    """Return every claim of the paper, in its order, as still open."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows: list[Any] = list(csv.DictReader(file))
    return [Claim(**row | {"notebook": f"notebooks/{row['notebook']}.ipynb"}) for row in rows]


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
    """Record the check of a printed statement as json; the verdict follows from it.

    `parts` says whether the statement, or each part of it, holds *as printed*; `finding` what we
    found, in a sentence; `measured` the values behind it, which are `rounded`; `expected` what the
    paper prints; `correction` the corrected statement, and `corrected` whether that holds.

    The verdict is "confirmed" if all parts hold; else "corrected" with a correction that holds;
    else "partly" or "not reproduced". Nothing is recorded if a correction does not hold.

    Examples
    --------
    >>> import os, tempfile
    >>> os.environ["FIRMLIB_OUTPUT"] = tempfile.mkdtemp()
    >>> from firmlib.compendium import claims
    >>> claims.record("2.3-variance", {"size": False}, finding="Half of it.")
    2.3-variance: not reproduced. Half of it.
    """
    known = {claim.id: claim for claim in registry()}
    check_option("id", id, known)
    parts = dict(parts) if isinstance(parts, Mapping) else {"as printed": parts}
    for name, flag in (parts | ({"corrected": corrected} if correction else {})).items():
        if not isinstance(flag, bool | np.bool_):
            raise ValueError(f"{id}: check {name!r} must be True or False, got {flag!r}")
    size = f"finding must have 1 to {LONGEST} characters, got {len(finding)}"
    for wrong, message in (
        (not parts, "parts holds no check"),
        (not 0 < len(finding) <= LONGEST, size),
        (correction and not expected, "a correction needs what it corrects, expected"),
        (correction and not corrected, f"the correction {correction!r} did not hold either"),
        (corrected is not None and not correction, "corrected is given without the correction"),
        (correction and all(parts.values()), "all parts hold; there is nothing to correct"),
    ):
        if wrong:
            raise ValueError(f"{id}: {message}")
    verdict = "partly" if any(parts.values()) else "not reproduced"
    verdict = "confirmed" if all(parts.values()) else "corrected" if correction else verdict
    parts, values = {name: bool(flag) for name, flag in parts.items()}, rounded(measured or {})
    fields = asdict(known[id]) | {"verdict": verdict, "finding": finding, "parts": parts}
    fields |= {"measured": values, "expected": expected, "correction": correction}
    write_atomic(output_dir() / "claims" / f"{id}.json", dumps(fields))
    return Claim(**fields)


def rounded(value: Any, digits: int = 3) -> object:
    """Return a value as the ledger stores it: numbers to `digits` digits, below 1e-9 as 0."""
    if hasattr(value, "to_dict"):  # a pandas Series
        value = value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): rounded(entry, digits) for name, entry in value.items()}
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return 0.0 if abs(float(value)) < 1e-9 else float(f"{float(value):.{digits}g}")
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [rounded(entry, digits) for entry in value]
    return str(value)  # text, or a symbol


def collect(folder: Path) -> list[dict]:
    """Return all claims in the paper's order; those without a file in `folder` are open."""
    pairs = [(asdict(claim), folder / f"{claim.id}.json") for claim in registry()]
    return [json.loads(path.read_text()) if path.exists() else claim for claim, path in pairs]


def dumps(ledger: object) -> str:
    """Return json in the one form in which it is written everywhere."""
    return json.dumps(ledger, indent=1, ensure_ascii=False) + "\n"


def tally(ledger: list[dict]) -> str:
    """Return how many claims have each verdict, in a line."""
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
        "figures": "; ".join(f"{name} {_text(value)}" for name, value in claim["measured"].items()),
    }
    return [f"- {name}: {line}" for name, line in lines.items() if line]


def _text(value: object) -> str:
    """Return a rounded value for readers."""
    if isinstance(value, dict):
        return ", ".join(f"{_text(entry)} ({name})" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def overview(ledger: list[dict]) -> str:
    """Return the tally, a grid of sections and verdicts, and the claims that are not confirmed."""
    shown = [v for v in VERDICTS if any(claim["verdict"] == v for claim in ledger)]
    grid = []
    for section, group in groupby(ledger, itemgetter("section")):
        claims = list(group)
        signs = [[_link(c, VERDICTS[v]) for c in claims if c["verdict"] == v] for v in shown]
        grid.append((section, *map(" ".join, signs)))
    rest = [c for c in ledger if c["verdict"] != "confirmed"]
    signed = [f"{VERDICTS[c['verdict']]} {_link(c)}" for c in rest]
    rest = [(s, c["statement"], c["finding"] or "–") for s, c in zip(signed, rest, strict=True)]
    heads = ("section", *(f"{VERDICTS[v]} {v}" for v in shown))
    tables = _table(heads, grid), _table(("claim", "what the paper says", "what holds"), rest)
    return "\n\n".join([f"**{tally(ledger)}.**", *tables])


def page(ledger: list[dict], misprints: list[dict]) -> str:
    """Return CLAIMS.md: every claim with its values, the errata, the misprints."""
    lines = [
        "# What the paper claims, and what came out",
        "Written by `make accept` from `data/claims.json` and `data/misprints.json`. Each claim "
        "was checked by running its notebook; the verdict is computed from the check.",
        f"**{tally(ledger)}.** The [errata](#errata) and the [misprints](#misprints-and-slips) "
        "are at the end.",
    ]
    for section, group in groupby(ledger, itemgetter("section")):
        lines.append(f"## Section {section}")
        for claim in group:
            head = f"**{_link(claim)} {VERDICTS[claim['verdict']]} {claim['verdict']}.**"
            found = [f"- found: {claim['finding']}"] if claim["finding"] else []
            lines.append("\n".join([f"{head} {claim['statement']}\n", *found, *details(claim)]))
    slips = [(slip["place"], slip["printed"], slip["meant"]) for slip in misprints]
    lines += ["## Errata", errata(ledger)]
    lines += ["## Misprints and slips", _table(("place", "printed", "meant"), slips)]
    return "\n\n".join(lines) + "\n"


def errata(ledger: list[dict]) -> str:
    """Return the corrected claims as a Markdown table, printed form beside corrected form."""
    corrected = [claim for claim in ledger if claim["verdict"] == "corrected"]
    rows = [(_link(claim), claim["expected"], claim["correction"]) for claim in corrected]
    return _table(("claim", "as printed", "corrected"), rows)


def _link(claim: dict, shown: str = "") -> str:
    shown, is_open = shown or f"`{claim['id']}`", claim["verdict"] == "open"
    return shown if is_open else f"[{shown}]({claim['notebook']}#{claim['id']})"


def _escaped(cell: str) -> str:
    """Escape bars, which would end the cell: in text by a backslash, in math by their names."""
    parts = cell.split("$")
    parts[::2] = [text.replace("|", "\\|") for text in parts[::2]]
    parts[1::2] = [m.replace("\\|", "\\Vert ").replace("|", "\\vert ") for m in parts[1::2]]
    return "$".join(parts)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    escaped = [[_escaped(cell) for cell in row] for row in [head, *rows]]
    escaped.insert(1, ["---"] * len(head))
    return "\n".join("| " + " | ".join(row) + " |" for row in escaped)


class Summary(list[Claim]):
    """Claims that show themselves as a table."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        cell = "<td style='text-align:left'>{}</td>".format
        rows = [(c.id, c.statement, c.finding, c.verdict) for c in self]
        body = ["".join(cell(html.escape(text)) for text in row) for row in rows]
        head = "<th>claim</th><th>the paper says</th><th>what came out</th><th>verdict</th>"
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in [head, *body])}</table>"


def summary(*ids: str) -> Summary:
    """Return the verdicts on `ids` that the output folder holds, for the end of a notebook."""
    ledger = {claim["id"]: Claim(**claim) for claim in collect(output_dir() / "claims")}
    for id in ids:
        check_option("id", id, ledger)
    return Summary([ledger[id] for id in ids])
