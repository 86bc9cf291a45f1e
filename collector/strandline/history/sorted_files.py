"""Files of sorted rows that workers leave in a folder, and their rows merged: what a bulk load reads.

A file holds the rows of one bucket, table by table, each table's in the order of their keys, in pages. Whoever merges files has a
page of each in memory. A worker that is killed, or runs twice, leaves a file that nobody names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from heapq import merge
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import msgspec
import zstandard

from strandline.history.parts import Parts

PER_PAGE = 250  # rows
_LENGTH = 4  # bytes

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
    """Each table with its rows of all files, in the order of keys; they are read while somebody takes them."""
    with ExitStack() as opened:
        files = [_Pages(opened.enter_context(Path(path).open("rb"))) for path in paths]
        while tables := {file.table for file in files if file.table}:
            table = min(tables)
            yield table, map(itemgetter(1), merge(*(file.rows_of(table) for file in files)))  # no key comes twice


class _Pages:
    """A file as it is read; `table` is that of the page that comes next, "" at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.decompress = zstandard.ZstdDecompressor().decompress
        self.table = ""
        self._read()

    def rows_of(self, table: str) -> Iterator[tuple[bytes, Row]]:
        """The rows of a table, if it is that which comes next."""
        while self.table == table:
            rows = self.rows
            self._read()
            yield from rows

    def _read(self) -> None:
        length = int.from_bytes(self.file.read(_LENGTH), "big")
        self.table, self.rows = _PAGE.decode(self.decompress(self.file.read(length))) if length else ("", [])
