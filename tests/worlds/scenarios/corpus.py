"""Real events of real producers: OpenLineage's own examples, and runs of dbt."""

import gzip

import recordings

FOLDER = recordings.FILES.parent / "corpus"


def corpus_lines() -> list[bytes]:
    """Return the events of all files, in the order of the files' names."""
    files = sorted(FOLDER.glob("*.jsonl.gz"))
    return [
        line
        for file in files
        for line in gzip.decompress(file.read_bytes()).splitlines()
        if line.strip()
    ]
