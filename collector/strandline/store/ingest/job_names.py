"""Families of jobs that are joined: one job, which is called by the pattern of their names.

Joined families are agreed on in the store, so that every writer names new events by them
(core/openlineage/names.py). What is stored under the jobs' own names is moved to the family's job
and folded there, as if all its events had named that. Runs stay as they are.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select, update

from strandline.core.changes.compact import MENTION_AT, fold_rows
from strandline.core.changes.rows import (
    FOLDS,
    BarrierSeen,
    FacetSeen,
    FacetSetUsed,
    JobRelation,
    JobSeen,
)
from strandline.core.job_families import is_pattern, pattern_of
from strandline.core.openlineage.names import LONGEST_NAMESPACE, id_of, namespace_id, stored_name
from strandline.errors import RefusedError
from strandline.store.ingest.name_patterns import Renaming
from strandline.store.ingest.retention import keep_writers_out
from strandline.store.lineage.hidden_nodes import deletions_of
from strandline.store.schema.annotation_tables import DELETED, TAG_GIVEN, annotation_id, annotations
from strandline.store.schema.run_tables import job_groups, jobs, run_parents, runs
from strandline.store.schema.tables import metadata
from strandline.store.schema.version_tables import group_jobs
from strandline.store.search.upkeep import index_again
from strandline.store.sql.id_lists import among
from strandline.store.sql.shared_settings import agree_on_families, agreed_naming
from strandline.store.sql.upsert import upsert

# In each the id of a job, or of any entity, is the first column, and a part of the key.
_KEYED_BY_JOB: tuple[type[Any], ...] = (JobRelation, BarrierSeen, FacetSeen, FacetSetUsed)
_NAMES_A_JOB = (
    *(runs.c.job_id, runs.c.least_start, runs.c.most_start, runs.c.least_later, runs.c.most_later),
    *(run_parents.c.parent_job_id, run_parents.c.root_job_id),
)


def planned_families(
    connection: Connection, namespace: str, patterns: Collection[str]
) -> list[Renaming]:
    """Return the jobs of a namespace that these patterns would join; change nothing.

    Raise RefusedError for what is no pattern, and for a job of a consistency group.
    """
    for pattern in patterns:
        if not is_pattern(pattern):
            raise RefusedError(
                f"{pattern!r} is not a pattern of job names: `strandline names jobs` lists them",
                code="pattern",
            )
    namespace = stored_name(namespace, LONGEST_NAMESPACE)
    query = select(jobs.c.id, jobs.c.name).where(jobs.c.namespace_id == namespace_id(namespace))
    plan = []
    for id_, name in connection.execute(query):
        pattern = pattern_of(name)
        if pattern in patterns and pattern != name:
            plan.append(Renaming(namespace, name, pattern, id_, id_of("job", namespace, pattern)))
    _refuse_groups(connection, plan)
    return sorted(plan)


def _refuse_groups(connection: Connection, plan: Sequence[Renaming]) -> None:
    """Raise RefusedError for a job whose name is part of what versions are computed from."""
    ids = {id_ for job in plan for id_ in (job.id, job.new_id)}
    in_group = or_(
        jobs.c.id.in_(select(job_groups.c.job_id)), jobs.c.id.in_(select(group_jobs.c.job_id))
    )
    query = select(jobs.c.namespace, jobs.c.name).where(among(jobs.c.id, ids), in_group)
    named = connection.execute(query.order_by(jobs.c.name).limit(1)).first()
    if named is not None:
        raise RefusedError(
            f"{named.namespace} {named.name}: is in a consistency group, whose versions know it by"
            " this name; let its application report one name (spark.strandline.job.removePattern)",
            code="groups",
        )


def apply_families(connection: Connection, namespace: str, patterns: Collection[str]) -> int:
    """Join what these patterns join, and name jobs by them from now on.

    Gives how many jobs were joined.
    """
    # A batch that had begun would name jobs as before, and nobody would join them.
    keep_writers_out(connection)
    plan = planned_families(connection, namespace, patterns)
    deleted = _deleted_families(connection, plan)
    members: dict[int, list[int]] = defaultdict(list)
    for job in plan:
        members[job.new_id].append(job.id)
    for new_id, ids in members.items():
        _move_references(connection, ids, new_id)
    new_id_of = {job.id: job.new_id for job in plan}
    _move_jobs(connection, plan)
    for kind in _KEYED_BY_JOB:
        _move_rows(connection, kind, new_id_of)
    _move_tags(connection, new_id_of)
    _delete_again(connection, deleted)
    index_again(connection, {*new_id_of, *new_id_of.values()})
    joined = {(stored_name(namespace, LONGEST_NAMESPACE), pattern) for pattern in patterns}
    agree_on_families(connection, agreed_naming(connection).families | joined)
    return len(plan)


def _deleted_families(connection: Connection, plan: Sequence[Renaming]) -> dict[int, int]:
    """Map the families of which every job is deleted to the newest of these deletions."""
    members: dict[int, set[int]] = defaultdict(set)
    for job in plan:
        members[job.new_id].add(job.id)
    for id_ in connection.scalars(select(jobs.c.id).where(among(jobs.c.id, members))):
        members[id_].add(id_)
    ids = {id_ for of_family in members.values() for id_ in of_family}
    deleted_at = {row.entity_id: row.at for row in connection.execute(deletions_of(ids))}
    return {
        new_id: max(deleted_at[id_] for id_ in of_family)
        for new_id, of_family in members.items()
        if of_family <= deleted_at.keys()
    }


def _delete_again(connection: Connection, deleted: Mapping[int, int]) -> None:
    """Note the deletion of jobs at these moments."""
    connection.execute(
        delete(annotations).where(
            among(annotations.c.entity_id, deleted), annotations.c.kind == DELETED
        )
    )
    for job_id, at in deleted.items():
        id_ = annotation_id(job_id, DELETED, "", "")
        own = {"entity_id": job_id, "kind": DELETED, "field": "", "name": "", "value": ""}
        connection.execute(insert(annotations).values(id=id_, at=at, **own))


def _move_references(connection: Connection, ids: Collection[int], new_id: int) -> None:
    """Let runs and their parents name another job."""
    for column in _NAMES_A_JOB:
        moved = update(column.table).where(among(column, ids))
        connection.execute(moved.values({column.name: new_id}))
    mentioned = (runs.c.job_at == MENTION_AT, among(runs.c.job_hash, ids))
    connection.execute(update(runs).where(*mentioned).values(job_hash=new_id))


def _move_jobs(connection: Connection, plan: Sequence[Renaming]) -> None:
    """Fold the rows of these jobs into that of each family."""
    new_of = {job.id: job for job in plan}
    columns = (jobs.c[name] for name in JobSeen._fields)
    rows = [
        JobSeen(*row)._replace(id=new_of[row.id].new_id, name=new_of[row.id].new_name)
        for row in connection.execute(select(*columns).where(among(jobs.c.id, new_of)))
    ]
    connection.execute(delete(jobs).where(among(jobs.c.id, new_of)))
    if rows:
        upsert(connection, JobSeen, fold_rows(JobSeen, rows))


def _move_rows(connection: Connection, kind: type[Any], new_id_of: dict[int, int]) -> None:
    """Fold the rows of a kind that have one of these ids into those of the new id."""
    table = metadata.tables[FOLDS[kind].table]
    of_job = table.c[kind._fields[0]]
    columns = (table.c[name] for name in kind._fields)
    rows = [
        kind(new_id_of[row[0]], *row[1:])
        for row in connection.execute(select(*columns).where(among(of_job, new_id_of)))
    ]
    connection.execute(delete(table).where(among(of_job, new_id_of)))
    if rows:
        upsert(connection, kind, fold_rows(kind, rows))


def _move_tags(connection: Connection, new_id_of: dict[int, int]) -> None:
    """Give the tags of these jobs to the job that they are now."""
    of_jobs = select(annotations).where(among(annotations.c.entity_id, new_id_of))
    rows = {}
    for row in connection.execute(of_jobs.where(annotations.c.kind == TAG_GIVEN)):
        new_id = new_id_of[row.entity_id]
        id_ = annotation_id(new_id, row.kind, row.field, row.name)
        rows[id_] = {**row._mapping, "id": id_, "entity_id": new_id}
    connection.execute(delete(annotations).where(among(annotations.c.entity_id, new_id_of)))
    there = select(annotations.c.id).where(among(annotations.c.id, rows))
    for id_ in connection.scalars(there):
        del rows[id_]
    if rows:
        connection.execute(insert(annotations), list(rows.values()))
