"""What a key does not see of a graph.

The nodes beside those that it is shown are counted, and never named.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, Select, func, select

from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import jobs
from strandline.store.sql.id_lists import among
from strandline.store.sql.narrowed import access_of


def seen_jobs(connection: Connection, job_ids: Iterable[int]) -> set[int]:
    """Those of these jobs that the connection's key sees."""
    wanted = set(job_ids)
    if access_of(connection).everything or not wanted:
        return wanted
    return set(connection.scalars(select(jobs.c.id).where(among(jobs.c.id, wanted))))


def seen_datasets(connection: Connection, dataset_ids: Iterable[int]) -> set[int]:
    """Those of these datasets that the connection's key sees."""
    wanted = set(dataset_ids)
    if access_of(connection).everything or not wanted:
        return wanted
    return set(connection.scalars(select(datasets.c.id).where(among(datasets.c.id, wanted))))


def hidden_beside(connection: Connection, shown: Iterable[int]) -> int:
    """How many datasets and jobs that the key does not see were ever named together with these nodes."""
    nodes = set(shown)
    if access_of(connection).everything or not nodes:
        return 0
    return sum(
        connection.scalar(query) or 0 for query in (_datasets_beside(nodes), _jobs_beside(nodes))
    )


def _datasets_beside(nodes: set[int]) -> Select[int]:
    unseen = ~select(datasets.c.id).where(datasets.c.id == job_relations.c.dataset_id).exists()
    return select(func.count(job_relations.c.dataset_id.distinct())).where(
        among(job_relations.c.job_id, nodes), unseen
    )


def _jobs_beside(nodes: set[int]) -> Select[int]:
    names = select(datasets.c.id).where(among(datasets.c.canonical_id, nodes))
    unseen = ~select(jobs.c.id).where(jobs.c.id == job_relations.c.job_id).exists()
    return select(func.count(job_relations.c.job_id.distinct())).where(
        job_relations.c.dataset_id.in_(names), unseen
    )
