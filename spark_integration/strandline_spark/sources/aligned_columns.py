"""The columns of several tables as one: by name, with NULL where a table has not that column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

TABLE, BARRIER = "strandline_table", "strandline_barrier"


def merged_schema(schemas: Mapping[str, pa.Schema]) -> StructType:
    """All columns of the tables, then `strandline_table` and `strandline_barrier`.

    Raises ValueError where a column has two types, or a name that is taken.
    """
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    found: dict[str, tuple[str, str, object]] = {}
    for table, schema in schemas.items():
        for field in schema:
            if field.name.lower() in (TABLE, BARRIER):
                raise ValueError(
                    f"{table}: its column {field.name} has a name that "
                    "strandline_aligned needs itself"
                )
            try:
                kind = from_arrow_type(field.type)
            except Exception as error:
                raise ValueError(
                    f"{table}.{field.name}: strandline_aligned has no Spark type for it: {error}"
                ) from error
            where, name, before = found.setdefault(field.name.lower(), (table, field.name, kind))
            if before != kind:
                raise ValueError(
                    f"{name}: {before} in {where} and {kind} in {table}; read them in two streams"
                )
    columns = [StructField(name, kind) for _, name, kind in found.values()]
    return StructType(
        [*columns, StructField(TABLE, StringType()), StructField(BARRIER, LongType())]
    )


def widened(
    batches: Iterator[pa.RecordBatch], schema: StructType, table: str, barrier: int
) -> Iterator[pa.RecordBatch]:
    """A table's rows in the merged columns."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = to_arrow_schema(schema)
    for batch in batches:
        places = {field.name.lower(): place for place, field in enumerate(batch.schema)}
        own = {
            TABLE: pa.repeat(pa.scalar(table), batch.num_rows),
            BARRIER: pa.repeat(pa.scalar(barrier), batch.num_rows),
        }
        columns = [
            own[field.name] if field.name in own
            else batch.column(places[field.name.lower()]).cast(field.type)
            if field.name.lower() in places
            else pa.nulls(batch.num_rows, field.type)
            for field in wanted
        ]  # fmt: skip
        yield pa.RecordBatch.from_arrays(columns, schema=wanted)
