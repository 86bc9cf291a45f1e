"""Where Spark keeps a table: a folder of Parquet files, `delta:FOLDER`, or `iceberg:CATALOG.DATABASE.TABLE`.

Archives and results of an analysis are named alike. Of several tables together the folder, or the database, is named.
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

    def within(self, name: str) -> TablePlace:
        """The place of one table of several.

        >>> place_of("iceberg:lake.analysis").within("steps").address, place_of("s3://b/a").within("steps").address
        ('lake.analysis.steps', 's3://b/a/steps')
        """
        return self._replace(address=f"{self.address}{'.' if self.form == 'iceberg' else '/'}{name}")


def place_of(text: str) -> TablePlace:
    """The place that a text names.

    >>> place_of("/data/lineage"), place_of("delta:/data/lineage").form
    (TablePlace(form='parquet', address='/data/lineage'), 'delta')
    """
    form, _, address = text.partition(":")
    return TablePlace(form, address) if form in FORMS else TablePlace("parquet", text)


def frame_at(spark: SparkSession, place: TablePlace, **options: str) -> DataFrame:
    """The table at a place, read with options of its format. Spark says what is missing by an error of its own."""
    reader = spark.read.options(**options)
    if place.form == "iceberg":
        return reader.table(place.address)
    return reader.format(place.form).load(place.address)


def overwrite(frame: DataFrame, place: TablePlace) -> DataFrame:
    """Put a table in the place of what is there, in one commit where the format has commits, and give it as it is read."""
    if place.form == "iceberg":
        frame.writeTo(place.address).using("iceberg").createOrReplace()
    else:
        frame.write.format(place.form).mode("overwrite").option("overwriteSchema", "true").save(place.address)
    return frame_at(frame.sparkSession, place)
