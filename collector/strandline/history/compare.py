"""Comparing two stores row by row.

Every table that is a fold over events, whichever databases hold them.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Engine, FromClause, Text, collate, select, text

from strandline.core.changes.rows import FOLDS, QUARANTINED
from strandline.core.openlineage.facets import DATASET, INPUT, JOB, OUTPUT, RUN
from strandline.store.schema.dataset_tables import facet_bodies, facet_sets, facet_uses, facets
from strandline.store.schema.relation_tables import table_or_view
from strandline.store.sql.compression import expand
from strandline.store.sql.engine import reading
from strandline.store.sql.facet_rows import any_value, facet_rows

AT_ONCE = 5_000
ANY_KIND = tuple(
    kind + apart for kind in (RUN, JOB, DATASET, INPUT, OUTPUT) for apart in (0, QUARANTINED)
)
# Whether a facet has a row of its own, and where its body is, depends on what its writer had seen:
# facets are compared as they are read, whichever way they are stored.
WAYS_OF_FACETS = frozenset((facet_sets.name, facet_uses.name, facet_bodies.name))
_KEYS = {fold.table: fold.key for fold in FOLDS.values()}
TABLES = tuple(sorted(_KEYS.keys() - WAYS_OF_FACETS))
# Content that is stored once stays until retention takes it though nobody refers to it any more:
# how much of it there is depends on how events were cut into batches, and nothing is answered from
# it.
REFERRED_TO = {
    "edge_columns": "EXISTS (SELECT 1 FROM run_edges WHERE run_edges.set_hash = "
    "edge_columns.set_hash)",
}
PACKED = frozenset(("content", "columns", "facet"))
Row = tuple[Any, ...]


def differences(engine: Engine, other: Engine) -> dict[str, int]:
    """Return how many rows of each table differ or are in one store only.

    Equal tables are left out.
    """
    with reading(engine).connect() as first, reading(other).connect() as second:
        counts = {name: _differing(name, first, second) for name in TABLES}
    return {name: count for name, count in counts.items() if count}


def _differing(table: str, first: Connection, second: Connection) -> int:
    """Walk both in the order of their keys, a page in memory."""
    ours, theirs = _rows(first, table), _rows(second, table)
    left, right = next(ours, None), next(theirs, None)
    count = 0
    while left is not None or right is not None:
        count += left != right
        if right is None or (left is not None and left[0] < right[0]):
            left = next(ours, None)
        elif left is None or right[0] < left[0]:
            right = next(theirs, None)
        else:
            left, right = next(ours, None), next(theirs, None)
    return count


def _as_read(table: str) -> FromClause:
    """Return the source of a table's rows, whichever way they are stored."""
    return facet_rows(any_value, ANY_KIND) if table == facets.name else table_or_view(table)


def _rows(connection: Connection, table: str) -> Iterator[tuple[Row, Row]]:
    """Key and row, in the order of keys, which both databases have by bytes."""
    source = _as_read(table)
    on_postgresql = connection.dialect.name == "postgresql"
    keys = [source.c[name] for name in _KEYS[table]]
    order = [
        collate(key, "C") if on_postgresql and isinstance(key.type, Text) else key for key in keys
    ]
    newest = (
        (source.c.at, source.c.hash) if table == facets.name else ()
    )  # the last of each key counts
    query = select(source).where(text(REFERRED_TO.get(table, "1 = 1"))).order_by(*order, *newest)
    query = query.execution_options(stream_results=True, yield_per=AT_ONCE)
    compared = sorted(source.c.keys())
    last: tuple[Row, Row] | None = None
    for found in connection.execute(query):
        by_name = {
            name: _plain(name, value) for name, value in zip(source.c.keys(), found, strict=True)
        }
        row = (
            tuple(_ordered(by_name[key.name]) for key in keys),
            tuple(by_name[name] for name in compared),
        )
        if last is not None and last[0] != row[0]:
            yield last
        last = row
    if last is not None:
        yield last


def _plain(name: str, value: Any) -> Any:
    """Return a value as both databases have it; a body as it came, whichever way it is packed."""
    if not isinstance(value, bytes | memoryview):
        return value
    return expand(bytes(value)) if name in PACKED else bytes(value)


def _ordered(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
