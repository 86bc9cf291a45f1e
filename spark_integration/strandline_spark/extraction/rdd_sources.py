"""The tables and files from which an RDD was made whose rows a statement reads.

Spark keeps nothing of the plan below `df.rdd`, but an RDD knows those that it is made from, down to
the ones that scan. What happened to the rows on the way is opaque.
"""

from __future__ import annotations

from collections.abc import Iterator

from strandline_spark.formats.files import folder_of
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.client import JavaObject, Jvm, simple_name

_LOOKED_AT = 100  # RDDs below one
_TABLE_PARTITION = "SparkInputPartition"  # Iceberg's


def sources_of_rows(rows: JavaObject, jvm: Jvm) -> tuple[list[str], list[Mention]]:
    """Return the names of the tables, and mentions of the folders, below a LogicalRDD."""
    tables, folders = dict[str, None](), dict[str, None]()
    for rdd in _below(rows.rdd(), jvm):
        kind = simple_name(rdd)
        if kind == "DataSourceRDD":
            tables |= dict.fromkeys(_tables(rdd, jvm))
        elif kind == "FileScanRDD":
            folders |= dict.fromkeys(_folders(rdd))
        elif kind in {"HadoopRDD", "NewHadoopRDD"} and rdd.name() is not None:
            folders |= dict.fromkeys(folder_of(path) for path in str(rdd.name()).split(","))
    return list(tables), [Mention(provider="files", options={"path": path}) for path in folders]


def _below(rdd: JavaObject, jvm: Jvm) -> Iterator[JavaObject]:
    """Yield an RDD and those that it is made from, each once."""
    waiting, visited = [rdd], set[int]()
    while waiting and len(visited) < _LOOKED_AT:
        rdd = waiting.pop()
        if (number := int(rdd.id())) in visited:
            continue
        visited.add(number)
        yield rdd
        waiting += [dependency.rdd() for dependency in jvm.sequence(rdd.dependencies())]


def _tables(rdd: JavaObject, jvm: Jvm) -> Iterator[str]:
    """Yield the names of the tables that the first partition of an RDD reads."""
    for partition in rdd.partitions()[:1]:
        for group in jvm.sequence(partition.inputPartitions())[:1]:
            if simple_name(group) == _TABLE_PARTITION:
                shared = jvm.field(group, "tableBroadcast")
                if shared is not None:
                    yield str(shared.value().name())


def _folders(rdd: JavaObject) -> Iterator[str]:
    """Yield the folder of the first file that each partition of an RDD reads."""
    partitions = rdd.filePartitions()
    for index in range(min(partitions.size(), _LOOKED_AT)):
        files = partitions.apply(index).files()
        if len(files):
            yield folder_of(str(files[0].toPath().toString()))
