"""Answers to which names are one dataset, and which jobs may be one."""

from sqlalchemy import select

from strandline.core.job_families import families_of
from strandline.questions.catalog import JoinedNamesQuery, SimilarJobsQuery
from strandline.questions.reader import Answer, Reader
from strandline.store.lineage.joined_names import joined_count, joined_names
from strandline.store.schema.run_tables import jobs
from strandline.store.sql.engine import read_from
from strandline.store.sql.shared_settings import agreed_naming, strip_patterns


def names(reader: Reader, query: JoinedNamesQuery) -> Answer:
    """Return a page of the datasets that have several names, and the rules that join names.

    `joined` is the number of names that are further names of another one's dataset.
    """
    with reader.connected() as connection:
        joined, cursor = joined_names(connection, query.limit, query.cursor)
        count = joined_count(connection)
    with read_from(reader.whole_engine) as connection:
        patterns, naming = strip_patterns(connection), agreed_naming(connection)
    return {
        "items": [
            {
                "namespace": dataset.namespace,
                "name": dataset.name,
                "alsoCalled": [other._asdict() for other in dataset.others],
            }
            for dataset in joined
        ],
        "nextCursor": cursor,
        "joined": count,
        "patterns": patterns,
        "families": [
            {"namespace": namespace, "pattern": pattern}
            for namespace, pattern in sorted(naming.families)
            if reader.access.allows(namespace)
        ],
    }


def similar_jobs(reader: Reader, query: SimilarJobsQuery) -> Answer:
    """Return the families of job names that differ only in a date, an id or a number."""
    named = select(jobs.c.namespace, jobs.c.name)
    if query.namespace is not None:
        named = named.where(jobs.c.namespace == query.namespace)
    with reader.connected() as connection:
        rows = connection.execute(named).all()
    families = families_of((row.namespace, row.name) for row in rows)
    return {
        "items": [
            {
                "namespace": family.namespace,
                "pattern": family.pattern,
                "jobs": len(family.names),
                "sure": family.is_sure,
                "example": family.names[0],
            }
            for family in families[: query.limit]
        ],
        "complete": len(families) <= query.limit,
    }
