"""Takes events from files of JSON lines (gzip too, `-` is standard input), a batch a transaction.

Taking a file again changes nothing: byte-equal events are one event. A mark of UTF-8 at its
beginning is no part of it.
"""

import codecs
import gzip
import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from sqlalchemy import Engine

from strandline.store.ingest.take import Record
from strandline.store.ingest.transactions import Batches

GZIP = b"\x1f\x8b"


def take_file(engine: Engine, file: str, batch_records: int) -> tuple[Counter[str], list[str]]:
    """Take every line of a file.

    How many were stored, duplicate or dead, and why the dead ones are.
    """
    writing = Batches(engine)
    counts: Counter[str] = Counter()
    problems: list[str] = []
    with _opened(file) as lines:
        numbered = (
            (number, line.strip())
            for number, line in enumerate(_unmarked(lines), 1)
            if line.strip()
        )
        while batch := list(islice(numbered, batch_records)):
            now = datetime.now(UTC)
            outcomes = writing.write_or_keep([Record(line, now) for _, line in batch])
            counts.update(outcome.kind for outcome in outcomes)
            for (number, _), outcome in zip(batch, outcomes, strict=True):
                if outcome.kind == "dead":
                    problems.append(f"{file}:{number}: {outcome.reason}")
    return counts, problems


def _unmarked(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without the byte order mark that some editors put before the first one."""
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix(codecs.BOM_UTF8)


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    """Yield a file, a pipe or standard input, opened for reading.

    It is unpacked if its first bytes say that it is packed.
    """
    with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as raw:
        head = raw.read(len(GZIP))
        whole = cast("BinaryIO", io.BufferedReader(Again(head, raw)))
        if head != GZIP:
            yield whole
            return
        with gzip.open(whole) as unpacked:
            yield cast("BinaryIO", unpacked)


class Again(io.RawIOBase):
    """A stream that may be a pipe, once more from its beginning after its first bytes were read."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        """Yes; that is all that it can do."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, at first from what was read already."""
        got = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(got) :]
        buffer[: len(got)] = got
        return len(got)
