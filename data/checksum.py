"""The check of what `fetch_flights.py` and `fetch_splice.py` read and write."""

import hashlib


def check_sha256(name: str, content: bytes, sha256: str) -> None:
    """Exit unless the content has this checksum."""
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise SystemExit(
            f"{name} has sha256 {found}, expected {sha256}; nothing was written. To use a newer "
            "package, change the checksums in this script and in data/README.md."
        )
