"""Lists of datasets, jobs, runs and barriers, a page at a time."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import orjson
from sqlalchemy import Connection, Select, and_, case, exists, false, func, not_, or_, select

from strandline.core.openlineage.names import is_of_one_job, run_id_of, run_name
from strandline.core.versions.delays import lag_seconds
from strandline.core.versions.model import Model
from strandline.errors import NotFoundError
from strandline.store.catalog.filters import Filter, may_be_of
from strandline.store.catalog.newest_runs import newest_run_ids
from strandline.store.catalog.newest_snapshots import newest_snapshots
from strandline.store.catalog.newest_writes import newest_writes
from strandline.store.catalog.owners import owned, owners_of_datasets, owners_of_jobs
from strandline.store.catalog.past_lists import (
    datasets_then,
    had_run,
    jobs_then,
    runs_then,
    was_mentioned,
)
from strandline.store.catalog.past_writes import was_named
from strandline.store.lineage.dropped import drop_answers
from strandline.store.lineage.facets import tagged
from strandline.store.lineage.failures import outcomes
from strandline.store.lineage.hierarchy import parent_jobs
from strandline.store.lineage.lookup import Node, node_text
from strandline.store.lineage.nested_commands import nested_jobs, nested_runs
from strandline.store.lineage.recent_runs import created_nothing
from strandline.store.lineage.run_state import RunState, iso, rows_of_runs, run_state, with_state
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
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
SHARED_RUN_ID = "several jobs reported this run id; each has a run of its own"


def datasets_page(
    connection: Connection, criteria: Filter, now: int, limit: int, after: Key | None
) -> Answer:
    """Return datasets by name, each once, under its canonical name.

    Each has its latest write, whose state a filter means, and its newest snapshot.
    """

    def shown(rows: Sequence[Any]) -> Iterator[Answer | None]:
        ids = [row.id for row in rows]
        unmade, writes = never_made(connection, ids), newest_writes(connection, ids, now)
        heads, dropped = newest_snapshots(connection, ids), drop_answers(connection, ids, now)
        owners = owners_of_datasets(connection, ids)
        for row in rows:
            write = writes.get(row.id)
            written = write is not None and criteria.admits(write.run)
            is_shown = (
                written
                if criteria.states
                else written or criteria.spans(row.first_at, row.newest_at)
            )
            more = {
                "latestWrite": None if write is None else write.answer(),
                "latestSnapshot": heads.get(row.id),
                "owners": owners.get(row.id, []),
                **dropped[row.id],
            }
            yield dataset_answer(row) | more if is_shown and row.id not in unmade else None

    query = select(datasets).where(
        datasets.c.id == datasets.c.canonical_id,
        *in_namespaces(connection, datasets, criteria.namespace),
    )
    order = Order((datasets.c.namespace, datasets.c.name))
    items: Items = shown
    if criteria.as_of is not None:
        query = query.where(was_named(criteria.as_of))
        items = _of_past(
            placed_answer,
            partial(datasets_then, connection, criteria=criteria, moment=criteria.as_of),
        )
    items = _labelled(connection, criteria, placed_answer, items)
    return order.filtered(connection, query, limit, after, items, few=criteria.leaves_few)


def add_lags(
    connection: Connection, model: Model, page: Answer, criteria: Filter, now: float
) -> None:
    """Add to each dataset of a page its lag now; None at a past moment."""
    tables = [(item["namespace"], item["name"]) for item in page["items"]]
    names = known_names(connection, model, tables)
    for item, table in zip(page["items"], tables, strict=True):
        lag = lag_seconds(model, names[table], now) if criteria.as_of is None else None
        item["lagSeconds"] = lag


def never_made(connection: Connection, ids: Sequence[int]) -> set[int]:
    """Those of these datasets of which nothing is known but runs that failed to create them.

    No event named them before or after, be it an event about the dataset alone or an edge.

    Asked of a page, not in the list's own query: that sorts all datasets before it takes a page of
    them.
    """
    named = datasets.alias("named")
    related = (
        named.c.canonical_id == datasets.c.id,
        relations.c.dataset_id == named.c.id,
        runs.c.id == relations.c.run_id,
    )
    undone = created_nothing()
    called = datasets.alias(
        "called"
    )  # any of its names: of the canonical one perhaps only a symlink tells
    of_all = called.c.canonical_id == datasets.c.id
    first_told = (
        select(func.min(called.c.first_at)).where(of_all).correlate(datasets).scalar_subquery()
    )
    last_told = (
        select(func.max(called.c.newest_at)).where(of_all).correlate(datasets).scalar_subquery()
    )
    first = exists().where(*related, undone, relations.c.first_at <= first_told)
    last = exists().where(*related, undone, relations.c.newest_at >= last_told)
    only_undone = case((exists().where(*related, ~undone), false()), else_=and_(first, last))
    return set(
        connection.scalars(select(datasets.c.id).where(among(datasets.c.id, ids), only_undone))
    )


def dataset_answer(row: Any) -> Answer:
    """A dataset as lists show it."""
    return placed_answer(row) | _seen(row)


def placed_answer(row: Any) -> Answer:
    """Return a dataset by its names and its place in a catalog."""
    place = {"catalog": row.catalog, "database": row.database_name, "table": row.table_name}
    return named_answer("dataset", row) | place


def _named_job(row: Any) -> Answer:
    return named_answer("job", row)


def _of_past(same: Callable[[Any], Answer], then: Items) -> Items:
    """Items of what is the same at any time and what was so at a moment.

    None where the moment has nothing.
    """

    def shown(rows: Sequence[Any]) -> Iterator[Answer | None]:
        for row, of_moment in zip(rows, then(rows), strict=True):
            yield None if of_moment is None else same(row) | of_moment

    return shown


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

    def shown(rows: Sequence[Any]) -> Iterator[Answer | None]:
        nested = nested_jobs(connection, [(row.id, row.name) for row in rows])
        ids = [row.id for row in rows]
        newest, groups = _newest_states(connection, ids, now), groups_of(connection, ids)
        more = outcomes(connection, {run: state.state == "FAIL" for run, state in newest.values()})
        parents = parent_jobs(connection, list(more))
        owners = owners_of_jobs(connection, ids)
        for row in rows:
            run, state = newest.get(row.id, (0, None))
            ran = state is not None and criteria.admits(state)
            if row.id not in nested and (
                ran or (not criteria.states and criteria.spans(row.first_at, row.newest_at))
            ):
                newest_run = None if state is None else state.answer() | more[run]
                belonging = {
                    "group": groups.get(row.id),
                    "owners": owners.get(row.id, []),
                    "parent": parents.get(run),
                }
                yield _named_job(row) | _seen(row) | belonging | {"latestRun": newest_run}
            else:
                yield None

    query = select(jobs).where(is_shown, *in_namespaces(connection, jobs, criteria.namespace))
    order = Order((jobs.c.namespace, jobs.c.name))
    items: Items = shown
    if criteria.as_of is not None:
        query = query.where(was_mentioned(criteria.as_of))
        items = _of_past(
            _named_job, partial(jobs_then, connection, criteria=criteria, moment=criteria.as_of)
        )
    items = _labelled(connection, criteria, _named_job, items)
    return order.filtered(connection, query, limit, after, items, few=criteria.leaves_few)


def newest_runs(connection: Connection, job_ids: Sequence[int], now: int) -> dict[int, Answer]:
    """Return the newest run of each job.

    One that failed has its error; each has the number of failed runs below it.
    """
    states = _newest_states(connection, job_ids, now)
    more = outcomes(connection, {run: state.state == "FAIL" for run, state in states.values()})
    return {job: state.answer() | more[run] for job, (run, state) in states.items()}


def _newest_states(
    connection: Connection, job_ids: Sequence[int], now: int
) -> dict[int, tuple[int, RunState]]:
    """(row id, state) of the latest run of each job."""
    rows = rows_of_runs(connection, newest_run_ids(connection, job_ids).values()).values()
    return {row.job_id: (row.id, run_state(row, now)) for row in rows}


def groups_of(connection: Connection, job_ids: Sequence[int]) -> dict[int, str]:
    """The group of each job that is in one."""
    query = select(job_groups.c.job_id, job_groups.c.group_name).where(
        among(job_groups.c.job_id, job_ids)
    )
    return {row.job_id: row.group_name for row in connection.execute(query)}


def runs_page(
    connection: Connection,
    job: Node | None,
    criteria: Filter,
    now: int,
    limit: int,
    after: Key | None,
    parent: str | None = None,
) -> Answer:
    """Runs, the newest first, of one job, of a namespace's jobs or of all.

    Of a past moment those come first that were heard of again later.

    parent: the id of a run; only the runs directly below it. NotFoundError if there is none.
    """

    def shown(rows: Sequence[Any]) -> Iterator[Answer | None]:
        states = [run_state(row, now) for row in rows]
        wanted = [criteria.admits(state) for state in states]
        more = outcomes(
            connection,
            {row.id: state.state == "FAIL" for row, state in zip(rows, states, strict=True)},
        )
        nested = nested_runs(connection, [row.id for row in rows]) if job is None else ()
        for row, is_wanted in zip(rows, wanted, strict=True):
            yield (
                run_answer(row, now) | more[row.id] if is_wanted and row.id not in nested else None
            )

    of_job = [] if job is None else [runs.c.job_id == job.id]
    heard_of = runs.c.newest_at.is_not(
        None
    )  # a parent of which no event came has no place among the newest
    of_namespace = in_namespaces(connection, jobs, criteria.namespace)
    query = select(runs.c.id).join(jobs, jobs.c.id == runs.c.job_id)
    query = query.where(runs.c.design == 0, heard_of, *of_job, *of_namespace)
    if parent is not None:
        above = [row.id for row in runs_called(connection, parent)]
        if not above:
            raise NotFoundError(f"unknown run: {parent!r}")
        below = select(run_parents.c.run_id).where(among(run_parents.c.parent_run_id, above))
        query = query.where(runs.c.id.in_(below))
    items: Items = shown
    if criteria.as_of is None:
        query = query.where(*may_be_of(criteria))
    else:
        query = query.where(*had_run(criteria, criteria.as_of))
        then = partial(
            runs_then, connection, criteria=criteria, moment=criteria.as_of, of_job=job is not None
        )
        items = _of_past(_belonging, then)

    def of_page(page: Sequence[Any]) -> Iterator[Answer | None]:
        rows = _rows_of(connection, [row.id for row in page])
        of_run = dict(zip(rows, items(list(rows.values())), strict=True))
        return (of_run.get(row.id) for row in page)

    order = Order((runs.c.newest_at, runs.c.id), descending=True)
    return order.filtered(connection, query, limit, after, of_page, few=criteria.leaves_few)


def _rows_of(connection: Connection, ids: Sequence[int]) -> dict[int, Any]:
    """All that lists show of those of these runs that are still there, in their order."""
    rows = connection.execute(_runs(connection.dialect.name).where(among(runs.c.id, ids)))
    by_id = {row.id: row for row in rows}
    return {id_: by_id[id_] for id_ in ids if id_ in by_id}


def run_answer(row: Any, now: int) -> Answer:
    """Return a run as lists show it; the row is one of `runs_called`'s."""
    answer = run_state(row, now).answer() | _belonging(row) | _seen(row)
    if not is_of_one_job(row.id, row.run_id):
        answer["notice"] = SHARED_RUN_ID
    return answer


def _belonging(row: Any) -> Answer:
    """Return whose a run is."""
    parent = None
    if (
        row.parent_run is not None and row.parent_name is not None
    ):  # without a name: the key does not see its job
        job = {"namespace": row.parent_namespace, "name": row.parent_name}
        parent = {"runId": row.parent_run, "job": job}
    job = {"namespace": row.job_namespace, "name": row.job_name}
    return {"job": job, "parent": parent, "streaming": bool(row.streaming)}


def runs_called(connection: Connection, run_id: str) -> Sequence[Any]:
    """Return the runs of this id: mostly one, but several jobs may have used the same id."""
    same = or_(runs.c.run_id == run_name(run_id), runs.c.id == run_id_of(run_id, "", ""))
    return connection.execute(_runs(connection.dialect.name).where(same, runs.c.design == 0)).all()


def _runs(dialect: str) -> Select[Any]:
    parents, parent_jobs = runs.alias("parents"), jobs.alias("parent_jobs")
    return (
        with_state(dialect)
        .add_columns(jobs.c.namespace.label("job_namespace"), jobs.c.name.label("job_name"))
        .add_columns(parents.c.run_id.label("parent_run"))
        .add_columns(
            parent_jobs.c.namespace.label("parent_namespace"),
            parent_jobs.c.name.label("parent_name"),
        )
        .join(jobs, jobs.c.id == runs.c.job_id)
        .outerjoin(run_parents, run_parents.c.run_id == runs.c.id)
        .outerjoin(parents, parents.c.id == run_parents.c.parent_run_id)
        .outerjoin(parent_jobs, parent_jobs.c.id == run_parents.c.parent_job_id)
    )


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


def named_answer(kind: str, row: Any) -> Answer:
    """Return a node's id, type, namespace and name."""
    id_ = node_text(kind, row.namespace, row.name)
    return {"id": id_, "type": kind, "namespace": row.namespace, "name": row.name}


def _seen(row: Any) -> Answer:
    return {"createdAt": iso(row.first_at), "updatedAt": iso(row.newest_at)}
