"""The owners of datasets and jobs; a job without owners has those of its nearest parent."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from strandline.core.openlineage.facets import JOB
from strandline.core.openlineage.names import id_of
from strandline.core.wildcards import is_like
from strandline.store.catalog.newest_runs import newest_run_ids
from strandline.store.lineage.facets import values_among
from strandline.store.lineage.hidden_nodes import seen_jobs
from strandline.store.lineage.node_facets import facets_of_nodes
from strandline.store.lineage.parents import LEVELS
from strandline.store.schema.run_tables import run_parents
from strandline.store.sql.id_lists import among

Answer = dict[str, Any]


def owners_of_jobs(connection: Connection, job_ids: Iterable[int]) -> dict[int, list[str]]:
    """Return the names of the owners of each job that has some, or a parent that has."""
    owners: dict[int, list[str]] = {}
    asked = {job: job for job in job_ids}
    for _ in range(LEVELS):
        facets = dict(values_among(connection, JOB, set(asked.values()), "ownership"))
        owners |= {
            job: names
            for job, higher in asked.items()
            if (names := owner_names(facets.get(higher)))
        }
        left = {job: higher for job, higher in asked.items() if job not in owners}
        parents = _parents(connection, set(left.values())) if left else {}
        asked = {job: parents[higher] for job, higher in left.items() if higher in parents}
        if not asked:
            break
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
    owners = {jobs[job]: names for job, names in owners_of_jobs(connection, jobs).items()}
    datasets = [node for node in nodes if node["type"] == "dataset"]
    for id_, facets in facets_of_nodes(connection, datasets, "ownership").items():
        owners[id_] = [name for facet in facets for name in owner_names(facet)]
    return [
        node
        for node in nodes
        if any(is_like(name, one) for name in owners.get(node["id"], ()) for one in patterns)
    ]


def owner_names(ownership: Any) -> list[str]:
    """Return the names in an ownership facet, each once."""
    owners = ownership.get("owners") if isinstance(ownership, Mapping) else None
    named = [one for one in owners if isinstance(one, Mapping)] if isinstance(owners, list) else []
    return sorted({str(one["name"]) for one in named if one.get("name")})


def _parents(connection: Connection, job_ids: Iterable[int]) -> dict[int, int]:
    """Return the job above the latest run of each of these jobs, if the key sees it."""
    job_of = {run: job for job, run in newest_run_ids(connection, list(job_ids)).items()}
    query = select(run_parents.c.run_id, run_parents.c.parent_job_id)
    rows = connection.execute(query.where(among(run_parents.c.run_id, job_of))).all()
    seen = seen_jobs(connection, (row.parent_job_id for row in rows))
    return {job_of[run]: parent for run, parent in rows if parent in seen}
