"""Tables that were registered over REST before any event named them.

Kept by catalog, database and table.

The first dataset there gives such a table its name.
"""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, select

from strandline.core.openlineage.names import TableName, id_of, place_id
from strandline.core.versions.facts import BarrierCommitted, Fact, RunStarted, Table, TableFound
from strandline.core.versions.model import Model
from strandline.store.schema.dataset_tables import datasets

UNNAMED = "strandline:place"  # the namespace of tables that no event has named


def unnamed(place: TableName) -> Table:
    """The name of a table that has only a place.

    Its parts with the separator that no part can hold.
    """
    return (UNNAMED, "\x1f".join(place))


def places_waiting(model: Model) -> dict[int, Table]:
    """The registered places that no event has named yet, by their ids."""
    named = (
        (namespace, name)
        for registration in model.registered.values()
        for namespace, name in registration.tables.reads | registration.tables.writes
        if namespace == UNNAMED
    )
    return {
        place_id(TableName(*name.split("\x1f"))): (namespace, name) for namespace, name in named
    }


def tables_found(
    connection: Connection, waiting: Mapping[int, Table], facts: Iterable[Fact]
) -> list[TableFound]:
    """Return which registered places the tables of new facts are at."""
    if not waiting:
        return []
    named = {table for fact in facts for table in _tables(fact)}
    ids = {id_of("dataset", *table): table for table in named}
    query = select(datasets.c.id, datasets.c.place_id).where(
        datasets.c.id.in_(ids), datasets.c.place_id.in_(waiting)
    )
    return [TableFound(waiting[row.place_id], ids[row.id]) for row in connection.execute(query)]


def _tables(fact: Fact) -> Iterable[Table]:
    match fact:
        case RunStarted():
            return (*fact.reads, *fact.writes)
        case BarrierCommitted():
            return (
                *(written.table for written in fact.written),
                *(used.table for used in fact.used),
            )
    return ()
