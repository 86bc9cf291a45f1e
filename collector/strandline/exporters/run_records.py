"""The newest state of runs as values: what every target makes its messages of.

A micro-batch stands for its query's run.

What a run read and wrote is the union over its events; its edges are those of its own statements,
column by column where they are stated. Datasets have the names that stand for them, with the facets
of all their names.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

import orjson
from sqlalchemy import Connection, Select, and_, select

from strandline.core.changes.extraction import SINK, SOURCE, relation_id_of
from strandline.core.openlineage import facets as kinds
from strandline.exporters.target import Change, Namespaces
from strandline.store.catalog.lists import is_shown
from strandline.store.ingest.export_news import RUN
from strandline.store.lineage.column_edges import ColumnEdge, edges_of
from strandline.store.lineage.facets import Facets, facets_of, merged_facets_each
from strandline.store.lineage.nested_commands import nested_jobs
from strandline.store.lineage.recent_runs import JobEdge, job_edges, recent_runs_of
from strandline.store.lineage.run_state import RunState, View, run_owners, run_states
from strandline.store.lineage.sightings import sightings_of
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import jobs, run_parents, runs
from strandline.store.sql.id_lists import among_given

Json = dict[str, Any]
MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class DatasetRecord:
    """A dataset by the name that stands for it, with its facets."""

    id: int
    namespace: str
    name: str
    facets: Json


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job with its facets; `hidden`: lists do not show it, as it is noise of Delta's own log."""

    id: int
    namespace: str
    name: str
    facets: Json
    hidden: bool = False


class DatasetLink(NamedTuple):
    """A dataset that a run read or wrote, with its facets there, and when it last did so."""

    dataset: DatasetRecord
    facets: Json
    at: int = 0


class RunName(NamedTuple):
    """A run and its job by their names."""

    run_id: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run. state: START, RUNNING, COMPLETE, FAIL, ABORT, LOST.

    NONE of one that never ran, and of a design.
    """

    id: int
    run_id: str
    job: JobRecord
    state: RunState
    design: bool
    first_at: int
    newest_at: int
    facets: Json
    parent: RunName | None
    root: RunName | None
    inputs: tuple[DatasetLink, ...]
    outputs: tuple[DatasetLink, ...]
    edges: tuple[ColumnEdge, ...]
    datasets: Mapping[int, DatasetRecord]  # all that the edges name

    @property
    def started_at(self) -> int:
        """The time of its start, as far as is known."""
        return self.state.since or self.first_at

    @property
    def ended_at(self) -> int | None:
        """The time of its end, or of its loss by silence."""
        return self.state.until

    @property
    def is_over(self) -> bool:
        """True if it ended, by an event or by silence."""
        return self.state.state in ("COMPLETE", "FAIL", "ABORT", "LOST")


def run_records(connection: Connection, run_ids: Collection[int], now: float) -> list[RunRecord]:
    """The runs that own these runs, each once, in the order given.

    Those that were expired are missing.
    """
    rows = connection.execute(_owned(), {"ids": list(run_ids)}).all()
    job_of = {row.owner_id: row.job_id for row in rows}
    owner_of = {row.run_id: row.owner_id for row in rows}
    order = list(dict.fromkeys(owner_of[run] for run in run_ids if run in owner_of))
    return _RecordReader(connection, job_of, round(now * MICRO)).records(order)


def changed_records(
    connection: Connection, changes: Sequence[Change], now: float, namespaces: Namespaces
) -> list[tuple[RunRecord, Change]]:
    """Return the runs that changed, each with its newest change, in the order of those.

    Jobs that Strandline hides (noise, and the inner commands of a CREATE TABLE .. AS SELECT) and
    other namespaces are left out.
    """
    change_of = {change.entity_id: change for change in changes if change.kind == RUN}
    records = run_records(connection, list(change_of), now)
    job_names = {record.job.id: record.job.name for record in records}
    nested = nested_jobs(connection, list(job_names.items())) if job_names else set()
    changed = []
    for record in records:
        hidden = record.job.hidden or record.job.id in nested
        if not hidden and namespaces.allow(record.job.namespace):
            changed.append((record, change_of.get(record.id, changes[-1])))
    return changed


@dataclass(slots=True)
class _RecordReader:
    connection: Connection
    job_of: Mapping[int, int]
    now: int

    def records(self, order: Sequence[int]) -> list[RunRecord]:
        """The record of each of these owners."""
        if not order:
            return []
        job_edges = self._related(order)
        edges: dict[int, list[ColumnEdge]] = defaultdict(list)
        for edge in edges_of(self.connection, job_edges):
            for owner in edge.seen.owners:
                edges[owner].append(edge)
        named = named_by(job_edges, chain.from_iterable(edges.values()))
        datasets = dataset_records(self.connection, named)
        states = run_states(
            self.connection, order, View(self.now), [job_edge.run for job_edge in job_edges]
        )
        links = links_of(self.connection, job_edges, datasets)
        parts = self._runs(order), job_records(self.connection, set(self.job_of.values()))
        facets = {
            key: decoded(facet)
            for key, facet in facets_of(self.connection, kinds.RUN, order).items()
        }
        parents = _parents(self.connection, order)
        records = []
        for owner in order:
            row, job = parts[0].get(owner), parts[1].get(self.job_of[owner])
            if row is not None and job is not None and owner in states:
                own = tuple(sorted(edges[owner], key=_place))
                sides = with_named_sources(links[owner, SOURCE], own, datasets), links[owner, SINK]
                names = parents.get(owner, (None, None))
                times = _times(row)
                records.append(
                    RunRecord(
                        *(
                            owner,
                            uuid_of(row.run_id, job),
                            job,
                            states[owner],
                            bool(row.design),
                            *times,
                        ),
                        *(facets.get(owner, {}), *names, *sides, own, datasets),
                    )
                )
        return records

    def _runs(self, order: Sequence[int]) -> dict[int, Any]:
        return {row.id: row for row in self.connection.execute(_runs(), {"ids": list(order)})}

    def _related(self, owners: Sequence[int]) -> list[JobEdge]:
        touches = sightings_of(self.connection, set(owners), set(self.job_of.values()), self.now)
        touches = [touch for touch in touches if not touch.wrote_nothing]
        return job_edges(touches, recent_runs_of(touches, len(touches)))


def with_named_sources(
    inputs: tuple[DatasetLink, ...],
    edges: Iterable[ColumnEdge],
    datasets: Mapping[int, DatasetRecord],
) -> tuple[DatasetLink, ...]:
    """The inputs, and the sources that edges alone name."""
    have = {link.dataset.id for link in inputs}
    more = {edge.source[0] for edge in edges if edge.source is not None} - have
    return (*inputs, *(DatasetLink(datasets[id_], {}) for id_ in sorted(more) if id_ in datasets))


def named_by(job_edges: Iterable[JobEdge], edges: Iterable[ColumnEdge]) -> set[int]:
    """All datasets that relations and edges name."""
    ends = chain.from_iterable((edge.source, edge.target) for edge in edges)
    return {job_edge.dataset for job_edge in job_edges} | {
        end[0] for end in ends if end is not None
    }


def _place(edge: ColumnEdge) -> tuple[Any, ...]:
    return edge.target, edge.source or (0, ""), edge.how[:4]


def links_of(
    connection: Connection,
    job_edges: Iterable[JobEdge],
    datasets: Mapping[int, DatasetRecord],
    whose: Callable[[JobEdge], int] = attrgetter("owner"),
) -> dict[tuple[int, int], tuple[DatasetLink, ...]]:
    """Return the datasets that each owner (or each job) read and wrote, once each.

    Facets are those of the newest relation.
    """
    last: dict[tuple[int, int, int], JobEdge] = {}
    for job_edge in job_edges:
        key = whose(job_edge), job_edge.direction, job_edge.dataset
        if key not in last or (job_edge.at, job_edge.run) > (last[key].at, last[key].run):
            last[key] = job_edge
    own: dict[int, Facets] = {}
    for direction, kind in ((SOURCE, kinds.INPUT), (SINK, kinds.OUTPUT)):
        own |= facets_of(
            connection,
            kind,
            [_relation(one) for one in last.values() if one.direction == direction],
        )
    links: dict[tuple[int, int], tuple[DatasetLink, ...]] = defaultdict(tuple)
    for (who, direction, dataset), job_edge in sorted(
        last.items(), key=lambda item: _called(datasets, item[0][2])
    ):
        if dataset in datasets:
            links[who, direction] += (
                DatasetLink(
                    datasets[dataset], decoded(own.get(_relation(job_edge), {})), job_edge.at
                ),
            )
    return links


def _called(datasets: Mapping[int, DatasetRecord], dataset: int) -> tuple[str, str]:
    return (
        (datasets[dataset].namespace, datasets[dataset].name) if dataset in datasets else ("", "")
    )


def _relation(job_edge: JobEdge) -> int:
    return relation_id_of(job_edge.run, job_edge.direction, job_edge.named)


def dataset_records(connection: Connection, ids: Collection[int]) -> dict[int, DatasetRecord]:
    """Datasets by their canonical ids."""
    rows = connection.execute(_datasets(), {"ids": list(ids)}).all() if ids else []
    facets = (
        merged_facets_each(connection, kinds.DATASET, {row.id: row.canonical_id for row in rows})
        if rows
        else {}
    )
    return {
        row.id: DatasetRecord(row.id, row.namespace, row.name, decoded(facets.get(row.id, {})))
        for row in rows
        if row.id == row.canonical_id
    }


def job_records(connection: Connection, ids: Collection[int]) -> dict[int, JobRecord]:
    """Return jobs by their ids."""
    facets = facets_of(connection, kinds.JOB, list(ids))
    rows = connection.execute(_jobs(), {"ids": list(ids)})
    return {
        row.id: JobRecord(
            row.id,
            row.namespace,
            row.name,
            decoded(facets.get(row.id, {})),
            not row.shown,
        )
        for row in rows
    }


def decoded(facets: Facets) -> Json:
    """Facets as JSON values."""
    document: Json = orjson.loads(orjson.dumps(facets))
    return document


def uuid_of(run_id: str, job: JobRecord) -> str:
    """A run's id as all targets take it.

    One that is no UUID has one made of it, always the same.
    """
    try:
        return str(UUID(run_id))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"strandline:{job.namespace}:{job.name}:{run_id}"))


def _parents(
    connection: Connection, owners: Sequence[int]
) -> dict[int, tuple[RunName | None, RunName | None]]:
    parents = {}
    for row in connection.execute(_above(), {"ids": list(owners)}):
        parent, root = (_name(*row[start : start + 3]) for start in (1, 4))
        parents[row[0]] = parent, root
    return parents


def _name(run_id: str | None, namespace: str | None, name: str | None) -> RunName | None:
    if run_id is None or namespace is None or name is None:
        return None
    return RunName(uuid_of(run_id, JobRecord(0, namespace, name, {})), namespace, name)


@cache
def _owned() -> Select[Any]:
    columns = (run_owners.c.run_id, run_owners.c.owner_id, run_owners.c.job_id)
    return select(*columns).where(among_given(run_owners.c.run_id, "ids"))


@cache
def _runs() -> Select[Any]:
    return select(runs).where(among_given(runs.c.id, "ids"))


@cache
def _datasets() -> Select[Any]:
    columns = (datasets.c.id, datasets.c.canonical_id, datasets.c.namespace, datasets.c.name)
    return select(*columns).where(among_given(datasets.c.canonical_id, "ids"))


@cache
def _jobs() -> Select[Any]:
    return select(jobs, is_shown.label("shown")).where(among_given(jobs.c.id, "ids"))


@cache
def _above() -> Select[Any]:
    columns: list[Any] = [run_parents.c.run_id]
    joined: Any = run_parents
    for end in ("parent", "root"):
        run, job = runs.alias(f"{end}_run"), jobs.alias(f"{end}_job")
        joined = joined.outerjoin(run, run.c.id == run_parents.c[f"{end}_run_id"])
        joined = joined.outerjoin(job, and_(job.c.id == run_parents.c[f"{end}_job_id"]))
        columns += [run.c.run_id, job.c.namespace, job.c.name]
    return select(*columns).select_from(joined).where(among_given(run_parents.c.run_id, "ids"))


def _times(row: Any) -> tuple[int, int]:
    """Return when a run was first and last heard of."""
    return row.first_at or 0, row.newest_at or row.received_at or 0
