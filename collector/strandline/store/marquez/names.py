"""Namespaces and sources, and the moments from which things are known."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, exists, func, literal, or_, select

from strandline.core.openlineage.names import LONGEST_NAMESPACE, id_of, stored_name
from strandline.errors import NotFoundError
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import jobs, namespaces, runs
from strandline.store.sql.id_lists import among

DEFAULT = "default"


def namespaces_page(connection: Connection, limit: int, offset: int) -> Sequence[tuple[int, str]]:
    """Return (id, name) of the namespaces of jobs and datasets, and of `default`, by name.

    One that has only other names of datasets is left out: its list of datasets is empty. So is the
    one without a name, which Flink gives: Marquez refuses it, and its page, which begins with the
    first of these, then lists nothing at all.
    """
    always = select(
        literal(id_of("namespace", DEFAULT)).label("id"), literal(DEFAULT).label("name")
    )
    has_jobs = exists().where(jobs.c.namespace_id == namespaces.c.id)
    has_datasets = exists().where(
        datasets.c.namespace_id == namespaces.c.id, datasets.c.id == datasets.c.canonical_id
    )
    own = select(namespaces.c.id, namespaces.c.name).where(
        or_(has_jobs, has_datasets), namespaces.c.name != ""
    )
    every = own.union(always).subquery("every")
    page = select(every).order_by(every.c.name).limit(limit).offset(offset)
    return [(row.id, row.name) for row in connection.execute(page)]


def namespace_called(connection: Connection, name: str) -> tuple[int, str]:
    """(id, name) of a namespace; a NotFoundError for one that is unknown.

    `default` is never: Marquez always has it.
    """
    stored = stored_name(name, LONGEST_NAMESPACE)
    id_ = id_of("namespace", stored)
    known = connection.scalar(select(namespaces.c.id).where(namespaces.c.id == id_))
    if known is None and stored != DEFAULT:
        raise NotFoundError(f"unknown namespace: {name!r}")
    return id_, stored


def namespace_spans(connection: Connection, ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Map each namespace to the moments at which something of it was first and last heard of."""
    by_namespace: dict[int, tuple[int, int]] = {}
    wanted = list(ids)
    for table in (jobs, datasets):
        spans = select(
            table.c.namespace_id, func.min(table.c.first_at), func.max(table.c.newest_at)
        )
        _widen(
            by_namespace,
            connection.execute(
                spans.where(among(table.c.namespace_id, wanted)).group_by(table.c.namespace_id)
            ),
        )
    return by_namespace


def _widen(spans: dict[int, tuple[int, int]], rows: Iterable[Any]) -> None:
    for id_, first, last in rows:
        if first is not None:
            span = spans.get(id_, (first, last))
            spans[id_] = min(span[0], first), max(span[1], last)


def first_mentions(
    connection: Connection, job_ids: Iterable[int], groups: Mapping[int, int]
) -> dict[int, int]:
    """Return when those jobs and datasets were mentioned that no event is about.

    That is as a parent, in an edge, or as another name.
    """
    moments: dict[int, int] = {}
    wanted = list(job_ids)
    parents = select(runs.c.job_id, func.min(runs.c.child_received_at)).where(
        among(runs.c.job_id, wanted)
    )
    queries = [parents.group_by(runs.c.job_id)] if wanted else []
    if groups:
        edges = select(job_relations.c.dataset_id, func.min(job_relations.c.at))
        queries.append(
            edges.where(among(job_relations.c.dataset_id, groups)).group_by(
                job_relations.c.dataset_id
            )
        )
    for query in queries:
        for id_, at in connection.execute(query):
            of = groups.get(id_, id_)
            moments[of] = min(at, moments.get(of, at))
    return moments


def sources_page(connection: Connection) -> list[tuple[str, int, int]]:
    """(namespace, first_at, newest_at) of every namespace with a name that has datasets.

    Each is a source of its own.
    """
    query = (
        select(datasets.c.namespace, func.min(datasets.c.first_at), func.max(datasets.c.newest_at))
        .where(datasets.c.first_at.is_not(None), datasets.c.namespace != "")
        .group_by(datasets.c.namespace)
    )
    return [(name, first, last) for name, first, last in connection.execute(query)]
