"""Takes events from files of JSON lines (gzip too, `-` is standard input), a batch a transaction.

Taking a file again changes nothing: byte-equal events are one event.
"""

import gzip
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from sqlalchemy import Engine

from strandline.store.batches import Batches
from strandline.store.intake import Record

GZIP = b"\x1f\x8b"


def take_file(engine: Engine, file: str, batch_records: int) -> tuple[Counter[str], list[str]]:
    """Take every line of a file: how many were stored, duplicate or dead, and why the dead ones are."""
    writing = Batches(engine)
    counts: Counter[str] = Counter()
    problems: list[str] = []
    with _opened(file) as lines:
        numbered = ((number, line.strip()) for number, line in enumerate(lines, 1) if line.strip())
        while batch := list(islice(numbered, batch_records)):
            now = datetime.now(UTC)
            outcomes = writing.write([Record(line, now) for _, line in batch])
            counts.update(outcome.kind for outcome in outcomes)
            for (number, _), outcome in zip(batch, outcomes, strict=True):
                if outcome.kind == "dead":
                    problems.append(f"{file}:{number}: {outcome.reason}")
    return counts, problems


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as raw:
        packed = raw.read(2) == GZIP
        raw.seek(0)
        if not packed:
            yield raw
            return
        with gzip.open(raw) as unpacked:
            yield cast("BinaryIO", unpacked)
