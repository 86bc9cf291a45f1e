"""A real Spark session over real tables for the emitter's tests: Iceberg in a JDBC catalog on SQLite, and Delta.

Hudi has a session of its own: it wants the session catalog, as Delta does.

Which formats there are depends on the version of Spark; the jars are those of `deploy.jars`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from deploy import jars

SPARK = ".".join(pyspark.__version__.split(".")[:2])
_EXTENSIONS = {
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "paimon": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    "hudi": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
}
_ALONE = {"hudi"}


def formats() -> tuple[str, ...]:
    """The table formats that have a runtime for this Spark."""
    return tuple(name for name in _EXTENSIONS if f"{name}-{SPARK}" in jars.SETS)


def together() -> tuple[str, ...]:
    """Those of them that one session can have together."""
    return tuple(name for name in formats() if name not in _ALONE)


@contextmanager
def lake_session(folder: Path, more_jars: Sequence[str] = (), conf: dict[str, str] | None = None) -> Iterator[Any]:
    """A session whose catalog `lake` is Iceberg and whose own catalog is Delta's, where they exist."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Python workers need what this interpreter has
    sets = [f"{name}-{SPARK}" for name in together()] + list(more_jars)
    files = [str(file) for name in sets for file in sorted(jars.fetch(name).glob("*.jar"))]
    builder = SparkSession.builder.master("local[2]").config("spark.jars", ",".join(files))
    for key, value in {**settings(folder), **(conf or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


def settings(folder: Path, chosen: Sequence[str] | None = None) -> dict[str, str]:
    """The conf of a lake in a folder, with all formats that there are for this Spark, or those that were chosen."""
    chosen = together() if chosen is None else chosen
    # With the first compiler only, Java keeps room for 48 MB of code; Delta fills it, and all is interpreted from then on.
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
    found = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"{quick} -Dderby.system.home={folder} -Djava.io.tmpdir={tempfile.gettempdir()}",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.sql.warehouse.dir": str(folder / "spark"),
        "spark.sql.extensions": ",".join(_EXTENSIONS[name] for name in chosen),
    }
    for name in chosen:
        found |= _CATALOGS[name](folder)
    return found


_CATALOGS: Mapping[str, Callable[[Path], dict[str, str]]] = {
    "iceberg": lambda folder: {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "jdbc",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "spark.sql.catalog.lake.jdbc.schema-version": "V1",
        "spark.sql.catalog.lake.warehouse": f"file://{folder}/lake",
        "spark.sql.catalog.lake.cache-enabled": "false",
    },
    "delta": lambda folder: {
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    },
    "paimon": lambda folder: {
        "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
        "spark.sql.catalog.paimon.warehouse": str(folder / "paimon"),
        "spark.paimon.commit.user-prefix": "ours",
    },
    "hudi": lambda folder: {
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    },
}
