"""A Spark application that does what it is told line by line.

A base table, an aligned chain below it, a plain copy, and a reader.

`lake.h.transfers` (one file a barrier) -> `credits` (its changes) -> `balance` (its state), and
`transfers` -> `copy` by a plain stream. All its queries end by themselves (AvailableNow) and start
again at the next line. Each line is `WORD [NUMBER]`, each answer a line of JSON. `work 7`
multiplies by 7: the bug that a rollback takes back.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from strandline_spark import aligned_stream, read_consistent

PLACE = "lake.h"
TABLES = ("transfers", "credits", "balance", "copy")
COLUMNS = "account bigint, amount bigint"
SECONDS = 300


class Histories:
    """The application; `folder` holds the base table's files and the checkpoints."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.held: list[tuple[Any, dict[str, int]]] = []  # leased answers, with what they showed
        (folder / "in").mkdir(exist_ok=True)
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {PLACE}")
        for table in TABLES:
            spark.sql(f"CREATE TABLE IF NOT EXISTS {PLACE}.{table} ({COLUMNS}) USING iceberg")

    def commit(self, barrier: int) -> dict[str, Any]:
        """The base table's next barrier: three rows."""
        rows = [
            json.dumps({"account": barrier % number, "amount": 10 * barrier + number})
            for number in (2, 3, 5)
        ]
        (self.folder / "in" / f"{barrier:06}.json").write_text("\n".join(rows) + "\n")
        files = (
            self.spark.readStream.schema(COLUMNS)
            .option("maxFilesPerTrigger", 1)
            .json(str(self.folder / "in"))
        )
        return self._end(self._plain(files, "transfers"))

    def copy(self, _: int) -> dict[str, Any]:
        """A stream that knows nothing of barriers starts again and takes what is new."""
        return self._end(self._plain(self.spark.readStream.table(f"{PLACE}.transfers"), "copy"))

    def work(self, factor: int) -> dict[str, Any]:
        """The aligned jobs take all barriers that are there."""

        def credited(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
            return inputs["transfers"].selectExpr("account", f"amount * {factor} AS amount")

        def balance(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
            return inputs["credits"].groupBy("account").sum("amount").toDF("account", "amount")

        self._end(
            self._aligned("transfers", "credits", credited, changes=["transfers"], mode="append")
        )
        return self._end(self._aligned("credits", "balance", balance))

    def rows(self, _: int) -> dict[str, Any]:
        """Return the rows of the derived tables at their latest."""
        return {
            table: sorted(map(list, self.spark.table(f"{PLACE}.{table}").collect()))
            for table in TABLES[1:]
        }

    def strong(self, _: int) -> dict[str, Any]:
        """The barrier of a strong read of the aligned chain, and the sums that it shows."""
        with read_consistent(self.spark, [f"{PLACE}.{table}" for table in TABLES[:3]]) as tables:
            return {"barrier": tables.barrier, "sums": _sums(tables)}

    def lease(self, _: int) -> dict[str, Any]:
        """A reader takes an answer and keeps it; the oldest of five is given back."""
        tables = read_consistent(self.spark, [f"{PLACE}.{table}" for table in TABLES])
        self.held.append((tables, _sums(tables)))
        if len(self.held) > 5:
            self.held.pop(0)[0].release()
        return {"held": len(self.held)}

    def read(self, _: int) -> dict[str, Any]:
        """Every reader reads again what it holds: how many saw what they saw before."""
        return {
            "read": len(self.held),
            "same": sum(_sums(tables) == before for tables, before in self.held),
        }

    def snapshots(self, _: int) -> dict[str, Any]:
        """Count the snapshots of each table."""
        return {table: self.spark.table(f"{PLACE}.{table}.snapshots").count() for table in TABLES}

    def _plain(self, rows: DataFrame, table: str) -> StreamingQuery:
        writer = rows.writeStream.queryName(table).trigger(availableNow=True)
        return writer.option("checkpointLocation", self._checkpoint(table)).toTable(
            f"{PLACE}.{table}"
        )

    def _aligned(
        self, source: str, table: str, transform: Callable[..., DataFrame], **how: Any
    ) -> StreamingQuery:
        return aligned_stream(
            self.spark, [f"{PLACE}.{source}"], f"{PLACE}.{table}", transform, checkpoint=self._checkpoint(table),
            group="bank", available_now=True, timeout=SECONDS, max_behind=None, **how,
        )  # fmt: skip

    def _checkpoint(self, table: str) -> str:
        return str(self.folder / "checkpoints" / table)

    def _end(self, query: StreamingQuery) -> dict[str, Any]:
        if not query.awaitTermination(SECONDS):
            raise TimeoutError(f"{query.name} does not end")
        return {}


def _sums(tables: Mapping[str, DataFrame]) -> dict[str, int]:
    return {
        name: int(frame.groupBy().sum("amount").first()[0] or 0) for name, frame in tables.items()
    }


def main(folder: Path) -> None:
    """Answer each line of the standard input; an error is an answer too."""
    with SparkSession.builder.appName("histories").getOrCreate() as spark:
        histories = Histories(spark, folder)
        print(json.dumps({}), flush=True)
        for line in sys.stdin:
            word, _, number = line.partition(" ")
            try:
                answer = getattr(histories, word.strip())(int(number or 0))
            except Exception as error:  # noqa: BLE001 - it is counted by who asked
                answer = {
                    "error": f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
                }
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
