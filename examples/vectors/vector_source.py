"""A source and a sink for vectors that know their own lineage, and a job between them.

The job knows its edges. Topics 1 and 2 go to topic 4, and topic 3 to topic 5. Spark sees one source
and one sink; the vertices that the classes give tell of five topics, each with its capacity and its
type of value, and `add_lineage_edges` says which one goes where.

python vector_source.py OUT
"""
# mypy: allow-subclassing-any

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Row, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from strandline_spark import (
    LineageDataset,
    LineageEdge,
    LineageVertex,
    LineageVertexProvider,
    SourceLineageVertex,
    add_lineage_edges,
)

BROKER = "vectors://broker:9000"


@dataclass(frozen=True)
class VectorFacet:
    """The properties of a topic of vectors."""

    capacity: int
    value_type: str


def topic(number: int) -> LineageDataset:
    """One topic, with its own facet."""
    return LineageDataset(
        f"topic_{number}", BROKER, {"vector": VectorFacet(capacity=8 * number, value_type="FLOAT")}
    )


def topics(names: str) -> tuple[LineageDataset, ...]:
    """The topics that an option like "1,2,3" names."""
    return tuple(topic(int(name)) for name in names.split(","))


class VectorSource(DataSource, LineageVertexProvider):
    """`spark.read.format("vectors").option("topics", "1,2,3")`: one vector a topic."""

    @classmethod
    def name(cls) -> str:
        """As `format` has it."""
        return "vectors"

    def schema(self) -> str:
        """A vector and its topic."""
        return "topic int, vector array<float>"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read all topics."""
        return VectorReader(self.options["topics"])

    def get_lineage_vertex(self) -> LineageVertex:
        """The topics that this source reads."""
        return SourceLineageVertex(topics(self.options["topics"]))


class VectorReader(DataSourceReader):
    """One vector a topic."""

    def __init__(self, names: str) -> None:
        self._names = names

    def read(self, partition: InputPartition) -> Iterator[tuple[int, list[float]]]:
        """All of them."""
        for name in self._names.split(","):
            yield int(name), [float(name), 0.5]


class VectorSink(DataSource, LineageVertexProvider):
    """`df.write.format("vector_index").option("topics", "4,5").save(FOLDER)`: a JSON file."""

    @classmethod
    def name(cls) -> str:
        """As `format` has it."""
        return "vector_index"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Write into the folder."""
        return VectorWriter(self.options["path"])

    def get_lineage_vertex(self) -> LineageVertex:
        """The topics that this sink writes."""
        return LineageVertex(topics(self.options["topics"]))


class VectorWriter(DataSourceWriter):
    """Writes one line a vector."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """One task's vectors."""
        Path(self._folder).mkdir(parents=True, exist_ok=True)
        with Path(self._folder, "vectors.jsonl").open("a") as lines:
            lines.writelines(f"{json.dumps(row.asDict())}\n" for row in iterator)
        return WriterCommitMessage()


def edges() -> list[LineageEdge]:
    """1, 2 -> 4 and 3 -> 5."""
    return [
        LineageEdge(SourceLineageVertex((topic(1), topic(2))), LineageVertex((topic(4),))),
        LineageEdge(SourceLineageVertex((topic(3),)), LineageVertex((topic(5),))),
    ]


def main(folder: str) -> None:
    """The job."""
    spark = SparkSession.builder.appName("vectors").getOrCreate()
    spark.dataSource.register(VectorSource)
    spark.dataSource.register(VectorSink)
    vectors = spark.read.format("vectors").option("topics", "1,2,3").load().coalesce(1)
    add_lineage_edges(spark, *edges())
    vectors.write.format("vector_index").option("topics", "4,5").mode("append").save(folder)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
