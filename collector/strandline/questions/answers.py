"""Answers to questions, from a reader of the store and a query model."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError
from sqlalchemy import Connection

from strandline.core.openlineage.times import micros_of
from strandline.core.walk import Direction
from strandline.errors import ParameterError
from strandline.questions import lineage
from strandline.questions.catalog import (
    JoinedNamesQuery,
    NodeListQuery,
    OfJobQuery,
    PartsQuery,
    RunListQuery,
    SearchQuery,
    SimilarJobsQuery,
)
from strandline.questions.names import names, similar_jobs
from strandline.questions.parameters import reason_of
from strandline.questions.reader import Answer, Reader
from strandline.questions.received import EventsQuery, RejectedQuery
from strandline.questions.version_answers import delays, expirable, version_of
from strandline.questions.versions import DelaysQuery, ExpirableQuery, Versions
from strandline.store.catalog import lists
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.received import event_answer, event_filter, events_page
from strandline.store.catalog.rejections import rejection_kinds
from strandline.store.catalog.runs import runs_page
from strandline.store.catalog.search import search_page
from strandline.store.ingest.archived import archived_answer
from strandline.store.lineage.lookup import Node, dataset_of, job_called, job_of
from strandline.store.lineage.snapshot_lineage import snapshot_lineage_of
from strandline.store.lineage.table_snapshots import snapshot_answer, snapshots_of
from strandline.store.sql.engine import read_from

DUMPED = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z


def answer_of(reader: Reader, path: str, parameters: Mapping[str, Any]) -> Answer:
    """Return the answer of a path below /api/v2; None is a parameter that was not given."""
    model, answer = ANSWERED[path]
    stated = {name: value for name, value in parameters.items() if value is not None}
    try:
        query = model.model_validate(stated)
    except ValidationError as error:
        fault = error.errors()[0]
        names = [f"parameter {name} " for name in fault["loc"][:1]]
        raise ParameterError(f"{''.join(names)}{reason_of(fault)}") from None
    return answer(reader, query)


def datasets(reader: Reader, query: NodeListQuery) -> Answer:
    """Return a page of datasets with their lags, and on the first how many there are."""
    filters = _filter(query, reader)
    with reader.connected() as connection:
        page = lists.datasets_page(connection, filters, reader.micros, query.limit, query.cursor)
        if _has_total(page, query, filters):
            page["total"] = lists.count_datasets(connection, query.namespace)
    with reader.follower.question(reader.access) as (connection, model):
        lists.add_lags(connection, model, page, filters, reader.now.timestamp())
    return page


def jobs(reader: Reader, query: NodeListQuery) -> Answer:
    """Return a page of jobs, and on the first how many there are."""
    filters = _filter(query, reader)
    with reader.connected() as connection:
        page = lists.jobs_page(connection, filters, reader.micros, query.limit, query.cursor)
        if _has_total(page, query, filters):
            page["total"] = lists.count_jobs(connection, query.namespace)
        return page


def runs(reader: Reader, query: RunListQuery) -> Answer:
    """Return a page of runs, the newest first."""
    filters = _filter(query, reader)
    with reader.connected() as connection:
        job = job_asked(connection, query)
        return runs_page(
            connection,
            job,
            filters,
            reader.micros,
            query.limit,
            query.cursor,
            parent=query.parent,
        )


def job_asked(connection: Connection, query: OfJobQuery) -> Node | None:
    """Return the job that a question about runs is about, None for all."""
    named = None
    if query.name is not None:
        namespace = "default" if query.namespace is None else query.namespace
        named = job_of(connection, namespace, query.name)
    if query.job is None:
        return named
    called = job_called(connection, query.job)
    if named is not None and named != called:
        raise ParameterError(f"parameters job and name are of two jobs: {called} and {named}")
    return called


def _has_total(page: Answer, query: NodeListQuery, filters: Filter) -> bool:
    """Return true for a first page that is not all of a list whose length is soon counted."""
    is_part = page["nextCursor"] is not None and query.cursor is None
    return is_part and filters.as_of is None and not filters.leaves_few


def _filter(query: NodeListQuery | RunListQuery, reader: Reader) -> Filter:
    """Return the conditions of a list; a moment that is not past is now."""
    as_of = query.as_of if query.as_of is None or query.as_of < reader.now else None
    since, until, then = map(_micros_if_any, (query.since, query.until, as_of))
    labels = (query.tag, query.owner) if isinstance(query, NodeListQuery) else ()
    return Filter(query.namespace, query.state or frozenset(), since, until, then, *labels)


def _micros_if_any(moment: datetime | None) -> int | None:
    return None if moment is None else micros_of(moment)


def search(reader: Reader, query: SearchQuery) -> Answer:
    """Return a page of what has a text in a name, a tag, a column, an SQL text or an id."""
    with reader.connected() as connection:
        return search_page(connection, query.q, query.limit, query.cursor, reader.micros)


def snapshots(reader: Reader, query: PartsQuery) -> Answer:
    """Return a page of the snapshots of a dataset, the newest first."""
    with reader.connected() as connection:
        dataset = dataset_of(connection, query.namespace, query.name)
        page = snapshots_of(connection, dataset, query.limit, query.cursor)
        return page.of([snapshot_answer(row) for row in page.rows])


def events(reader: Reader, query: EventsQuery) -> Answer:
    """Return a page of events as received, the newest first, and which of them are archived."""
    span = map(_micros_if_any, (query.since, query.until))
    with reader.connected() as connection:
        filters = event_filter(connection, query.job, query.run_id, query.dataset, *span)
    with read_from(reader.whole_engine) as connection:
        page, cursor = events_page(connection, query.limit, query.cursor, filters, reader.access)
        # An archive holds events of all namespaces: only a key that sees all is told where it is.
        sees_all = reader.access.everything
        archived = archived_answer(connection, filters.since, filters.until) if sees_all else []
    items = [event_answer(event) for event in page]
    return {"items": items, "nextCursor": cursor, "archived": archived}


def rejected(reader: Reader, query: RejectedQuery) -> Answer:
    """Return the kinds of what was rejected."""
    with reader.connected() as connection:
        kinds, complete = rejection_kinds(connection, query.limit)
    return {"items": kinds, "complete": complete}


def snapshot_lineage(reader: Reader, query: lineage.SnapshotLineageQuery) -> Answer:
    """Return the snapshots upstream and downstream of a snapshot."""
    with reader.connected() as connection:
        return snapshot_lineage_of(
            connection,
            dataset_of(connection, query.namespace, query.name),
            query.snapshot_id,
            reader.view(query),
            Direction(query.direction),
            query.depth,
            query.limit,
        )


def changes(reader: Reader, query: lineage.ChangesQuery) -> Answer:
    """Return the differences between two moments."""
    return reader.answer("/lineage/changes", query, since=micros_of(query.since))


def _of_graph(path: str) -> Callable[[Reader, Any], Answer]:
    return lambda reader, query: reader.answer(path, query)


ANSWERED: Mapping[str, tuple[type[BaseModel], Callable[[Reader, Any], Answer]]] = {
    "/datasets": (NodeListQuery, datasets),
    "/datasets/snapshots": (PartsQuery, snapshots),
    "/jobs": (NodeListQuery, jobs),
    "/runs": (RunListQuery, runs),
    "/search": (SearchQuery, search),
    "/names": (JoinedNamesQuery, names),
    "/names/jobs": (SimilarJobsQuery, similar_jobs),
    "/events": (EventsQuery, events),
    "/rejected": (RejectedQuery, rejected),
    "/lineage": (lineage.LineageQuery, _of_graph("/lineage")),
    "/lineage/nodes": (lineage.NodesQuery, _of_graph("/lineage/nodes")),
    "/lineage/paths": (lineage.PathsQuery, _of_graph("/lineage/paths")),
    "/lineage/changes": (lineage.ChangesQuery, changes),
    "/impact": (lineage.ImpactQuery, _of_graph("/impact")),
    "/namespaces": (lineage.NamespacesQuery, _of_graph("/namespaces")),
    "/runs/lineage": (lineage.RunGraphQuery, _of_graph("/runs/lineage")),
    "/snapshots/lineage": (lineage.SnapshotLineageQuery, snapshot_lineage),
    "/versions": (Versions, lambda reader, question: version_of(reader, question).document),
    "/delays": (DelaysQuery, delays),
    "/expirable": (ExpirableQuery, expirable),
}
