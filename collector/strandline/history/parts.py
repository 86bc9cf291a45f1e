"""Events as rows of the store's tables, made and folded anywhere in any order: what Spark's Python workers run.

The rules are those of the live collector (`core/changes`): an event becomes changes, changes become rows, and rows of one
key are folded by the declarations in `core/changes/rows.FOLDS`. Folding is associative, so a worker folds what it has,
and what several workers made of one key is folded again after the shuffle.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from strandline.core.changes.bundles import Statement
from strandline.core.changes.compact import compact, fold_rows, key_of
from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import Stamp
from strandline.core.changes.rows import FOLDS, Change
from strandline.core.openlineage.events import decoded
from strandline.core.openlineage.names import naming_of
from strandline.store.ingest.take import no_search_for_cycles
from strandline.store.ingest.unseen_rows import only_news
from strandline.store.ingest.writer_state import Caches

AT_ONCE = 2_000  # events that a worker folds before it hands rows on: enough that most of a job's rows become one
REFUSED = "refused"  # the table of what is no event, which a rebuild counts and names

_PACK = msgspec.msgpack.Encoder()
_UNPACK = msgspec.msgpack.Decoder(tuple)
_KINDS: dict[str, type[Change]] = {fold.table: kind for kind, fold in FOLDS.items()}


class ArchivedEvent(NamedTuple):
    """An event of the archive: its content hash, when it was received (microseconds), and its redacted JSON."""

    hash: bytes
    received_at: int
    body: bytes


class Part(NamedTuple):
    """A row of a table, packed, with the packed key that rows are folded by."""

    table: str
    key: bytes
    row: bytes


def kind_of(table: str) -> type[Change]:
    """The kind of change whose rows a table holds."""
    return _KINDS[table]


def parts_of(events: Iterable[ArchivedEvent], patterns: Sequence[str]) -> Iterator[Part]:
    """The rows that events leave, folded as far as they come together. What is no event gives a part of `REFUSED`."""
    caches = Caches(naming_of(patterns))
    remaining = iter(events)
    while some := list(islice(remaining, AT_ONCE)):
        with no_search_for_cycles():
            parts = _parts_of(some, caches)
        yield from parts


def _parts_of(events: Sequence[ArchivedEvent], caches: Caches) -> list[Part]:
    changes: list[Statement] = []
    refused: list[Part] = []
    for one in events:
        try:
            event, _ = decoded(one.body)
            stamp = Stamp.of(event.at, one.hash, one.received_at)
            changes += changes_of(event, stamp, caches.memo).changes
        except Exception as error:  # noqa: BLE001 - one unreadable event must not end the rebuild of all others
            refused.append(Part(REFUSED, one.hash, repr(error)[:500].encode()))
    rows = only_news(compact(changes), caches)
    caches.commit()  # a task that ends leaves all its rows: what one part has said needs no other
    return refused + [_packed(kind, row) for kind, found in rows.items() for row in found]


def folded(parts: Iterable[Part]) -> Iterator[Part]:
    """One part a key, from parts that are sorted by table and key."""
    for (table, _), same in groupby(parts, key=itemgetter(0, 1)):
        first, *others = same
        if not others or table == REFUSED:
            yield first
            continue
        kind = kind_of(table)
        for row in fold_rows(kind, [unpacked(kind, part.row) for part in (first, *others)]):
            yield _packed(kind, row)


def unpacked(kind: type[Any], row: bytes) -> tuple[Any, ...]:
    """The row of a part."""
    found: tuple[Any, ...] = kind(*_UNPACK.decode(row))
    return found


def _packed(kind: type[Any], row: tuple[Any, ...]) -> Part:
    return Part(FOLDS[kind].table, _PACK.encode(key_of(kind, row)), _PACK.encode(tuple(row)))
