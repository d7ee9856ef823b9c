"""Orchestration: execute the notebooks, compare with what is committed, take it over."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
SUMMARY = BUILD / "summary.json"
KINDS = ("notebooks", "figures", "data")
