"""Catalogs of Spark's conf, as pyiceberg opens them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline_spark.sources.lake_catalogs import CatalogError, catalogs_in, open_table

ICEBERG = "org.apache.iceberg.spark.SparkCatalog"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (
            {"type": "rest", "uri": "https://catalog:8181", "warehouse": "w", "credential": "a:b"},
            {"type": "rest", "uri": "https://catalog:8181", "warehouse": "w", "credential": "a:b"},
        ),
        (
            {"type": "jdbc", "uri": "jdbc:postgresql://db:5432/c", "jdbc.user": "me", "jdbc.password": "p@ss:", "warehouse": "w"},
            {"type": "sql", "uri": "postgresql+psycopg2://me:p%40ss%3A@db:5432/c", "warehouse": "w"},
        ),
        (
            {"type": "jdbc", "uri": "jdbc:sqlite:/c.db", "jdbc.schema-version": "V1", "cache-enabled": "false"},
            {"type": "sql", "uri": "sqlite:////c.db"},
        ),
        ({"type": "hive", "uri": "thrift://metastore:9083"}, {"type": "hive", "uri": "thrift://metastore:9083"}),
    ],
)  # fmt: skip
def test_a_catalog_has_pyiceberg_s_properties(
    given: dict[str, str], wanted: dict[str, str]
) -> None:
    conf = {"spark.sql.catalog.lake": ICEBERG} | {
        f"spark.sql.catalog.lake.{key}": one for key, one in given.items()
    }

    assert catalogs_in(
        {**conf, "spark.sql.catalog.other": "org.apache.paimon.spark.SparkCatalog"}
    ) == {"lake": wanted}


@pytest.mark.spark
def test_folder_catalog_finds_the_newest_metadata(lake: Any, tmp_path: Path) -> None:
    conf = {"spark.sql.catalog.pond": ICEBERG, "spark.sql.catalog.pond.type": "hadoop"}
    conf["spark.sql.catalog.pond.warehouse"] = f"file://{tmp_path}"
    for key, value in conf.items():
        lake.conf.set(key, value)
    lake.sql("CREATE TABLE pond.db.t USING iceberg AS SELECT 1 AS v")
    lake.sql("INSERT INTO pond.db.t VALUES (2)")
    hint = tmp_path / "db" / "t" / "metadata" / "version-hint.text"
    behind = {}
    for version in ("1", hint.read_text()):  # a writer may not have come to the hint yet
        hint.write_text(version)
        current = open_table("pond.db.t", catalogs_in(conf)).current_snapshot()
        behind[version] = str(current.snapshot_id) if current is not None else None
    (newest,) = lake.sql(
        "SELECT snapshot_id FROM pond.db.t.snapshots ORDER BY committed_at DESC LIMIT 1"
    ).collect()

    assert behind == {"1": str(newest.snapshot_id), "2": str(newest.snapshot_id)}
    with pytest.raises(CatalogError) as error:
        open_table("pond.db.none", catalogs_in(conf))
    assert str(error.value).startswith("pond.db.none: catalog pond cannot load the table: ")
