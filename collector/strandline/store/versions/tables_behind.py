"""The tables behind the inputs of batch runs, by recorded edges; and edges that come late."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    CompoundSelect,
    Connection,
    Exists,
    FromClause,
    Row,
    Select,
    bindparam,
    exists,
    literal,
    select,
    union_all,
)

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.changes.rows import ELSEWHERE
from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.run_states import COMPLETE
from strandline.core.versions.facts import Table
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import (
    edge_columns,
    edge_uses,
    job_relations,
    relations,
)
from strandline.store.schema.run_tables import runs
from strandline.store.sql.id_lists import among_given

Behind = Mapping[Table, tuple[Table, ...]]


def tables_behind(connection: Connection, inputs: Iterable[Table], before: int) -> Behind:
    """Return what each input was made from, through any number of jobs, before a moment.

    A job of the group counts like any other: it may have made a table that is not in the group.
    """
    ids = {id_of("dataset", *table): table for table in inputs}
    sources: dict[int, set[int]] = {}
    names: dict[int, Table] = {}
    new = set(ids)
    while new:
        sources |= {id_: set() for id_ in new}
        parameters = {"tables": sorted(new), "before": before}
        for row in connection.execute(_sources(), parameters):
            sources[row.made_id].add(row.id)
            names[row.id] = (row.namespace, row.name)
        new = set().union(*(sources[id_] for id_ in new)) - sources.keys()
    return {
        table: tuple(sorted(names[one] for one in _reached(sources, id_)))
        for id_, table in ids.items()
    }


def _reached(sources: Mapping[int, set[int]], start: int) -> set[int]:
    reached = set[int]()
    new = set(sources[start])
    while new:
        reached |= new
        new = set().union(*(sources[id_] for id_ in new)) - reached
    return reached


@cache
def _sources() -> Select[Any]:
    """Select the canonical sources of tables; `job_relations` finds the pairs that runs made."""
    written, source, canonical = (datasets.alias(name) for name in ("written", "source", "place"))
    named = datasets.alias("named")
    writes, reads = job_relations.alias("writes"), job_relations.alias("reads")
    return (
        select(named.c.id.label("made_id"))
        .add_columns(canonical.c.id, canonical.c.namespace, canonical.c.name)
        .distinct()
        .select_from(named)
        .join(written, written.c.canonical_id == named.c.canonical_id)
        .join(writes, (writes.c.dataset_id == written.c.id) & (writes.c.direction == SINK))
        .join(reads, (reads.c.job_id == writes.c.job_id) & (reads.c.direction == SOURCE))
        .join(source, source.c.id == reads.c.dataset_id)
        .join(canonical, canonical.c.id == source.c.canonical_id)
        .where(among_given(named.c.id, "tables"), writes.c.ran == 1)
        .where(_is_made_before(written, source))
    )


def _is_made_before(written: FromClause, source: FromClause) -> Exists:
    """Return the condition that a run made a table from a source before a moment."""
    before = bindparam("before", type_=BigInteger)
    writes, reads = _made().alias("made"), _read().alias("used")
    return exists().where(
        writes.c.dataset_id == written.c.id,
        writes.c.first_at <= before,
        reads.c.run_id == writes.c.run_id,
        reads.c.dataset_id == source.c.id,
        reads.c.first_at <= before,
    )


def _made() -> Select[Any]:
    """Select what runs wrote."""
    of = relations.c
    return select(of.run_id, of.dataset_id, of.first_at).where(
        of.direction == SINK, of.creates != ELSEWHERE
    )


def _read() -> CompoundSelect[Any]:
    """Select what runs read: their inputs, and sources that only edges name."""
    of = relations.c
    joined = edge_uses.join(edge_columns, edge_columns.c.set_hash == edge_uses.c.set_hash)
    return union_all(
        select(of.run_id, of.dataset_id, of.first_at).where(
            of.direction == SOURCE, of.creates != ELSEWHERE
        ),
        select(edge_uses.c.run_id, edge_columns.c.source_id, literal(0)).select_from(joined),
    )


def runs_since(connection: Connection, at: int) -> Sequence[Row[Any]]:
    """Return the batch runs (id, job_id, ended_at) that completed at a moment or later."""
    return connection.execute(_completed(), {"since": at}).all()


@cache
def _completed() -> Select[Any]:
    return select(runs.c.id, runs.c.job_id, runs.c.ended_at).where(
        runs.c.newest_at >= bindparam("since"),
        runs.c.ended_at >= bindparam("since"),
        runs.c.state == COMPLETE,
        runs.c.streaming == 0,
    )


def behind_new_edges(
    connection: Connection, related: Collection[int], completed: Iterable[Row[Any]]
) -> set[int]:
    """Return the completed runs that may have read what new edges of these runs lead to.

    An edge is new to a run that completed after it was made and before it was made elsewhere.
    """
    edges = connection.execute(_new_edges(), {"runs": sorted(related)}).all()
    if not edges:
        return set()
    readers = _jobs_behind(connection, {edge.dataset_id for edge in edges})
    first = min(edge.first_at for edge in edges)
    return {run.id for run in completed if run.job_id in readers and run.ended_at >= first}


@cache
def _new_edges() -> Select[Any]:
    """Select what runs made from sources from which no run had made it before."""
    writes, reads = _made().alias("new_made"), _read().alias("new_used")
    earlier, used = _made().alias("made"), _read().alias("used")
    is_known = exists().where(
        earlier.c.dataset_id == writes.c.dataset_id,
        earlier.c.run_id != writes.c.run_id,
        earlier.c.first_at <= writes.c.first_at,
        used.c.run_id == earlier.c.run_id,
        used.c.dataset_id == reads.c.dataset_id,
        used.c.first_at <= writes.c.first_at,
    )
    return (
        select(writes.c.dataset_id, writes.c.first_at)
        .distinct()
        .join(reads, reads.c.run_id == writes.c.run_id)
        .where(among_given(writes.c.run_id, "runs"), ~is_known)
    )


def _jobs_behind(connection: Connection, tables: Collection[int]) -> set[int]:
    """Return the jobs that read one of these tables, or what was made from them."""
    jobs, known, new = set[int](), set[int](), set(tables)
    while new:
        known |= new
        rows = connection.execute(_read_by(), {"tables": sorted(new)}).all()
        jobs |= {row.job_id for row in rows}
        new = {row.dataset_id for row in rows if row.dataset_id is not None} - known
    return jobs


@cache
def _read_by() -> Select[Any]:
    """Select the jobs that read tables, with what these write."""
    one, other = datasets.alias("one"), datasets.alias("other")
    reads, writes = job_relations.alias("reads"), job_relations.alias("writes")
    written = (writes.c.job_id == reads.c.job_id) & (writes.c.direction == SINK)
    return (
        select(reads.c.job_id, writes.c.dataset_id)
        .select_from(one)
        .join(other, other.c.canonical_id == one.c.canonical_id)
        .join(reads, (reads.c.dataset_id == other.c.id) & (reads.c.direction == SOURCE))
        .outerjoin(writes, written)
        .where(among_given(one.c.id, "tables"))
    )
