"""Catalog options in the conf are sent to the collector and applied."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from fixtures.emitter.drivers import SparkProgram
from fixtures.servers import serving
from fixtures.waiting import wait_until
from fixtures.warm_jvm import WarmJvm
from strandline.store.sql.engine import make_engine
from strandline_spark.consistency.catalog_options import Option, announce, tell
from strandline_spark.consistency.collector import Collector

JOB = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for catalog in ("lake", "pond"):
    spark.sql(f"CREATE NAMESPACE {catalog}.db")
    spark.sql(f"CREATE TABLE {catalog}.db.t USING iceberg AS SELECT id FROM range(3)")
spark.stop()
"""


def get(url: str, path: str) -> Any:
    """An answer of the collector."""
    return httpx.get(f"{url}{path}").raise_for_status().json()


@pytest.mark.slow
@pytest.mark.spark
def test_catalog_options_of_the_conf_apply(
    tmp_path: Path, warm_jvm: WarmJvm, sqlite_url: str
) -> None:
    engine = make_engine(sqlite_url)
    with serving(engine) as url:
        conf = {
            "spark.strandline.enabled": "true",
            "spark.openlineage.transport.url": url,
            "spark.strandline.catalog.lake.table-lineage": "false",
            "spark.strandline.catalog.pond.data-lineage": "false",
        }
        for catalog in ("lake", "pond"):
            key = f"spark.sql.catalog.{catalog}"
            conf |= {key: "org.apache.iceberg.spark.SparkCatalog", f"{key}.type": "hadoop"}
            conf |= {f"{key}.warehouse": str(tmp_path / catalog)}
        ran = SparkProgram(tmp_path, JOB, conf, jvm=warm_jvm).run()
        assert ran.code == 0, ran.err[-2000:]
        wait_until(lambda: len(get(url, "/api/v2/tables/catalog_options")) == 2)
        options = get(url, "/api/v2/tables/catalog_options")
        shown = {
            row["catalog"] for row in get(url, "/api/v2/tables/sink_job_lineage?state=history")
        }
    engine.dispose()

    assert {(one["catalog"], one["key"], one["value"]) for one in options} == {
        ("lake", "table-lineage", "false"),
        ("pond", "data-lineage", "false"),
    }
    assert shown == {"pond"}  # the relations of lake are not shown


def test_rejected_option_logs_a_warning(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    engine = make_engine(sqlite_url)
    with serving(engine) as url, caplog.at_level(logging.WARNING, "strandline"):
        tell(
            Collector(url),
            [Option("lake", "table-lineage", "perhaps"), Option("lake", "data-lineage", "false")],
        )
        options = get(url, "/api/v2/tables/catalog_options")
    engine.dispose()

    assert [record.getMessage() for record in caplog.records] == [
        "strandline: table-lineage of catalog lake is not taken: table-lineage: 'perhaps' is not one of true, false"
    ]
    assert [(one["key"], one["value"]) for one in options] == [("data-lineage", "false")]


def test_missing_collector_logs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "strandline"):
        tell(
            Collector("http://127.0.0.1:1"),
            [Option("lake", "data-lineage", "false")],
            attempts=2,
            pause=0,
        )
        announce(
            {
                "spark.strandline.catalog.lake.data-lineage": "false",
                "spark.openlineage.transport.type": "file",
            }
        )

    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith(
        "strandline: data-lineage of catalog lake is not sent: the collector at http://127.0.0.1:1 "
    )
    assert second.endswith("not sent: spark.strandline.collector.url is not set")
