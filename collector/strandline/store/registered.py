"""Jobs that were registered over REST: their runs, which may announce nothing themselves, and tables not seen before.

A table that no event has named yet is kept by its catalog, database and table; the first dataset there gives the name.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from strandline.core.barriers import BarrierCommitted, Fact, RunStarted, Table, TableFound
from strandline.core.model import Model
from strandline.core.naming import Place, id_of, place_id
from strandline.store.tables import datasets, runs
from strandline.store.version_log import RUN, News

MICRO = 1_000_000
UNNAMED = "strandline:place"  # the namespace of tables that no event has named


def unnamed(place: Place) -> Table:
    """The name of a table that has only a place: its parts with the separator that no part can hold."""
    return (UNNAMED, "\x1f".join(place))


def registered_news(connection: Connection, model: Model) -> list[News]:
    """Runs of registered jobs that the model has not heard of, or not of their end."""
    jobs = {id_of("job", *job): job for job in model.registered}
    if not jobs:
        return []
    query = select(runs.c.id, runs.c.job_id, runs.c.run_id, runs.c.started_at, runs.c.ended_at).where(
        runs.c.job_id.in_(jobs), runs.c.started_at.is_not(None)
    )
    return [
        News(0, RUN, row.id, 0)
        for row in connection.execute(query)
        if model.is_news(jobs[row.job_id], row.run_id, row.started_at / MICRO, row.ended_at is not None)
    ]


def tables_found(connection: Connection, model: Model, facts: Iterable[Fact]) -> list[TableFound]:
    """Which registered places the tables of new facts are at."""
    waiting = {place_id(Place(*name.split("\x1f"))): (UNNAMED, name) for name in _waiting(model)}
    if not waiting:
        return []
    named = {table for fact in facts for table in _tables(fact)}
    ids = {id_of("dataset", *table): table for table in named}
    query = select(datasets.c.id, datasets.c.place_id).where(datasets.c.id.in_(ids), datasets.c.place_id.in_(waiting))
    return [TableFound(waiting[row.place_id], ids[row.id]) for row in connection.execute(query)]


def _waiting(model: Model) -> Iterable[str]:
    for registration in model.registered.values():
        for namespace, name in registration.tables.reads | registration.tables.writes:
            if namespace == UNNAMED:
                yield name


def _tables(fact: Fact) -> Iterable[Table]:
    match fact:
        case RunStarted():
            return (*fact.reads, *fact.writes)
        case BarrierCommitted():
            return (*(made.table for made in fact.made), *(used.table for used in fact.used))
    return ()
