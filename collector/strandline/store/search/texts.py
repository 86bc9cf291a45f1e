"""The texts that the search looks through, as the store has them now.

They are names, tags, columns and SQL of datasets and jobs, and application ids of runs. The
search's tables are made of these. What a scan finds is asked again here, by the connection of who
searches. So it shows nothing that is no longer so, and nothing of a namespace that a key may not
see.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, Table, func, select, true

from strandline.core.changes.edges import edges_in
from strandline.core.openlineage.facets import DATASET, JOB, MODELS, RUN
from strandline.store.lineage.column_names import NAMED_AT, column_paths, renamed_columns_of
from strandline.store.lineage.facets import newest_facet_rows
from strandline.store.lineage.lookup import names_of_datasets
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import edge_columns, edge_uses
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.search.finding import (
    APPLICATION,
    COLUMN,
    DATASET_NAME,
    DATASET_TAG,
    JOB_NAME,
    JOB_TAG,
    SQL,
)
from strandline.store.sql.compression import expander
from strandline.store.sql.id_lists import among_given

Texts = Mapping[int, Sequence[str]]


class SearchEntry(NamedTuple):
    """A dataset, job or run and its texts; of names the first is the one that answers show."""

    id: int
    namespace_id: int
    texts: Sequence[str]


def canonical_ids(connection: Connection, ids: Collection[int]) -> set[int]:
    """Return the datasets that these names are names of."""
    return set(connection.scalars(_canonical_ids(), {"ids": list(ids)}).all())


@cache
def _canonical_ids() -> Select[Any]:
    return select(datasets.c.canonical_id).where(among_given(datasets.c.id, "ids"))


def entries_of(connection: Connection, kind: int, ids: Collection[int]) -> list[SearchEntry]:
    """Return the entries of a kind for these canonical datasets, jobs or runs."""
    rows = connection.execute(_namespaces(table_of(kind)), {"ids": list(ids)}).all()
    texts = TEXTS[kind](connection, [row.id for row in rows])
    return [
        SearchEntry(row.id, row.namespace_id, list(dict.fromkeys(texts.get(row.id, ()))))
        for row in rows
    ]


def table_of(kind: int) -> Table:
    """Return the table of the entities that have texts of a kind."""
    if kind == APPLICATION:
        return runs
    return jobs if kind in (JOB_NAME, JOB_TAG, SQL) else datasets


@cache
def _namespaces(table: Table) -> Select[Any]:
    if table is runs:
        of_run = select(runs.c.id, jobs.c.namespace_id).join(jobs, jobs.c.id == runs.c.job_id)
        return of_run.where(among_given(runs.c.id, "ids"))
    own = (
        table.c.canonical_id == table.c.id if table is datasets else true()
    )  # of a name that is another's, no entry
    return select(table.c.id, table.c.namespace_id).where(among_given(table.c.id, "ids"), own)


def dataset_names(connection: Connection, ids: Sequence[int]) -> Texts:
    """Return each canonical dataset's name, its other names, and catalog.database.table of each."""
    own: dict[int, list[str]] = {}
    others: dict[int, list[str]] = defaultdict(list)
    for row in connection.execute(_datasets(), {"ids": list(ids)}).all():
        if row.id == row.canonical_id:
            own[row.id] = [row.name]
        others[row.canonical_id] += [
            row.name,
            f"{row.catalog}.{row.database_name}.{row.table_name}",
        ]
    return {id_: names + others[id_] for id_, names in own.items()}


@cache
def _datasets() -> Select[Any]:
    return (
        select(datasets).where(among_given(datasets.c.canonical_id, "ids")).order_by(datasets.c.id)
    )


def job_names(connection: Connection, ids: Sequence[int]) -> Texts:
    """Return the name of each job."""
    rows = connection.execute(_jobs(), {"ids": list(ids)})
    return {row.id: [row.name] for row in rows.all()}


@cache
def _jobs() -> Select[Any]:
    return select(jobs.c.id, jobs.c.name).where(among_given(jobs.c.id, "ids"))


def columns_of(connection: Connection, ids: Sequence[int]) -> Texts:
    """Return the columns of each canonical dataset, under any of its names.

    They are those of its schema (those inside a struct with their path), and others that edges into
    it name.
    """
    found: dict[int, list[str]] = defaultdict(list)
    canonical = names_of_datasets(connection, ids)
    for id_, schema in _facets(connection, DATASET, "schema", list(canonical)):
        found[canonical[id_]] += column_paths(schema.fields or ())
    stated: dict[int, set[str]] = defaultdict(set)
    renamed = renamed_columns_of(connection, canonical.values())
    expanded = expander()
    for id_, edges, at in connection.execute(_edges_into(), {"ids": list(canonical)}):
        of_table = canonical[id_]
        stated[of_table].update(
            renamed.name(of_table, edge.sink_column, at) for edge in edges_in(expanded(edges))
        )
    for id_, columns in stated.items():
        found[id_] += sorted(columns.difference(found[id_], {""}))
    return found


def sql_of(connection: Connection, ids: Sequence[int]) -> Texts:
    """Return the SQL of each job, a text a line: an answer shows the lines that hold the word."""
    texts = _facets(connection, JOB, "sql", ids)
    return {job: [line.strip() for line in sql.query.splitlines()] for job, sql in texts}


def applications_of(connection: Connection, ids: Sequence[int]) -> Texts:
    """Return the id that Spark gave to the application of each run."""
    ids_of = _facets(connection, RUN, "spark_applicationDetails", ids)
    return {run: [details.application_id] for run, details in ids_of if details.application_id}


def dataset_tags(connection: Connection, ids: Sequence[int]) -> Texts:
    """Return the tags that events give a canonical dataset or its columns, under any name."""
    found: dict[int, list[str]] = defaultdict(list)
    canonical = names_of_datasets(connection, ids)
    for id_, tags in _facets(connection, DATASET, "tags", list(canonical)):
        found[canonical[id_]] += _tags(tags)
    return found


def job_tags(connection: Connection, ids: Sequence[int]) -> Texts:
    """Return the same of each job."""
    return {job: list(_tags(tags)) for job, tags in _facets(connection, JOB, "tags", ids)}


TEXTS: Mapping[int, Callable[[Connection, Sequence[int]], Texts]] = {
    DATASET_NAME: dataset_names,
    JOB_NAME: job_names,
    DATASET_TAG: dataset_tags,
    JOB_TAG: job_tags,
    COLUMN: columns_of,
    SQL: sql_of,
    APPLICATION: applications_of,
}


def _tags(facet: Any) -> Iterator[str]:
    for tag in facet.tags or ():
        yield tag.key if tag.value in (None, True, "true", "") else f"{tag.key}={tag.value}"


@cache
def _edges_into() -> Select[Any]:
    """Return the edges into these datasets, each set once however many runs have stated it."""
    stated = (
        select(edge_uses.c.sink_id, edge_uses.c.set_hash, func.max(NAMED_AT).label("at"))
        .join(runs, runs.c.id == edge_uses.c.run_id)
        .where(among_given(edge_uses.c.sink_id, "ids"))
        .group_by(edge_uses.c.sink_id, edge_uses.c.set_hash)
    )
    sets = stated.subquery("sets")
    return select(sets.c.sink_id, edge_columns.c.columns, sets.c.at).join(
        edge_columns, edge_columns.c.set_hash == sets.c.set_hash
    )


def _facets(
    connection: Connection, kind: int, key: str, ids: Iterable[int]
) -> Iterator[tuple[int, Any]]:
    """(entity, decoded facet) of the entities that have a good one."""
    expanded = expander()
    decoder = msgspec.json.Decoder(MODELS[kind, key])
    rows = newest_facet_rows(connection, (kind,), {id_: id_ for id_ in ids}, [key])
    for (entity, _), row in rows.items():
        yield entity, decoder.decode(expanded(row.content))
