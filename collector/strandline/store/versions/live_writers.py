"""Streaming jobs that write a table right now, tracked or not.

The model of versions knows those alone that are tracked.
"""

from sqlalchemy import BigInteger, Connection, column, select, table

from strandline.core.changes.extraction import SINK
from strandline.core.openlineage.names import id_of
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.model import Model
from strandline.errors import RefusedError
from strandline.store.lineage.lookup import ids_of_names
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.each import of_each

run_lives = table("run_lives", *(column(name, BigInteger) for name in ("run_id", "job_id", "live")))


def refuse_live_writers(connection: Connection, model: Model, job: Job, wanted: Table) -> None:
    """Raise a RefusedError (writer) where another streaming job writes the table now.

    A batch job may: several of them may share a table.
    """
    lives = of_each(connection.dialect.name, run_lives, runs.c.id)
    query = (
        select(jobs.c.name)
        .select_from(job_relations)
        .join(runs, runs.c.id == job_relations.c.run_id)
        .join(lives, lives.c.run_id == runs.c.id)
        .join(jobs, jobs.c.id == lives.c.job_id)
        .where(
            job_relations.c.dataset_id.in_(ids_of_names(wanted)), job_relations.c.direction == SINK
        )
        .where(runs.c.streaming == 1, lives.c.live == 1, jobs.c.id != id_of("job", *job))
        .order_by(jobs.c.namespace, jobs.c.name)
        .limit(1)
    )
    writer = connection.scalar(query)
    if writer is not None:
        raise RefusedError(f"{model.call(wanted)}: is written by job {writer} (running)", "writer")
