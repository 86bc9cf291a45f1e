"""The graph of a store as rows, a page of jobs or datasets at a time: what Spark's Python workers run.

Every rule is the collector's own: which relations are known (`relations_of`), what a job makes from what (`by_job`), and how
columns depend on each other (`edges_of`). A worker asks the store as a reader does, and writes nothing.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select

from strandline.core.changes.extraction import SINK
from strandline.core.openlineage.facets import DATASET
from strandline.core.openlineage.names import id_of
from strandline.core.walk import Direction
from strandline.store.lineage.column_lineage import columns_of, edges_of
from strandline.store.lineage.facets import value_of
from strandline.store.lineage.lookup import Node
from strandline.store.lineage.nested_commands import nested_runs, without_nested
from strandline.store.lineage.relations import Related, View, jobs_touching, relations_of
from strandline.store.lineage.table_graph import Leave, by_job, stated_sources
from strandline.store.schema.tables import datasets

JOBS_AT_ONCE = 100
MOST_WRITERS = 10_000  # of the datasets that a nested command writes: as many as a walk would look at


class GraphRow(NamedTuple):
    """A step between datasets, or an edge between columns (`dependency` is not None), of a job.

    source, target: canonical datasets; None: nothing. source_node, target_node: columns by `node_of_column`.
    """

    job: int
    source: int | None
    target: int | None
    rule: str
    read_at: int | None = None
    written_at: int | None = None
    source_column: str | None = None
    target_column: str | None = None
    source_node: int | None = None
    target_node: int | None = None
    dependency: str | None = None


class ColumnRow(NamedTuple):
    """A column of a dataset; `node` is its id, `type` what the schema says, None where there is no schema."""

    dataset: int
    column: str
    node: int
    type: str | None


def node_of_column(dataset: int, column: str) -> int:
    """The id of a column; all columns of a dataset ('') have the dataset's own."""
    return id_of("column", str(dataset), column) if column else dataset


def prefixes(column: str) -> list[str]:
    """The columns that a column is inside of: '' for the whole dataset, structs that it is a field of, and itself.

    >>> prefixes("item.sku")
    ['', 'item', 'item.sku']
    """
    ends = [place for place, sign in enumerate(column) if sign == "."]
    return list(dict.fromkeys(["", *(column[:end] for end in ends if end), column]))


def graph_of(connection: Connection, view: View, jobs: Sequence[int], *, columns: bool) -> Iterator[GraphRow]:
    """The steps, and if asked the column edges, of the jobs that runs of these names belong to."""
    touched = _relations(connection, view, jobs)
    stated = stated_sources(connection, touched)
    leave = Leave(frozenset(one.job for one in touched), Direction.DOWNSTREAM)
    for job in by_job(touched):
        for step, reason in job.steps(stated, leave).items():
            read = None if step.source is None else (reason.read or reason).seen.at
            written = None if reason.written is None else reason.written.seen.at
            yield GraphRow(step.via, step.source, step.target, reason.rule, read, written)
    for edge in edges_of(connection, touched) if columns else ():
        if edge.source is not None:
            yield GraphRow(
                edge.job,
                edge.source[0],
                edge.target[0],
                edge.how.rule,
                source_column=edge.source[1],
                target_column=edge.target[1],
                source_node=node_of_column(*edge.source),
                target_node=node_of_column(*edge.target),
                dependency=edge.how.dependency,
            )


def _relations(connection: Connection, view: View, jobs: Sequence[int]) -> list[Related]:
    """Their relations without nested runs. Whether a run is nested is seen only beside all writers of its datasets."""
    touched = relations_of(connection, view, jobs)
    nested = nested_runs(connection, {one.run for one in touched if one.direction == SINK})
    written = {one.dataset for one in touched if one.run in nested and one.direction == SINK}
    if not written:
        return touched
    owners = {one.job for one in touched}
    writers = jobs_touching(connection, list(written), SINK, MOST_WRITERS)
    beside = relations_of(connection, view, [*jobs, *writers])
    return [one for one in without_nested(connection, beside) if one.job in owners]


def columns_in(connection: Connection, ids: Sequence[int]) -> Iterator[ColumnRow]:
    """The columns of these canonical datasets: of the schema, else those that edges name."""
    for dataset in ids:
        names = list(connection.scalars(select(datasets.c.id).where(datasets.c.canonical_id == dataset)))
        schema = value_of(connection, DATASET, names, "schema")
        types = {one.name: one.type or "" for one in (schema and schema.fields) or () if one.name}
        for column in columns_of(connection, Node("dataset", dataset, "", "")):
            yield ColumnRow(dataset, column, node_of_column(dataset, column), types.get(column))
