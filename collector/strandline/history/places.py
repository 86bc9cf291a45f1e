"""The place of a table on Spark.

A folder of Parquet files, `delta:FOLDER`, or `iceberg:CATALOG.DATABASE.TABLE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMS = ("delta", "iceberg")


class TablePlace(NamedTuple):
    """A format, and the folder or the identifier of a table in it."""

    form: str
    address: str


def place_of(text: str) -> TablePlace:
    """Return the place that a text names.

    >>> place_of("/data/lineage"), place_of("delta:/data/lineage").form
    (TablePlace(form='parquet', address='/data/lineage'), 'delta')
    """
    form, _, address = text.partition(":")
    return TablePlace(form, address) if form in FORMS else TablePlace("parquet", text)


def frame_at(spark: SparkSession, place: TablePlace, **options: str) -> DataFrame:
    """Return the table at a place, read with options of its format.

    Spark's own error says what is missing.
    """
    reader = spark.read.options(**options)
    if place.form == "iceberg":
        return reader.table(place.address)
    return reader.format(place.form).load(place.address)
