"""Real events of real producers, one a line, from a folder."""

from datetime import UTC, datetime
from pathlib import Path

from strandline.store.ingest.take import Record

RECEIVED = datetime(2026, 11, 20, 12, tzinfo=UTC)


def corpus(folder: Path) -> list[Record]:
    """The events of all files, in the order of the files' names."""
    lines = [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()]
    return [Record(line, RECEIVED) for line in lines if line.strip()]
