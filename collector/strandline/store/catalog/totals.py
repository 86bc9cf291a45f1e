"""The numbers of datasets and jobs that lists show in all."""

from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, and_, func, not_, select

from strandline.core.changes.extraction import SINK
from strandline.core.openlineage.run_states import COMPLETE
from strandline.store.catalog.lists import is_shown, never_made
from strandline.store.lineage.nested_commands import IS_NAMED_AS_INNER, nested_jobs
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.namespaces_like import in_namespaces


def count_datasets(connection: Connection, namespace: str | None) -> int:
    """Count the datasets in the namespaces of a pattern, each once."""
    own = datasets.c.id == datasets.c.canonical_id
    in_these = and_(own, *in_namespaces(connection, datasets, namespace))
    unsure = written_by_others().where(
        datasets.c.canonical_id.in_(select(datasets.c.id).where(in_these))
    )
    hidden = never_made(connection, connection.scalars(unsure).all())
    return _count(connection, select(datasets.c.id).where(in_these)) - len(hidden)


def count_jobs(connection: Connection, namespace: str | None) -> int:
    """Count the jobs in the namespaces of a pattern."""
    in_these = and_(is_shown, *in_namespaces(connection, jobs, namespace))
    commands = connection.execute(inner_commands().where(in_these)).all()
    hidden = nested_jobs(connection, [(row.id, row.name) for row in commands])
    return _count(connection, select(jobs.c.id).where(in_these)) - len(hidden)


def _count(connection: Connection, query: Select[Any]) -> int:
    return connection.execute(select(func.count()).select_from(query.subquery())).scalar_one()


@cache
def written_by_others() -> Select[Any]:
    """Select the datasets that a run wrote last which told no COMPLETE of its own."""
    of = job_relations.c
    completed = and_(runs.c.state == COMPLETE, runs.c.ended_at.is_not(None))
    newest = select(of.run_id).where(of.direction == SINK)
    others = select(runs.c.id).where(runs.c.id.in_(newest), not_(completed))
    return (
        select(datasets.c.canonical_id)
        .join(job_relations, of.dataset_id == datasets.c.id)
        .where(of.direction == SINK, of.run_id.in_(others))
    )


@cache
def inner_commands() -> Select[Any]:
    """Select the jobs whose runs may be a part of another's command, by their names."""
    return select(jobs.c.id, jobs.c.name).where(IS_NAMED_AS_INNER)
