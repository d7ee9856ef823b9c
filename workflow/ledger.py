"""The ledger as Markdown: the README's strip of verdicts and docs/claims.md."""

from collections import Counter
from itertools import groupby
from operator import itemgetter

from firmlib.compendium.claims import VERDICTS, details

KEY = ", ".join(f"{VERDICTS[v]} {v}" for v in ("confirmed", "corrected", "partly"))


def tally(ledger: list[dict]) -> str:
    """Return how many claims have each verdict, in a line."""
    counts = Counter(claim["verdict"] for claim in ledger)
    return f"{len(ledger)} claims: " + ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v])


def strip(ledger: list[dict]) -> str:
    """Return the tally and, for each section of the paper, the signs of its verdicts."""
    sections = groupby(ledger, itemgetter("section"))
    signs = [f"**{name}** " + "".join(map(_sign, group)) for name, group in sections]
    return f"**{tally(ledger)}** ({KEY}), by section of the paper:\n\n{' · '.join(signs)}"


def page(ledger: list[dict], misprints: list[dict]) -> str:
    """Return docs/claims.md: the claims that do not hold as printed, all claims, the misprints."""
    rest = [claim for claim in ledger if claim["verdict"] != "confirmed"]
    slips = [(slip["place"], slip["printed"], slip["meant"]) for slip in misprints]
    lines = [
        "# What the paper claims, and what came out",
        "`make accept` writes this page from `data/claims.json` and `data/misprints.json`. A "
        "notebook checks each claim, and the verdict is computed from the check.",
        strip(ledger),
        "## What does not hold as printed, or only in part",
        _table(
            ("", "claim", "what the paper says", "what came out"),
            [(_sign(c), _link(c), c["statement"], c["finding"] or "–") for c in rest],
        ),
        "## Errata",
        _table(
            ("claim", "as printed", "corrected", "found"),
            [
                (_link(claim), claim["expected"], claim["correction"], claim["finding"])
                for claim in ledger
                if claim["verdict"] == "corrected"
            ],
        ),
        "## Misprints and slips",
        _table(("place", "printed", "meant"), slips),
    ]
    for section, group in groupby(ledger, itemgetter("section")):
        lines.append(f"## Section {section}")
        for claim in group:
            head = f"**{_link(claim)} {_sign(claim)} {claim['verdict']}.** {claim['statement']}\n"
            found = [f"- found: {claim['finding']}"] if claim["finding"] else []
            lines.append("\n".join([head, *found, *details(claim)]))
    return "\n\n".join(lines) + "\n"


def _sign(claim: dict) -> str:
    return VERDICTS[claim["verdict"]]


def _link(claim: dict) -> str:
    shown = f"`{claim['id']}`"
    return shown if claim["verdict"] == "open" else f"[{shown}](../{claim['notebook']})"


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
