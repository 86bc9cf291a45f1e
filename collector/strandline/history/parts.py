"""Events as rows of the store's tables, made and folded anywhere in any order.

What Spark's Python workers run.

The rules are those of the live collector (`core/changes`): an event becomes changes, changes become
rows, and rows of one key are folded by the declarations in `core/changes/rows.FOLDS`. Folding is
associative, so a worker folds what it has, and what several workers made of one key is folded again
after the shuffle.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from strandline.core.changes.compact import compact, fold_rows, key_of
from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import Stamp
from strandline.core.changes.lineage import EventChange
from strandline.core.changes.rows import FOLDS, Change
from strandline.core.openlineage.events import decoded
from strandline.core.openlineage.names import naming_of
from strandline.store.ingest.take import no_search_for_cycles
from strandline.store.ingest.unseen_rows import only_news
from strandline.store.ingest.writer_state import Caches

# events that a worker folds before it hands rows on: enough that most of a job's rows become one
AT_ONCE = 2_000
# the table of the hashes of events that were taken, with the moments at which they were received
KNOWN = "event_keys"
REFUSED = "refused"  # the table of what is no event, which a rebuild counts and names

_PACK = msgspec.msgpack.Encoder()
_UNPACK = msgspec.msgpack.Decoder(tuple)
_PARTS = msgspec.msgpack.Decoder(dict[str, list[tuple[bytes, bytes]]])
_KINDS: dict[str, type[Change]] = {fold.table: kind for kind, fold in FOLDS.items()}
_KEY = itemgetter(0)

# Rows by their table: of each its key and itself, both packed. The bytes of keys are in the order
# that databases keep them in, nearly.
Parts = dict[str, list[tuple[bytes, bytes]]]


class ArchivedEvent(NamedTuple):
    """An event of the archive.

    Its content hash, when it was received (microseconds), and its redacted JSON.
    """

    hash: bytes
    received_at: int
    body: bytes


def kind_of(table: str) -> type[Change]:
    """Return the kind of change whose rows a table holds."""
    return _KINDS[table]


def parts_of(
    events: Iterable[ArchivedEvent], patterns: Sequence[str], shared_runs: Collection[int] = ()
) -> Iterator[Parts]:
    """Yield the rows that events leave, folded as far as they come together.

    What is no event gives a part of `REFUSED`.
    """
    caches = Caches(naming_of(patterns))
    caches.memory.share_runs(shared_runs)
    remaining = iter(events)
    while some := list(islice(remaining, AT_ONCE)):
        with no_search_for_cycles():
            parts = _parts_of(some, caches)
        yield parts


def _parts_of(events: Sequence[ArchivedEvent], caches: Caches) -> Parts:
    changes: list[EventChange] = []
    refused: list[tuple[bytes, bytes]] = []
    for one in events:
        try:
            event, _ = decoded(one.body)
            stamp = Stamp.of(event.at, one.hash, one.received_at)
            changes += changes_of(event, stamp, caches.memory).changes
        except Exception as error:  # noqa: BLE001 - one unreadable event must not end the rebuild of all others
            refused.append((one.hash, _PACK.encode((one.hash, repr(error)[:500]))))
    rows = only_news(compact(changes, caches.shared_facets), caches)
    caches.commit()  # a task that ends leaves all its rows: what one part has said needs no other
    parts = {FOLDS[kind].table: _packed(kind, found) for kind, found in rows.items()}
    unread = {
        hash_ for hash_, _ in refused
    }  # a later version that reads them may take them: they are not known
    parts[KNOWN] = [
        (one.hash, _PACK.encode((one.hash, one.received_at)))
        for one in events
        if one.hash not in unread
    ]
    return parts | {REFUSED: refused} if refused else parts


def _packed(kind: type[Change], rows: Sequence[tuple[Any, ...]]) -> list[tuple[bytes, bytes]]:
    pack = _PACK.encode
    return [(pack(key_of(kind, row)), pack(row)) for row in rows]


def partitioned(parts: Parts, buckets: int) -> list[bytes]:
    """Return the same parts in so many buckets by their keys, each packed; an empty one is b""."""
    by_bucket: list[Parts] = [defaultdict(list) for _ in range(buckets)]
    for table, rows in parts.items():
        for row in rows:
            by_bucket[crc32(row[0]) % buckets][table].append(row)
    return [_PACK.encode(one) if one else b"" for one in by_bucket]


def joined(packed: Iterable[bytes]) -> Parts:
    """Return the parts of a bucket from wherever they were packed."""
    parts: Parts = defaultdict(list)
    for one in packed:
        for table, rows in _PARTS.decode(one).items():
            parts[table] += rows
    return parts


def folded(parts: Parts) -> Parts:
    """One row a key, sorted by key."""
    return {table: list(_folded(table, sorted(rows, key=_KEY))) for table, rows in parts.items()}


def _folded(table: str, rows: Sequence[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    kind = _KINDS.get(table)
    for _, same in groupby(rows, key=_KEY):
        first, *others = same
        if kind is None or not others:  # what has no kind is equal where its key is
            yield first
            continue
        yield from _packed(
            kind, fold_rows(kind, [_unpacked(kind, row) for _, row in (first, *others)])
        )


def _unpacked(kind: type[Any], row: bytes) -> tuple[Any, ...]:
    found: tuple[Any, ...] = kind(*_UNPACK.decode(row))
    return found
