"""Where a table is stored, as a rollback changes it there."""

import pytest
from sqlalchemy import Engine

from strandline.store.versions.stored_tables import stored_tables
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import run
from worlds.scenarios.taking import fill, reader


@pytest.mark.parametrize(
    ("namespace", "name", "location"),
    [
        ("file", "/lake/t", "/lake/t"),
        ("s3://bucket", "lake/t", "s3://bucket/lake/t"),
        ("abfss://c@account.dfs.core.windows.net", "lake/t", "abfss://c@account.dfs.core.windows.net/lake/t"),
        ("hdfs://namenode:8020", "/lake/t", "hdfs://namenode:8020/lake/t"),
        ("hive://lake", "db.t", ""),
    ],
)  # fmt: skip
def test_location_of_a_table_is_its_path(
    engine: Engine, namespace: str, name: str, location: str
) -> None:
    made = {"strandline_snapshot": FACET | {"snapshotId": "3", "format": "delta"}}
    output = {"namespace": namespace, "name": name, "outputFacets": made}
    fill(engine, [run("COMPLETE", 1, "load", [], [output])])

    with reader(engine) as connection:
        (stored,) = stored_tables(connection, [(namespace, name)]).values()

    assert (stored.format, stored.location) == ("delta", location)
