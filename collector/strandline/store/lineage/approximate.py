"""Snapshots of which events hold only a double, and which match no id that their table has."""

from functools import cache

from sqlalchemy import BigInteger, Connection, TextClause, bindparam, func, select, text

from strandline.core.changes.extraction import SINK
from strandline.core.changes.snapshots import marked
from strandline.core.openlineage.names import id_of
from strandline.core.versions.facts import Table
from strandline.store.lineage.lookup import ids_of_names
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.snapshot_tables import snapshots
from strandline.store.schema.snapshot_views import snapshot_lineage_from

_OF_DATASET = (
    "SELECT * FROM snapshot_uses WHERE lossy = 1 AND dataset_id IN (SELECT id FROM datasets "
    "WHERE canonical_id = :id)"
)
BEFORE_ALL = -(2**63)


def approximate_ids(connection: Connection, dataset_id: int) -> set[str]:
    """Return the doubles, as stored, that runs read or made of a canonical dataset.

    Only those that match none of its ids.
    """
    rows = connection.execute(_unmatched(), {"id": dataset_id, "since": BEFORE_ALL})
    return {row.approximate_id for row in rows}


def newest_approximate(
    connection: Connection, dataset_id: int, since: int = BEFORE_ALL, until: int | None = None
) -> str | None:
    """Return the newest approximate snapshot after a moment, made by another, as answers show it.

    None if none was.
    """
    rows = connection.execute(_unmatched(), {"id": dataset_id, "since": since})
    by_then = [row for row in rows if row.direction == SINK and (until is None or row.at <= until)]
    written = [(row.at, row.approximate_id) for row in by_then]
    return marked(max(written)[1]) if written else None


def newer_approximate(connection: Connection, table: Table, snapshot_id: str) -> str | None:
    """The newest such snapshot that was made after a known one of the table; None if none was."""
    canonical = select(datasets.c.canonical_id).where(datasets.c.id == id_of("dataset", *table))
    is_snapshot = snapshots.c.dataset_id.in_(ids_of_names(table)) & (
        snapshots.c.snapshot_id == snapshot_id
    )
    since = connection.scalar(select(func.min(snapshots.c.first_at)).where(is_snapshot))
    dataset_id = connection.scalar(canonical)
    return (
        None
        if dataset_id is None or since is None
        else newest_approximate(connection, dataset_id, since)
    )


@cache
def _unmatched() -> TextClause:
    uses = snapshot_lineage_from(_OF_DATASET)
    query = (
        f"SELECT direction, approximate_id, at FROM ({uses}) "
        "AS used WHERE approximate_id IS NOT NULL AND at > :since"
    )
    return text(query).bindparams(
        bindparam("id", type_=BigInteger), bindparam("since", type_=BigInteger)
    )
