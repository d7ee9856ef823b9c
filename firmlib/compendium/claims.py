"""The ledger: what the paper claims, what came out, and a verdict that follows from the check."""

from __future__ import annotations

import csv
import html
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from firmlib._checks import check_option
from firmlib.compendium.output import output_dir, write_atomic

VERDICTS = ("confirmed", "corrected", "partly", "not reproduced", "open")


@dataclass(frozen=True)
class Claim:
    """One line of the ledger."""

    id: str
    section: str
    statement: str
    verdict: str
    measured: str
    expected: str
    correction: str
    notebook: str

    def __repr__(self) -> str:
        return f"{self.id}: {self.verdict}. Measured: {self.measured}"

    def _repr_markdown_(self) -> str:
        lines = [f"`{self.id}` **{self.verdict}**", f"- paper: {self.expected}"]
        lines += [f"- corrected: {self.correction}"] if self.correction else []
        return "\n".join([*lines, f"- measured: {self.measured}"])


def registry() -> list[Claim]:
    """Return every claim of the paper, in its order, as still open."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        return [
            Claim(
                id=row["id"],
                section=row["section"],
                statement=row["statement"],
                verdict="open",
                measured="",
                expected="",
                correction="",
                notebook=f"notebooks/{row['notebook']}.ipynb",
            )
            for row in csv.DictReader(file)
        ]


def record(
    id: str,
    printed: bool | Mapping[str, bool],
    *,
    measured: str,
    expected: str,
    correction: str = "",
    corrected: bool | None = None,
) -> Claim:
    """Record what a check of the printed statement gave; the verdict follows from it.

    Parameters
    ----------
    id : str
        One of the ids of `registry`.
    printed : bool, or dict of part to bool
        Did the statement, or each part of it, hold *as printed*?
    measured, expected : str
        What came out, with figures, and what the paper says (LaTeX between dollar signs).
    correction : str, optional
        The statement put right, where it does not hold as printed.
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
    >>> claims.record("2.3-variance", False, measured="0.5", expected="0.25")
    2.3-variance: not reproduced. Measured: 0.5
    """
    known = {claim.id: claim for claim in registry()}
    check_option("id", id, known)
    parts = dict(printed) if isinstance(printed, Mapping) else {"": printed}
    flags = {"corrected": corrected} if correction else {}
    for name, flag in {**parts, **flags}.items():
        if not isinstance(flag, bool | np.bool_):
            raise ValueError(f"{id}: check {name!r} must be True or False, got {flag!r}")
    if not parts:
        raise ValueError(f"{id}: printed holds no check")
    if not (measured and expected):
        raise ValueError(f"{id}: measured and expected must not be empty")
    if correction and not corrected:
        raise ValueError(f"{id}: the correction {correction!r} did not hold either")
    if corrected is not None and not correction:
        raise ValueError(f"{id}: corrected was given without the correction itself")

    held = [name for name, flag in parts.items() if flag]
    failed = [name for name, flag in parts.items() if not flag]
    if not failed:
        verdict = "confirmed"
        if correction:
            raise ValueError(f"{id}: all of it held as printed; there is nothing to correct")
    elif correction:
        verdict = "corrected"
    else:
        verdict = "partly" if held else "not reproduced"
    if held and failed:
        measured += f" (holds: {', '.join(held)}; fails: {', '.join(failed)})"
    fields = asdict(known[id]) | {
        "verdict": verdict,
        "measured": measured,
        "expected": expected,
        "correction": correction,
    }
    write_atomic(output_dir() / "claims" / f"{id}.json", dumps(fields))
    return Claim(**fields)


def collect(folder: Path) -> list[dict[str, str]]:
    """Return the ledger: all claims in the paper's order; what is not in `folder` is open."""
    files = {claim.id: folder / f"{claim.id}.json" for claim in registry()}
    return [
        json.loads(files[claim.id].read_text()) if files[claim.id].exists() else asdict(claim)
        for claim in registry()
    ]


def dumps(ledger: object) -> str:
    """Return json as it is written everywhere: readable, and the same again."""
    return json.dumps(ledger, indent=1, ensure_ascii=False) + "\n"


def table(ledger: list[dict[str, str]]) -> str:
    """Return the ledger as a Markdown table: what the paper says, what came out."""
    counts = Counter(claim["verdict"] for claim in ledger)
    tally = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return f"**{len(ledger)} claims: {tally}.**\n\n" + _markdown(
        ("claim", "what the paper says", "what came out", "verdict"),
        [(_link(c), c["statement"], c["measured"] or "–", f"**{c['verdict']}**") for c in ledger],
    )


def errata(ledger: list[dict[str, str]]) -> str:
    """Return what is corrected as a Markdown table, printed form beside corrected form."""
    return _markdown(
        ("claim", "as printed", "corrected"),
        [
            (_link(claim), claim["expected"], claim["correction"])
            for claim in ledger
            if claim["verdict"] == "corrected"
        ],
    )


def _link(claim: dict[str, str]) -> str:
    if claim["verdict"] == "open":
        return f"`{claim['id']}`"
    return f"[`{claim['id']}`]({claim['notebook']}#{claim['id']})"


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
            for row in ((c.id, c.statement, c.measured, c.verdict) for c in self)
        )
        head = "".join(f"<th>{name}</th>" for name in ("claim", "the paper says", "measured", ""))
        return f"<table><tr>{head}</tr>{rows}</table>"
