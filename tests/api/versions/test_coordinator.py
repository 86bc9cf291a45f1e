"""Cutting barriers through base tables, runs that are lost, jobs that do not come back.

Two servers, and servers that restart.
"""

import time

from sqlalchemy import Engine

from fixtures.versions_server.events import appended, committed, ended, facet, started
from fixtures.versions_server.server import Server, running
from strandline.runtime.coordinator import Intervals, attend
from strandline.runtime.follower import Follower

QUIET = Intervals(barrier=3600, resume=10**9)


def test_job_gets_the_base_snapshots_of_its_barrier(server: Server) -> None:
    server.group("d", "db.r")
    server.post(
        started("job", 0, ["db.r"], ["db.t"], group="d"),
        appended("ingest", 1, "db.r", "r1"),
        appended("ingest", 2, "db.r", "r2", "r1"),
    )
    decision = server.ask("/jobs/decision", {"namespace": "default", "name": "job", "position": 0})

    assert (decision["decision"], decision["barrier"]) == ("CHECKPOINT", 1)
    assert decision["snapshots"] == [
        {"namespace": "iceberg://lake", "name": "db.r", "snapshotId": "r1"}
    ]

    server.post(committed("job", 5, 1, {"db.r": "r1"}, {"db.t": "t1"}, group="d"))

    assert server.snapshots("db.r", "db.t") == {"db.r": "r1", "db.t": "t1"}


def test_barriers_cut_several_base_tables_at_an_interval(server: Server) -> None:
    follower = Follower(server.engine)
    server.group("d", "db.r", "db.s")
    server.post(appended("ingest", 1, "db.r", "r1"))
    now = time.time()
    attend(server.engine, follower, QUIET, now)
    server.post(appended("other", 2, "db.s", "s1"))
    attend(server.engine, follower, QUIET, now)
    server.post(appended("ingest", 3, "db.r", "r2", "r1"))
    attend(server.engine, follower, QUIET, now)

    assert server.snapshots("db.r", "db.s") == {"db.r": "r1", "db.s": "s1"}

    attend(server.engine, follower, QUIET, now + 4000)
    attend(server.engine, follower, QUIET, now + 4000)

    assert server.snapshots("db.r", "db.s") == {"db.r": "r2", "db.s": "s1"}
    assert server.barriers("db.r", "db.s") == {"db.r": 2, "db.s": 2}


def test_base_table_without_a_snapshot_delays_only_its_own_group(server: Server) -> None:
    follower = Follower(server.engine)
    server.group("d", "db.r", "db.s")
    server.group("e", "db.u", "db.v")
    server.post(
        appended("one", 1, "db.r", "r1"),
        appended("two", 2, "db.u", "u1"),
        appended("three", 3, "db.v", "v1"),
    )
    attend(server.engine, follower, QUIET, time.time())

    assert server.snapshots("db.u", "db.v") == {"db.u": "u1", "db.v": "v1"}
    assert server.barriers("db.u", "db.v") == {"db.u": 1, "db.v": 1}


def test_snapshot_id_may_be_any_text(server: Server) -> None:
    """Long chains of snapshots are read from the database as two strings."""
    odd = "r2\x1f2\x1e,"
    lone = [
        appended("lone", 10 + number, "db.lone", name)
        for number, name in enumerate(("1", odd, "3"))
    ]
    server.group("d", "db.r")
    server.post(
        appended("ingest", 1, "db.r", "r1"), appended("ingest", 2, "db.r", odd, "r1"), *lone
    )

    assert server.snapshots("db.r") == {"db.r": odd}
    server.post(appended("ingest", 3, "db.r", "r3", odd))
    assert server.snapshots("db.r") == {"db.r": "r3"}
    assert server.barriers("db.r") == {"db.r": 3}
    expirable = server.get("/api/v2/expirable?namespace=iceberg%3A%2F%2Flake&name=db.lone")
    assert {odd, "3"} <= {
        *expirable["expirable"],
        *(one["snapshotId"] for one in expirable["kept"]),
    }


def test_a_base_table_of_another_group_is_refused(server: Server) -> None:
    server.group("d", "db.r")
    problem = server.ask(
        "/groups", {"name": "e", "tables": [{"namespace": "iceberg://lake", "name": "db.r"}]}, 409
    )

    assert problem["code"] == "groups"
    assert [one["name"] for one in server.get("/api/v2/groups")["groups"]] == ["d"]


def test_groups_are_listed_page_by_page_by_name(server: Server) -> None:
    for name in ("c", "a", "b"):
        server.group(name, f"db.{name}")

    page = server.get("/api/v2/groups?limit=2")
    rest = server.get(f"/api/v2/groups?limit=2&cursor={page['nextCursor']}")

    assert [one["name"] for one in page["groups"]] == ["a", "b"]
    assert ([one["name"] for one in rest["groups"]], rest["nextCursor"]) == (["c"], None)


def test_silent_member_is_lost_stays_a_member_and_is_finally_retired(server: Server) -> None:
    lease = {"strandline_heartbeat": facet({"timeoutSeconds": 60})}
    start = started("job", 0, ["db.a"], ["db.b"], group="d")
    start["run"]["facets"] |= lease
    server.post(start, committed("job", 5, 1, {"db.a": "1"}, {"db.b": "11"}, group="d"))
    follower, now = Follower(server.engine), time.time()

    attend(server.engine, follower, QUIET, now + 120)
    with follower.model() as model:
        place = model.places["default", "job"]
        assert place.ended is not None
        assert place.ended.how == "LOST"
    assert server.barriers("db.b") == {"db.b": 1}

    attend(server.engine, follower, Intervals(3600, resume=3600), now + 4000)

    (table,) = server.versions("db.b", consistency="strong")["tables"]
    assert "its writer job was retired" in table["untracked"]


def test_two_servers_give_the_same_answers(engine: Engine) -> None:
    with running(engine) as one, running(engine) as other:
        one.post(started("to_a", 0, [], ["db.a"], group="d"))
        other.post(started("to_b", 1, ["db.a"], ["db.b"], group="d"))
        one.post(committed("to_a", 10, 1, {}, {"db.a": "a1"}, group="d"))
        other.post(committed("to_b", 11, 1, {"db.a": "a1"}, {"db.b": "b1"}, group="d"))
        one.post(committed("to_a", 20, 2, {}, {"db.a": "a2"}, group="d"))
        first, second = one.versions("db.a", "db.b"), other.versions("db.a", "db.b")
        other.send("PUT", "/register/sink/x/lake/db/x")
        refused = one.send("PUT", "/register/sink/y/lake/db/x", 409)

    for answer in (first, second):
        assert {table["name"]: table["snapshotId"] for table in answer["tables"]} == {
            "db.a": "a1",
            "db.b": "b1",
        }
    assert refused["code"] == "writer"


def test_restarted_server_gives_the_same_answers(engine: Engine) -> None:
    with running(engine) as server:
        server.post(
            started("to_a", 0, [], ["db.a"], group="d"),
            committed("to_a", 10, 1, {}, {"db.a": "a1"}, group="d"),
        )
        server.post(started("late", 20, ["db.a"], ["db.b"], group="d"))
        lease = server.versions("db.a", leaseSeconds=600)["lease"]
        assert server.versions("db.b", consistency="strong", status=409)["code"] == "no_version"
    with running(engine) as server:
        server.post(
            committed("late", 30, 1, {"db.a": "a1"}, {"db.b": "b1"}, group="d"), ended("late", 40)
        )

        assert server.snapshots("db.a", "db.b") == {"db.a": "a1", "db.b": "b1"}
        assert server.client.put(f"/api/v2/leases/{lease['id']}", json={}).status_code == 200
