"""Files of sorted rows that workers leave in a folder, and their rows merged.

What a bulk load reads.

A file holds the rows of one bucket, table by table, each table's in the order of their keys, in
pages. Whoever merges files has two pages of each in memory. A worker that is killed, or runs twice,
leaves a file that nobody names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import msgspec
import zstandard

from strandline.history.parts import Parts

PER_PAGE = 200  # rows
_LENGTH = 4  # bytes

_KEY = itemgetter(0)
_PACK = msgspec.msgpack.Encoder()
_PAGE = msgspec.msgpack.Decoder(tuple[str, list[tuple[bytes, tuple[Any, ...]]]])
Row = tuple[Any, ...]


def write_sorted(folder: str, parts: Parts) -> str:
    """Write folded parts as one file; give its path."""
    path = Path(folder, uuid4().hex)
    compress = zstandard.ZstdCompressor(level=1).compress
    with path.open("wb") as file:
        for table in sorted(parts):
            rows = iter(parts[table])
            while page := [(key, msgspec.Raw(row)) for key, row in islice(rows, PER_PAGE)]:
                frame = compress(_PACK.encode((table, page)))
                file.write(len(frame).to_bytes(_LENGTH, "big") + frame)
    return str(path)


def merged(paths: Sequence[str]) -> Iterator[tuple[str, Iterator[Row]]]:
    """Each table with its rows of all files, in the order of keys.

    They are read while somebody takes them.
    """
    with ExitStack() as opened:
        files = [_Pages(opened.enter_context(Path(path).open("rb"))) for path in paths]
        while tables := {file.table for file in files if file.table}:
            table = min(tables)
            yield table, _rows_of(table, files)


def _rows_of(table: str, files: Sequence[_Pages]) -> Iterator[Row]:
    """Yield the rows of all files up to the least key with which one of them ends for now, sorted.

    And so on.

    Sorting runs of sorted rows takes a fourth of the time of `heapq.merge`.
    """
    while True:
        for file in files:
            file.fill(table)
        ends = [file.rows[-1][0] for file in files if file.table == table]
        ready = [row for file in files for row in file.take(min(ends, default=None))]
        yield from map(itemgetter(1), sorted(ready, key=_KEY))
        if not ends:
            return


class _Pages:
    """A file as it is read; `table` is that of the page that comes next, "" at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.decompress = zstandard.ZstdDecompressor().decompress
        self.table = ""
        self.next: list[tuple[bytes, Row]] = []
        self.rows: list[tuple[bytes, Row]] = []
        self._read()

    def fill(self, table: str) -> None:
        """Have a page of rows of the table, unless there are no more of them."""
        while self.table == table and len(self.rows) < PER_PAGE:
            self.rows += self.next
            self._read()

    def take(self, last: bytes | None) -> list[tuple[bytes, Row]]:
        """Remove and return the rows up to this key, None: all."""
        count = len(self.rows) if last is None else bisect_right(self.rows, last, key=_KEY)
        taken, self.rows = self.rows[:count], self.rows[count:]
        return taken

    def _read(self) -> None:
        length = int.from_bytes(self.file.read(_LENGTH), "big")
        self.table, self.next = (
            _PAGE.decode(self.decompress(self.file.read(length))) if length else ("", [])
        )
