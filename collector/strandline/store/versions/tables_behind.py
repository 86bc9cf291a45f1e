"""The tables behind the inputs of batch runs, by recorded edges; and edges that come late."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Connection,
    Row,
    Select,
    bindparam,
    exists,
    literal,
    or_,
    select,
    union,
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
    run_templates,
    template_edges,
    template_relations,
)
from strandline.store.schema.run_tables import job_groups, runs
from strandline.store.schema.version_tables import group_jobs
from strandline.store.sql.id_lists import among_given

Behind = Mapping[Table, tuple[Table, ...]]
Asked = Mapping[int, tuple[Collection[Table], int]]


@dataclass(frozen=True, slots=True)
class _Edges:
    """The edges behind some tables as of a moment: pairs of a table made and a source of it."""

    pairs: frozenset[tuple[int, int]]
    names: Mapping[int, Table]


def tables_behind(connection: Connection, asked: Asked) -> dict[int, Behind]:
    """Return for each run what its inputs were made from, through any number of jobs.

    A job of the group counts like any other: it may have made a table that is not in the group.
    asked: by run its inputs, and the moment before which an edge was to be made.
    """
    moments = sorted({before for _, before in asked.values()})
    ids = {id_of("dataset", *table) for tables, _ in asked.values() for table in tables}
    if not ids:
        return {run: {} for run in asked}
    known: dict[int, _Edges] = {}

    def edges_at(place: int) -> _Edges:
        if place not in known:
            known[place] = _edges_before(connection, ids, moments[place])
        return known[place]

    def first_place(pair: tuple[int, int]) -> int:
        places = range(len(moments) - 1)
        return bisect_left(places, True, key=lambda place: pair in edges_at(place).pairs)

    every, earliest = edges_at(len(moments) - 1), edges_at(0)
    made_at = {pair: first_place(pair) for pair in every.pairs - earliest.pairs}
    answers: dict[int, Behind] = {}
    for run, (tables, before) in asked.items():
        place = bisect_left(moments, before)
        sources: dict[int, set[int]] = {}
        for made, source in every.pairs:
            if made_at.get((made, source), 0) <= place:
                sources.setdefault(made, set()).add(source)
        answers[run] = {
            table: tuple(sorted(every.names[id_] for id_ in _reached(sources, table)))
            for table in tables
        }
    return answers


def _edges_before(connection: Connection, tables: set[int], before: int) -> _Edges:
    """Walk from tables to all that they were made from before a moment."""
    pairs: set[tuple[int, int]] = set()
    names: dict[int, Table] = {}
    visited, new = set[int](), tables
    while new:
        visited |= new
        sources = set()
        for row in connection.execute(_sources(), {"tables": sorted(new), "before": before}):
            pairs.add((row.made_id, row.id))
            names[row.id] = (row.namespace, row.name)
            sources.add(row.id)
        new = sources - visited
    return _Edges(frozenset(pairs), names)


def _reached(sources: Mapping[int, Collection[int]], table: Table) -> set[int]:
    reached = set[int]()
    new = set(sources.get(id_of("dataset", *table), ()))
    while new:
        reached |= new
        new = set[int]().union(*(sources.get(id_, ()) for id_ in new)) - reached
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
        .where(_is_made_before(written.c.id, source.c.id, bindparam("before", type_=BigInteger)))
    )


def _is_made_before(
    made: ColumnElement[int],
    source: ColumnElement[int],
    before: ColumnElement[int],
    other_than: ColumnElement[int] | None = None,
) -> ColumnElement[bool]:
    """Return the condition that a run made a dataset from a source before a moment.

    The LIMIT lets PostgreSQL stop at the first of thousands of runs.
    """
    writes, used = template_relations.alias("writes_of"), run_templates.alias("writing")
    reads, using = template_relations.alias("reads_of"), run_templates.alias("reading")
    edges, stated = template_edges.alias("edges_of"), run_templates.alias("stating")
    columns = edge_columns.alias("columns_of")
    is_input = (
        exists()
        .where(
            using.c.run_id == used.c.run_id,
            using.c.first_at <= before,
            reads.c.template_id == using.c.template_id,
            reads.c.direction == SOURCE,
            reads.c.dataset_id == source,
            reads.c.creates != ELSEWHERE,
        )
        .correlate_except(using, reads)
    )
    is_in_an_edge = (
        exists()
        .where(
            stated.c.run_id == used.c.run_id,
            edges.c.template_id == stated.c.template_id,
            columns.c.set_hash == edges.c.set_hash,
            columns.c.source_id == source,
        )
        .correlate_except(stated, edges, columns)
    )
    run = (
        select(literal(1))
        .select_from(writes.join(used, used.c.template_id == writes.c.template_id))
        .where(
            writes.c.dataset_id == made,
            writes.c.direction == SINK,
            writes.c.creates != ELSEWHERE,
            used.c.first_at <= before,
            or_(is_input, is_in_an_edge),
        )
    )
    if other_than is not None:
        run = run.where(used.c.run_id != other_than)
    return run.limit(1).correlate_except(writes, used).scalar_subquery().is_not(None)


def runs_since(connection: Connection, at: int) -> Sequence[Row[Any]]:
    """Return the batch runs of groups (id, job_id, ended_at) that completed since a moment."""
    return connection.execute(_completed(), {"since": at}).all()


@cache
def _completed() -> Select[Any]:
    in_groups = union(
        select(group_jobs.c.job_id),
        select(job_groups.c.job_id).where(job_groups.c.group_name != ""),
    )
    return select(runs.c.id, runs.c.job_id, runs.c.ended_at).where(
        runs.c.job_id.in_(in_groups),
        runs.c.newest_at >= bindparam("since"),
        runs.c.ended_at >= bindparam("since"),
        runs.c.state == COMPLETE,
        runs.c.streaming == 0,
    )


def behind_new_edges(
    connection: Connection, related: Collection[int], completed: Iterable[Row[Any]]
) -> set[int]:
    """Return the completed runs that may have read what new edges of these runs lead to.

    An edge is new to a run if it was made before the run ended, and no other run had made it then.
    """
    edges = connection.execute(_new_edges(), {"runs": sorted(related)}).all()
    if not edges:
        return set()
    readers = _jobs_behind(connection, {edge.dataset_id for edge in edges})
    first = min(edge.first_at for edge in edges)
    return {run.id for run in completed if run.job_id in readers and run.ended_at >= first}


@cache
def _new_edges() -> CompoundSelect[Any]:
    """Select the outputs of these runs that no earlier run had made from the same source."""
    writes, reads = relations.alias("writes"), relations.alias("reads")
    stated = edge_uses.join(edge_columns, edge_columns.c.set_hash == edge_uses.c.set_hash)
    of = writes.c
    of_runs = among_given(of.run_id, "runs"), of.direction == SINK, of.creates != ELSEWHERE
    read = (reads.c.run_id == of.run_id) & (reads.c.direction == SOURCE)
    inputs = select(of.dataset_id, of.first_at).join(reads, read).where(*of_runs)
    named = select(of.dataset_id, of.first_at).join(stated, edge_uses.c.run_id == of.run_id)
    return union(
        inputs.where(~_is_made_before(of.dataset_id, reads.c.dataset_id, of.first_at, of.run_id)),
        named.where(
            *of_runs,
            ~_is_made_before(of.dataset_id, edge_columns.c.source_id, of.first_at, of.run_id),
        ),
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
