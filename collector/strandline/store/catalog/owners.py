"""The owners of datasets and jobs; a job without owners has those of its nearest parent."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, select

from strandline.core.openlineage.facets import DATASET, JOB
from strandline.core.openlineage.names import id_of
from strandline.core.wildcards import is_like
from strandline.store.catalog.runs import newest_run_ids
from strandline.store.lineage.hidden_nodes import seen_jobs
from strandline.store.lineage.hierarchy import LEVELS_ABOVE
from strandline.store.lineage.lookup import names_of_datasets
from strandline.store.schema.run_tables import run_parents
from strandline.store.sql.compression import expander
from strandline.store.sql.facet_rows import facet_rows, newest_rows, one_of
from strandline.store.sql.id_lists import among

Answer = dict[str, Any]
Owners = dict[int, list[str] | None]


def owners_of_jobs(
    connection: Connection, job_ids: Iterable[int], moment: int | None = None
) -> Owners:
    """Return the names of the owners of each job that has some, or a parent that has.

    At a moment None of a job whose owners a later event stated again.
    """
    owners: Owners = {}
    own = {job: job for job in job_ids}
    for _ in range(LEVELS_ABOVE):
        stated = _stated(connection, JOB, set(own.values()), moment)
        owners |= {
            job: stated[higher] for job, higher in own.items() if stated.get(higher, []) != []
        }
        left = {job: higher for job, higher in own.items() if job not in owners}
        parents = _parents(connection, set(left.values()), moment) if left else {}
        own = {job: parents[higher] for job, higher in left.items() if higher in parents}
        if not own:
            break
    return owners


def owners_of_datasets(
    connection: Connection, ids: Collection[int], moment: int | None = None
) -> Owners:
    """Return the owners that canonical datasets have under any of their names.

    At a moment None of one whose owners a later event stated again.
    """
    canonical = names_of_datasets(connection, ids)
    owners: Owners = {}
    for id_, names in _stated(connection, DATASET, canonical, moment).items():
        dataset = canonical[id_]
        others = owners.get(dataset, [])
        if names is None or others is None:
            owners[dataset] = None
        else:
            owners[dataset] = sorted({*names, *others})
    return owners


def _stated(connection: Connection, kind: int, ids: Iterable[int], moment: int | None) -> Owners:
    """Return the owners in the newest facet of each; None of one that is newer than the moment."""
    expanded = expander()
    rows = connection.execute(select(facet_rows(one_of(ids), (kind,), one_of(["ownership"]))))
    owners: Owners = {}
    for row in newest_rows(rows):
        if moment is not None and row.at > moment:
            owners[row.entity_id] = None
        elif not row.deleted and row.content is not None:
            owners[row.entity_id] = owner_names(orjson.loads(expanded(row.content)))
    return owners


def owned(
    connection: Connection, nodes: Sequence[Answer], patterns: Collection[str]
) -> list[Answer]:
    """Return the datasets and jobs that one of these owns; `*` stands for anything."""
    jobs = {
        id_of("job", node["namespace"], node["name"]): node["id"]
        for node in nodes
        if node["type"] == "job"
    }
    owners = {jobs[job]: names or [] for job, names in owners_of_jobs(connection, jobs).items()}
    tables = {
        id_of("dataset", node["namespace"], node["name"]): node["id"]
        for node in nodes
        if node["type"] == "dataset"
    }
    stated = owners_of_datasets(connection, tables)
    owners |= {tables[table]: names or [] for table, names in stated.items()}
    return [
        node
        for node in nodes
        if any(
            is_like(name, pattern) for name in owners.get(node["id"], ()) for pattern in patterns
        )
    ]


def owner_names(ownership: Any) -> list[str]:
    """Return the names in an ownership facet, each once."""
    owners = ownership.get("owners") if isinstance(ownership, Mapping) else None
    named = (
        [owner for owner in owners if isinstance(owner, Mapping)]
        if isinstance(owners, list)
        else []
    )
    return sorted({str(owner["name"]) for owner in named if owner.get("name")})


def _parents(
    connection: Connection, job_ids: Collection[int], moment: int | None
) -> dict[int, int]:
    """Return the job above the latest run of each of these jobs, if the key sees it."""
    latest = newest_run_ids(connection, list(job_ids), moment)
    job_of = {run: job for job, run in latest.items()}
    query = select(run_parents.c.run_id, run_parents.c.parent_job_id)
    rows = connection.execute(query.where(among(run_parents.c.run_id, job_of))).all()
    visible = seen_jobs(connection, (row.parent_job_id for row in rows))
    return {job_of[run]: parent for run, parent in rows if parent in visible}
