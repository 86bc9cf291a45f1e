"""Paimon tables without Spark: made, written and read by Paimon's own Java library, in a JVM of its own.

For another writer, and for what a table's metadata says. Py4J does not find what an interface implements by default, so
the classes behind Paimon's builders are made here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from deploy import jars
from spark_lake import SPARK

Row = dict[str, Any]


class Tables:
    """The tables of one database of a warehouse."""

    def __init__(self, warehouse: Path, database: str) -> None:
        self._warehouse, self._database = warehouse, database
        self._java = _java()
        options = self._java.options.Options()
        options.set("warehouse", str(warehouse))
        self._catalog = self._java.catalog.CatalogFactory.createCatalog(
            self._java.catalog.CatalogContext.create(options)
        )
        self._catalog.createDatabase(database, True)

    def create(self, name: str, schema: pa.Schema, key: str | None = None) -> None:
        """Make a table; one with a key has one bucket, because only one writer may choose buckets as it goes."""
        made = self._java.schema.Schema.newBuilder()
        for column in schema:
            made = made.column(column.name, getattr(self._java.types.DataTypes, _KINDS[column.type][0])())
        if key is not None:
            made = made.primaryKey([key]).option("bucket", "1")
        self._catalog.createTable(self._named(name), made.build(), False)

    def append(self, name: str, schema: pa.Schema, row: Row) -> None:
        """Commit one row."""
        builder = self._java.table.sink.BatchWriteBuilderImpl(self._table(name))
        write = builder.newWrite().withIOManager(self._java.disk.IOManager.create(str(self._warehouse / "spilled")))
        write.write(self._written(schema, row))
        builder.newCommit().commit(write.prepareCommit())
        write.close()

    def rows(self, name: str, snapshot_id: str) -> list[Row]:
        """What a snapshot holds."""
        builder = self._java.table.source.ReadBuilderImpl(self._table(name).copy({"scan.snapshot-id": snapshot_id}))
        splits = builder.newScan().plan().splits()
        return [row for split in splits for row in self._read(name, builder.newRead().createReader(split))]

    def snapshots(self, name: str) -> list[dict[str, Any]]:
        """What the files of a table's snapshots say, oldest first."""
        place = self._warehouse / f"{self._database}.db" / name / "snapshot"
        found = [json.loads(file.read_text()) for file in place.glob("snapshot-*")]
        return sorted(found, key=lambda one: int(one["id"]))

    def _named(self, name: str) -> Any:
        return self._java.catalog.Identifier.create(self._database, name)

    def _table(self, name: str) -> Any:
        return self._catalog.getTable(self._named(name))

    def _written(self, schema: pa.Schema, row: Row) -> Any:
        made = self._java.data.BinaryRow(len(schema))
        writer = self._java.data.BinaryRowWriter(made)
        for index, column in enumerate(schema):
            value = row[column.name]
            text = self._java.data.BinaryString.fromString(value) if isinstance(value, str) else value
            getattr(writer, f"write{_KINDS[column.type][1]}")(index, text)
        writer.complete()
        return made

    def _read(self, name: str, reader: Any) -> Iterator[Row]:
        fields = [(str(one.name()), str(one.type().getTypeRoot())) for one in self._table(name).rowType().getFields()]
        rows = self._java.reader.RecordReaderIterator(reader)
        while rows.hasNext():
            row = rows.next()
            yield {name: _value(row, index, kind) for index, (name, kind) in enumerate(fields)}
        rows.close()


# Of each type: what Paimon calls it, and what is written and read of it.
_KINDS: Mapping[pa.DataType, tuple[str, str]] = {
    pa.int64(): ("BIGINT", "Long"),
    pa.int32(): ("INT", "Int"),
    pa.string(): ("STRING", "String"),
}
_READ = {"BIGINT": "getLong", "INTEGER": "getInt", "VARCHAR": "getString"}


def _value(row: Any, index: int, kind: str) -> Any:
    if row.isNullAt(index):
        return None
    value = getattr(row, _READ[kind])(index)
    return str(value.toString()) if kind == "VARCHAR" else value


def _java() -> Any:
    """The package of Paimon in a JVM that ends with this process."""
    home = Path(pyspark.__file__).parent / "jars"
    files = [str(file) for file in sorted(jars.fetch(f"paimon-{SPARK}").glob("*.jar"))]
    port = launch_gateway(
        classpath=":".join([*files, f"{home}/*"]),
        jarpath=str(next(home.glob("py4j-*.jar"))),
        javaopts=["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"],
        die_on_exit=True,
    )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True)).jvm.org.apache.paimon
