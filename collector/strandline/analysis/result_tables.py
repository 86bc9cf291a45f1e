"""The tables of one analysis, as they are written: to a folder, `delta:FOLDER`, or `iceberg:CATALOG.DATABASE`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.errors import RefusedError
from strandline.history.places import overwrite, place_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ResultTables:
    """Tables by name. Each takes the place of what an earlier analysis wrote."""

    def __init__(self, spark: SparkSession, target: str) -> None:
        self.spark, self.target, self.place = spark, target, place_of(target)
        self.tables: dict[str, DataFrame] = {}

    def begin(self, as_of: int, stale_before: int) -> None:
        """Write down what is analysed (`analysis`), before anything is: RefusedError where no table can be written."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        asked = self.spark.range(1).selectExpr(f"{as_of}L AS as_of", f"{stale_before}L AS stale_before")
        try:
            if self.place.form == "iceberg":
                self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.place.address}")
            self.table("analysis", asked)
        except (PySparkException, Py4JJavaError) as error:
            reason = str(error).strip().splitlines()[0]
            raise RefusedError(f"{self.target}: no tables can be written there: {reason}") from None

    def table(self, name: str, frame: DataFrame) -> DataFrame:
        """Write a table, and read it."""
        self.tables[name] = overwrite(frame, self.place.within(name))
        return self.tables[name]
