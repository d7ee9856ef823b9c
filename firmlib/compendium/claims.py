"""The ledger: what the paper claims, what we found, and a verdict computed from the check."""

from __future__ import annotations

import csv
import html
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from firmlib.compendium.output import output_dir, write_atomic
from firmlib.tables.checks import check_option

# The symbol of each verdict in tables, and the maximum length of a finding.
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
    text = Path(__file__).with_suffix(".csv").read_text(encoding="utf-8")
    rows: Any = csv.DictReader(text.splitlines())
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
    """Record the check of a printed statement as json, and derive the verdict.

    `parts` says whether each part of the statement holds *as printed*; `finding` is a sentence,
    and `measured` has its values. `expected` is the printed form, `correction` the corrected one,
    and `corrected` says whether the correction holds. The verdict is "confirmed" if all parts hold,
    "corrected" if a correction holds, and otherwise "partly" or "not reproduced".
    """
    known = {claim.id: claim for claim in registry()}
    check_option("id", id, known)
    parts = dict(parts) if isinstance(parts, Mapping) else {"as printed": parts}
    flags = [*parts.values(), corrected or False]
    plain = all(isinstance(flag, bool | np.bool_) for flag in flags)
    for wrong, message in (
        (not parts, "parts holds no check"),
        (not plain, f"every check must be True or False, got {parts} and corrected={corrected!r}"),
        (not finding, "finding is empty"),
        (len(finding) > LONGEST, f"finding has {len(finding)} characters, more than {LONGEST}"),
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
    if hasattr(value, "items"):  # a mapping, or a pandas Series
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
    """Return a value as formatted json."""
    return json.dumps(ledger, indent=1, ensure_ascii=False) + "\n"


def details(claim: dict) -> list[str]:
    """Return the details of a finding as items of a Markdown list."""
    parts = claim["parts"].items()
    lines = {
        "printed": claim["expected"],
        "corrected": claim["correction"],
        "holds": "; ".join(name for name, flag in parts if flag),
        "fails": "; ".join(name for name, flag in parts if not flag),
        "values": "; ".join(f"{name} {_text(value)}" for name, value in claim["measured"].items()),
    }
    return [f"- {name}: {line}" for name, line in lines.items() if line]


def _text(value: object) -> str:
    """Return a rounded value for readers."""
    if isinstance(value, dict):
        return ", ".join(f"{_text(entry)} ({name})" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


class Summary(list[Claim]):
    """Claims, displayed as a table."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        cell = "<td style='text-align:left'>{}</td>".format
        rows = [(c.id, c.statement, c.finding, c.verdict) for c in self]
        body = ["".join(cell(html.escape(text)) for text in row) for row in rows]
        head = "<th>claim</th><th>the paper says</th><th>what came out</th><th>verdict</th>"
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in [head, *body])}</table>"


def summary(*ids: str) -> Summary:
    """Return the recorded claims `ids`, for the end of a notebook."""
    ledger = {claim["id"]: Claim(**claim) for claim in collect(output_dir() / "claims")}
    for id in ids:
        check_option("id", id, ledger)
    return Summary([ledger[id] for id in ids])
