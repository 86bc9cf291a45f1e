"""Tables that were dropped and created anew under their name.

The numbers of their snapshots begin again. Delta counts the versions of a table from 0, and only
its creation makes version 0. So where a creation reports that one, a greater version that was
reported only before is of another table, which is gone. Iceberg's ids come never again.
"""

from sqlalchemy import ColumnElement, Connection, Select, func, or_, select, true

from strandline.core.changes.extraction import SINK
from strandline.core.openlineage.run_states import COMPLETE
from strandline.store.lineage.lookup import ids_of_names
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import runs
from strandline.store.schema.snapshot_tables import snapshot_uses, snapshots

FIRST = "0"


def is_of_this_table(connection: Connection, names: Select[int]) -> ColumnElement[bool]:
    """The condition that a row of `snapshots` is of the table that there is now; names.

    The ids under which it is known.
    """
    since = connection.scalar(_created_at(names))
    if since is None:
        return true()
    return or_(snapshots.c.at >= since, snapshots.c.snapshot_id == FIRST)


def created_at(connection: Connection, table: tuple[str, str]) -> int | None:
    """Return since when a table, under any of its names, is the present one.

    None where that is not known.
    """
    return connection.scalar(_created_at(ids_of_names(table)))


def _created_at(names: Select[int]) -> Select[int]:
    """Return when a creation reported version 0 last."""
    born, creating = snapshot_uses, relations
    same = (
        creating.c.run_id == born.c.run_id,
        creating.c.direction == born.c.direction,
        creating.c.dataset_id == born.c.dataset_id,
    )
    return (
        select(func.max(born.c.at))
        .join(creating, same[0] & same[1] & same[2])
        .join(runs, runs.c.id == born.c.run_id)
        .where(born.c.dataset_id.in_(names), born.c.snapshot_id == FIRST, born.c.direction == SINK)
        .where(creating.c.creates == 1, runs.c.state == COMPLETE, runs.c.streaming == 0)
    )
