"""Real events of real producers: OpenLineage's own examples, and runs of dbt."""

import gzip
from datetime import UTC, datetime

import recordings
from strandline.store.ingest.take import Record

FOLDER = recordings.FILES.parent / "corpus"
RECEIVED = datetime(2026, 11, 20, 12, tzinfo=UTC)


def corpus_lines() -> list[bytes]:
    """Return the events of all files, in the order of the files' names."""
    files = sorted(FOLDER.glob("*.jsonl.gz"))
    return [
        line
        for file in files
        for line in gzip.decompress(file.read_bytes()).splitlines()
        if line.strip()
    ]


def corpus() -> list[Record]:
    """Return the events as records that were received at one moment."""
    return [Record(line, RECEIVED) for line in corpus_lines()]
