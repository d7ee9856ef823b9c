"""Orchestration: execute and sweep the notebooks, compare with what is committed, take it over."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
SUMMARY = BUILD / "summary.json"
KINDS = ("notebooks", "figures", "data")

# jsonschema would compile a grammar of addresses, for a second at every start; we check none.
sys.modules.setdefault("rfc3987_syntax", None)
