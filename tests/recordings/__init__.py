"""Recordings of the stock OpenLineage Spark listener, each with a file of what its programs really did."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

FILES = Path(__file__).parent / "files"


def names() -> list[str]:
    """The recordings that are there."""
    return sorted(file.name.removesuffix(".jsonl.gz") for file in FILES.glob("*.jsonl.gz"))


def events_of(name: str) -> list[bytes]:
    """The events of a recording, in the order of their sending, byte for byte but for the machine's own names."""
    with gzip.open(FILES / f"{name}.jsonl.gz") as file:
        return file.read().splitlines()


def truth_of(name: str) -> dict[str, Any]:
    """Return the real reads and writes of the recorded programs."""
    found: dict[str, Any] = json.loads((FILES / f"{name}.json").read_text())
    return found
