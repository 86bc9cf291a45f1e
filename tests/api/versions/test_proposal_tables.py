"""The proposals' queries as SQL on both databases, and the catalog options that the tables follow."""

from typing import Any

import pytest
from sqlalchemy import Connection, text

from fixtures.versions_server.events import barrier_facet, dataset, event, facet, started
from fixtures.versions_server.server import Server

ACROSS = """SELECT k.snapshot_id FROM sink_snapshot_lineage k
              JOIN source_snapshot_lineage s ON s.job = k.job AND s.barrier_id = k.barrier_id
             WHERE s.job = 'job_name' AND s.snapshot_id = '10' AND s.catalog = 'catalog1' AND k.catalog = 'catalog2'"""
DEPENDENCIES = """SELECT T.table_name FROM __META_ETL_SOURCE S JOIN __META_ETL_SINK T ON S.job_id = T.job_id
                   WHERE S.table_name = 'Table1' ORDER BY T.table_name"""


def in_catalog(catalog: str, name: str, direction: str, snapshot: str) -> dict[str, Any]:
    """A table of a catalog, with the snapshot of barrier 1."""
    found = dataset(name, direction, {"snapshotId": snapshot, "barrierId": 1, "format": "iceberg"})
    found["namespace"] = f"iceberg://{catalog}"
    found["facets"]["catalog"] = facet({"framework": "iceberg", "type": "jdbc", "name": catalog})
    return found


@pytest.fixture
def two_catalogs(server: Server) -> Server:
    """job_name reads a table of catalog1 at snapshot 10 and makes snapshot 20 in catalog2."""
    reads, writes = (
        [in_catalog("catalog1", "db.s", "input", "10")],
        [in_catalog("catalog2", "db.k", "output", "20")],
    )
    facets = barrier_facet("d", 1, 9, 10)
    server.post(
        event("START", "job_name", 0, inputs=reads, outputs=writes, run_facets=facets),
        event("RUNNING", "job_name", 10, inputs=reads, outputs=writes, run_facets=facets),
    )
    return server


def rows(connection: Connection, query: str) -> list[Any]:
    return [row[0] for row in connection.execute(text(query))]


def configure(server: Server, catalog: str, key: str, value: str) -> None:
    """Do as the operator of a catalog."""
    option = {"catalog": catalog, "key": key, "value": value}
    assert server.client.put("/api/v2/catalog-options", json=option).status_code == 204


def counts(server: Server) -> dict[str, int]:
    names = [
        "source_job_lineage",
        "sink_job_lineage",
        "source_snapshot_lineage",
        "sink_snapshot_lineage",
    ]
    names += ["__META_ETL_SOURCE", "__META_ETL_SINK", "__META_TABLE_VERSION"]
    return {name: len(server.get(f"/api/v2/tables/{name}")) for name in names}


def test_query_finds_snapshots_made_from_another_catalogs_snapshot(two_catalogs: Server) -> None:
    with two_catalogs.engine.connect() as connection:
        assert rows(connection, ACROSS) == ["20"]
        assert rows(connection, ACROSS.replace("'10'", "'11'")) == []


def test_query_finds_the_tables_that_depend_on_a_table(server: Server) -> None:
    server.post(
        started("etl1", 0, ["db.Table1"], ["db.Table3"], group="d"),
        started("etl2", 0, ["db.Table1", "db.Table2"], ["db.Table4"], group="d"),
        started("etl3", 0, ["db.Table2"], ["db.Table5"], group="d"),
    )
    with server.engine.connect() as connection:
        assert rows(connection, DEPENDENCIES) == ["Table3", "Table4"]
    for name in ("__META_JOB_SOURCE", "__META_JOB_Sink", "__META_ETL_SOURCE"):
        assert len(server.get(f"/api/v2/tables/{name}")) >= 3


def test_disabled_table_lineage_hides_the_edges_of_a_catalog(two_catalogs: Server) -> None:
    configure(two_catalogs, "catalog2", "table-lineage", "false")

    assert counts(two_catalogs) == {
        "source_job_lineage": 1,
        "sink_job_lineage": 0,
        "source_snapshot_lineage": 1,
        "sink_snapshot_lineage": 1,
        "__META_ETL_SOURCE": 1,
        "__META_ETL_SINK": 0,
        "__META_TABLE_VERSION": 1,
    }


def test_disabled_data_lineage_hides_the_snapshots_of_a_catalog(two_catalogs: Server) -> None:
    configure(two_catalogs, "catalog2", "data-lineage", "FALSE")

    assert counts(two_catalogs) == {
        "source_job_lineage": 1,
        "sink_job_lineage": 1,
        "source_snapshot_lineage": 1,
        "sink_snapshot_lineage": 0,
        "__META_ETL_SOURCE": 1,
        "__META_ETL_SINK": 1,
        "__META_TABLE_VERSION": 0,
    }


def test_catalog_option_can_be_reset_and_invalid_values_are_explained(two_catalogs: Server) -> None:
    before = counts(two_catalogs)
    configure(two_catalogs, "catalog1", "table-lineage", "false")
    hidden = counts(two_catalogs)
    configure(two_catalogs, "catalog1", "table-lineage", "true")
    wrong = two_catalogs.client.put(
        "/api/v2/catalog-options",
        json={"catalog": "catalog1", "key": "data-lineage", "value": "off"},
    )
    which = {"catalog": "catalog1", "key": "table-lineage"}
    codes = [
        two_catalogs.client.delete("/api/v2/catalog-options", params=which).status_code
        for _ in (1, 2)
    ]

    assert hidden["source_job_lineage"] < before["source_job_lineage"]
    assert counts(two_catalogs) == before
    assert (wrong.status_code, wrong.json()["detail"]) == (
        409,
        "data-lineage: 'off' is not one of true, false",
    )
    assert codes == [204, 404]
