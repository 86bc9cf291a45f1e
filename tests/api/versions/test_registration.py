"""The proposals' paths below nothing else.

Announcing, refusing with reasons, retiring, asking for a version.
"""

import pytest

from fixtures.versions_server.events import committed, ended, facet, started
from fixtures.versions_server.server import Server


@pytest.fixture
def known(server: Server) -> Server:
    """A server that has heard of a table, its job and a version."""
    server.post(
        started("etl", 0, ["db.a"], ["db.b"], group="d"),
        committed("etl", 10, 1, {"db.a": "1"}, {"db.b": "11"}, group="d"),
    )
    return server


def test_registration_shows_nothing_until_a_run_starts(server: Server) -> None:
    server.send("PUT", "/register/source/etl/iceberg%3A%2F%2Flake/db/a")
    server.send("POST", "/register/sink/etl/iceberg%3A%2F%2Flake/db/b")

    assert server.rows("sink_job_lineage", "job") == set()
    assert server.get("/api/v2/groups") == {"groups": [], "nextCursor": None}

    server.post(started("etl", 0, ["db.a"], ["db.b"], group=None))
    server.post(committed("etl", 10, 1, {"db.a": "1"}, {"db.b": "11"}, group=None))

    assert server.rows("sink_job_lineage", "job", "table") == {("etl", "b")}
    assert server.snapshots("db.a", "db.b") == {"db.a": "1", "db.b": "11"}


def test_second_writer_is_rejected_with_the_reason(server: Server) -> None:
    server.send("PUT", "/register/sink/one/lake/db/b")
    problem = server.send("PUT", "/register/sink/two/lake/db/b", 409)

    assert problem["code"] == "writer"
    assert "is written by job one" in problem["detail"]

    server.send("DELETE", "/unregister/one")
    server.send("PUT", "/register/sink/two/lake/db/b")


def test_name_in_a_url_is_decoded_exactly_once(server: Server) -> None:
    server.send("PUT", "/register/sink/a%2Fb/lake/%2e%2e/x%2F..%2Fy")
    problem = server.send("PUT", "/register/sink/other/lake/%2e%2e/x%2F..%2Fy", 409)
    for another in ("lake/%252e%252e/x%2F..%2Fy", "lake/%2e%2e/x%252F..%252Fy", "lake/%2e%2e/y"):
        server.send("PUT", f"/register/sink/other/{another}")

    assert "is written by job a/b" in problem["detail"]


def test_running_ungrouped_stream_blocks_a_second_writer(server: Server) -> None:
    streams = {"jobType": facet({"processingType": "STREAMING", "integration": "SPARK"})}
    for job, facets in (("ingest", streams), ("nightly", {})):
        run = started(job, 0, [], [f"db.{job}"], group=None)
        run["job"]["facets"] = facets
        server.post(run)

    problem = server.send("PUT", "/register/sink/two/iceberg%3A%2F%2Flake/db/ingest", 409)
    server.send("PUT", "/register/sink/ingest/iceberg%3A%2F%2Flake/db/ingest")
    server.send("DELETE", "/unregister/ingest")
    server.send("PUT", "/register/sink/two/iceberg%3A%2F%2Flake/db/nightly")
    server.post(ended("ingest", 10))
    server.send("PUT", "/register/sink/two/iceberg%3A%2F%2Flake/db/ingest")

    assert (problem["code"], problem["detail"].partition(": ")[2]) == (
        "writer",
        "is written by job ingest (running)",
    )


def test_sources_of_two_groups_are_rejected(server: Server) -> None:
    server.group("d", "db.a")
    server.group("e", "db.b")
    server.post(
        started("x", 0, ["db.a"], ["db.x"], group="d"),
        started("y", 0, ["db.b"], ["db.y"], group="e"),
    )
    server.send("PUT", "/register/source/job/iceberg%3A%2F%2Flake/db/a")
    problem = server.send("PUT", "/register/source/job/iceberg%3A%2F%2Flake/db/b", 409)

    assert problem["code"] == "groups"


def test_version_endpoint_returns_barrier_and_snapshot(known: Server) -> None:
    place = "iceberg%3A%2F%2Flake/db"

    assert known.get(f"/version/strong/{place}/b") == {"version": 1, "snapshotId": "11"}
    assert known.get(f"/version/weak/{place}/b") == {"version": 1, "snapshotId": "11"}
    problem = known.get(f"/version/strong/{place}/bb", 404)
    assert problem["code"] == "not_found"


def test_second_writer_in_events_makes_the_table_untracked(known: Server) -> None:
    known.post(started("other", 20, ["db.a"], ["db.b"], group="d"))
    (table,) = known.versions("db.b", consistency="strong")["tables"]

    assert table["barrier"] == 1
    assert "untracked: 2 jobs write it (etl, other)" in table["untracked"]

    known.send("POST", "/unregister/other")

    assert known.barriers("db.b") == {"db.b": 1}


def test_an_unknown_job_cannot_be_unregistered(known: Server) -> None:
    problem = known.send("DELETE", "/unregister/nobody", 404)

    assert problem["code"] == "not_found"


def test_a_job_is_found_under_the_pattern_of_its_name_only_where_its_family_is_joined(
    server: Server,
) -> None:
    server.post(started("etl_{number}", 0, ["db.a"], ["db.b"], group="d"))

    server.send("DELETE", "/unregister/etl_7", 404)
    server.ask("/jobs/decision", {"namespace": "default", "name": "etl_7", "position": 0}, 404)
    server.send("DELETE", "/unregister/etl_{number}")
