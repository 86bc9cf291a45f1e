"""The graph of a store as Spark's frames: jobs and datasets listed by the driver, their steps read by the workers.

`steps` are those of a walk between datasets, `column_edges` those between columns. Each job is read in one transaction,
so what one job says hangs together; jobs that change while the graph is read may be a few minutes apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, Select, func, select

from strandline.analysis.aliases import last_part, location_of
from strandline.analysis.extract import (
    JOBS_AT_ONCE,
    columns_in,
    graph_of,
    node_of_column,
    prefixes,
)
from strandline.store.lineage.relations import View
from strandline.store.schema.tables import datasets, job_relations, jobs
from strandline.store.sql.engine import make_engine, reading

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

PAGE = 20_000
STEPS = (
    "job bigint, source bigint, target bigint, rule string, read_at bigint, written_at bigint, source_column string, "
    "target_column string, source_node bigint, target_node bigint, dependency string"
)
COLUMNS = "dataset bigint, column string, node bigint, type string"
NODES = "dataset bigint, column string, node bigint, within array<bigint>"
DATASETS = "id bigint, namespace string, name string, catalog string, database string, table string, newest_at bigint, named bigint"
NAMES = "id bigint, canonical bigint, namespace string, name string, location string, last_part string"
JOBS = "id bigint, namespace string, name string"
Ask = Callable[[Connection, Sequence[int]], Iterable[tuple[Any, ...]]]


class GraphFrames(NamedTuple):
    """Frames, each written down once.

    nodes: every column that edges or schemas name, with the nodes of all that it is inside of (`within`).
    """

    datasets: DataFrame
    names: DataFrame
    jobs: DataFrame
    steps: DataFrame
    columns: DataFrame
    column_edges: DataFrame
    nodes: DataFrame


def read_graph(
    spark: SparkSession, url: str, view: View, scratch: str, partitions: int, *, columns: bool
) -> GraphFrames:
    """Read the store at `url` as of a view into files below `scratch`, a folder that driver and workers share.

    columns: False leaves the frames of columns empty; most of what there is to read is about columns.
    """
    engine = make_engine(url)
    try:
        with reading(engine).connect() as connection:
            write_rows(connection, _datasets(), DATASETS, f"{scratch}/datasets")
            write_rows(connection, _names(), NAMES, f"{scratch}/names", _named)
            write_rows(connection, select(jobs.c.id, jobs.c.namespace, jobs.c.name), JOBS, f"{scratch}/jobs")
            write_rows(connection, select(job_relations.c.job_id).distinct(), "id bigint", f"{scratch}/asked")
    finally:
        engine.dispose()
    listed = {name: spark.read.parquet(f"{scratch}/{name}") for name in ("datasets", "names", "jobs", "asked")}

    def stored(ids: DataFrame, ask: Ask, schema: str, name: str) -> DataFrame:
        spread = ids.select("id").repartition(partitions)
        spread.mapInArrow(partial(_answers, url, ask, schema), schema).write.parquet(f"{scratch}/{name}")
        return spark.read.parquet(f"{scratch}/{name}")

    found = stored(listed["asked"], partial(_graph_of, view, columns), STEPS, "graph").distinct()
    described = listed["datasets"] if columns else listed["datasets"].limit(0)
    known_columns = stored(described, columns_in, COLUMNS, "columns")
    edges = found.where("dependency IS NOT NULL").checkpoint()
    steps = found.where("dependency IS NULL").select("job", "source", "target", "rule", "read_at", "written_at")
    nodes = _nodes(known_columns, edges).checkpoint()
    of_tables = listed["datasets"], listed["names"], listed["jobs"], steps.checkpoint()
    return GraphFrames(*of_tables, known_columns, edges, nodes)


def column_arcs(graph: GraphFrames, dependencies: Sequence[str] = ()) -> DataFrame:
    """Arcs from each node to what is made of it, of what it is inside of, or of what is inside of it."""
    from pyspark.sql import functions as f

    edges = graph.column_edges.selectExpr("source_node AS via", "target_node AS target", "dependency")
    edges = edges.where(f.col("dependency").isin(*dependencies)) if dependencies else edges
    inside = graph.nodes.select("node", f.explode("within").alias("via"))
    sources = edges.select("via").distinct().withColumnRenamed("via", "source")
    outside = inside.join(sources, inside.node == sources.source).selectExpr("via AS node", "source AS via")
    meeting = inside.unionByName(outside).distinct()
    return meeting.join(edges, "via").selectExpr("node AS source", "target").distinct()


def _nodes(columns: DataFrame, edges: DataFrame) -> DataFrame:
    named = columns.select("dataset", "column")
    sources = edges.selectExpr("source AS dataset", "source_column AS column")
    targets = edges.selectExpr("target AS dataset", "target_column AS column")
    wholes = columns.selectExpr("dataset", "'' AS column")
    every = named.unionByName(sources).unionByName(targets).unionByName(wholes).distinct()
    return every.mapInArrow(_with_ids, NODES)


def _with_ids(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from _batched(
            (
                (dataset, column, node_of_column(dataset, column), [node_of_column(dataset, one) for one in prefixes(column)])
                for dataset, column in zip(*(values.to_pylist() for values in batch.columns), strict=True)
            ),
            NODES,
        )  # fmt: skip


def _graph_of(view: View, columns: bool, connection: Connection, ids: Sequence[int]) -> Iterable[tuple[Any, ...]]:
    return graph_of(connection, view, ids, columns=columns)


def _answers(url: str, ask: Ask, schema: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: what the store answers for these ids, a page a transaction."""
    engine = make_engine(url, pool_size=1)
    try:
        for batch in batches:
            ids = iter(batch.column(0).to_pylist())
            while page := list(islice(ids, JOBS_AT_ONCE)):
                with reading(engine).connect() as connection:
                    yield from _batched(ask(connection, page), schema)
    finally:
        engine.dispose()


def _datasets() -> Select[Any]:
    names = datasets.alias("names")
    every = func.max(names.c.newest_at), func.max(names.c.named)
    own = [datasets.c[name] for name in ("id", "namespace", "name", "catalog", "database_name", "table_name")]
    joined = datasets.join(names, names.c.canonical_id == datasets.c.id)
    return select(*own, *every).select_from(joined).group_by(*own)


def _names() -> Select[Any]:
    return select(datasets.c.id, datasets.c.canonical_id, datasets.c.namespace, datasets.c.name)


def _named(row: Sequence[Any]) -> tuple[Any, ...]:
    _, _, namespace, name = row
    return (*row, location_of(namespace, name), last_part(name))


def write_rows(
    connection: Connection,
    query: Select[Any],
    schema: str,
    folder: str,
    shaped: Callable[[Sequence[Any]], tuple[Any, ...]] = tuple,
) -> None:
    """The rows of a query as files, a page in memory; one file at least, so that Spark knows the columns."""
    from pyarrow import fs, parquet

    filesystem, root = (fs.FileSystem.from_uri(folder)) if "://" in folder else (fs.LocalFileSystem(), folder)
    filesystem.create_dir(root, recursive=True)
    result = connection.execute(query.execution_options(stream_results=True, yield_per=PAGE))
    for number, batch in enumerate(_batched(map(shaped, result), schema, least=1)):
        parquet.write_table(_table(batch), f"{root}/{number:06d}.parquet", filesystem=filesystem)


def _table(batch: pa.RecordBatch) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


def _batched(rows: Iterable[Sequence[Any]], schema: str, least: int = 0) -> Iterator[pa.RecordBatch]:
    """Rows as record batches of a schema as Spark writes it; so many batches at least."""
    import pyarrow as pa

    types = {"bigint": pa.int64(), "string": pa.string(), "array<bigint>": pa.list_(pa.int64())}
    fields = [tuple(field.split()) for field in schema.split(",")]
    remaining, count = iter(rows), 0
    while (page := list(islice(remaining, PAGE))) or count < least:
        values = list(zip(*page, strict=True)) or [()] * len(fields)
        arrays = [pa.array(column, types[kind]) for column, (_, kind) in zip(values, fields, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, [name for name, _ in fields])
        count += 1
