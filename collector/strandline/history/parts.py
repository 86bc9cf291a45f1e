"""Events as rows of the store's tables, made and folded anywhere in any order.

Spark's Python workers run this.

The rules are those of the live collector (`core/changes`): an event becomes changes, changes become
rows, and rows of one key are folded by the declarations in `core/changes/rows.FOLDS`. Folding is
associative, so a worker folds what it has, and what several workers made of one key is folded again
after the shuffle.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from strandline.core.changes.compact import compact, fold_rows, key_of
from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import Stamp
from strandline.core.changes.lineage import EventChange
from strandline.core.changes.memory import NameBefore
from strandline.core.changes.rows import FOLDS, Change
from strandline.core.openlineage.events import decoded
from strandline.core.openlineage.names import DEFAULT_NAMING, Naming
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
_PAGE = msgspec.msgpack.Decoder(list[tuple[Any, ...]])
_KINDS: dict[str, type[Change]] = {fold.table: kind for kind, fold in FOLDS.items()}
_TABLE, _KEY = itemgetter(0), itemgetter(1)
PER_PAGE = 200  # rows

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
    events: Iterable[ArchivedEvent],
    naming: Naming = DEFAULT_NAMING,
    shared_runs: Collection[int] = (),
    names_before: Iterable[NameBefore] = (),
) -> Iterator[Parts]:
    """Yield the rows that events leave, folded as far as they come together.

    What is no event gives a part of `REFUSED`.
    """
    caches = Caches(naming)
    caches.memory.share_runs(shared_runs)
    caches.memory.learn_names_before(names_before)
    remaining = iter(events)
    while some := list(islice(remaining, AT_ONCE)):
        with no_search_for_cycles():
            parts = _parts_of(some, caches)
        yield parts


def _parts_of(events: Sequence[ArchivedEvent], caches: Caches) -> Parts:
    changes: list[EventChange] = []
    refused: list[tuple[bytes, bytes]] = []
    for content in events:
        try:
            event, _ = decoded(content.body)
            stamp = Stamp.of(event.at, content.hash, content.received_at)
            changes += changes_of(event, stamp, caches.memory).changes
        except Exception as error:  # noqa: BLE001 - one unreadable event must not end the rebuild of all others
            refused.append((content.hash, _PACK.encode((content.hash, repr(error)[:500]))))
    rows = only_news(compact(changes, caches.shared_facets), caches)
    caches.commit()  # a task that ends leaves all its rows: what one part has said needs no other
    parts = {FOLDS[kind].table: _packed(kind, row) for kind, row in rows.items()}
    unread = {
        hash_ for hash_, _ in refused
    }  # a later version that reads them may take them: they are not known
    parts[KNOWN] = [
        (event.hash, _PACK.encode((event.hash, event.received_at)))
        for event in events
        if event.hash not in unread
    ]
    return parts | {REFUSED: refused} if refused else parts


def _packed(kind: type[Change], rows: Sequence[tuple[Any, ...]]) -> list[tuple[bytes, bytes]]:
    pack = _PACK.encode
    return [(pack(key_of(kind, row)), pack(row)) for row in rows]


def pages_of(rows: Iterable[tuple[str, bytes, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield one row a key in pages of one table, each packed.

    Args:
        rows: table, key and row, both packed, in the order of tables and keys.
    """
    for table, same in groupby(rows, key=_TABLE):
        remaining = _folded(table, same)
        while page := [msgspec.Raw(row) for row in islice(remaining, PER_PAGE)]:
            yield table, _PACK.encode(page)


def rows_in(page: bytes) -> list[tuple[Any, ...]]:
    """Return the rows of a page."""
    return _PAGE.decode(page)


def _folded(table: str, rows: Iterable[tuple[str, bytes, bytes]]) -> Iterator[bytes]:
    kind = _KINDS.get(table)
    for _, same in groupby(rows, key=_KEY):
        first, *others = (row for _, _, row in same)
        if kind is None or not others:  # what has no kind is equal where its key is
            yield first
            continue
        rows_of_key = [_unpacked(kind, row) for row in (first, *others)]
        yield from map(_PACK.encode, fold_rows(kind, rows_of_key))


def _unpacked(kind: type[Any], row: bytes) -> tuple[Any, ...]:
    unpacked: tuple[Any, ...] = kind(*_UNPACK.decode(row))
    return unpacked
