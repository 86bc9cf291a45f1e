"""Lists of datasets and jobs, a page at a time, how many there are, and barriers of jobs.

A list of a past moment shows what had been heard of then. The name of a job or dataset does not
change with time, nor does the query of a micro-batch. Everything else is of the moment, and what
the store does not keep of it is left out. Of something heard of again later these are: when it had
last been heard of (`updatedAt`), its `group`, its `latestSnapshot`, whether it was dropped.
`owners` that were stated again later are None.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    case,
    exists,
    false,
    func,
    not_,
    or_,
    select,
    true,
)

from strandline.core.changes.extraction import SINK
from strandline.core.openlineage.run_states import COMPLETE
from strandline.core.versions.delays import lag_seconds
from strandline.core.versions.model import Model
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.owners import owned, owners_of_datasets, owners_of_jobs
from strandline.store.catalog.runs import JobRun, latest_run_of_each, times_heard
from strandline.store.catalog.writes import heard_by, newest_writes
from strandline.store.lineage.dropped import drop_answers, drops_then
from strandline.store.lineage.empty_writes import created_nothing
from strandline.store.lineage.facets import tagged
from strandline.store.lineage.failures import outcomes
from strandline.store.lineage.hierarchy import parent_jobs
from strandline.store.lineage.lookup import Node, node_text
from strandline.store.lineage.nested_commands import IS_NAMED_AS_INNER, nested_jobs
from strandline.store.lineage.run_state import View, iso
from strandline.store.lineage.table_snapshots import newest_snapshots
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations, relations
from strandline.store.schema.run_tables import job_groups, jobs, run_parents, runs
from strandline.store.schema.snapshot_tables import job_barriers
from strandline.store.sql.compression import expand
from strandline.store.sql.id_lists import among
from strandline.store.sql.namespaces_like import in_namespaces
from strandline.store.sql.pages import Key, Order
from strandline.store.versions.lookup import known_names

Answer = dict[str, Any]
Items = Callable[[Sequence[Any]], Iterator[Answer | None]]
"""What a list shows of rows; None of each that it does not show."""

is_shown = or_(
    not_(and_(jobs.c.noise == 1, jobs.c.data == 0)),
    exists().where(runs.c.job_id == jobs.c.id, runs.c.query == 1),
)
"""Hides jobs known only from Delta reading its own log, and names that no query ended up using."""

PHASES = {1: "skipped", 2: "committed"}


def datasets_page(
    connection: Connection, criteria: Filter, now: int, limit: int, after: Key | None
) -> Answer:
    """Return datasets by name, each once, under its canonical name.

    Each has its latest write, whose state a filter means, and its newest snapshot.
    """
    query = select(datasets).where(
        datasets.c.id == datasets.c.canonical_id,
        *in_namespaces(connection, datasets, criteria.namespace),
    )
    if criteria.as_of is not None:
        query = query.where(was_named(criteria.as_of))

    def shown(rows: Sequence[Any]) -> Iterator[Answer | None]:
        return _dataset_answers(connection, rows, criteria, now)

    order = Order((datasets.c.namespace, datasets.c.name))
    items = _labelled(connection, criteria, placed_answer, shown)
    return order.filtered(connection, query, limit, after, items, few=criteria.leaves_few)


def _dataset_answers(
    connection: Connection, rows: Sequence[Any], criteria: Filter, now: int
) -> Iterator[Answer | None]:
    ids, moment = [row.id for row in rows], criteria.as_of
    view = View(now) if moment is None else View(moment, past=True)
    unmade, writes = never_made(connection, ids, moment), newest_writes(connection, ids, view)
    owners = owners_of_datasets(connection, ids, moment)
    if moment is None:
        heads, dropped = newest_snapshots(connection, ids), drop_answers(connection, ids, now)
        heard = {}
    else:
        dropped = drops_then(connection, ids, moment)
        heard = heard_by(connection, ids, moment) if criteria.has_span else {}
    for row in rows:
        write = writes.get(row.id)
        written = write is not None and criteria.admits(write.run)
        span = _span(row, heard.get(row.id), moment)
        if row.id in unmade or not (written or (not criteria.states and criteria.spans(*span))):
            yield None
            continue
        answer = placed_answer(row) | times_heard(row, moment)
        answer["latestWrite"] = None if write is None else write.answer()
        if moment is None:
            answer["latestSnapshot"] = heads.get(row.id)
        yield answer | {"owners": owners.get(row.id, [])} | dropped[row.id]


def add_lags(
    connection: Connection, model: Model, page: Answer, criteria: Filter, now: float
) -> None:
    """Add to each dataset of a page its lag now; None at a past moment."""
    tables = [(item["namespace"], item["name"]) for item in page["items"]]
    names = known_names(connection, model, tables)
    for item, table in zip(page["items"], tables, strict=True):
        lag = lag_seconds(model, names[table], now) if criteria.as_of is None else None
        item["lagSeconds"] = lag


def never_made(connection: Connection, ids: Sequence[int], moment: int | None = None) -> set[int]:
    """Those of these datasets of which nothing is known but runs that failed to create them.

    No event named them before or after, be it an event about the dataset alone or an edge; at a
    past moment, none by then.

    Asked of a page, not in the list's own query: that sorts all datasets before it takes a page of
    them.
    """
    named, called = datasets.alias("named"), datasets.alias("called")
    by_then = true() if moment is None else relations.c.first_at <= moment
    related = (
        named.c.canonical_id == datasets.c.id,
        relations.c.dataset_id == named.c.id,
        runs.c.id == relations.c.run_id,
        by_then,
    )
    undone = created_nothing()
    if moment is not None:
        undone = and_(undone, runs.c.ended_at <= moment)

    def told(what: ColumnElement[Any]) -> Any:
        """Ask it of all names: of the canonical one perhaps only a symlink tells."""
        of_all = called.c.canonical_id == datasets.c.id
        return select(what).where(of_all).correlate(datasets).scalar_subquery()

    last_told = told(func.max(called.c.newest_at))
    first = exists().where(
        *related, undone, relations.c.first_at <= told(func.min(called.c.first_at))
    )
    last: ColumnElement[bool] = exists().where(*related, undone, relations.c.newest_at >= last_told)
    if moment is not None:
        last = or_(last, last_told > moment)
    only_undone = case((exists().where(*related, not_(undone)), false()), else_=and_(first, last))
    return set(
        connection.scalars(select(datasets.c.id).where(among(datasets.c.id, ids), only_undone))
    )


def was_named(moment: int) -> ColumnElement[bool]:
    """Return whether an event had named the dataset by then, by any of its names.

    An edge alone, that no later one repeats, is enough.
    """
    called = datasets.alias("called")
    of_group = called.c.canonical_id == datasets.c.id
    mentioned = exists().where(
        of_group, job_relations.c.dataset_id == called.c.id, job_relations.c.at <= moment
    )
    return or_(
        and_(datasets.c.first_at.is_not(None), datasets.c.first_at <= moment),
        exists().where(of_group, called.c.first_at <= moment),
        mentioned,
    )


def _span(row: Any, heard_at: int | None, moment: int | None) -> tuple[int | None, int | None]:
    """Return from when to when a row was heard of by a past moment, as far as is certain."""
    if moment is None:
        return row.first_at, row.newest_at
    if row.first_at is None or row.first_at > moment:
        return heard_at, heard_at
    last = row.newest_at if row.newest_at <= moment else max(row.first_at, heard_at or row.first_at)
    return row.first_at, last


def dataset_answer(row: Any) -> Answer:
    """A dataset as lists show it."""
    return placed_answer(row) | times_heard(row, None)


def placed_answer(row: Any) -> Answer:
    """Return a dataset by its names and its place in a catalog."""
    place = {"catalog": row.catalog, "database": row.database_name, "table": row.table_name}
    return named_answer("dataset", row) | place


def named_answer(kind: str, row: Any) -> Answer:
    """Return a node's id, type, namespace and name."""
    id_ = node_text(kind, row.namespace, row.name)
    return {"id": id_, "type": kind, "namespace": row.namespace, "name": row.name}


def _named_job(row: Any) -> Answer:
    return named_answer("job", row)


def _labelled(
    connection: Connection, criteria: Filter, same: Callable[[Any], Answer], items: Items
) -> Items:
    """Return items of the rows alone that have one of the tags and one of the owners."""
    if not (criteria.tags or criteria.owners):
        return items

    def shown(rows: Sequence[Any]) -> Iterator[Answer | None]:
        nodes = [same(row) for row in rows]
        if criteria.tags:
            nodes = tagged(connection, nodes, criteria.tags)
        if criteria.owners:
            nodes = owned(connection, nodes, criteria.owners)
        ids = {node["id"] for node in nodes}
        admitted = [row for row in rows if same(row)["id"] in ids]
        of_row = dict(zip([row.id for row in admitted], items(admitted), strict=True))
        return (of_row.get(row.id) for row in rows)

    return shown


def jobs_page(
    connection: Connection, criteria: Filter, now: int, limit: int, after: Key | None
) -> Answer:
    """Return jobs by name, each with its latest run, whose state and time a filter means.

    `parent` is the job of the run above the latest run. `owners` are those of the job or, where it
    has none, of the nearest job above it.
    """
    query = select(jobs).where(is_shown, *in_namespaces(connection, jobs, criteria.namespace))
    if criteria.as_of is not None:
        query = query.where(was_mentioned(criteria.as_of))

    def shown(rows: Sequence[Any]) -> Iterator[Answer | None]:
        return _job_answers(connection, rows, criteria, now)

    order = Order((jobs.c.namespace, jobs.c.name))
    items = _labelled(connection, criteria, _named_job, shown)
    return order.filtered(connection, query, limit, after, items, few=criteria.leaves_few)


def _job_answers(
    connection: Connection, rows: Sequence[Any], criteria: Filter, now: int
) -> Iterator[Answer | None]:
    ids, moment = [row.id for row in rows], criteria.as_of
    nested = nested_jobs(connection, [(row.id, row.name) for row in rows], moment)
    latest = latest_run_of_each(connection, ids, now, moment)
    more = _outcomes_of(connection, latest.values(), moment)
    parents, groups = parent_jobs(connection, list(more)), _groups(connection, ids, moment)
    owners = owners_of_jobs(connection, ids, moment)
    for row in rows:
        run = latest.get(row.id)
        ran = run is not None and criteria.admits(run.state)
        span = _span(row, None if run is None else run.heard_at, moment)
        if row.id in nested or not (ran or (not criteria.states and criteria.spans(*span))):
            yield None
            continue
        answer = _named_job(row) | times_heard(row, moment) | groups.get(row.id, {"group": None})
        answer["owners"] = owners.get(row.id, [])
        answer["parent"] = None if run is None else parents.get(run.id)
        answer["latestRun"] = None if run is None else run.state.answer() | more[run.id]
        yield answer


def _outcomes_of(
    connection: Connection, latest: Iterable[JobRun], moment: int | None = None
) -> dict[int, Answer]:
    failed = {run.id: run.state.state == "FAIL" for run in latest}
    return outcomes(connection, failed, moment)


def was_mentioned(moment: int) -> ColumnElement[bool]:
    """Return whether an event had named the job by then, as its own or as one above it."""
    below, of_job = runs.alias("below"), runs.alias("of_job")
    begun = (below.c.id == run_parents.c.run_id, below.c.first_at <= moment)
    as_parent = exists().where(run_parents.c.parent_job_id == jobs.c.id, *begun)
    as_root = exists().where(
        of_job.c.job_id == jobs.c.id, run_parents.c.root_run_id == of_job.c.id, *begun
    )
    return or_(and_(jobs.c.first_at.is_not(None), jobs.c.first_at <= moment), as_parent, as_root)


def latest_run_answers(
    connection: Connection, job_ids: Sequence[int], now: int
) -> dict[int, Answer]:
    """Return the latest run of each job.

    One that failed has its error; each has the number of failed runs below it.
    """
    latest = latest_run_of_each(connection, job_ids, now)
    more = _outcomes_of(connection, latest.values())
    return {job: run.state.answer() | more[run.id] for job, run in latest.items()}


def _groups(
    connection: Connection, job_ids: Sequence[int], moment: int | None
) -> dict[int, Answer]:
    """Return `group` of jobs that are in one; nothing of one that was put there after a moment."""
    query = select(job_groups).where(among(job_groups.c.job_id, job_ids))
    return {
        row.job_id: {"group": row.group_name} if moment is None or row.at <= moment else {}
        for row in connection.execute(query)
    }


def groups_of(connection: Connection, job_ids: Sequence[int]) -> dict[int, str]:
    """The group of each job that is in one."""
    return {job: group["group"] for job, group in _groups(connection, job_ids, None).items()}


def barriers_page(connection: Connection, job: Node, limit: int, after: Key | None) -> Answer:
    """The barriers of a streaming job, the greatest first.

    Its checkpoints, committed and skipped.
    """
    query = (
        select(job_barriers, runs.c.run_id.label("run_text"))
        .outerjoin(runs, runs.c.id == job_barriers.c.run_id)
        .where(job_barriers.c.job_id == job.id)
    )
    order = Order((job_barriers.c.barrier, job_barriers.c.query_id), descending=True)
    page = order.page(connection, query, limit, after)
    return page.of([barrier_answer(row) for row in page.rows])


class _Offsets(msgspec.Struct):
    sources: msgspec.Raw = msgspec.Raw(b"[]")


def barrier_answer(row: Any) -> Answer:
    """A barrier as JSON shows it; `sources` are the offsets that the facet states."""
    return {
        "barrierId": row.barrier,
        "group": row.group_name or None,
        "phase": PHASES[row.phase],
        "queryId": row.query_id or None,
        "batchId": row.batch_id,
        "engine": row.engine or None,
        "startedAt": iso(row.started_at),
        "committedAt": iso(row.committed_at),
        "checkpointLocation": row.checkpoint or None,
        "runId": row.run_text,
        "sources": orjson.Fragment(
            bytes(msgspec.json.decode(expand(row.facet), type=_Offsets).sources)
        ),
    }


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
