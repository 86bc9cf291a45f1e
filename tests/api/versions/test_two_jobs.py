"""Two jobs, one pair of snapshots: the first example of lineage in the lakehouse, over HTTP."""

import pytest

from fixtures.versions_server.events import LAKE, committed, ended, moment, run_id, started
from fixtures.versions_server.server import Server

SOURCES = {"db.table_2": "13", "db.table_3": "12"}
SECOND_STARTED = started("ETL 2", 20, list(SOURCES), ["db.table_6"], group="pip5")
SECOND_COMMITTED = committed("ETL 2", 30, 1, SOURCES, {"db.table_6": "15"}, group="pip5")


@pytest.fixture
def lake(server: Server) -> Server:
    """ETL 1 made table_5@9 from table_2@13 and table_3@12."""
    server.post(
        started("ETL 1", 0, list(SOURCES), ["db.table_5"], group="pip5"),
        committed("ETL 1", 10, 1, SOURCES, {"db.table_5": "9"}, group="pip5"),
    )
    return server


def test_second_job_starts_from_the_snapshots_that_the_first_consumed(lake: Server) -> None:
    lake.post(SECOND_STARTED)
    answer = lake.ask("/jobs/decision", {"namespace": "default", "name": "ETL 2"})

    assert answer["decision"] == "CHECKPOINT"
    assert answer["snapshots"] == [
        {"namespace": LAKE, "name": "db.table_2", "snapshotId": "13"},
        {"namespace": LAKE, "name": "db.table_3", "snapshotId": "12"},
    ]
    assert lake.rows("job_startup", "job", "table", "snapshot_id") == {
        ("ETL 2", "table_2", "13"),
        ("ETL 2", "table_3", "12"),
    }


def test_job_without_a_group_joins_the_group_of_its_sources(lake: Server) -> None:
    for table in ("table_2", "table_3"):
        lake.send("PUT", f"/register/source/ETL%202/iceberg%3A%2F%2Flake/db/{table}")
    lake.send("PUT", "/register/sink/ETL%202/iceberg%3A%2F%2Flake/db/table_6")
    lake.post(started("ETL 2", 20, [], [], group=None))
    lake.ask("/jobs/decision", {"namespace": "default", "name": "ETL 2"})

    assert lake.rows("job_startup", "job", "table", "consistency_group") == {
        ("ETL 2", "table_2", "pip5"),
        ("ETL 2", "table_3", "pip5"),
    }


def test_start_snapshots_move_to_history_when_the_run_ends(lake: Server) -> None:
    lake.post(SECOND_STARTED)
    lake.ask("/jobs/decision", {"namespace": "default", "name": "ETL 2"})
    assert not past_startups(lake)

    lake.post(ended("ETL 2", 40))

    ended_rows = past_startups(lake)
    assert lake.rows("job_startup", "job") == set()
    assert [(row["job"], row["table"], row["snapshot_id"], row["state"]) for row in ended_rows] == [
        ("ETL 2", "table_2", "13", "COMPLETE"),
        ("ETL 2", "table_3", "12", "COMPLETE"),
    ]
    assert {(row["run_id"], row["valid_from"], row["valid_to"]) for row in ended_rows} == {
        (run_id("ETL 2"), moment(20), moment(40))
    }


def past_startups(lake: Server) -> list[dict[str, str]]:
    found: list[dict[str, str]] = lake.client.get("/api/v2/tables/job_startup?state=history").json()
    return found


def test_a_query_over_both_results_gets_one_version(lake: Server) -> None:
    lake.post(
        SECOND_STARTED,
        SECOND_COMMITTED,
    )

    assert lake.snapshots("db.table_5", "db.table_6") == {"db.table_5": "9", "db.table_6": "15"}
    assert lake.rows("sink_snapshot_lineage", "job", "barrier_id", "table", "snapshot_id") == {
        ("ETL 1", 1, "table_5", "9"),
        ("ETL 2", 1, "table_6", "15"),
    }
    assert lake.rows("source_snapshot_lineage", "job", "table", "snapshot_id") >= {
        ("ETL 2", "table_2", "13"),
        ("ETL 2", "table_3", "12"),
    }


def test_job_on_both_results_starts_from_their_version(lake: Server) -> None:
    lake.post(
        SECOND_STARTED,
        SECOND_COMMITTED,
        started("ETL 3", 40, ["db.table_5", "db.table_6"], ["db.table_7"], group="pip5"),
    )
    answer = lake.ask("/jobs/decision", {"namespace": "default", "name": "ETL 3"})

    assert {one["name"]: one["snapshotId"] for one in answer["snapshots"]} == {
        "db.table_5": "9",
        "db.table_6": "15",
    }
