"""The tables in which micro-batches looked rows up: read as they were then, and not as streams."""

from collections.abc import Collection

import orjson
from sqlalchemy import Connection, select

from strandline.core.openlineage.names import id_of
from strandline.core.versions.facts import Table
from strandline.store.schema.snapshot_tables import job_barriers
from strandline.store.sql.compression import expand
from strandline.store.sql.id_lists import among_given


def lookups_in(facet: bytes) -> frozenset[Table]:
    """Return the lookups that a stored barrier facet names."""
    try:
        lookups = orjson.loads(expand(facet)).get("lookups") or ()
        return frozenset((str(lookup["namespace"]), str(lookup["name"])) for lookup in lookups)
    except (ValueError, TypeError, KeyError, AttributeError):
        return frozenset()


def lookups_of(connection: Connection, runs: Collection[int]) -> dict[tuple[int, int], set[int]]:
    """Return the datasets that these runs looked up, as named, by run and barrier."""
    stored = job_barriers.c
    query = select(stored.run_id, stored.barrier, stored.facet)
    rows = connection.execute(query.where(among_given(stored.run_id, "runs")), {"runs": list(runs)})
    datasets_of: dict[tuple[int, int], set[int]] = {}
    for run, barrier, facet in rows:
        if tables := lookups_in(facet):
            datasets_of[run, barrier] = {id_of("dataset", *table) for table in tables}
    return datasets_of
