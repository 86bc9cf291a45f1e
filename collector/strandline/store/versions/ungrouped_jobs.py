"""The tables behind an input that jobs of no group made."""

from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, select

from strandline.core.openlineage.names import id_of
from strandline.core.versions.facts import Table
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import job_groups
from strandline.store.schema.version_tables import group_jobs
from strandline.store.sql.id_lists import among_given


def tables_behind(connection: Connection, table: Table) -> tuple[Table, ...]:
    """Return what jobs of no group made a table from, through any number of such jobs.

    What jobs of a group made is not looked behind: their own commits tell which barriers it has.
    """
    behind: dict[int, Table] = {}
    ids = {id_of("dataset", *table)}
    while ids:
        rows = connection.execute(_sources(), {"tables": sorted(ids)}).all()
        found = {row.id: (row.namespace, row.name) for row in rows}
        ids = found.keys() - behind.keys()
        behind |= found
    return tuple(sorted(behind.values()))


@cache
def _sources() -> Select[Any]:
    written, source, canonical = (datasets.alias(name) for name in ("written", "source", "place"))
    named = datasets.alias("named")
    writes, reads = job_relations.alias("writes"), job_relations.alias("reads")
    grouped = select(job_groups.c.job_id).where(job_groups.c.group_name != "")
    return (
        select(canonical.c.id, canonical.c.namespace, canonical.c.name)
        .distinct()
        .select_from(named)
        .join(written, written.c.canonical_id == named.c.canonical_id)
        .join(writes, (writes.c.dataset_id == written.c.id) & (writes.c.direction == 1))
        .join(reads, (reads.c.job_id == writes.c.job_id) & (reads.c.direction == 0))
        .join(source, source.c.id == reads.c.dataset_id)
        .join(canonical, canonical.c.id == source.c.canonical_id)
        .where(among_given(named.c.id, "tables"), writes.c.ran == 1)
        .where(writes.c.job_id.not_in(select(group_jobs.c.job_id)))
        .where(writes.c.job_id.not_in(grouped))
    )
