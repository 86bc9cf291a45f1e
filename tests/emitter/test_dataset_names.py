"""Dataset names equal those of OpenLineage's naming classes and contain no credentials."""

from __future__ import annotations

import pytest
from openlineage.client.naming import dataset as spec
from openlineage.client.naming.dataset import DatasetNaming

from strandline_spark.model.names import of_jdbc, of_path, of_topic


@pytest.mark.parametrize(
    ("url", "table", "named"),
    [
        (
            "jdbc:postgresql://u:p@db/shop?ssl=true",
            "public.orders",
            spec.Postgres("db", "5432", "shop", "public", "orders"),
        ),
        ("jdbc:mysql://db:3307/shop", "orders", spec.MySQL("db", "3307", "shop", "orders")),
        ("jdbc:mariadb://db/shop", "orders", spec.MySQL("db", "3306", "shop", "orders")),
        (
            "jdbc:oracle:thin:u/p@db:1521:orcl",
            "shop.orders",
            spec.Oracle("db", "1521", "orcl", "shop", "orders"),
        ),
        (
            "jdbc:oracle:thin:@//db:1522/svc",
            "shop.orders",
            spec.Oracle("db", "1522", "svc", "shop", "orders"),
        ),
        (
            "jdbc:db2://db:50000/SHOP:user=u;password=p;",
            "s.orders",
            spec.DB2("db", "50000", "SHOP", "s", "orders"),
        ),
        (
            "jdbc:redshift://c.x1.eu-west-1.redshift.amazonaws.com/dev",
            "s.t",
            spec.Redshift("c", "eu-west-1", "5439", "dev", "s", "t"),
        ),
        (
            "jdbc:snowflake://org-acc.snowflakecomputing.com/?db=D&schema=S&user=u",
            "T",
            spec.Snowflake("org", "acc", "D", "S", "T"),
        ),
        (
            "jdbc:trino://t:8443/hive/web?password=p",
            "clicks",
            spec.Trino("t", "8443", "hive", "web", "clicks"),
        ),
        (
            "jdbc:teradata://td/DATABASE=shop,DBS_PORT=1025,USER=u",
            "orders",
            spec.Teradata("td", "1025", "shop", "orders"),
        ),
        (
            "jdbc:crate://c:5432/crate",
            "doc.orders",
            spec.CrateDB("c", "5432", "crate", "doc", "orders"),
        ),
        ("jdbc:oceanbase://o/shop", "orders", spec.OceanBase("o", "2881", "shop", "orders")),
        (
            "jdbc:sqlserver://s;databaseName=shop;password=p",
            "dbo.orders",
            spec.AzureSynapse("s", "1433", "shop.dbo", "orders"),
        ),
        ("jdbc:hive2://h:10001/web;user=u", "clicks", spec.Hive("h", "10001", "web", "clicks")),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("jdbc") else "",
)
def test_jdbc_tables_get_openlineages_names(url: str, table: str, named: DatasetNaming) -> None:
    assert of_jdbc(url, table) == (named.get_namespace(), named.get_name())


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("jdbc:derby:/data/shop;user=ann;create=true", ("derby", "/data/shop.ORDERS")),
        ("jdbc:h2:mem:shop;USER=ann;TRACE_LEVEL_FILE=4", ("h2", "mem:shop.ORDERS")),
        (
            "jdbc:sqlserver://s:1444;user=ann;trustStore=/etc/keys.jks",
            ("sqlserver://s:1444", "ORDERS"),
        ),
        (
            "jdbc:sqlserver://s;user=ann;databaseName=shop;trustStore=/k",
            ("sqlserver://s:1433", "shop.ORDERS"),
        ),
        (
            "jdbc:hive2://h:10001/web;user=ann;sslTrustStore=/k?a=b#c",
            ("hive://h:10001", "web.ORDERS"),
        ),
        (
            "jdbc:db2://h:50001/SHOP:user=ann;sslTrustStoreLocation=/k;",
            ("db2://h:50001", "SHOP.ORDERS"),
        ),
    ],
)
def test_options_after_a_semicolon_are_not_part_of_a_name(url: str, named: tuple[str, str]) -> None:
    assert of_jdbc(url, "ORDERS") == named


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("s3a://KEY:SECRET@lake/shop/orders", spec.S3("lake", "shop/orders")),
        ("gs://lake/shop/orders", spec.GCS("lake", "shop/orders")),
        ("hdfs://name:8020/shop/orders", spec.HDFS("name", "8020", "/shop/orders")),
        ("abfss://c@acc.dfs.core.windows.net/shop", spec.ABFSS("c", "acc", "shop")),
        ("file:/shop/orders", spec.LocalFileSystem("/shop/orders")),
    ],
)
def test_files_and_folders_get_openlineages_names(location: str, named: DatasetNaming) -> None:
    assert of_path(location) == (named.get_namespace(), named.get_name())


def test_topics_get_openlineages_names() -> None:
    named = spec.Kafka("b", "9092", "orders")

    assert of_topic("SASL_SSL://b:9092,c:9092", "orders") == (
        named.get_namespace(),
        named.get_name(),
    )
